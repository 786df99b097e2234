/* Measures the candidates of every choice of a graph's operations. */
#include "graph/tune/internal.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/progress.h"
#include "device/device.h"
#include "graph/tune/rounds.h"
#include "ops/probe/probe.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TURNS = 1000 };

static const double ROUND_SECONDS = 0.004, /* a round, unless one turn takes longer */
    UNIT_FLOPS = 1e9,     /* forward, of a probe's samples for each compute unit */
    HOPELESS = 4,         /* candidates of more than so many times the least estimated cost are
                           * not measured */
    FULL_ERROR = 1e-3,    /* of a candidate against the direct sums, relative to their RMS */
    REDUCED_ERROR = 2e-2; /* where products may be of reduced precision */

/* --- one candidate ---------------------------------------------------------------------- */

static enum lk_status enqueue_forward(void *probe)
{
    return lk_probe_forward(probe, 0);
}

static enum lk_status enqueue_backward(void *probe)
{
    return lk_probe_backward(probe, 0);
}

static enum lk_status enqueue(const struct lk_tuner *tuner, struct lk_probe *probe)
{
    return tuner->choice.is_backward ? enqueue_backward(probe) : enqueue_forward(probe);
}

static const struct lk_buffer *result_of(const struct lk_tuner *tuner,
                                         const struct lk_probe *probe)
{
    const struct lk_op_run *run = &probe->runs[0];
    return tuner->choice.dx ? run->dx[0] : tuner->choice.dw ? run->dw[0] : run->y;
}

/* How many numbers the result has; of a weight gradient, whose buffer is longer, as many as a
 * pass writes. */
static int64_t count_of(const struct lk_tuner *tuner, const struct lk_probe *probe)
{
    if (tuner->choice.dw)
        return lk_shape_count(&tuner->like.shapes.param[0].shape);
    return (int64_t)(lk_buffer_bytes(result_of(tuner, probe)) /
                     lk_dtype_bytes(lk_op_stored(&probe->setup)));
}

/* Root mean square of a - b, relative to that of b; infinite where there is a NaN. */
static double error_of(const float *a, const float *b, size_t count)
{
    double error = 0, norm = 0;
    for (size_t i = 0; i < count; i++) {
        error += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
        norm += (double)b[i] * b[i];
    }
    return error == 0 ? 0 : isfinite(error) && norm > 0 ? sqrt(error / norm) : INFINITY;
}

/* Compares the result with that of the first candidate; the first candidate's own is kept for
 * that. */
static enum lk_status check(struct lk_tuner *tuner, const struct lk_probe *probe,
                            const struct lk_candidate *candidate, bool *is_right)
{
    const int64_t count = count_of(tuner, probe);
    const struct lk_candidate *first = &tuner->choice.candidates[0];
    float *found = malloc((size_t)count * sizeof *found);
    if (!found)
        return lk_fail_memory("a candidate's results", (size_t)count * sizeof *found);
    const enum lk_dtype dtype = tuner->choice.dw ? LK_F32 : lk_op_stored(&probe->setup);
    const enum lk_status status =
        lk_probe_read(result_of(tuner, probe), dtype, 0, count, found);
    if (status != LK_OK) {
        free(found);
        return status;
    }
    if (!tuner->expected) {
        tuner->expected = found;
        tuner->expected_count = count;
        *is_right = true;
        return LK_OK;
    }
    const double error = error_of(found, tuner->expected, (size_t)count);
    const double most = lk_candidate_is_same(candidate->name, first->name) ? 0
                        : candidate->math == LK_MATH_FAST                  ? REDUCED_ERROR
                                                                           : FULL_ERROR;
    *is_right = count == tuner->expected_count && error <= most;
    free(found);
    return LK_OK;
}

/* The shortest of some rounds, since other work on the machine can only make them longer. */
static enum lk_status time_probe(const struct lk_tuner *tuner, struct lk_probe *probe,
                                 double *ms)
{
    struct lk_rounds rounds;
    double seconds[LK_MOST_ROUNDS], all, least = INFINITY;
    enum lk_status status;
    LK_TRY_OUT(lk_rounds_create(tuner->config->device,
                                tuner->choice.is_backward ? enqueue_backward : enqueue_forward,
                                probe, &rounds));
    LK_TRY_OUT(lk_rounds_run(&rounds, 1, 1, seconds, &all));
    const double turns = fmin(floor(ROUND_SECONDS / all) + 1, MOST_TURNS);
    LK_TRY_OUT(lk_rounds_run(&rounds, LK_MOST_ROUNDS, (int)turns, seconds, &all));
    for (int i = 0; i < LK_MOST_ROUNDS; i++)
        least = fmin(least, seconds[i]);
    *ms = 1e3 * least;
out:
    lk_rounds_clear(&rounds);
    return status;
}

/* Sets the device's choice on which the candidate depends, such as a library's tiles: to the
 * one being tried, or to the one known as the fastest. */
static enum lk_status set_shared(const struct lk_tuner *tuner, struct lk_choices *choices)
{
    char text[LK_CHOICE_TEXT_BYTES] = "";
    const struct lk_choice *shared = &tuner->shared;
    if (tuner->shared_name)
        return lk_choices_set(choices, shared->key, tuner->shared_name);
    if (shared->decides && lk_choices_find(tuner->config->choices, shared->key, text))
        return lk_choices_set(choices, shared->key, text);
    return LK_OK;
}

/* Whether the device has really run what was to be tried, and not a replacement. */
static bool has_shared(const struct lk_tuner *tuner, struct lk_choices *choices)
{
    char text[LK_CHOICE_TEXT_BYTES] = "";
    return !tuner->shared_name || (lk_choices_find(choices, tuner->shared.key, text) &&
                                   strcmp(text, tuner->shared_name) == 0);
}

enum lk_status lk_tuner_measure(struct lk_tuner *tuner, const struct lk_candidate *candidate,
                                struct lk_tune_report *report)
{
    struct lk_probe probe = {0};
    struct lk_op_setup like = tuner->like;
    bool is_right = false;
    enum lk_status status;
    like.training = tuner->choice.is_backward || like.training;
    like.wants_dw = tuner->choice.dw;
    for (int i = 0; i < LK_MOST_INPUTS; i++)
        like.wants_dx[i] &= tuner->choice.dx;
    LK_TRY_OUT(lk_choices_create(lk_choices_math(tuner->config->choices), &like.choices));
    LK_TRY_OUT(lk_choices_set(like.choices, tuner->choice.key, candidate->name));
    LK_TRY_OUT(set_shared(tuner, like.choices));
    LK_TRY_OUT(lk_probe_open_like(&probe, tuner->op, &like, tuner->samples));
    LK_TRY_OUT(lk_device_build(tuner->config->device));
    LK_TRY_OUT(lk_probe_allocate(&probe, 1, tuner->choice.is_backward));
    LK_TRY_OUT(lk_probe_fill(&probe));
    LK_TRY_OUT(enqueue(tuner, &probe));
    LK_TRY_OUT(lk_device_finish(tuner->config->device));
    LK_TRY_OUT(check(tuner, &probe, candidate, &is_right));
    is_right &= has_shared(tuner, like.choices);
    report->outcome = is_right ? LK_TUNE_GOOD : LK_TUNE_WRONG;
    if (is_right)
        LK_TRY_OUT(time_probe(tuner, &probe, &report->ms));
out:
    lk_probe_close(&probe);
    lk_choices_destroy(like.choices);
    return status;
}

/* --- one choice ------------------------------------------------------------------------- */

/* Drops candidates that are not to be measured. */
static void prune(const struct lk_tune_config *config, struct lk_choice *choice)
{
    const enum lk_math math = lk_choices_math(config->choices);
    const struct lk_candidate *best = NULL;
    for (int i = 0; i < choice->count; i++)
        if (lk_candidate_is_possible(&choice->candidates[i], math) &&
            (!best || choice->candidates[i].cost < best->cost))
            best = &choice->candidates[i];
    const struct lk_candidate rule = best ? *best : (struct lk_candidate){{0}, 0, 0};
    int kept = 0;
    for (int i = 0; i < choice->count; i++) {
        const struct lk_candidate c = choice->candidates[i];
        const bool is_wanted = !config->keeps_bits || lk_candidate_is_same(c.name, rule.name);
        if (lk_candidate_is_possible(&c, math) && is_wanted && c.cost <= HOPELESS * rule.cost)
            choice->candidates[kept++] = c;
    }
    choice->count = kept;
}

bool lk_tuner_is_time_up(const struct lk_tuner *tuner)
{
    return tuner->stopped || (tuner->end > 0 && lk_seconds() > tuner->end);
}

static enum lk_status keep(struct lk_tuner *tuner, int fastest)
{
    const struct lk_choice *choice = &tuner->choice;
    return fastest < 0 ? LK_OK
                       : lk_choices_set(tuner->config->choices, choice->key,
                                        choice->candidates[fastest].name);
}

void lk_tuner_report(struct lk_tuner *tuner, const struct lk_tune_report *report)
{
    if (tuner->config->handler && !tuner->config->handler(tuner->config->context, report))
        tuner->stopped = true;
}

/* ms: of each candidate; heard: whether all were. */
static enum lk_status tune_choice(struct lk_tuner *tuner, double *ms, bool *heard)
{
    struct lk_choice *choice = &tuner->choice;
    int fastest = -1, i = 0;
    for (; i < choice->count && !lk_tuner_is_time_up(tuner); i++) {
        struct lk_tune_report report = {.key = choice->key,
                                        .name = choice->candidates[i].name,
                                        .samples = tuner->samples,
                                        .outcome = LK_TUNE_FAILED};
        const enum lk_status status = lk_tuner_measure(tuner, &choice->candidates[i], &report);
        if (status == LK_E_DEVICE || status == LK_E_MEMORY)
            return status;
        if (status != LK_OK) {
            report.outcome = LK_TUNE_FAILED;
            lk_error_clear();
        }
        if (report.outcome == LK_TUNE_GOOD)
            ms[i] = report.ms;
        if (ms[i] > 0 && (fastest < 0 || ms[i] < LK_TUNER_CLEARLY * ms[fastest]))
            fastest = i;
        if (i + 1 == choice->count && fastest >= 0)
            report.fastest = choice->candidates[fastest].name;
        lk_tuner_report(tuner, &report);
    }
    *heard = i == choice->count;
    return *heard ? keep(tuner, fastest) : LK_OK;
}

/* --- a graph ---------------------------------------------------------------------------- */

static void describe(struct lk_tuner *tuner, const struct lk_scheduled_op *scheduled)
{
    const struct lk_tune_config *c = tuner->config;
    const struct lk_tiling run = lk_tiling_make(lk_device_info(c->device), c->batch, c->shards);
    const int lanes = run.lanes;
    const double room = UNIT_FLOPS * lk_device_info(c->device)->compute_units;
    const int64_t wanted = (int64_t)(room / (scheduled->shapes.flops + 1)) / lanes * lanes;
    tuner->samples = lk_least(wanted < lanes ? lanes : wanted, c->batch);
    tuner->op = scheduled->op;
    tuner->like = (struct lk_op_setup){.device = c->device,
                                       .node = scheduled->node->name,
                                       .options = scheduled->options,
                                       .shapes = scheduled->shapes,
                                       .tiling = lk_tiling_resize(&run, tuner->samples, 1),
                                       .real = LK_F32,
                                       .stores_half = c->stores_half,
                                       .training = c->training,
                                       .wants_dw = scheduled->wants_dw};
    memcpy(tuner->like.wants_dx, scheduled->wants_dx, sizeof tuner->like.wants_dx);
}

bool lk_tuner_begin(struct lk_tuner *tuner, const struct lk_scheduled_op *scheduled, int index)
{
    describe(tuner, scheduled);
    if (!scheduled->op->choice || !scheduled->op->choice(&tuner->like, index, &tuner->choice))
        return false;
    prune(tuner->config, &tuner->choice);
    if (scheduled->op->device_choice && !tuner->shared.decides &&
        scheduled->op->device_choice(&tuner->like, &tuner->shared))
        prune(tuner->config, &tuner->shared);
    return true;
}

static enum lk_status tune_op(struct lk_tuner *tuner, const struct lk_scheduled_op *scheduled)
{
    char text[LK_CHOICE_TEXT_BYTES];
    for (int i = 0; lk_tuner_begin(tuner, scheduled, i); i++) {
        double ms[LK_MOST_CANDIDATES] = {0};
        bool heard = false;
        if (lk_tuner_is_time_up(tuner) || tuner->choice.count < 2 ||
            lk_choices_find(tuner->config->choices, tuner->choice.key, text))
            continue;
        const enum lk_status status = tune_choice(tuner, ms, &heard);
        free(tuner->expected);
        tuner->expected = NULL;
        LK_TRY(status);
        if (heard)
            LK_TRY(lk_tuner_note(tuner, scheduled, i, ms));
    }
    return LK_OK;
}

static enum lk_status tune_ops(struct lk_tuner *tuner, const struct lk_schedule *schedule)
{
    for (int i = 0; i < schedule->op_count; i++)
        if (schedule->ops[i].op->choice) {
            LK_TRY(tune_op(tuner, &schedule->ops[i]));
            lk_progress_add(LK_TASK_MEASURE, 1);
        }
    return LK_OK;
}

static int count_choosing(const struct lk_schedule *schedule)
{
    int count = 0;
    for (int i = 0; i < schedule->op_count; i++)
        count += schedule->ops[i].op->choice != NULL;
    return count;
}

enum lk_status lk_tune(const struct lk_tune_config *config)
{
    struct lk_tuner tuner = {.config = config,
                             .end = config->seconds > 0 ? lk_seconds() + config->seconds : 0};
    struct lk_schedule schedule = {0};
    enum lk_status status;
    LK_TRY_OUT(lk_schedule_make((const struct lk_node *[]){config->output, NULL},
                                config->training, &schedule));
    lk_progress_begin(LK_TASK_MEASURE, count_choosing(&schedule));
    status = tune_ops(&tuner, &schedule);
    lk_progress_end(LK_TASK_MEASURE);
    if (status == LK_OK)
        status = lk_tuner_choose_shared(&tuner);
out:
    free(tuner.passes);
    lk_schedule_clear(&schedule);
    return status;
}

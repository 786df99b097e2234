#include "graph/tune.h"

#include "base/fail.h"
#include "device/device.h"
#include "graph/schedule.h"
#include "ops/probe.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 5 };

static const double ROUND_SECONDS = 0.004, /* a measurement lasts at least this long */
    UNIT_FLOPS = 1e9,     /* forward, of a probe's samples for each compute unit */
    CLEARLY = 0.97,       /* of the time so far: what is hardly faster is not worth a change */
    HOPELESS = 4,         /* times the least cost: is not measured */
    FULL_ERROR = 1e-3,    /* of a candidate against the direct sums, relative to their RMS */
    REDUCED_ERROR = 2e-2; /* where products may be of reduced precision */

struct tuner {
    const struct lk_tune_config *config;
    double end; /* lk_seconds() */
    bool stopped;
    float *random;           /* [RANDOM] in (-1, 1) */
    struct lk_op_setup like; /* of the step at hand */
    const struct lk_op *op;
    int64_t samples;
    struct lk_choice choice;
    float *expected; /* of the choice at hand, by the first candidate; NULL: none yet */
    size_t expected_bytes;
};

/* --- one candidate ---------------------------------------------------------------------- */

static enum lk_status enqueue(const struct tuner *tuner, struct lk_probe *probe)
{
    return tuner->choice.is_backward ? lk_probe_backward(probe, 0) : lk_probe_forward(probe, 0);
}

static const struct lk_buffer *result_of(const struct tuner *tuner,
                                         const struct lk_probe *probe)
{
    const struct lk_op_run *run = &probe->runs[0];
    return tuner->choice.dx ? run->dx[0] : tuner->choice.dw ? run->dw[0] : run->y;
}

/* Root mean square of a - b over that of b; of bits that are no numbers: infinite. */
static double error_of(const float *a, const float *b, size_t count)
{
    double error = 0, norm = 0;
    for (size_t i = 0; i < count; i++) {
        error += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
        norm += (double)b[i] * b[i];
    }
    return error == 0 ? 0 : isfinite(error) && norm > 0 ? sqrt(error / norm) : INFINITY;
}

/* Whether the result is that of the first candidate, which it becomes where there is none. */
static enum lk_status check(struct tuner *tuner, const struct lk_probe *probe,
                            const struct lk_candidate *candidate, bool *is_right)
{
    const struct lk_buffer *result = result_of(tuner, probe);
    const size_t bytes = lk_buffer_bytes(result);
    const struct lk_candidate *first = &tuner->choice.candidates[0];
    float *found = malloc(bytes);
    if (!found)
        return lk_fail_memory("a candidate's results", bytes);
    const enum lk_status status = lk_buffer_read(result, 0, bytes, found);
    if (status != LK_OK) {
        free(found);
        return status;
    }
    if (!tuner->expected) {
        tuner->expected = found;
        tuner->expected_bytes = bytes;
        *is_right = true;
        return LK_OK;
    }
    const double error = error_of(found, tuner->expected, bytes / sizeof(float));
    const double most = lk_candidate_is_same(candidate->name, first->name) ? 0
                        : candidate->math == LK_MATH_FAST                  ? REDUCED_ERROR
                                                                           : FULL_ERROR;
    *is_right = bytes == tuner->expected_bytes && error <= most;
    free(found);
    return LK_OK;
}

static enum lk_status run(const struct tuner *tuner, struct lk_probe *probe, int turns,
                          double *seconds)
{
    const double start = lk_seconds();
    for (int i = 0; i < turns; i++)
        LK_TRY(enqueue(tuner, probe));
    LK_TRY(lk_device_finish(tuner->config->device));
    *seconds = (lk_seconds() - start) / turns;
    return LK_OK;
}

/* The least of some rounds: what else the machine does only ever adds. */
static enum lk_status time_probe(const struct tuner *tuner, struct lk_probe *probe, double *ms)
{
    double seconds = 0, least;
    LK_TRY(run(tuner, probe, 1, &least));
    const int turns = least > 0 && least < ROUND_SECONDS ? (int)(ROUND_SECONDS / least) + 1 : 1;
    for (int i = 0; i < ROUNDS; i++) {
        LK_TRY(run(tuner, probe, turns < 1000 ? turns : 1000, &seconds));
        least = seconds < least ? seconds : least;
    }
    *ms = 1e3 * least;
    return LK_OK;
}

static enum lk_status measure(struct tuner *tuner, const struct lk_candidate *candidate,
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
    LK_TRY_OUT(lk_probe_open_like(&probe, tuner->op, &like, tuner->samples));
    LK_TRY_OUT(lk_device_build(tuner->config->device));
    LK_TRY_OUT(lk_probe_allocate(&probe, 1, tuner->choice.is_backward));
    LK_TRY_OUT(lk_probe_fill(&probe));
    LK_TRY_OUT(enqueue(tuner, &probe));
    LK_TRY_OUT(lk_device_finish(tuner->config->device));
    LK_TRY_OUT(check(tuner, &probe, candidate, &is_right));
    report->outcome = is_right ? LK_TUNE_GOOD : LK_TUNE_WRONG;
    if (is_right)
        LK_TRY_OUT(time_probe(tuner, &probe, &report->ms));
out:
    lk_probe_close(&probe);
    lk_choices_destroy(like.choices);
    return status;
}

/* --- one choice ------------------------------------------------------------------------- */

/* Drops what is not to be measured. */
static void prune(struct tuner *tuner)
{
    struct lk_choice *choice = &tuner->choice;
    const enum lk_math math = lk_choices_math(tuner->config->choices);
    const struct lk_candidate *best = NULL;
    for (int i = 0; i < choice->count; i++)
        if (lk_candidate_is_possible(&choice->candidates[i], math) &&
            (!best || choice->candidates[i].cost < best->cost))
            best = &choice->candidates[i];
    const struct lk_candidate rule = best ? *best : (struct lk_candidate){{0}, 0, 0};
    int kept = 0;
    for (int i = 0; i < choice->count; i++) {
        const struct lk_candidate c = choice->candidates[i];
        const bool is_wanted =
            !tuner->config->keeps_bits || lk_candidate_is_same(c.name, rule.name);
        if (lk_candidate_is_possible(&c, math) && is_wanted && c.cost <= HOPELESS * rule.cost)
            choice->candidates[kept++] = c;
    }
    choice->count = kept;
}

static bool is_time_up(const struct tuner *tuner)
{
    return tuner->stopped || (tuner->end > 0 && lk_seconds() > tuner->end);
}

static enum lk_status keep(struct tuner *tuner, int fastest)
{
    const struct lk_choice *choice = &tuner->choice;
    return fastest < 0 ? LK_OK
                       : lk_choices_set(tuner->config->choices, choice->key,
                                        choice->candidates[fastest].name);
}

static enum lk_status tune_choice(struct tuner *tuner)
{
    struct lk_choice *choice = &tuner->choice;
    int fastest = -1, i = 0;
    double least = 0;
    for (; i < choice->count && !is_time_up(tuner); i++) {
        struct lk_tune_report report = {.key = choice->key,
                                        .name = choice->candidates[i].name,
                                        .samples = tuner->samples,
                                        .outcome = LK_TUNE_FAILED};
        const enum lk_status status = measure(tuner, &choice->candidates[i], &report);
        if (status == LK_E_DEVICE || status == LK_E_MEMORY)
            return status;
        if (status != LK_OK) {
            report.outcome = LK_TUNE_FAILED;
            lk_error_clear();
        }
        if (report.outcome == LK_TUNE_GOOD && (fastest < 0 || report.ms < CLEARLY * least)) {
            fastest = i;
            least = report.ms;
        }
        if (i + 1 == choice->count && fastest >= 0)
            report.fastest = choice->candidates[fastest].name;
        if (tuner->config->handler && !tuner->config->handler(tuner->config->context, &report))
            tuner->stopped = true;
    }
    return i == choice->count ? keep(tuner, fastest) : LK_OK; /* some were not heard */
}

/* --- a graph ---------------------------------------------------------------------------- */

static enum lk_status tune_step(struct tuner *tuner, const struct lk_step *step)
{
    const struct lk_tune_config *c = tuner->config;
    char text[LK_CHOICE_TEXT_BYTES];
    const struct lk_tiling run = lk_tiling_make(lk_device_info(c->device), c->batch, c->shards);
    const int lanes = run.lanes;
    const double room = UNIT_FLOPS * lk_device_info(c->device)->compute_units;
    const int64_t wanted = (int64_t)(room / (step->shapes.flops + 1)) / lanes * lanes;
    tuner->samples = lk_least(wanted < lanes ? lanes : wanted, c->batch);
    tuner->op = step->op;
    tuner->like = (struct lk_op_setup){.device = c->device,
                                       .node = step->node->name,
                                       .options = step->options,
                                       .shapes = step->shapes,
                                       .tiling = lk_tiling_resize(&run, tuner->samples, 1),
                                       .real = LK_F32,
                                       .training = c->training,
                                       .wants_dw = step->wants_dw};
    memcpy(tuner->like.wants_dx, step->wants_dx, sizeof tuner->like.wants_dx);
    for (int i = 0; step->op->choice(&tuner->like, i, &tuner->choice); i++) {
        if (is_time_up(tuner) || lk_choices_find(c->choices, tuner->choice.key, text))
            continue;
        prune(tuner);
        const enum lk_status status = tuner->choice.count > 1 ? tune_choice(tuner) : LK_OK;
        free(tuner->expected);
        tuner->expected = NULL;
        LK_TRY(status);
    }
    return LK_OK;
}

enum lk_status lk_tune(const struct lk_tune_config *config)
{
    struct tuner tuner = {.config = config,
                          .end = config->seconds > 0 ? lk_seconds() + config->seconds : 0};
    struct lk_schedule schedule = {0};
    enum lk_status status;
    LK_TRY_OUT(lk_schedule_make(config->output, config->training, &schedule));
    for (int i = 0; i < schedule.step_count; i++)
        if (schedule.steps[i].op->choice)
            LK_TRY_OUT(tune_step(&tuner, &schedule.steps[i]));
out:
    lk_schedule_clear(&schedule);
    return status;
}

/* Measures operations one by one, each with buffers of its own, so that a graph may be measured
 * that has no room on the device as a whole. */
#include "graph/tune/times.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/median.h"
#include "base/progress.h"
#include "device/device.h"
#include "graph/nodes/schedule.h"
#include "graph/planes.h"
#include "graph/tune/rounds.h"
#include "ops/probe/probe.h"
#include "tensor/tensor.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_TURNS = 512 };
static const double ROUND_SECONDS = 0.004, /* about, unless a turn takes longer */
    MOST_SECONDS = 0.3;                    /* all rounds together, unless one takes longer */

/* Whole numbers but lengths stand for something, so that others would measure something else.
 * What turns images has two tilings, of which a probe knows one. */
static bool is_measured(const struct lk_scheduled_op *scheduled)
{
    for (int i = 0; i < scheduled->shapes.inputs; i++)
        if (scheduled->shapes.x_dtype[i] != LK_F32 &&
            !lk_probe_is_length(scheduled->op, &scheduled->shapes, i))
            return false;
    return scheduled->shapes.inputs > 0 && !scheduled->shapes.is_loss &&
           scheduled->op == scheduled->node->op;
}

/* In plane tiles a data gradient packs its weights each time. */
static bool shares_packing(const struct lk_times_config *c,
                           const struct lk_scheduled_op *scheduled)
{
    return c->packed_for > 1 && scheduled->shapes.params > 0 && !scheduled->in_planes;
}

/* All that an operation's time depends on; false: it is too long. */
static bool print_key(const struct lk_times_config *c, const struct lk_scheduled_op *scheduled,
                      char key[LK_CHOICE_KEY_BYTES])
{
    char options[512], shape[96];
    int used = 0, passes = scheduled->wants_dw;
    if (!lk_options_print(scheduled->op->options, scheduled->options, true, options,
                          sizeof options))
        return false;
    for (int i = 0; i < scheduled->shapes.inputs; i++)
        passes += scheduled->wants_dx[i] << (i + 1);
    used = snprintf(key, LK_CHOICE_KEY_BYTES, "time %s %d*%d|%s %s|%lld/%d%s%s|%x",
                    lk_device_info(c->device)->name, lk_device_info(c->device)->compute_units,
                    1 + c->beside_count, scheduled->op->name, options, (long long)c->batch,
                    c->shards, c->stores_half ? " half" : "",
                    scheduled->in_planes ? " planes" : "", (unsigned)passes);
    if (shares_packing(c, scheduled) && used < LK_CHOICE_KEY_BYTES)
        used += snprintf(key + used, (size_t)(LK_CHOICE_KEY_BYTES - used), " packed/%d",
                         c->packed_for);
    for (int i = 0; i < scheduled->shapes.inputs && used < LK_CHOICE_KEY_BYTES; i++) {
        lk_shape_print(&scheduled->shapes.x[i], shape, sizeof shape);
        used += snprintf(key + used, (size_t)(LK_CHOICE_KEY_BYTES - used), " %s", shape);
    }
    return used < LK_CHOICE_KEY_BYTES;
}

/* One operation on all devices, the first of which is measured. */
struct timed {
    struct lk_probe probes[LK_MOST_PLACES];
    int count;
    bool has_backward;
    struct lk_rounds rounds;
};

static enum lk_status enqueue(struct lk_probe *probe, bool backward)
{
    LK_TRY(lk_probe_forward(probe, 0));
    return backward ? lk_probe_backward(probe, 0) : LK_OK;
}

static enum lk_status enqueue_first(void *context)
{
    struct timed *timed = context;
    return enqueue(&timed->probes[0], timed->has_backward);
}

/* The others' work first: given to all in turn, devices of a CPU are on one core more often. */
static enum lk_status run_all(struct timed *timed, int turns, int rounds, double *seconds)
{
    double all;
    for (int d = timed->count - 1; d > 0; d--)
        for (int i = 0; i < turns * rounds; i++)
            LK_TRY(enqueue(&timed->probes[d], timed->has_backward));
    return lk_rounds_run(&timed->rounds, rounds, turns, seconds, &all);
}

/* seconds[rounds]: a turn of each round. *wall: until all devices are done. */
static enum lk_status run(struct timed *timed, int turns, int rounds, double *seconds,
                          double *wall)
{
    const double start = lk_seconds();
    enum lk_status status = run_all(timed, turns, rounds, seconds);
    for (int d = 1; d < timed->count; d++) { /* in any case, since their buffers are freed */
        const enum lk_status ended = lk_device_finish(timed->probes[d].setup.device);
        status = status == LK_OK ? ended : status;
    }
    *wall = lk_seconds() - start;
    return status;
}

/* How many turns a round should have. *once: a turn of the last round that was tried. */
static enum lk_status choose_turns(struct timed *timed, int *turns, double *once, double *wall)
{
    LK_TRY(run(timed, 1, 1, once, wall)); /* some drivers compile here */
    for (*turns = 1;; *turns *= 2) {
        LK_TRY(run(timed, *turns, 1, once, wall));
        if (*wall > ROUND_SECONDS / 2 || *turns == MOST_TURNS)
            return LK_OK;
    }
}

/* The middle of some rounds: the shortest one is faster than the operation is in most steps, by
 * 4 % for a convolution of the ConvNet. */
static enum lk_status time_probes(struct timed *timed, double *ms)
{
    double once, wall, seconds[LK_MOST_ROUNDS];
    int turns;
    LK_TRY(choose_turns(timed, &turns, &once, &wall));
    int rounds = (int)fmin(fmax(MOST_SECONDS / wall, 1), LK_MOST_ROUNDS);
    rounds -= rounds % 2 == 0;
    LK_TRY(run(timed, turns, rounds, seconds, &wall));
    *ms = 1e3 * (rounds > 1 ? lk_median(seconds, rounds) : fmin(once, seconds[0]));
    return LK_OK;
}

static enum lk_status open(const struct lk_times_config *c, const struct lk_schedule *schedule,
                           int i, struct lk_device *device, struct lk_probe *probe)
{
    const struct lk_scheduled_op *scheduled = &schedule->ops[i];
    struct lk_op_setup like;
    lk_schedule_describe(schedule, i, &like);
    like.device = device;
    like.tiling = scheduled->in_planes
                      ? lk_tiling_make_planes(lk_device_info(device), c->batch, c->shards)
                      : lk_tiling_make(lk_device_info(device), c->batch, c->shards);
    like.real = LK_F32;
    like.stores_half = c->stores_half;
    like.training = true;
    like.weights_stay = shares_packing(c, scheduled);
    like.choices = c->choices;
    LK_TRY(lk_probe_open_like(probe, scheduled->op, &like,
                              like.tiling.shards * like.tiling.shard_samples));
    LK_TRY(lk_device_build(device));
    LK_TRY(lk_probe_allocate(probe, 1, scheduled->has_backward));
    return lk_probe_fill(probe);
}

/* What packing takes, which is in the time so far, counts once for several micro-batches. */
static enum lk_status share_packing(const struct lk_times_config *c, struct timed *timed,
                                    double *ms)
{
    double rest = 0;
    for (int d = 0; d < timed->count; d++)
        timed->probes[d].runs[0].weights_are_new = false;
    LK_TRY(time_probes(timed, &rest));
    if (rest < *ms)
        *ms = rest + (*ms - rest) / c->packed_for;
    return LK_OK;
}

static enum lk_status measure_op(const struct lk_times_config *c,
                                 const struct lk_schedule *schedule, int i, double *ms)
{
    struct timed timed = {.has_backward = schedule->ops[i].has_backward};
    enum lk_status status = LK_OK;
    for (int d = 0; d <= c->beside_count && status == LK_OK; d++, timed.count++)
        status = open(c, schedule, i, d > 0 ? c->beside[d - 1] : c->device, &timed.probes[d]);
    if (status == LK_OK)
        status = lk_rounds_create(c->device, enqueue_first, &timed, &timed.rounds);
    if (status == LK_OK)
        status = time_probes(&timed, ms);
    if (status == LK_OK && shares_packing(c, &schedule->ops[i]) &&
        timed.probes[0].setup.packed_bytes > 0)
        status = share_packing(c, &timed, ms);
    lk_rounds_clear(&timed.rounds);
    while (timed.count > 0)
        lk_probe_close(&timed.probes[--timed.count]);
    return status;
}

static bool find(struct lk_choices *times, const char *key, double *ms)
{
    char text[LK_CHOICE_TEXT_BYTES];
    if (!lk_choices_find(times, key, text))
        return false;
    const double found = strtod(text, NULL);
    *ms = found > 0 && found < 1e9 ? found : 0;
    return true;
}

static enum lk_status take_older(const struct lk_times_config *c, const char *key, double *ms)
{
    return find(c->older, key, ms)
               ? LK_OK
               : lk_fail(LK_E_UNSUPPORTED, "no time is left to measure operations");
}

/* What cannot be measured, for want of memory or of a form that stands alone, stays 0. */
static enum lk_status measure_once(const struct lk_times_config *c,
                                   const struct lk_schedule *schedule, int i, double end,
                                   double *ms)
{
    char key[LK_CHOICE_KEY_BYTES], text[LK_CHOICE_TEXT_BYTES];
    *ms = 0;
    if (!is_measured(&schedule->ops[i]) || !print_key(c, &schedule->ops[i], key))
        return LK_OK;
    if (find(c->known, key, ms))
        return LK_OK;
    if (lk_seconds() > end)
        return take_older(c, key, ms);
    const enum lk_status status = measure_op(c, schedule, i, ms);
    if (status == LK_E_DEVICE || status == LK_E_MEMORY)
        return status;
    if (status != LK_OK) {
        lk_error_clear();
        *ms = 0;
        return LK_OK;
    }
    snprintf(text, sizeof text, "%.4g", *ms);
    return lk_choices_set(c->known, key, text);
}

static enum lk_status measure_all(const struct lk_times_config *c,
                                  const struct lk_schedule *schedule, double *ms)
{
    const double end = lk_seconds() + c->seconds;
    enum lk_status status = LK_OK;
    lk_progress_begin(LK_TASK_MEASURE, schedule->op_count);
    for (int i = 0; i < schedule->op_count && status == LK_OK; i++) {
        status = measure_once(c, schedule, i, end, &ms[i]);
        lk_progress_add(LK_TASK_MEASURE, 1);
    }
    lk_progress_end(LK_TASK_MEASURE);
    return status;
}

/* As lk_replica_trains_planes() has it. */
static bool takes_planes(const struct lk_times_config *c, const struct lk_schedule *schedule)
{
    return c->few_samples && !c->stores_half && lk_devices_take_planes(&c->device, 1) &&
           lk_devices_take_planes(c->beside, c->beside_count) &&
           lk_schedule_trains_planes(schedule);
}

static enum lk_status turn_planes(const struct lk_times_config *c, struct lk_schedule *schedule)
{
    const struct lk_tiling planes =
        lk_tiling_make_planes(lk_device_info(c->device), c->batch, c->shards);
    lk_schedule_turn_planes(schedule);
    for (int i = 0; i < schedule->op_count; i++)
        if (schedule->ops[i].in_planes)
            LK_TRY(lk_scheduled_op_map_planes(&schedule->ops[i], &planes));
    return LK_OK;
}

enum lk_status lk_times_measure(const struct lk_times_config *config, struct lk_op_times *times)
{
    struct lk_schedule schedule = {0};
    double *ms = NULL;
    enum lk_status status;
    LK_TRY_OUT(
        lk_schedule_make((const struct lk_node *[]){config->loss, NULL}, true, &schedule));
    if (takes_planes(config, &schedule))
        LK_TRY_OUT(turn_planes(config, &schedule));
    ms = calloc((size_t)schedule.op_count + 1, sizeof *ms);
    LK_TRY_OUT(ms ? measure_all(config, &schedule, ms)
                  : lk_fail_memory("times of operations", sizeof *ms));
    *times = (struct lk_op_times){ms, schedule.op_count};
    ms = NULL;
out:
    free(ms);
    lk_schedule_clear(&schedule);
    return status;
}

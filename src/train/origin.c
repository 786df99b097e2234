/* Finds where numbers that are not finite come from, once a step has had some. */
#include "train/follow.h"

#include "base/fail.h"
#include "graph/nodes/node.h"
#include "graph/watch.h"
#include "train/saving.h"
#include <stdio.h>

static enum lk_status put_state(void *context, struct lk_worker *worker)
{
    const struct lk_saved *saved = context;
    return lk_snapshot_put(saved->snapshot, lk_stepper_replica(worker->stepper),
                           lk_optimizer_info(lk_stepper_optimizer(worker->stepper)));
}

static enum lk_status repeat(struct lk_trainer *trainer, int64_t number)
{
    struct lk_team_step step;
    struct lk_team_result result;
    lk_trainer_describe_step(trainer, number, &step);
    LK_TRY(lk_team_begin(trainer->team, &step));
    return lk_team_end(trainer->team, false, &result);
}

struct watching {
    struct lk_watch found[LK_MOST_TEAM]; /* each by its thread */
    bool is_on;
};

static enum lk_status watch(void *context, struct lk_worker *worker)
{
    struct watching *watching = context;
    lk_stepper_watch(worker->stepper,
                     watching->is_on ? &watching->found[worker->position] : NULL);
    return LK_OK;
}

static enum lk_status repeat_watched(struct lk_trainer *trainer, int64_t number,
                                     struct lk_watch *first)
{
    struct watching watching = {.is_on = true};
    LK_TRY(lk_team_call_each(trainer->team, watch, &watching, false));
    const enum lk_status status = repeat(trainer, number);
    watching.is_on = false;
    LK_TRY(lk_team_call_each(trainer->team, watch, &watching, false));
    for (int i = 0; i < lk_team_devices(trainer->team); i++)
        if (lk_watch_is_before(&watching.found[i], first))
            *first = watching.found[i];
    return status;
}

/* Steps are the same again, to the bit, but without lockstep. Other ranks do not know of it. A
 * gradient of the step before may have spoilt the weights. */
enum lk_status lk_trainer_find_origin(void *context, int64_t step, char *text, size_t bytes)
{
    struct lk_trainer *trainer = context;
    struct lk_watch first = {0};
    int64_t number = trainer->state ? trainer->state->about.step : step;
    text[0] = '\0';
    if (number >= step || trainer->settings->mode == LK_TRAIN_ASYNC ||
        lk_world_size(trainer->world) > 1)
        return LK_OK;
    LK_TRY(lk_team_call_each(trainer->team, put_state, trainer->state, false));
    while (++number < step - 1)
        LK_TRY(repeat(trainer, number));
    for (; number <= step && !first.node; number++)
        LK_TRY(repeat_watched(trainer, number, &first));
    if (first.node)
        snprintf(text, bytes, "in step %lld it began with %lld of %lld %s '%s'",
                 (long long)number - 1, (long long)first.wrong, (long long)first.all,
                 first.is_gradient ? "gradients that come from" : "values of",
                 first.node->name);
    return LK_OK;
}

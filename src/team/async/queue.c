/* What asynchronous training keeps: the queue of groups and the log of updates. */
#include "team/async/internal.h"

#include "base/fail.h"
#include <stdlib.h>
#include <string.h>

/* Room in the log: for the updates that a replica may lack when its device ends a group, and
 * one more for the entry that is being written. */
static enum lk_status create_log(struct lk_team *team, struct lk_async *async)
{
    const struct lk_exchange *exchange = lk_stepper_exchange(lk_team_lead(team)->stepper);
    const int64_t reals = lk_exchange_reals_before(exchange, lk_exchange_metrics(exchange));
    const size_t bytes = (size_t)reals * lk_dtype_bytes(team->config.real);
    const int room = async->staleness.most + 2;
    async->log = calloc((size_t)room, sizeof *async->log);
    if (!async->log)
        return lk_fail_memory("a log of updates", (size_t)room * sizeof *async->log);
    for (async->room = 0; async->room < room; async->room++) {
        async->log[async->room].gradient = malloc(bytes);
        if (!async->log[async->room].gradient)
            return lk_fail(LK_E_MEMORY,
                           "no memory for %d updates of %zu bytes that wait for devices: a "
                           "smaller --max-staleness would do with fewer",
                           room, bytes);
    }
    return LK_OK;
}

static enum lk_status init(struct lk_team *team, struct lk_async *async)
{
    const int64_t wanted = team->config.max_staleness;
    if (team->split.policy.kind == LK_SPLIT_WEIGHTS)
        return lk_fail(LK_E_ARGUMENT,
                       "--split %s: in mode async devices take work as they come free, there "
                       "are no weights",
                       team->config.split);
    LK_TRY(lk_staleness_init(&async->staleness, wanted < 0 ? 2 * team->count : wanted,
                             team->count, 0));
    async->groups = 1;
    while (async->groups < team->count)
        async->groups *= 2;
    return LK_OK;
}

enum lk_status lk_async_create(struct lk_team *team, struct lk_async **async)
{
    struct lk_async *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("asynchronous training", sizeof *made);
    const enum lk_status status = init(team, made);
    if (status != LK_OK) {
        lk_async_destroy(made);
        return status;
    }
    *async = made;
    return LK_OK;
}

enum lk_status lk_async_build(struct lk_team *team)
{
    return create_log(team, team->async);
}

void lk_async_destroy(struct lk_async *async)
{
    if (!async)
        return;
    for (int i = 0; i < async->room; i++)
        free(async->log[i].gradient);
    free(async->log);
    free(async);
}

enum lk_status lk_async_set_updates(struct lk_team *team, int64_t updates)
{
    struct lk_async *async = team->async;
    LK_TRY(lk_staleness_init(&async->staleness, async->staleness.most, team->count, updates));
    for (int i = 0; i < team->count; i++)
        async->members[i].applied = updates;
    return LK_OK;
}

int lk_async_groups(const struct lk_async *async)
{
    return async->groups;
}

const struct lk_staleness *lk_async_staleness(const struct lk_async *async)
{
    return &async->staleness;
}

struct lk_async_update *lk_async_update(struct lk_async *async, int64_t number)
{
    return &async->log[(number - 1) % async->room];
}

/* --- the queue ---------------------------------------------------------------------------- */

struct lk_async_step *lk_async_step(struct lk_async *async, int64_t number)
{
    return &async->steps[number % LK_MOST_BEGUN];
}

void lk_async_queue_step(struct lk_team *team, const struct lk_team_step *step)
{
    struct lk_async *async = team->async;
    struct lk_async_step *begun = lk_async_step(async, step->step);
    const int shards = team->config.shards / async->groups;
    const int64_t most = shards * lk_divide_up(team->config.batch, team->config.shards);
    *begun = (struct lk_async_step){.step = *step, .tries = 1};
    for (int i = 0; i < async->groups && i * most < step->samples; i++) {
        async->queue[async->queued++] =
            (struct lk_async_group){.share = {step->step, step->samples, {i * shards, shards}},
                                    .samples = lk_least(most, step->samples - i * most),
                                    .lr = step->lr,
                                    .tries = 1};
        begun->groups++;
    }
}

void lk_async_return(struct lk_async *async, int position)
{
    struct lk_async_member *member = &async->members[position];
    memmove(async->queue + 1, async->queue, (size_t)async->queued * sizeof *async->queue);
    async->queue[0] = member->group;
    async->queue[0].tries++;
    async->queued++;
    member->has_group = false;
    lk_staleness_abandon(&async->staleness, position);
}

void lk_async_stop(struct lk_team *team)
{
    team->async->is_stopped = true;
    pthread_cond_broadcast(&team->changed);
}

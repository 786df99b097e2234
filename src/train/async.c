/* Asynchronous training as the trainer's thread sees it: steps into the queue, devices watched.
 */
#include "train/async_parts.h"

#include "base/fail.h"
#include "base/log.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Seconds between looks at the devices where none is due. */
static const double look_seconds = 1;

/* --- creating ----------------------------------------------------------------------------- */

/* The log has room for what a replica may lack when its device ends a group, one more for the
 * entry that is being written. */
static enum lk_status create_log(struct lk_team *team, struct lk_async *async)
{
    const struct lk_replica *replica = lk_stepper_replica(lk_team_lead(team)->stepper);
    const size_t bytes =
        (size_t)lk_replica_trainable_count(replica) * lk_dtype_bytes(team->config.real);
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

static struct lk_async_step *find_step(struct lk_async *async, int64_t number)
{
    return &async->steps[number % LK_MOST_BEGUN];
}

/* A short batch has groups without samples, which are left out. */
static void queue_step(struct lk_team *team, const struct lk_team_step *step)
{
    struct lk_async *async = team->async;
    struct lk_async_step *begun = find_step(async, step->step);
    const int shards = team->config.shards / async->groups;
    const int64_t most = shards * lk_divide_up(team->config.batch, team->config.shards);
    *begun = (struct lk_async_step){.step = *step, .tries = 1};
    for (int i = 0; i < async->groups && i * most < step->samples; i++) {
        async->queue[async->queued++] =
            (struct lk_async_group){.part = {step->step, step->samples, {i * shards, shards}},
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

/* Wakes all that have nothing to do; the threads of others look at the queue themselves. */
static void order_work(struct lk_team *team)
{
    const struct lk_order order = {.kind = LK_ORDER_ASYNC};
    for (int i = 0; i < team->count; i++)
        if (!team->workers[i]->is_lost && !team->async->members[i].works) {
            team->async->members[i].works = true;
            lk_worker_order(team->workers[i], &order);
        }
    pthread_cond_broadcast(&team->changed);
}

/* --- watching ----------------------------------------------------------------------------- */

/* When a device that works is taken for one that hangs; INFINITY where it waits for others. */
static double due_at(const struct lk_team *team, int position)
{
    const struct lk_async_member *member = &team->async->members[position];
    const bool is_new = !member->has_computed || !member->has_applied;
    return member->since > 0 ? member->since + lk_team_limit(team, is_new) : INFINITY;
}

/* Takes out devices that have failed or hang; what they computed goes back to the queue. */
static void find_lost(struct lk_team *team)
{
    const double now = lk_team_seconds(team);
    for (int i = 0; i < team->count; i++) {
        struct lk_worker *worker = team->workers[i];
        struct lk_async_member *member = &team->async->members[i];
        if (!worker->is_lost && worker->has_failed)
            lk_team_lose(team, worker, worker->text);
        else if (!worker->is_lost && now > due_at(team, i))
            lk_team_lose(team, worker, "it does not answer");
        if (!worker->is_lost || !member->works)
            continue;
        member->works = false;
        if (member->has_group) {
            team->counts.repeated_steps++;
            lk_async_return(team->async, i);
        }
        pthread_cond_broadcast(&team->changed);
    }
}

static bool is_idle(const struct lk_team *team)
{
    for (int i = 0; i < team->count; i++)
        if (!team->workers[i]->is_lost && team->async->members[i].works)
            return false;
    return true;
}

/* Compares all replicas, which have nothing to do, where they are to be or one is known to be
 * wrong, and lets them go on. */
static enum lk_status check_replicas(struct lk_team *team)
{
    struct lk_async *async = team->async;
    const int64_t updates = async->staleness.updates;
    bool is_right;
    if (async->is_unchecked && (team->config.check_every > 0 || async->is_pausing)) {
        team->has_sums = true;
        memcpy(team->sums, lk_async_update(async, updates)->sums, sizeof team->sums);
        team->committed = async->oldest + async->begun - 1;
        pthread_mutex_unlock(&team->mutex);
        const enum lk_status status = lk_team_check_replicas(team, &is_right);
        pthread_mutex_lock(&team->mutex);
        LK_TRY(status);
    }
    async->is_unchecked = async->is_pausing = false;
    for (int i = 0; i < team->count; i++) {
        async->members[i].applied = updates;
        async->members[i].is_wrong = false;
    }
    return LK_OK;
}

/* Seconds at which the first device is due. */
static double next_look(struct lk_team *team)
{
    double at = lk_team_seconds(team) + look_seconds;
    for (int i = 0; i < team->count; i++)
        if (!team->workers[i]->is_lost && due_at(team, i) < at)
            at = due_at(team, i);
    return at;
}

void lk_async_stop(struct lk_team *team)
{
    team->async->is_stopped = true;
    pthread_cond_broadcast(&team->changed);
}

/* fails: as a device for a reason that is not its own, such as an unreadable sample */
static enum lk_status find_errors(const struct lk_team *team)
{
    for (int i = 0; i < team->count; i++) {
        const struct lk_worker *worker = team->workers[i];
        if (!worker->is_lost && worker->has_error)
            return lk_fail(worker->status, "%s", worker->text);
    }
    return LK_OK;
}

/* Waits until `is_so`, and sees to it that what is in the queue gets done. */
static enum lk_status watch(struct lk_team *team, bool (*is_so)(const struct lk_team *))
{
    struct lk_async *async = team->async;
    for (;;) {
        find_lost(team);
        LK_TRY(find_errors(team));
        if (is_so(team))
            return LK_OK;
        if (lk_team_left(team) == 0)
            return lk_team_none_left(team);
        if (is_idle(team) && async->is_pausing)
            LK_TRY(check_replicas(team));
        if (async->queued > 0 && !async->is_pausing)
            order_work(team);
        (void)!lk_team_wait(team, next_look(team));
    }
}

/* The same; where it fails there is nothing to be waited for any more. */
static enum lk_status await(struct lk_team *team, bool (*is_so)(const struct lk_team *))
{
    const enum lk_status status = watch(team, is_so);
    if (status != LK_OK)
        lk_async_stop(team);
    return status;
}

/* --- steps -------------------------------------------------------------------------------- */

enum lk_status lk_async_begin(struct lk_team *team, const struct lk_team_step *step)
{
    struct lk_async *async = team->async;
    if (async->begun == LK_MOST_BEGUN)
        return lk_fail(LK_E_ARGUMENT, "step %lld is begun before step %lld is ended",
                       (long long)step->step, (long long)async->oldest);
    if (async->begun++ == 0)
        async->oldest = step->step;
    queue_step(team, step);
    if (!async->is_pausing)
        order_work(team);
    return LK_OK;
}

static bool is_oldest_done(const struct lk_team *team)
{
    const struct lk_async_step *step = find_step(team->async, team->async->oldest);
    return step->applied == step->groups;
}

/* A step more is wanted where the devices would soon run out of groups. */
static bool wants_step(const struct lk_team *team)
{
    const struct lk_async *async = team->async;
    return async->begun < LK_MOST_BEGUN && async->queued < team->count;
}

static bool wants_something(const struct lk_team *team)
{
    return is_oldest_done(team) || wants_step(team);
}

enum lk_status lk_async_wants(struct lk_team *team, bool *wants)
{
    if (team->async->begun == 0) {
        *wants = true;
        return LK_OK;
    }
    LK_TRY(await(team, wants_something));
    *wants = wants_step(team);
    return LK_OK;
}

static void fill_result(const struct lk_team *team, struct lk_team_result *result)
{
    const struct lk_async_step *step = find_step(team->async, team->async->oldest);
    const double samples = (double)step->step.samples;
    *result = (struct lk_team_result){.loss = step->loss / samples,
                                      .accuracy = step->correct / samples,
                                      .tries = step->tries,
                                      .device_count = team->count};
    for (int i = 0; i < team->count; i++) {
        struct lk_device_times *times = &result->devices[i];
        const double ms = step->devices[i].transfer_ms + step->devices[i].compute_ms;
        *times = step->devices[i];
        times->is_left = !team->workers[i]->is_lost || times->samples > 0;
        times->share = (double)times->samples / samples;
        times->samples_per_s = ms > 0 ? 1e3 * (double)times->samples / ms : 0;
    }
}

enum lk_status lk_async_end(struct lk_team *team, struct lk_team_result *result)
{
    struct lk_async *async = team->async;
    if (async->begun == 0)
        return lk_fail(LK_E_ARGUMENT, "no step was begun");
    LK_TRY(await(team, is_oldest_done));
    if (async->begun == 1) {
        LK_TRY(await(team, is_idle));
        LK_TRY(check_replicas(team));
        if (lk_team_left(team) == 0)
            return lk_team_none_left(team);
    }
    fill_result(team, result);
    async->oldest++;
    async->begun--;
    return LK_OK;
}

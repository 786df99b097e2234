/* Creates a team: opens its devices and fits a stepper to each; and destroys it. */
#include "team/team.h"

#include "base/fail.h"
#include "base/log.h"
#include "base/number.h"
#include "base/parallel.h"
#include "device/expect.h"
#include "team/async/async.h"
#include "team/lockstep/ranks.h"
#include "tensor/elementwise.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* --- devices ------------------------------------------------------------------------------ */

static enum lk_status open_device(void *context, struct lk_worker *worker)
{
    const struct lk_team_config *c = context;
    for (int i = 0; i < worker->places; i++) {
        struct lk_device **device = &worker->group[i];
        LK_TRY(lk_device_open(c->devices, worker->position * worker->places + i, device));
        if (c->memory_limit > 0)
            lk_device_limit_memory(*device, c->memory_limit);
        lk_device_set_log_folder(*device, c->log_folder);
    }
    worker->device = worker->group[0];
    return LK_OK;
}

int lk_team_most_shards(int shards, int devices)
{
    const int share = (int)lk_divide_up(shards, devices);
    int most = 1;
    while (most < shards && most < 2 * share)
        most *= 2;
    return most;
}

/* Whether the only device of the only rank trains: it is alone from the first step on, unless
 * it has to compute a batch in pieces, or is a group, which one that is alone cannot. */
static bool is_single(const struct lk_team *team)
{
    return team->job.all == 1 && !team->config.is_async && team->config.pieces < 2 &&
           team->config.places < 2;
}

/* Whether a group has taken fewer shards at a time than branches would do well with, but as
 * many as stages in a row have. */
static bool is_usual(const struct lk_worker *worker, int most)
{
    const struct lk_team_config *c = &worker->team->config;
    const int places = worker->places;
    if (places < 2)
        return false;
    const int usual =
        lk_team_most_of_group(c->shards, places, worker->team->job.all, places - 1);
    return most > usual || (most == usual && worker->in_flight == worker->usual_in_flight);
}

/* Makes a stepper for as many shards at a time as fit into the device's memory: half as many
 * at each try; in a group first no micro-batch to spare, and at last fewer on their way. With
 * `build` its kernels and memory are made too, which may also fail for lack of memory. */
static enum lk_status fit_stepper(struct lk_worker *worker, bool builds)
{
    struct lk_team *team = worker->team;
    const int wanted = is_single(team) ? 0 : worker->most_shards;
    int most = wanted;
    char why[512] = ""; /* the first time, for all shards that it could have at a time */
    for (;;) {
        enum lk_status status =
            worker->stepper ? LK_OK : lk_worker_create_stepper(worker, most);
        if (status == LK_OK && builds)
            status = lk_stepper_build(worker->stepper);
        if (status == LK_OK)
            break;
        lk_stepper_destroy(worker->stepper);
        worker->stepper = NULL;
        if (status != LK_E_DEVICE_MEMORY || !lk_worker_take_less(worker, &most))
            return status;
        if (!*why)
            snprintf(why, sizeof why, "%s", lk_error_text());
        lk_error_clear();
    }
    if (*why && is_usual(worker, most))
        lk_log(LK_LOG_DEBUG, "device %d computes %d of %d shards at a time: %s",
               worker->position, most, team->config.shards, why);
    else if (*why && most == wanted)
        lk_log(LK_LOG_WARNING, "device %d computes %d micro-batch%s at a time: %s",
               worker->position, worker->in_flight, worker->in_flight > 1 ? "es" : "", why);
    else if (*why)
        lk_log(LK_LOG_WARNING, "device %d computes %d of %d shards at a time: %s",
               worker->position, most, team->config.shards, why);
    worker->most_shards = most;
    return LK_OK;
}

/* Kernels are compiled and checked before the planned memory is used. */
static void expect_memory(const struct lk_worker *worker)
{
    for (int i = 0; i < lk_stepper_places(worker->stepper); i++)
        lk_device_expect(worker->group[i],
                         lk_replica_bytes(lk_stepper_replica_at(worker->stepper, i)).total);
}

/* Devices that have no room for a shard, and what the first of them lacks. */
struct without_room {
    bool is_one[LK_MOST_TEAM];
    int count;
    char why[512];
};

static enum lk_status plan(void *context, struct lk_worker *worker)
{
    struct without_room *without = context;
    const enum lk_status status = fit_stepper(worker, false);
    if (status == LK_OK)
        expect_memory(worker);
    if (status != LK_E_DEVICE_MEMORY)
        return status;
    without->is_one[worker->position] = true;
    if (without->count++ == 0)
        snprintf(without->why, sizeof without->why, "%s", lk_error_text());
    lk_error_clear();
    return LK_OK;
}

static enum lk_status leave_out(void *context, struct lk_worker *worker)
{
    const struct without_room *without = context;
    return without->is_one[worker->position] ? lk_fail(LK_E_DEVICE_MEMORY, "%s", without->why)
                                             : LK_OK;
}

/* Plans on all devices, one after the other. A batch that none has room for is refused, which
 * is no failure of a device; if some have, they train without the others. */
static enum lk_status plan_all(struct lk_team *team)
{
    struct without_room without = {0};
    LK_TRY(lk_team_call_each(team, plan, &without, false));
    if (without.count == 0)
        return LK_OK;
    if (without.count < lk_team_left(team))
        return lk_team_call_each(team, leave_out, &without, false);
    return lk_fail(LK_E_DEVICE_MEMORY, "%s", without.why);
}

static enum lk_status build(void *context, struct lk_worker *worker)
{
    (void)context;
    LK_TRY(fit_stepper(worker, true));
    for (int i = 0; i < worker->places; i++)
        LK_TRY(lk_device_finish(worker->group[i]));
    return LK_OK;
}

static enum lk_status create_worker(struct lk_team *team, int position)
{
    struct lk_worker *worker = calloc(1, sizeof *worker);
    if (!worker)
        return lk_fail_memory("a worker", sizeof *worker);
    team->workers[team->count++] = worker;
    worker->team = team;
    worker->position = position;
    worker->places = team->config.places > 1 ? team->config.places : 1;
    worker->usual_in_flight = lk_team_in_flight(team->config.in_flight, worker->places);
    worker->in_flight = worker->usual_in_flight;
    worker->state = LK_WORKER_NEW;
    LK_TRY(lk_worker_read_faults(worker));
    return lk_worker_start(worker);
}

static enum lk_status too_many(const struct lk_team *team)
{
    const struct lk_team_config *c = &team->config;
    char ranks[32] = "";
    int enough = 1;
    while (enough < team->job.all)
        enough *= 2;
    if (team->job.ranks)
        snprintf(ranks, sizeof ranks, " of %d ranks", lk_world_size(c->world));
    return lk_fail(LK_E_ARGUMENT,
                   "%d devices%s for a batch of %lld in %d shard%s: at most one device a "
                   "shard; a larger batch or --shards %d would do",
                   team->job.all, ranks, (long long)c->batch, c->shards,
                   c->shards == 1 ? "" : "s", enough);
}

int lk_team_in_flight(int wanted, int places)
{
    if (wanted > 0 || places == 1)
        return wanted > 0 ? wanted : 1;
    return (int)lk_least(places + 1, LK_MOST_IN_FLIGHT);
}

/* Devices in a row wait for the first and the last micro-batch, so many small ones keep them
 * busier than few large ones, which are computed faster. */
int lk_team_most_of_group(int shards, int places, int groups, double wait)
{
    const double wanted = fmax(1, 4 * places * wait / (places - 1)); /* micro-batches */
    int most = 1;
    while (2 * most * wanted * groups <= shards)
        most *= 2;
    return most;
}

/* Shards that a device computes at a time where it has room for them. */
static enum lk_status choose_most_shards(const struct lk_team *team, int *most)
{
    const struct lk_team_config *c = &team->config;
    const int64_t pieces = (int64_t)c->pieces * team->job.all;
    int64_t enough = 1;
    *most = c->places > 1
                ? lk_team_most_of_group(c->shards, c->places, team->job.all, c->places - 1)
                : lk_team_most_shards(c->shards, team->job.all);
    if (c->pieces < 2)
        return LK_OK;
    while (enough < pieces)
        enough *= 2;
    if (pieces > c->shards)
        return lk_fail(
            LK_E_ARGUMENT,
            "%d device%s that compute%s a batch of %lld in %d pieces each (accumulate), "
            "but only %d shard%s: a piece has at least one; --shards %lld would do",
            team->job.all, team->job.all == 1 ? "" : "s", team->job.all == 1 ? "s" : "",
            (long long)c->batch, c->pieces, c->shards, c->shards == 1 ? "" : "s",
            (long long)enough);
    *most = c->shards / (int)enough;
    return LK_OK;
}

/* Plans again for the only device, which has no room for the batch as a whole: in pieces. */
static enum lk_status plan_in_pieces(struct lk_team *team)
{
    const int half = team->config.shards / 2;
    struct lk_worker *worker = team->workers[0];
    char why[512];
    snprintf(why, sizeof why, "%s", lk_error_text());
    lk_error_clear();
    team->config.pieces = 2;
    worker->most_shards = half;
    const enum lk_status status = plan_all(team);
    if (status == LK_E_DEVICE_MEMORY) { /* the sums of pieces take memory, too */
        lk_error_clear();
        return lk_fail(status, "%s", why);
    }
    if (status == LK_OK && worker->most_shards == half)
        lk_log(LK_LOG_WARNING, "device %d computes %d of %d shards at a time: %s",
               worker->position, half, team->config.shards, why);
    return status;
}

/* Counts the devices of this rank and of all. */
static enum lk_status count_devices(struct lk_team *team, int *devices)
{
    const struct lk_team_config *c = &team->config;
    LK_TRY(lk_device_list_count(c->devices, devices));
    if (c->places > 1) {
        if (*devices % c->places != 0)
            return lk_fail(LK_E_ARGUMENT,
                           "%d devices for a model that is divided among %d: expected %d, or a "
                           "multiple of that",
                           *devices, c->places, c->places);
        *devices /= c->places;
    }
    team->job.all = *devices;
    if (lk_world_size(c->world) > 1) {
        LK_TRY(lk_team_ranks_create(c->world, *devices, &team->job.ranks));
        team->job.all = lk_team_ranks_devices(team->job.ranks);
        team->job.first = lk_team_ranks_first(team->job.ranks);
    }
    return team->job.all > c->shards ? too_many(team) : LK_OK;
}

static enum lk_status create(struct lk_team *team)
{
    const struct lk_team_config *c = &team->config;
    int devices = 0, most = 0;
    LK_TRY(count_devices(team, &devices));
    LK_TRY(choose_most_shards(team, &most));
    for (int i = 0; i < devices; i++)
        LK_TRY(create_worker(team, i));
    LK_TRY(lk_team_init_split(team));
    if (c->is_async)
        LK_TRY(lk_async_create(team, &team->async));
    for (int i = 0; i < team->count; i++)
        team->workers[i]->most_shards = most;
    LK_TRY(lk_team_call_each(team, open_device, &team->config, false));
    if (c->opened)
        LK_TRY(c->opened(c->context, team));
    const enum lk_status status = plan_all(team);
    const bool may_divide = is_single(team) && c->shards > 1;
    return status == LK_E_DEVICE_MEMORY && may_divide ? plan_in_pieces(team) : status;
}

static const struct lk_team_acts acts = {
    .begin_share = lk_share_begin,
    .end_share = lk_share_end,
    .begin_alone = lk_alone_begin,
    .end_alone = lk_alone_end,
    .read = lk_training_state_read,
    .write = lk_training_state_write,
    .change = lk_alone_change,
};

/* --- creating ----------------------------------------------------------------------------- */

/* Seconds of $LOCKSTEP_HANG_SECONDS, or 30. */
static enum lk_status read_hang_seconds(double *seconds)
{
    const char *text = getenv("LOCKSTEP_HANG_SECONDS");
    char *end = NULL;
    *seconds = 30;
    if (!text || !*text)
        return LK_OK;
    *seconds = lk_number_read(text, &end);
    if (*end || !(*seconds > 0 && *seconds <= 1e6))
        return lk_fail(
            LK_E_ARGUMENT,
            "LOCKSTEP_HANG_SECONDS='%s' in the environment: expected seconds above 0", text);
    return LK_OK;
}

static enum lk_status init(struct lk_team *team)
{
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_mutex_init(&team->mutex, NULL);
    pthread_cond_init(&team->changed, &clock);
    pthread_condattr_destroy(&clock);
    LK_TRY(read_hang_seconds(&team->clock.hang_seconds));
    return lk_reducer_create(lk_parallel_cores(8), &team->reducer);
}

static const char *keep(char *text, size_t bytes, const char *from)
{
    snprintf(text, bytes, "%s", from ? from : "");
    return text;
}

/* Copies the configuration's texts, which the caller may free. */
static void keep_config(struct lk_team *team, const struct lk_team_config *from)
{
    struct lk_team_config *c = &team->config;
    *c = *from;
    c->devices = keep(team->texts.devices, sizeof team->texts.devices, from->devices);
    c->split = keep(team->texts.split, sizeof team->texts.split, from->split);
    c->log_folder =
        keep(team->texts.log_folder, sizeof team->texts.log_folder, from->log_folder);
    c->optimizer = keep(team->texts.optimizer, sizeof team->texts.optimizer, from->optimizer);
    c->optimizer_options = keep(team->texts.optimizer_options,
                                sizeof team->texts.optimizer_options, from->optimizer_options);
}

enum lk_status lk_team_create(const struct lk_team_config *config, struct lk_team **team)
{
    struct lk_team *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("a team", sizeof *made);
    made->acts = &acts;
    keep_config(made, config);
    enum lk_status status = init(made);
    if (status == LK_OK)
        status = create(made);
    if (status != LK_OK && status != LK_E_DEVICE) {
        lk_team_destroy(made);
        return status;
    }
    *team = made;
    return status;
}

/* Room for what each device brings in a step; all replicas have the same buckets. The sums of
 * one that is alone from the start do not come to the host. */
static enum lk_status create_arrivals(struct lk_team *team)
{
    const struct lk_exchange *exchange = lk_stepper_exchange(lk_team_lead(team)->stepper);
    team->buckets = exchange ? lk_exchange_metrics(exchange) : 0;
    team->values[LK_ARRIVAL_METRICS] = LK_PAD;
    for (int b = 0; b < team->buckets; b++)
        team->values[LK_ARRIVAL_BUCKETS + b] = lk_exchange_reals(exchange, b);
    for (int i = 0; i < team->count; i++) {
        struct lk_worker *worker = team->workers[i];
        if (!lk_worker_is_at_work(worker))
            continue;
        const size_t count = (size_t)(LK_ARRIVAL_BUCKETS + team->buckets);
        worker->delivery.arrivals = calloc(count, sizeof *worker->delivery.arrivals);
        if (!worker->delivery.arrivals)
            return lk_fail_memory("arrivals", count * sizeof *worker->delivery.arrivals);
    }
    return LK_OK;
}

enum lk_status lk_team_build(struct lk_team *team)
{
    LK_TRY(lk_team_call_each(team, build, NULL, true));
    LK_TRY(create_arrivals(team));
    if (team->job.ranks)
        LK_TRY(lk_team_ranks_allocate(team));
    if (team->async)
        LK_TRY(lk_async_build(team));
    lk_team_enter(team, team->async       ? LK_TEAM_ASYNC
                        : is_single(team) ? LK_TEAM_ALONE
                                          : LK_TEAM_TRIAL_ALL);
    return LK_OK;
}

/* --- the end ---------------------------------------------------------------------------- */

static enum lk_status close_device(void *context, struct lk_worker *worker)
{
    struct lk_team *team = worker->team;
    (void)context;
    if (team->config.leaves)
        team->config.leaves(team->config.context, worker);
    for (int i = 0; i < LK_COUNT(worker->copies.list); i++)
        lk_state_copy_clear(&worker->copies.list[i]);
    lk_stepper_destroy(worker->stepper);
    worker->stepper = NULL;
    worker->device = NULL;
    for (int i = 0; i < worker->places; i++) {
        struct lk_device *device = worker->group[i];
        pthread_mutex_lock(&team->mutex);
        worker->group[i] = NULL;
        pthread_mutex_unlock(&team->mutex);
        lk_device_close(device);
    }
    return LK_OK;
}

/* The thread of release_lost(). It does nothing if it starts when nobody waits any more: then
 * what the worker uses may be gone. */
static void *release(void *context)
{
    struct lk_worker *worker = context;
    pthread_mutex_t *mutex = &worker->team->mutex;
    pthread_mutex_lock(mutex);
    const bool is_wanted = !worker->stays;
    pthread_mutex_unlock(mutex);
    if (is_wanted)
        (void)!close_device(NULL, worker);
    pthread_mutex_lock(mutex);
    worker->is_released = true;
    pthread_cond_broadcast(&worker->team->changed);
    pthread_mutex_unlock(mutex);
    return NULL;
}

/* Frees what a lost device, and those of its group, have taken, so that others, or a model that
 * is placed anew, find the memory. On a thread of its own, since a driver that has failed may
 * hang now. The mutex is held. */
static bool release_lost(struct lk_team *team, struct lk_worker *worker)
{
    const double until = lk_team_seconds(team) + team->clock.hang_seconds;
    pthread_t thread;
    for (int i = 0; i < worker->places; i++)
        if (worker->group[i])
            lk_device_take_back(worker->group[i]);
    const bool has_started = pthread_create(&thread, NULL, release, worker) == 0;
    while (has_started && !worker->is_released && lk_team_wait(team, until))
        ;
    if (worker->is_released) {
        pthread_join(thread, NULL); /* it needs the mutex no more */
        return true;
    }
    lk_worker_abandon(worker);
    if (has_started)
        pthread_detach(thread);
    return false;
}

static const struct lk_command quit = {.kind = LK_COMMAND_QUIT};

/* Closes the devices of a worker that is at work or rests, and tells its thread to end. */
static void dismiss(struct lk_team *team, struct lk_worker *worker)
{
    pthread_mutex_lock(&team->mutex);
    if (worker->state == LK_WORKER_RESTING)
        lk_worker_change(worker, LK_WORKER_CALL_BACK, NULL);
    pthread_mutex_unlock(&team->mutex);
    if (lk_worker_is_at_work(worker))
        (void)!lk_team_call_one(team, worker, close_device, NULL);
    pthread_mutex_lock(&team->mutex);
    if (lk_worker_is_at_work(worker)) {
        lk_worker_send(worker, &quit);
        lk_worker_change(worker, LK_WORKER_QUIT, NULL);
    }
    pthread_mutex_unlock(&team->mutex);
}

/* Ends the thread of a lost worker and closes its devices, unless the thread, or the one that
 * closes them, hangs in the driver: then it stays. */
static void end_lost(struct lk_team *team, struct lk_worker *worker)
{
    pthread_mutex_lock(&team->mutex);
    const double until = lk_team_seconds(team) + fmin(1, team->clock.hang_seconds);
    worker->queue.count = 0; /* what it had not begun */
    while (!worker->queue.is_awaited && lk_team_wait(team, until))
        ;
    const bool hangs = !worker->queue.is_awaited;
    if (!hangs)
        lk_worker_send(worker, &quit);
    worker->stays = hangs || !release_lost(team, worker);
    pthread_mutex_unlock(&team->mutex);
    if (!hangs)
        pthread_join(worker->thread, NULL);
}

/* Ends all threads, those of lost devices last. False: one stays. */
static bool end_workers(struct lk_team *team)
{
    bool all_ended = true;
    for (int i = 0; i < team->count; i++)
        dismiss(team, team->workers[i]);
    for (int i = 0; i < team->count; i++) {
        struct lk_worker *worker = team->workers[i];
        if (worker->state == LK_WORKER_LOST)
            end_lost(team, worker);
        else if (worker->state != LK_WORKER_NEW)
            pthread_join(worker->thread, NULL);
        all_ended &= !worker->stays;
    }
    return all_ended;
}

void lk_team_destroy(struct lk_team *team)
{
    if (!team)
        return;
    if (team->async) {
        pthread_mutex_lock(&team->mutex);
        lk_async_stop(team);
        pthread_mutex_unlock(&team->mutex);
    }
    const bool all_ended = end_workers(team);
    lk_training_state_clear(&team->recall.kept);
    lk_reducer_destroy(team->reducer);
    lk_team_ranks_destroy(team->job.ranks);
    if (!all_ended)
        return; /* threads that are left behind may still look at it, and at all workers */
    for (int i = 0; i < team->count; i++) {
        pthread_cond_destroy(&team->workers[i]->queue.filled);
        free(team->workers[i]->delivery.arrivals);
        free(team->workers[i]);
    }
    lk_async_destroy(team->async);
    pthread_cond_destroy(&team->changed);
    pthread_mutex_destroy(&team->mutex);
    free(team);
}

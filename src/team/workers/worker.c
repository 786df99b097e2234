/* A device's host thread: it takes commands from a queue and carries them out. */
#include "team/workers/worker.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/log.h"
#include "team/workers/internal.h"
#include <assert.h>
#include <stdio.h>

/* --- states ----------------------------------------------------------------------------- */

static const char *word_of(const struct lk_worker *worker)
{
    return worker->places > 1 ? "group" : "device";
}

void lk_worker_abandon(struct lk_worker *worker)
{
    for (int i = 0; i < worker->places; i++)
        if (worker->group[i])
            lk_device_abandon(worker->group[i]);
}

/* Leaves a lost device behind, whichever thread found it lost. */
static void leave_behind(struct lk_worker *worker, const char *why)
{
    struct lk_team *team = worker->team;
    lk_worker_abandon(worker);
    if (!team->async) /* the others compute more now, perhaps with kernels yet to be compiled */
        team->clock.first_seconds = team->clock.step_seconds = team->clock.fastest_seconds = 0;
    team->counts.lost++;
    const int left = lk_team_left(team) + lk_team_resting(team);
    const bool lacks_room = worker->report.status == LK_E_DEVICE_MEMORY;
    if (!lacks_room || left > 0) /* the last one's lack of room is the failure of all */
        lk_log(LK_LOG_WARNING, "%s %d (%s) %s: %s; %d %s%s left", word_of(worker),
               worker->position,
               worker->device ? lk_device_info(worker->device)->name : "not opened",
               lacks_room ? "has no room and is left out" : "is lost", why, left,
               word_of(worker), left == 1 ? " is" : "s are");
    pthread_cond_broadcast(&team->changed); /* wakes those that wait for it */
}

void lk_worker_change(struct lk_worker *worker, enum lk_worker_event event, const char *why)
{
    const enum lk_worker_state before = worker->state, next = lk_worker_next(before, event);
    if (next == LK_WORKER_REFUSED)
        lk_log(LK_LOG_WARNING, "device %d: '%s' in state '%s'", worker->position,
               lk_worker_event_name(event), lk_worker_state_name(before));
    assert(next != LK_WORKER_REFUSED);
    worker->state = next;
    if (next == LK_WORKER_LOST && before != LK_WORKER_LOST)
        leave_behind(worker, why);
}

/* --- commands --------------------------------------------------------------------------- */

/* Whether the queue's last command is to begin the same step. It is then replaced, so that a
 * share that is to be computed anew and has not begun is not computed twice. */
static bool replaces_last(const struct lk_command_queue *queue,
                          const struct lk_command *command)
{
    if (command->kind != LK_COMMAND_BEGIN || queue->count == 0)
        return false;
    const struct lk_command *last =
        &queue->commands[(queue->first + queue->count - 1) % LK_MOST_COMMANDS];
    return last->kind == LK_COMMAND_BEGIN && last->share.step == command->share.step;
}

void lk_worker_send(struct lk_worker *worker, const struct lk_command *command)
{
    struct lk_command_queue *queue = &worker->queue;
    if (worker->state == LK_WORKER_FAILED)
        return;
    queue->count -= replaces_last(queue, command);
    assert(queue->count < LK_MOST_COMMANDS);
    queue->commands[(queue->first + queue->count++) % LK_MOST_COMMANDS] = *command;
    pthread_cond_signal(&queue->filled);
}

/* The thread, which is waiting or ending, holds nothing; the mutex is held. */
static void let_go(struct lk_worker *worker)
{
    worker->queue.is_awaited = true;
    if (worker->state == LK_WORKER_LOST) /* the team may be about to be destroyed */
        pthread_cond_broadcast(&worker->team->changed);
}

/* Waits for a command; the mutex is held. */
static struct lk_command next_command(struct lk_worker *worker)
{
    struct lk_command_queue *queue = &worker->queue;
    let_go(worker);
    while (queue->count == 0)
        pthread_cond_wait(&queue->filled, &worker->team->mutex);
    queue->is_awaited = false;
    const struct lk_command command = queue->commands[queue->first];
    queue->first = (queue->first + 1) % LK_MOST_COMMANDS;
    queue->count--;
    return command;
}

bool lk_is_device_failure(enum lk_status status)
{
    return status == LK_E_DEVICE || status == LK_E_DEVICE_MEMORY || status == LK_E_BUILD;
}

static enum lk_worker_event event_of(const struct lk_command *command, enum lk_status status)
{
    if (command->kind == LK_COMMAND_CALL)
        return LK_WORKER_RETURN;
    return lk_is_device_failure(status) ? LK_WORKER_FAIL : LK_WORKER_STOP;
}

/* Notes how a command has ended; the mutex is held. What a step has brought the command
 * itself has handed over. */
static void end_command(struct lk_worker *worker, const struct lk_command *command,
                        enum lk_status status)
{
    struct lk_worker_report *report = &worker->report;
    if (status != LK_OK || command->kind == LK_COMMAND_CALL)
        report->status = status;
    if (status != LK_OK) {
        snprintf(report->text, sizeof report->text, "%s", lk_error_text());
        lk_error_clear();
    }
    if (status != LK_OK || command->kind == LK_COMMAND_CALL)
        lk_worker_change(worker, event_of(command, status), report->text);
    if (status != LK_OK || command->kind == LK_COMMAND_CALL || command->kind == LK_COMMAND_WORK)
        pthread_cond_broadcast(&worker->team->changed); /* who waits for the device looks
                                                         * again */
}

static bool goes_on(const struct lk_worker *worker, const struct lk_command *command)
{
    return command->kind != LK_COMMAND_QUIT && worker->state != LK_WORKER_LOST &&
           worker->state != LK_WORKER_FAILED;
}

static void *run(void *context)
{
    struct lk_worker *worker = context;
    pthread_mutex_t *mutex = &worker->team->mutex;
    struct lk_command command;
    pthread_mutex_lock(mutex);
    do {
        enum lk_status status = LK_OK;
        command = next_command(worker);
        pthread_mutex_unlock(mutex);
        if (command.kind == LK_COMMAND_CALL)
            status = command.call(command.context, worker);
        else if (command.kind != LK_COMMAND_QUIT)
            status = command.run(worker, &command);
        pthread_mutex_lock(mutex);
        end_command(worker, &command, status);
    } while (goes_on(worker, &command));
    let_go(worker);
    pthread_mutex_unlock(mutex);
    return NULL;
}

enum lk_status lk_worker_start(struct lk_worker *worker)
{
    worker->state = LK_WORKER_NEW;
    pthread_cond_init(&worker->queue.filled, NULL);
    pthread_mutex_lock(&worker->team->mutex);
    const bool has_started = pthread_create(&worker->thread, NULL, run, worker) == 0;
    if (has_started)
        lk_worker_change(worker, LK_WORKER_START, NULL);
    pthread_mutex_unlock(&worker->team->mutex);
    return has_started ? LK_OK : lk_fail_memory("a thread", 0);
}

/* --- on its thread ---------------------------------------------------------------------- */

bool lk_worker_deliver(struct lk_worker *worker, int64_t ticket, int count)
{
    struct lk_delivery *delivery = &worker->delivery;
    struct lk_team *team = worker->team;
    pthread_mutex_lock(&team->mutex);
    const bool is_wanted = lk_worker_is_at_work(worker) && delivery->ticket == ticket;
    if (is_wanted) {
        delivery->arrived += count;
        delivery->came_at = lk_seconds();
        if (delivery->arrived == LK_ARRIVAL_BUCKETS + team->buckets)
            lk_worker_change(worker, LK_WORKER_DELIVER, NULL);
        pthread_cond_broadcast(&team->changed);
    }
    pthread_mutex_unlock(&team->mutex);
    return is_wanted;
}

void lk_worker_heartbeat(void *worker)
{
    struct lk_worker *w = worker;
    pthread_mutex_lock(&w->team->mutex);
    w->report.heartbeats++;
    pthread_mutex_unlock(&w->team->mutex);
}

void lk_worker_trace(const struct lk_worker *worker, int64_t step)
{
    for (int i = 0; i < worker->places; i++)
        lk_profile_step(worker->team->profile, worker->group[i], step);
}

void lk_worker_collect(const struct lk_worker *worker, int64_t step)
{
    for (int i = 0; i < worker->places; i++)
        lk_profile_collect(worker->team->profile, worker->group[i],
                           worker->position * worker->places + i, step);
}

void lk_worker_note(const struct lk_worker *worker, const char *what, int64_t step,
                    double begin, double end)
{
    char name[32];
    snprintf(name, sizeof name, "device %d", worker->position);
    lk_profile_span(worker->team->profile, name, what, step, begin, end);
}

static struct lk_stepper_config describe_stepper(const struct lk_worker *worker, int most)
{
    const struct lk_team_config *c = &worker->team->config;
    const int micro_batches = most ? c->shards / most : 1;
    return (struct lk_stepper_config){
        .device = worker->device,
        .group = worker->group,
        .places = worker->places > 1 ? worker->places : 0,
        .in_flight = (int)lk_least(worker->in_flight, micro_batches),
        .loss = c->loss,
        .feed = c->feed,
        .batch = c->batch,
        .shards = c->shards,
        .most_shards = most,
        .keeps_sums = worker->team->job.all == 1 && !c->is_async,
        .transform = c->transform,
        .real = c->real,
        .loss_scale = c->loss_scale,
        .seed = c->seed,
        .optimizer = c->optimizer,
        .optimizer_options = c->optimizer_options,
        .clip = c->clip,
        .ema = c->ema,
        .choices = c->choices,
        .part = c->part,
        .lists_rows = true,
        .few_samples = c->few_samples,
        /* Smaller micro-batches cost no work, so they are tried first. */
        .recompute =
            most > 1 && c->recompute == LK_RECOMPUTE_AUTO ? LK_RECOMPUTE_OFF : c->recompute,
    };
}

enum lk_status lk_worker_create_stepper(struct lk_worker *worker, int most)
{
    const struct lk_stepper_config config = describe_stepper(worker, most);
    return lk_stepper_create(&config, &worker->stepper);
}

bool lk_worker_take_less(struct lk_worker *worker, int *most)
{
    const bool has_fewer_shards = *most > 1;
    const int micro_batches = *most > 0 ? worker->team->config.shards / *most : 0;
    const bool has_spare = lk_least(worker->in_flight, micro_batches) > worker->places;
    if (!has_fewer_shards && (*most == 0 || worker->in_flight < 2))
        return false;
    if (has_fewer_shards && !has_spare) {
        *most /= 2;
        worker->in_flight = worker->usual_in_flight;
    } else {
        worker->in_flight--;
    }
    return true;
}

enum lk_status lk_worker_plan(const struct lk_worker *worker, int *in_flight,
                              struct lk_replica_config *replica)
{
    const struct lk_stepper_config config = describe_stepper(worker, worker->most_shards);
    *in_flight = config.in_flight;
    return lk_stepper_plan(&config, replica);
}

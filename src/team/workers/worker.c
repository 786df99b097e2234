#include "team/workers/worker.h"

#include "base/fail.h"
#include "team/workers/parts.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

/* A part that has not begun when it is to be done anew need not be done twice. */
static bool has_same_part(const struct lk_worker *worker, const struct lk_order *order)
{
    const int last = (worker->first_order + worker->order_count - 1) % LK_MOST_ORDERS;
    return order->kind == LK_ORDER_PART && worker->order_count > 0 &&
           worker->orders[last].kind == LK_ORDER_PART;
}

void lk_worker_order(struct lk_worker *worker, const struct lk_order *order)
{
    worker->order_count -= has_same_part(worker, order);
    assert(worker->order_count < LK_MOST_ORDERS);
    const int at = (worker->first_order + worker->order_count++) % LK_MOST_ORDERS;
    worker->orders[at] = *order;
    pthread_cond_signal(&worker->ordered);
}

void lk_worker_beat(void *worker)
{
    struct lk_worker *w = worker;
    pthread_mutex_lock(&w->team->mutex);
    w->beats++;
    pthread_mutex_unlock(&w->team->mutex);
}

/* Makes what has come known; false where nobody waits for it any more. */
static bool publish(struct lk_worker *worker, int64_t ticket)
{
    pthread_mutex_lock(&worker->team->mutex);
    const bool is_wanted = !worker->is_lost && worker->ticket == ticket;
    if (is_wanted) {
        worker->arrived++;
        worker->came_at = lk_seconds();
        pthread_cond_broadcast(&worker->team->changed);
    }
    pthread_mutex_unlock(&worker->team->mutex);
    return is_wanted;
}

static enum lk_status take_metrics(struct lk_worker *worker, const struct lk_order *order)
{
    struct lk_exchange *exchange = lk_stepper_exchange(worker->stepper);
    struct lk_arrival *arrival = &worker->arrivals[0];
    arrival->count = 0;
    if (order->part.run.count > 0)
        LK_TRY(lk_exchange_wait(exchange, worker->team->buckets, arrival->terms,
                                &arrival->checksums, &arrival->count));
    worker->checks = NULL;
    if (worker->has_updated)
        LK_TRY(lk_exchange_checks(exchange, &worker->checks));
    publish(worker, order->ticket);
    return LK_OK;
}

static enum lk_status take_bucket(struct lk_worker *worker, const struct lk_order *order,
                                  int bucket)
{
    struct lk_exchange *exchange = lk_stepper_exchange(worker->stepper);
    struct lk_arrival *arrival = &worker->arrivals[bucket + 1];
    arrival->count = 0;
    if (order->part.run.count > 0)
        LK_TRY(lk_exchange_wait(exchange, bucket, arrival->terms, &arrival->checksums,
                                &arrival->count));
    return lk_exchange_result(exchange, bucket, &arrival->result);
}

/* The next step's samples are read while the device computes this one's. */
static enum lk_status prefetch(struct lk_worker *worker)
{
    struct lk_team *team = worker->team;
    pthread_mutex_lock(&team->mutex);
    struct lk_part next = team->pending;
    next.run = worker->run;
    pthread_mutex_unlock(&team->mutex);
    return next.step && next.run.count
               ? lk_stepper_prefetch(worker->stepper, team->batches, &next)
               : LK_OK;
}

void lk_worker_note(const struct lk_worker *worker, const char *what, int64_t step,
                    double begin, double end)
{
    char name[32];
    snprintf(name, sizeof name, "device %d", worker->position);
    lk_profile_span(worker->team->profile, name, what, step, begin, end);
}

static enum lk_status do_part(struct lk_worker *worker, const struct lk_order *order)
{
    struct lk_team *team = worker->team;
    const int64_t step = order->part.step;
    const double start = lk_seconds();
    lk_profile_step(team->profile, worker->device, step);
    worker->times = (struct lk_part_times){0};
    LK_TRY(lk_worker_fail(worker, step));
    if (order->part.run.count > 0)
        LK_TRY(lk_stepper_begin(worker->stepper, team->batches, &order->part));
    const double begun = lk_seconds();
    LK_TRY(prefetch(worker));
    const double fetched = lk_seconds();
    LK_TRY(take_metrics(worker, order));
    for (int bucket = 0; bucket < team->buckets; bucket++) {
        LK_TRY(take_bucket(worker, order, bucket));
        if (bucket == team->buckets - 1 && order->part.run.count > 0) {
            lk_worker_be_slow(worker, lk_seconds() - start);
            worker->times = lk_stepper_part_times(worker->stepper);
            if (!(worker->times.compute_ms > 0)) /* a driver without times */
                worker->times.compute_ms = 1e3 * (lk_seconds() - begun);
            worker->times.compute_ms *= worker->slowness;
        }
        if (!publish(worker, order->ticket))
            break;
    }
    lk_worker_note(worker, "enqueue", step, start, begun);
    lk_worker_note(worker, "read next batch", step, begun, fetched);
    lk_worker_note(worker, "wait", step, fetched, lk_seconds());
    lk_profile_take(team->profile, worker->device, worker->position, step);
    return LK_OK;
}

static enum lk_status do_update(struct lk_worker *worker, const struct lk_order *order)
{
    worker->has_updated = true;
    return lk_stepper_update(worker->stepper, order->part.samples, order->lr, order->part.step,
                             order->weights);
}

static enum lk_status do_start(struct lk_worker *worker, const struct lk_order *order)
{
    struct lk_team *team = worker->team;
    const struct lk_part *part = &order->part;
    const int slot = (int)(part->step % LK_REPLICA_SLOTS);
    const double start = lk_seconds();
    LK_TRY(lk_worker_fail(worker, part->step));
    LK_TRY(lk_stepper_read(worker->stepper, slot, team->batches,
                           (struct lk_batch_range){part->step - 1, 0, part->samples}));
    const double read = lk_seconds();
    worker->input_ms[slot] = 1e3 * (read - start);
    lk_profile_step(team->profile, worker->device, part->step);
    LK_TRY(lk_stepper_enqueue(worker->stepper, slot, part->samples, order->lr, part->step));
    lk_worker_note(worker, "read batch", part->step, start, read);
    lk_worker_note(worker, "enqueue", part->step, read, lk_seconds());
    return LK_OK;
}

static enum lk_status do_finish(struct lk_worker *worker, const struct lk_order *order)
{
    struct lk_step_result result;
    const int slot = (int)(order->part.step % LK_REPLICA_SLOTS);
    LK_TRY(lk_stepper_wait(worker->stepper, slot, &result));
    lk_profile_take(worker->team->profile, worker->device, worker->position, order->part.step);
    pthread_mutex_lock(&worker->team->mutex);
    worker->result = result;
    worker->times.input_ms = worker->input_ms[slot];
    worker->ticket = order->ticket;
    pthread_cond_broadcast(&worker->team->changed);
    pthread_mutex_unlock(&worker->team->mutex);
    return LK_OK;
}

static enum lk_status carry_out(struct lk_worker *worker, const struct lk_order *order)
{
    switch (order->kind) {
    case LK_ORDER_CALL:
        return order->call(order->context, worker);
    case LK_ORDER_START:
        return do_start(worker, order);
    case LK_ORDER_FINISH:
        return do_finish(worker, order);
    case LK_ORDER_PART:
        return do_part(worker, order);
    case LK_ORDER_UPDATE:
        return do_update(worker, order);
    case LK_ORDER_ASYNC:
        return order->call(order->context, worker);
    case LK_ORDER_QUIT:
        break;
    }
    return LK_OK;
}

/* Waits for an order; the mutex is held. */
static struct lk_order next_order(struct lk_worker *worker)
{
    while (worker->order_count == 0)
        pthread_cond_wait(&worker->ordered, &worker->team->mutex);
    const struct lk_order order = worker->orders[worker->first_order];
    worker->first_order = (worker->first_order + 1) % LK_MOST_ORDERS;
    worker->order_count--;
    return order;
}

bool lk_is_device_trouble(enum lk_status status)
{
    return status == LK_E_DEVICE || status == LK_E_DEVICE_MEMORY || status == LK_E_BUILD;
}

/* A call's failure is the caller's affair. */
static void end_order(struct lk_worker *worker, const struct lk_order *order,
                      enum lk_status status)
{
    if (order->kind == LK_ORDER_CALL)
        worker->has_returned = true;
    if (status != LK_OK) {
        worker->status = status;
        snprintf(worker->text, sizeof worker->text, "%s", lk_error_text());
        lk_error_clear();
        if (order->kind != LK_ORDER_CALL && lk_is_device_trouble(status))
            worker->has_failed = true;
        else if (order->kind != LK_ORDER_CALL)
            worker->has_error = true;
    }
    if (status != LK_OK || order->kind == LK_ORDER_CALL || order->kind == LK_ORDER_ASYNC)
        pthread_cond_broadcast(&worker->team->changed); /* nobody waits for another's end */
}

static void *run(void *context)
{
    struct lk_worker *worker = context;
    pthread_mutex_t *mutex = &worker->team->mutex;
    pthread_mutex_lock(mutex);
    for (bool goes_on = true; goes_on;) {
        const struct lk_order order = next_order(worker);
        pthread_mutex_unlock(mutex);
        const enum lk_status status = carry_out(worker, &order);
        pthread_mutex_lock(mutex);
        end_order(worker, &order, status);
        goes_on = order.kind != LK_ORDER_QUIT && (!worker->is_lost || worker->is_idle) &&
                  !worker->has_failed;
    }
    pthread_mutex_unlock(mutex);
    return NULL;
}

enum lk_status lk_worker_start(struct lk_worker *worker)
{
    pthread_cond_init(&worker->ordered, NULL);
    if (pthread_create(&worker->thread, NULL, run, worker) != 0)
        return lk_fail_memory("a thread", 0);
    worker->has_thread = true;
    return LK_OK;
}

enum lk_status lk_worker_create_stepper(struct lk_worker *worker, int most)
{
    const struct lk_team_config *c = &worker->team->config;
    const struct lk_stepper_config config = {
        .device = worker->device,
        .loss = c->loss,
        .feed = c->feed,
        .batch = c->batch,
        .shards = c->shards,
        .most_shards = most,
        .look = c->look,
        .real = c->real,
        .loss_scale = c->loss_scale,
        .seed = c->seed,
        .optimizer = c->optimizer,
        .optimizer_options = c->optimizer_options,
        .choices = c->choices,
    };
    return lk_stepper_create(&config, &worker->stepper);
}

/* A trainer's evaluation: a part of the data on each device that is left, where the host has
 * memory for their predictions, else all of it on the first with room; with the weights trained
 * there. */
#include "train/follow.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/log.h"
#include <stdio.h>

/* Bytes of predictions that are kept in host memory while devices share an evaluation. */
static const size_t most_predicted = (size_t)1 << 28;

/* Creates an evaluator, with half as many samples at a time until it fits into the device's
 * memory. */
static enum lk_status create_on(struct lk_trainer *trainer, const struct lk_worker *worker,
                                struct lk_evaluator **evaluator)
{
    const struct lk_tiling *tiling = lk_replica_tiling(lk_stepper_replica(worker->stepper));
    const int64_t most = tiling->shards * tiling->shard_samples; /* at a time */
    struct lk_evaluator_config config = {
        .device = worker->device,
        .model = trainer->model,
        .batch = lk_least(most, trainer->settings->batch_size),
        .transform = &trainer->eval_transform,
        .pipeline = trainer->eval_text,
        .weights_of = lk_stepper_replica(worker->stepper),
        .features = trainer->features.is_on ? &trainer->evaluated : NULL,
    };
    for (;;) {
        const enum lk_status status = lk_evaluator_create(&config, evaluator);
        if (status != LK_E_DEVICE_MEMORY || config.batch <= tiling->lanes)
            return status;
        config.batch /= 2;
        lk_log(LK_LOG_WARNING, "device %d: validation takes %lld samples at a time: %s",
               worker->position, (long long)config.batch, lk_error_text());
        lk_error_clear();
    }
}

void lk_trainer_leave_stepper(void *context, struct lk_worker *worker)
{
    struct lk_trainer *trainer = context;
    struct lk_evaluator *evaluator = trainer->evaluators[worker->position];
    trainer->is_full[worker->position] = false;
    trainer->evaluators[worker->position] = NULL;
    if (evaluator && trainer->evaluator == evaluator)
        trainer->evaluator = NULL;
    lk_evaluator_destroy(evaluator);
}

/* Gives the device an evaluator, if it has none and has room for it. */
static enum lk_status open_on(struct lk_trainer *trainer, struct lk_worker *worker)
{
    struct lk_evaluator **evaluator = &trainer->evaluators[worker->position];
    if (*evaluator || trainer->is_full[worker->position])
        return LK_OK;
    const enum lk_status status = create_on(trainer, worker, evaluator);
    trainer->is_full[worker->position] = status == LK_E_DEVICE_MEMORY;
    if (status == LK_OK)
        lk_evaluator_watch(*evaluator, lk_worker_heartbeat, worker);
    return trainer->is_full[worker->position] ? LK_OK : status;
}

/* Lets this device evaluate: before the first step, so that a lack of memory is found then. A
 * device without room for it goes on training; trainer->evaluator is then NULL. */
static enum lk_status choose(struct lk_trainer *trainer, struct lk_worker *worker)
{
    const bool was_full = trainer->is_full[worker->position];
    LK_TRY(open_on(trainer, worker));
    trainer->evaluator = trainer->evaluators[worker->position];
    if (trainer->is_full[worker->position] && !was_full)
        lk_log(LK_LOG_WARNING, "device %d has no room for validation: %s", worker->position,
               lk_error_text());
    lk_error_clear();
    return LK_OK;
}

struct evaluation {
    struct lk_trainer *trainer;
    bool runs, is_done;
    bool stops;                                     /* where training is asked to stop */
    struct lk_predicted predicted;                  /* by all devices; {0}: by none */
    int64_t first[LK_MOST_TEAM], end[LK_MOST_TEAM]; /* of its batches, each device's part */
    struct lk_evaluation result;
};

static enum lk_status swap_average(struct lk_stepper *stepper)
{
    for (int p = 0; p < lk_stepper_places(stepper); p++)
        LK_TRY(
            lk_optimizer_enqueue_swap(lk_stepper_optimizer_at(stepper, p),
                                      lk_replica_weights(lk_stepper_replica_at(stepper, p))));
    return LK_OK;
}

/* Evaluates the moving average of the weights, where there is one, in their place. */
static enum lk_status run_on(struct evaluation *e, struct lk_worker *worker)
{
    struct lk_trainer *trainer = e->trainer;
    const bool stops = e->stops && lk_world_size(trainer->world) == 1; /* else all must agree */
    lk_evaluator_stop_at(trainer->evaluator, stops ? &trainer->stop : NULL);
    lk_evaluator_take_predicted(trainer->evaluator,
                                e->predicted.is_there ? &e->predicted : NULL);
    LK_TRY(swap_average(worker->stepper));
    const enum lk_status status =
        lk_evaluator_run(trainer->evaluator, trainer->load.validation, &e->result);
    const enum lk_status back = swap_average(worker->stepper);
    return status == LK_OK ? back : status;
}

static enum lk_status evaluate_on(void *context, struct lk_worker *worker)
{
    struct evaluation *e = context;
    struct lk_trainer *trainer = e->trainer;
    LK_TRY(choose(trainer, worker));
    if (!trainer->evaluator)
        return LK_OK;
    if (e->runs)
        LK_TRY(run_on(e, worker));
    lk_profile_collect(trainer->profile, worker->device, worker->position, trainer->done);
    e->is_done = true;
    return LK_OK;
}

/* --- parts of it on all devices ---------------------------------------------------------- */

/* Devices predict as large parts as they have of a batch in training. */
static void deal(struct evaluation *e)
{
    const struct lk_team *team = e->trainer->team;
    const int64_t batches = lk_divide_up(e->predicted.count, e->predicted.batch);
    int64_t all = 0, before = 0;
    for (int i = 0; i < lk_team_devices(team); i++)
        all += lk_team_worker(team, i)->share.count;
    for (int i = 0; i < lk_team_devices(team) && all > 0; i++) {
        const int64_t count = lk_team_worker(team, i)->share.count;
        e->first[i] = batches * before / all;
        e->end[i] = batches * (before + count) / all;
        before += count;
    }
}

/* A device that cannot take part, or fails, leaves its part to the one that judges. */
static enum lk_status predict_on(void *context, struct lk_worker *worker)
{
    struct evaluation *e = context;
    struct lk_trainer *trainer = e->trainer;
    const int at = worker->position;
    const bool stops = e->stops && lk_world_size(trainer->world) == 1;
    if (e->first[at] >= e->end[at])
        return LK_OK;
    LK_TRY(open_on(trainer, worker));
    lk_error_clear();
    struct lk_evaluator *evaluator = trainer->evaluators[at];
    if (!evaluator || lk_evaluator_batch(evaluator) != e->predicted.batch)
        return LK_OK;
    lk_evaluator_stop_at(evaluator, stops ? &trainer->stop : NULL);
    LK_TRY(swap_average(worker->stepper));
    const enum lk_status status = lk_evaluator_predict_part(
        evaluator, trainer->load.validation, e->first[at], e->end[at], &e->predicted);
    const enum lk_status back = swap_average(worker->stepper);
    return status == LK_OK ? back : status;
}

static enum lk_status begin_parts(void *context, struct lk_worker *worker)
{
    struct evaluation *e = context;
    LK_TRY(choose(e->trainer, worker));
    return e->trainer->evaluator
               ? lk_predicted_init(e->trainer->evaluator, e->trainer->load.validation,
                                   most_predicted, &e->predicted)
               : LK_OK;
}

/* Predicts on all devices at once, where there are several and host memory has room. */
static enum lk_status predict_parts(struct evaluation *e)
{
    struct lk_trainer *trainer = e->trainer;
    if (!e->runs || lk_team_left(trainer->team) < 2 || trainer->features.is_on)
        return LK_OK;
    const enum lk_status status = lk_team_call(trainer->team, begin_parts, e);
    if (status == LK_E_MEMORY) {
        lk_error_clear();
        return LK_OK;
    }
    LK_TRY(status);
    if (!e->predicted.is_there)
        return LK_OK;
    deal(e);
    return lk_team_call_each(trainer->team, predict_on, e, true);
}

/* Evaluates on the first device or, if that has no room, on another one. */
static enum lk_status evaluate(struct evaluation *e)
{
    struct lk_team *team = e->trainer->team;
    LK_TRY(lk_team_call(team, evaluate_on, e));
    for (int i = 0; i < lk_team_devices(team) && !e->is_done; i++)
        LK_TRY(lk_team_call_other(team, i, evaluate_on, e));
    return LK_OK;
}

enum lk_status lk_trainer_open_evaluator(struct lk_trainer *trainer)
{
    struct evaluation e = {.trainer = trainer};
    if (!trainer->load.validation)
        return LK_OK;
    trainer->evaluated.count = lk_data_info(trainer->load.validation)->count;
    LK_TRY(evaluate(&e));
    if (e.is_done)
        return LK_OK;
    return lk_fail(LK_E_DEVICE_MEMORY,
                   "no device has room for validation beside training: a smaller batch, or "
                   "--val off, would do");
}

/* Validates, and reports the result if there is one. */
static enum lk_status validate(struct lk_trainer *trainer, struct evaluation *e)
{
    const double start = lk_seconds();
    if (!trainer->load.validation)
        return LK_OK;
    enum lk_status status = predict_parts(e);
    if (status == LK_OK)
        status = evaluate(e);
    if (trainer->evaluator)
        lk_evaluator_take_predicted(trainer->evaluator, NULL);
    lk_predicted_clear(&e->predicted);
    LK_TRY(status);
    lk_profile_span(trainer->profile, "trainer", "evaluate", trainer->done, start,
                    lk_seconds());
    if (!e->is_done) /* the only device that had room for it is lost */
        return LK_OK;
    return lk_trainer_report(trainer, (struct lk_event){.kind = LK_EVENT_EVALUATION,
                                                        .loss = e->result.loss,
                                                        .accuracy = e->result.accuracy,
                                                        .evaluation = &e->result});
}

enum lk_status lk_trainer_validate(struct lk_trainer *trainer)
{
    struct evaluation e = {.trainer = trainer, .runs = true};
    return validate(trainer, &e);
}

enum lk_status lk_trainer_evaluate(struct lk_trainer *trainer)
{
    struct evaluation e = {.trainer = trainer, .runs = true, .stops = true};
    LK_TRY(validate(trainer, &e));
    trainer->evaluated_step = trainer->done;
    trainer->owes_evaluation = false;
    return lk_trainer_follow(trainer, e.is_done ? &e.result : NULL);
}

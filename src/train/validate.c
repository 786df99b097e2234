/* A trainer's evaluator: on the first device that is left, with the weights trained there. */
#include "train/trainer_parts.h"

#include "base/fail.h"

/* Its memory is taken before the first step: what does not fit is said then. */
static enum lk_status open_on(void *context, struct lk_worker *worker)
{
    struct lk_trainer *trainer = context;
    const bool is_here = trainer->evaluator && trainer->evaluator_of == worker;
    if (is_here && trainer->evaluator_with == worker->stepper)
        return LK_OK;
    if (is_here) /* else it is left behind with its device */
        lk_evaluator_destroy(trainer->evaluator);
    trainer->evaluator = NULL;
    const struct lk_tiling *tiling = lk_replica_tiling(lk_stepper_replica(worker->stepper));
    const int64_t most = tiling->shards * tiling->shard_samples; /* at a time */
    const struct lk_evaluator_config config = {
        .device = worker->device,
        .model = trainer->model,
        .batch = lk_least(most, trainer->settings->batch_size),
        .look = &trainer->eval_look,
        .weights_of = lk_stepper_replica(worker->stepper),
    };
    LK_TRY(lk_evaluator_create(&config, &trainer->evaluator));
    lk_evaluator_watch(trainer->evaluator, lk_worker_beat, worker);
    trainer->evaluator_of = worker;
    trainer->evaluator_with = worker->stepper;
    return LK_OK;
}

enum lk_status lk_trainer_open_evaluator(struct lk_trainer *trainer)
{
    if (!trainer->load.validation)
        return LK_OK;
    return lk_team_call(trainer->team, open_on, trainer);
}

static enum lk_status close_on(void *context, struct lk_worker *worker)
{
    struct lk_trainer *trainer = context;
    if (trainer->evaluator_of == worker)
        lk_evaluator_destroy(trainer->evaluator);
    trainer->evaluator = NULL;
    return LK_OK;
}

void lk_trainer_close_evaluator(struct lk_trainer *trainer)
{
    if (trainer->evaluator && lk_team_left(trainer->team) > 0)
        (void)!lk_team_call(trainer->team, close_on, trainer);
}

struct evaluation {
    struct lk_trainer *trainer;
    struct lk_evaluation result;
};

static enum lk_status evaluate_on(void *context, struct lk_worker *worker)
{
    struct evaluation *e = context;
    struct lk_trainer *trainer = e->trainer;
    LK_TRY(open_on(trainer, worker));
    LK_TRY(lk_evaluator_run(trainer->evaluator, trainer->load.validation, &e->result));
    lk_profile_take(trainer->profile, worker->device, worker->position, trainer->done);
    return LK_OK;
}

enum lk_status lk_trainer_evaluate(struct lk_trainer *trainer)
{
    struct evaluation e = {.trainer = trainer};
    const double start = lk_seconds();
    if (!trainer->load.validation)
        return LK_OK;
    LK_TRY(lk_team_call(trainer->team, evaluate_on, &e));
    lk_profile_span(trainer->profile, "trainer", "evaluate", trainer->done, start,
                    lk_seconds());
    return lk_trainer_report(trainer, (struct lk_event){.kind = LK_EVENT_EVALUATION,
                                                        .loss = e.result.loss,
                                                        .accuracy = e.result.accuracy});
}

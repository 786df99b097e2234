/* What follows from the evaluations of a training: a schedule's learning rate, and what
 * callbacks wish, which is done here. */
#include "train/follow.h"

#include "base/fail.h"
#include "base/log.h"
#include "graph/place/group.h"
#include "mirror/world.h"
#include "train/saving.h"
#include "train/settings/fit.h"
#include <stdio.h>
#include <stdlib.h>

/* --- callbacks of a trainer ------------------------------------------------------------- */

struct reading {
    void *context;
    enum lk_status (*see)(void *context, const struct lk_param *param, const float *values);
    const struct lk_trainer *trainer;
};

static enum lk_status read_params(void *context, struct lk_worker *worker)
{
    const struct reading *reading = context;
    const struct lk_replica *any = lk_stepper_replica(worker->stepper);
    LK_TRY(reading->see(reading->context, NULL, NULL));
    for (int i = 0; lk_replica_param(any, i); i++) {
        const struct lk_replica *replica =
            lk_group_member(any, lk_group_place_of_param(any, i));
        const struct lk_param *param = lk_replica_param(replica, i);
        float *values = malloc((size_t)param->count * sizeof *values);
        if (!values)
            return lk_fail_memory(param->name, (size_t)param->count * sizeof *values);
        enum lk_status status = lk_replica_read_param(replica, i, values);
        if (status == LK_OK)
            status = reading->see(reading->context, param, values);
        free(values);
        LK_TRY(status);
    }
    return LK_OK;
}

static enum lk_status each_param(void *trainer, void *context,
                                 enum lk_status (*see)(void *, const struct lk_param *,
                                                       const float *))
{
    struct reading reading = {context, see, trainer};
    return lk_team_call(((struct lk_trainer *)trainer)->team, read_params, &reading);
}

/* The mean over the batch of a parameter's gradient in the last step; nothing where it has none
 * that could be read. */
static enum lk_status see_gradient(const struct reading *reading, struct lk_worker *worker,
                                   int index, float *mean)
{
    const struct lk_trainer *trainer = reading->trainer;
    const struct lk_replica *any = lk_stepper_replica(worker->stepper);
    const int place = lk_group_place_of_param(any, index);
    const struct lk_param *param = lk_replica_param(lk_group_member(any, place), index);
    const double scale = trainer->loss_scale > 0 ? trainer->loss_scale : 1;
    const double samples =
        scale * (double)trainer->steps[trainer->done % LK_COUNT(trainer->steps)].samples;
    bool is_there = false;
    LK_TRY(lk_stepper_read_gradient(worker->stepper, trainer->done, param, place, mean,
                                    &is_there));
    for (int64_t i = 0; i < param->count && is_there; i++)
        mean[i] = (float)(mean[i] / samples);
    return is_there ? reading->see(reading->context, param, mean) : LK_OK;
}

static enum lk_status read_gradients(void *context, struct lk_worker *worker)
{
    const struct lk_param *param;
    const struct lk_replica *any = lk_stepper_replica(worker->stepper);
    int64_t most = 0;
    for (int i = 0; (param = lk_replica_param(any, i)) != NULL; i++)
        most = param->count > most ? param->count : most;
    float *mean = malloc((size_t)most * sizeof *mean);
    if (!mean)
        return lk_fail_memory("gradients", (size_t)most * sizeof *mean);
    enum lk_status status = LK_OK;
    for (int i = 0; status == LK_OK && lk_replica_param(any, i); i++)
        status = see_gradient(context, worker, i, mean);
    free(mean);
    return status;
}

/* Without lockstep no step has a gradient of its own. */
static enum lk_status each_gradient(void *context, void *to,
                                    enum lk_status (*see)(void *, const struct lk_param *,
                                                          const float *))
{
    struct lk_trainer *trainer = context;
    struct reading reading = {to, see, trainer};
    if (trainer->settings->mode == LK_TRAIN_ASYNC || trainer->done == 0)
        return LK_OK;
    return lk_team_call(trainer->team, read_gradients, &reading);
}

/* Apart from those that devices read ahead, which are further on. */
static enum lk_status open_batches(void *context, struct lk_batches **batches)
{
    const struct lk_trainer *trainer = context;
    struct lk_batches_options options = lk_settings_batches(trainer->settings);
    int shape[3];
    if (trainer->features.is_on)
        return LK_OK;
    lk_batches_shape(trainer->batches, shape);
    options.height = shape[0];
    options.width = shape[1];
    options.threads = options.prefetch = 0;
    options.pipeline = trainer->text;
    return lk_batches_create(trainer->load.train, &options, batches);
}

enum lk_status lk_trainer_create_callbacks(struct lk_trainer *trainer)
{
    const struct lk_settings *s = trainer->settings;
    const bool is_first = lk_world_rank(trainer->world) == 0;
    bool follows = *s->callbacks || s->own_callback_count > 0;
    LK_TRY(lk_world_broadcast(trainer->world, sizeof follows, &follows));
    LK_TRY(lk_settings_print(s, &trainer->settings_text));
    const struct lk_callback_site site = {
        .run = lk_run_folder_path(trainer->folder),
        .model = trainer->model,
        .settings = trainer->settings_text,
        .checkpoint_every = s->checkpoint_every,
        .steps_per_epoch = trainer->steps_per_epoch,
        .sees_epochs = trainer->eval_period.epochs > 0,
        .by_clock = trainer->eval_period.minutes > 0,
        .ahead = s->mode == LK_TRAIN_ASYNC ? LK_MOST_BEGUN : 1,
        .ranks = lk_world_size(trainer->world),
        .is_first = is_first,
        .follows = follows,
        .validation = trainer->load.validation,
        .has_validation = trainer->load.validation != NULL,
        .has_accuracy = trainer->has_accuracy,
        .own = s->own_callbacks,
        .own_count = is_first ? s->own_callback_count : 0,
        .each_param = each_param,
        .each_gradient = each_gradient,
        .find_origin = lk_trainer_find_origin,
        .open_batches = open_batches,
        .trainer = trainer,
    };
    LK_TRY(lk_callbacks_create(s->callbacks, &site, &trainer->callbacks));
    return lk_callbacks_schedule(trainer->callbacks, &trainer->schedule, &trainer->monitor);
}

enum lk_status lk_trainer_open_callbacks(struct lk_trainer *trainer)
{
    const bool is_over = trainer->done >= trainer->total_steps && !trainer->owes_evaluation;
    if (lk_world_rank(trainer->world) > 0 || is_over)
        return LK_OK;
    return lk_callbacks_open(trainer->callbacks, trainer->done);
}

/* --- schedules -------------------------------------------------------------------------- */

bool lk_trainer_follows(const struct lk_trainer *trainer)
{
    return (trainer->schedule.kind == LK_LR_SCHEDULE_PLATEAU ||
            lk_callbacks_follow(trainer->callbacks)) &&
           trainer->is_due;
}

/* The figure that the schedule follows, where the epoch has one. */
static bool find_figure(const struct lk_trainer *trainer, const struct lk_evaluation *found,
                        double *figure)
{
    if (trainer->monitor)
        return lk_figures_find(lk_callbacks_figures(trainer->callbacks), trainer->monitor,
                               figure);
    if (found)
        *figure =
            trainer->schedule.monitor == LK_MONITOR_LOSS ? found->data_loss : found->accuracy;
    return found != NULL;
}

/* Rank 0, which alone has a result, decides for all. */
static enum lk_status follow_plateau(struct lk_trainer *trainer,
                                     const struct lk_evaluation *found)
{
    const struct lk_lr_schedule *schedule = &trainer->schedule;
    double figure;
    if (schedule->kind != LK_LR_SCHEDULE_PLATEAU)
        return LK_OK;
    const double was = lk_plateau_rate(schedule, &trainer->plateau, trainer->rate, INT64_MAX);
    const int64_t waited = schedule->patience > 0 ? schedule->patience : 1;
    if (find_figure(trainer, found, &figure) &&
        lk_plateau_take(schedule, &trainer->plateau, trainer->rate, trainer->done, figure))
        lk_log(LK_LOG_INFO,
               "%lld validation%s without a better %s: the learning rate falls from %g to %g",
               (long long)waited, waited == 1 ? "" : "s",
               trainer->monitor                       ? trainer->monitor
               : schedule->monitor == LK_MONITOR_LOSS ? "loss"
                                                      : "accuracy",
               was, lk_plateau_rate(schedule, &trainer->plateau, trainer->rate, INT64_MAX));
    return lk_world_broadcast(trainer->world, sizeof trainer->plateau, &trainer->plateau);
}

enum lk_status lk_trainer_follow(struct lk_trainer *trainer, const struct lk_evaluation *found)
{
    if (!lk_trainer_follows(trainer))
        return LK_OK;
    if (lk_world_rank(trainer->world) == 0)
        LK_TRY(lk_callbacks_end_epoch(trainer->callbacks, trainer->done));
    if (trainer->eval_period.minutes > 0) /* a clock of rank 0 alone, so no bits follow */
        return LK_OK;
    LK_TRY(follow_plateau(trainer, found));
    struct lk_callback_rates *rates = lk_callbacks_rates(trainer->callbacks);
    return lk_world_broadcast(trainer->world, sizeof *rates, rates);
}

/* --- wishes ----------------------------------------------------------------------------- */

static enum lk_status tell(struct lk_trainer *trainer, const char *text)
{
    return lk_trainer_report(trainer,
                             (struct lk_event){.kind = LK_EVENT_CALLBACK, .text = text});
}

/* Reads the state of an earlier step on rank 0. A checkpoint that could not be written, or was
 * damaged since, is no reason to lose the last state too: then *step becomes 0. */
static enum lk_status read_back(struct lk_trainer *trainer, int64_t *step)
{
    const enum lk_status status = lk_trainer_restore(trainer, *step);
    if (status != LK_E_IO && status != LK_E_DATA)
        return status;
    lk_log(LK_LOG_WARNING,
           "the state of step %lld cannot be restored, the run ends with that of step %lld: %s",
           (long long)*step, (long long)trainer->done, lk_error_text());
    lk_error_clear();
    *step = 0;
    return LK_OK;
}

/* The state of an earlier step, which rank 0 has read, becomes that of the run, on all ranks,
 * and is evaluated. */
static enum lk_status restore(struct lk_trainer *trainer, int64_t step)
{
    char text[64];
    LK_TRY(lk_trainer_broadcast_state(trainer));
    snprintf(text, sizeof text, "the state of step %lld is restored", (long long)step);
    LK_TRY(tell(trainer, text));
    LK_TRY(lk_trainer_validate(trainer));
    trainer->evaluated_step = trainer->done; /* the run's last evaluation is of this state */
    return LK_OK;
}

/* Ends the run here where one wishes so; then it may end with an earlier state. */
static enum lk_status end_run(struct lk_trainer *trainer, const struct lk_callback_wish *wish)
{
    int64_t told[2] = {wish->stop == LK_CALLBACK_ENDS,
                       0}; /* whether it ends, what is restored */
    LK_TRY(lk_world_broadcast(trainer->world, sizeof told, told));
    if (told[0] && trainer->done < trainer->total_steps) {
        trainer->total_steps = trainer->done;
        LK_TRY(tell(trainer, wish->reason));
    }
    if (trainer->done < trainer->total_steps)
        return LK_OK;
    if (lk_world_rank(trainer->world) == 0) {
        lk_callbacks_end(trainer->callbacks);
        told[1] = lk_callbacks_take_wish(trainer->callbacks, true).restores;
        if (told[1] == trainer->done)
            told[1] = 0;
        if (told[1] > 0)
            LK_TRY(read_back(trainer, &told[1]));
    }
    LK_TRY(lk_world_broadcast(trainer->world, sizeof told, told));
    return told[1] > 0 ? restore(trainer, told[1]) : LK_OK;
}

enum lk_status lk_trainer_obey(struct lk_trainer *trainer, bool is_agreed, bool saves,
                               bool *wants_checkpoint)
{
    struct lk_callbacks *callbacks = trainer->callbacks;
    if (!lk_callbacks_follow(callbacks))
        return LK_OK;
    if (lk_world_rank(trainer->world) == 0)
        LK_TRY(lk_callbacks_pause(callbacks, trainer->done,
                                  saves || lk_callbacks_wish(callbacks)->saves));
    const struct lk_callback_wish wish = lk_callbacks_take_wish(callbacks, is_agreed);
    *wants_checkpoint = wish.saves;
    if (wish.stop == LK_CALLBACK_FAILS)
        return lk_fail(LK_E_DATA, "%s; no checkpoint was written since", wish.reason);
    if (!is_agreed)
        return LK_OK;
    if (wish.stop == LK_CALLBACK_INTERRUPTS)
        snprintf(trainer->why_stopped, sizeof trainer->why_stopped, "%s", wish.reason);
    return end_run(trainer, &wish);
}

#include "train/trainer_parts.h"

#include "base/fail.h"
#include "base/log.h"
#include "mirror/shards.h"
#include "model/checkpoint.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum lk_status lk_trainer_report(struct lk_trainer *trainer, struct lk_event event,
                                 const struct lk_step_times *times)
{
    event.step = trainer->done;
    event.steps = trainer->total_steps;
    event.epochs = trainer->settings->epochs;
    if (event.kind != LK_EVENT_STEP)
        event.epoch = trainer->done / trainer->steps_per_epoch;
    event.seconds = lk_seconds() - trainer->started;
    char *line = NULL;
    LK_TRY(lk_event_print(&event, times, &line));
    event.json = line;
    const enum lk_status status = lk_run_folder_log(trainer->folder, line);
    if (status == LK_OK && trainer->handler)
        trainer->handler(trainer->context, &event);
    free(line);
    return status;
}

static enum lk_status create_stepper(struct lk_trainer *trainer)
{
    const struct lk_settings *s = trainer->settings;
    char kind[64];
    const char *options;
    lk_settings_split_optimizer(s, kind, &options);
    trainer->shards = s->shards ? (int)s->shards : lk_shards_choose(s->batch_size);
    const struct lk_stepper_config config = {
        .device = trainer->device,
        .images = lk_model_input(trainer->model, 0),
        .labels = trainer->labels,
        .loss = trainer->loss,
        .batch = s->batch_size,
        .shards = trainer->shards,
        .real = LK_F32,
        .seed = (uint64_t)s->seed,
        .optimizer = kind,
        .optimizer_options = options,
    };
    LK_TRY(lk_stepper_create(&config, &trainer->stepper));
    if (atomic_load(&trainer->load.has_failed)) /* no need to build kernels first */
        LK_TRY(lk_data_load_join(&trainer->load));
    LK_TRY(lk_stepper_build(trainer->stepper));
    trainer->rate =
        s->lr > 0 ? s->lr : lk_optimizer_rate(lk_stepper_optimizer(trainer->stepper));
    return LK_OK;
}

static enum lk_status open_device(struct lk_trainer *trainer)
{
    const struct lk_settings *s = trainer->settings;
    int devices = 0;
    if (s->mode == LK_TRAIN_ASYNC)
        return lk_fail(LK_E_UNSUPPORTED, "mode async needs several devices, which this version "
                                         "does not train on yet");
    LK_TRY(lk_device_list_count(s->device, &devices));
    if (devices > 1)
        return lk_fail(LK_E_UNSUPPORTED,
                       "device list '%s' names %d devices; this version trains on one",
                       s->device, devices);
    LK_TRY(lk_device_open(s->device, 0, &trainer->device));
    lk_device_set_log_folder(trainer->device, lk_run_folder_path(trainer->folder));
    return LK_OK;
}

static enum lk_status open_batches(struct lk_trainer *trainer)
{
    const struct lk_settings *s = trainer->settings;
    const struct lk_batches_options options = {
        .size = (int)s->batch_size, .seed = (uint64_t)s->seed, .shuffle = s->shuffle};
    LK_TRY(lk_data_load_join(&trainer->load));
    LK_TRY(lk_check_data(trainer->model, trainer->load.train));
    if (trainer->load.validation)
        LK_TRY(lk_check_data(trainer->model, trainer->load.validation));
    LK_TRY(lk_data_sum(trainer->load.train, trainer->data_sum));
    const int64_t count = lk_data_info(trainer->load.train)->count;
    trainer->steps_per_epoch = lk_divide_up(count, s->batch_size);
    if (__builtin_mul_overflow(trainer->steps_per_epoch, s->epochs, &trainer->total_steps))
        return lk_fail(LK_E_ARGUMENT, "%lld epochs are too many", (long long)s->epochs);
    if (s->steps > 0 && s->steps < trainer->total_steps)
        trainer->total_steps = s->steps;
    return lk_batches_create(trainer->load.train, &options, &trainer->batches);
}

/* Evaluation uses the trained weights in place, in batches of the training's size. Its memory
 * is taken now: what does not fit is said before the first step. */
static enum lk_status create_evaluator(struct lk_trainer *trainer)
{
    if (!trainer->load.validation)
        return LK_OK;
    return lk_evaluator_create(trainer->device, trainer->model, trainer->settings->batch_size,
                               lk_stepper_replica(trainer->stepper), &trainer->evaluator);
}

static enum lk_status announce(struct lk_trainer *trainer)
{
    const struct lk_device_info *device = lk_device_info(trainer->device);
    char text[512];
    int64_t parameters = 0;
    const struct lk_param *param;
    for (int i = 0; (param = lk_replica_param(lk_stepper_replica(trainer->stepper), i)); i++)
        parameters += param->count;
    int used = snprintf(text, sizeof text,
                        "%s, %lld parameters, on %s; %lld samples, batches of %lld in %d "
                        "shard%s",
                        lk_model_name(trainer->model), (long long)parameters, device->name,
                        (long long)lk_data_info(trainer->load.train)->count,
                        (long long)trainer->settings->batch_size, trainer->shards,
                        trainer->shards == 1 ? "" : "s");
    if (trainer->done > 0 && used > 0 && used < (int)sizeof text)
        snprintf(text + used, sizeof text - (size_t)used, "; going on after step %lld",
                 (long long)trainer->done);
    return lk_trainer_report(trainer, (struct lk_event){.kind = LK_EVENT_START, .text = text},
                             NULL);
}

static enum lk_status create(struct lk_trainer *trainer)
{
    LK_TRY(lk_settings_open_model(trainer->settings, &trainer->model));
    LK_TRY(lk_schedule_parse(trainer->settings->schedule, &trainer->schedule));
    LK_TRY(lk_data_load_start(&trainer->load, trainer->settings));
    LK_TRY(lk_run_folder_open(trainer->settings->run, &trainer->folder));
    LK_TRY(lk_profile_open(trainer->settings->profile, trainer->settings->profile_steps,
                           &trainer->profile));
    if (!trainer->settings->fresh)
        LK_TRY(lk_trainer_check_resume(trainer));
    LK_TRY(lk_model_add_loss(trainer->model, &trainer->labels, &trainer->loss));
    LK_TRY(open_device(trainer));
    LK_TRY(create_stepper(trainer));
    LK_TRY(open_batches(trainer));
    LK_TRY(create_evaluator(trainer));
    if (trainer->settings->fresh)
        LK_TRY(lk_run_folder_start_over(trainer->folder));
    if (trainer->checkpoint)
        LK_TRY(lk_trainer_resume(trainer));
    LK_TRY(lk_run_folder_begin(trainer->folder, trainer->settings,
                               lk_device_info(trainer->device), trainer->done,
                               trainer->done == trainer->total_steps));
    return announce(trainer);
}

enum lk_status lk_trainer_create(const struct lk_settings *settings,
                                 void (*handler)(void *, const struct lk_event *),
                                 void *context, struct lk_trainer **trainer)
{
    struct lk_trainer *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("a trainer", sizeof *made);
    made->handler = handler;
    made->context = context;
    made->started = lk_seconds();
    enum lk_status status = lk_settings_copy(settings, &made->settings);
    if (status == LK_OK)
        status = create(made);
    if (status != LK_OK) {
        lk_trainer_destroy(made);
        return status;
    }
    *trainer = made;
    return LK_OK;
}

void lk_trainer_destroy(struct lk_trainer *trainer)
{
    if (!trainer)
        return;
    (void)!lk_data_load_join(&trainer->load);
    (void)!lk_profile_close(trainer->profile);
    lk_checkpoint_close(trainer->checkpoint);
    lk_evaluator_destroy(trainer->evaluator);
    lk_stepper_destroy(trainer->stepper);
    lk_batches_destroy(trainer->batches);
    lk_data_close(trainer->load.train);
    lk_data_close(trainer->load.validation);
    lk_device_close(trainer->device);
    lk_model_destroy(trainer->model);
    lk_run_folder_close(trainer->folder);
    lk_settings_destroy(trainer->settings);
    free(trainer);
}

void lk_trainer_stop(struct lk_trainer *trainer)
{
    atomic_store(&trainer->stop, true);
}

/* Fills a slot with the next batch and sends step `step` on its way. */
static enum lk_status start_step(struct lk_trainer *trainer, int64_t step)
{
    const int slot = (int)(step % LK_REPLICA_SLOTS);
    struct lk_flight *flight = &trainer->flights[slot];
    const double start = lk_seconds();
    const int64_t count = lk_batches_size(trainer->batches, step - 1);
    LK_TRY(lk_batches_read(trainer->batches, step - 1, 0, count,
                           lk_stepper_images(trainer->stepper, slot),
                           lk_stepper_labels(trainer->stepper, slot)));
    *flight = (struct lk_flight){
        .samples = count,
        .lr = lk_schedule_rate(&trainer->schedule, trainer->rate, step),
        .input_ms = 1e3 * (lk_seconds() - start),
    };
    const double read = lk_seconds();
    lk_profile_step(trainer->profile, trainer->device, step);
    lk_profile_span(trainer->profile, "trainer", "read batch", step, start, read);
    LK_TRY(lk_stepper_enqueue(trainer->stepper, slot, count, flight->lr, step));
    lk_profile_span(trainer->profile, "trainer", "enqueue", step, read, lk_seconds());
    return LK_OK;
}

static void warn_of_divergence(struct lk_trainer *trainer, double loss)
{
    if (isfinite(loss) || trainer->has_warned)
        return;
    lk_log(LK_LOG_WARNING,
           "the loss is no longer a number at step %lld: a lower learning rate "
           "may help",
           (long long)trainer->done);
    trainer->has_warned = true;
}

static enum lk_status finish_step(struct lk_trainer *trainer, int64_t step)
{
    const int slot = (int)(step % LK_REPLICA_SLOTS);
    const struct lk_flight *flight = &trainer->flights[slot];
    const double start = lk_seconds();
    struct lk_step_result result;
    LK_TRY(lk_stepper_wait(trainer->stepper, slot, &result));
    const double now = lk_seconds(), seconds = now - trainer->last_finish;
    const struct lk_step_times times = {
        .compute_ms = result.compute_ms,
        .transfer_ms = result.transfer_ms,
        .reduce_ms = result.reduce_ms,
        .wait_ms = 1e3 * (now - start),
        .input_ms = flight->input_ms,
    };
    trainer->last_finish = now;
    trainer->done = step;
    lk_profile_span(trainer->profile, "trainer", "wait", step, start, now);
    lk_profile_take(trainer->profile, trainer->device, 0, step);
    warn_of_divergence(trainer, result.loss);
    return lk_trainer_report(trainer,
                             (struct lk_event){
                                 .kind = LK_EVENT_STEP,
                                 .epoch = (step - 1) / trainer->steps_per_epoch,
                                 .loss = result.loss,
                                 .accuracy = result.accuracy,
                                 .samples_per_s = (double)flight->samples / seconds,
                                 .step_ms = 1e3 * seconds,
                                 .lr = flight->lr,
                             },
                             &times);
}

/* Trains up to step `last`, one step always on its way while the next one's batch is read; when
 * it returns none is. Stops early when asked to. */
static enum lk_status run_steps(struct lk_trainer *trainer, int64_t last)
{
    trainer->last_finish = lk_seconds();
    LK_TRY(start_step(trainer, trainer->done + 1));
    for (int64_t step = trainer->done + 1; step <= last; step++) {
        if (atomic_load(&trainer->stop))
            last = step;
        if (step < last)
            LK_TRY(start_step(trainer, step + 1));
        LK_TRY(finish_step(trainer, step));
    }
    return LK_OK;
}

static enum lk_status evaluate(struct lk_trainer *trainer)
{
    struct lk_evaluation result;
    const double start = lk_seconds();
    if (!trainer->evaluator)
        return LK_OK;
    LK_TRY(lk_evaluator_run(trainer->evaluator, trainer->load.validation, &result));
    lk_profile_span(trainer->profile, "trainer", "evaluate", trainer->done, start,
                    lk_seconds());
    lk_profile_take(trainer->profile, trainer->device, 0, trainer->done);
    return lk_trainer_report(trainer,
                             (struct lk_event){.kind = LK_EVENT_EVALUATION,
                                               .loss = result.loss,
                                               .accuracy = result.accuracy},
                             NULL);
}

static int64_t next_multiple(int64_t done, int64_t of)
{
    return (done / of + 1) * of;
}

/* The step after which something else has to happen. */
static int64_t next_stop(const struct lk_trainer *trainer)
{
    const int64_t every = trainer->settings->checkpoint_every;
    int64_t stop = next_multiple(trainer->done, trainer->steps_per_epoch);
    if (every > 0 && next_multiple(trainer->done, every) < stop)
        stop = next_multiple(trainer->done, every);
    return stop < trainer->total_steps ? stop : trainer->total_steps;
}

static enum lk_status finish(struct lk_trainer *trainer)
{
    char hash[65];
    LK_TRY(lk_parameters_sha256(lk_stepper_replica(trainer->stepper), hash));
    LK_TRY(lk_trainer_report(trainer, (struct lk_event){.kind = LK_EVENT_END, .hash = hash},
                             NULL));
    return lk_run_folder_flush(trainer->folder);
}

static enum lk_status run(struct lk_trainer *trainer)
{
    const int64_t every = trainer->settings->checkpoint_every;
    bool is_evaluated = false;
    while (trainer->done < trainer->total_steps && !atomic_load(&trainer->stop)) {
        LK_TRY(run_steps(trainer, next_stop(trainer)));
        const bool ends = trainer->done == trainer->total_steps;
        const bool ends_epoch = trainer->done % trainer->steps_per_epoch == 0;
        if (every == 0 || ends || trainer->done % every == 0 || atomic_load(&trainer->stop))
            LK_TRY(lk_trainer_save(trainer));
        is_evaluated = (ends_epoch || ends) && !atomic_load(&trainer->stop);
        if (is_evaluated)
            LK_TRY(evaluate(trainer));
    }
    if (trainer->done < trainer->total_steps)
        return lk_fail(LK_E_INTERRUPTED, "interrupted after step %lld of %lld",
                       (long long)trainer->done, (long long)trainer->total_steps);
    if (!is_evaluated)
        LK_TRY(evaluate(trainer));
    return finish(trainer);
}

enum lk_status lk_trainer_run(struct lk_trainer *trainer)
{
    LK_TRY(lk_profile_add(trainer->profile, trainer->device, 0));
    const enum lk_status status = run(trainer), closed = lk_profile_close(trainer->profile);
    trainer->profile = NULL;
    return status == LK_OK ? closed : status;
}

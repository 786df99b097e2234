/* Creates a trainer in order: devices, data, model, run directory, checkpoint. */
#include "train/follow.h"

#include "base/clock.h"
#include "base/fail.h"
#include "data/batches/measure.h"
#include "graph/planes.h"
#include "mirror/shards.h"
#include "model/checkpoint/checkpoint.h"
#include "model/classes.h"
#include "model/foreign/weights.h"
#include "train/place/place.h"
#include "train/saving.h"
#include "train/settings/fit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WARMUP_EPOCHS = 5 };

enum lk_status lk_trainer_report(struct lk_trainer *trainer, struct lk_event event)
{
    if (event.kind != LK_EVENT_CHECKPOINT) /* which may be of an earlier one */
        event.step = trainer->done;
    event.steps = trainer->total_steps > trainer->done ? trainer->total_steps : trainer->done;
    event.epochs = trainer->settings->epochs;
    if (event.kind != LK_EVENT_STEP)
        event.epoch = trainer->done / trainer->steps_per_epoch;
    event.seconds = lk_seconds() - trainer->started;
    event.loss_scale = trainer->loss_scale;
    event.skipped_steps = trainer->skipped;
    char *line = NULL;
    if (trainer->callbacks && lk_world_rank(trainer->world) == 0)
        LK_TRY(lk_callbacks_see(trainer->callbacks, &event));
    LK_TRY(lk_event_print(&event, &line));
    event.json = line;
    const enum lk_status status = lk_run_folder_log(trainer->folder, line);
    if (status == LK_OK && trainer->handler)
        trainer->handler(trainer->context, &event);
    free(line);
    return status;
}

static enum lk_status check_modes(const struct lk_trainer *trainer)
{
    const struct lk_settings *s = trainer->settings;
    if (s->mode == LK_TRAIN_SYNC && s->max_staleness >= 0)
        return lk_fail(LK_E_ARGUMENT, "--max-staleness %lld is for --mode async",
                       (long long)s->max_staleness);
    if (s->loss_scale > 0 && s->precision != LK_PRECISION_MIXED)
        return lk_fail(LK_E_ARGUMENT, "loss_scale %g is for --precision mixed", s->loss_scale);
    if (s->mode == LK_TRAIN_ASYNC && s->precision == LK_PRECISION_MIXED)
        return lk_fail(LK_E_ARGUMENT,
                       "--precision mixed is for --mode sync: a step that overflows halves is "
                       "left out everywhere at once");
    if (s->mode == LK_TRAIN_ASYNC && lk_world_size(trainer->world) > 1)
        return lk_fail(LK_E_ARGUMENT, "mode async is for the devices of one rank, found %d",
                       lk_world_size(trainer->world));
    return LK_OK;
}

/* Of a run that goes on its checkpoint has said. What trains in no plane tiles anywhere is
 * refused; devices and models of which that is true are told of when training begins. */
static enum lk_status choose_tiles(struct lk_trainer *trainer)
{
    const struct lk_settings *s = trainer->settings;
    trainer->shards = s->shards ? (int)s->shards : lk_shards_choose(s->batch_size);
    if (!trainer->checkpoint)
        trainer->asks_planes =
            lk_settings_ask_planes(s, trainer->model, s->batch_size, trainer->shards);
    LK_TRY(
        lk_world_broadcast(trainer->world, sizeof trainer->asks_planes, &trainer->asks_planes));
    if (s->tiles != LK_TRAIN_PLANE_TILES)
        return LK_OK;
    if (s->precision == LK_PRECISION_MIXED)
        return lk_fail(LK_E_ARGUMENT, "tiles planes is for --precision float");
    if (trainer->features.is_on)
        return lk_fail(LK_E_ARGUMENT, "tiles planes is not for --cache-features");
    return LK_OK;
}

static enum lk_status create_team(struct lk_trainer *trainer)
{
    const struct lk_settings *s = trainer->settings;
    char kind[64];
    const char *options;
    size_t memory_limit;
    int places;
    LK_TRY(lk_place_count(trainer->model, s->place, s->device, &places));
    LK_TRY(lk_memory_limit_parse(s->memory_limit, &memory_limit));
    lk_settings_split_optimizer(s, kind, &options);
    const struct lk_team_config config = {
        .devices = s->device,
        .places = places,
        .split = s->split,
        .log_folder = lk_run_folder_path(trainer->folder),
        .loss = trainer->loss,
        .feed = &trainer->feed,
        .batch = s->batch_size,
        .shards = trainer->shards,
        .pieces = (int)s->accumulate,
        .transform = &trainer->transform,
        .real = LK_F32,
        .loss_scale = lk_settings_loss_scale(s),
        .seed = (uint64_t)s->seed,
        .optimizer = kind,
        .optimizer_options = options,
        .clip = {s->clip_value, s->clip_norm},
        .ema = s->ema,
        .choices = trainer->choices,
        .part = trainer->features.is_on ? LK_PART_HEAD : LK_PART_ALL,
        .recompute = (enum lk_recompute_mode)s->recompute,
        .few_samples = trainer->asks_planes,
        .memory_limit = memory_limit,
        .check_every = s->check_every,
        .is_async = s->mode == LK_TRAIN_ASYNC,
        .max_staleness = s->max_staleness,
        .world = trainer->world,
        .in_any_order = s->all_reduce == LK_ALL_REDUCE_MPI,
        .opened = lk_trainer_tune,
        .leaves = lk_trainer_leave_stepper,
        .context = trainer,
    };
    LK_TRY(check_modes(trainer));
    LK_TRY(lk_team_create(&config, &trainer->team));
    if (atomic_load(&trainer->load.has_failed)) /* no need to build kernels first */
        LK_TRY(lk_data_load_join(&trainer->load));
    LK_TRY(lk_trainer_check(trainer)); /* while its memory is not taken yet */
    LK_TRY(lk_team_build(trainer->team));
    struct lk_stepper *stepper = lk_team_lead(trainer->team)->stepper;
    trainer->rate = s->lr > 0 ? s->lr : lk_optimizer_rate(lk_stepper_optimizer(stepper));
    return LK_OK;
}

/* source: Goyal et al. arXiv:1706.02677, linear scaling with gradual warm-up */
static void scale_rate(struct lk_trainer *trainer)
{
    const struct lk_settings *s = trainer->settings;
    if (s->scale_lr == 0)
        return;
    trainer->rate *= (double)s->batch_size / (double)s->scale_lr;
    if (trainer->schedule.warmup == 0)
        trainer->schedule.warmup = WARMUP_EPOCHS * trainer->steps_per_epoch;
}

static const struct lk_pipeline no_pipeline = {0};

static bool is_read(const struct lk_trainer *trainer, const char *name)
{
    const struct lk_data_info *info = lk_data_info(trainer->load.train);
    for (int i = 0; i < trainer->feed.count; i++)
        if (strcmp(info->fields[trainer->feed.rows[i].field].name, name) == 0)
            return true;
    return false;
}

/* The pipeline with what is measured over the training data, of the fields that the model
 * reads: other data need not have the rest. */
static enum lk_status resolve(struct lk_trainer *trainer, const char *text, bool is_training,
                              struct lk_standardize *known, char **resolved)
{
    struct lk_pipeline pipeline;
    struct lk_standardize numbers;
    int kept = 0;
    LK_TRY(lk_pipeline_resolve_again(trainer->load.train, text, known, resolved));
    LK_TRY(lk_pipeline_parse(*resolved, is_training, &pipeline));
    if (!pipeline.standardizes)
        return LK_OK;
    LK_TRY(lk_standardize_parse(pipeline.standardize, &numbers));
    for (int i = 0; i < numbers.field_count; i++)
        if (is_read(trainer, numbers.fields[i].name))
            numbers.fields[kept++] = numbers.fields[i];
    numbers.field_count = kept;
    pipeline.standardizes = kept > 0;
    free(*resolved);
    *resolved = malloc(LK_PIPELINE_TEXT);
    if (!*resolved)
        return lk_fail_memory("a pipeline", LK_PIPELINE_TEXT);
    if (!lk_standardize_print(&numbers, pipeline.standardize, sizeof pipeline.standardize) ||
        !lk_pipeline_print(&pipeline, *resolved, LK_PIPELINE_TEXT))
        return lk_fail(LK_E_ARGUMENT, "the pipeline has more than %d characters",
                       LK_PIPELINE_TEXT - 1);
    return LK_OK;
}

static enum lk_status open_batches(struct lk_trainer *trainer)
{
    const struct lk_settings *s = trainer->settings;
    const struct lk_data_options size = lk_data_wanted(trainer->model, &no_pipeline);
    int targets[LK_MOST_OUTPUTS];
    struct lk_feed unused;
    struct lk_standardize known = {0};
    struct lk_batches_options options = lk_settings_batches(s);
    options.height = size.height;
    options.width = size.width;
    if (trainer->features.is_on) /* none of them is read */
        options.threads = 0;
    LK_TRY(lk_data_load_join(&trainer->load));
    LK_TRY(lk_trainer_read_classes(trainer));
    LK_TRY(lk_binding_make(trainer->model, trainer->load.train, &trainer->feed, targets));
    LK_TRY(lk_binding_take_classes(trainer->model, trainer->load.train, targets));
    LK_TRY(lk_model_print_classes(trainer->model, &trainer->classes_text));
    if (trainer->load.validation)
        LK_TRY(lk_binding_make(trainer->model, trainer->load.validation, &unused, targets));
    LK_TRY(resolve(trainer, s->pipeline, true, &known, &trainer->text));
    LK_TRY(resolve(trainer, s->eval_pipeline, false, &known, &trainer->eval_text));
    options.pipeline = trainer->text;
    LK_TRY(lk_data_fingerprint(trainer->load.train, &trainer->feed, trainer->data_sum));
    LK_TRY(lk_trainer_compare_data(trainer));
    const int64_t count = lk_data_info(trainer->load.train)->count;
    trainer->steps_per_epoch =
        s->drop_remainder ? count / s->batch_size : lk_divide_up(count, s->batch_size);
    if (__builtin_mul_overflow(trainer->steps_per_epoch, s->epochs, &trainer->total_steps))
        return lk_fail(LK_E_ARGUMENT, "%lld epochs are too many", (long long)s->epochs);
    if (s->steps > 0 && s->steps < trainer->total_steps)
        trainer->total_steps = s->steps;
    options.end = trainer->total_steps;
    LK_TRY(lk_eval_period_parse(s->eval_every, &trainer->eval_period));
    scale_rate(trainer);
    LK_TRY(lk_batches_create(trainer->load.train, &options, &trainer->batches));
    LK_TRY(lk_features_check(trainer));
    lk_team_set_batches(trainer->team, trainer->batches);
    return LK_OK;
}

/* Writes what the run directory has before the next step. */
static enum lk_status begin_folder(struct lk_trainer *trainer,
                                   struct lk_setting_changes *changes)
{
    const bool goes_on = trainer->done < trainer->total_steps || trainer->owes_evaluation;
    const enum lk_run_progress progress = trainer->done == 0 ? LK_RUN_BEGINS
                                          : goes_on          ? LK_RUN_GOES_ON
                                                             : LK_RUN_IS_FINISHED;
    LK_TRY(lk_trainer_describe(trainer, progress, changes));
    return lk_run_folder_begin(trainer->folder, trainer->done,
                               trainer->owes_evaluation || progress == LK_RUN_IS_FINISHED);
}

enum lk_status lk_trainer_use_pipelines(struct lk_trainer *trainer)
{
    struct lk_settings *s = trainer->settings;
    if (!lk_pipeline_print(&trainer->pipeline, s->pipeline, sizeof s->pipeline))
        return lk_fail(LK_E_ARGUMENT, "the pipeline has more than %zu characters",
                       sizeof s->pipeline - 1);
    if (!lk_pipeline_print(&trainer->eval_pipeline, s->eval_pipeline, sizeof s->eval_pipeline))
        return lk_fail(LK_E_ARGUMENT, "the pipeline of evaluation has more than %zu characters",
                       sizeof s->eval_pipeline - 1);
    LK_TRY(lk_model_transform(trainer->model, &trainer->pipeline, &trainer->transform));
    return lk_model_transform(trainer->model, &trainer->eval_pipeline,
                              &trainer->eval_transform);
}

/* Evaluation without a pipeline of its own has what follows from that of training. */
static enum lk_status read_pipelines(struct lk_trainer *trainer)
{
    struct lk_settings *s = trainer->settings;
    LK_TRY(lk_pipeline_parse(s->pipeline, true, &trainer->pipeline));
    if (*s->eval_pipeline)
        LK_TRY(lk_pipeline_parse(s->eval_pipeline, false, &trainer->eval_pipeline));
    else
        trainer->eval_pipeline = lk_pipeline_evaluation(&trainer->pipeline);
    return lk_trainer_use_pipelines(trainer);
}

/* Whether the pipeline's one_hot suits what is trained: one class a sample, or a weight for
 * each class. A class for each step is refused rather than left as it is without a word. */
static enum lk_status check_one_hot(const struct lk_model *model)
{
    bool is_used = false;
    for (int i = 0; i < model->output_count; i++) {
        const struct lk_model_output *output = &model->outputs[i];
        const enum lk_metric_form form = output->shape.form;
        if (!output->loss_node)
            continue;
        if (form == LK_FORM_CLASS && output->shape.time_steps > 1)
            return lk_fail(LK_E_ARGUMENT,
                           "the pipeline's one_hot is for one class a sample; output '%s' of "
                           "model '%s' predicts a class for each step, whose labels cannot be "
                           "smoothed",
                           output->name, lk_model_name(model));
        is_used |= form == LK_FORM_CLASS || form == LK_FORM_DISTRIBUTION;
    }
    return is_used ? LK_OK
                   : lk_fail(LK_E_ARGUMENT,
                             "the pipeline's one_hot is for an output that predicts one class "
                             "a sample, model '%s' has none",
                             lk_model_name(model));
}

static enum lk_status add_loss(struct lk_trainer *trainer)
{
    const struct lk_pipeline *p = &trainer->pipeline;
    const struct lk_model *model = trainer->model;
    LK_TRY(
        lk_model_add_losses(trainer->model, p->is_one_hot ? p->smoothing : -1, &trainer->loss));
    if (p->is_one_hot)
        LK_TRY(check_one_hot(model));
    for (int i = 0; i < model->output_count; i++)
        trainer->has_accuracy |=
            model->outputs[i].loss_node && model->outputs[i].shape.form != LK_FORM_VALUES;
    return LK_OK;
}

/* Rank 0 alone validates. */
static enum lk_status check_plateau(const struct lk_trainer *trainer)
{
    if (trainer->schedule.kind != LK_LR_SCHEDULE_PLATEAU)
        return LK_OK;
    if (trainer->eval_period.minutes > 0)
        return lk_fail(LK_E_ARGUMENT,
                       "a learning rate that follows the validation needs one every so many "
                       "steps or epochs, found eval_every %s: by the clock no two runs would "
                       "be the same",
                       trainer->settings->eval_every);
    if (trainer->monitor || lk_world_rank(trainer->world) > 0)
        return LK_OK;
    if (!trainer->load.validation)
        return lk_fail(LK_E_ARGUMENT,
                       "the learning-rate schedule 'plateau' follows the validation, and there "
                       "is no validation data: --val SPEC would do");
    if (trainer->schedule.monitor == LK_MONITOR_ACCURACY && !trainer->has_accuracy)
        return lk_fail(LK_E_ARGUMENT,
                       "the learning-rate schedule 'plateau' is to follow the accuracy, and "
                       "model '%s' predicts no class",
                       lk_model_name(trainer->model));
    return LK_OK;
}

static enum lk_status create(struct lk_trainer *trainer, struct lk_setting_changes *changes)
{
    LK_TRY(lk_settings_fit_to(trainer->settings, &trainer->load.train));
    LK_TRY(lk_settings_open_fitted(trainer->settings, &trainer->model));
    LK_TRY(read_pipelines(trainer));
    LK_TRY(lk_features_begin(trainer));
    LK_TRY(lk_lr_schedule_parse(trainer->settings->schedule, &trainer->schedule));
    LK_TRY(lk_trainer_join(trainer));
    LK_TRY(lk_data_load_start(trainer));
    LK_TRY(lk_run_folder_open(trainer->settings->run, &trainer->folder));
    LK_TRY(lk_profile_open(trainer->settings->profile, trainer->settings->profile_steps,
                           &trainer->profile));
    if (!trainer->settings->fresh)
        LK_TRY(lk_trainer_check_resume(trainer));
    LK_TRY(lk_world_broadcast(trainer->world, sizeof trainer->settings->shards,
                              &trainer->settings->shards));
    LK_TRY(choose_tiles(trainer));
    LK_TRY(add_loss(trainer));
    LK_TRY(lk_trainer_open_weights(trainer));
    LK_TRY(lk_trainer_open_choices(trainer));
    LK_TRY(create_team(trainer));
    LK_TRY(open_batches(trainer));
    LK_TRY(lk_trainer_create_callbacks(trainer));
    LK_TRY(check_plateau(trainer));
    LK_TRY(lk_trainer_open_evaluator(trainer));
    if (trainer->settings->fresh)
        LK_TRY(lk_run_folder_start_over(trainer->folder));
    if (trainer->checkpoint)
        LK_TRY(lk_trainer_resume(trainer));
    LK_TRY(lk_trainer_put_weights(trainer));
    LK_TRY(begin_folder(trainer, changes));
    LK_TRY(lk_trainer_open_callbacks(trainer));
    LK_TRY(lk_trainer_broadcast_state(trainer));
    LK_TRY(lk_trainer_announce(trainer));
    return lk_trainer_announce_changes(trainer, changes);
}

enum lk_status lk_trainer_create_with(struct lk_settings *settings,
                                      void (*handler)(void *, const struct lk_event *),
                                      void *context, struct lk_trainer **trainer, bool *again)
{
    struct lk_trainer *made = calloc(1, sizeof *made);
    *again = false;
    if (!made)
        return lk_fail_memory("a trainer", sizeof *made);
    made->handler = handler;
    made->context = context;
    made->started = lk_seconds();
    made->stop_after = INT64_MAX;
    enum lk_status status = lk_settings_copy(settings, &made->settings);
    if (status == LK_OK)
        status = lk_settings_hold_out(made->settings);
    if (status == LK_OK)
        status = lk_world_open(&made->world);
    if (status == LK_OK) {
        struct lk_setting_changes changes = {0};
        status = create(made, &changes);
        lk_setting_changes_clear(&changes);
        *again = (status == LK_E_DEVICE || status == LK_E_BUILD) &&
                 lk_trainer_take_left(made, settings);
        if (status != LK_OK)
            status = lk_world_fail(made->world, status);
    }
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
    lk_world_close(trainer->world);
    (void)!lk_data_load_join(&trainer->load);
    (void)!lk_profile_close(trainer->profile);
    lk_checkpoint_close(trainer->checkpoint);
    lk_foreign_close(trainer->weights);
    lk_trainer_forget_state(trainer);
    lk_callbacks_destroy(trainer->callbacks);
    lk_team_destroy(trainer->team);
    lk_batches_destroy(trainer->batches);
    lk_features_clear(&trainer->features);
    lk_evaluated_features_clear(&trainer->evaluated);
    lk_data_close(trainer->load.train);
    lk_data_close(trainer->load.validation);
    lk_model_destroy(trainer->model);
    lk_run_folder_close(trainer->folder);
    lk_settings_destroy(trainer->settings);
    lk_choices_destroy(trainer->choices);
    lk_choices_destroy(trainer->tuned);
    lk_choices_destroy(trainer->blockings);
    free(trainer->classes_text);
    free(trainer->kept_vocabulary);
    free(trainer->settings_text);
    free(trainer->text);
    free(trainer->eval_text);
    free(trainer);
}

void lk_trainer_stop(struct lk_trainer *trainer)
{
    atomic_store(&trainer->stop, true);
}

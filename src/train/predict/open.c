/* Opens predictors: a trained model of a run, or a model with the weights of a file. */
#include "train/predict/predictor.h"

#include "base/fail.h"
#include "io/file.h"
#include "model/classes.h"
#include "model/foreign/weights.h"
#include "train/settings/fit.h"
#include "train/settings/settings.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum lk_status lk_run_open_model(const char *path, struct lk_model **model)
{
    char found[1024];
    struct lk_checkpoint_file *file = NULL;
    LK_TRY(lk_checkpoint_find(path, found, sizeof found));
    LK_TRY(lk_checkpoint_open(found, &file));
    const struct lk_checkpoint *about = lk_checkpoint_metadata(file);
    const enum lk_status status =
        lk_model_read(about->model_text, strlen(about->model_text), about->model, model);
    lk_checkpoint_close(file);
    return status;
}

/* Numbers that come without a data set are standardized here, as the data's pipeline did in
 * training. */
static enum lk_status bind_standardize(struct lk_predictor *predictor)
{
    struct lk_field inputs[LK_MOST_INPUTS];
    int count = 0;
    if (!predictor->pipeline.standardizes)
        return LK_OK;
    while (lk_predictor_input(predictor, count, &inputs[count]))
        count++;
    return lk_standardize_open(predictor->pipeline.standardize, inputs, count,
                               &predictor->standardize);
}

/* A text without `loss:` predicts one class, if it is a vector of probabilities at all. */
static enum lk_status read_classes(struct lk_model *model, const char *classes)
{
    if (!classes || !*classes)
        return LK_OK;
    for (int i = 0; i < model->output_count; i++)
        if (!model->says_loss && !model->outputs[i].loss.kind)
            LK_TRY(lk_output_set_standard(model, &model->outputs[i]));
    return lk_model_read_classes(model, classes);
}

enum lk_status lk_predictor_open_about(struct lk_predictor *predictor,
                                       const struct lk_checkpoint *about, const char *device,
                                       int64_t batch)
{
    const bool is_own = about->validation[0] && strcmp(about->validation, "off") != 0;
    snprintf(predictor->data, sizeof predictor->data, "%s",
             is_own ? about->validation : about->data);
    snprintf(predictor->trained_with, sizeof predictor->trained_with, "%s", about->data);
    predictor->part = is_own ? LK_DATA_VALIDATION_OR_ALL : LK_DATA_VALIDATION;
    if (!predictor->model)
        LK_TRY(lk_model_read(about->model_text, strlen(about->model_text), about->model,
                             &predictor->model));
    struct lk_transform transform;
    LK_TRY(read_classes(predictor->model, about->classes));
    if (about->eval_pipeline) {
        LK_TRY(lk_pipeline_parse(about->eval_pipeline, false, &predictor->pipeline));
        predictor->text = strdup(about->eval_pipeline);
        if (!predictor->text)
            return lk_fail_memory("a pipeline", strlen(about->eval_pipeline));
    }
    predictor->vocabulary = strdup(about->vocabulary ? about->vocabulary : "");
    if (!predictor->vocabulary)
        return lk_fail_memory("a vocabulary", 0);
    if (about->max_bad)
        snprintf(predictor->max_bad, sizeof predictor->max_bad, "%s", about->max_bad);
    LK_TRY(bind_standardize(predictor));
    LK_TRY(lk_model_transform(predictor->model, &predictor->pipeline, &transform));
    LK_TRY(lk_device_open(device, 0, &predictor->device));
    if (about->choices)
        LK_TRY(lk_choices_open(about->choices, "its algorithms", &predictor->choices));
    const struct lk_evaluator_config config = {.device = predictor->device,
                                               .model = predictor->model,
                                               .batch = batch,
                                               .cuts = true,
                                               .few_too = predictor->serves,
                                               .transform = &transform,
                                               .pipeline = predictor->text,
                                               .choices = predictor->choices};
    return lk_evaluator_create(&config, &predictor->evaluator);
}

static enum lk_status open_file(struct lk_predictor *predictor,
                                const struct lk_checkpoint_file *file, const char *device,
                                int64_t batch)
{
    LK_TRY(lk_predictor_open_about(predictor, lk_checkpoint_metadata(file), device, batch));
    return lk_checkpoint_read_average(file, lk_evaluator_replica(predictor->evaluator));
}

static enum lk_status open_checkpoint(struct lk_predictor *predictor, const char *path,
                                      const char *device, int64_t batch)
{
    char found[1024];
    struct lk_checkpoint_file *file = NULL;
    LK_TRY(lk_checkpoint_find(path, found, sizeof found));
    LK_TRY(lk_checkpoint_open(found, &file));
    const enum lk_status status = open_file(predictor, file, device, batch);
    lk_checkpoint_close(file);
    return status;
}

static enum lk_status open_path(const char *path, const char *device, int64_t batch,
                                bool serves, struct lk_predictor **predictor)
{
    char onnx[1024];
    struct lk_predictor *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("a predictor", sizeof *made);
    made->serves = serves;
    const bool is_onnx = serves && lk_predictor_find_onnx(path, onnx, sizeof onnx);
    const enum lk_status status = is_onnx ? lk_predictor_open_onnx(made, onnx, device, batch)
                                          : open_checkpoint(made, path, device, batch);
    if (status != LK_OK) {
        lk_predictor_close(made);
        return status;
    }
    *predictor = made;
    return LK_OK;
}

enum lk_status lk_predictor_open(const char *path, const char *device, int64_t batch,
                                 struct lk_predictor **predictor)
{
    return open_path(path, device, batch, false, predictor);
}

enum lk_status lk_predictor_open_to_serve(const char *path, const char *device, int64_t batch,
                                          struct lk_predictor **predictor)
{
    return open_path(path, device, batch, true, predictor);
}

/* --- with weights of a file --------------------------------------------------------------- */

static bool is_of_run(const char *model)
{
    static const char ending[] = ".safetensors";
    const size_t length = strlen(model), end = sizeof ending - 1;
    return lk_folder_exists(model) ||
           (length > end && strcmp(model + length - end, ending) == 0);
}

/* The pipeline of evaluation that settings of a training have, with the normalization that the
 * weights expect where it has none, as that training would have it. */
static enum lk_status take_pipeline(struct lk_settings *s, const struct lk_model *model,
                                    const struct lk_foreign_weights *weights)
{
    struct lk_pipeline pipeline, other;
    LK_TRY(lk_pipeline_parse(s->pipeline, true, &other));
    if (*s->eval_pipeline)
        LK_TRY(lk_pipeline_parse(s->eval_pipeline, false, &pipeline));
    else
        pipeline = lk_pipeline_evaluation(&other);
    lk_model_take_images(model, s->weights, weights, &pipeline, &other);
    return lk_pipeline_print(&pipeline, s->eval_pipeline, sizeof s->eval_pipeline)
               ? LK_OK
               : lk_fail(LK_E_ARGUMENT, "the pipeline of evaluation is too long");
}

/* A model of the zoo or of a file, evaluated as a training by these settings would do it. */
static enum lk_status open_model(struct lk_predictor *predictor, struct lk_settings *s,
                                 const struct lk_foreign_options *options,
                                 struct lk_foreign_weights **weights)
{
    struct lk_model *model = NULL;
    LK_TRY(lk_settings_fit(s));
    LK_TRY(lk_settings_open_fitted(s, &model));
    enum lk_status status = lk_foreign_open(model, options, weights);
    if (status == LK_OK)
        status = take_pipeline(s, model, *weights);
    const struct lk_checkpoint about = {.model = lk_model_name(model),
                                        .model_text = lk_model_text(model),
                                        .data = s->data,
                                        .validation = s->validation,
                                        .eval_pipeline = s->eval_pipeline,
                                        .max_bad = s->max_bad};
    if (status == LK_OK)
        status = lk_predictor_open_about(predictor, &about, s->device, s->batch_size);
    lk_model_destroy(model);
    return status;
}

/* The model of a run, which keeps its own pipeline. */
static enum lk_status open_run(struct lk_predictor *predictor, const struct lk_settings *s,
                               const struct lk_foreign_options *options,
                               struct lk_foreign_weights **weights)
{
    char found[1024];
    struct lk_checkpoint_file *file = NULL;
    LK_TRY(lk_checkpoint_find(s->model, found, sizeof found));
    LK_TRY(lk_checkpoint_open(found, &file));
    const enum lk_status status = lk_predictor_open_about(
        predictor, lk_checkpoint_metadata(file), s->device, s->batch_size);
    lk_checkpoint_close(file);
    return status == LK_OK ? lk_foreign_open(predictor->model, options, weights) : status;
}

static enum lk_status open_weights(struct lk_predictor *predictor, struct lk_settings *s)
{
    const struct lk_foreign_options options = {
        .weights = s->weights, .skips_mismatch = s->skip_mismatch, .real = LK_F32};
    struct lk_foreign_weights *weights = NULL;
    struct lk_replica *replica;
    enum lk_status status;
    if (!*s->weights)
        return lk_fail(LK_E_ARGUMENT, "a model without weights predicts nothing");
    LK_TRY_OUT(is_of_run(s->model) ? open_run(predictor, s, &options, &weights)
                                   : open_model(predictor, s, &options, &weights));
    replica = lk_evaluator_replica(predictor->evaluator);
    if (s->skip_mismatch) /* what is left is as training would begin with it */
        LK_TRY_OUT(lk_replica_init_weights(replica, (uint64_t)s->seed));
    lk_model_warn_of_images(predictor->model, &predictor->pipeline, s->weights, weights);
    status = lk_foreign_put(weights, replica);
out:
    lk_foreign_close(weights);
    return status;
}

enum lk_status lk_predictor_open_weights(const struct lk_settings *settings,
                                         struct lk_predictor **predictor)
{
    struct lk_settings *copy = NULL;
    LK_TRY(lk_settings_copy(settings, &copy));
    struct lk_predictor *made = calloc(1, sizeof *made);
    const enum lk_status status =
        made ? open_weights(made, copy) : lk_fail_memory("a predictor", sizeof *made);
    lk_settings_destroy(copy);
    if (status != LK_OK) {
        lk_predictor_close(made);
        return status;
    }
    *predictor = made;
    return LK_OK;
}

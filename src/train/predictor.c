/* A trained model that predicts and is evaluated: what programs open of a run. */
#include "base/fail.h"
#include "base/log.h"
#include "data/photo.h"
#include "io/file.h"
#include "model/checkpoint/checkpoint.h"
#include "model/classes.h"
#include "train/evaluation/evaluator.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct lk_predictor {
    char data[512]; /* the SPEC it was validated with */
    char trained_with[512];
    enum lk_data_part part;
    struct lk_device *device;
    struct lk_model *model;
    struct lk_choices *choices;
    struct lk_pipeline pipeline;
    char *text;                        /* of it */
    char max_bad[16];                  /* samples that may be broken; "": says nothing */
    struct lk_standardize standardize; /* what it does to numbers, bound to the inputs */
    struct lk_evaluator *evaluator;
    struct lk_data *evaluated; /* the data evaluated last: results point to its class names */
};

/* A run directory's newest checkpoint, or the file itself. */
static enum lk_status find_checkpoint(const char *path, char *found, size_t bytes)
{
    char folder[1024];
    if (!lk_folder_exists(path)) {
        if ((size_t)snprintf(found, bytes, "%s", path) >= bytes)
            return lk_fail(LK_E_ARGUMENT, "a path of %zu characters", strlen(path));
        return LK_OK;
    }
    if ((size_t)snprintf(folder, sizeof folder, "%s/checkpoints", path) >= sizeof folder)
        return lk_fail(LK_E_ARGUMENT, "a path of %zu characters", strlen(path));
    if (lk_folder_exists(folder))
        LK_TRY(lk_checkpoint_newest(folder, found, bytes));
    else
        found[0] = '\0';
    if (!*found)
        return lk_fail(LK_E_IO, "'%s' has no checkpoint: train into it first", path);
    return LK_OK;
}

enum lk_status lk_run_open_model(const char *path, struct lk_model **model)
{
    char found[1024];
    struct lk_checkpoint_file *file = NULL;
    LK_TRY(find_checkpoint(path, found, sizeof found));
    LK_TRY(lk_checkpoint_open(found, &file));
    const struct lk_checkpoint *about = lk_checkpoint_metadata(file);
    const enum lk_status status =
        lk_model_read(about->model_text, strlen(about->model_text), about->model, model);
    lk_checkpoint_close(file);
    return status;
}

/* Numbers that come without a data set are standardized here, as the data's pipeline did in
 * training. If there is one input and one field their names need not be the same. */
static enum lk_status bind_standardize(struct lk_predictor *predictor)
{
    struct lk_standardize *s = &predictor->standardize;
    struct lk_field inputs[LK_MOST_INPUTS];
    int count = 0;
    if (!predictor->pipeline.standardizes)
        return LK_OK;
    LK_TRY(lk_standardize_parse(predictor->pipeline.standardize, s));
    while (lk_predictor_input(predictor, count, &inputs[count]))
        count++;
    if (count == 1 && s->field_count == 1)
        inputs[0].name = s->fields[0].name;
    return lk_standardize_bind(s, inputs, count);
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

static enum lk_status open_file(struct lk_predictor *predictor,
                                const struct lk_checkpoint_file *file, const char *device,
                                int64_t batch)
{
    const struct lk_checkpoint *about = lk_checkpoint_metadata(file);
    const bool is_own = about->validation[0] && strcmp(about->validation, "off") != 0;
    snprintf(predictor->data, sizeof predictor->data, "%s",
             is_own ? about->validation : about->data);
    snprintf(predictor->trained_with, sizeof predictor->trained_with, "%s", about->data);
    predictor->part = is_own ? LK_DATA_VALIDATION_OR_ALL : LK_DATA_VALIDATION;
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
    if (about->max_bad)
        snprintf(predictor->max_bad, sizeof predictor->max_bad, "%s", about->max_bad);
    LK_TRY(bind_standardize(predictor));
    LK_TRY(lk_model_transform(predictor->model, &predictor->pipeline, &transform));
    LK_TRY(lk_device_open(device, 0, &predictor->device));
    LK_TRY(lk_choices_open(about->choices, "its algorithms", &predictor->choices));
    const struct lk_evaluator_config config = {.device = predictor->device,
                                               .model = predictor->model,
                                               .batch = batch,
                                               .transform = &transform,
                                               .pipeline = predictor->text,
                                               .choices = predictor->choices};
    LK_TRY(lk_evaluator_create(&config, &predictor->evaluator));
    if (lk_checkpoint_has_average(file))
        lk_log(LK_LOG_INFO, "the weights are their moving average over steps (ema)");
    return lk_checkpoint_read_average(file, lk_evaluator_replica(predictor->evaluator));
}

enum lk_status lk_predictor_open(const char *path, const char *device, int64_t batch,
                                 struct lk_predictor **predictor)
{
    char found[1024];
    struct lk_checkpoint_file *file = NULL;
    LK_TRY(find_checkpoint(path, found, sizeof found));
    LK_TRY(lk_checkpoint_open(found, &file));
    struct lk_predictor *made = calloc(1, sizeof *made);
    enum lk_status status = made ? open_file(made, file, device, batch)
                                 : lk_fail_memory("a predictor", sizeof *made);
    lk_checkpoint_close(file);
    if (status != LK_OK) {
        lk_predictor_close(made);
        return status;
    }
    *predictor = made;
    return LK_OK;
}

void lk_predictor_close(struct lk_predictor *predictor)
{
    if (!predictor)
        return;
    lk_evaluator_destroy(predictor->evaluator);
    free(predictor->text);
    lk_choices_destroy(predictor->choices);
    lk_device_close(predictor->device);
    lk_model_destroy(predictor->model);
    lk_data_close(predictor->evaluated);
    free(predictor);
}

bool lk_predictor_input(const struct lk_predictor *predictor, int index, struct lk_field *input)
{
    const struct lk_node *node = lk_model_input(predictor->model, index);
    if (!node)
        return false;
    const struct lk_shape x = node->input.shape;
    *input = (struct lk_field){.name = node->name,
                               .dtype = node->input.dtype,
                               .shape = x,
                               .role = LK_FIELD_INPUT,
                               .length = -1};
    if (node->input.dtype == LK_U8)
        input->shape = (struct lk_shape){3, {x.dim[1], x.dim[2], x.dim[0]}};
    return true;
}

bool lk_predictor_output(const struct lk_predictor *predictor, int index,
                         struct lk_predictor_port *output)
{
    const struct lk_model *model = predictor->model;
    if (index < 0 || index >= model->output_count)
        return false;
    const struct lk_model_output *found = &model->outputs[index];
    const bool is_vector = found->node->shapes.y.rank == 1 && found->node->shapes.y.dim[0] > 1;
    *output = (struct lk_predictor_port){
        .name = found->name,
        .shape = found->node->shapes.y,
        .is_class = model->says_loss ? found->shape.form == LK_FORM_CLASS ||
                                           found->shape.form == LK_FORM_DISTRIBUTION
                                     : is_vector,
        .class_names = found->class_names,
        .named_classes = found->class_count};
    return true;
}

void lk_predictor_shape(const struct lk_predictor *predictor, int64_t shape[3], int *classes)
{
    struct lk_field input = {0};
    struct lk_predictor_port output = {0};
    (void)lk_predictor_input(predictor, 0, &input);
    (void)lk_predictor_output(predictor, 0, &output);
    for (int i = 0; i < 3; i++)
        shape[i] = i < input.shape.rank ? input.shape.dim[i] : 1;
    *classes = (int)lk_shape_count(&output.shape);
}

enum lk_status lk_predictor_read_image(const struct lk_predictor *predictor, const char *path,
                                       uint8_t *pixels)
{
    struct lk_field input = {0};
    (void)lk_predictor_input(predictor, 0, &input);
    if (input.dtype != LK_U8)
        return lk_fail(LK_E_ARGUMENT, "model '%s' takes no image",
                       lk_model_name(predictor->model));
    const int shape[] = {(int)input.shape.dim[0], (int)input.shape.dim[1],
                         (int)input.shape.dim[2]};
    return lk_photo_read(path, predictor->data, &predictor->pipeline, shape, pixels);
}

enum lk_status lk_predictor_run(struct lk_predictor *predictor, int64_t count,
                                const uint8_t *images, float *probabilities)
{
    const struct lk_model *model = predictor->model;
    if (model->input_count != 1 || model->inputs[0]->input.dtype != LK_U8 ||
        model->output_count != 1)
        return lk_fail(LK_E_ARGUMENT,
                       "model '%s' has %d inputs and %d outputs: lk_predictor_run() is for one "
                       "of images and one of classes, lk_predictor_run_fields() for all",
                       lk_model_name(model), model->input_count, model->output_count);
    return lk_evaluator_predict(predictor->evaluator, count, (const void *[]){images},
                                (float *[]){probabilities});
}

enum lk_status lk_predictor_run_fields(struct lk_predictor *predictor, int64_t count,
                                       const void *const *from, float *const *to)
{
    const void *used[LK_MOST_INPUTS];
    void *copies[LK_MOST_FIELDS] = {NULL};
    enum lk_status status = LK_OK;
    for (int i = 0; i < predictor->model->input_count; i++)
        used[i] = from[i];
    for (int i = 0; i < predictor->standardize.field_count && status == LK_OK; i++) {
        struct lk_field input = {0};
        const int index = predictor->standardize.fields[i].field;
        (void)lk_predictor_input(predictor, index, &input);
        const size_t bytes = (size_t)count * lk_field_bytes(&input);
        used[index] = copies[index] = malloc(bytes + 1);
        if (copies[index])
            memcpy(copies[index], from[index], bytes);
        else
            status = lk_fail_memory("standardized numbers", bytes);
    }
    if (status == LK_OK) {
        lk_standardize_apply(&predictor->standardize, count, copies);
        status = lk_evaluator_predict(predictor->evaluator, count, used, to);
    }
    for (int i = 0; i < LK_MOST_INPUTS; i++)
        free(copies[i]);
    return status;
}

/* What data must be like, with as many broken samples as training allowed. */
static struct lk_data_options data_wanted(const struct lk_predictor *predictor)
{
    struct lk_data_options wanted = lk_data_wanted(predictor->model, &predictor->pipeline);
    if (predictor->max_bad[0])
        wanted.max_bad = predictor->max_bad;
    return wanted;
}

enum lk_status lk_predictor_each(struct lk_predictor *predictor, const char *data,
                                 void *context,
                                 enum lk_status (*visit)(void *, int64_t, const float *const *))
{
    struct lk_data *opened = NULL;
    const struct lk_data_options wanted = data_wanted(predictor);
    LK_TRY(lk_data_open_as(data, LK_DATA_TEST_OR_ALL, &wanted, &opened));
    const enum lk_status status =
        lk_evaluator_each(predictor->evaluator, opened, context, visit);
    lk_data_close(opened);
    return status;
}

enum lk_status lk_predictor_evaluate(struct lk_predictor *predictor, const char *data,
                                     struct lk_evaluation *result)
{
    struct lk_data *opened = NULL;
    const struct lk_data_options wanted = data_wanted(predictor);
    LK_TRY(lk_data_open_as(data ? data : predictor->data,
                           data ? LK_DATA_TEST_OR_ALL : predictor->part, &wanted, &opened));
    lk_data_close(predictor->evaluated);
    predictor->evaluated = opened;
    return lk_evaluator_run(predictor->evaluator, opened, result);
}

/* A part that is found in place of another one is not the one that was asked for. */
enum lk_status lk_predictor_evaluate_part(struct lk_predictor *predictor, const char *data,
                                          enum lk_data_part part, struct lk_evaluation *result)
{
    struct lk_data *opened = NULL;
    const char *spec = data ? data : predictor->trained_with;
    const struct lk_data_options wanted = data_wanted(predictor);
    LK_TRY(lk_data_open_as(spec, part, &wanted, &opened));
    if ((part == LK_DATA_TEST || part == LK_DATA_VALIDATION) &&
        lk_data_info(opened)->part != part) {
        lk_data_close(opened);
        return lk_fail(LK_E_IO, "'%s' has no %s part", spec,
                       part == LK_DATA_TEST ? "test" : "validation");
    }
    lk_data_close(predictor->evaluated);
    predictor->evaluated = opened;
    return lk_evaluator_run(predictor->evaluator, opened, result);
}

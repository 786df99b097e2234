/* What a predictor does once it is open: predictions of samples, images and fields, and
 * evaluations. */
#include "train/predict/predictor.h"

#include "base/fail.h"
#include "data/photo.h"
#include <stdlib.h>
#include <string.h>

void lk_predictor_close(struct lk_predictor *predictor)
{
    if (!predictor)
        return;
    lk_evaluator_destroy(predictor->evaluator);
    free(predictor->text);
    free(predictor->vocabulary);
    lk_texts_clear(&predictor->texts);
    free(predictor->token.bytes);
    lk_choices_destroy(predictor->choices);
    lk_device_close(predictor->device);
    lk_model_destroy(predictor->model);
    lk_data_close(predictor->evaluated);
    free(predictor);
}

size_t lk_predictor_bytes(const struct lk_predictor *predictor, size_t *few)
{
    return lk_evaluator_bytes(predictor->evaluator, few);
}

/* The input that tells how long this one is; -1: none does. */
static int length_of(const struct lk_predictor *predictor, const struct lk_node *node)
{
    const struct lk_node *input;
    for (int i = 0; (input = lk_model_input(predictor->model, i)) != NULL; i++)
        if (input == node->length)
            return i;
    return -1;
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
                               .length = length_of(predictor, node)};
    if (predictor->ports.are_there)
        input->name = predictor->ports.inputs[index];
    if (node->input.dtype == LK_U8 || predictor->ports.is_turned[index])
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
        .name = predictor->ports.are_there ? predictor->ports.outputs[index] : found->name,
        .shape = found->node->shapes.y,
        .keeps_order = predictor->ports.are_there,
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

/* The shape of images, which the first input must take. */
static enum lk_status find_image(const struct lk_predictor *predictor, int shape[3])
{
    struct lk_field input = {0};
    (void)lk_predictor_input(predictor, 0, &input);
    if (input.dtype != LK_U8)
        return lk_fail(LK_E_ARGUMENT, "model '%s' takes no image",
                       lk_model_name(predictor->model));
    for (int i = 0; i < 3; i++)
        shape[i] = (int)input.shape.dim[i];
    return LK_OK;
}

enum lk_status lk_predictor_read_image(const struct lk_predictor *predictor, const char *path,
                                       uint8_t *pixels)
{
    int shape[3];
    LK_TRY(find_image(predictor, shape));
    return lk_photo_read(path, predictor->data, &predictor->pipeline, shape, pixels);
}

enum lk_status lk_predictor_decode_image(const struct lk_predictor *predictor, const void *data,
                                         size_t bytes, uint8_t *pixels)
{
    int shape[3];
    LK_TRY(find_image(predictor, shape));
    return lk_photo_decode(data, bytes, predictor->data, &predictor->pipeline, shape, pixels);
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
        status = lk_predictor_turn(predictor, count, used, copies);
    }
    if (status == LK_OK)
        status = lk_evaluator_predict(predictor->evaluator, count, used, to);
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
    wanted.vocabulary = predictor->vocabulary;
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

const struct lk_data *lk_predictor_evaluated(const struct lk_predictor *predictor)
{
    return predictor->evaluated;
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

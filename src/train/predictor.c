#include "base/fail.h"
#include "io/file.h"
#include "model/checkpoint.h"
#include "train/evaluator.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct lk_predictor {
    char data[512]; /* the SPEC it was validated with */
    enum lk_data_part part;
    struct lk_device *device;
    struct lk_model *model;
    struct lk_choices *choices;
    struct lk_pipeline pipeline;
    struct lk_evaluator *evaluator;
    struct lk_data *evaluated; /* the last data: its class names are given out */
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

static enum lk_status open_file(struct lk_predictor *predictor,
                                const struct lk_checkpoint_file *file, const char *device,
                                int64_t batch)
{
    const struct lk_checkpoint *about = lk_checkpoint_about(file);
    const bool is_own = about->validation[0] && strcmp(about->validation, "off") != 0;
    snprintf(predictor->data, sizeof predictor->data, "%s",
             is_own ? about->validation : about->data);
    predictor->part = is_own ? LK_DATA_TEST_OR_ALL : LK_DATA_TEST;
    LK_TRY(lk_model_read(about->model_text, strlen(about->model_text), about->model,
                         &predictor->model));
    struct lk_look look;
    if (about->eval_pipeline)
        LK_TRY(lk_pipeline_parse(about->eval_pipeline, false, &predictor->pipeline));
    LK_TRY(lk_model_look(predictor->model, &predictor->pipeline, &look));
    LK_TRY(lk_device_open(device, 0, &predictor->device));
    LK_TRY(lk_choices_open(about->choices, "its algorithms", &predictor->choices));
    const struct lk_evaluator_config config = {.device = predictor->device,
                                               .model = predictor->model,
                                               .batch = batch,
                                               .look = &look,
                                               .choices = predictor->choices};
    LK_TRY(lk_evaluator_create(&config, &predictor->evaluator));
    return lk_checkpoint_read(file, lk_evaluator_replica(predictor->evaluator), NULL);
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
    lk_choices_destroy(predictor->choices);
    lk_device_close(predictor->device);
    lk_model_destroy(predictor->model);
    lk_data_close(predictor->evaluated);
    free(predictor);
}

void lk_predictor_shape(const struct lk_predictor *predictor, int64_t shape[3], int *classes)
{
    const struct lk_shape x = lk_node_info(lk_model_input(predictor->model, 0)).shape;
    const struct lk_shape y = lk_node_info(lk_model_output(predictor->model)).shape;
    shape[0] = x.dim[1];
    shape[1] = x.dim[2];
    shape[2] = x.dim[0];
    *classes = (int)y.dim[0];
}

enum lk_status lk_predictor_run(struct lk_predictor *predictor, int64_t count,
                                const uint8_t *images, float *probabilities)
{
    return lk_evaluator_predict(predictor->evaluator, count, images, probabilities);
}

enum lk_status lk_predictor_evaluate(struct lk_predictor *predictor, const char *data,
                                     struct lk_evaluation *result)
{
    struct lk_data *opened = NULL;
    const struct lk_data_options wanted =
        lk_data_wanted(predictor->model, &predictor->pipeline);
    LK_TRY(lk_data_open_as(data ? data : predictor->data,
                           data ? LK_DATA_TEST_OR_ALL : predictor->part, &wanted, &opened));
    lk_data_close(predictor->evaluated);
    predictor->evaluated = opened;
    LK_TRY(lk_check_data(predictor->model, opened));
    return lk_evaluator_run(predictor->evaluator, opened, result);
}

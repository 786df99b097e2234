/* Opens a predictor of an ONNX model, which is imported in memory. */
#include "train/predict/predictor.h"

#include "base/fail.h"
#include "base/text.h"
#include "base/transpose.h"
#include "io/file.h"
#include "model/import/import.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool lk_predictor_find_onnx(const char *path, char *found, size_t bytes)
{
    const bool is_file = lk_text_ends(path, ".onnx");
    const int used = snprintf(found, bytes, is_file ? "%s" : "%s/model.onnx", path);
    return used > 0 && (size_t)used < bytes && (is_file || lk_file_exists(found));
}

/* Numbers are given as the file has them. What it takes as uint8, channels last, is an image;
 * others that look like one to the importer are numbers, in the file's order of axes. */
static enum lk_status take_ports(struct lk_predictor *predictor, const struct lk_imported *made)
{
    struct lk_model *model = predictor->model;
    struct lk_onnx_ports *ports = &predictor->ports;
    ports->are_there = true;
    for (int i = 0; i < model->input_count; i++) {
        const struct lk_import_port *theirs = &made->inputs[i];
        struct lk_input *input = &model->inputs[i]->input;
        LK_TRY(lk_arena_text(&model->arena, theirs->name, &ports->inputs[i]));
        if (input->dtype != LK_U8 || (theirs->is_bytes && theirs->is_last))
            continue;
        input->dtype = LK_F32;
        input->scale = 1;
        input->shift = 0;
        input->takes_numbers = true;
        ports->is_turned[i] = theirs->is_last;
    }
    for (int o = 0; o < model->output_count; o++)
        LK_TRY(lk_arena_text(&model->arena, made->outputs[o], &ports->outputs[o]));
    return LK_OK;
}

static enum lk_status put_weights(struct lk_predictor *predictor,
                                  const struct lk_imported *made)
{
    struct lk_replica *replica = lk_evaluator_replica(predictor->evaluator);
    const struct lk_param *param;
    for (int p = 0; (param = lk_replica_param(replica, p)); p++) {
        const struct lk_safetensor *numbers = lk_imported_find(made, param->name);
        if (!numbers)
            return lk_fail(LK_E_MODEL, "'%s' has no numbers", param->name);
        LK_TRY(lk_replica_write_param(replica, p, numbers->data));
    }
    return LK_OK;
}

static enum lk_status open_made(struct lk_predictor *predictor, struct lk_imported *made,
                                const char *device, int64_t batch)
{
    const struct lk_checkpoint about = {
        .model = "onnx", .model_text = made->text.bytes, .data = "", .validation = ""};
    LK_TRY(lk_model_read(made->text.bytes, made->text.used, "model.yaml", &predictor->model));
    LK_TRY(take_ports(predictor, made));
    LK_TRY(lk_predictor_open_about(predictor, &about, device, batch));
    return put_weights(predictor, made);
}

enum lk_status lk_predictor_open_onnx(struct lk_predictor *predictor, const char *path,
                                      const char *device, int64_t batch)
{
    static const struct lk_import_options none;
    struct lk_imported made = {0};
    enum lk_status status = lk_onnx_make(path, &none, &made);
    if (status == LK_OK)
        status = open_made(predictor, &made, device, batch);
    lk_model_destroy(made.model);
    free(made.text.bytes);
    lk_arena_clear(&made.arena);
    return status;
}

/* Samples [h, w, c] become [c, h, w]. */
static void turn(const float *from, const struct lk_shape *own, int64_t count, float *to)
{
    const int64_t channels = own->dim[0], pixels = own->dim[1] * own->dim[2];
    for (int64_t n = 0; n < count; n++)
        lk_transpose(from + n * channels * pixels, pixels, channels,
                     to + n * channels * pixels);
}

enum lk_status lk_predictor_turn(const struct lk_predictor *predictor, int64_t count,
                                 const void **from, void **copies)
{
    for (int i = 0; i < predictor->model->input_count; i++) {
        const struct lk_shape *own = &predictor->model->inputs[i]->input.shape;
        const size_t bytes = (size_t)(count * lk_shape_count(own)) * sizeof(float);
        if (!predictor->ports.is_turned[i])
            continue;
        copies[i] = malloc(bytes + 1);
        if (!copies[i])
            return lk_fail_memory("turned images", bytes);
        turn(from[i], own, count, copies[i]);
        from[i] = copies[i];
    }
    return LK_OK;
}

/* Inputs and outputs of the graph, and what is done to inputs before the first layer. */
#include "model/onnx_export/export.h"

#include "base/fail.h"
#include <lockstep/data.h>
#include <string.h>

enum { MOST_CHANNELS = 4 };

/* Tokens, and lengths of sequences between 0 and all steps, as int64. */
static enum lk_status put_whole(struct lk_onnx_export *e, const char **name)
{
    const struct lk_node *sequence = e->node->sequence;
    const char *inputs[3];
    LK_TRY(lk_onnx_emit(e, "Cast", "whole", 1, &(const char *){e->node->name}, name));
    lk_onnx_emit_integer(e, "to", LK_ONNX_INT64);
    if (!sequence)
        return LK_OK;
    inputs[0] = *name;
    LK_TRY(lk_onnx_emit_integer_constant(e, "none", 0, &inputs[1]));
    LK_TRY(lk_onnx_emit_integer_constant(e, "all", sequence->shapes.y.dim[0], &inputs[2]));
    return lk_onnx_emit(e, "Clip", "valid", 3, inputs, name);
}

/* x scale + shift, of `count` numbers each; count 0: of one number. */
static enum lk_status emit_scaled(struct lk_onnx_export *e, const char *x, int count,
                                  const double *scale, const double *shift, const char **name)
{
    const int rank = count > 0;
    const char *product[2] = {x, NULL}, *sum[2];
    LK_TRY(lk_onnx_emit_reals(e, "scale", rank, rank ? count : 1, scale, &product[1]));
    LK_TRY(lk_onnx_emit_reals(e, "shift", rank, rank ? count : 1, shift, &sum[1]));
    LK_TRY(lk_onnx_emit(e, "Mul", "scaled", 2, product, &sum[0]));
    return lk_onnx_emit(e, "Add", "shifted", 2, sum, name);
}

/* Pixels [n, h, w, c] of 0 to 255, as `normalize` of the run's pipeline or the input says. */
static enum lk_status put_pixels(struct lk_onnx_export *e, const char **name)
{
    const struct lk_input *input = &e->node->input;
    const int channels = (int)input->shape.dim[0];
    double scale[MOST_CHANNELS], shift[MOST_CHANNELS];
    struct lk_normalization n = {0};
    const char *values;
    if (channels > MOST_CHANNELS)
        return lk_onnx_export_fail(e, "images of %d channels are not prepared", channels);
    if (*e->stored.pipeline)
        LK_TRY(lk_pipeline_normalization(e->stored.pipeline, channels, &n));
    for (int c = 0; c < channels; c++) {
        scale[c] = n.normalizes ? n.scale[c] : input->scale == 0 ? 1 : input->scale;
        shift[c] = n.normalizes ? n.shift[c] : input->shift;
    }
    LK_TRY(lk_onnx_emit(e, "Cast", "values", 1, &(const char *){e->node->name}, &values));
    lk_onnx_emit_integer(e, "to", LK_ONNX_FLOAT);
    if (n.is_reversed) {
        int64_t order[MOST_CHANNELS];
        const char *inputs[2] = {values, NULL};
        for (int c = 0; c < channels; c++)
            order[c] = channels - 1 - c;
        LK_TRY(lk_onnx_emit_integers(e, "order", channels, order, &inputs[1]));
        LK_TRY(lk_onnx_emit(e, "Gather", "reversed", 2, inputs, &values));
        lk_onnx_emit_integer(e, "axis", 3);
    }
    LK_TRY(emit_scaled(e, values, channels, scale, shift, &values));
    return lk_onnx_emit_transpose(e, "image", 4, (int64_t[]){0, 3, 1, 2}, values, name);
}

static bool is_image(const struct lk_node *node)
{
    return !node->op && node->input.dtype == LK_U8;
}

/* Numbers of an input have its scale and shift; those of an image are what the first layer
 * reads, unless the graph is to prepare them. */
enum lk_status lk_onnx_emit_input(struct lk_onnx_export *e, const char **name)
{
    const struct lk_input *input = &e->node->input;
    const double by = input->scale == 0 ? 1 : input->scale;
    *name = e->node->name;
    if (is_image(e->node))
        return e->prepares ? put_pixels(e, name) : LK_OK;
    if (input->dtype == LK_I32)
        return put_whole(e, name);
    if (e->prepares && strstr(e->stored.pipeline, "standardize"))
        return lk_onnx_export_fail(e, "the run's stage standardize is not exported; without "
                                      "--preprocess the graph takes standardized numbers");
    if (by == 1 && input->shift == 0)
        return LK_OK;
    return emit_scaled(e, *name, 0, &by, &input->shift, name);
}

struct lk_onnx_port lk_onnx_describe(const struct lk_onnx_export *e, const struct lk_node *node,
                                     int64_t batch)
{
    const struct lk_shape *y = &node->shapes.y;
    const bool is_whole = !node->op && node->input.dtype == LK_I32;
    const bool is_raw = e->prepares && is_image(node);
    struct lk_onnx_port port = {.name = node->name,
                                .batch = "batch",
                                .type = is_raw     ? LK_ONNX_UINT8
                                        : is_whole ? LK_ONNX_INT32
                                                   : LK_ONNX_FLOAT,
                                .rank = y->rank + 1,
                                .dim = {batch > 0 ? batch : -1}};
    for (int i = 0; i < y->rank; i++)
        port.dim[1 + i] = y->dim[is_raw ? (i + 1) % 3 : i];
    return port;
}

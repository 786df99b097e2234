/* Operations on images as operators of ONNX: convolutions, pooling, what moves pixels. */
#include "model/onnx_export/export.h"

#include "base/fail.h"
#include <stdio.h>
#include <string.h>

/* Windows down and across, and the pixels of padding as ONNX has them: top, left, bottom,
 * right. */
struct windows {
    int64_t size[2], stride[2], gap[2], pads[4];
};

/* Pixels at the top, bottom, left and right of options such as "1", "1,2", "[1, 2, 3, 4]". */
static void read_edges(const char *text, int64_t edge[4])
{
    long long found[4];
    const int count = sscanf(text + strspn(text, "[ "), "%lld%*[, ]%lld%*[, ]%lld%*[, ]%lld",
                             &found[0], &found[1], &found[2], &found[3]);
    for (int i = 0; i < 4; i++)
        edge[i] = count == 4 ? found[i] : count == 2 ? found[i / 2] : count == 1 ? found[0] : 0;
}

/* "same": as many windows as the output has, the odd pixel behind. */
static void read_windows(const struct lk_onnx_export *e, const char *size, struct windows *w)
{
    char padding[96];
    int64_t edge[4];
    const struct lk_shape *x = &e->node->shapes.x[0], *y = &e->node->shapes.y;
    lk_onnx_option_integers(e, size, 2, w->size);
    lk_onnx_option_integers(e, "stride", 2, w->stride);
    lk_onnx_option(e, "padding", padding);
    read_edges(padding, edge);
    for (int i = 0; i < 2; i++) {
        w->stride[i] = w->stride[i] ? w->stride[i] : w->size[i];
        const int64_t reach = (w->size[i] - 1) * w->gap[i] + 1;
        const int64_t missing = (y->dim[1 + i] - 1) * w->stride[i] + reach - x->dim[1 + i];
        const bool is_same = strcmp(padding, "same") == 0;
        w->pads[i] = is_same ? (missing > 0 ? missing / 2 : 0) : edge[2 * i];
        w->pads[2 + i] = is_same ? (missing > 0 ? missing - missing / 2 : 0) : edge[2 * i + 1];
    }
}

static enum lk_status say_windows(struct lk_onnx_export *e, const struct windows *w)
{
    LK_TRY(lk_onnx_emit_list(e, "kernel_shape", 2, w->size));
    LK_TRY(lk_onnx_emit_list(e, "strides", 2, w->stride));
    return lk_onnx_emit_list(e, "pads", 4, w->pads);
}

/* --- convolutions ------------------------------------------------------------------------ */

static enum lk_status emit_convolution(struct lk_onnx_export *e, const char *op,
                                       const struct windows *w, const char *const *x,
                                       const char *y)
{
    const char *inputs[] = {x[0], NULL, NULL};
    int64_t groups;
    lk_onnx_option_integers(e, "groups", 1, &groups);
    LK_TRY(lk_onnx_emit_param(e, "weight", false, NULL, &inputs[1]));
    LK_TRY(e->factors ? lk_onnx_emit_folded_bias(e, &inputs[2])
                      : lk_onnx_emit_param(e, "bias", false, NULL, &inputs[2]));
    LK_TRY(lk_onnx_emit_node(e, op, y, 3, inputs));
    LK_TRY(say_windows(e, w));
    lk_onnx_emit_integer(e, "group", groups);
    return lk_onnx_emit_list(e, "dilations", 2, w->gap);
}

static enum lk_status conv2d(struct lk_onnx_export *e, const char *const *x, const char *y)
{
    struct windows w;
    lk_onnx_option_integers(e, "dilation", 2, w.gap);
    read_windows(e, "kernel", &w);
    if (lk_onnx_option_is(e, "pool", "true"))
        return lk_onnx_export_fail(e, "'pool' is not exported");
    return emit_convolution(e, "Conv", &w, x, y);
}

/* What is cut off the output; "same": all that is more than stride times the input. */
static enum lk_status conv2d_transpose(struct lk_onnx_export *e, const char *const *x,
                                       const char *y)
{
    struct windows w;
    int64_t added[2];
    const struct lk_shape *in = &e->node->shapes.x[0], *out = &e->node->shapes.y;
    if (lk_onnx_option_is(e, "padding", "same") || lk_onnx_option_is(e, "padding", "valid"))
        return lk_onnx_export_fail(e, "'padding' is exported where it is numbers alone");
    lk_onnx_option_integers(e, "dilation", 2, w.gap);
    lk_onnx_option_integers(e, "output_padding", 2, added);
    read_windows(e, "kernel", &w);
    for (int i = 0; i < 2; i++)
        if ((in->dim[1 + i] - 1) * w.stride[i] + (w.size[i] - 1) * w.gap[i] + 1 + added[i] -
                w.pads[i] - w.pads[2 + i] !=
            out->dim[1 + i])
            return lk_onnx_export_fail(e, "ONNX would give it another size");
    LK_TRY(emit_convolution(e, "ConvTranspose", &w, x, y));
    return lk_onnx_emit_list(e, "output_padding", 2, added);
}

/* --- pooling ----------------------------------------------------------------------------- */

static enum lk_status pool(struct lk_onnx_export *e, const char *const *x, const char *y)
{
    struct windows w = {.gap = {1, 1}};
    const bool is_max = strcmp(e->node->op->name, "max_pool") == 0;
    read_windows(e, "size", &w);
    LK_TRY(lk_onnx_emit_node(e, is_max ? "MaxPool" : "AveragePool", y, 1, x));
    LK_TRY(say_windows(e, &w));
    if (!is_max)
        lk_onnx_emit_integer(e, "count_include_pad",
                             lk_onnx_option_is(e, "count_padding", "true"));
    return LK_OK;
}

/* [n, c, 1, 1] there. */
static enum lk_status global_pool(struct lk_onnx_export *e, const char *const *x, const char *y)
{
    const bool is_max = strcmp(e->node->op->name, "global_max_pool") == 0;
    const char *pixel;
    LK_TRY(lk_onnx_name(e, "pixel", &pixel));
    LK_TRY(lk_onnx_emit_node(e, is_max ? "GlobalMaxPool" : "GlobalAveragePool", pixel, 1, x));
    return lk_onnx_emit_node(e, "Flatten", y, 1, &pixel);
}

/* --- pixels ------------------------------------------------------------------------------ */

static enum lk_status upsample(struct lk_onnx_export *e, const char *const *x, const char *y)
{
    const bool is_linear = lk_onnx_option_is(e, "interpolation", "bilinear");
    int64_t size[2];
    const char *scales;
    lk_onnx_option_integers(e, "size", 2, size);
    LK_TRY(lk_onnx_emit_reals(e, "scales", 1, 4,
                              (double[]){1, 1, (double)size[0], (double)size[1]}, &scales));
    LK_TRY(lk_onnx_emit_node(e, "Resize", y, 3, (const char *[]){x[0], "", scales}));
    lk_onnx_emit_text(e, "mode", is_linear ? "linear" : "nearest");
    lk_onnx_emit_text(e, "coordinate_transformation_mode",
                      is_linear ? "half_pixel" : "asymmetric");
    if (!is_linear)
        lk_onnx_emit_text(e, "nearest_mode", "floor");
    return LK_OK;
}

static enum lk_status pad(struct lk_onnx_export *e, const char *const *x, const char *y)
{
    const bool reflects = lk_onnx_option_is(e, "mode", "reflect");
    char padding[96];
    int64_t edge[4], channels[2];
    const double value = lk_onnx_option_real(e, "value");
    const char *inputs[] = {x[0], NULL, NULL};
    lk_onnx_option(e, "padding", padding);
    lk_onnx_option_integers(e, "channels", 2, channels);
    read_edges(padding, edge);
    LK_TRY(lk_onnx_emit_integers(
        e, "pads", 8,
        (int64_t[]){0, channels[0], edge[0], edge[2], 0, channels[1], edge[1], edge[3]},
        &inputs[1]));
    if (!reflects)
        LK_TRY(lk_onnx_emit_reals(e, "value", 0, 1, &value, &inputs[2]));
    LK_TRY(lk_onnx_emit_node(e, "Pad", y, 3, inputs));
    lk_onnx_emit_text(e, "mode", reflects ? "reflect" : "constant");
    return LK_OK;
}

/* Slices: first and end of each of the axes behind the batch. */
static enum lk_status emit_slice(struct lk_onnx_export *e, const char *x, const char *y,
                                 const int64_t *first, const int64_t *end)
{
    static const int64_t axes[] = {1, 2, 3};
    const int rank = e->node->shapes.x[0].rank;
    const char *inputs[] = {x, NULL, NULL, NULL};
    LK_TRY(lk_onnx_emit_integers(e, "starts", rank, first, &inputs[1]));
    LK_TRY(lk_onnx_emit_integers(e, "ends", rank, end, &inputs[2]));
    LK_TRY(lk_onnx_emit_integers(e, "axes", rank, axes, &inputs[3]));
    return lk_onnx_emit_node(e, "Slice", y, 4, inputs);
}

static enum lk_status crop(struct lk_onnx_export *e, const char *const *x, const char *y)
{
    const struct lk_shape *in = &e->node->shapes.x[0];
    char cropping[96];
    int64_t edge[4];
    lk_onnx_option(e, "cropping", cropping);
    read_edges(cropping, edge);
    return emit_slice(e, x[0], y, (int64_t[]){0, edge[0], edge[2]},
                      (int64_t[]){in->dim[0], in->dim[1] - edge[1], in->dim[2] - edge[3]});
}

/* Our names of the axes behind the batch. */
static const char *const axis_names[][4] = {{""}, {"c"}, {"t", "c"}, {"c", "h", "w"}};

static enum lk_status slice(struct lk_onnx_export *e, const char *const *x, const char *y)
{
    const struct lk_shape *in = &e->node->shapes.x[0];
    int64_t first[4], end[4], range[2];
    for (int i = 0; i < in->rank; i++) {
        lk_onnx_option_integers(e, axis_names[in->rank][i], 2, range);
        first[i] = range[0] < 0 ? range[0] + in->dim[i] : range[0];
        end[i] = range[1] <= 0 ? range[1] + in->dim[i] : range[1];
    }
    return emit_slice(e, x[0], y, first, end);
}

static enum lk_status concat(struct lk_onnx_export *e, const char *const *x, const char *y)
{
    const int rank = e->node->shapes.y.rank;
    char axis[96];
    int found = 0;
    lk_onnx_option(e, "axis", axis);
    while (found < rank && strcmp(axis_names[rank][found], axis) != 0)
        found++;
    if (found == rank)
        return lk_onnx_export_fail(e, "axis '%s' is not among its axes", axis);
    LK_TRY(lk_onnx_emit_node(e, "Concat", y, e->node->inputs, x));
    lk_onnx_emit_integer(e, "axis", 1 + found);
    return LK_OK;
}

/* An even size begins one channel earlier here. */
static enum lk_status response_norm(struct lk_onnx_export *e, const char *const *x,
                                    const char *y)
{
    int64_t size;
    lk_onnx_option_integers(e, "size", 1, &size);
    if (size % 2 == 0)
        return lk_onnx_export_fail(e, "an even 'size' means other channels in ONNX");
    if (e->node->shapes.x[0].rank == 2)
        return lk_onnx_export_fail(e, "of sequences it is not exported: ONNX would take time "
                                      "steps for channels");
    LK_TRY(lk_onnx_emit_node(e, "LRN", y, 1, x));
    lk_onnx_emit_integer(e, "size", size);
    lk_onnx_emit_real(e, "alpha", lk_onnx_option_real(e, "alpha"));
    lk_onnx_emit_real(e, "beta", lk_onnx_option_real(e, "beta"));
    lk_onnx_emit_real(e, "bias", lk_onnx_option_real(e, "bias"));
    return LK_OK;
}

const struct lk_onnx_pairing lk_onnx_image_pairings[] = {
    {"conv2d", conv2d},
    {"conv2d_transpose", conv2d_transpose},
    {"max_pool", pool},
    {"average_pool", pool},
    {"global_average_pool", global_pool},
    {"global_max_pool", global_pool},
    {"upsample", upsample},
    {"pad", pad},
    {"crop", crop},
    {"slice", slice},
    {"concat", concat},
    {"local_response_norm", response_norm},
    {0},
};

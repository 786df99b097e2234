/* ONNX's operators on images: convolutions, pooling, resizing. */
#include "model/onnx/convert.h"

#include "base/fail.h"
#include "base/number.h"
#include <string.h>

/* What all kinds of window say: down, across. */
struct windows {
    int64_t size[2], stride[2], dilation[2];
    const char *padding; /* as an option of ours has it */
};

/* --- windows ----------------------------------------------------------------------------- */

/* SAME_LOWER puts the odd pixel of padding before the image, SAME_UPPER behind it. */
static enum lk_status pad_same(struct lk_onnx_draft *draft, const struct lk_onnx_value *x,
                               bool is_lower, struct windows *w)
{
    int64_t edge[2][2];
    for (int i = 0; i < 2; i++) {
        const int64_t pixels = x->dim[2 + i], reach = (w->size[i] - 1) * w->dilation[i] + 1;
        const int64_t last = (pixels - 1) / w->stride[i] * w->stride[i];
        const int64_t missing = last + reach > pixels ? last + reach - pixels : 0;
        edge[i][is_lower] = missing / 2;
        edge[i][!is_lower] = missing - missing / 2;
    }
    return lk_onnx_text(draft, &w->padding, "[%lld, %lld, %lld, %lld]", (long long)edge[0][0],
                        (long long)edge[0][1], (long long)edge[1][0], (long long)edge[1][1]);
}

/* ceil_mode: the last window may look beyond the image, which padding behind it allows. It may
 * not begin there. */
static void pad_ceiled(const struct lk_onnx_value *x, const struct windows *w, int64_t pads[4])
{
    for (int i = 0; i < 2; i++) {
        const int64_t reach = (w->size[i] - 1) * w->dilation[i] + 1;
        const int64_t room = x->dim[2 + i] + pads[i] + pads[2 + i] - reach;
        const int64_t over = room > 0 ? room % w->stride[i] : 0;
        const int64_t next =
            (room / w->stride[i] + 1) * w->stride[i]; /* where one would begin */
        if (over && next < x->dim[2 + i] + pads[i])
            pads[2 + i] += w->stride[i] - over;
    }
}

static enum lk_status read_padding(struct lk_onnx_draft *draft, const struct lk_onnx_value *x,
                                   bool ceils, struct windows *w)
{
    const char *automatic;
    int64_t pads[4]; /* top, left, bottom, right */
    LK_TRY(lk_onnx_say_text(draft, "auto_pad", "NOTSET", &automatic));
    LK_TRY(lk_onnx_say_list(draft, "pads", 4, 0, pads));
    for (int i = 0; i < 2; i++)
        if (w->size[i] < 1 || w->stride[i] < 1 || w->dilation[i] < 1 || w->size[i] > 4096 ||
            w->stride[i] > 4096 || w->dilation[i] > 4096 || pads[i] < 0 || pads[2 + i] < 0 ||
            pads[i] > 4096 || pads[2 + i] > 4096)
            return lk_onnx_fail(draft,
                                "windows, steps and padding are expected to be of at most "
                                "4096 pixels, and not negative");
    if (strncmp(automatic, "SAME_", 5) == 0)
        return pad_same(draft, x, strcmp(automatic, "SAME_LOWER") == 0, w);
    if (strcmp(automatic, "VALID") == 0)
        memset(pads, 0, sizeof pads);
    else if (strcmp(automatic, "NOTSET") != 0)
        return lk_onnx_fail(draft, "'auto_pad' is %.40s", automatic);
    if (ceils)
        pad_ceiled(x, w, pads);
    return lk_onnx_text(draft, &w->padding, "[%lld, %lld, %lld, %lld]", (long long)pads[0],
                        (long long)pads[2], (long long)pads[1], (long long)pads[3]);
}

/* --- convolutions ------------------------------------------------------------------------ */

/* The kernel, whose shape is the last word on the windows'. */
static enum lk_status read_kernel(struct lk_onnx_draft *draft, const struct lk_onnx_value *x,
                                  struct windows *w, const struct lk_onnx_tensor **kernel)
{
    int64_t said[2];
    LK_TRY(lk_onnx_constant(draft, 1, kernel));
    if (!*kernel || (*kernel)->rank != 4)
        return lk_onnx_fail(draft, "a kernel of four axes is expected");
    memcpy(w->size, &(*kernel)->dim[2], sizeof w->size);
    LK_TRY(lk_onnx_say_list(draft, "kernel_shape", 2, 0, said));
    if ((said[0] || said[1]) && (said[0] != w->size[0] || said[1] != w->size[1]))
        return lk_onnx_fail(draft, "'kernel_shape' is not that of the kernel");
    LK_TRY(lk_onnx_say_list(draft, "strides", 2, 1, w->stride));
    LK_TRY(lk_onnx_say_list(draft, "dilations", 2, 1, w->dilation));
    return read_padding(draft, x, false, w);
}

static enum lk_status add_convolution(struct lk_onnx_draft *draft, const char *op,
                                      const struct windows *w, int64_t filters, int64_t groups,
                                      const char *more, const struct lk_onnx_value *x,
                                      const struct lk_onnx_tensor *kernel)
{
    const struct lk_onnx_tensor *bias;
    struct lk_onnx_value made;
    const char *options;
    LK_TRY(lk_onnx_constant(draft, 2, &bias));
    LK_TRY(lk_onnx_text(draft, &options,
                        "filters=%lld kernel=[%lld, %lld] stride=[%lld, %lld] "
                        "dilation=[%lld, %lld] groups=%lld padding=%s%s%s",
                        (long long)filters, (long long)w->size[0], (long long)w->size[1],
                        (long long)w->stride[0], (long long)w->stride[1],
                        (long long)w->dilation[0], (long long)w->dilation[1], (long long)groups,
                        w->padding, more, bias ? "" : " bias=false"));
    LK_TRY(lk_onnx_add(draft, op, options, 1, x, &made));
    LK_TRY(lk_onnx_set(draft, &made, "weight", kernel, false, 1));
    if (bias)
        LK_TRY(lk_onnx_set(draft, &made, "bias", bias, false, 1));
    return lk_onnx_give(draft, 0, &made);
}

static enum lk_status conv(struct lk_onnx_draft *draft)
{
    struct windows w;
    struct lk_onnx_value x;
    const struct lk_onnx_tensor *kernel;
    int64_t groups;
    LK_TRY(lk_onnx_image(draft, 0, &x));
    LK_TRY(read_kernel(draft, &x, &w, &kernel));
    LK_TRY(lk_onnx_say_integer(draft, "group", 1, &groups));
    return add_convolution(draft, "conv2d", &w, kernel->dim[0], groups, "", &x, kernel);
}

static enum lk_status conv_transpose(struct lk_onnx_draft *draft)
{
    struct windows w;
    struct lk_onnx_value x;
    const struct lk_onnx_tensor *kernel;
    const char *automatic, *more;
    int64_t groups, added[2];
    LK_TRY(lk_onnx_image(draft, 0, &x));
    LK_TRY(read_kernel(draft, &x, &w, &kernel));
    LK_TRY(lk_onnx_say_text(draft, "auto_pad", "NOTSET", &automatic));
    if (strncmp(automatic, "SAME_", 5) == 0)
        return lk_onnx_fail(draft, "'auto_pad' %s is not supported", automatic);
    LK_TRY(lk_onnx_say_integer(draft, "group", 1, &groups));
    LK_TRY(lk_onnx_say_list(draft, "output_padding", 2, 0, added));
    LK_TRY(lk_onnx_text(draft, &more, " output_padding=[%lld, %lld]", (long long)added[0],
                        (long long)added[1]));
    if (groups < 1 || groups > x.dim[1])
        return lk_onnx_fail(draft, "%lld groups", (long long)groups);
    return add_convolution(draft, "conv2d_transpose", &w, kernel->dim[1] * groups, groups, more,
                           &x, kernel);
}

/* --- pooling ----------------------------------------------------------------------------- */

static enum lk_status read_pool(struct lk_onnx_draft *draft, const struct lk_onnx_value *x,
                                struct windows *w, bool *ceils)
{
    int64_t ceil_mode;
    LK_TRY(lk_onnx_say_list(draft, "kernel_shape", 2, 0, w->size));
    LK_TRY(lk_onnx_say_list(draft, "strides", 2, 1, w->stride));
    LK_TRY(lk_onnx_say_list(draft, "dilations", 2, 1, w->dilation));
    LK_TRY(lk_onnx_say_integer(draft, "ceil_mode", 0, &ceil_mode));
    *ceils = ceil_mode != 0;
    if (w->dilation[0] != 1 || w->dilation[1] != 1)
        return lk_onnx_fail(draft, "'dilations' are expected to be 1");
    if (draft->node->output_count > 1 && *draft->node->outputs[1] &&
        lk_onnx_find(draft, draft->node->outputs[1])->readers > 0)
        return lk_onnx_fail(draft, "places of maxima as an output are not supported");
    return read_padding(draft, x, *ceils, w);
}

static enum lk_status add_pool(struct lk_onnx_draft *draft, const char *op,
                               const struct windows *w, const char *more,
                               const struct lk_onnx_value *x)
{
    struct lk_onnx_value made;
    const char *options;
    LK_TRY(lk_onnx_text(draft, &options, "size=[%lld, %lld] stride=[%lld, %lld] padding=%s%s",
                        (long long)w->size[0], (long long)w->size[1], (long long)w->stride[0],
                        (long long)w->stride[1], w->padding, more));
    LK_TRY(lk_onnx_add(draft, op, options, 1, x, &made));
    return lk_onnx_give(draft, 0, &made);
}

static enum lk_status max_pool(struct lk_onnx_draft *draft)
{
    struct windows w;
    struct lk_onnx_value x;
    bool ceils;
    LK_TRY(lk_onnx_image(draft, 0, &x));
    LK_TRY(read_pool(draft, &x, &w, &ceils));
    return add_pool(draft, "max_pool", &w, "", &x);
}

/* Pixels that ceil_mode adds never count, those of padding may. */
static enum lk_status average_pool(struct lk_onnx_draft *draft)
{
    struct windows w, plain;
    struct lk_onnx_value x;
    int64_t counts;
    bool ceils;
    LK_TRY(lk_onnx_image(draft, 0, &x));
    LK_TRY(read_pool(draft, &x, &w, &ceils));
    LK_TRY(lk_onnx_say_integer(draft, "count_include_pad", 0, &counts));
    plain = w;
    LK_TRY(read_padding(draft, &x, false, &plain));
    if (counts && ceils && strcmp(w.padding, plain.padding) != 0)
        return lk_onnx_fail(draft, "'count_include_pad' with 'ceil_mode' is not supported");
    return add_pool(draft, "average_pool", &w, counts ? " count_padding=true" : "", &x);
}

/* One number for each channel, [n, c, 1, 1] there unless axes are not kept. */
static enum lk_status pool_all(struct lk_onnx_draft *draft, const char *op, bool keeps)
{
    struct lk_onnx_value x, made;
    LK_TRY(lk_onnx_image(draft, 0, &x));
    LK_TRY(lk_onnx_add(draft, op, "", 1, &x, &made));
    if (keeps) {
        made.rank = 4;
        made.dim[2] = made.dim[3] = 1;
    }
    return lk_onnx_give(draft, 0, &made);
}

static enum lk_status global_average(struct lk_onnx_draft *draft)
{
    return pool_all(draft, "global_average_pool", true);
}

static enum lk_status global_max(struct lk_onnx_draft *draft)
{
    return pool_all(draft, "global_max_pool", true);
}

/* Over height and width alone. */
static enum lk_status reduce(struct lk_onnx_draft *draft)
{
    const bool is_max = strcmp(draft->node->op, "ReduceMax") == 0;
    const struct lk_onnx_value *x;
    int64_t axes[LK_ONNX_AXES], keeps;
    int count, axis, seen = 0;
    LK_TRY(lk_onnx_computed(draft, 0, &x));
    LK_TRY(lk_onnx_numbers(draft, "axes", 1, LK_ONNX_AXES, axes, &count));
    LK_TRY(lk_onnx_say_integer(draft, "keepdims", 1, &keeps));
    for (int i = 0; i < count; i++) {
        LK_TRY(lk_onnx_axis(draft, axes[i], x->rank, &axis));
        seen |= 1 << axis;
    }
    if (x->rank != 4 || seen != (x->is_last ? 6 : 12))
        return lk_onnx_fail(draft, "it is supported over height and width of images alone");
    if (!x->is_last)
        return pool_all(draft, is_max ? "global_max_pool" : "global_average_pool", keeps != 0);
    if (keeps)
        return lk_onnx_fail(draft, "'keepdims' of channels that come last is not supported");
    struct lk_onnx_value made;
    LK_TRY(lk_onnx_add(draft, is_max ? "global_max_pool" : "global_average_pool", "", 1, x,
                       &made));
    return lk_onnx_give(draft, 0, &made);
}

/* --- sizes ------------------------------------------------------------------------------- */

/* Whole factors, of scales (input `index`, or an attribute of old models) or sizes behind. */
static enum lk_status read_factors(struct lk_onnx_draft *draft, const struct lk_onnx_value *x,
                                   int64_t factor[2])
{
    const bool is_old = strcmp(draft->node->op, "Upsample") == 0;
    const int at = is_old || draft->node->input_count == 2 ? 1 : 2;
    const struct lk_onnx_attribute *said = lk_onnx_find_attribute(draft->node, "scales");
    const struct lk_onnx_tensor *scales, *sizes = NULL;
    double found[4] = {0};
    LK_TRY(lk_onnx_constant(draft, at, &scales));
    if (at == 2)
        LK_TRY(lk_onnx_constant(draft, 3, &sizes));
    const bool has_scales = scales && scales->count == 4;
    for (int i = 0; i < 4; i++)
        if (has_scales)
            found[i] = lk_onnx_real(scales, i);
        else if (sizes && sizes->count == 4)
            found[i] = i ? lk_onnx_real(sizes, i) / (double)x->dim[i] : 1;
        else if (said && said->kind == LK_ONNX_REALS && said->count == 4)
            found[i] = (double)said->reals[i];
    if (found[0] != 1 || found[1] != 1)
        return lk_onnx_fail(draft, "factors for height and width alone are expected");
    factor[0] = factor[1] = 0;
    for (int i = 0; i < 2; i++) {
        factor[i] = found[2 + i] >= 1 && found[2 + i] <= 64 ? (int64_t)found[2 + i] : 0;
        if ((double)factor[i] != found[2 + i])
            return lk_onnx_fail(draft, "whole factors of 1..64 are expected, found %g",
                                found[2 + i]);
    }
    return LK_OK;
}

/* With whole factors these all repeat pixels, or take lines between their centres. */
static enum lk_status check_places(struct lk_onnx_draft *draft, bool is_linear)
{
    const bool is_old = strcmp(draft->node->op, "Upsample") == 0;
    const char *places, *rounding;
    LK_TRY(lk_onnx_say_text(draft, "coordinate_transformation_mode",
                            is_old || draft->file->operators < 11 ? "asymmetric" : "half_pixel",
                            &places));
    LK_TRY(lk_onnx_say_text(
        draft, "nearest_mode",
        is_old || draft->file->operators < 11 ? "floor" : "round_prefer_floor", &rounding));
    const bool is_half =
        strcmp(places, "half_pixel") == 0 || strcmp(places, "pytorch_half_pixel") == 0;
    if (is_linear ? is_half
                  : (is_half && strncmp(rounding, "round_prefer_", 13) == 0) ||
                        (strcmp(places, "asymmetric") == 0 && strcmp(rounding, "floor") == 0))
        return LK_OK;
    return lk_onnx_fail(draft,
                        "'coordinate_transformation_mode' %.40s with %.40s is not supported",
                        places, is_linear ? "linear interpolation" : rounding);
}

static enum lk_status resize(struct lk_onnx_draft *draft)
{
    struct lk_onnx_value x, made;
    const char *mode, *options;
    int64_t factor[2] = {0};
    LK_TRY(lk_onnx_image(draft, 0, &x));
    LK_TRY(lk_onnx_say_text(draft, "mode", "nearest", &mode));
    const bool is_linear = strcmp(mode, "linear") == 0;
    if (!is_linear && strcmp(mode, "nearest") != 0)
        return lk_onnx_fail(draft, "'mode' is %.40s, expected nearest or linear", mode);
    LK_TRY(check_places(draft, is_linear));
    LK_TRY(read_factors(draft, &x, factor));
    LK_TRY(lk_onnx_text(draft, &options, "size=[%lld, %lld] interpolation=%s",
                        (long long)factor[0], (long long)factor[1],
                        is_linear ? "bilinear" : "nearest"));
    LK_TRY(lk_onnx_add(draft, "upsample", options, 1, &x, &made));
    return lk_onnx_give(draft, 0, &made);
}

static enum lk_status lrn(struct lk_onnx_draft *draft)
{
    struct lk_onnx_value x, made;
    int64_t size;
    double number[3];
    char text[3][40];
    const char *options;
    LK_TRY(lk_onnx_image(draft, 0, &x));
    LK_TRY(lk_onnx_say_integer(draft, "size", 0, &size));
    LK_TRY(lk_onnx_say_real(draft, "alpha", 0.0001, &number[0]));
    LK_TRY(lk_onnx_say_real(draft, "beta", 0.75, &number[1]));
    LK_TRY(lk_onnx_say_real(draft, "bias", 1, &number[2]));
    if (size % 2 == 0)
        return lk_onnx_fail(draft, "'size' %lld is even, which is not supported",
                            (long long)size);
    for (int i = 0; i < 3; i++)
        lk_number_print(number[i], text[i], sizeof text[i]);
    LK_TRY(lk_onnx_text(draft, &options, "size=%lld alpha=%s beta=%s bias=%s", (long long)size,
                        text[0], text[1], text[2]));
    LK_TRY(lk_onnx_add(draft, "local_response_norm", options, 1, &x, &made));
    return lk_onnx_give(draft, 0, &made);
}

#define WINDOWS "kernel_shape", "strides", "pads", "auto_pad", "dilations"

const struct lk_onnx_operator lk_onnx_images[] = {
    {"Conv", conv, LK_ONNX_KNOWS(WINDOWS, "group")},
    {"ConvTranspose", conv_transpose, LK_ONNX_KNOWS(WINDOWS, "group", "output_padding")},
    {"MaxPool", max_pool, LK_ONNX_KNOWS(WINDOWS, "ceil_mode", "storage_order")},
    {"AveragePool", average_pool, LK_ONNX_KNOWS(WINDOWS, "ceil_mode", "count_include_pad")},
    {"GlobalAveragePool", global_average, LK_ONNX_KNOWS(NULL)},
    {"GlobalMaxPool", global_max, LK_ONNX_KNOWS(NULL)},
    {"ReduceMean", reduce, LK_ONNX_KNOWS("axes", "keepdims", "noop_with_empty_axes")},
    {"ReduceMax", reduce, LK_ONNX_KNOWS("axes", "keepdims", "noop_with_empty_axes")},
    {"Resize", resize,
     LK_ONNX_KNOWS("mode", "scales", "coordinate_transformation_mode", "nearest_mode",
                   "cubic_coeff_a", "extrapolation_value")},
    {"Upsample", resize, LK_ONNX_KNOWS("mode", "scales")},
    {"LRN", lrn, LK_ONNX_KNOWS("size", "alpha", "beta", "bias")},
    {0},
};

/* ONNX's Resize and Upsample: along each axis a product with a matrix, whose rows say how much
 * of which pixel is taken. source: onnx.ai/onnx/operators/onnx__Resize.html */
#include "model/onnx_arrays/whole.h"

#include "base/fail.h"
#include "model/onnx_arrays/tables.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TAPS = 512, MOST_LENGTH = 1 << 14 };

enum how { NEAREST, LINEAR, CUBIC };

/* What the node says, and one axis. */
struct sizes {
    enum how how;
    const char *places, *rounding;
    double a, outside;      /* of cubic; what stands outside */
    bool excludes, smooths; /* exclude_outside, antialias */
    bool is_torch;          /* the file is PyTorch's, and means what that computes */
    double scale, roi[2];
    int64_t in, out;
};

/* Where pixel `to` of the result lies in the image. ONNX counts in lengths that need not be
 * whole, as its tests do. PyTorch's exporter writes scales as well, but PyTorch aligns corners
 * by whole lengths, and finds the nearest pixel in float32.
 * source: github.com/onnx/onnx/issues/2462; PyTorch, aten/src/ATen/native/UpSample.h */
static double find_place(const struct sizes *s, int64_t to)
{
    const double x = (double)to, in = (double)s->in, out = s->scale * in;
    if (strcmp(s->places, "align_corners") == 0)
        return s->out == 1 ? 0 : x * (in - 1) / ((s->is_torch ? (double)s->out : out) - 1);
    if (strcmp(s->places, "asymmetric") == 0)
        return s->is_torch && s->how == NEAREST ? (float)x * (float)(1 / s->scale)
                                                : x / s->scale;
    if (strcmp(s->places, "tf_crop_and_resize") == 0)
        return s->roi[0] * (in - 1) +
               (s->out == 1 ? (s->roi[1] - s->roi[0]) * (in - 1) / 2
                            : x * (s->roi[1] - s->roi[0]) * (in - 1) / (out - 1));
    if (strcmp(s->places, "pytorch_half_pixel") == 0)
        return s->out == 1 ? -0.5 : (x + 0.5) / s->scale - 0.5;
    if (strcmp(s->places, "half_pixel_symmetric") == 0)
        return in / 2 * (1 - (double)s->out / out) + (x + 0.5) / s->scale - 0.5;
    return (x + 0.5) / s->scale - 0.5;
}

static bool is_outside(const struct sizes *s, int64_t to)
{
    const double place = find_place(s, to);
    return strcmp(s->places, "tf_crop_and_resize") == 0 &&
           (place < 0 || place > (double)(s->in - 1));
}

/* Keys' kernel at a distance. */
static double cubic(double a, double x)
{
    x = fabs(x);
    return x <= 1  ? ((a + 2) * x - (a + 3)) * x * x + 1
           : x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
                   : 0;
}

/* Weights of taps from *first on, counted from the pixel before the place; ratio: 0 < r <= 1 is
 * how far behind that the place lies. Returns how many. */
static int weigh(const struct sizes *s, double ratio, double *weight, int *first)
{
    if (s->how == NEAREST) {
        const bool is_low = strcmp(s->rounding, "round_prefer_floor") == 0  ? ratio <= 0.5
                            : strcmp(s->rounding, "round_prefer_ceil") == 0 ? ratio < 0.5
                            : strcmp(s->rounding, "floor") == 0             ? ratio < 1
                                                                            : false;
        weight[0] = is_low;
        weight[1] = !is_low;
        *first = 0;
        return 2;
    }
    const double scale = s->smooths && s->scale < 1 ? s->scale : 1;
    const double reach = s->how == LINEAR ? 1 : 2;
    double sum = 0;
    *first = (int)floor(-reach / scale) + 1;
    const int count = 2 - 2 * *first;
    if (count > MOST_TAPS)
        return 0;
    for (int i = 0; i < count; i++) {
        const double apart = scale * ((double)(*first + i) - ratio);
        weight[i] = s->how == LINEAR ? fmax(0, 1 - fabs(apart)) : cubic(s->a, apart);
        sum += weight[i];
    }
    for (int i = 0; i < count && s->smooths; i++)
        weight[i] /= sum;
    return count;
}

/* matrix [out][in] */
static bool fill_matrix(const struct sizes *s, float *matrix)
{
    double weight[MOST_TAPS];
    for (int64_t to = 0; to < s->out; to++) {
        const double place = is_outside(s, to) ? 0 : find_place(s, to);
        const double base = ceil(place) - 1;
        double sum = 0;
        int first;
        const int count = weigh(s, place - base, weight, &first);
        if (count == 0)
            return false;
        for (int i = 0; i < count; i++) {
            const double at = base + first + i;
            if (s->excludes && (at < 0 || at > (double)(s->in - 1)))
                weight[i] = 0;
            sum += weight[i];
        }
        for (int i = 0; i < count; i++) {
            const double at = fmin(fmax(base + first + i, 0), (double)(s->in - 1));
            matrix[to * s->in + (int64_t)at] +=
                (float)(s->excludes ? weight[i] / sum : weight[i]);
        }
    }
    return true;
}

static enum lk_status multiply(draft *d, const struct sizes *s, int axis, value *x)
{
    value matrix;
    int order[LK_ONNX_AXES];
    int64_t dim[LK_ONNX_AXES];
    struct lk_onnx_tensor *numbers;
    const int last = x->rank - 1;
    LK_TRY(lk_onnx_new_tensor(d, LK_ONNX_FLOAT, 2, (const int64_t[]){s->out, s->in}, &numbers));
    if (!fill_matrix(s, (float *)(uintptr_t)numbers->data))
        return lk_onnx_fail(d, "it makes images too much smaller");
    LK_TRY(lk_whole_constant(d, numbers, &matrix));
    for (int i = 0; i <= last; i++)
        order[i] = i;
    order[axis] = last;
    order[last] = axis;
    LK_TRY(lk_whole_order(d, x, order, x));
    memcpy(dim, x->dim, sizeof dim);
    dim[last] = s->out;
    LK_TRY(lk_whole_reshape(d, x, 2, (const int64_t[]){lk_whole_count(last, x->dim), s->in}));
    LK_TRY(lk_whole_order(d, &matrix, (const int[]){1, 0}, &matrix));
    LK_TRY(lk_whole_matmul(d, x, &matrix, x));
    LK_TRY(lk_whole_reshape(d, x, last + 1, dim));
    return lk_whole_order(d, x, order, x);
}

/* --- what the node says ------------------------------------------------------------------ */

static enum lk_status read_how(draft *d, struct sizes *s)
{
    static const char *const modes[] = {"nearest", "linear", "cubic"};
    const bool is_old = strcmp(d->node->op, "Upsample") == 0 || d->file->operators < 11;
    const char *mode;
    int64_t excludes, smooths;
    LK_TRY(lk_onnx_say_text(d, "mode", "nearest", &mode));
    LK_TRY(lk_onnx_say_text(d, "coordinate_transformation_mode",
                            is_old ? "asymmetric" : "half_pixel", &s->places));
    LK_TRY(lk_onnx_say_text(d, "nearest_mode", is_old ? "floor" : "round_prefer_floor",
                            &s->rounding));
    LK_TRY(lk_onnx_say_integer(d, "exclude_outside", 0, &excludes));
    LK_TRY(lk_onnx_say_integer(d, "antialias", 0, &smooths));
    s->a = lk_whole_say(d, "cubic_coeff_a", -0.75);
    s->outside = lk_whole_say(d, "extrapolation_value", 0);
    s->is_torch = strcmp(d->file->producer, "pytorch") == 0;
    s->excludes = excludes != 0;
    s->smooths = smooths != 0;
    for (int i = 0; i < 3; i++)
        if (strcmp(mode, modes[i]) == 0 || (i == LINEAR && strcmp(mode, "bilinear") == 0)) {
            s->how = (enum how)i;
            return LK_OK;
        }
    return lk_onnx_fail(d, "'mode' is %.40s", mode);
}

/* Scale and length of each axis that is named. */
struct axes {
    int count, axis[LK_ONNX_AXES];
    double scale[LK_ONNX_AXES];
    int64_t out[LK_ONNX_AXES];
};

static enum lk_status read_axes(draft *d, const value *x, struct axes *axes)
{
    int64_t said[LK_ONNX_AXES];
    LK_TRY(lk_onnx_numbers(d, "axes", -1, LK_ONNX_AXES, said, &axes->count));
    for (int i = 0; i < axes->count; i++)
        LK_TRY(lk_onnx_axis(d, said[i], x->rank, &axes->axis[i]));
    for (int i = 0; axes->count == 0 && i < x->rank; i++)
        axes->axis[i] = i;
    axes->count = axes->count ? axes->count : x->rank;
    return LK_OK;
}

/* By sizes; the policy may keep the image's proportions. */
static enum lk_status take_sizes(draft *d, const value *x, const struct lk_onnx_tensor *sizes,
                                 struct axes *axes)
{
    const char *policy;
    double common = -1;
    LK_TRY(lk_onnx_say_text(d, "keep_aspect_ratio_policy", "stretch", &policy));
    const bool smaller = strcmp(policy, "not_larger") == 0,
               larger = strcmp(policy, "not_smaller") == 0;
    for (int i = 0; i < axes->count; i++) {
        axes->out[i] = lk_onnx_integer(sizes, i);
        axes->scale[i] = (double)axes->out[i] / (double)x->dim[axes->axis[i]];
        if (common < 0 || (smaller ? axes->scale[i] < common : axes->scale[i] > common))
            common = axes->scale[i];
    }
    for (int i = 0; i < axes->count && (smaller || larger); i++) {
        axes->scale[i] = common;
        axes->out[i] = (int64_t)(common * (double)x->dim[axes->axis[i]] + 0.5);
    }
    return LK_OK;
}

static enum lk_status read_lengths(draft *d, const value *x, struct axes *axes)
{
    const bool is_old = strcmp(d->node->op, "Upsample") == 0 || d->file->operators < 11;
    const struct lk_onnx_attribute *said = lk_onnx_find_attribute(d->node, "scales");
    const struct lk_onnx_tensor *scales, *sizes = NULL;
    LK_TRY(read_axes(d, x, axes));
    LK_TRY(lk_onnx_constant(d, is_old ? 1 : 2, &scales));
    if (!is_old)
        LK_TRY(lk_onnx_constant(d, 3, &sizes));
    if (sizes && sizes->count == axes->count)
        LK_TRY(take_sizes(d, x, sizes, axes));
    else if (!(scales && scales->count == axes->count) &&
             !(said && said->kind == LK_ONNX_REALS && said->count == axes->count))
        return lk_onnx_fail(d, "a scale or a size for each axis is expected");
    for (int i = 0; i < axes->count; i++) {
        if (!sizes || sizes->count != axes->count) {
            axes->scale[i] =
                scales && scales->count ? lk_onnx_real(scales, i) : (double)said->reals[i];
            axes->out[i] = axes->scale[i] > 0 && axes->scale[i] < 1e6
                               ? (int64_t)(axes->scale[i] * (double)x->dim[axes->axis[i]])
                               : 0;
        }
        if (axes->out[i] < 1 || axes->out[i] > MOST_LENGTH ||
            x->dim[axes->axis[i]] > MOST_LENGTH)
            return lk_onnx_fail(d, "a length of %lld", (long long)axes->out[i]);
    }
    return LK_OK;
}

/* Elements outside of the part that is taken get a number. */
struct edges {
    int rank;
    struct sizes axis[LK_ONNX_AXES];
    bool cuts[LK_ONNX_AXES];
    int64_t dim[LK_ONNX_AXES];
};

static int64_t edge_place(const void *how, const int64_t *at)
{
    const struct edges *e = how;
    int64_t place = 0;
    for (int i = 0; i < e->rank; i++) {
        if (e->cuts[i] && is_outside(&e->axis[i], at[i]))
            return -1;
        place = place * e->dim[i] + at[i];
    }
    return place;
}

static enum lk_status resize(draft *d)
{
    value x;
    struct sizes s = {0};
    struct axes axes = {0};
    struct edges edges = {0};
    const struct lk_onnx_tensor *roi = NULL;
    LK_TRY(lk_whole_input(d, 0, &x));
    LK_TRY(read_how(d, &s));
    LK_TRY(read_lengths(d, &x, &axes));
    const bool crops = strcmp(s.places, "tf_crop_and_resize") == 0;
    if (crops)
        LK_TRY(lk_onnx_constant(d, 1, &roi));
    if (crops && (!roi || roi->count != 2 * axes.count))
        return lk_onnx_fail(d, "'roi' is expected to have two numbers for each axis");
    for (int i = 0; i < axes.count; i++) {
        s.scale = axes.scale[i];
        s.in = x.dim[axes.axis[i]];
        s.out = axes.out[i];
        for (int end = 0; end < 2 && crops; end++)
            s.roi[end] = lk_onnx_real(roi, end * axes.count + i);
        if (s.out != s.in || s.scale != 1 || (crops && (s.roi[0] != 0 || s.roi[1] != 1)))
            LK_TRY(multiply(d, &s, axes.axis[i], &x));
        edges.axis[axes.axis[i]] = s;
        edges.cuts[axes.axis[i]] = crops;
    }
    edges.rank = x.rank;
    memcpy(edges.dim, x.dim, sizeof edges.dim);
    if (crops)
        LK_TRY(lk_whole_move(d, &x, x.rank, x.dim, edge_place, &edges, s.outside, &x));
    return lk_onnx_give(d, 0, &x);
}

const struct lk_onnx_operator lk_array_sizes[] = {
    {"Resize", resize,
     LK_ONNX_KNOWS("mode", "scales", "coordinate_transformation_mode", "nearest_mode",
                   "cubic_coeff_a", "extrapolation_value", "exclude_outside", "antialias",
                   "axes", "keep_aspect_ratio_policy")},
    {"Upsample", resize, LK_ONNX_KNOWS("mode", "scales")},
    {0},
};

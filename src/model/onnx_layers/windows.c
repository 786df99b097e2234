/* ONNX's operators that look at windows of images of any number of axes: convolutions, pooling.
 * Windows are one table of places; what is computed of them are products and sums. Large
 * convolutions of single images become those for batches. */
#include "model/onnx/convert.h"
#include "model/onnx_arrays/whole.h"

#include "base/fail.h"
#include "model/onnx_arrays/tables.h"
#include <math.h>
#include <string.h>

enum { MOST = LK_ONNX_AXES - 2, FARTHEST = 1 << 16 };

/* Where windows lie, along each of `axes` axes behind sample and channel. */
struct windows {
    int axes;
    int64_t size[MOST], stride[MOST], dilation[MOST], before[MOST], behind[MOST];
    int64_t in[MOST], out[MOST];
    int64_t gap[MOST]; /* of a transposed one: its input has so many zeros, less one, between */
    int64_t channels, groups; /* of the input */
    bool clamps;         /* to pixels within: what counts then several times does no harm */
    bool counts_padding; /* pixels of padding are some, those behind it none */
};

/* --- what the node says ------------------------------------------------------------------ */

static enum lk_status read_list(draft *d, const char *name, int count, int64_t standard,
                                int64_t low, int64_t *list)
{
    LK_TRY(lk_onnx_say_list(d, name, count, standard, list));
    for (int i = 0; i < count; i++)
        if (list[i] < low || list[i] > FARTHEST)
            return lk_onnx_fail(d, "'%s' has %lld", name, (long long)list[i]);
    return LK_OK;
}

static enum lk_status pad_same(const draft *d, struct windows *w, bool is_lower)
{
    for (int i = 0; i < w->axes; i++) {
        const int64_t reach = (w->size[i] - 1) * w->dilation[i] + 1;
        const int64_t out = (w->in[i] + w->stride[i] - 1) / w->stride[i];
        int64_t missing = (out - 1) * w->stride[i] + reach - w->in[i];
        missing = missing < 0 ? 0 : missing;
        w->before[i] = is_lower ? (missing + 1) / 2 : missing / 2;
        w->behind[i] = missing - w->before[i];
    }
    (void)d;
    return LK_OK;
}

static enum lk_status read_windows(draft *d, const value *x, struct windows *w)
{
    const char *automatic;
    int64_t pads[2 * MOST];
    if (x->rank < 3)
        return lk_onnx_fail(d, "images [n, c, ...] are expected, found %d axes", x->rank);
    w->axes = x->rank - 2;
    w->channels = x->dim[1];
    w->groups = 1;
    for (int i = 0; i < w->axes; i++) {
        w->in[i] = x->dim[2 + i];
        w->gap[i] = 1;
    }
    LK_TRY(read_list(d, "strides", w->axes, 1, 1, w->stride));
    LK_TRY(read_list(d, "dilations", w->axes, 1, 1, w->dilation));
    LK_TRY(read_list(d, "pads", 2 * w->axes, 0, 0, pads));
    LK_TRY(lk_onnx_say_text(d, "auto_pad", "NOTSET", &automatic));
    const bool is_given = strcmp(automatic, "NOTSET") == 0;
    for (int i = 0; i < w->axes; i++) {
        w->before[i] = is_given ? pads[i] : 0;
        w->behind[i] = is_given ? pads[w->axes + i] : 0;
    }
    if (strncmp(automatic, "SAME_", 5) == 0)
        return pad_same(d, w, strcmp(automatic, "SAME_LOWER") == 0);
    if (!is_given && strcmp(automatic, "VALID") != 0)
        return lk_onnx_fail(d, "'auto_pad' is %.40s", automatic);
    return LK_OK;
}

/* How many windows there are; with ceil_mode one more may look beyond, but not begin there. */
static enum lk_status count_windows(const draft *d, struct windows *w, bool ceils)
{
    for (int i = 0; i < w->axes; i++) {
        const int64_t length = (w->in[i] - 1) * w->gap[i] + 1;
        const int64_t reach = (w->size[i] - 1) * w->dilation[i] + 1;
        const int64_t room = length + w->before[i] + w->behind[i] - reach;
        w->out[i] = room < 0 ? 0 : room / w->stride[i] + 1;
        if (ceils && room >= 0 && room % w->stride[i] &&
            w->out[i] * w->stride[i] < length + w->before[i])
            w->out[i]++;
        if (w->out[i] < 1)
            return lk_onnx_fail(d, "windows that do not fit into the image");
    }
    return LK_OK;
}

/* --- windows as an array ----------------------------------------------------------------- */

/* The pixel of channel c that tap k[] of the window at o[] sees; -1: none. */
static int64_t pixel(const struct windows *w, int64_t sample, int64_t c, const int64_t *k,
                     const int64_t *o)
{
    int64_t place = sample * w->channels + c;
    for (int i = 0; i < w->axes; i++) {
        int64_t at = o[i] * w->stride[i] + k[i] * w->dilation[i] - w->before[i];
        if (w->clamps) {
            while (at < 0)
                at += w->dilation[i];
            while (at > w->in[i] - 1)
                at -= w->dilation[i];
        }
        if (at < 0 || at % w->gap[i] || at / w->gap[i] >= w->in[i])
            return -1;
        place = place * w->in[i] + at / w->gap[i];
    }
    return place;
}

/* One axis of the result each for the taps and for the windows. */
static void take_apart(int axes, int64_t number, const int64_t *lengths, int64_t *at)
{
    for (int i = axes - 1; i >= 0; i--) {
        at[i] = number % lengths[i];
        number /= lengths[i];
    }
}

static int64_t product(int axes, const int64_t *lengths)
{
    return lk_whole_count(axes, lengths);
}

/* [n, c, windows, taps] for pooling. */
static int64_t pool_place(const void *how, const int64_t *at)
{
    const struct windows *w = how;
    int64_t k[MOST], o[MOST];
    take_apart(w->axes, at[2], w->out, o);
    take_apart(w->axes, at[3], w->size, k);
    return pixel(w, at[0], at[1], k, o);
}

/* [n, groups, channels of a group and taps, windows] for products. */
static int64_t conv_place(const void *how, const int64_t *at)
{
    const struct windows *w = how;
    const int64_t taps = product(w->axes, w->size);
    int64_t k[MOST], o[MOST];
    take_apart(w->axes, at[3], w->out, o);
    take_apart(w->axes, at[2] % taps, w->size, k);
    return pixel(w, at[0], at[1] * (w->channels / w->groups) + at[2] / taps, k, o);
}

/* --- convolutions ------------------------------------------------------------------------ */

/* x and kernel [filters, channels of a group, taps ...] into [n, filters, windows ...]. */
static enum lk_status multiply(draft *d, const struct windows *w, const value *x,
                               const value *kernel, value *made)
{
    const int64_t n = x->dim[0], filters = kernel->dim[0], taps = product(w->axes, w->size),
                  outs = product(w->axes, w->out), each = w->channels / w->groups;
    value columns, weights = *kernel, bias;
    int64_t dim[LK_ONNX_AXES] = {n, filters};
    if (outs < 1 || taps < 1)
        return lk_onnx_fail(d, "windows of too many pixels");
    LK_TRY(lk_whole_move(d, x, 4, (const int64_t[]){n, w->groups, each * taps, outs},
                         conv_place, w, 0, &columns));
    LK_TRY(lk_whole_reshape(d, &weights, 4,
                            (const int64_t[]){1, w->groups, filters / w->groups, each * taps}));
    LK_TRY(lk_whole_matmul(d, &weights, &columns, made));
    for (int i = 0; i < w->axes; i++)
        dim[2 + i] = w->out[i];
    LK_TRY(lk_whole_reshape(d, made, w->axes + 2, dim));
    if (!lk_whole_has(d, 2))
        return LK_OK;
    LK_TRY(lk_whole_weight(d, 2, &bias));
    return lk_whole_scale(d, made, 1, NULL, &bias, made);
}

static enum lk_status open_kernel(draft *d, const value *x, value *kernel, struct windows *w)
{
    int64_t said[MOST];
    *w = (struct windows){0};
    LK_TRY(lk_whole_weight(d, 1, kernel));
    if (x->rank < 3 || kernel->rank != x->rank)
        return lk_onnx_fail(d, "a kernel of as many axes as the image is expected");
    for (int i = 0; i < x->rank - 2; i++)
        w->size[i] = kernel->dim[2 + i];
    LK_TRY(read_windows(d, x, w));
    LK_TRY(lk_onnx_say_integer(d, "group", 1, &w->groups));
    LK_TRY(lk_onnx_say_list(d, "kernel_shape", w->axes, 0, said));
    for (int i = 0; i < w->axes; i++)
        if (said[i] && said[i] != w->size[i])
            return lk_onnx_fail(d, "'kernel_shape' is not that of the kernel");
    if (w->groups < 1 || w->channels % w->groups || kernel->dim[0] % w->groups)
        return lk_onnx_fail(d, "%lld groups", (long long)w->groups);
    return LK_OK;
}

/* Whether the operators for batches should compute it: their kernels are much faster, and are
 * built for the shape. */
static bool is_large(const draft *d, const value *x)
{
    enum { LARGE = 1 << 16 };
    const value *kernel = lk_onnx_input(d, 1);
    return x->rank == 4 && x->dim[0] == 1 && kernel && (kernel->constant || kernel->known) &&
           lk_whole_count(x->rank, x->dim) > LARGE / 8 &&
           lk_whole_count(x->rank, x->dim) *
                   (kernel->constant ? kernel->constant : kernel->known)->count >
               (int64_t)LARGE * 64;
}

static enum lk_status conv(draft *d)
{
    struct windows w;
    value x, kernel;
    bool done = false;
    LK_TRY(lk_whole_input(d, 0, &x));
    if (is_large(d, &x) && lk_onnx_input(d, 0)->node)
        return lk_onnx_convert_batch(d, &done);
    LK_TRY(open_kernel(d, &x, &kernel, &w));
    if (kernel.dim[1] * w.groups != w.channels)
        return lk_onnx_fail(d, "a kernel of %lld channels for an image of %lld",
                            (long long)kernel.dim[1], (long long)w.channels);
    LK_TRY(count_windows(d, &w, false));
    LK_TRY(multiply(d, &w, &x, &kernel, &x));
    return lk_onnx_give(d, 0, &x);
}

/* The kernel with its taps turned round and inputs and outputs of a group changed over. */
struct turned {
    int axes;
    int64_t each_in, each_out, size[MOST]; /* channels of a group */
};

static int64_t turned_place(const void *how, const int64_t *at)
{
    const struct turned *t = how;
    const int64_t group = at[0] / t->each_out;
    int64_t place = (group * t->each_in + at[1]) * t->each_out + at[0] % t->each_out;
    for (int i = 0; i < t->axes; i++)
        place = place * t->size[i] + t->size[i] - 1 - at[2 + i];
    return place;
}

/* As the operator's definition has it: padding by the output's shape, or by auto_pad. */
static enum lk_status place_transposed(draft *d, struct windows *w, int64_t *added)
{
    int64_t shape[LK_ONNX_AXES] = {0};
    int count;
    const char *automatic;
    const struct lk_onnx_attribute *said = lk_onnx_find_attribute(d->node, "output_shape");
    LK_TRY(read_list(d, "output_padding", w->axes, 0, 0, added));
    LK_TRY(lk_onnx_say_text(d, "auto_pad", "NOTSET", &automatic));
    LK_TRY(lk_onnx_numbers(d, "output_shape", 1000, LK_ONNX_AXES, shape, &count));
    const bool is_same = strncmp(automatic, "SAME_", 5) == 0;
    if (said && count != w->axes && count != w->axes + 2)
        return lk_onnx_fail(d, "'output_shape' has %d lengths", count);
    for (int i = 0; i < w->axes; i++) {
        const int64_t reach = (w->size[i] - 1) * w->dilation[i] + 1;
        const int64_t whole = (w->in[i] - 1) * w->stride[i] + added[i] + reach;
        if (said || is_same) {
            const int64_t wanted = said ? shape[i + count - w->axes] : w->in[i] * w->stride[i];
            const int64_t total = whole - wanted < 0 ? 0 : whole - wanted;
            const bool upper = strcmp(automatic, "SAME_UPPER") == 0;
            if (wanted < 1 || wanted > FARTHEST)
                return lk_onnx_fail(d, "'output_shape' has %lld", (long long)wanted);
            w->before[i] = upper ? total / 2 : total - total / 2;
            w->behind[i] = total - w->before[i];
            if (whole - wanted < 0)
                added[i] += wanted - whole;
        }
    }
    return LK_OK;
}

/* A convolution of the image with zeros between its pixels. */
static enum lk_status conv_transpose(draft *d)
{
    struct windows w;
    struct turned t = {0};
    value x, kernel;
    int64_t added[MOST], dim[LK_ONNX_AXES];
    LK_TRY(lk_whole_input(d, 0, &x));
    LK_TRY(open_kernel(d, &x, &kernel, &w));
    if (kernel.dim[0] != w.channels)
        return lk_onnx_fail(d, "a kernel of %lld channels for an image of %lld",
                            (long long)kernel.dim[0], (long long)w.channels);
    LK_TRY(place_transposed(d, &w, added));
    t.axes = w.axes;
    t.each_in = w.channels / w.groups;
    t.each_out = kernel.dim[1];
    dim[0] = t.each_out * w.groups;
    dim[1] = t.each_in;
    for (int i = 0; i < w.axes; i++) {
        const int64_t reach = (w.size[i] - 1) * w.dilation[i];
        dim[2 + i] = t.size[i] = w.size[i];
        w.gap[i] = w.stride[i];
        w.stride[i] = 1;
        w.before[i] = reach - w.before[i];
        w.behind[i] = reach - w.behind[i] + added[i];
    }
    LK_TRY(lk_whole_move(d, &kernel, kernel.rank, dim, turned_place, &t, 0, &kernel));
    LK_TRY(count_windows(d, &w, false));
    LK_TRY(multiply(d, &w, &x, &kernel, &x));
    return lk_onnx_give(d, 0, &x);
}

/* --- pooling ----------------------------------------------------------------------------- */

static enum lk_status open_pool(draft *d, const value *x, struct windows *w, bool *ceils)
{
    int64_t ceil_mode;
    *w = (struct windows){0};
    if (x->rank < 3)
        return lk_onnx_fail(d, "images [n, c, ...] are expected");
    LK_TRY(read_list(d, "kernel_shape", x->rank - 2, 1, 1, w->size));
    LK_TRY(read_windows(d, x, w));
    LK_TRY(lk_onnx_say_integer(d, "ceil_mode", 0, &ceil_mode));
    *ceils = ceil_mode != 0;
    return count_windows(d, w, *ceils);
}

/* Windows as [n, c, windows, taps]. */
static enum lk_status see_windows(draft *d, const struct windows *w, const value *x,
                                  value *made)
{
    const int64_t dim[] = {x->dim[0], x->dim[1], product(w->axes, w->out),
                           product(w->axes, w->size)};
    return lk_whole_move(d, x, 4, dim, pool_place, w, 0, made);
}

static enum lk_status give_pooled(draft *d, const struct windows *w, value *x, int output)
{
    int64_t dim[LK_ONNX_AXES] = {x->dim[0], x->dim[1]};
    for (int i = 0; i < w->axes; i++)
        dim[2 + i] = w->out[i];
    LK_TRY(lk_whole_reshape(d, x, w->axes + 2, dim));
    return lk_onnx_give(d, output, x);
}

/* Whether every window sees a pixel. */
static bool all_see(const struct windows *w)
{
    for (int i = 0; i < w->axes; i++)
        for (int64_t o = 0; o < w->out[i]; o++) {
            bool sees = false;
            for (int64_t k = 0; k < w->size[i]; k++) {
                const int64_t at = o * w->stride[i] + k * w->dilation[i] - w->before[i];
                sees |= at >= 0 && at < w->in[i];
            }
            if (!sees)
                return false;
        }
    return true;
}

/* Places of the largest, counted over all of the input. */
static enum lk_status give_places(draft *d, const struct windows *w, const value *x,
                                  const value *seen)
{
    value place, numbers, all[3];
    int64_t turned, steps[LK_ONNX_AXES];
    struct lk_onnx_tensor *counts, *taps;
    LK_TRY(lk_onnx_say_integer(d, "storage_order", 0, &turned));
    const int64_t count = lk_whole_count(x->rank, x->dim), tap = product(w->axes, w->size);
    LK_TRY(lk_onnx_new_tensor(d, LK_ONNX_FLOAT, x->rank, x->dim, &counts));
    LK_TRY(lk_onnx_new_tensor(d, LK_ONNX_FLOAT, 1, &tap, &taps));
    lk_whole_strides(x->rank, x->dim, steps);
    for (int i = x->rank - 1; turned && i > 1; i--) /* the first of the pixels' axes fastest */
        steps[i] = i == 2 ? 1 : 0;
    for (int i = 3; turned && i < x->rank; i++)
        steps[i] = steps[i - 1] * x->dim[i - 1];
    for (int64_t e = 0; e < count; e++) {
        int64_t at[LK_ONNX_AXES], place_of = 0;
        take_apart(x->rank, e, x->dim, at);
        for (int i = 0; i < x->rank; i++)
            place_of += at[i] * steps[i];
        lk_onnx_put_real(counts, e, (double)place_of);
    }
    for (int64_t i = 0; i < tap; i++)
        lk_onnx_put_real(taps, i, (double)i);
    LK_TRY(lk_whole_reduce(d, "largest_place", seen, 8, &place));
    LK_TRY(lk_whole_constant(d, counts, &numbers));
    LK_TRY(see_windows(d, w, &numbers, &all[1]));
    LK_TRY(lk_whole_constant(d, taps, &numbers));
    LK_TRY(lk_whole_two(d, "equal", &place, &numbers, &all[0]));
    LK_TRY(lk_whole_number(d, 0, &all[2]));
    LK_TRY(lk_whole_math(d, "choice", 3, all, &place));
    LK_TRY(lk_whole_reduce(d, "sum", &place, 8, &place));
    place.type = LK_ONNX_INT64;
    return give_pooled(d, w, &place, 1);
}

static enum lk_status max_pool(draft *d)
{
    struct windows w;
    value x, seen;
    bool ceils;
    LK_TRY(lk_whole_input(d, 0, &x));
    LK_TRY(open_pool(d, &x, &w, &ceils));
    w.clamps = true;
    if (!all_see(&w))
        return lk_onnx_fail(d, "windows that see padding alone");
    LK_TRY(see_windows(d, &w, &x, &seen));
    if (d->node->output_count > 1 && *d->node->outputs[1])
        LK_TRY(give_places(d, &w, &x, &seen));
    const enum lk_onnx_type type = x.type;
    LK_TRY(lk_whole_reduce(d, "largest", &seen, 8, &seen));
    seen.type = type;
    return give_pooled(d, &w, &seen, 0);
}

/* How many pixels a window counts: those of the image, or of its padding too. */
static double seen_by(const struct windows *w, const int64_t *o, bool counts_padding)
{
    double all = 1;
    for (int i = 0; i < w->axes; i++) {
        int64_t seen = 0;
        for (int64_t k = 0; k < w->size[i]; k++) {
            const int64_t at = o[i] * w->stride[i] + k * w->dilation[i] - w->before[i];
            seen += counts_padding ? at < w->in[i] + w->behind[i] : at >= 0 && at < w->in[i];
        }
        all *= (double)seen;
    }
    return all;
}

static enum lk_status average_pool(draft *d)
{
    struct windows w;
    value x, seen, counts;
    int64_t counts_padding;
    bool ceils;
    struct lk_onnx_tensor *numbers;
    LK_TRY(lk_whole_input(d, 0, &x));
    LK_TRY(open_pool(d, &x, &w, &ceils));
    LK_TRY(lk_onnx_say_integer(d, "count_include_pad", 0, &counts_padding));
    const int64_t outs = product(w.axes, w.out);
    LK_TRY(see_windows(d, &w, &x, &seen));
    LK_TRY(lk_onnx_new_tensor(d, LK_ONNX_FLOAT, 2, (const int64_t[]){outs, 1}, &numbers));
    for (int64_t i = 0; i < outs; i++) {
        int64_t o[MOST];
        take_apart(w.axes, i, w.out, o);
        lk_onnx_put_real(numbers, i, seen_by(&w, o, counts_padding != 0));
    }
    LK_TRY(lk_whole_reduce(d, "sum", &seen, 8, &seen));
    LK_TRY(lk_whole_constant(d, numbers, &counts));
    LK_TRY(lk_whole_two(d, "quotient", &seen, &counts, &seen));
    return give_pooled(d, &w, &seen, 0);
}

static enum lk_status lp_pool(draft *d)
{
    struct windows w;
    value x, seen;
    int64_t power;
    bool ceils;
    LK_TRY(lk_whole_input(d, 0, &x));
    LK_TRY(open_pool(d, &x, &w, &ceils));
    LK_TRY(lk_onnx_say_integer(d, "p", 2, &power));
    if (power < 1 || power > 64)
        return lk_onnx_fail(d, "'p' is %lld", (long long)power);
    LK_TRY(lk_whole_apply(d, power == 2 ? "square" : "abs", "", &x, &x));
    if (power > 2)
        LK_TRY(lk_whole_with(d, "power", &x, (double)power, &x));
    LK_TRY(see_windows(d, &w, &x, &seen));
    LK_TRY(lk_whole_reduce(d, "sum", &seen, 8, &seen));
    if (power == 2)
        LK_TRY(lk_whole_math(d, "sqrt", 1, &seen, &seen));
    if (power > 2)
        LK_TRY(lk_whole_with(d, "power", &seen, 1 / (double)power, &seen));
    return give_pooled(d, &w, &seen, 0);
}

static enum lk_status pool_all(draft *d)
{
    value x;
    LK_TRY(lk_whole_input(d, 0, &x));
    if (x.rank < 3)
        return lk_onnx_fail(d, "images [n, c, ...] are expected");
    const bool is_max = strcmp(d->node->op, "GlobalMaxPool") == 0;
    LK_TRY(lk_whole_reduce(d, is_max ? "largest" : "mean", &x, ((1u << x.rank) - 1) & ~3u, &x));
    return lk_onnx_give(d, 0, &x);
}

/* --- over channels ----------------------------------------------------------------------- */

struct near {
    int64_t channels, pixels, size;
};

static int64_t near_place(const void *how, const int64_t *at)
{
    const struct near *n = how;
    const int64_t c = at[1] + at[3] - (n->size - 1) / 2;
    return c < 0 || c >= n->channels ? -1 : (at[0] * n->channels + c) * n->pixels + at[2];
}

static enum lk_status lrn(draft *d)
{
    value x, sum;
    int64_t size;
    LK_TRY(lk_whole_input(d, 0, &x));
    LK_TRY(lk_onnx_say_integer(d, "size", 1, &size));
    if (x.rank < 2 || size < 1 || size > 4096)
        return lk_onnx_fail(d, "'size' is %lld", (long long)size);
    const struct near n = {x.dim[1], lk_whole_count(x.rank - 2, x.dim + 2), size};
    LK_TRY(lk_whole_apply(d, "square", "", &x, &sum));
    LK_TRY(lk_whole_move(d, &sum, 4, (const int64_t[]){x.dim[0], x.dim[1], n.pixels, size},
                         near_place, &n, 0, &sum));
    LK_TRY(lk_whole_reduce(d, "sum", &sum, 8, &sum));
    LK_TRY(lk_whole_reshape(d, &sum, x.rank, x.dim));
    LK_TRY(
        lk_whole_with(d, "product", &sum, lk_whole_say(d, "alpha", 1e-4) / (double)size, &sum));
    LK_TRY(lk_whole_with(d, "sum", &sum, lk_whole_say(d, "bias", 1), &sum));
    LK_TRY(lk_whole_with(d, "power", &sum, lk_whole_say(d, "beta", 0.75), &sum));
    LK_TRY(lk_whole_two(d, "quotient", &x, &sum, &x));
    return lk_onnx_give(d, 0, &x);
}

#define WINDOWS "kernel_shape", "strides", "pads", "dilations", "auto_pad"

const struct lk_onnx_operator lk_array_windows[] = {
    {"Conv", conv, LK_ONNX_KNOWS(WINDOWS, "group")},
    {"ConvTranspose", conv_transpose,
     LK_ONNX_KNOWS(WINDOWS, "group", "output_padding", "output_shape")},
    {"MaxPool", max_pool, LK_ONNX_KNOWS(WINDOWS, "ceil_mode", "storage_order")},
    {"AveragePool", average_pool, LK_ONNX_KNOWS(WINDOWS, "ceil_mode", "count_include_pad")},
    {"LpPool", lp_pool, LK_ONNX_KNOWS(WINDOWS, "ceil_mode", "p")},
    {"GlobalAveragePool", pool_all, LK_ONNX_KNOWS(NULL)},
    {"GlobalMaxPool", pool_all, LK_ONNX_KNOWS(NULL)},
    {"LRN", lrn, LK_ONNX_KNOWS("size", "alpha", "beta", "bias")},
    {0},
};

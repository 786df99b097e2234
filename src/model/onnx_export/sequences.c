/* Operations on tokens and time steps as operators of ONNX. What lies behind a length is hidden
 * where our operations take it as 0, so that both give the same there. */
#include "model/onnx_export/export.h"

#include "base/fail.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- lengths ----------------------------------------------------------------------------- */

enum lk_status lk_onnx_emit_mask(struct lk_onnx_export *e, const char *what,
                                 const struct lk_onnx_steps *steps, const char **mask)
{
    static const struct lk_shape column = {1, {1}};
    char of[4][64];
    int64_t *first;
    const char *inputs[2], *length, *valid;
    for (int i = 0; i < 4; i++)
        snprintf(of[i], sizeof of[i], "%s.%s", what,
                 (const char *const[]){"steps", "column", "length", "valid"}[i]);
    LK_TRY(lk_onnx_take(e, (size_t)steps->count, sizeof *first, &first));
    for (int64_t i = 0; i < steps->count; i++)
        first[i] = steps->first + i * steps->stride;
    LK_TRY(lk_onnx_emit_integers(e, of[0], (int)steps->count, first, &inputs[0]));
    LK_TRY(lk_onnx_name(e, of[2], &length));
    LK_TRY(lk_onnx_emit_reshape(e, of[1], steps->length, &column, length));
    inputs[1] = length;
    LK_TRY(lk_onnx_emit(e, "Less", of[3], 2, inputs, &valid));
    if (steps->shape.rank == 1) {
        *mask = valid;
        return LK_OK;
    }
    snprintf(of[0], sizeof of[0], "%s.shape", what);
    snprintf(of[1], sizeof of[1], "%s.mask", what);
    LK_TRY(lk_onnx_name(e, of[1], mask));
    return lk_onnx_emit_reshape(e, of[0], valid, &steps->shape, *mask);
}

enum lk_status lk_onnx_emit_hide(struct lk_onnx_export *e, const char *what,
                                 struct lk_onnx_steps *steps, const char *x, double hidden,
                                 const char *y)
{
    char of[64];
    const char *inputs[3] = {NULL, x, NULL};
    steps->shape = (struct lk_shape){2, {steps->count, 1}};
    snprintf(of, sizeof of, "%s.hidden", what);
    LK_TRY(lk_onnx_emit_mask(e, what, steps, &inputs[0]));
    LK_TRY(lk_onnx_emit_real_constant(e, of, hidden, &inputs[2]));
    return lk_onnx_emit_node(e, "Where", y, 3, inputs);
}

enum lk_status lk_onnx_emit_transpose(struct lk_onnx_export *e, const char *what, int rank,
                                      const int64_t *order, const char *x, const char **y)
{
    LK_TRY(lk_onnx_emit(e, "Transpose", what, 1, &x, y));
    return lk_onnx_emit_list(e, "perm", rank, order);
}

static const int64_t turned[] = {0, 2, 1}; /* [n, t, c] to [n, c, t], and back */

/* What stands for the length of the node at work; NULL: all time steps count. */
static const char *length_of(const struct lk_onnx_export *e, const char *const *x)
{
    return e->node->inputs > 1 ? x[1] : NULL;
}

/* All time steps of the first input, or of the output. */
static struct lk_onnx_steps all_steps(const char *length, const struct lk_shape *shape)
{
    return (struct lk_onnx_steps){.length = length, .stride = 1, .count = shape->dim[0]};
}

/* Makes y of what was `made`, with 0 behind the length. */
static enum lk_status finish(struct lk_onnx_export *e, const char *const *x, const char *made,
                             const char *y)
{
    struct lk_onnx_steps steps = all_steps(length_of(e, x), &e->node->shapes.y);
    if (!steps.length)
        return lk_onnx_emit_node(e, "Identity", y, 1, &made);
    return lk_onnx_emit_hide(e, "end", &steps, made, 0, y);
}

/* --- tokens ------------------------------------------------------------------------------ */

/* Tokens that are none of the table have 0. */
static enum lk_status embedding(struct lk_onnx_export *e, const char *const *x, const char *y)
{
    const struct lk_shape *tokens = &e->node->shapes.x[0];
    const bool is_sequence = tokens->rank == 1;
    const struct lk_shape column = {is_sequence ? 2 : 1, {is_sequence ? tokens->dim[0] : 1, 1}};
    int64_t vocabulary;
    const char *limits[3] = {x[0]}, *rows[3], *known[2] = {x[0]}, *chosen[3], *valid;
    lk_onnx_option_integers(e, "vocabulary", 1, &vocabulary);
    LK_TRY(lk_onnx_emit_integer_constant(e, "first", 0, &limits[1]));
    LK_TRY(lk_onnx_emit_integer_constant(e, "last", vocabulary - 1, &limits[2]));
    LK_TRY(lk_onnx_emit(e, "Clip", "known", 3, limits, &rows[1]));
    known[1] = rows[1];
    LK_TRY(lk_onnx_emit(e, "Equal", "is_known", 2, known, &valid));
    LK_TRY(lk_onnx_emit_param(e, "weight", true, NULL, &rows[0]));
    LK_TRY(lk_onnx_emit(e, "Gather", "row", 2, rows, &chosen[1]));
    lk_onnx_emit_integer(e, "axis", 0);
    if (length_of(e, x)) {
        struct lk_onnx_steps steps = all_steps(length_of(e, x), tokens);
        const char *both[2] = {valid};
        steps.shape = *tokens;
        LK_TRY(lk_onnx_emit_mask(e, "end", &steps, &both[1]));
        LK_TRY(lk_onnx_emit(e, "And", "counts", 2, both, &valid));
    }
    LK_TRY(lk_onnx_name(e, "mask", &chosen[0]));
    LK_TRY(lk_onnx_emit_reshape(e, "shape", valid, &column, chosen[0]));
    LK_TRY(lk_onnx_emit_real_constant(e, "hidden", 0, &chosen[2]));
    return lk_onnx_emit_node(e, "Where", y, 3, chosen);
}

/* --- windows of time steps ---------------------------------------------------------------- */

/* lack: how many of its steps a window needs beside the first. */
struct windows {
    int64_t size, stride, gap, pads[2], lack;
};

/* As lk_steps_place() has them; ONNX has no padding below 0. */
static void read_windows(const struct lk_onnx_export *e, const char *size, int64_t gap,
                         struct windows *w)
{
    const int64_t steps = e->node->shapes.x[0].dim[0], count = e->node->shapes.y.dim[0];
    *w = (struct windows){.gap = gap};
    lk_onnx_option_integers(e, size, 1, &w->size);
    lk_onnx_option_integers(e, "stride", 1, &w->stride);
    w->stride = w->stride ? w->stride : w->size;
    const int64_t reach = (w->size - 1) * gap + 1;
    const int64_t missing = (count - 1) * w->stride + reach - steps;
    w->pads[0] = lk_onnx_option_is(e, "padding", "causal")                ? reach - 1
                 : missing > 0 && lk_onnx_option_is(e, "padding", "same") ? missing / 2
                                                                          : 0;
    w->pads[1] = missing > w->pads[0] ? missing - w->pads[0] : 0;
    w->lack = lk_onnx_option_is(e, "padding", "valid") ? reach - 1 : 0;
}

static enum lk_status say_windows(struct lk_onnx_export *e, const struct windows *w)
{
    LK_TRY(lk_onnx_emit_list(e, "kernel_shape", 1, &w->size));
    LK_TRY(lk_onnx_emit_list(e, "strides", 1, &w->stride));
    return lk_onnx_emit_list(e, "pads", 2, w->pads);
}

/* Hides time steps behind the length, and puts channels before steps. */
static enum lk_status begin_windows(struct lk_onnx_export *e, const char *const *x,
                                    double hidden, const char **begun)
{
    const char *from = x[0];
    if (length_of(e, x)) {
        struct lk_onnx_steps steps = all_steps(length_of(e, x), &e->node->shapes.x[0]);
        LK_TRY(lk_onnx_name(e, "valid", &from));
        LK_TRY(lk_onnx_emit_hide(e, "begin", &steps, x[0], hidden, from));
    }
    return lk_onnx_emit_transpose(e, "channels", 3, turned, from, begun);
}

/* Puts time steps first again, and 0 where no window is valid. */
static enum lk_status end_windows(struct lk_onnx_export *e, const char *const *x,
                                  const struct windows *w, const char *made, const char *y)
{
    struct lk_onnx_steps steps = {.length = length_of(e, x),
                                  .first = w->lack,
                                  .stride = w->stride,
                                  .count = e->node->shapes.y.dim[0]};
    const char *rows;
    if (steps.length) {
        LK_TRY(lk_onnx_emit_transpose(e, "rows", 3, turned, made, &rows));
        return lk_onnx_emit_hide(e, "end", &steps, rows, 0, y);
    }
    LK_TRY(lk_onnx_emit_node(e, "Transpose", y, 1, &made));
    return lk_onnx_emit_list(e, "perm", 3, turned);
}

static enum lk_status conv1d(struct lk_onnx_export *e, const char *const *x, const char *y)
{
    struct windows w;
    int64_t gap;
    const char *inputs[3], *made;
    lk_onnx_option_integers(e, "dilation", 1, &gap);
    read_windows(e, "kernel", gap, &w);
    LK_TRY(begin_windows(e, x, 0, &inputs[0]));
    LK_TRY(lk_onnx_emit_param(e, "weight", false, NULL, &inputs[1]));
    LK_TRY(lk_onnx_emit_param(e, "bias", true, NULL, &inputs[2]));
    LK_TRY(lk_onnx_emit(e, "Conv", "windows", 3, inputs, &made));
    LK_TRY(say_windows(e, &w));
    LK_TRY(lk_onnx_emit_list(e, "dilations", 1, &w.gap));
    return end_windows(e, x, &w, made, y);
}

#define LOWEST (-3.4e38) /* what no largest number is */

static enum lk_status max_pool1d(struct lk_onnx_export *e, const char *const *x, const char *y)
{
    struct windows w;
    const char *from, *made;
    read_windows(e, "size", 1, &w);
    LK_TRY(begin_windows(e, x, LOWEST, &from));
    LK_TRY(lk_onnx_emit(e, "MaxPool", "windows", 1, &from, &made));
    LK_TRY(say_windows(e, &w));
    return end_windows(e, x, &w, made, y);
}

/* With a length it is the mean of x over the mean of what counts: 1 or 0. */
static enum lk_status average_pool1d(struct lk_onnx_export *e, const char *const *x,
                                     const char *y)
{
    struct windows w;
    const char *from, *made, *counts, *valid, *both[2];
    read_windows(e, "size", 1, &w);
    LK_TRY(begin_windows(e, x, 0, &from));
    LK_TRY(lk_onnx_emit(e, "AveragePool", "windows", 1, &from, &made));
    LK_TRY(say_windows(e, &w));
    lk_onnx_emit_integer(e, "count_include_pad", length_of(e, x) != NULL);
    if (length_of(e, x)) {
        struct lk_onnx_steps steps = all_steps(length_of(e, x), &e->node->shapes.x[0]);
        steps.shape = (struct lk_shape){2, {1, steps.count}};
        LK_TRY(lk_onnx_emit_mask(e, "share", &steps, &valid));
        LK_TRY(lk_onnx_emit(e, "Cast", "share.number", 1, &valid, &counts));
        lk_onnx_emit_integer(e, "to", LK_ONNX_FLOAT);
        LK_TRY(lk_onnx_emit(e, "AveragePool", "share.windows", 1, &counts, &both[1]));
        LK_TRY(say_windows(e, &w));
        lk_onnx_emit_integer(e, "count_include_pad", 1);
        both[0] = made;
        LK_TRY(lk_onnx_emit(e, "Div", "mean", 2, both, &made));
    }
    return end_windows(e, x, &w, made, y);
}

/* --- all time steps ----------------------------------------------------------------------- */

/* Of a sample without any valid time step it is 0. */
static enum lk_status global_max_pool1d(struct lk_onnx_export *e, const char *const *x,
                                        const char *y)
{
    struct lk_onnx_steps steps = all_steps(length_of(e, x), &e->node->shapes.x[0]);
    struct lk_onnx_steps any = {steps.length, 0, 1, 1, {1, {1}}};
    const char *valid, *chosen[3];
    if (!steps.length)
        return lk_onnx_emit_reduce(e, "ReduceMax", 1, x[0], y);
    LK_TRY(lk_onnx_name(e, "valid", &valid));
    LK_TRY(lk_onnx_emit_hide(e, "begin", &steps, x[0], LOWEST, valid));
    LK_TRY(lk_onnx_name(e, "largest", &chosen[1]));
    LK_TRY(lk_onnx_emit_reduce(e, "ReduceMax", 1, valid, chosen[1]));
    LK_TRY(lk_onnx_emit_mask(e, "any", &any, &chosen[0]));
    LK_TRY(lk_onnx_emit_real_constant(e, "hidden", 0, &chosen[2]));
    return lk_onnx_emit_node(e, "Where", y, 3, chosen);
}

static enum lk_status global_average_pool1d(struct lk_onnx_export *e, const char *const *x,
                                            const char *y)
{
    static const struct lk_shape column = {1, {1}};
    struct lk_onnx_steps steps = all_steps(length_of(e, x), &e->node->shapes.x[0]);
    const char *valid, *length[2], *mean[2];
    if (!steps.length)
        return lk_onnx_emit_reduce(e, "ReduceMean", 1, x[0], y);
    LK_TRY(lk_onnx_name(e, "valid", &valid));
    LK_TRY(lk_onnx_emit_hide(e, "begin", &steps, x[0], 0, valid));
    LK_TRY(lk_onnx_name(e, "sum", &mean[0]));
    LK_TRY(lk_onnx_emit_reduce(e, "ReduceSum", 1, valid, mean[0]));
    LK_TRY(lk_onnx_emit(e, "Cast", "number", 1, &steps.length, &length[0]));
    lk_onnx_emit_integer(e, "to", LK_ONNX_FLOAT);
    LK_TRY(lk_onnx_emit_real_constant(e, "one", 1, &length[1]));
    LK_TRY(lk_onnx_emit(e, "Max", "count", 2, length, &valid));
    LK_TRY(lk_onnx_name(e, "column", &mean[1]));
    LK_TRY(lk_onnx_emit_reshape(e, "shape", valid, &column, mean[1]));
    return lk_onnx_emit_node(e, "Div", y, 2, mean);
}

/* Step n - 1 is the sum of all, of which it alone is not hidden. */
static enum lk_status last_step(struct lk_onnx_export *e, const char *const *x, const char *y)
{
    struct lk_onnx_steps steps = all_steps(length_of(e, x), &e->node->shapes.x[0]);
    const char *inputs[3] = {x[0]}, *valid, *number, *reached, *next;
    if (!steps.length) {
        LK_TRY(lk_onnx_emit_integer_constant(e, "last", steps.count - 1, &inputs[1]));
        LK_TRY(lk_onnx_emit_node(e, "Gather", y, 2, inputs));
        lk_onnx_emit_integer(e, "axis", 1);
        return LK_OK;
    }
    LK_TRY(lk_onnx_name(e, "valid", &valid));
    LK_TRY(lk_onnx_emit_hide(e, "begin", &steps, x[0], 0, valid));
    steps.first = 1;
    LK_TRY(lk_onnx_emit_mask(e, "later", &steps, &next));
    LK_TRY(lk_onnx_emit_real_constant(e, "nothing", 0, &number));
    LK_TRY(
        lk_onnx_emit(e, "Where", "only", 3, (const char *[]){next, number, valid}, &reached));
    return lk_onnx_emit_reduce(e, "ReduceSum", 1, reached, y);
}

static enum lk_status reverse_steps(struct lk_onnx_export *e, const char *const *x,
                                    const char *y)
{
    const char *inputs[5] = {x[0]}, *made;
    if (length_of(e, x)) {
        LK_TRY(lk_onnx_emit(e, "ReverseSequence", "reversed", 2, x, &made));
        lk_onnx_emit_integer(e, "batch_axis", 0);
        lk_onnx_emit_integer(e, "time_axis", 1);
        return finish(e, x, made, y);
    }
    LK_TRY(lk_onnx_emit_integers(e, "starts", 1, (int64_t[]){-1}, &inputs[1]));
    LK_TRY(lk_onnx_emit_integers(e, "ends", 1, (int64_t[]){INT32_MIN}, &inputs[2]));
    LK_TRY(lk_onnx_emit_integers(e, "axes", 1, (int64_t[]){1}, &inputs[3]));
    LK_TRY(lk_onnx_emit_integers(e, "steps", 1, (int64_t[]){-1}, &inputs[4]));
    return lk_onnx_emit_node(e, "Slice", y, 5, inputs);
}

/* --- positions ---------------------------------------------------------------------------- */

static enum lk_status position(struct lk_onnx_export *e, const char *const *x, const char *y)
{
    const struct lk_shape *shape = &e->node->shapes.x[0];
    const int64_t steps = shape->dim[0], channels = shape->dim[1];
    const char *inputs[2] = {x[0]}, *made;
    float *table;
    LK_TRY(lk_onnx_emit_param(e, "weight", true, NULL, &inputs[1]));
    if (!inputs[1]) {
        const double decay = log(lk_onnx_option_real(e, "base")) / (double)channels;
        LK_TRY(lk_onnx_take(e, (size_t)(steps * channels), sizeof *table, &table));
        for (int64_t t = 0; t < steps; t++)
            for (int64_t c = 0; c < channels; c++) {
                const double angle = (double)t * exp(-(double)(c - c % 2) * decay);
                table[t * channels + c] = (float)(c % 2 == 0 ? sin(angle) : cos(angle));
            }
        LK_TRY(lk_onnx_emit_floats(e, "sines", 2, shape->dim, table, &inputs[1]));
    }
    LK_TRY(lk_onnx_emit(e, "Add", "placed", 2, inputs, &made));
    return finish(e, x, made, y);
}

/* x times cosines, and the other one of each pair times sines. */
static enum lk_status rotary(struct lk_onnx_export *e, const char *const *x, const char *y)
{
    const struct lk_shape *shape = &e->node->shapes.x[0];
    const int64_t steps = shape->dim[0], channels = shape->dim[1];
    const bool is_packed = lk_onnx_option_is(e, "packed", "true");
    const int64_t turns = is_packed ? channels / 3 * 2 : channels;
    const char *other[2] = {x[0]}, *a[2] = {x[0]}, *b[2], *sum[2], *made;
    int64_t heads, *pair;
    float *cosines, *sines;
    lk_onnx_option_integers(e, "heads", 1, &heads);
    const int64_t dim = turns / (is_packed ? 2 * heads : heads), half = dim / 2;
    const double decay = log(lk_onnx_option_real(e, "base")) / (double)dim;
    LK_TRY(lk_onnx_take(e, (size_t)channels, sizeof *pair, &pair));
    LK_TRY(lk_onnx_take(e, (size_t)(steps * channels), sizeof *sines, &sines));
    LK_TRY(lk_onnx_take(e, (size_t)(steps * channels), sizeof *cosines, &cosines));
    for (int64_t c = 0; c < channels; c++) {
        const bool is_first = c % dim < half;
        pair[c] = c >= turns ? c : is_first ? c + half : c - half;
        for (int64_t t = 0; t < steps; t++) {
            const double angle = (double)t * exp(-2.0 * (double)(c % dim % half) * decay);
            const double sine = c < turns ? sin(angle) : 0;
            sines[t * channels + c] = (float)(is_first ? -sine : sine);
            cosines[t * channels + c] = (float)(c < turns ? cos(angle) : 1);
        }
    }
    LK_TRY(lk_onnx_emit_integers(e, "pairs", (int)channels, pair, &other[1]));
    LK_TRY(lk_onnx_emit(e, "Gather", "other", 2, other, &b[0]));
    lk_onnx_emit_integer(e, "axis", 2);
    LK_TRY(lk_onnx_emit_floats(e, "cosines", 2, shape->dim, cosines, &a[1]));
    LK_TRY(lk_onnx_emit_floats(e, "sines", 2, shape->dim, sines, &b[1]));
    LK_TRY(lk_onnx_emit(e, "Mul", "a", 2, a, &sum[0]));
    LK_TRY(lk_onnx_emit(e, "Mul", "b", 2, b, &sum[1]));
    LK_TRY(lk_onnx_emit(e, "Add", "turned", 2, sum, &made));
    return finish(e, x, made, y);
}

const struct lk_onnx_pairing lk_onnx_sequence_pairings[] = {
    {"embedding", embedding},
    {"conv1d", conv1d},
    {"max_pool1d", max_pool1d},
    {"average_pool1d", average_pool1d},
    {"global_max_pool1d", global_max_pool1d},
    {"global_average_pool1d", global_average_pool1d},
    {"last_step", last_step},
    {"reverse_steps", reverse_steps},
    {"position", position},
    {"rotary", rotary},
    {0},
};

/* Attention as operators of ONNX: products of queries and keys, softmax, and a product with the
 * values, of each head by itself. */
#include "model/onnx_export/export.h"

#include "base/fail.h"
#include <math.h>
#include <string.h>

#define HIDDEN (-3.4e38) /* a score whose weight is 0 */

struct form {
    int tensors; /* as in src/ops/attention: 1, all side by side, to 3 */
    int64_t heads, queries, keys, dim, values;
    const char *length; /* of the keys; NULL: all count */
};

static struct form form_of(const struct lk_onnx_export *e, const char *const *x)
{
    const struct lk_node *node = e->node;
    const struct lk_shape *shapes = node->shapes.x;
    const int last = node->inputs - 1;
    struct form f = {.tensors = node->inputs};
    if (last > 0 && shapes[last].rank == 0) {
        f.length = x[last];
        f.tensors--;
    }
    lk_onnx_option_integers(e, "heads", 1, &f.heads);
    f.queries = shapes[0].dim[0];
    f.keys = shapes[f.tensors > 1].dim[0];
    f.dim = shapes[0].dim[1] / (f.tensors == 1 ? 3 : 1) / f.heads;
    f.values = f.tensors == 3 ? shapes[2].dim[1] / f.heads : f.dim;
    return f;
}

/* A part of the channels as heads: `shape` [t, heads, dim], then axes as `order` says. */
static enum lk_status emit_heads(struct lk_onnx_export *e, const char *const words[3],
                                 const char *x, const struct lk_shape *shape,
                                 const int64_t order[4], const char **heads)
{
    const char *split;
    LK_TRY(lk_onnx_name(e, words[0], &split));
    LK_TRY(lk_onnx_emit_reshape(e, words[1], x, shape, split));
    return lk_onnx_emit_transpose(e, words[2], 4, order, split, heads);
}

/* Channels `first` to `end` of x. */
static enum lk_status emit_part(struct lk_onnx_export *e, const char *const words[4],
                                const char *x, int64_t first, int64_t end, const char **part)
{
    const char *inputs[4] = {x};
    LK_TRY(lk_onnx_emit_integers(e, words[1], 1, &first, &inputs[1]));
    LK_TRY(lk_onnx_emit_integers(e, words[2], 1, &end, &inputs[2]));
    LK_TRY(lk_onnx_emit_integers(e, words[3], 1, (int64_t[]){2}, &inputs[3]));
    return lk_onnx_emit(e, "Slice", words[0], 4, inputs, part);
}

/* Queries and values [n, heads, t, dim], keys [n, heads, dim, t]. */
static enum lk_status emit_tensors(struct lk_onnx_export *e, const struct form *f,
                                   const char *const *x, const char *made[3])
{
    static const char *const parts[3][4] = {{"q", "q.from", "q.to", "q.axis"},
                                            {"k", "k.from", "k.to", "k.axis"},
                                            {"v", "v.from", "v.to", "v.axis"}};
    static const char *const heads[3][3] = {{"q.split", "q.shape", "q.heads"},
                                            {"k.split", "k.shape", "k.heads"},
                                            {"v.split", "v.shape", "v.heads"}};
    static const int64_t orders[3][4] = {{0, 2, 1, 3}, {0, 2, 3, 1}, {0, 2, 1, 3}};
    const int64_t width = f->heads * f->dim;
    for (int i = 0; i < 3; i++) {
        const int from = f->tensors == 3 ? i : f->tensors == 2 && i > 0;
        const int64_t first = f->tensors == 1             ? i * width
                              : f->tensors == 2 && i == 2 ? width
                                                          : 0;
        const struct lk_shape shape = {
            3, {i == 0 ? f->queries : f->keys, f->heads, i == 2 ? f->values : f->dim}};
        const char *part = x[from];
        if (e->node->shapes.x[from].dim[1] != shape.dim[1] * shape.dim[2])
            LK_TRY(emit_part(e, parts[i], x[from], first, first + width, &part));
        LK_TRY(emit_heads(e, heads[i], part, &shape, orders[i], &made[i]));
    }
    return LK_OK;
}

/* Hides later keys from a query. */
static enum lk_status emit_causal(struct lk_onnx_export *e, const struct form *f,
                                  const char **scores)
{
    float *table;
    const char *inputs[2] = {*scores};
    LK_TRY(lk_onnx_take(e, (size_t)(f->queries * f->keys), sizeof *table, &table));
    for (int64_t t = 0; t < f->queries; t++)
        for (int64_t j = 0; j < f->keys; j++)
            table[t * f->keys + j] = j > t ? (float)HIDDEN : 0;
    LK_TRY(lk_onnx_emit_floats(e, "later", 2, (int64_t[]){f->queries, f->keys}, table,
                               &inputs[1]));
    return lk_onnx_emit(e, "Add", "causal", 2, inputs, scores);
}

static enum lk_status emit_valid(struct lk_onnx_export *e, const struct form *f,
                                 const char **scores)
{
    struct lk_onnx_steps steps = {f->length, 0, 1, f->keys, {3, {1, 1, f->keys}}};
    const char *inputs[3] = {NULL, *scores};
    LK_TRY(lk_onnx_emit_mask(e, "keys", &steps, &inputs[0]));
    LK_TRY(lk_onnx_emit_real_constant(e, "keys.hidden", HIDDEN, &inputs[2]));
    return lk_onnx_emit(e, "Where", "valid", 3, inputs, scores);
}

/* Behind the length of queries y is 0: of the same time steps as the keys, or where a sample
 * has no key at all. */
static enum lk_status finish(struct lk_onnx_export *e, const struct form *f, const char *made,
                             const char *y)
{
    struct lk_onnx_steps steps = {
        .length = f->length, .stride = f->tensors == 1, .count = f->queries};
    return lk_onnx_emit_hide(e, "end", &steps, made, 0, y);
}

static enum lk_status attention(struct lk_onnx_export *e, const char *const *x, const char *y)
{
    const struct form f = form_of(e, x);
    const struct lk_shape rows = {2, {f.queries, f.heads * f.values}};
    const char *made[3], *scaled[2], *scores, *weights[2], *sums, *turned, *joined = y;
    LK_TRY(emit_tensors(e, &f, x, made));
    LK_TRY(lk_onnx_emit_real_constant(e, "scale", 1 / sqrt((double)f.dim), &scaled[1]));
    scaled[0] = made[0];
    LK_TRY(lk_onnx_emit(e, "Mul", "scaled", 2, scaled, &made[0]));
    LK_TRY(lk_onnx_emit(e, "MatMul", "scores", 2, made, &scores));
    if (lk_onnx_option_is(e, "causal", "true"))
        LK_TRY(emit_causal(e, &f, &scores));
    if (f.length)
        LK_TRY(emit_valid(e, &f, &scores));
    LK_TRY(lk_onnx_emit(e, "Softmax", "weights", 1, &scores, &weights[0]));
    lk_onnx_emit_integer(e, "axis", -1);
    weights[1] = made[2];
    LK_TRY(lk_onnx_emit(e, "MatMul", "sums", 2, weights, &sums));
    LK_TRY(lk_onnx_emit_transpose(e, "turned", 4, (int64_t[]){0, 2, 1, 3}, sums, &turned));
    if (f.length)
        LK_TRY(lk_onnx_name(e, "joined", &joined));
    LK_TRY(lk_onnx_emit_reshape(e, "rows", turned, &rows, joined));
    return f.length ? finish(e, &f, joined, y) : LK_OK;
}

const struct lk_onnx_pairing lk_onnx_attention_pairings[] = {{"attention", attention}, {0}};

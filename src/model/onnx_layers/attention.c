/* ONNX's Attention, of whole arrays. source: onnx.ai/onnx/operators/onnx__Attention.html */
#include "model/onnx_arrays/whole.h"

#include "base/fail.h"
#include "model/onnx_arrays/tables.h"
#include <math.h>
#include <string.h>

enum { QUERY, KEY, VALUE };

/* What the node says; values as [batch, heads, steps, numbers]. */
struct attention {
    value x[3];
    int64_t heads[3], batch, queries, keys, past, output_mode;
    bool is_flat, is_causal; /* inputs are [batch, steps, heads numbers] */
    double scale, softcap;
    const struct lk_onnx_tensor *lengths; /* of keys; NULL: all count */
};

/* --- inputs ------------------------------------------------------------------------------ */

static enum lk_status take_heads(draft *d, struct attention *a, int which)
{
    static const int order[] = {0, 2, 1, 3};
    value *x = &a->x[which];
    LK_TRY(lk_whole_input(d, which, x));
    if (x->rank == 4) {
        a->heads[which] = x->dim[1];
        return LK_OK;
    }
    a->is_flat = true;
    if (x->rank != 3 || a->heads[which] < 1 || x->dim[2] % a->heads[which])
        return lk_onnx_fail(d, "three or four axes, and heads that divide them, are expected");
    LK_TRY(lk_whole_reshape(
        d, x, 4,
        (const int64_t[]){x->dim[0], x->dim[1], a->heads[which], x->dim[2] / a->heads[which]}));
    return lk_whole_order(d, x, order, x);
}

/* Earlier steps before those of now, along axis 2. */
struct earlier {
    int64_t before, now, rows; /* steps, and numbers of one */
    int64_t heads, all;
};

static int64_t earlier_place(const void *how, const int64_t *at)
{
    const struct earlier *e = how;
    const int64_t head = at[0] * e->heads + at[1];
    return at[2] < e->before ? (head * e->before + at[2]) * e->rows + at[3]
                             : e->all + (head * e->now + at[2] - e->before) * e->rows + at[3];
}

static enum lk_status add_past(draft *d, struct attention *a, int which)
{
    value past, *x = &a->x[which];
    if (!lk_whole_has(d, 3 + which))
        return LK_OK;
    LK_TRY(lk_whole_input(d, 3 + which, &past));
    if (past.rank != 4 || past.dim[0] != x->dim[0] || past.dim[1] != x->dim[1] ||
        past.dim[3] != x->dim[3])
        return lk_onnx_fail(d, "earlier steps of another shape");
    a->past = past.dim[2];
    const struct earlier e = {past.dim[2], x->dim[2], x->dim[3], x->dim[1],
                              lk_whole_count(4, past.dim)};
    const int64_t dim[] = {x->dim[0], x->dim[1], x->dim[2] + past.dim[2], x->dim[3]};
    const value both[] = {past, *x};
    LK_TRY(lk_whole_join(d, both, 2, x));
    return lk_whole_move(d, x, 4, dim, earlier_place, &e, 0, x);
}

/* Each head of keys and values for several of queries. */
static enum lk_status repeat_heads(draft *d, const struct attention *a, value *x)
{
    const int64_t *s = x->dim, times = a->heads[QUERY] / s[1];
    const int64_t dim[] = {s[0], a->heads[QUERY], s[2], s[3]},
                  each[] = {s[0], s[1], times, s[2], s[3]};
    if (a->heads[QUERY] % s[1])
        return lk_onnx_fail(d, "%lld heads of keys for %lld of queries", (long long)s[1],
                            (long long)a->heads[QUERY]);
    LK_TRY(lk_whole_reshape(d, x, 5, (const int64_t[]){s[0], s[1], 1, s[2], s[3]}));
    LK_TRY(lk_whole_expand(d, x, 5, each, x));
    return lk_whole_reshape(d, x, 4, dim);
}

/* --- what is hidden ---------------------------------------------------------------------- */

/* The mask with what is behind its end hidden. */
struct widened {
    int rank;
    int64_t dim[LK_ONNX_AXES];
};

static int64_t widened_place(const void *how, const int64_t *at)
{
    const struct widened *w = how;
    int64_t place = 0;
    for (int i = 0; i < w->rank; i++)
        place = place * w->dim[i] + at[i];
    return at[w->rank - 1] < w->dim[w->rank - 1] ? place : -1;
}

static enum lk_status read_mask(draft *d, const struct attention *a, value *mask)
{
    value all[3];
    struct widened w = {0};
    int64_t dim[LK_ONNX_AXES];
    LK_TRY(lk_whole_input(d, 3, mask));
    if (mask->rank < 1 || mask->rank > 4 || mask->dim[mask->rank - 1] > a->keys)
        return lk_onnx_fail(d, "a mask of another shape");
    const bool is_truth = mask->type == LK_ONNX_BOOL;
    w.rank = mask->rank;
    memcpy(w.dim, mask->dim, sizeof w.dim);
    memcpy(dim, mask->dim, sizeof dim);
    if (dim[w.rank - 1] != 1 || a->keys == 1)
        dim[w.rank - 1] = a->keys;
    LK_TRY(
        lk_whole_move(d, mask, w.rank, dim, widened_place, &w, is_truth ? 0 : -INFINITY, mask));
    if (!is_truth)
        return LK_OK;
    all[0] = *mask;
    LK_TRY(lk_whole_number(d, 0, &all[1]));
    LK_TRY(lk_whole_number(d, -INFINITY, &all[2]));
    return lk_whole_math(d, "choice", 3, all, mask);
}

/* What is known before: steps behind a query, keys behind a sample's length. */
static enum lk_status hide_steps(draft *d, const struct attention *a, value *hidden)
{
    struct lk_onnx_tensor *numbers;
    const int64_t dim[] = {a->lengths ? a->batch : 1, 1, a->queries, a->keys};
    LK_TRY(lk_onnx_new_tensor(d, LK_ONNX_FLOAT, 4, dim, &numbers));
    for (int64_t e = 0; e < numbers->count; e++) {
        const int64_t key = e % a->keys, query = e / a->keys % a->queries;
        const int64_t length =
            a->lengths ? lk_onnx_integer(a->lengths, e / a->keys / a->queries) : a->keys;
        const int64_t offset = a->lengths ? length - a->queries : a->past;
        const bool hides = (a->is_causal && key > query + offset) || key >= length;
        lk_onnx_put_real(numbers, e, hides ? -INFINITY : 0);
    }
    return lk_whole_constant(d, numbers, hidden);
}

/* *found: something may be hidden, by numbers that are added. */
static enum lk_status find_hidden(draft *d, const struct attention *a, value *hidden,
                                  bool *found)
{
    value steps;
    *found = lk_whole_has(d, 3);
    if (*found)
        LK_TRY(read_mask(d, a, hidden));
    if (!a->is_causal && !a->lengths)
        return LK_OK;
    LK_TRY(hide_steps(d, a, &steps));
    if (*found)
        return lk_whole_two(d, "sum", hidden, &steps, hidden);
    *hidden = steps;
    *found = true;
    return LK_OK;
}

/* --- the operator ------------------------------------------------------------------------ */

/* Weights of keys; a query from which all is hidden has none. */
static enum lk_status weigh(draft *d, const value *scores, const value *hidden, value *made)
{
    value most, all[3];
    LK_TRY(lk_whole_softmax(d, scores, 1u << 3, false, made));
    if (!hidden)
        return LK_OK;
    LK_TRY(lk_whole_reduce(d, "largest", hidden, 1u << (hidden->rank - 1), &most));
    LK_TRY(lk_whole_with(d, "less", &most, -3.4e38, &all[0]));
    LK_TRY(lk_whole_number(d, 0, &all[1]));
    all[2] = *made;
    return lk_whole_math(d, "choice", 3, all, made);
}

static enum lk_status open_attention(draft *d, struct attention *a)
{
    int64_t causal, heads;
    *a = (struct attention){0};
    LK_TRY(lk_onnx_say_integer(d, "is_causal", 0, &causal));
    LK_TRY(lk_onnx_say_integer(d, "q_num_heads", 0, &a->heads[QUERY]));
    LK_TRY(lk_onnx_say_integer(d, "kv_num_heads", 0, &heads));
    LK_TRY(lk_onnx_say_integer(d, "qk_matmul_output_mode", 0, &a->output_mode));
    LK_TRY(lk_onnx_constant(d, 6, &a->lengths));
    a->heads[KEY] = a->heads[VALUE] = heads;
    a->is_causal = causal != 0;
    for (int i = 0; i < 3; i++) {
        LK_TRY(take_heads(d, a, i));
        if (i != QUERY)
            LK_TRY(add_past(d, a, i));
    }
    a->batch = a->x[QUERY].dim[0];
    a->queries = a->x[QUERY].dim[2];
    a->keys = a->x[KEY].dim[2];
    a->softcap = lk_whole_say(d, "softcap", 0);
    a->scale = lk_whole_say(d, "scale", 1 / sqrt((double)a->x[QUERY].dim[3]));
    if (a->x[VALUE].dim[2] != a->keys || a->x[KEY].dim[0] != a->batch ||
        (a->lengths && a->lengths->count != a->batch))
        return lk_onnx_fail(d, "inputs of shapes that do not go together");
    return LK_OK;
}

/* Scores before anything is hidden: scaled, and squeezed by the softcap. */
static enum lk_status score(draft *d, const struct attention *a, value *made)
{
    static const int turned[] = {0, 1, 3, 2};
    value keys = a->x[KEY];
    LK_TRY(repeat_heads(d, a, &keys));
    LK_TRY(lk_whole_order(d, &keys, turned, &keys));
    LK_TRY(lk_whole_matmul(d, &a->x[QUERY], &keys, made));
    return lk_whole_with(d, "product", made, a->scale, made);
}

static enum lk_status attention(draft *d)
{
    static const int order[] = {0, 2, 1, 3};
    struct attention a;
    value y, hidden, stages[4];
    bool hides;
    LK_TRY(open_attention(d, &a));
    LK_TRY(lk_onnx_give(d, 1, &a.x[KEY]));
    LK_TRY(lk_onnx_give(d, 2, &a.x[VALUE]));
    LK_TRY(find_hidden(d, &a, &hidden, &hides));
    LK_TRY(score(d, &a, &stages[0]));
    stages[1] = stages[0];
    if (a.softcap > 0) {
        LK_TRY(lk_whole_with(d, "quotient", &stages[0], a.softcap, &stages[1]));
        LK_TRY(lk_whole_apply(d, "tanh", "", &stages[1], &stages[1]));
        LK_TRY(lk_whole_with(d, "product", &stages[1], a.softcap, &stages[1]));
    }
    stages[2] = stages[1];
    if (hides)
        LK_TRY(lk_whole_two(d, "sum", &stages[1], &hidden, &stages[2]));
    LK_TRY(weigh(d, &stages[2], hides ? &hidden : NULL, &stages[3]));
    if (d->node->output_count > 3 && *d->node->outputs[3]) {
        if (a.output_mode < 0 || a.output_mode > 3 ||
            (a.softcap > 0 && (a.output_mode == 0 || d->file->operators < 24)))
            return lk_onnx_fail(d, "'qk_matmul_output_mode' %lld with a softcap",
                                (long long)a.output_mode);
        LK_TRY(lk_onnx_give(d, 3, &stages[a.output_mode]));
    }
    LK_TRY(repeat_heads(d, &a, &a.x[VALUE]));
    LK_TRY(lk_whole_matmul(d, &stages[3], &a.x[VALUE], &y));
    if (a.is_flat) {
        LK_TRY(lk_whole_order(d, &y, order, &y));
        LK_TRY(lk_whole_reshape(d, &y, 3,
                                (const int64_t[]){a.batch, a.queries, y.dim[2] * y.dim[3]}));
    }
    return lk_onnx_give(d, 0, &y);
}

const struct lk_onnx_operator lk_array_attention[] = {
    {"Attention", attention,
     LK_ONNX_KNOWS("is_causal", "kv_num_heads", "q_num_heads", "qk_matmul_output_mode", "scale",
                   "softcap", "softmax_precision")},
    {0},
};

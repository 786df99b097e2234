/* Layers that work on the last axis, of values of any rank, wherever their samples lie; and
 * embeddings. */
#include "model/onnx_samples/samples.h"

#include "base/fail.h"
#include "base/number.h"
#include <string.h>

/* --- rows -------------------------------------------------------------------------------- */

/* x as rows of its last axis, as a sequence, or a vector where it is one row. */
static enum lk_status open_rows(draft *d, int index, value *x, value *rows)
{
    const value *found;
    int64_t count = 1;
    LK_TRY(lk_onnx_computed(d, index, &found));
    LK_TRY(lk_samples_view(d, found, x));
    if (x->rank < 2 || x->at < 0 || x->at >= x->rank - 1)
        return lk_onnx_fail(d, "the samples lie along its last axis, or there are none");
    for (int i = 0; i < x->rank - 1; i++)
        count *= x->dim[i];
    *rows = *x;
    rows->at = 0;
    rows->rank = count > 1 ? 3 : 2;
    rows->dim[0] = d->batch;
    const int64_t last = x->dim[x->rank - 1];
    rows->dim[1] = count > 1 ? count : last;
    rows->dim[2] = last;
    return lk_onnx_settle(d, rows, rows);
}

/* What became of the rows, in the shape of x with another last axis. */
static value close_rows(const value *x, const value *rows)
{
    value made = *x;
    made.node = rows->node;
    made.entry = rows->entry;
    made.dim[made.rank - 1] = rows->dim[rows->rank - 1];
    return made;
}

/* Gives what became of the rows of x. The node at work may have become the one that adds. */
static enum lk_status give_rows(draft *d, const value *x, const value *rows,
                                const struct lk_onnx_node *adds)
{
    const value made = close_rows(x, rows);
    if (adds) {
        d->node = adds;
        d->done[adds - d->file->nodes] = true;
    }
    return lk_samples_give(d, 0, &made, x->at);
}

/* --- products ---------------------------------------------------------------------------- */

/* Channels that come last stay where they are: a convolution of single pixels. */
static enum lk_status mat_mul_pixels(draft *d, const value *x,
                                     const struct lk_onnx_tensor *matrix,
                                     const struct lk_onnx_tensor *bias,
                                     const struct lk_onnx_node *adds)
{
    value made;
    const char *options;
    struct lk_onnx_tensor kernel = *matrix, vector = {0};
    kernel.rank = 4;
    kernel.dim[1] = kernel.dim[2] = 1;
    kernel.dim[3] = matrix->dim[1];
    LK_TRY(lk_onnx_text(d, &options, "filters=%lld kernel=1%s", (long long)matrix->dim[1],
                        bias ? "" : " bias=false"));
    LK_TRY(lk_onnx_add(d, "conv2d", options, 1, x, &made));
    LK_TRY(lk_onnx_set(d, &made, "weight", &kernel, true, 1));
    if (bias) {
        vector = *bias;
        vector.rank = 1;
        vector.dim[0] = vector.count;
        LK_TRY(lk_onnx_set(d, &made, "bias", &vector, true, 1));
    }
    return lk_onnx_give_sum(d, adds, &made);
}

/* Times a constant matrix: a dense layer. */
static enum lk_status mat_mul(draft *d)
{
    value x, rows;
    const value *found;
    const struct lk_onnx_tensor *matrix;
    const struct lk_onnx_node *adds;
    LK_TRY(lk_onnx_computed(d, 0, &found));
    LK_TRY(lk_onnx_constant(d, 1, &matrix));
    if (!matrix || matrix->rank != 2)
        return lk_onnx_fail(d, "a constant matrix is expected");
    const struct lk_onnx_tensor *bias = lk_onnx_find_bias(d, matrix->dim[1], &adds);
    if (found->is_last && found->rank == 4 && lk_samples_is_plain(d, found) &&
        found->node->shapes.y.rank == 3 && found->dim[3] == matrix->dim[0])
        return mat_mul_pixels(d, found, matrix, bias, adds);
    LK_TRY(open_rows(d, 0, &x, &rows));
    if (x.dim[x.rank - 1] != matrix->dim[0])
        return lk_onnx_fail(d, "matrices that do not go together");
    LK_TRY(lk_onnx_add_dense(d, &rows, matrix, false, 1, bias, 1, &rows));
    return give_rows(d, &x, &rows, adds);
}

static enum lk_status gemm(draft *d)
{
    value x, rows;
    const struct lk_onnx_tensor *matrix, *bias;
    int64_t turns_x, turns;
    double alpha, beta;
    LK_TRY(lk_onnx_constant(d, 1, &matrix));
    LK_TRY(lk_onnx_constant(d, 2, &bias));
    LK_TRY(lk_onnx_say_integer(d, "transA", 0, &turns_x));
    LK_TRY(lk_onnx_say_integer(d, "transB", 0, &turns));
    LK_TRY(lk_onnx_say_real(d, "alpha", 1, &alpha));
    LK_TRY(lk_onnx_say_real(d, "beta", 1, &beta));
    LK_TRY(open_rows(d, 0, &x, &rows));
    if (turns_x || x.rank != 2 || !matrix || matrix->rank != 2 ||
        matrix->dim[turns != 0] != x.dim[1])
        return lk_onnx_fail(d, "vectors [n, c] times a constant matrix are expected");
    LK_TRY(lk_onnx_add_dense(d, &rows, matrix, turns != 0, alpha, bias, beta, &rows));
    return give_rows(d, &x, &rows, NULL);
}

/* --- norms ------------------------------------------------------------------------------- */

static enum lk_status check_last(draft *d, const value *x)
{
    int64_t said;
    int axis;
    LK_TRY(lk_onnx_say_integer(d, "axis", d->file->operators < 13 ? 1 : -1, &said));
    LK_TRY(lk_onnx_axis(d, said, x->rank, &axis));
    return axis == x->rank - 1 ? LK_OK : lk_onnx_fail(d, "the last axis is expected");
}

static enum lk_status softmax(draft *d)
{
    value x, rows;
    LK_TRY(open_rows(d, 0, &x, &rows));
    LK_TRY(check_last(d, &x));
    LK_TRY(lk_onnx_add(d, "softmax", "", 1, &rows, &rows));
    return give_rows(d, &x, &rows, NULL);
}

static enum lk_status layer_norm(draft *d)
{
    static const char *const params[] = {"gamma", "beta"};
    value x, rows;
    const struct lk_onnx_tensor *numbers[2];
    const char *options;
    double epsilon;
    char text[40];
    LK_TRY(open_rows(d, 0, &x, &rows));
    LK_TRY(check_last(d, &x));
    LK_TRY(lk_onnx_say_real(d, "epsilon", 1e-5, &epsilon));
    lk_number_print(epsilon, text, sizeof text);
    for (int i = 0; i < 2; i++)
        LK_TRY(lk_onnx_constant(d, 1 + i, &numbers[i]));
    LK_TRY(lk_onnx_text(d, &options, "epsilon=%s%s%s", text, numbers[0] ? "" : " scale=false",
                        numbers[1] ? "" : " center=false"));
    LK_TRY(lk_onnx_add(d, "layer_norm", options, 1, &rows, &rows));
    for (int i = 0; i < 2; i++)
        if (numbers[i])
            LK_TRY(lk_onnx_set(d, &rows, params[i], numbers[i], true, 1));
    return give_rows(d, &x, &rows, NULL);
}

/* --- embeddings -------------------------------------------------------------------------- */

/* Rows of a constant table for tokens of an input. */
static enum lk_status gather(draft *d)
{
    value made;
    const value *tokens;
    const struct lk_onnx_tensor *table;
    const char *options;
    int64_t axis;
    LK_TRY(lk_onnx_constant(d, 0, &table));
    LK_TRY(lk_onnx_computed(d, 1, &tokens));
    LK_TRY(lk_onnx_say_integer(d, "axis", 0, &axis));
    const struct lk_node *input = tokens->node;
    if (!table || table->rank != 2 || axis != 0 || lk_onnx_is_whole(table->type) || input->op ||
        input->input.dtype != LK_I32 || tokens->at < 0 || tokens->rank >= LK_ONNX_AXES)
        return lk_onnx_fail(d, "rows of a constant table for tokens of an input are expected");
    LK_TRY(lk_onnx_text(d, &options, "vocabulary=%lld units=%lld", (long long)table->dim[0],
                        (long long)table->dim[1]));
    const value x = *tokens;
    LK_TRY(lk_onnx_add(d, "embedding", options, 1, &x, &made));
    LK_TRY(lk_onnx_set(d, &made, "weight", table, true, 1));
    made.rank = x.rank + 1;
    memcpy(made.dim, x.dim, sizeof made.dim);
    made.dim[x.at] = lk_samples_share(d, &x);
    made.dim[x.rank] = table->dim[1];
    made.outer = x.outer;
    return lk_samples_give(d, 0, &made, x.at);
}

const struct lk_onnx_operator lk_samples_layers[] = {
    {"MatMul", mat_mul, LK_ONNX_KNOWS(NULL)},
    {"Gemm", gemm, LK_ONNX_KNOWS("alpha", "beta", "transA", "transB")},
    {"Softmax", softmax, LK_ONNX_KNOWS("axis")},
    {"LayerNormalization", layer_norm, LK_ONNX_KNOWS("axis", "epsilon", "stash_type")},
    {"Gather", gather, LK_ONNX_KNOWS("axis")},
    {0},
};

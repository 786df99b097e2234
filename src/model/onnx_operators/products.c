/* ONNX's operators with weights that are no convolutions: products of matrices, norms. */
#include "model/onnx/convert.h"

#include "base/fail.h"
#include "base/number.h"
#include <string.h>

/* --- products ---------------------------------------------------------------------------- */

enum lk_status lk_onnx_add_dense(struct lk_onnx_draft *draft, const struct lk_onnx_value *x,
                                 const struct lk_onnx_tensor *matrix, bool is_turned,
                                 double factor, const struct lk_onnx_tensor *bias,
                                 double bias_factor, struct lk_onnx_value *made)
{
    struct lk_onnx_value vector;
    const char *options;
    const int64_t units = matrix->dim[is_turned ? 0 : 1];
    LK_TRY(lk_onnx_settle(draft, x, &vector));
    LK_TRY(lk_onnx_text(draft, &options, "units=%lld%s", (long long)units,
                        bias ? "" : " bias=false"));
    LK_TRY(lk_onnx_add(draft, "dense", options, 1, &vector, made));
    LK_TRY(lk_onnx_set(draft, made, "weight", matrix, !is_turned, factor));
    if (bias && bias->count == 1)
        return lk_onnx_set_all(draft, made, "bias", bias_factor * lk_onnx_real(bias, 0));
    return bias ? lk_onnx_set(draft, made, "bias", bias, false, bias_factor) : LK_OK;
}

static enum lk_status gemm(struct lk_onnx_draft *draft)
{
    const struct lk_onnx_value *x;
    const struct lk_onnx_tensor *matrix, *bias;
    struct lk_onnx_value made;
    int64_t turns_x, turns;
    double alpha, beta;
    LK_TRY(lk_onnx_computed(draft, 0, &x));
    LK_TRY(lk_onnx_constant(draft, 1, &matrix));
    LK_TRY(lk_onnx_constant(draft, 2, &bias));
    LK_TRY(lk_onnx_say_integer(draft, "transA", 0, &turns_x));
    LK_TRY(lk_onnx_say_integer(draft, "transB", 0, &turns));
    LK_TRY(lk_onnx_say_real(draft, "alpha", 1, &alpha));
    LK_TRY(lk_onnx_say_real(draft, "beta", 1, &beta));
    if (turns_x || x->rank != 2 || !matrix || matrix->rank != 2)
        return lk_onnx_fail(draft, "vectors [n, c] times a constant matrix are expected");
    LK_TRY(lk_onnx_add_dense(draft, x, matrix, turns != 0, alpha, bias, beta, &made));
    return lk_onnx_give(draft, 0, &made);
}

const struct lk_onnx_tensor *lk_onnx_find_bias(const struct lk_onnx_draft *draft, int64_t units,
                                               const struct lk_onnx_node **adds)
{
    enum { NEAR = 64 }; /* nodes behind the product, where the reader is */
    const char *name = draft->node->outputs[0];
    const int first = (int)(draft->node - draft->file->nodes) + 1;
    *adds = NULL;
    if (lk_onnx_find(draft, name)->readers != 1)
        return NULL;
    for (int n = first; n < draft->file->node_count && n < first + NEAR; n++) {
        const struct lk_onnx_node *node = &draft->file->nodes[n];
        if (draft->done[n] || strcmp(node->op, "Add") != 0 || node->input_count != 2)
            continue;
        for (int i = 0; i < 2; i++) {
            const struct lk_onnx_value *other = lk_onnx_find(draft, node->inputs[1 - i]);
            const struct lk_onnx_tensor *bias = other ? other->constant : NULL;
            if (strcmp(node->inputs[i], name) != 0 || !bias || other->next ||
                bias->count != units || bias->rank < 1 || bias->dim[bias->rank - 1] != units)
                continue;
            *adds = node;
            return bias;
        }
    }
    return NULL;
}

enum lk_status lk_onnx_give_sum(struct lk_onnx_draft *draft, const struct lk_onnx_node *adds,
                                const struct lk_onnx_value *made)
{
    if (adds) {
        draft->node = adds;
        draft->done[adds - draft->file->nodes] = true;
    }
    return lk_onnx_give(draft, 0, made);
}

static enum lk_status mat_mul(struct lk_onnx_draft *draft)
{
    const struct lk_onnx_value *x;
    const struct lk_onnx_tensor *matrix, *bias;
    const struct lk_onnx_node *adds;
    struct lk_onnx_value made;
    LK_TRY(lk_onnx_computed(draft, 0, &x));
    LK_TRY(lk_onnx_constant(draft, 1, &matrix));
    if (!matrix || matrix->rank != 2 || x->rank > 3 || x->is_last)
        return lk_onnx_fail(draft, "vectors [n, c] or sequences [n, t, c] times a constant "
                                   "matrix are expected");
    bias = lk_onnx_find_bias(draft, matrix->dim[1], &adds);
    LK_TRY(lk_onnx_add_dense(draft, x, matrix, false, 1, bias, 1, &made));
    return lk_onnx_give_sum(draft, adds, &made);
}

/* --- norms ------------------------------------------------------------------------------- */

static enum lk_status batch_norm(struct lk_onnx_draft *draft)
{
    static const char *const params[] = {"gamma", "beta", "moving_mean", "moving_variance"};
    const struct lk_onnx_value *x;
    struct lk_onnx_value settled, made;
    double epsilon, momentum;
    char text[2][40];
    const char *options;
    int64_t trains;
    LK_TRY(lk_onnx_computed(draft, 0, &x));
    LK_TRY(lk_onnx_say_real(draft, "epsilon", 1e-5, &epsilon));
    LK_TRY(lk_onnx_say_real(draft, "momentum", 0.9, &momentum));
    LK_TRY(lk_onnx_say_integer(draft, "training_mode", 0, &trains));
    if (trains || x->is_last || (x->rank != 4 && x->rank != 2))
        return lk_onnx_fail(draft,
                            "images [n, c, h, w] or vectors [n, c], and no training mode, "
                            "are expected");
    LK_TRY(lk_onnx_settle(draft, x, &settled));
    lk_number_print(epsilon, text[0], sizeof text[0]);
    lk_number_print(momentum, text[1], sizeof text[1]);
    LK_TRY(lk_onnx_text(draft, &options, "momentum=%s epsilon=%s", text[1], text[0]));
    LK_TRY(lk_onnx_add(draft, "batch_norm", options, 1, &settled, &made));
    for (int i = 0; i < 4; i++) {
        const struct lk_onnx_tensor *numbers;
        LK_TRY(lk_onnx_constant(draft, 1 + i, &numbers));
        if (!numbers)
            return lk_onnx_fail(draft, "its input %d is left out", 1 + i);
        LK_TRY(lk_onnx_set(draft, &made, params[i], numbers, true, 1));
    }
    return lk_onnx_give(draft, 0, &made);
}

static enum lk_status add_norm(struct lk_onnx_draft *draft, const char *op, const char *first,
                               double epsilon, const struct lk_onnx_value *x)
{
    static const char *const params[] = {"gamma", "beta"};
    const struct lk_onnx_tensor *numbers[2];
    struct lk_onnx_value made;
    const char *options;
    char text[40];
    lk_number_print(epsilon, text, sizeof text);
    for (int i = 0; i < 2; i++)
        LK_TRY(lk_onnx_constant(draft, 1 + i, &numbers[i]));
    LK_TRY(lk_onnx_text(draft, &options, "%sepsilon=%s%s%s", first, text,
                        numbers[0] ? "" : " scale=false", numbers[1] ? "" : " center=false"));
    LK_TRY(lk_onnx_add(draft, op, options, 1, x, &made));
    for (int i = 0; i < 2; i++)
        if (numbers[i])
            LK_TRY(lk_onnx_set(draft, &made, params[i], numbers[i], true, 1));
    return lk_onnx_give(draft, 0, &made);
}

/* Over the last axis. */
static enum lk_status layer_norm(struct lk_onnx_draft *draft)
{
    const struct lk_onnx_value *x;
    struct lk_onnx_value settled;
    double epsilon;
    int64_t said;
    int axis;
    LK_TRY(lk_onnx_computed(draft, 0, &x));
    LK_TRY(lk_onnx_say_integer(draft, "axis", -1, &said));
    LK_TRY(lk_onnx_axis(draft, said, x->rank, &axis));
    LK_TRY(lk_onnx_say_real(draft, "epsilon", 1e-5, &epsilon));
    if (axis != x->rank - 1 || (x->rank == 4 && !x->is_last))
        return lk_onnx_fail(draft, "the last axis of vectors or sequences is expected");
    LK_TRY(lk_onnx_settle(draft, x, &settled));
    return add_norm(draft, "layer_norm", "", epsilon, &settled);
}

static enum lk_status group_norm(struct lk_onnx_draft *draft)
{
    const bool is_group = strcmp(draft->node->op, "GroupNormalization") == 0;
    struct lk_onnx_value x;
    const char *first;
    double epsilon;
    int64_t groups;
    LK_TRY(lk_onnx_image(draft, 0, &x));
    LK_TRY(lk_onnx_say_real(draft, "epsilon", 1e-5, &epsilon));
    LK_TRY(lk_onnx_say_integer(draft, "num_groups", x.dim[1], &groups));
    if (is_group && draft->file->operators < 21)
        return lk_onnx_fail(draft, "before operator set 21 it is not supported");
    LK_TRY(lk_onnx_text(draft, &first, "groups=%lld ", (long long)groups));
    return add_norm(draft, "group_norm", first, epsilon, &x);
}

const struct lk_onnx_operator lk_onnx_products[] = {
    {"Gemm", gemm, LK_ONNX_KNOWS("alpha", "beta", "transA", "transB")},
    {"MatMul", mat_mul, LK_ONNX_KNOWS(NULL)},
    {"BatchNormalization", batch_norm,
     LK_ONNX_KNOWS("epsilon", "momentum", "training_mode", "spatial")},
    {"LayerNormalization", layer_norm, LK_ONNX_KNOWS("axis", "epsilon", "stash_type")},
    {"InstanceNormalization", group_norm, LK_ONNX_KNOWS("epsilon")},
    {"GroupNormalization", group_norm, LK_ONNX_KNOWS("epsilon", "num_groups", "stash_type")},
    {0},
};

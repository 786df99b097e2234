/* What becomes of arrays without elements, which no kernel computes. */
#include "model/onnx/fold.h"

#include "base/fail.h"
#include <math.h>
#include <string.h>

/* Sums of nothing and their kin. */
static const struct {
    const char *op;
    double result;
} reductions[] = {{"ReduceSum", 0},
                  {"ReduceL1", 0},
                  {"ReduceL2", 0},
                  {"ReduceSumSquare", 0},
                  {"ReduceProd", 1},
                  {"ReduceMax", -INFINITY},
                  {"ReduceMin", INFINITY},
                  {"ReduceLogSum", -INFINITY},
                  {"ReduceLogSumExp", -INFINITY}};

/* Their results have the shape of the first input. */
static const char *const kept[] = {
    "Abs",  "Ceil",       "Clip", "Cos",       "Dropout",     "Elu",      "Erf",
    "Exp",  "Floor",      "Gelu", "HardSwish", "HardSigmoid", "Identity", "LeakyRelu",
    "Log",  "LogSoftmax", "Mish", "Neg",       "Reciprocal",  "Relu",     "Round",
    "Selu", "Sigmoid",    "Sign", "Sin",       "Softmax",     "Softplus", "Softsign",
    "Sqrt", "Tanh",       "Trilu"};

static enum lk_status fold_reduction(struct lk_onnx_draft *draft,
                                     const struct lk_onnx_tensor *x, double result)
{
    int64_t axes[LK_ONNX_AXES], keeps, is_noop, dim[LK_ONNX_AXES] = {0};
    int count, axis, rank = 0;
    struct lk_onnx_tensor *made;
    LK_TRY(lk_onnx_numbers(draft, "axes", 1, LK_ONNX_AXES, axes, &count));
    LK_TRY(lk_onnx_say_integer(draft, "keepdims", 1, &keeps));
    LK_TRY(lk_onnx_say_integer(draft, "noop_with_empty_axes", 0, &is_noop));
    unsigned gone = count || is_noop ? 0 : (1u << x->rank) - 1;
    for (int i = 0; i < count; i++) {
        LK_TRY(lk_onnx_axis(draft, axes[i], x->rank, &axis));
        gone |= 1u << axis;
    }
    for (int i = 0; i < x->rank; i++)
        if (!(gone >> i & 1) || keeps)
            dim[rank++] = gone >> i & 1 ? 1 : x->dim[i];
    if (x->type == LK_ONNX_BOOL && isinf(result))
        result = result > 0;
    if (lk_onnx_is_whole(x->type) && isinf(result))
        return lk_onnx_fail(draft, "the extreme of no whole numbers is not supported");
    LK_TRY(lk_onnx_new_tensor(draft, x->type, rank, dim, &made));
    for (int64_t i = 0; i < made->count; i++)
        lk_onnx_put_real(made, i, result);
    return lk_onnx_give_constant(draft, made);
}

enum lk_status lk_onnx_fold_empty(struct lk_onnx_draft *draft, const struct lk_onnx_tensor *x,
                                  bool *done)
{
    const char *op = draft->node->op;
    *done = true;
    for (int i = 0; i < LK_COUNT(reductions); i++)
        if (strcmp(op, reductions[i].op) == 0)
            return fold_reduction(draft, x, reductions[i].result);
    for (int i = 0; i < LK_COUNT(kept); i++)
        if (strcmp(op, kept[i]) == 0)
            return lk_onnx_give_constant(draft, x);
    *done = false;
    return LK_OK;
}

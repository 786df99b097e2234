/* Along which axis an operator's outputs have the samples, by operator. What joins numbers of
 * several samples is refused. */
#include "model/onnx_samples/samples.h"

#include "base/fail.h"
#include "model/onnx_arrays/whole.h"
#include <string.h>

static enum lk_status refuse(const draft *d)
{
    return lk_onnx_fail(d, "it would join the numbers of several samples, which is not "
                           "supported");
}

/* An axis that the node says, among those of x. */
static enum lk_status said_axis(draft *d, int64_t standard, const value *x, int *axis)
{
    int64_t said;
    LK_TRY(lk_onnx_say_integer(d, "axis", standard, &said));
    return lk_onnx_axis(d, said, x->rank, axis);
}

typedef enum lk_status rule(draft *d, const value *x, int count, int *at);

/* --- one element at a time --------------------------------------------------------------- */

/* Samples meet samples; what is the same for all has length 1 there. */
static enum lk_status broadcast(draft *d, const value *x, int count, int *at)
{
    int rank = 0;
    int64_t share = 0, outer = 0;
    for (int i = 0; i < count; i++)
        rank = x[i].rank > rank ? x[i].rank : rank;
    for (int i = 0; i < count; i++) {
        const int place = x[i].at + rank - x[i].rank;
        if (x[i].at < 0)
            continue;
        if (share && (place != *at || x[i].dim[x[i].at] != share || x[i].outer != outer))
            return refuse(d);
        *at = place;
        outer = x[i].outer;
        share = x[i].dim[x[i].at];
    }
    for (int i = 0; i < count && *at >= 0; i++) {
        const int own = *at - (rank - x[i].rank);
        if (x[i].at < 0 && own >= 0 && x[i].dim[own] != 1)
            return lk_onnx_fail(d, "a constant has other numbers for each sample");
    }
    return LK_OK;
}

/* --- along axes -------------------------------------------------------------------------- */

/* The first input's, of which the operator only works along another axis. */
static enum lk_status keep(draft *d, const value *x, int count, int *at)
{
    for (int i = 1; i < count; i++)
        if (x[i].at >= 0)
            return refuse(d);
    *at = x[0].at;
    return LK_OK;
}

/* Sequences of known lengths, each a sample. */
static enum lk_status reverse(draft *d, const value *x, int count, int *at)
{
    int64_t said;
    int batch;
    LK_TRY(keep(d, x, count, at));
    LK_TRY(lk_onnx_say_integer(d, "batch_axis", 1, &said));
    LK_TRY(lk_onnx_axis(d, said, x[0].rank, &batch));
    return *at == batch ? LK_OK : refuse(d);
}

/* Old softmaxes work along all axes from the one that is said. */
static enum lk_status along(draft *d, const value *x, int count, int *at)
{
    const bool is_old = d->file->operators < 13;
    int axis;
    LK_TRY(said_axis(d, is_old ? 1 : -1, x, &axis));
    LK_TRY(keep(d, x, count, at));
    return axis == *at || (is_old && axis < *at) ? refuse(d) : LK_OK;
}

/* Along all axes from the one that is said. */
static enum lk_status from_axis(draft *d, const value *x, int count, int *at)
{
    int axis;
    LK_TRY(said_axis(d, -1, x, &axis));
    LK_TRY(keep(d, x, count, at));
    return axis <= *at ? refuse(d) : LK_OK;
}

/* Images have their samples first. */
static enum lk_status images(draft *d, const value *x, int count, int *at)
{
    LK_TRY(keep(d, x, count, at));
    return *at > 0 ? refuse(d) : LK_OK;
}

/* The last two axes are matrices. */
static enum lk_status matrices(draft *d, const value *x, int count, int *at)
{
    LK_TRY(keep(d, x, count, at));
    return *at >= x[0].rank - 2 ? refuse(d) : LK_OK;
}

static enum lk_status reduce(draft *d, const value *x, int count, int *at)
{
    const bool is_place = strncmp(d->node->op, "Arg", 3) == 0;
    unsigned axes = 0;
    bool found = true;
    int axis;
    int64_t keeps, nothing = 0;
    LK_TRY(keep(d, x, count, at));
    LK_TRY(lk_onnx_say_integer(d, "keepdims", 1, &keeps));
    if (is_place) {
        LK_TRY(said_axis(d, 0, x, &axis));
        axes = 1u << axis;
    } else {
        LK_TRY(lk_whole_axes(d, "axes", 1, x[0].rank, &axes, &found));
        LK_TRY(lk_onnx_say_integer(d, "noop_with_empty_axes", 0, &nothing));
    }
    if (*at < 0 || (!found && nothing))
        return LK_OK;
    if (!found || axes >> *at & 1)
        return refuse(d);
    for (int i = *at - 1; i >= 0 && !keeps; i--)
        *at -= axes >> i & 1;
    return LK_OK;
}

/* --- places ------------------------------------------------------------------------------ */

static enum lk_status transpose(draft *d, const value *x, int count, int *at)
{
    int64_t order[LK_ONNX_AXES];
    int axis, found = -1;
    const bool is_said = lk_onnx_find_attribute(d->node, "perm") != NULL;
    LK_TRY(lk_onnx_say_list(d, "perm", x[0].rank, 0, order));
    LK_TRY(keep(d, x, count, at));
    for (int i = 0; i < x[0].rank; i++) {
        LK_TRY(lk_onnx_axis(d, is_said ? order[i] : x[0].rank - 1 - i, x[0].rank, &axis));
        found = axis == *at ? i : found;
    }
    *at = found;
    return LK_OK;
}

static enum lk_status concat(draft *d, const value *x, int count, int *at)
{
    int axis;
    LK_TRY(said_axis(d, 1, x, &axis));
    for (int i = 0; i < count; i++) {
        if (x[i].at >= 0 && *at >= 0 && x[i].at != *at)
            return refuse(d);
        *at = x[i].at >= 0 ? x[i].at : *at;
    }
    for (int i = 0; i < count && *at >= 0; i++)
        if (x[i].rank != x[0].rank || x[i].dim[*at] != 1)
            return refuse(d);
    return axis == *at ? refuse(d) : LK_OK;
}

static enum lk_status split(draft *d, const value *x, int count, int *at)
{
    int axis;
    LK_TRY(said_axis(d, 0, x, &axis));
    LK_TRY(keep(d, x, count, at));
    return axis == *at ? refuse(d) : LK_OK;
}

/* The axis of samples may be named where all of it is taken. */
static enum lk_status slice(draft *d, const value *x, int count, int *at)
{
    static const char *const names[] = {"starts", "ends", "axes", "steps"};
    int64_t said[4][LK_ONNX_AXES];
    int found[4], axis;
    LK_TRY(keep(d, x, count, at));
    for (int i = 0; i < 4; i++)
        LK_TRY(lk_onnx_numbers(d, names[i], 1 + i, LK_ONNX_AXES, said[i], &found[i]));
    for (int i = 0; i < found[0] && i < found[1]; i++) {
        LK_TRY(lk_onnx_axis(d, found[2] ? said[2][i] : i, x[0].rank, &axis));
        const bool is_all = said[0][i] == 0 && (!found[3] || said[3][i] == 1) &&
                            (said[1][i] >= INT32_MAX || lk_onnx_share_of(said[1][i]) ||
                             (d->batch > 0 && said[1][i] >= d->batch * x[0].dim[axis]));
        if (axis == *at && !is_all)
            return refuse(d);
    }
    return LK_OK;
}

static enum lk_status pad(draft *d, const value *x, int count, int *at)
{
    int64_t pads[2 * LK_ONNX_AXES];
    int found, named;
    LK_TRY(keep(d, x, count, at));
    LK_TRY(lk_onnx_numbers(d, lk_onnx_find_attribute(d->node, "paddings") ? "paddings" : "pads",
                           1, 2 * LK_ONNX_AXES, pads, &found));
    LK_TRY(lk_onnx_numbers(d, "axes", 3, 0, NULL, &named));
    if (found != 2 * x[0].rank || (*at >= 0 && (pads[*at] || pads[x[0].rank + *at])))
        return refuse(d);
    return LK_OK;
}

/* Expand, whose shape may have more axes. */
static enum lk_status expand(draft *d, const value *x, int count, int *at)
{
    int64_t shape[LK_ONNX_AXES];
    int found;
    LK_TRY(keep(d, x, count, at));
    LK_TRY(lk_onnx_numbers(d, "shape", 1, LK_ONNX_AXES, shape, &found));
    const int more = found > x[0].rank ? found - x[0].rank : 0;
    *at += *at >= 0 ? more : 0;
    return LK_OK;
}

static enum lk_status tile(draft *d, const value *x, int count, int *at)
{
    int64_t times[LK_ONNX_AXES];
    int found;
    LK_TRY(keep(d, x, count, at));
    LK_TRY(lk_onnx_numbers(d, "repeats", 1, LK_ONNX_AXES, times, &found));
    return *at >= 0 && (found <= *at || times[*at] != 1) ? refuse(d) : LK_OK;
}

static enum lk_status gather(draft *d, const value *x, int count, int *at)
{
    int axis;
    LK_TRY(said_axis(d, 0, x, &axis));
    if (count != 2 || x[1].at >= 0)
        return lk_onnx_fail(d, "indices that are computed are supported where they name rows "
                               "of a constant table");
    LK_TRY(keep(d, x, count, at));
    if (lk_samples_takes_own(d, x)) {
        *at = lk_onnx_input(d, 1)->at;
        return LK_OK;
    }
    if (axis == *at || lk_onnx_input(d, 1)->next)
        return refuse(d);
    *at += *at > axis ? x[1].rank - 1 : 0;
    return LK_OK;
}

static enum lk_status gather_nd(draft *d, const value *x, int count, int *at)
{
    if (count != 2 || !lk_samples_takes_own(d, x))
        return refuse(d);
    *at = lk_onnx_input(d, 1)->at;
    return LK_OK;
}

/* --- products ---------------------------------------------------------------------------- */

/* Samples are rows of the first matrix, columns of the second, or in front of both. */
static enum lk_status mat_mul(draft *d, const value *x, int count, int *at)
{
    if (count != 2 || x[0].rank < 2 || x[1].rank < 2)
        return lk_onnx_fail(d, "matrices are expected");
    const int rank = x[0].rank > x[1].rank ? x[0].rank : x[1].rank;
    if (x[0].at == x[0].rank - 1 || x[1].at == x[1].rank - 2)
        return refuse(d);
    value heads[2] = {x[0], x[1]};
    for (int i = 0; i < 2; i++) {
        const bool is_matrix = heads[i].at >= heads[i].rank - 2;
        if (is_matrix && x[1 - i].at >= 0)
            return refuse(d);
        if (is_matrix) {
            *at = heads[i].at + rank - heads[i].rank;
            return LK_OK;
        }
        heads[i].rank -= 2;
    }
    return broadcast(d, heads, 2, at);
}

static enum lk_status gemm(draft *d, const value *x, int count, int *at)
{
    int64_t turns;
    LK_TRY(lk_onnx_say_integer(d, "transA", 0, &turns));
    if (x[0].at != (turns ? 1 : 0) || (count > 1 && x[1].at >= 0) ||
        (count > 2 && (x[2].at >= 0 || (x[2].rank == 2 && x[2].dim[0] != 1))))
        return refuse(d);
    *at = 0;
    return LK_OK;
}

/* Queries, keys and values have their samples first, a mask that is the same for all none. */
static enum lk_status attention(draft *d, const value *x, int count, int *at)
{
    *at = 0;
    for (int i = 0; i < count; i++)
        if (x[i].at > 0 || (x[i].at < 0 && (i != 3 || (x[i].rank == 4 && x[i].dim[0] != 1))) ||
            (i == 3 && x[i].at == 0 && x[i].rank != 4))
            return refuse(d);
    return LK_OK;
}

/* --- the table --------------------------------------------------------------------------- */

static const struct {
    rule *rule;
    const char *operators; /* between blanks */
} rules[] = {
    {broadcast,
     " Log Sqrt Reciprocal Sin Cos Tan Asin Acos Atan Sinh Cosh Asinh Acosh Atanh Erf Floor "
     "Ceil Round Sign Not IsNaN IsInf Relu Sigmoid Tanh Exp Softplus Softsign Abs Mish "
     "HardSwish Gelu Elu Selu Celu ThresholdedRelu Shrink Swish LeakyRelu HardSigmoid Neg Clip "
     "Add Sub Mul Div Pow Mod Min Max Mean Sum PRelu Equal Less Greater LessOrEqual "
     "GreaterOrEqual And Or Xor Where Cast CastLike "},
    {keep, " Identity Dropout "},
    {reverse, " ReverseSequence "},
    {along, " Softmax LogSoftmax Hardmax "},
    {from_axis, " LayerNormalization RMSNormalization "},
    {images, " Conv ConvTranspose MaxPool AveragePool LpPool GlobalAveragePool GlobalMaxPool "
             "GlobalLpPool BatchNormalization InstanceNormalization GroupNormalization LRN "
             "DepthToSpace SpaceToDepth Resize Upsample "},
    {matrices, " Trilu "},
    {reduce, " ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 "
             "ReduceLogSum ReduceLogSumExp ReduceSumSquare ArgMax ArgMin "},
    {transpose, " Transpose "},
    {concat, " Concat "},
    {split, " Split "},
    {slice, " Slice "},
    {pad, " Pad "},
    {expand, " Expand "},
    {tile, " Tile "},
    {gather, " Gather "},
    {gather_nd, " GatherND "},
    {mat_mul, " MatMul "},
    {gemm, " Gemm "},
    {attention, " Attention "},
};

static rule *find_rule(const draft *d)
{
    char word[72];
    const size_t length = strlen(d->node->op);
    if (length > sizeof word - 3)
        return NULL;
    word[0] = word[length + 1] = ' ';
    word[length + 2] = '\0';
    memcpy(word + 1, d->node->op, length);
    for (int i = 0; i < LK_COUNT(rules); i++)
        if (strstr(rules[i].operators, word))
            return rules[i].rule;
    return NULL;
}

bool lk_samples_are_aligned(const draft *d)
{
    rule *const found = find_rule(d);
    return found == broadcast || found == concat;
}

enum lk_status lk_samples_find_axis(draft *d, const value *x, int count, int *at)
{
    bool has_samples = false;
    rule *const found = find_rule(d);
    *at = -1;
    for (int i = 0; i < count; i++)
        has_samples |= x[i].at >= 0;
    if (!has_samples)
        return LK_OK;
    if (found)
        return found(d, x, count, at);
    return lk_onnx_fail(d, "this operator is not supported where samples differ");
}

/* Arithmetic with constants, one by one, with broadcasting. */
#include "model/onnx/convert.h"

#include "base/fail.h"
#include <math.h>
#include <string.h>

enum { MOST_OPERANDS = 3 };

/* Beyond these whole numbers are no lengths: the open batch is among them. */
#define FARTHEST ((int64_t)1 << 50)

enum result { OF_FIRST, OF_SECOND, TRUTH };

typedef double function(double a, double b, double c);

static double add(double a, double b, double c)
{
    (void)c;
    return a + b;
}

static double subtract(double a, double b, double c)
{
    (void)c;
    return a - b;
}

static double multiply(double a, double b, double c)
{
    (void)c;
    return a * b;
}

static double divide(double a, double b, double c)
{
    (void)c;
    return a / b;
}

/* As in Python: with the sign of the divisor. With fmod=1 a node is not folded. */
static double modulo(double a, double b, double c)
{
    (void)c;
    return a - b * floor(a / b);
}

static double smaller(double a, double b, double c)
{
    (void)c;
    return fmin(a, b);
}

static double larger(double a, double b, double c)
{
    (void)c;
    return fmax(a, b);
}

static double power(double a, double b, double c)
{
    (void)c;
    return pow(a, b);
}

static double equal(double a, double b, double c)
{
    (void)c;
    return a == b;
}

static double less_equal(double a, double b, double c)
{
    (void)c;
    return a <= b;
}

static double greater_equal(double a, double b, double c)
{
    (void)c;
    return a >= b;
}

static double both(double a, double b, double c)
{
    (void)c;
    return a != 0 && b != 0;
}

static double either(double a, double b, double c)
{
    (void)c;
    return a != 0 || b != 0;
}

static double one_of(double a, double b, double c)
{
    (void)c;
    return (a != 0) != (b != 0);
}

static double not(double a, double b, double c)
{
    (void)b;
    (void)c;
    return a == 0;
}

static double magnitude(double a, double b, double c)
{
    (void)b;
    (void)c;
    return fabs(a);
}

static double less(double a, double b, double c)
{
    (void)c;
    return a < b;
}

static double greater(double a, double b, double c)
{
    (void)c;
    return a > b;
}

/* An upper bound below the lower one counts. */
static double between(double a, double b, double c)
{
    const double above = a < b ? b : a;
    return above > c ? c : above;
}

static double where(double a, double b, double c)
{
    return a != 0 ? b : c;
}

static double negate(double a, double b, double c)
{
    (void)b;
    (void)c;
    return -a;
}

static double round_down(double a, double b, double c)
{
    (void)b;
    (void)c;
    return floor(a);
}

static double round_up(double a, double b, double c)
{
    (void)b;
    (void)c;
    return ceil(a);
}

static double root(double a, double b, double c)
{
    (void)b;
    (void)c;
    return sqrt(a);
}

/* Bits of whole numbers; narrow ones are cut where they are written. */
typedef int64_t bits(int64_t a, int64_t b);

static int64_t bits_and(int64_t a, int64_t b)
{
    return a & b;
}

static int64_t bits_or(int64_t a, int64_t b)
{
    return a | b;
}

static int64_t bits_xor(int64_t a, int64_t b)
{
    return a ^ b;
}

static int64_t bits_not(int64_t a, int64_t b)
{
    (void)b;
    return ~a;
}

static int64_t bits_left(int64_t a, int64_t b)
{
    return b < 0 || b > 63 ? 0 : (int64_t)((uint64_t)a << b);
}

static int64_t bits_right(int64_t a, int64_t b)
{
    const uint64_t places = b < 0 || b > 63 ? 63 : (uint64_t)b;
    return a < 0 ? ~(~a >> places) : a >> places; /* the sign moves in from the left */
}

static int64_t bits_right_of_unsigned(int64_t a, int64_t b)
{
    return b < 0 || b > 63 ? 0 : (int64_t)((uint64_t)a >> b);
}

/* compares: its numbers are only compared or handed on, so that the open batch may be one. */
static const struct row {
    const char *op;
    function *function;
    int operands;
    enum result result;
    bool compares;
    bits *bits; /* NULL: `function` computes it */
} rows[] = {
    {"Add", add, 2, OF_FIRST, false, NULL},
    {"Sub", subtract, 2, OF_FIRST, false, NULL},
    {"Mul", multiply, 2, OF_FIRST, false, NULL},
    {"Div", divide, 2, OF_FIRST, false, NULL},
    {"Mod", modulo, 2, OF_FIRST, false, NULL},
    {"Min", smaller, 2, OF_FIRST, false, NULL},
    {"Max", larger, 2, OF_FIRST, false, NULL},
    {"Pow", power, 2, OF_FIRST, false, NULL},
    {"Equal", equal, 2, TRUTH, true, NULL},
    {"Less", less, 2, TRUTH, false, NULL},
    {"Greater", greater, 2, TRUTH, false, NULL},
    {"Where", where, 3, OF_SECOND, true, NULL},
    {"Clip", between, 3, OF_FIRST, true, NULL},
    {"Neg", negate, 1, OF_FIRST, false, NULL},
    {"Floor", round_down, 1, OF_FIRST, false, NULL},
    {"Ceil", round_up, 1, OF_FIRST, false, NULL},
    {"Sqrt", root, 1, OF_FIRST, false, NULL},
    {"And", both, 2, TRUTH, false, NULL},
    {"Or", either, 2, TRUTH, false, NULL},
    {"Xor", one_of, 2, TRUTH, false, NULL},
    {"Not", not, 1, TRUTH, false, NULL},
    {"Abs", magnitude, 1, OF_FIRST, false, NULL},
    {"LessOrEqual", less_equal, 2, TRUTH, false, NULL},
    {"GreaterOrEqual", greater_equal, 2, TRUTH, false, NULL},
    {"BitwiseAnd", NULL, 2, OF_FIRST, true, bits_and},
    {"BitwiseOr", NULL, 2, OF_FIRST, true, bits_or},
    {"BitwiseXor", NULL, 2, OF_FIRST, true, bits_xor},
    {"BitwiseNot", NULL, 1, OF_FIRST, true, bits_not},
    {"BitShift", NULL, 2, OF_FIRST, true, NULL},
};

/* The shape that all operands are repeated to. */
static enum lk_status broadcast(const struct lk_onnx_draft *draft,
                                const struct lk_onnx_tensor *const *x, int count, int *rank,
                                int64_t *dim)
{
    *rank = 0;
    for (int o = 0; o < count; o++)
        *rank = x[o]->rank > *rank ? x[o]->rank : *rank;
    for (int i = 0; i < *rank; i++) {
        dim[i] = 1;
        for (int o = 0; o < count; o++) {
            const int own = i - (*rank - x[o]->rank);
            const int64_t length = own < 0 ? 1 : x[o]->dim[own];
            if (length != 1 && dim[i] != 1 && length != dim[i])
                return lk_onnx_fail(draft, "constants of shapes that do not go together");
            dim[i] = length == 1 ? dim[i] : length;
        }
    }
    return LK_OK;
}

/* Where an operand has the element of those indices. */
static int64_t place(const struct lk_onnx_tensor *x, int rank, const int64_t *at)
{
    int64_t index = 0;
    for (int i = 0; i < x->rank; i++)
        index = index * x->dim[i] + (x->dim[i] == 1 ? 0 : at[i + rank - x->rank]);
    return index;
}

/* The length of an open batch times or divided by a number, which makes another number of
 * samples' parts; *done: it is that. */
static enum lk_status scale_open(const struct lk_onnx_draft *draft, const struct row *row,
                                 const double *value, double *result, bool *done)
{
    const bool is_product = row->function == multiply;
    const int open = is_product && lk_onnx_share_of((int64_t)value[1]) ? 1 : 0;
    const int64_t share = lk_onnx_share_of((int64_t)value[open]);
    const double other = value[1 - open];
    *done = share > 0 && value[0] == value[1] &&
            (row->function == larger || row->function == smaller);
    *result = value[0];
    if (*done)
        return LK_OK;
    *done = share > 0 && (is_product || row->function == divide) && other >= 1 && other < 1e6 &&
            other == floor(other);
    if (!*done)
        return LK_OK;
    if (is_product ? (double)share * other > 1e6 : share % (int64_t)other != 0)
        return lk_onnx_fail(draft, "it computes with the length of the batch in a way that is "
                                   "not supported");
    *result = (double)LK_ONNX_OPEN - 1 +
              (is_product ? (double)share * other : (double)(share / (int64_t)other));
    return LK_OK;
}

/* Only whole numbers have bits. */
static enum lk_status choose_bits(const struct lk_onnx_draft *draft, enum lk_onnx_type type,
                                  bits **bits)
{
    const char *direction;
    if (!lk_onnx_is_whole(type))
        return lk_onnx_fail(draft, "whole numbers are expected");
    if (strcmp(draft->node->op, "BitShift") != 0)
        return LK_OK;
    LK_TRY(lk_onnx_say_text(draft, "direction", "", &direction));
    *bits = strcmp(direction, "LEFT") == 0 ? bits_left
            : type == LK_ONNX_UINT64       ? bits_right_of_unsigned
                                           : bits_right;
    return strcmp(direction, "LEFT") == 0 || strcmp(direction, "RIGHT") == 0
               ? LK_OK
               : lk_onnx_fail(draft, "'direction' %.40s", direction);
}

/* Element `index` of what is made of x, at a place of it. */
struct element {
    const struct lk_onnx_tensor *const *x;
    struct lk_onnx_tensor *made;
    int64_t index, at[LK_ONNX_AXES];
};

static enum lk_status compute_bits(const struct lk_onnx_draft *draft, const struct row *row,
                                   bits *bits, const struct element *e)
{
    int64_t value[MOST_OPERANDS] = {0};
    for (int o = 0; o < row->operands; o++) {
        value[o] = lk_onnx_integer(e->x[o], place(e->x[o], e->made->rank, e->at));
        if (!draft->is_whole && lk_onnx_share_of(value[o]))
            return lk_onnx_fail(draft, "bits of the length of the batch");
    }
    lk_onnx_put_integer(e->made, e->index, bits(value[0], value[1]));
    return LK_OK;
}

static enum lk_status compute_number(const struct lk_onnx_draft *draft, const struct row *row,
                                     const struct element *e)
{
    double value[MOST_OPERANDS] = {0}, result = 0;
    bool is_far = false, is_scaled = false;
    for (int o = 0; o < row->operands; o++) {
        value[o] = lk_onnx_real(e->x[o], place(e->x[o], e->made->rank, e->at));
        is_far |=
            lk_onnx_is_whole(e->x[o]->type) && !row->compares && fabs(value[o]) > FARTHEST;
    }
    if (is_far && !draft->is_whole && lk_onnx_is_whole(e->made->type))
        LK_TRY(scale_open(draft, row, value, &result, &is_scaled));
    if (is_far && !is_scaled)
        return lk_onnx_fail(draft, "it computes with the length of the batch, which is not "
                                   "supported");
    if (!is_scaled)
        result = row->function(value[0], value[1], value[2]);
    if (lk_onnx_is_whole(e->made->type) && !isfinite(result))
        return lk_onnx_fail(draft, "a division of whole numbers by 0");
    lk_onnx_put_real(e->made, e->index, result);
    return LK_OK;
}

static enum lk_status compute(struct lk_onnx_draft *draft, const struct row *row,
                              const struct lk_onnx_tensor *const *x)
{
    int64_t dim[LK_ONNX_AXES];
    int rank;
    const enum lk_onnx_type type =
        row->result == TRUTH ? LK_ONNX_BOOL : x[row->result == OF_SECOND]->type;
    bits *bits = row->bits;
    struct element e = {.x = x};
    LK_TRY(broadcast(draft, x, row->operands, &rank, dim));
    LK_TRY(lk_onnx_new_tensor(draft, type, rank, dim, &e.made));
    if (!row->function)
        LK_TRY(choose_bits(draft, x[0]->type, &bits));
    for (; e.index < e.made->count; e.index++) {
        LK_TRY(bits ? compute_bits(draft, row, bits, &e) : compute_number(draft, row, &e));
        for (int i = rank - 1; i >= 0 && ++e.at[i] == dim[i]; i--)
            e.at[i] = 0;
    }
    return lk_onnx_give_constant(draft, e.made);
}

enum lk_status lk_onnx_fold_range(struct lk_onnx_draft *draft,
                                  const struct lk_onnx_tensor *const x[3])
{
    const double first = lk_onnx_real(x[0], 0), end = lk_onnx_real(x[1], 0),
                 step = lk_onnx_real(x[2], 0), steps = ceil((end - first) / step);
    struct lk_onnx_tensor *made;
    if (!(fabs(first) < 1e9 && fabs(end) < 1e9 && steps < 1e9))
        return lk_onnx_fail(draft, "a range that is no range of lengths");
    const int64_t count = steps > 0 ? (int64_t)steps : 0;
    LK_TRY(lk_onnx_new_tensor(draft, x[0]->type, 1, &count, &made));
    for (int64_t i = 0; i < count; i++)
        lk_onnx_put_real(made, i, first + (double)i * step);
    return lk_onnx_give_constant(draft, made);
}

/* Bounds that a Clip leaves out. */
static enum lk_status add_bounds(struct lk_onnx_draft *draft,
                                 const struct lk_onnx_tensor *x[MOST_OPERANDS])
{
    for (int i = 1; i < MOST_OPERANDS; i++) {
        struct lk_onnx_tensor *bound;
        if (x[i])
            continue;
        LK_TRY(lk_onnx_new_tensor(draft, LK_ONNX_DOUBLE, 0, NULL, &bound));
        lk_onnx_put_real(bound, 0, i == 1 ? -INFINITY : INFINITY);
        x[i] = bound;
    }
    return LK_OK;
}

/* *count -1: more than MOST_OPERANDS, or some of them left out. */
static enum lk_status read_operands(struct lk_onnx_draft *draft,
                                    const struct lk_onnx_tensor *x[MOST_OPERANDS], int *count)
{
    const int given = draft->node->input_count;
    int found = 0;
    for (int i = 0; i < MOST_OPERANDS && i < given; i++)
        if (lk_onnx_input(draft, i)) {
            x[i] = lk_onnx_input(draft, i)->constant;
            found++;
        }
    *count = found == given ? given : -1;
    if (strcmp(draft->node->op, "Clip") != 0 || !x[0] || !lk_onnx_is_whole(x[0]->type))
        return LK_OK;
    *count = MOST_OPERANDS;
    return add_bounds(draft, x);
}

enum lk_status lk_onnx_fold_numbers(struct lk_onnx_draft *draft, bool *done)
{
    const struct lk_onnx_tensor *x[MOST_OPERANDS] = {NULL};
    int count;
    const bool is_range = strcmp(draft->node->op, "Range") == 0;
    *done = false;
    LK_TRY(read_operands(draft, x, &count));
    for (int i = 0; i < LK_COUNT(rows); i++)
        if (strcmp(rows[i].op, draft->node->op) == 0 && count == rows[i].operands &&
            !(rows[i].function == modulo && lk_onnx_find_attribute(draft->node, "fmod"))) {
            *done = true;
            return compute(draft, &rows[i], x);
        }
    if (!is_range || count != 3 || x[0]->count != 1 || x[1]->count != 1 || x[2]->count != 1)
        return LK_OK;
    *done = true;
    return lk_onnx_fold_range(draft, x);
}

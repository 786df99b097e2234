/* Losses of elements: all rows of their table, and numbers that PyTorch found. */
#include "driver.h"

#include "golden.h"
#include "ops/loss.h"
#include "ops/loss_table.h"
#include "ops/oracle.h"
#include <string.h>

/* --- the rows of the table, against their expressions in C ------------------------------- */

static void measure(const struct op_problem *p, const char *name, const double *const x[],
                    double *y)
{
    const struct lk_loss_oracle *loss = lk_loss_oracle_find(name);
    const struct lk_loss_options *o = p->options;
    const int64_t count = lk_shape_count(&p->shapes->x[0]);
    for (int64_t i = 0; i < p->samples * count; i++) {
        const double t = x[1][i];
        if (p->shapes->x_dtype[1] == LK_I32 && t != 0 && t != 1)
            continue;
        y[i / count * 2] += loss->value(x[0][i], t, o->delta) / (double)count;
        y[i / count * 2 + 1] += loss->right(x[0][i], t) / (double)count;
    }
}

static void derive(const struct op_problem *p, const char *name, const double *const x[],
                   double *const dx[])
{
    const struct lk_loss_oracle *loss = lk_loss_oracle_find(name);
    const struct lk_loss_options *o = p->options;
    const int64_t count = lk_shape_count(&p->shapes->x[0]);
    for (int64_t i = 0; i < p->samples * count; i++) {
        const double t = x[1][i];
        if (p->shapes->x_dtype[1] == LK_I32 && t != 0 && t != 1)
            continue;
        dx[0][i] = o->weight * loss->dp(x[0][i], t, o->delta) / (double)count;
        if (dx[1]) /* targets, and not labels */
            dx[1][i] = o->weight * loss->dt(x[0][i], t, o->delta) / (double)count;
    }
}

/* Of every eighth sample no label is one. */
static void arrange_labels(const struct lk_op_shapes *shapes, int64_t samples,
                           double *const x[], double *const w[])
{
    static const double wrong[] = {-1, 2, 2147483647, -2147483648.0};
    (void)w;
    for (int64_t n = 0; n < samples && shapes->x_dtype[1] == LK_I32; n += 8)
        x[1][n] = wrong[n / 8 % 4];
}

/* Targets that are a yes or a no. */
static void arrange_sides(const struct lk_op_shapes *shapes, int64_t samples, double *const x[],
                          double *const w[])
{
    (void)w;
    for (int64_t i = 0; i < samples * lk_shape_count(&shapes->x[0]); i++)
        x[1][i] = i % 3 == 1;
}

/* The driver's oracles of a row: forward and backward know no name, so each has its own. */
#define ORACLE(name_, ...)                                                                     \
    static void forward_##name_(const struct op_problem *p, const double *const x[],           \
                                const double *const w[], double *y)                            \
    {                                                                                          \
        (void)w;                                                                               \
        measure(p, #name_, x, y);                                                              \
    }                                                                                          \
    static void backward_##name_(const struct op_problem *p, const double *const x[],          \
                                 const double *const w[], const double *dy,                    \
                                 double *const dx[], double *const dw[])                       \
    {                                                                                          \
        (void)w, (void)dy, (void)dw;                                                           \
        derive(p, #name_, x, dx);                                                              \
    }                                                                                          \
    static const struct op_oracle name_##_row = {forward_##name_, backward_##name_,            \
                                                 arrange_labels};                              \
    static const struct op_oracle name_##_sides = {forward_##name_, backward_##name_,          \
                                                   arrange_sides};
LK_LOSSES(ORACLE)

/* --- what PyTorch found ---------------------------------------------------------------- */

#define COPY(to, from) memcpy(to, from, sizeof(from))
#define GOLDEN(name_, ...)                                                                     \
    static void arrange_##name_(const struct lk_op_shapes *shapes, int64_t samples,            \
                                double *const x[], double *const w[])                          \
    {                                                                                          \
        (void)shapes, (void)samples, (void)w;                                                  \
        COPY(x[0], name_##_x);                                                                 \
        COPY(x[1], name_##_t);                                                                 \
    }                                                                                          \
    static void forward_##name_(const struct op_problem *p, const double *const x[],           \
                                const double *const w[], double *y)                            \
    {                                                                                          \
        (void)p, (void)x, (void)w;                                                             \
        COPY(y, name_##_y);                                                                    \
    }                                                                                          \
    static void backward_##name_(const struct op_problem *p, const double *const x[],          \
                                 const double *const w[], const double *dy,                    \
                                 double *const dx[], double *const dw[])                       \
    {                                                                                          \
        (void)p, (void)x, (void)w, (void)dy, (void)dw;                                         \
        COPY(dx[0], name_##_dx);                                                               \
        if (dx[1])                                                                             \
            COPY(dx[1], name_##_dt);                                                           \
    }                                                                                          \
    static const struct op_oracle name_ = {forward_##name_, backward_##name_, arrange_##name_};
GOLDENS(GOLDEN)

#define GOLDEN_CASE(name_, op_, options_, x_, t_, classes_)                                    \
    {.op = op_,                                                                                \
     .options = options_,                                                                      \
     .inputs = 2,                                                                              \
     .x = {x_, t_},                                                                            \
     .classes = {0, classes_},                                                                 \
     .samples = GOLDEN_SAMPLES,                                                                \
     .oracle = &name_},

/* --- the cases ------------------------------------------------------------------------- */

/* Every size, number type and class; one number a sample; a shape of many axes, in chunks; yes
 * and no; the weight, which the loss that is told has not. Quantities: whole numbers, with no
 * error at all; answers: labels. */
#define CASE(name_, low_, high_, ...)                                                          \
    {.op = #name_, .inputs = 2, .low = (low_), .high = (high_), __VA_ARGS__},
#define TWICE(...) .x = {OP_SHAPE(__VA_ARGS__), OP_SHAPE(__VA_ARGS__)}
#define LABELLED_NUMBERS(name_, low_, high_)                                                   \
    CASE(name_, low_, high_, TWICE(4), .samples = 35, .integers = true, .oracle = &name_##_row)
#define LABELLED_YES_OR_NO(name_, low_, high_)                                                 \
    CASE(name_, low_, high_, .x = {OP_SHAPE(1), {0}}, .classes = {0, 2}, .samples = 50,        \
         .sizes = true, .thorough = true, .oracle = &name_##_row)                              \
    CASE(name_, low_, high_, .x = {{0}, {0}}, .classes = {0, 2}, .samples = 9,                 \
         .inference = true, .oracle = &name_##_row)
#define CASES(name_, options_, answers_, target_, low_, high_, ...)                            \
    CASE(name_, low_, high_, TWICE(10), .samples = 33, .shards = 2, .sizes = true,             \
         .thorough = true, .oracle = &name_##_row)                                             \
    CASE(name_, low_, high_, TWICE(1), .samples = 9, .oracle = &name_##_row)                   \
    CASE(name_, low_, high_, .x = {OP_SHAPE(1), {0}}, .samples = 9, .oracle = &name_##_row)    \
    CASE(name_, low_, high_, TWICE(5, 6, 70), .samples = 19, .shards = 2, .half = true,        \
         .oracle = &name_##_row)                                                               \
    CASE(name_, low_, high_, TWICE(6), .samples = 20, .only = OP_CPU | OP_GPU,                 \
         .oracle = &name_##_sides)                                                             \
    CASE(name_, low_, high_, TWICE(2, 3), .options = "weight=0.375", .weight = 0.375,          \
         .samples = 20, .oracle = &name_##_row)                                                \
    LABELLED_##answers_(name_, low_, high_)

/* clang-format off */
static const struct op_case cases[] = {
    LK_LOSSES(CASES)
    GOLDENS(GOLDEN_CASE)
    CASE(hinge, -3, 3, TWICE(8), .samples = 40, .integers = true, .oracle = &hinge_row)
    CASE(huber, -4, 4, TWICE(7), .options = "delta=0.5", .samples = 30, .oracle = &huber_row)
    CASE(huber, -3, 3, TWICE(8), .options = "delta=2", .samples = 40, .integers = true,
         .oracle = &huber_row)
};

static const struct op_refusal refusals[] = {
    {"mean_squared_error", "", 2, .x = {OP_SHAPE(3), OP_SHAPE(3, 1)}, .status = LK_E_SHAPE,
     .said = "mean_squared_error takes a target for each prediction of [3], not [3, 1]"},
    {"mean_squared_error", "", 2, .x = {OP_SHAPE(1), {0}}, .labels = {false, true},
     .status = LK_E_SHAPE, .said = "takes real targets [1], not labels"},
    {"hinge", "", 2, .x = {OP_SHAPE(2), {0}}, .labels = {false, true}, .status = LK_E_SHAPE,
     .said = "takes a label 0 or 1 for one prediction, not labels [] for [2]"},
    {"binary_cross_entropy", "", 2, .x = {OP_SHAPE(2), OP_SHAPE(2)}, .labels = {true, true},
     .status = LK_E_SHAPE, .said = "real predictions"},
    {"huber", "delta=0", 2, .x = {OP_SHAPE(2), OP_SHAPE(2)}, .status = LK_E_ARGUMENT,
     .said = "delta"},
    {"hinge", "weight=-1", 2, .x = {OP_SHAPE(2), OP_SHAPE(2)}, .status = LK_E_ARGUMENT,
     .said = "weight"},
    {"hinge", "delta=1", 2, .x = {OP_SHAPE(2), OP_SHAPE(2)}, .status = LK_E_ARGUMENT,
     .said = "delta"},
    {"sigmoid", "loss=binary_cross_entropy", .x = {OP_SHAPE(2)}, .status = LK_E_SHAPE,
     .said = "takes two inputs"},
    {"sigmoid", "", 2, .x = {OP_SHAPE(2), OP_SHAPE(2)}, .status = LK_E_SHAPE,
     .said = "sigmoid takes one input, not 2"},
};
/* clang-format on */

int main(void)
{
    static const struct op_suite suite = OP_SUITE(NULL, cases, refusals);
    return op_test(&suite);
}

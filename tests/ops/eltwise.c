/* Functions of every element against the C library's, and sums and products. */
#include "driver.h"

#include <math.h>
#include <string.h>

static int64_t elements(const struct op_problem *p)
{
    return p->samples * lk_shape_count(&p->shapes->y);
}

/* As the options struct of src/ops/eltwise.c begins. */
struct options {
    double alpha, beta;
};

/* One oracle a function: value and slope at v. */
#define ORACLE(name, value, slope)                                                             \
    static void forward_##name(const struct op_problem *p, const double *const x[],            \
                               const double *const w[], double *y)                             \
    {                                                                                          \
        const struct options *o = p->options;                                                  \
        const double alpha = o->alpha, beta = o->beta;                                         \
        (void)w, (void)alpha, (void)beta;                                                      \
        for (int64_t i = 0; i < elements(p); i++) {                                            \
            const double v = x[0][i];                                                          \
            y[i] = value;                                                                      \
        }                                                                                      \
    }                                                                                          \
    static void backward_##name(const struct op_problem *p, const double *const x[],           \
                                const double *const w[], const double *dy, double *const dx[], \
                                double *const dw[])                                            \
    {                                                                                          \
        const struct options *o = p->options;                                                  \
        const double alpha = o->alpha, beta = o->beta;                                         \
        (void)w, (void)dw, (void)alpha, (void)beta;                                            \
        for (int64_t i = 0; i < elements(p); i++) {                                            \
            const double v = x[0][i];                                                          \
            dx[0][i] = dy[i] * (slope);                                                        \
        }                                                                                      \
    }                                                                                          \
    static const struct op_oracle name = {forward_##name, backward_##name, NULL};

static double sigmoid_of(double v)
{
    return 1 / (1 + exp(-v));
}

ORACLE(relu, v > 0 ? v : 0, v > 0)
ORACLE(relu6, fmin(fmax(v, 0), 6), v > 0 && v < 6)
ORACLE(leaky_relu, v > 0 ? v : alpha * v, v > 0 ? 1 : alpha)
ORACLE(elu, v > 0 ? v : alpha * expm1(v), v > 0 ? 1 : alpha * exp(v))
ORACLE(sigmoid, sigmoid_of(v), sigmoid_of(v) * sigmoid_of(-v))
ORACLE(hard_sigmoid, fmin(fmax(alpha *v + beta, 0), 1),
       fabs(2 * (alpha * v + beta) - 1) < 1 ? alpha : 0)
ORACLE(hyperbolic, tanh(v), 1 / (cosh(v) * cosh(v)))
ORACLE(softsign, v / (1 + fabs(v)), 1 / ((1 + fabs(v)) * (1 + fabs(v))))
ORACLE(exponential, exp(v), exp(v))
ORACLE(softplus, v > 30 ? v : log1p(exp(v)), sigmoid_of(v))
ORACLE(gelu, v *erfc(-v / sqrt(2)) / 2,
       erfc(-v / sqrt(2)) / 2 + v * exp(-v * v / 2) / sqrt(2 * acos(-1)))
ORACLE(silu, v *sigmoid_of(v), sigmoid_of(v) + v * sigmoid_of(v) * sigmoid_of(-v))
ORACLE(hard_swish, v *fmin(fmax(v + 3, 0), 6) / 6, v<-3 ? 0 : v> 3 ? 1 : v / 3 + 0.5)
ORACLE(absolute, fabs(v), v > 0 ? 1 : v < 0 ? -1 : 0)
ORACLE(square, v *v, 2 * v)

static void forward_add(const struct op_problem *p, const double *const x[],
                        const double *const w[], double *y)
{
    (void)w;
    for (int64_t i = 0; i < elements(p); i++)
        for (int k = 0; k < p->shapes->inputs; k++)
            y[i] += x[k][i];
}

static void backward_add(const struct op_problem *p, const double *const x[],
                         const double *const w[], const double *dy, double *const dx[],
                         double *const dw[])
{
    (void)x, (void)w, (void)dw;
    for (int k = 0; k < p->shapes->inputs; k++)
        memcpy(dx[k], dy, (size_t)elements(p) * sizeof *dy);
}

static const struct op_oracle add = {forward_add, backward_add, NULL};

static void forward_multiply(const struct op_problem *p, const double *const x[],
                             const double *const w[], double *y)
{
    (void)w;
    for (int64_t i = 0; i < elements(p); i++)
        y[i] = x[0][i] * x[1][i];
}

static void backward_multiply(const struct op_problem *p, const double *const x[],
                              const double *const w[], const double *dy, double *const dx[],
                              double *const dw[])
{
    (void)w, (void)dw;
    for (int64_t i = 0; i < elements(p); i++) {
        dx[0][i] = dy[i] * x[1][i];
        dx[1][i] = dy[i] * x[0][i];
    }
}

static const struct op_oracle multiply = {forward_multiply, backward_multiply, NULL};

#define RANGE(op_, oracle_, low_, high_)                                                       \
    {                                                                                          \
        .op = (op_), .x = {OP_SHAPE(3, 5, 7)}, .samples = 18, .low = (low_), .high = (high_),  \
        .oracle = &(oracle_)                                                                   \
    }

static const struct op_case cases[] = {
    {.op = "relu",
     .x = {OP_SHAPE(3, 5, 7)},
     .samples = 18,
     .thorough = true,
     .sizes = true,
     .oracle = &relu},
    {.op = "relu",
     .x = {OP_SHAPE(2, 300)},
     .samples = 17,
     .shards = 2,
     .integers = true,
     .oracle = &relu},
    {.op = "relu", .x = {OP_SHAPE(9)}, .samples = 3, .inference = true, .oracle = &relu},
    RANGE("relu6", relu6, -2, 9),
    RANGE("leaky_relu", leaky_relu, -2, 2),
    {.op = "leaky_relu",
     .options = "alpha=0.3",
     .x = {OP_SHAPE(4)},
     .samples = 5,
     .oracle = &leaky_relu},
    RANGE("elu", elu, -4, 2),
    {.op = "elu", .options = "alpha=1.5", .x = {OP_SHAPE(4)}, .samples = 5, .oracle = &elu},
    RANGE("sigmoid", sigmoid, -20, 20),
    RANGE("hard_sigmoid", hard_sigmoid, -5, 5),
    RANGE("tanh", hyperbolic, -6, 6),
    RANGE("softsign", softsign, -9, 9),
    RANGE("exp", exponential, -3, 1),
    RANGE("softplus", softplus, -40, 40),
    RANGE("gelu", gelu, -7, 7),
    RANGE("silu", silu, -20, 20),
    RANGE("hard_swish", hard_swish, -5, 5),
    RANGE("abs", absolute, -2, 2),
    RANGE("square", square, -2, 2),
    {.op = "add",
     .inputs = 2,
     .x = {OP_SHAPE(3, 5), OP_SHAPE(3, 5)},
     .samples = 18,
     .thorough = true,
     .oracle = &add},
    {.op = "add",
     .inputs = 4,
     .x = {OP_SHAPE(7), OP_SHAPE(7), OP_SHAPE(7), OP_SHAPE(7)},
     .samples = 19,
     .integers = true,
     .oracle = &add},
    {.op = "multiply",
     .inputs = 2,
     .x = {OP_SHAPE(3, 120), OP_SHAPE(3, 120)},
     .samples = 18,
     .thorough = true,
     .oracle = &multiply},
};

static const struct op_refusal refusals[] = {
    {.op = "leaky_relu",
     .options = "alpha=-1",
     .x = {OP_SHAPE(4)},
     .status = LK_E_ARGUMENT,
     .said = "not in 0..1"},
    {.op = "relu",
     .options = "alpha=1",
     .x = {OP_SHAPE(4)},
     .status = LK_E_ARGUMENT,
     .said = "alpha"},
    {.op = "relo", .x = {OP_SHAPE(4)}, .status = LK_E_MODEL, .said = "did you mean 'relu'?"},
    {.op = "relu",
     .x = {{0}},
     .labels = {true},
     .status = LK_E_SHAPE,
     .said = "relu: real numbers expected, found labels"},
    {.op = "add",
     .inputs = 2,
     .x = {OP_SHAPE(3, 5), OP_SHAPE(5, 3)},
     .status = LK_E_SHAPE,
     .said = "[3, 5] and [5, 3]"},
    {.op = "multiply",
     .inputs = 2,
     .x = {OP_SHAPE(3), OP_SHAPE(3, 1)},
     .status = LK_E_SHAPE,
     .said = "[3] and [3, 1]"},
};

int main(void)
{
    static const struct op_suite suite = OP_SUITE(NULL, cases, refusals);
    return op_test(&suite);
}

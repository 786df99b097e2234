/* Functions of every element, all rows of their table, and sums and products. */
#include "driver.h"

#include "ops/eltwise.h"
#include "ops/eltwise_table.h"
#include "ops/oracle.h"
#include <string.h>

static int64_t elements(const struct op_problem *p)
{
    return p->samples * lk_shape_count(&p->shapes->y);
}

/* --- the rows of the table, against their expressions in C ------------------------------- */

/* The driver's oracle of a row: forward and backward know no name, so each has its own. */
#define ORACLE(name_, ...)                                                                     \
    static void forward_##name_(const struct op_problem *p, const double *const x[],           \
                                const double *const w[], double *y)                            \
    {                                                                                          \
        (void)w;                                                                               \
        apply(p, #name_, x[0], NULL, y);                                                       \
    }                                                                                          \
    static void backward_##name_(const struct op_problem *p, const double *const x[],          \
                                 const double *const w[], const double *dy,                    \
                                 double *const dx[], double *const dw[])                       \
    {                                                                                          \
        (void)w, (void)dw;                                                                     \
        apply(p, #name_, x[0], dy, dx[0]);                                                     \
    }                                                                                          \
    static const struct op_oracle name_##_row = {forward_##name_, backward_##name_, NULL};

/* The values of the function `name`, or where there is dy its slopes times that. */
static void apply(const struct op_problem *p, const char *name, const double *x,
                  const double *dy, double *to)
{
    const struct lk_function_oracle *f = lk_function_oracle_find(name);
    const struct lk_eltwise_options *o = p->options;
    for (int64_t i = 0; i < elements(p); i++)
        to[i] =
            dy ? dy[i] * f->slope(x[i], o->alpha, o->beta) : f->value(x[i], o->alpha, o->beta);
}

LK_FUNCTIONS(ORACLE)

/* With the standard options, and with those that the row names. */
#define CASES(name_, reads_, options_, exact_, check_, low_, high_, ...)                       \
    {.op = #name_,                                                                             \
     .x = {OP_SHAPE(3, 5, 7)},                                                                 \
     .samples = 18,                                                                            \
     .low = (low_),                                                                            \
     .high = (high_),                                                                          \
     .oracle = &name_##_row},                                                                  \
        {.op = #name_,                                                                         \
         .options = (check_),                                                                  \
         .x = {OP_SHAPE(4)},                                                                   \
         .samples = 5,                                                                         \
         .low = (low_),                                                                        \
         .high = (high_),                                                                      \
         .oracle = &name_##_row},

/* --- sums and products ----------------------------------------------------------------- */

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

static const struct op_case cases[] = {
    {.op = "relu",
     .x = {OP_SHAPE(3, 5, 7)},
     .samples = 18,
     .thorough = true,
     .sizes = true,
     .oracle = &relu_row},
    {.op = "relu",
     .x = {OP_SHAPE(2, 300)},
     .samples = 17,
     .shards = 2,
     .integers = true,
     .oracle = &relu_row},
    {.op = "relu", .x = {OP_SHAPE(9)}, .samples = 3, .inference = true, .oracle = &relu_row},
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
    LK_FUNCTIONS(CASES)};

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

/* Functions of every element: all rows of their table. */
#include "driver.h"

#include "ops/eltwise.h"
#include "ops/eltwise_table.h"
#include "ops/oracle.h"

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
};

int main(void)
{
    static const struct op_suite suite = OP_SUITE(NULL, cases, refusals);
    return op_test(&suite);
}

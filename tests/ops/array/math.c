/* Every function of the table against its true value, and its slopes by finite differences. */
#include "../driver.h"
#include "ops/array/math_table.h"
#include <math.h>

#define NUMBERED(name, inputs, low, high, value, da, db, dc, truth) FUNCTION_##name,
#define TRUE_VALUE(name, inputs, low, high, value, da, db, dc, truth)                          \
    case FUNCTION_##name:                                                                      \
        return truth;
enum { LK_MATH_ROWS(NUMBERED) };

struct options {
    int function;
    double alpha, beta;
};

static double true_value(const struct options *o, double a, double b, double c)
{
    const double alpha = o->alpha, beta = o->beta;
    (void)alpha, (void)beta, (void)b, (void)c;
    switch (o->function) {
        LK_MATH_ROWS(TRUE_VALUE)
    }
    return 0;
}

static void forward(const struct op_problem *p, const double *const x[],
                    const double *const w[], double *y)
{
    const int64_t count = p->samples * lk_shape_count(&p->shapes->y);
    (void)w;
    for (int64_t i = 0; i < count; i++)
        y[i] = true_value(p->options, x[0][i], p->shapes->inputs > 1 ? x[1][i] : 0,
                          p->shapes->inputs > 2 ? x[2][i] : 0);
}

static const struct op_oracle oracle = {forward, NULL, NULL};

/* clang-format off */
#define S OP_SHAPE(3, 5)
#define CASE(name, inputs_, low_, high_, value, da, db, dc, truth)                             \
    {.op = "math", .options = "function=" #name, .inputs = (inputs_), .x = {S, S, S},          \
     .samples = 5, .low = (low_), .high = (high_), .tolerance = 200},

static const struct op_case cases[] = {
    LK_MATH_ROWS(CASE)
    {.op = "math", .options = "function=clip alpha=-0.5 beta=0.75", .x = {OP_SHAPE(131)},
     .samples = 37, .shards = 2, .low = -2, .high = 2, .thorough = true, .tolerance = 200},
    {.op = "math", .options = "function=shrink alpha=0.5 beta=0.25", .x = {S}, .samples = 5,
     .low = -2, .high = 2},
    {.op = "math", .options = "function=threshold alpha=0.5", .x = {S}, .samples = 5,
     .low = -2, .high = 2},
    {.op = "math", .options = "function=celu alpha=2", .x = {S}, .samples = 5, .low = -2,
     .high = 2},
    {.op = "math", .options = "function=slope", .inputs = 2, .x = {S, S}, .samples = 5,
     .low = -2, .high = 2},
    {.op = "math", .options = "function=product", .inputs = 2, .x = {S, S}, .samples = 19,
     .integers = true, .sizes = true},
};

static const struct op_refusal refusals[] = {
    {.op = "math", .options = "function=sum", .x = {S}, .status = LK_E_SHAPE,
     .said = "takes 2 inputs"},
    {.op = "math", .options = "function=sum", .inputs = 2, .x = {S, OP_SHAPE(16)},
     .status = LK_E_SHAPE, .said = "elements"},
    {.op = "math", .options = "function=sin", .x = {S}, .labels = {true},
     .status = LK_E_SHAPE, .said = "labels"},
    {.op = "math", .options = "function=sine", .x = {S}, .status = LK_E_ARGUMENT,
     .said = "function"},
};
/* clang-format on */

int main(void)
{
    const struct op_suite suite = OP_SUITE(&oracle, cases, refusals);
    return op_test(&suite);
}

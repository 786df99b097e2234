/* Numbers that are the same for all samples, and the sum of their gradients. */
#include "../driver.h"

static void forward(const struct op_problem *p, const double *const x[],
                    const double *const w[], double *y)
{
    const int64_t count = p->shapes->y.dim[0];
    (void)x;
    for (int64_t i = 0; i < p->samples * count; i++)
        y[i] = w[0][i % count];
}

static void backward(const struct op_problem *p, const double *const x[],
                     const double *const w[], const double *dy, double *const dx[],
                     double *const dw[])
{
    const int64_t count = p->shapes->y.dim[0];
    (void)x, (void)w, (void)dx;
    for (int64_t i = 0; i < p->samples * count; i++)
        dw[0][i % count] += dy[i];
}

static const struct op_oracle oracle = {forward, backward, NULL};

/* clang-format off */
static const struct op_case cases[] = {
    {.op = "constant", .options = "count=7", .x = {OP_SHAPE(3)}, .samples = 37, .shards = 2,
     .y = OP_SHAPE(7), .integers = true, .thorough = true, .sizes = true},
    {.op = "constant", .options = "count=131", .x = {OP_SHAPE(2, 5)}, .samples = 19},
    {.op = "constant", .options = "count=1", .x = {OP_SHAPE(70)}, .samples = 5, .frozen = true},
    {.op = "constant", .options = "count=5", .x = {OP_SHAPE(2)}, .samples = 5,
     .inference = true},
};

static const struct op_refusal refusals[] = {
    {.op = "constant", .options = "", .x = {OP_SHAPE(4)}, .status = LK_E_ARGUMENT,
     .said = "count"},
    {.op = "constant", .options = "count=2", .x = {OP_SHAPE(4)}, .labels = {true},
     .status = LK_E_SHAPE, .said = "labels"},
};
/* clang-format on */

int main(void)
{
    const struct op_suite suite = OP_SUITE(&oracle, cases, refusals);
    return op_test(&suite);
}

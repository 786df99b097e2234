/* Sums and products, with numbers of channels repeated over the image. */
#include "driver.h"

/* Which number of input k belongs to number i of y, of all samples. */
static int64_t place_of(const struct op_problem *p, int k, int64_t i)
{
    const struct lk_shape *y = &p->shapes->y;
    const int64_t count = lk_shape_count(y);
    return lk_shape_count(&p->shapes->x[k]) == count ? i : i / (y->dim[1] * y->dim[2]);
}

static int64_t elements(const struct op_problem *p)
{
    return p->samples * lk_shape_count(&p->shapes->y);
}

static void forward_add(const struct op_problem *p, const double *const x[],
                        const double *const w[], double *y)
{
    (void)w;
    for (int64_t i = 0; i < elements(p); i++)
        for (int k = 0; k < p->shapes->inputs; k++)
            y[i] += x[k][place_of(p, k, i)];
}

static void backward_add(const struct op_problem *p, const double *const x[],
                         const double *const w[], const double *dy, double *const dx[],
                         double *const dw[])
{
    (void)x, (void)w, (void)dw;
    for (int64_t i = 0; i < elements(p); i++)
        for (int k = 0; k < p->shapes->inputs; k++)
            dx[k][place_of(p, k, i)] += dy[i];
}

static const struct op_oracle add = {forward_add, backward_add, NULL};

static void forward_multiply(const struct op_problem *p, const double *const x[],
                             const double *const w[], double *y)
{
    (void)w;
    for (int64_t i = 0; i < elements(p); i++)
        y[i] = x[0][place_of(p, 0, i)] * x[1][place_of(p, 1, i)];
}

static void backward_multiply(const struct op_problem *p, const double *const x[],
                              const double *const w[], const double *dy, double *const dx[],
                              double *const dw[])
{
    (void)w, (void)dw;
    for (int64_t i = 0; i < elements(p); i++)
        for (int k = 0; k < 2; k++)
            dx[k][place_of(p, k, i)] += dy[i] * x[1 - k][place_of(p, 1 - k, i)];
}

static const struct op_oracle multiply = {forward_multiply, backward_multiply, NULL};

static const struct op_case cases[] = {
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
    {.op = "add",
     .inputs = 2,
     .x = {OP_SHAPE(3, 4, 5), OP_SHAPE(3)},
     .y = OP_SHAPE(3, 4, 5),
     .samples = 18,
     .thorough = true,
     .sizes = true,
     .oracle = &add},
    {.op = "add", /* the first is repeated, and so are others */
     .inputs = 5,
     .x = {OP_SHAPE(4, 1, 1), OP_SHAPE(4, 6, 5), OP_SHAPE(4), OP_SHAPE(4, 6, 5),
           OP_SHAPE(4, 6, 5)},
     .y = OP_SHAPE(4, 6, 5),
     .samples = 19,
     .shards = 2,
     .integers = true,
     .oracle = &add},
    {.op = "add",
     .inputs = 2,
     .x = {OP_SHAPE(5), OP_SHAPE(5, 1, 1)},
     .y = OP_SHAPE(5, 1, 1),
     .samples = 9,
     .oracle = &add},
    {.op = "add", /* written past the caches */
     .inputs = 3,
     .x = {OP_SHAPE(64, 32, 32), OP_SHAPE(64, 32, 32), OP_SHAPE(64)},
     .samples = 64,
     .only = OP_CPU,
     .oracle = &add},
    {.op = "multiply",
     .inputs = 2,
     .x = {OP_SHAPE(3, 120), OP_SHAPE(3, 120)},
     .samples = 18,
     .thorough = true,
     .oracle = &multiply},
    {.op = "multiply",
     .inputs = 2,
     .x = {OP_SHAPE(3, 4, 5), OP_SHAPE(3)},
     .y = OP_SHAPE(3, 4, 5),
     .samples = 18,
     .thorough = true,
     .sizes = true,
     .oracle = &multiply},
    {.op = "multiply",
     .inputs = 2,
     .x = {OP_SHAPE(2, 1, 1), OP_SHAPE(2, 7, 9)},
     .y = OP_SHAPE(2, 7, 9),
     .samples = 19,
     .shards = 2,
     .integers = true,
     .oracle = &multiply},
    {.op = "multiply",
     .inputs = 2,
     .x = {OP_SHAPE(5), OP_SHAPE(5, 1, 1)},
     .y = OP_SHAPE(5, 1, 1),
     .samples = 9,
     .oracle = &multiply},
    {.op = "multiply", /* written past the caches */
     .inputs = 2,
     .x = {OP_SHAPE(64, 32, 32), OP_SHAPE(64)},
     .samples = 64,
     .only = OP_CPU,
     .oracle = &multiply},
};

static const struct op_refusal refusals[] = {
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
    {.op = "multiply",
     .inputs = 2,
     .x = {OP_SHAPE(4), OP_SHAPE(3, 4, 4)},
     .status = LK_E_SHAPE,
     .said = "multiply: inputs of one shape, or [c] beside [h, w, c], expected, found [4] and "
             "[4, 4, 3]"},
    {.op = "add",
     .inputs = 2,
     .x = {OP_SHAPE(3, 4, 4), OP_SHAPE(3, 1, 4)},
     .status = LK_E_SHAPE,
     .said = "found [4, 4, 3] and [1, 4, 3]"},
    {.op = "add",
     .inputs = 2,
     .x = {OP_SHAPE(5, 3), OP_SHAPE(5)},
     .status = LK_E_SHAPE,
     .said = "found [5, 3] and [5]"},
    {.op = "add",
     .inputs = 2,
     .x = {OP_SHAPE(3), {0}},
     .labels = {false, true},
     .status = LK_E_SHAPE,
     .said = "add: real numbers expected, found labels"},
};

int main(void)
{
    static const struct op_suite suite = OP_SUITE(NULL, cases, refusals);
    return op_test(&suite);
}

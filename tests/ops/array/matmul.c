/* Products of matrices of each sample against three loops. */
#include "../driver.h"

struct options {
    int64_t rows, inner, columns;
};

/* For each term of each product: elements of a, b and y. */
static void each_term(const struct op_problem *p,
                      void (*visit)(void *context, int64_t a, int64_t b, int64_t y),
                      void *context)
{
    const struct options *o = p->options;
    const int64_t matrices =
        p->samples * lk_shape_count(&p->shapes->y) / (o->rows * o->columns);
    for (int64_t m = 0; m < matrices; m++)
        for (int64_t i = 0; i < o->rows; i++)
            for (int64_t j = 0; j < o->columns; j++)
                for (int64_t k = 0; k < o->inner; k++)
                    visit(context, (m * o->rows + i) * o->inner + k,
                          (m * o->inner + k) * o->columns + j,
                          (m * o->rows + i) * o->columns + j);
}

struct arrays {
    const double *a, *b, *dy;
    double *y, *da, *db;
};

static void add_value(void *context, int64_t a, int64_t b, int64_t y)
{
    struct arrays *all = context;
    all->y[y] += all->a[a] * all->b[b];
}

static void add_gradients(void *context, int64_t a, int64_t b, int64_t y)
{
    struct arrays *all = context;
    all->da[a] += all->dy[y] * all->b[b];
    all->db[b] += all->dy[y] * all->a[a];
}

static void forward(const struct op_problem *p, const double *const x[],
                    const double *const w[], double *y)
{
    struct arrays all = {.a = x[0], .b = x[1], .y = y};
    (void)w;
    each_term(p, add_value, &all);
}

static void backward(const struct op_problem *p, const double *const x[],
                     const double *const w[], const double *dy, double *const dx[],
                     double *const dw[])
{
    struct arrays all = {.a = x[0], .b = x[1], .dy = dy, .da = dx[0], .db = dx[1]};
    (void)w, (void)dw;
    each_term(p, add_gradients, &all);
}

static const struct op_oracle oracle = {forward, backward, NULL};

/* clang-format off */
static const struct op_case cases[] = {
    {.op = "matmul", .options = "rows=3 inner=4 columns=5", .inputs = 2,
     .x = {OP_SHAPE(2, 3, 4), OP_SHAPE(2, 4, 5)}, .y = OP_SHAPE(30), .samples = 37, .shards = 2,
     .integers = true, .thorough = true, .sizes = true},
    {.op = "matmul", .options = "rows=1 inner=9 columns=1", .inputs = 2,
     .x = {OP_SHAPE(9), OP_SHAPE(9)}, .samples = 5},
    {.op = "matmul", .options = "rows=7 inner=1 columns=6", .inputs = 2,
     .x = {OP_SHAPE(7), OP_SHAPE(6)}, .samples = 5},
    {.op = "matmul", .options = "rows=2 inner=3 columns=4", .inputs = 2,
     .x = {OP_SHAPE(18), OP_SHAPE(3, 3, 4)}, .samples = 5, .inference = true},
};

static const struct op_refusal refusals[] = {
    {.op = "matmul", .options = "rows=3 inner=4 columns=5", .inputs = 2,
     .x = {OP_SHAPE(11), OP_SHAPE(20)}, .status = LK_E_SHAPE, .said = "not as many"},
    {.op = "matmul", .options = "rows=3 inner=4 columns=5", .inputs = 2,
     .x = {OP_SHAPE(12), OP_SHAPE(40)}, .status = LK_E_SHAPE, .said = "not as many"},
    {.op = "matmul", .options = "rows=3 inner=4", .inputs = 2, .x = {OP_SHAPE(12), OP_SHAPE(4)},
     .status = LK_E_ARGUMENT, .said = "columns"},
    {.op = "matmul", .options = "rows=3 inner=4 columns=1", .inputs = 2,
     .x = {OP_SHAPE(12), OP_SHAPE(4)}, .labels = {false, true}, .status = LK_E_SHAPE,
     .said = "labels"},
};
/* clang-format on */

int main(void)
{
    const struct op_suite suite = OP_SUITE(&oracle, cases, refusals);
    return op_test(&suite);
}

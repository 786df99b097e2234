/* Concat against copies, number by number. */
#include "driver.h"

/* The option `axis` is the first of the struct: 0 c, 1 h, 2 w, 3 t.
 * Calls move(context, i, from, to) for every number of every input, and its place in y. */
static void each_number(const struct op_problem *p,
                        void (*move)(void *context, int i, int64_t from, int64_t to),
                        void *context)
{
    static const int places[4][4] = {{0}, {0}, {1, -1, -1, 0}, {0, 1, 2, -1}};
    const struct lk_shape *y = &p->shapes->y;
    const int axis = places[y->rank][*(const int *)p->options];
    int64_t inner = 1, before = 0;
    for (int j = axis + 1; j < y->rank; j++)
        inner *= y->dim[j];
    for (int i = 0; i < p->shapes->inputs; i++) {
        const int64_t length = p->shapes->x[i].dim[axis];
        const int64_t count = p->samples * lk_shape_count(&p->shapes->x[i]);
        for (int64_t from = 0; from < count; from++) {
            const int64_t outer = from / (length * inner), within = from % (length * inner);
            move(context, i, from, (outer * y->dim[axis] + before) * inner + within);
        }
        before += length;
    }
}

struct pass {
    const double *const *x, *dy;
    double *y, *const *dx;
};

static void put(void *context, int i, int64_t from, int64_t to)
{
    const struct pass *pass = context;
    pass->y[to] = pass->x[i][from];
}

static void take(void *context, int i, int64_t from, int64_t to)
{
    const struct pass *pass = context;
    pass->dx[i][from] = pass->dy[to];
}

static void forward(const struct op_problem *p, const double *const x[],
                    const double *const w[], double *y)
{
    (void)w;
    struct pass pass = {.x = x, .y = y};
    each_number(p, put, &pass);
}

static void backward(const struct op_problem *p, const double *const x[],
                     const double *const w[], const double *dy, double *const dx[],
                     double *const dw[])
{
    (void)x, (void)w, (void)dw;
    struct pass pass = {.dx = dx, .dy = dy};
    each_number(p, take, &pass);
}

static const struct op_oracle oracle = {forward, backward, NULL};

static const struct op_case cases[] = {
    {.op = "concat",
     .inputs = 3,
     .x = {OP_SHAPE(2, 3, 5), OP_SHAPE(1, 3, 5), OP_SHAPE(4, 3, 5)},
     .y = OP_SHAPE(7, 3, 5),
     .samples = 18,
     .thorough = true,
     .sizes = true},
    {.op = "concat",
     .options = "axis=h",
     .inputs = 2,
     .x = {OP_SHAPE(3, 2, 4), OP_SHAPE(3, 5, 4)},
     .y = OP_SHAPE(3, 7, 4),
     .samples = 19,
     .shards = 2,
     .integers = true},
    {.op = "concat",
     .options = "axis=w",
     .inputs = 2,
     .x = {OP_SHAPE(2, 3, 1), OP_SHAPE(2, 3, 6)},
     .y = OP_SHAPE(2, 3, 7),
     .samples = 17,
     .thorough = true},
    {.op = "concat",
     .inputs = 8,
     .x = {OP_SHAPE(1), OP_SHAPE(2), OP_SHAPE(3), OP_SHAPE(300), OP_SHAPE(1), OP_SHAPE(1),
           OP_SHAPE(7), OP_SHAPE(5)},
     .y = OP_SHAPE(320),
     .samples = 9},
    {.op = "concat",
     .inputs = 2,
     .x = {OP_SHAPE(3, 4), OP_SHAPE(3, 2)},
     .y = OP_SHAPE(3, 6),
     .samples = 5},
    {.op = "concat",
     .options = "axis=t",
     .inputs = 2,
     .x = {OP_SHAPE(3, 4), OP_SHAPE(1, 4)},
     .y = OP_SHAPE(4, 4),
     .samples = 5},
    {.op = "concat", /* written past the caches */
     .inputs = 2,
     .x = {OP_SHAPE(40, 32, 32), OP_SHAPE(30, 32, 32)},
     .samples = 64,
     .only = OP_CPU},
};

static const struct op_refusal refusals[] = {
    {.op = "concat",
     .inputs = 2,
     .x = {OP_SHAPE(3, 4, 5), OP_SHAPE(3, 4, 6)},
     .status = LK_E_SHAPE,
     .said =
         "concat: inputs that differ along c alone expected, found [4, 5, 3] and [4, 6, 3]"},
    {.op = "concat",
     .inputs = 2,
     .x = {OP_SHAPE(3, 4, 5), OP_SHAPE(3)},
     .status = LK_E_SHAPE,
     .said = "found [4, 5, 3] and [3]"},
    {.op = "concat",
     .options = "axis=h",
     .inputs = 2,
     .x = {OP_SHAPE(3, 4), OP_SHAPE(3, 4)},
     .status = LK_E_SHAPE,
     .said = "concat: [3, 4] has no axis h"},
    {.op = "concat",
     .options = "axis=3",
     .inputs = 2,
     .x = {OP_SHAPE(3), OP_SHAPE(3)},
     .status = LK_E_ARGUMENT,
     .said = "'3' is none of c, h, w, t"},
    {.op = "concat",
     .inputs = 2,
     .x = {OP_SHAPE(3), {0}},
     .labels = {false, true},
     .status = LK_E_SHAPE,
     .said = "concat: real numbers expected, found labels"},
    {.op = "concat",
     .inputs = 2,
     .x = {OP_SHAPE(3, 2, 2, 2), OP_SHAPE(3, 2, 2, 2)},
     .status = LK_E_SHAPE,
     .said = "concat: [h, w, c], [t, c] or [c] expected, found [3, 2, 2, 2]"},
};

int main(void)
{
    static const struct op_suite suite = OP_SUITE(&oracle, cases, refusals);
    return op_test(&suite);
}

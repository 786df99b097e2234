/* Convolution over time against plain loops in double. */
#include "lengths.h"

#include <stdlib.h>

/* As the options struct of src/ops/sequence/conv1d.c. */
struct options {
    int64_t filters, kernel, stride, dilation;
    int padding, activation; /* valid, same, causal; none, relu */
    bool bias;
};

/* Where the first window begins. */
static int64_t start_of(const struct op_problem *p)
{
    const struct options *o = p->options;
    const int64_t steps = p->shapes->x[0].dim[0], count = p->shapes->y.dim[0];
    const int64_t reach = (o->kernel - 1) * o->dilation + 1;
    const int64_t missing = (count - 1) * o->stride + reach - steps;
    return o->padding == 2 ? 1 - reach : o->padding == 1 && missing > 0 ? -(missing / 2) : 0;
}

/* Calls visit for each product of a valid output, its element of x and of w. */
static void walk(const struct op_problem *p, const double *const x[], void *context,
                 void (*visit)(void *context, int64_t y, int64_t x, int64_t w))
{
    const struct options *o = p->options;
    const int64_t steps = p->shapes->x[0].dim[0], c = p->shapes->x[0].dim[1];
    const int64_t count = p->shapes->y.dim[0], reach = (o->kernel - 1) * o->dilation + 1;
    for (int64_t i = 0; i < p->samples * count * o->filters; i++) {
        const int64_t n = i / (count * o->filters), at = i / o->filters % count;
        const int64_t valid = length_of(p, x, n);
        if (at >= count_windows(valid, reach, o->stride, o->padding == 0))
            continue;
        visit(context, i, -1, -1);
        for (int64_t k = 0; k < o->kernel * c; k++) {
            const int64_t t = start_of(p) + at * o->stride + k / c * o->dilation;
            if (t >= 0 && t < valid)
                visit(context, i, (n * steps + t) * c + k % c, k * o->filters + i % o->filters);
        }
    }
}

struct sums {
    const struct op_problem *p;
    const double *x, *w, *bias, *dz;
    double *y, *dx, *dw, *db;
};

static void add_product(void *context, int64_t y, int64_t x, int64_t w)
{
    struct sums *s = context;
    if (x >= 0)
        s->y[y] += s->x[x] * s->w[w];
    else if (s->bias)
        s->y[y] += s->bias[y % ((const struct options *)s->p->options)->filters];
}

static void add_gradient(void *context, int64_t y, int64_t x, int64_t w)
{
    struct sums *s = context;
    if (x >= 0) {
        s->dx[x] += s->dz[y] * s->w[w];
        s->dw[w] += s->dz[y] * s->x[x];
    } else if (s->bias) {
        s->db[y % ((const struct options *)s->p->options)->filters] += s->dz[y];
    }
}

static void forward(const struct op_problem *p, const double *const x[],
                    const double *const w[], double *y)
{
    const struct options *o = p->options;
    struct sums sums = {.p = p, .x = x[0], .w = w[0], .bias = o->bias ? w[1] : NULL, .y = y};
    walk(p, x, &sums, add_product);
    for (int64_t i = 0; i < p->samples * lk_shape_count(&p->shapes->y); i++)
        if (o->activation && y[i] < 0)
            y[i] = 0;
}

static void backward(const struct op_problem *p, const double *const x[],
                     const double *const w[], const double *dy, double *const dx[],
                     double *const dw[])
{
    const struct options *o = p->options;
    const int64_t count = p->samples * lk_shape_count(&p->shapes->y);
    double *y = calloc((size_t)count + 1, sizeof *y),
           *dz = calloc((size_t)count + 1, sizeof *dz);
    if (!y || !dz)
        abort();
    forward(p, x, w, y);
    for (int64_t i = 0; i < count; i++)
        dz[i] = o->activation && y[i] <= 0 ? 0 : dy[i];
    struct sums sums = {.p = p,
                        .x = x[0],
                        .w = w[0],
                        .bias = o->bias ? w[1] : NULL,
                        .dz = dz,
                        .dx = dx[0],
                        .dw = dw[0],
                        .db = o->bias ? dw[1] : NULL};
    walk(p, x, &sums, add_gradient);
    free(y);
    free(dz);
}

static const struct op_oracle oracle = {forward, backward, arrange_lengths};

/* clang-format off */
#define CASE(options_, t, c, ...)                                                              \
    {.op = "conv1d", .options = options_, .x = {OP_SHAPE(t, c)}, .classes = {0, 1},            \
     __VA_ARGS__}

static const struct op_case cases[] = {
    CASE("filters=6 kernel=3", 9, 5, .inputs = 2, .samples = 37, .y = OP_SHAPE(7, 6),
         .thorough = true),
    CASE("filters=5 kernel=3 padding=same activation=relu", 7, 4, .inputs = 2, .samples = 33,
         .shards = 2, .y = OP_SHAPE(7, 5), .half = true, .only = OP_CPU | OP_GPU),
    CASE("filters=4 kernel=2 padding=causal dilation=2", 8, 3, .inputs = 2, .samples = 20,
         .y = OP_SHAPE(8, 4)),
    CASE("filters=18 kernel=4 stride=3 padding=same bias=false", 10, 3, .inputs = 2,
         .samples = 20, .shards = 2, .y = OP_SHAPE(4, 18)),
    CASE("filters=3 kernel=1", 4, 5, .samples = 40, .shards = 2, .integers = true),
    CASE("filters=3 kernel=2 stride=3", 8, 5, .samples = 19, .y = OP_SHAPE(3, 3)),
    CASE("filters=7 kernel=5 padding=same", 3, 2, .inputs = 2, .samples = 20,
         .inference = true),
    CASE("filters=7 kernel=2", 6, 2, .inputs = 2, .samples = 20, .frozen = true),
};

static const struct op_refusal refusals[] = {
    {.op = "conv1d", .options = "filters=3 kernel=3 dilation=3", .x = {OP_SHAPE(6, 2)},
     .status = LK_E_SHAPE,
     .said = "conv1d: a window of 7 time steps (dilated) does not fit a sequence of 6"},
    {.op = "conv1d", .options = "filters=3 kernel=2", .x = {OP_SHAPE(6)}, .status = LK_E_SHAPE,
     .said = "a sequence [t, c] expected, found [6]"},
    {.op = "conv1d", .options = "filters=3", .x = {OP_SHAPE(6, 2)}, .status = LK_E_ARGUMENT,
     .said = "kernel"},
    {.op = "conv1d", .options = "filters=3 kernel=2 padding=1", .x = {OP_SHAPE(6, 2)},
     .status = LK_E_ARGUMENT, .said = "padding"},
};
/* clang-format on */

int main(void)
{
    const struct op_suite suite = OP_SUITE(&oracle, cases, refusals);
    return op_test(&suite);
}

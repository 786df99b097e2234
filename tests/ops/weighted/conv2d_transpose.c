/* Transposed convolutions against their definition: every input spreads its taps over the
 * output. */
#include "ops/conv2d.h"

#include "../driver.h"
#include <stdlib.h>
#include <string.h>

/* As the options struct of src/ops/weighted/conv2d_transpose.c. */
struct options {
    struct lk_conv2d_options conv;
    int64_t output_padding[2];
};

/* Sizes; before: how far above and left of the output the first input's first tap lies. */
struct problem {
    const struct lk_conv2d_options *o;
    int64_t c, h, w, k, p, q, before[2];
};

static struct problem measure(const struct op_problem *problem)
{
    const struct lk_conv2d_options *o = &((const struct options *)problem->options)->conv;
    const struct lk_shape *x = &problem->shapes->x[0], *y = &problem->shapes->y;
    struct problem m = {o,         x->dim[0], x->dim[1], x->dim[2],
                        y->dim[0], y->dim[1], y->dim[2], {0}};
    if (strcmp(o->padding, "same") == 0) {
        for (int i = 0; i < 2; i++) {
            const int64_t more = (o->kernel[i] - 1) * o->dilation[i] + 1 - o->stride[i];
            m.before[i] = more > 0 ? more / 2 : 0;
        }
    } else if (strcmp(o->padding, "valid") != 0) {
        int64_t number[4], count = 0;
        for (const char *at = o->padding; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
            number[count++] = strtol(at, NULL, 10);
        m.before[0] = number[0];
        m.before[1] = count == 4 ? number[2] : number[count - 1];
    }
    return m;
}

/* Calls for each product of the sample: places in x, w and y. */
static void spread(const struct problem *m,
                   void (*visit)(void *context, int64_t x, int64_t w, int64_t y), void *context)
{
    const struct lk_conv2d_options *o = m->o;
    const int64_t channels = m->c / o->groups, filters = m->k / o->groups;
    for (int64_t c = 0; c < m->c; c++)
        for (int64_t xi = 0; xi < m->h * m->w; xi++)
            for (int64_t f = 0; f < filters; f++)
                for (int64_t tap = 0; tap < o->kernel[0] * o->kernel[1]; tap++) {
                    const int64_t r = tap / o->kernel[1], s = tap % o->kernel[1];
                    const int64_t i =
                        xi / m->w * o->stride[0] + r * o->dilation[0] - m->before[0];
                    const int64_t j =
                        xi % m->w * o->stride[1] + s * o->dilation[1] - m->before[1];
                    const int64_t k = c / channels * filters + f;
                    if (i >= 0 && i < m->p && j >= 0 && j < m->q)
                        visit(context, c * m->h * m->w + xi,
                              (f * o->kernel[0] * o->kernel[1] + tap) * m->c + c,
                              (k * m->p + i) * m->q + j);
                }
}

struct arrays {
    const double *x, *w;
    double *y, *dx, *dw; /* y: or dz */
};

static void add_forward(void *context, int64_t x, int64_t w, int64_t y)
{
    const struct arrays *a = context;
    a->y[y] += a->x[x] * a->w[w];
}

static void add_backward(void *context, int64_t x, int64_t w, int64_t y)
{
    const struct arrays *a = context;
    a->dx[x] += a->y[y] * a->w[w];
    a->dw[w] += a->y[y] * a->x[x];
}

static void forward(const struct op_problem *p, const double *const x[],
                    const double *const w[], double *y)
{
    const struct problem m = measure(p);
    const int64_t size = m.k * m.p * m.q;
    for (int64_t n = 0; n < p->samples; n++) {
        struct arrays a = {.x = x[0] + n * m.c * m.h * m.w, .w = w[0], .y = y + n * size};
        for (int64_t i = 0; i < size; i++)
            a.y[i] = m.o->bias ? w[1][i / (m.p * m.q)] : 0;
        spread(&m, add_forward, &a);
        for (int64_t i = 0; i < size; i++)
            if (m.o->activation && a.y[i] < 0)
                a.y[i] = 0;
    }
}

static void backward(const struct op_problem *p, const double *const x[],
                     const double *const w[], const double *dy, double *const dx[],
                     double *const dw[])
{
    const struct problem m = measure(p);
    const int64_t size = m.k * m.p * m.q, count = size * p->samples;
    double *dz = calloc((size_t)count + 1, sizeof *dz);
    if (!dz)
        abort();
    forward(p, x, w, dz);
    for (int64_t i = 0; i < count; i++) {
        dz[i] = m.o->activation && dz[i] <= 0 ? 0 : dy[i];
        if (m.o->bias)
            dw[1][i % size / (m.p * m.q)] += dz[i];
    }
    for (int64_t n = 0; n < p->samples; n++) {
        const int64_t at = n * m.c * m.h * m.w;
        struct arrays a = {
            .x = x[0] + at, .w = w[0], .y = dz + n * size, .dx = dx[0] + at, .dw = dw[0]};
        spread(&m, add_backward, &a);
    }
    free(dz);
}

static const struct op_oracle oracle = {forward, backward, NULL};

#define CASE(options_, c, h, w, ...)                                                           \
    {                                                                                          \
        .op = "conv2d_transpose", .options = options_, .x = {OP_SHAPE(c, h, w)}, __VA_ARGS__   \
    }

/* clang-format off */
static const struct op_case cases[] = {
    CASE("filters=4 kernel=3 stride=2 padding=same", 5, 4, 6, .samples = 37,
         .y = OP_SHAPE(4, 8, 12), .thorough = true, .sizes = true),
    CASE("filters=4 kernel=3 activation=relu", 3, 4, 5, .samples = 35, .shards = 2,
         .y = OP_SHAPE(4, 6, 7), .thorough = true, .gated = true, .integers = true),
    CASE("filters=6 kernel=4 stride=2 padding=1 bias=false", 8, 5, 3, .samples = 20,
         .y = OP_SHAPE(6, 10, 6), .integers = true, .half = true),
    CASE("filters=5 kernel=3 stride=2 padding=1 output_padding=1 activation=relu", 4, 5, 4,
         .samples = 33, .shards = 2, .y = OP_SHAPE(5, 10, 8), .integers = true),
    CASE("filters=3 kernel=2,5 stride=3,2 padding=0,1,2,0 output_padding=1,0 bias=false "
         "activation=relu", 2, 4, 5, .samples = 17, .y = OP_SHAPE(3, 11, 11), .integers = true),
    /* taps that are further apart than the outputs of two inputs, and the other way round */
    CASE("filters=3 kernel=3 dilation=3,2 padding=2", 2, 5, 6, .samples = 17,
         .y = OP_SHAPE(3, 7, 6), .integers = true),
    CASE("filters=3 kernel=2 stride=4", 2, 3, 4, .samples = 17, .y = OP_SHAPE(3, 12, 16),
         .integers = true),
    CASE("filters=3 kernel=1 stride=3 padding=same", 2, 3, 4, .samples = 17,
         .y = OP_SHAPE(3, 9, 12), .integers = true),
    CASE("filters=6 kernel=3 stride=2 padding=same groups=2", 4, 5, 4, .samples = 33,
         .integers = true),
    CASE("filters=8 kernel=3 stride=2 padding=same groups=8", 8, 6, 5, .samples = 33,
         .integers = true, .half = true),
    CASE("filters=40 kernel=2 stride=2", 33, 3, 4, .samples = 33, .shards = 2,
         .integers = true, .half = true),
    CASE("filters=70 kernel=1 activation=relu", 18, 5, 6, .samples = 17, .integers = true),
    CASE("filters=20 kernel=3 padding=1 activation=relu", 24, 9, 9, .samples = 33,
         .algorithm = "winograd4", .tolerance = 800),
    CASE("filters=20 kernel=3 padding=1", 24, 9, 9, .samples = 33, .integers = true,
         .algorithm = "winograd2"),
    CASE("filters=20 kernel=3 activation=relu", 24, 9, 9, .samples = 17, .inference = true),
    CASE("filters=9 kernel=3 activation=relu", 4, 5, 6, .samples = 17, .frozen = true),
};

#define REFUSED(options_, c, h, w, status_, said_)                                             \
    {.op = "conv2d_transpose", .options = options_, .x = {OP_SHAPE(c, h, w)},                  \
     .status = status_, .said = said_}

static const struct op_refusal refusals[] = {
    REFUSED("", 3, 8, 8, LK_E_ARGUMENT, "'filters'"),
    {.op = "conv2d_transpose", .options = "filters=4", .x = {OP_SHAPE(64)},
     .status = LK_E_SHAPE, .said = "not [64]"},
    {.op = "conv2d_transpose", .options = "filters=4", .x = {OP_SHAPE(3, 8, 8)},
     .labels = {true}, .status = LK_E_SHAPE, .said = "not labels"},
    REFUSED("filters=4 groups=2", 3, 8, 8, LK_E_SHAPE, "do not divide into 2"),
    REFUSED("filters=5 groups=2", 4, 8, 8, LK_E_ARGUMENT, "5 filters do not divide into 2"),
    REFUSED("filters=4 padding=some", 3, 8, 8, LK_E_ARGUMENT, "padding 'some'"),
    REFUSED("filters=4 padding=5", 3, 4, 9, LK_E_SHAPE, "leaves no output of height"),
    REFUSED("filters=4 padding=0 output_padding=2", 3, 4, 9, LK_E_ARGUMENT,
            "the last 2, not fewer than stride 1"),
    REFUSED("filters=4 kernel=2 stride=4 output_padding=2", 3, 4, 9, LK_E_ARGUMENT,
            "the last 4, not fewer than stride 4"),
};
/* clang-format on */

static const struct op_suite suite = OP_SUITE(&oracle, cases, refusals);

int main(void)
{
    return op_test(&suite);
}

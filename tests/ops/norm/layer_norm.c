/* Layer normalization against sums in double over the numbers that are normalized together. */
#include "ops/norm/norm.h"

#include "../driver.h"
#include <assert.h>
#include <math.h>
#include <stdlib.h>

enum { CHANNELS, ALL };

/* A sample: `sets` of `count` numbers, `apart` from each other; the first ones of neighbouring
 * sets are `next` apart. */
struct sets {
    int64_t sets, count, apart, next;
};

static struct sets divide(const struct op_problem *p)
{
    const struct lk_norm_options *o = p->options;
    const struct lk_shape *x = &p->shapes->x[0];
    const int64_t all = lk_shape_count(x), channels = x->dim[x->rank == 2 ? 1 : 0];
    if (o->axis == ALL)
        return (struct sets){1, all, 1, all};
    if (x->rank == 2)
        return (struct sets){x->dim[0], channels, 1, channels};
    return (struct sets){all / channels, channels, all / channels, 1};
}

struct statistics {
    double mean, root;
};

static struct statistics measure(const struct op_problem *p, const struct sets *s,
                                 const double *x)
{
    struct statistics found = {0};
    double variance = 0;
    for (int64_t i = 0; i < s->count; i++)
        found.mean += x[i * s->apart] / (double)s->count;
    for (int64_t i = 0; i < s->count; i++)
        variance += pow(x[i * s->apart] - found.mean, 2) / (double)s->count;
    found.root = 1 / sqrt(variance + ((const struct lk_norm_options *)p->options)->epsilon);
    return found;
}

static const double *beta_of(const struct lk_norm_options *o, const double *const w[])
{
    return o->center ? w[o->scale] : NULL;
}

static void forward(const struct op_problem *p, const double *const x[],
                    const double *const w[], double *y)
{
    const struct lk_norm_options *o = p->options;
    const struct sets s = divide(p);
    const double *beta = beta_of(o, w);
    for (int64_t n = 0; n < p->samples * s.sets; n++) {
        const int64_t first = n / s.sets * s.sets * s.count + n % s.sets * s.next;
        const struct statistics of = measure(p, &s, x[0] + first);
        for (int64_t i = 0; i < s.count; i++) {
            const int64_t k = first + i * s.apart;
            y[k] =
                (o->scale ? w[0][i] : 1) * (x[0][k] - of.mean) * of.root + (beta ? beta[i] : 0);
            if (o->activation && y[k] < 0)
                y[k] = 0;
        }
    }
}

static void backward(const struct op_problem *p, const double *const x[],
                     const double *const w[], const double *dy, double *const dx[],
                     double *const dw[])
{
    const struct lk_norm_options *o = p->options;
    const struct sets s = divide(p);
    double *y = calloc((size_t)(p->samples * s.sets * s.count + 1), sizeof *y);
    assert(y);
    forward(p, x, w, y);
    for (int64_t n = 0; n < p->samples * s.sets; n++) {
        const int64_t first = n / s.sets * s.sets * s.count + n % s.sets * s.next;
        const struct statistics of = measure(p, &s, x[0] + first);
        double plain = 0, product = 0;
        for (int pass = 0; pass < 2; pass++)
            for (int64_t i = 0; i < s.count; i++) {
                const int64_t k = first + i * s.apart;
                const double d = o->activation && y[k] <= 0 ? 0 : dy[k];
                const double g = (o->scale ? w[0][i] : 1) * d;
                const double u = (x[0][k] - of.mean) * of.root;
                if (pass == 0) {
                    plain += g / (double)s.count;
                    product += g * u / (double)s.count;
                    if (o->scale)
                        dw[0][i] += d * u;
                    if (o->center)
                        dw[o->scale][i] += d;
                } else {
                    dx[0][k] = of.root * (g - plain - u * product);
                }
            }
    }
    free(y);
}

static const struct op_oracle oracle = {forward, backward, NULL};

/* clang-format off */
#define CASE(options_, shape_, ...)                                                            \
    {.op = "layer_norm", .options = options_, .x = {shape_}, __VA_ARGS__}
#define ROW(k) OP_SHAPE(k)
#define SEQUENCE(t, c) OP_SHAPE(t, c)
#define IMAGE(c, h, w) OP_SHAPE(c, h, w)

static const struct op_case cases[] = {
    CASE("", IMAGE(6, 4, 5), .samples = 37, .thorough = true, .sizes = true),
    CASE("epsilon=1e-5 activation=relu", IMAGE(5, 2, 7), .samples = 33, .shards = 2,
         .thorough = true, .gated = true),
    /* differences of so many numbers would meet the place where a relu bends */
    CASE("activation=relu", IMAGE(70, 3, 7), .samples = 33, .shards = 2, .gated = true,
         .only = OP_CPU | OP_GPU),
    CASE("", ROW(70), .samples = 40, .shards = 2, .thorough = true, .sizes = true),
    CASE("scale=false", ROW(9), .samples = 17),
    CASE("center=false", SEQUENCE(5, 19), .samples = 37, .shards = 2, .half = true),
    CASE("center=false scale=false", IMAGE(5, 3, 3), .samples = 17),
    CASE("activation=relu", SEQUENCE(40, 6), .samples = 100, .shards = 2, .gated = true),
    CASE("axis=all", IMAGE(3, 5, 9), .samples = 40, .shards = 2, .half = true),
    CASE("axis=all activation=relu", SEQUENCE(4, 7), .samples = 17, .gated = true),
    /* gradients in parts */
    CASE("", IMAGE(3, 20, 19), .samples = 40, .shards = 2),
    CASE("", IMAGE(5, 4, 6), .samples = 20, .inference = true),
    CASE("", IMAGE(5, 4, 6), .samples = 20, .frozen = true),
    /* a mean far from zero beside the deviation; one channel, whose deviation is 0 */
    CASE("", IMAGE(40, 3, 3), .samples = 17, .low = 100, .high = 101, .tolerance = 16384),
    CASE("", ROW(1), .samples = 17),
};

static const struct op_refusal refusals[] = {
    {.op = "layer_norm", .x = {ROW(1)}, .labels = {true}, .status = LK_E_SHAPE,
     .said = "not labels"},
    {.op = "layer_norm", .options = "axis=rows", .x = {ROW(5)}, .status = LK_E_ARGUMENT,
     .said = "axis"},
    {.op = "layer_norm", .options = "epsilon=0", .x = {ROW(5)}, .status = LK_E_ARGUMENT,
     .said = "epsilon"},
};
/* clang-format on */

int main(void)
{
    const struct op_suite suite = OP_SUITE(&oracle, cases, refusals);
    return op_test(&suite);
}

/* Group normalization against sums in double over the channels of a group. */
#include "ops/norm/norm.h"

#include "../driver.h"
#include <assert.h>
#include <math.h>
#include <stdlib.h>

/* Numbers of a group, which lie side by side, and pixels of a channel. */
struct sizes {
    int64_t set, pixels, count;
};

static struct sizes measure(const struct op_problem *p)
{
    const struct lk_norm_options *o = p->options;
    const int64_t count = lk_shape_count(&p->shapes->x[0]);
    return (struct sizes){count / o->groups, count / p->shapes->x[0].dim[0], count};
}

/* The normalized numbers of a group in place of x; returns 1 / deviation. */
static double normalize(const struct op_problem *p, int64_t count, const double *x, double *u)
{
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < count; i++)
        mean += x[i] / (double)count;
    for (int64_t i = 0; i < count; i++)
        variance += pow(x[i] - mean, 2) / (double)count;
    const double root =
        1 / sqrt(variance + ((const struct lk_norm_options *)p->options)->epsilon);
    for (int64_t i = 0; i < count; i++)
        u[i] = (x[i] - mean) * root;
    return root;
}

static void forward(const struct op_problem *p, const double *const x[],
                    const double *const w[], double *y)
{
    const struct lk_norm_options *o = p->options;
    const struct sizes s = measure(p);
    for (int64_t at = 0; at < p->samples * s.count; at += s.set)
        normalize(p, s.set, x[0] + at, y + at);
    for (int64_t i = 0; i < p->samples * s.count; i++) {
        const int64_t c = i % s.count / s.pixels;
        y[i] = (o->scale ? w[0][c] : 1) * y[i] + (o->center ? w[o->scale][c] : 0);
        if (o->activation && y[i] < 0)
            y[i] = 0;
    }
}

static void backward(const struct op_problem *p, const double *const x[],
                     const double *const w[], const double *dy, double *const dx[],
                     double *const dw[])
{
    const struct lk_norm_options *o = p->options;
    const struct sizes s = measure(p);
    double *y = calloc((size_t)(p->samples * s.count + s.set + 1), sizeof *y);
    assert(y);
    double *u = y + p->samples * s.count;
    forward(p, x, w, y);
    for (int64_t at = 0; at < p->samples * s.count; at += s.set) {
        const double root = normalize(p, s.set, x[0] + at, u);
        double plain = 0, product = 0;
        for (int64_t i = 0; i < s.set; i++) {
            const int64_t c = (at + i) % s.count / s.pixels;
            const double d = o->activation && y[at + i] <= 0 ? 0 : dy[at + i];
            const double g = (o->scale ? w[0][c] : 1) * d;
            plain += g / (double)s.set;
            product += g * u[i] / (double)s.set;
            dx[0][at + i] = g;
            if (o->scale)
                dw[0][c] += d * u[i];
            if (o->center)
                dw[o->scale][c] += d;
        }
        for (int64_t i = 0; i < s.set; i++)
            dx[0][at + i] = root * (dx[0][at + i] - plain - u[i] * product);
    }
    free(y);
}

static const struct op_oracle oracle = {forward, backward, NULL};

/* clang-format off */
#define CASE(options_, shape_, ...)                                                            \
    {.op = "group_norm", .options = options_, .x = {shape_}, __VA_ARGS__}
#define ROW(k) OP_SHAPE(k)
#define IMAGE(c, h, w) OP_SHAPE(c, h, w)

static const struct op_case cases[] = {
    CASE("groups=2", IMAGE(6, 4, 5), .samples = 37, .thorough = true, .sizes = true),
    CASE("groups=3 epsilon=1e-5 activation=relu", IMAGE(9, 9, 8), .samples = 33, .shards = 2,
         .thorough = true, .gated = true),
    CASE("", IMAGE(64, 3, 3), .samples = 40, .shards = 2, .half = true),
    /* instance normalization; layer normalization with a gamma a channel */
    CASE("groups=5 scale=false", IMAGE(5, 7, 6), .samples = 17),
    CASE("groups=1 center=false", IMAGE(5, 7, 6), .samples = 17),
    CASE("groups=4 center=false scale=false activation=relu", ROW(20), .samples = 37,
         .shards = 2),
    CASE("groups=2", ROW(150), .samples = 40),
    /* too large for one work-group, in parts; differences of so many numbers would meet the
     * place where a relu bends */
    CASE("groups=1 activation=relu", IMAGE(3, 53, 53), .samples = 20, .shards = 2,
         .gated = true, .only = OP_CPU | OP_GPU),
    CASE("groups=2", IMAGE(2, 100, 90), .samples = 3, .half = true),
    CASE("groups=1", IMAGE(2, 80, 70), .samples = 17, .frozen = true),
    CASE("groups=2", IMAGE(6, 4, 6), .samples = 20, .inference = true),
    CASE("groups=2", IMAGE(6, 4, 6), .samples = 20, .frozen = true),
    /* a mean far from zero beside the deviation */
    CASE("groups=2", IMAGE(4, 8, 8), .samples = 32, .low = 100, .high = 101,
         .tolerance = 16384),
};

static const struct op_refusal refusals[] = {
    {.op = "group_norm", .x = {ROW(1)}, .labels = {true}, .status = LK_E_SHAPE,
     .said = "not labels"},
    {.op = "group_norm", .options = "groups=2", .x = {OP_SHAPE(5, 4)}, .status = LK_E_SHAPE,
     .said = "[h, w, c]"},
    {.op = "group_norm", .options = "groups=3", .x = {IMAGE(5, 4, 4)}, .status = LK_E_SHAPE,
     .said = "5 channels of [4, 4, 5] do not divide into 3 groups"},
    {.op = "group_norm", .options = "groups=0", .x = {ROW(5)}, .status = LK_E_ARGUMENT,
     .said = "groups"},
};
/* clang-format on */

int main(void)
{
    const struct op_suite suite = OP_SUITE(&oracle, cases, refusals);
    return op_test(&suite);
}

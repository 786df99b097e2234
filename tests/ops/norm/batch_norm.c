/* Batch normalization against sums in double over the samples of a shard. */
#include "driver.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

/* As the options struct of src/ops/norm/batch_norm.c. */
struct options {
    double momentum, epsilon;
    int activation;
    bool center, scale;
};

enum { GAMMA, BETA, MEAN, VARIANCE };

/* One channel of a shard. */
struct channel {
    double mean, variance, root, n;
    double pixels;
};

static int64_t pixels_of(const struct op_problem *p)
{
    return lk_shape_count(&p->shapes->x[0]) / p->shapes->x[0].dim[0];
}

static int64_t at(const struct op_problem *p, int64_t sample, int64_t c, int64_t pixel)
{
    return (sample * p->shapes->x[0].dim[0] + c) * pixels_of(p) + pixel;
}

static struct channel measure(const struct op_problem *p, const double *x,
                              const double *const w[], int64_t c)
{
    const struct options *o = p->options;
    const int64_t pixels = pixels_of(p);
    struct channel found = {.mean = w[MEAN][c], .variance = w[VARIANCE][c]};
    found.n = fmax((double)(p->samples * pixels), 1);
    if (p->training && !p->is_frozen) {
        found.mean = found.variance = 0;
        for (int64_t i = 0; i < p->samples * pixels; i++)
            found.mean += x[at(p, i / pixels, c, i % pixels)] / found.n;
        for (int64_t i = 0; i < p->samples * pixels; i++)
            found.variance +=
                pow(x[at(p, i / pixels, c, i % pixels)] - found.mean, 2) / found.n;
    }
    found.root = 1 / sqrt(found.variance + o->epsilon);
    return found;
}

static void forward(const struct op_problem *p, const double *const x[],
                    const double *const w[], double *y)
{
    const struct options *o = p->options;
    for (int64_t c = 0; c < p->shapes->x[0].dim[0]; c++) {
        const struct channel of = measure(p, x[0], w, c);
        for (int64_t i = 0; i < p->samples * pixels_of(p); i++) {
            const int64_t k = at(p, i / pixels_of(p), c, i % pixels_of(p));
            y[k] = w[GAMMA][c] * (x[0][k] - of.mean) * of.root + w[BETA][c];
            if (o->activation && y[k] < 0)
                y[k] = 0;
        }
    }
}

static void backward(const struct op_problem *p, const double *const x[],
                     const double *const w[], const double *dy, double *const dx[],
                     double *const dw[])
{
    const struct options *o = p->options;
    const int64_t count = p->samples * pixels_of(p);
    double *y = calloc((size_t)(p->samples * lk_shape_count(&p->shapes->x[0]) + 1), sizeof *y);
    assert(y);
    forward(p, x, w, y);
    for (int64_t c = 0; c < p->shapes->x[0].dim[0]; c++) {
        const struct channel of = measure(p, x[0], w, c);
        for (int pass = 0; pass < 2; pass++)
            for (int64_t i = 0; i < count; i++) {
                const int64_t k = at(p, i / pixels_of(p), c, i % pixels_of(p));
                const double d = o->activation && y[k] <= 0 ? 0 : dy[k];
                const double u = (x[0][k] - of.mean) * of.root;
                if (pass == 0) {
                    dw[BETA][c] += d;
                    dw[GAMMA][c] += d * u;
                } else {
                    const double mean = (dw[BETA][c] + u * dw[GAMMA][c]) / of.n;
                    dx[0][k] = w[GAMMA][c] * of.root * (d - (p->is_frozen ? 0 : mean));
                }
            }
        const double times = (1 - o->momentum) * (double)p->samples;
        const double unbiased = of.variance * of.n / fmax(of.n - 1, 1);
        dw[MEAN][c] = (w[MEAN][c] - of.mean) * times;
        dw[VARIANCE][c] = (w[VARIANCE][c] - unbiased) * times;
        dw[GAMMA][c] *= o->scale;
        dw[BETA][c] *= o->center;
    }
    free(y);
}

/* Variances are not negative, and y is far from where relu bends. */
static void arrange(const struct lk_op_shapes *shapes, int64_t samples, double *const x[],
                    double *const w[])
{
    (void)samples, (void)x;
    for (int64_t c = 0; c < shapes->x[0].dim[0]; c++) {
        w[VARIANCE][c] = (float)(0.25 + fabs(w[VARIANCE][c]));
        w[GAMMA][c] = (float)(w[GAMMA][c] + (w[GAMMA][c] < 0 ? -0.5 : 0.5));
    }
}

static const struct op_oracle oracle = {forward, backward, arrange};

static const struct op_case cases[] = {
    {.op = "batch_norm",
     .x = {OP_SHAPE(5, 4, 6)},
     .samples = 37,
     .y = OP_SHAPE(5, 4, 6),
     .thorough = true,
     .sizes = true},
    {.op = "batch_norm",
     .options = "momentum=0.9 epsilon=1e-5",
     .x = {OP_SHAPE(40, 3, 3)},
     .samples = 16,
     .half = true},
    {.op = "batch_norm", .x = {OP_SHAPE(70)}, .samples = 200, .shards = 4, .thorough = true},
    /* plane tiles: planes that do not fill their last vector, shards of which one is short */
    {"batch_norm", "activation=relu", .x = {OP_SHAPE(5, 7, 9)}, .samples = 3, .batch = 4,
     .shards = 2, .planes = true, .thorough = true},
    {"batch_norm", "", .x = {OP_SHAPE(3, 70, 61)}, .samples = 8, .shards = 2, .planes = true},
    {"batch_norm", "", .x = {OP_SHAPE(2, 4, 8)}, .samples = 2, .planes = true},
    {.op = "batch_norm", .x = {OP_SHAPE(1, 33, 29)}, .samples = 20, .shards = 2},
    {.op = "batch_norm", .x = {OP_SHAPE(3, 9, 8)}, .samples = 33, .batch = 64, .shards = 4},
    {.op = "batch_norm", .x = {OP_SHAPE(3, 2, 2)}, .samples = 2, .batch = 64, .shards = 4},
    {.op = "batch_norm", .x = {OP_SHAPE(3, 1, 1)}, .samples = 1},
    {.op = "batch_norm", .options = "scale=false", .x = {OP_SHAPE(5, 4, 6)}, .samples = 37},
    {.op = "batch_norm",
     .options = "activation=relu center=false",
     .x = {OP_SHAPE(1, 33, 29)},
     .samples = 20,
     .shards = 2},
    {.op = "batch_norm",
     .options = "activation=relu",
     .x = {OP_SHAPE(5, 4, 6)},
     .samples = 37,
     .thorough = true,
     .gated = true},
    {.op = "batch_norm",
     .options = "activation=relu",
     .x = {OP_SHAPE(20, 5, 5)},
     .samples = 64,
     .shards = 2,
     .gated = true},
    {.op = "batch_norm", .x = {OP_SHAPE(5, 4, 6)}, .samples = 37, .inference = true},
    {.op = "batch_norm",
     .options = "activation=relu",
     .x = {OP_SHAPE(70)},
     .samples = 9,
     .inference = true},
    {.op = "batch_norm",
     .options = "activation=relu",
     .x = {OP_SHAPE(5, 4, 6)},
     .samples = 37,
     .shards = 2,
     .gated = true,
     .frozen = true},
    {.op = "batch_norm", .x = {OP_SHAPE(70)}, .samples = 20, .frozen = true},
    /* A mean far from zero beside the deviation. */
    {.op = "batch_norm",
     .x = {OP_SHAPE(4, 8, 8)},
     .samples = 32,
     .low = 100,
     .high = 101,
     .tolerance = 16384},
};

static const struct op_refusal refusals[] = {
    {.op = "batch_norm", .x = {OP_SHAPE(5, 4)}, .status = LK_E_SHAPE, .said = "[h, w, c]"},
    {.op = "batch_norm",
     .x = {OP_SHAPE(1)},
     .labels = {true},
     .status = LK_E_SHAPE,
     .said = "not labels"},
    {.op = "batch_norm",
     .options = "momentum=1.5",
     .x = {OP_SHAPE(5)},
     .status = LK_E_ARGUMENT,
     .said = "momentum"},
    {.op = "batch_norm",
     .options = "epsilon=0",
     .x = {OP_SHAPE(5)},
     .status = LK_E_ARGUMENT,
     .said = "epsilon"},
};

int main(void)
{
    const struct op_suite suite = OP_SUITE(&oracle, cases, refusals);
    return op_test(&suite);
}

/* Up-sampling against the value at each pixel's centre, taken from the whole image. */
#include "driver.h"

#include <math.h>

/* As the options struct of src/ops/arrange/upsample.c. */
struct options {
    int64_t size[2];
    int interpolation;
};

/* How much pixel `from` of `count` counts for pixel `to` of an axis enlarged by `size`. */
static double weigh(int interpolation, int64_t from, int64_t count, int64_t to, int64_t size)
{
    if (interpolation == 0)
        return to / size == from;
    const double place = ((double)to + 0.5) / (double)size - 0.5;
    const double inside = fmin(fmax(place, 0), (double)count - 1);
    return fmax(0, 1 - fabs(inside - (double)from));
}

/* Adds what each pixel of x counts for each of y: into y, or of dy into dx. */
static void apply(const struct op_problem *p, const double *x, double *y, const double *dy,
                  double *dx)
{
    const struct options *o = p->options;
    const int64_t *d = p->shapes->x[0].dim, h = d[1], w = d[2];
    const int64_t out_w = w * o->size[1], out = h * o->size[0] * out_w;
    for (int64_t at = 0; at < p->samples * d[0] * h * w; at++)
        for (int64_t i = 0; i < out; i++) {
            const int64_t plane = at / (h * w), r = at / w % h, s = at % w;
            const double weight = weigh(o->interpolation, r, h, i / out_w, o->size[0]) *
                                  weigh(o->interpolation, s, w, i % out_w, o->size[1]);
            if (y)
                y[plane * out + i] += weight * x[at];
            else
                dx[at] += weight * dy[plane * out + i];
        }
}

static void forward(const struct op_problem *p, const double *const x[],
                    const double *const w[], double *y)
{
    (void)w;
    apply(p, x[0], y, NULL, NULL);
}

static void backward(const struct op_problem *p, const double *const x[],
                     const double *const w[], const double *dy, double *const dx[],
                     double *const dw[])
{
    (void)x, (void)w, (void)dw;
    apply(p, NULL, NULL, dy, dx[0]);
}

static const struct op_oracle oracle = {forward, backward, NULL};

static const struct op_case cases[] = {
    {.op = "upsample",
     .x = {OP_SHAPE(3, 3, 4)},
     .y = OP_SHAPE(3, 6, 8),
     .samples = 18,
     .thorough = true,
     .sizes = true},
    {.op = "upsample",
     .options = "size=3,1",
     .x = {OP_SHAPE(2, 2, 5)},
     .y = OP_SHAPE(2, 6, 5),
     .samples = 19,
     .shards = 2,
     .integers = true},
    {.op = "upsample",
     .options = "interpolation=bilinear",
     .x = {OP_SHAPE(2, 4, 5)},
     .y = OP_SHAPE(2, 8, 10),
     .samples = 18,
     .thorough = true,
     .sizes = true},
    {.op = "upsample",
     .options = "size=3,2 interpolation=bilinear",
     .x = {OP_SHAPE(2, 3, 4)},
     .y = OP_SHAPE(2, 9, 8),
     .samples = 19,
     .shards = 2},
    {.op = "upsample",
     .options = "size=5,4 interpolation=bilinear",
     .x = {OP_SHAPE(1, 1, 2)},
     .y = OP_SHAPE(1, 5, 8),
     .samples = 9},
    {.op = "upsample",
     .options = "size=1,7 interpolation=bilinear",
     .x = {OP_SHAPE(1, 3, 1)},
     .y = OP_SHAPE(1, 3, 7),
     .samples = 9},
    {.op = "upsample",
     .options = "size=16 interpolation=bilinear",
     .x = {OP_SHAPE(1, 3, 3)},
     .y = OP_SHAPE(1, 48, 48),
     .samples = 3},
    {.op = "upsample", /* written past the caches */
     .options = "interpolation=bilinear",
     .x = {OP_SHAPE(32, 16, 16)},
     .samples = 100,
     .only = OP_CPU},
};

static const struct op_refusal refusals[] = {
    {.op = "upsample",
     .options = "size=65",
     .x = {OP_SHAPE(3, 4, 4)},
     .status = LK_E_ARGUMENT,
     .said = "not in 1..64"},
    {.op = "upsample",
     .options = "interpolation=bicubic",
     .x = {OP_SHAPE(3, 4, 4)},
     .status = LK_E_ARGUMENT,
     .said = "'bicubic' is none of nearest, bilinear"},
    {.op = "upsample",
     .x = {OP_SHAPE(3, 4)},
     .status = LK_E_SHAPE,
     .said = "upsample: an image [h, w, c] expected, found [3, 4]"},
};

int main(void)
{
    static const struct op_suite suite = OP_SUITE(&oracle, cases, refusals);
    return op_test(&suite);
}

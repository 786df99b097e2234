/* Rotary positions as products of complex numbers. */
#include "../driver.h"
#include <complex.h>
#include <math.h>

struct options {
    int64_t heads;
    double base;
    bool packed;
};

static void rotate(const struct op_problem *p, const double *x, const double *length,
                   double turn, double *y)
{
    const struct options *o = p->options;
    const int64_t steps = p->shapes->y.dim[0], channels = p->shapes->y.dim[1];
    const int64_t dim = channels / (o->packed ? 3 : 1) / o->heads;
    const int64_t turned = o->packed ? 2 * o->heads : o->heads;
    for (int64_t row = 0; row < p->samples * steps; row++) {
        const double t = (double)(row % steps);
        if (length && t >= length[row / steps])
            continue;
        for (int64_t c = 0; c < channels; c++)
            y[row * channels + c] = x[row * channels + c];
        for (int64_t i = 0; i < turned * (dim / 2); i++) {
            const int64_t at = row * channels + i / (dim / 2) * dim + i % (dim / 2);
            const double angle =
                turn * t * pow(o->base, -2.0 * (double)(i % (dim / 2)) / (double)dim);
            const double complex z = (x[at] + I * x[at + dim / 2]) * cexp(I * angle);
            y[at] = creal(z);
            y[at + dim / 2] = cimag(z);
        }
    }
}

static const double *length_of(const struct op_problem *p, const double *const x[])
{
    return p->shapes->inputs == 2 ? x[1] : NULL;
}

static void forward(const struct op_problem *p, const double *const x[],
                    const double *const w[], double *y)
{
    (void)w;
    rotate(p, x[0], length_of(p, x), 1, y);
}

static void backward(const struct op_problem *p, const double *const x[],
                     const double *const w[], const double *dy, double *const dx[],
                     double *const dw[])
{
    (void)w, (void)dw;
    rotate(p, dy, length_of(p, x), -1, dx[0]);
}

static const struct op_oracle oracle = {forward, backward, NULL};

/* clang-format off */
#define S(t, c) OP_SHAPE(t, c)

static const struct op_case cases[] = {
    {.op = "rotary", .options = "heads=2", .x = {S(6, 12)}, .samples = 37, .shards = 2,
     .thorough = true, .sizes = true},
    {.op = "rotary", .options = "heads=2 packed=true base=100", .inputs = 2,
     .x = {S(5, 24), {0}}, .classes = {0, 6}, .samples = 37, .shards = 2, .thorough = true},
    {.op = "rotary", .x = {S(7, 2)}, .samples = 9, .half = true},
};

static const struct op_refusal refusals[] = {
    {.op = "rotary", .x = {OP_SHAPE(4)}, .status = LK_E_SHAPE, .said = "sequence"},
    {.op = "rotary", .options = "heads=2", .x = {S(4, 6)}, .status = LK_E_SHAPE,
     .said = "heads of pairs"},
    {.op = "rotary", .options = "packed=true", .x = {S(4, 8)}, .status = LK_E_SHAPE,
     .said = "queries, keys and values"},
};
/* clang-format on */

int main(void)
{
    const struct op_suite suite = OP_SUITE(&oracle, cases, refusals);
    return op_test(&suite);
}

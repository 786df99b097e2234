/* Dense layers: vectors and sequences, with and without bias and relu. */
#include "driver.h"
#include <stdlib.h>

/* The options as the operation reads them. */
struct options {
    int64_t units;
    bool bias;
    int activation;
};

/* Rows of x: samples, times the steps of a sequence. */
static void measure(const struct op_problem *p, int64_t *rows, int64_t *channels,
                    int64_t *units)
{
    const struct lk_shape *x = &p->shapes->x[0];
    *rows = p->samples * (x->rank == 2 ? x->dim[0] : 1);
    *channels = x->dim[x->rank - 1];
    *units = p->shapes->y.dim[x->rank - 1];
}

static void forward(const struct op_problem *p, const double *const x[],
                    const double *const w[], double *y)
{
    const struct options *o = p->options;
    int64_t rows, channels, units;
    measure(p, &rows, &channels, &units);
    for (int64_t n = 0; n < rows; n++)
        for (int64_t k = 0; k < units; k++) {
            double sum = o->bias ? w[1][k] : 0;
            for (int64_t c = 0; c < channels; c++)
                sum += x[0][n * channels + c] * w[0][c * units + k];
            y[n * units + k] = o->activation && sum < 0 ? 0 : sum;
        }
}

static void backward_one(const double *x, const double *w, double dz, int64_t channels,
                         int64_t units, double *dx, double *dw)
{
    for (int64_t c = 0; c < channels; c++) {
        if (dx)
            dx[c] += w[c * units] * dz;
        if (dw)
            dw[c * units] += x[c] * dz;
    }
}

static void backward(const struct op_problem *p, const double *const x[],
                     const double *const w[], const double *dy, double *const dx[],
                     double *const dw[])
{
    const struct options *o = p->options;
    int64_t rows, channels, units;
    measure(p, &rows, &channels, &units);
    double *y = calloc((size_t)(rows * units), sizeof *y);
    forward(p, x, w, y);
    for (int64_t n = 0; n < rows; n++)
        for (int64_t k = 0; k < units; k++) {
            const double dz = o->activation && y[n * units + k] <= 0 ? 0 : dy[n * units + k];
            backward_one(x[0] + n * channels, w[0] + k, dz, channels, units,
                         dx[0] ? dx[0] + n * channels : NULL, dw[0] ? dw[0] + k : NULL);
            if (o->bias && dw[1])
                dw[1][k] += dz;
        }
    free(y);
}

static const struct op_oracle oracle = {.forward = forward, .backward = backward};

static const struct op_case cases[] = {
    {"dense", "units=5", .x = {OP_SHAPE(7)}, .samples = 33, .shards = 2, .sizes = true,
     .thorough = true},
    {"dense", "units=1 bias=false", .x = {OP_SHAPE(1)}, .samples = 3, .sizes = true,
     .thorough = true},
    {"dense", "units=10", .x = {OP_SHAPE(64)}, .samples = 50, .thorough = true},
    {"dense", "units=70", .x = {OP_SHAPE(300)}, .samples = 80, .shards = 4, .thorough = true},
    {"dense", "units=64", .x = {OP_SHAPE(576)}, .samples = 64},
    {"dense", "units=129 bias=false", .x = {OP_SHAPE(127)}, .samples = 17, .batch = 64,
     .shards = 2, .thorough = true},
    {"dense", "units=6", .x = {OP_SHAPE(5, 9)}, .samples = 20, .shards = 2, .thorough = true},
    {"dense", "units=12 activation=relu", .x = {OP_SHAPE(8)}, .samples = 40, .shards = 2,
     .integers = true, .thorough = true, .sizes = true},
    {"dense", "units=97 activation=relu", .x = {OP_SHAPE(130)}, .samples = 70, .shards = 2,
     .integers = true, .thorough = true},
    {"dense", "units=33 activation=relu bias=false", .x = {OP_SHAPE(3, 20)}, .samples = 40,
     .integers = true, .thorough = true},
    {"dense", "units=128", .x = {OP_SHAPE(257)}, .samples = 100, .shards = 4, .integers = true,
     .thorough = true},
    {"dense", "units=40 activation=relu", .x = {OP_SHAPE(200)}, .samples = 100,
     .inference = true},
};

static const struct op_refusal refusals[] = {
    {"dense", "", .x = {OP_SHAPE(4)}, .status = LK_E_ARGUMENT, .said = "'units' is missing"},
    {"dense", "units=0", .x = {OP_SHAPE(4)}, .status = LK_E_ARGUMENT, .said = "units"},
    {"dense", "units=4 activation=rely", .x = {OP_SHAPE(4)}, .status = LK_E_ARGUMENT,
     .said = "relu"},
    {"dense", "units=4", .x = {OP_SHAPE(3, 8, 8)}, .status = LK_E_SHAPE,
     .said = "[8, 8, 3]: flatten first"},
    {"dense", "units=4", .x = {{.rank = 0}}, .status = LK_E_SHAPE, .said = "not []"},
    {"dense", "units=4", .x = {OP_SHAPE(4)}, .labels = {true}, .status = LK_E_SHAPE,
     .said = "not labels"},
};

static const struct op_suite suite = OP_SUITE(&oracle, cases, refusals);

int main(void)
{
    return op_test(&suite);
}

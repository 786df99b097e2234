/* Dense layers by transposed weights: vectors and sequences. */
#include "../driver.h"

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
    int64_t rows, channels, units;
    measure(p, &rows, &channels, &units);
    for (int64_t n = 0; n < rows; n++)
        for (int64_t k = 0; k < units; k++) {
            double sum = 0;
            for (int64_t c = 0; c < channels; c++)
                sum += x[0][n * channels + c] * w[0][k * channels + c];
            y[n * units + k] = sum;
        }
}

static void backward(const struct op_problem *p, const double *const x[],
                     const double *const w[], const double *dy, double *const dx[],
                     double *const dw[])
{
    int64_t rows, channels, units;
    measure(p, &rows, &channels, &units);
    for (int64_t n = 0; n < rows; n++)
        for (int64_t k = 0; k < units; k++)
            for (int64_t c = 0; c < channels; c++) {
                if (dx[0])
                    dx[0][n * channels + c] += w[0][k * channels + c] * dy[n * units + k];
                if (dw[0])
                    dw[0][k * channels + c] += x[0][n * channels + c] * dy[n * units + k];
            }
}

static const struct op_oracle oracle = {.forward = forward, .backward = backward};

static const struct op_case cases[] = {
    {"dense_transpose", "units=5", .x = {OP_SHAPE(7)}, .samples = 33, .shards = 2,
     .sizes = true, .thorough = true},
    {"dense_transpose", "units=1", .x = {OP_SHAPE(1)}, .samples = 3, .sizes = true,
     .thorough = true},
    {"dense_transpose", "units=300", .x = {OP_SHAPE(70)}, .samples = 80, .shards = 4,
     .thorough = true},
    {"dense_transpose", "units=64", .x = {OP_SHAPE(576)}, .samples = 64},
    {"dense_transpose", "units=129", .x = {OP_SHAPE(127)}, .samples = 17, .batch = 64,
     .shards = 2, .thorough = true},
    {"dense_transpose", "units=6", .x = {OP_SHAPE(5, 9)}, .samples = 20, .shards = 2,
     .thorough = true},
    {"dense_transpose", "units=33", .x = {OP_SHAPE(3, 20)}, .samples = 40, .integers = true,
     .thorough = true},
    {"dense_transpose", "units=257", .x = {OP_SHAPE(128)}, .samples = 100, .shards = 4,
     .integers = true, .thorough = true},
    {"dense_transpose", "units=40", .x = {OP_SHAPE(2, 200)}, .samples = 100, .inference = true},
};

static const struct op_refusal refusals[] = {
    {"dense_transpose", "", .x = {OP_SHAPE(4)}, .status = LK_E_ARGUMENT,
     .said = "'units' is missing"},
    {"dense_transpose", "units=0", .x = {OP_SHAPE(4)}, .status = LK_E_ARGUMENT,
     .said = "units"},
    {"dense_transpose", "units=4", .x = {OP_SHAPE(3, 8, 8)}, .status = LK_E_SHAPE,
     .said = "not [8, 8, 3]"},
    {"dense_transpose", "units=4", .x = {{.rank = 0}}, .status = LK_E_SHAPE, .said = "not []"},
    {"dense_transpose", "units=4", .x = {OP_SHAPE(4)}, .labels = {true}, .status = LK_E_SHAPE,
     .said = "not labels"},
};

static const struct op_suite suite = OP_SUITE(&oracle, cases, refusals);

int main(void)
{
    return op_test(&suite);
}

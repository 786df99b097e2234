/* Sums, products and largest numbers along an axis, their gradients by finite differences. */
#include "../driver.h"
#include <math.h>

enum { SUM, MEAN, LARGEST, SMALLEST, PRODUCT, LOG_SUM_EXP, LARGEST_PLACE, SMALLEST_PLACE };

struct options {
    int function;
    int64_t length, inner;
    bool last;
};

static double reduce(const struct options *o, const double *x)
{
    double sum = 0, product = 1, powers = 0;
    int64_t most = 0, least = 0;
    for (int64_t k = 0; k < o->length; k++) {
        const double v = x[k * o->inner];
        sum += v;
        product *= v;
        powers += exp(v);
        if (o->last ? v >= x[most * o->inner] : v > x[most * o->inner])
            most = k;
        if (o->last ? v <= x[least * o->inner] : v < x[least * o->inner])
            least = k;
    }
    switch (o->function) {
    case SUM:
        return sum;
    case MEAN:
        return sum / (double)o->length;
    case LARGEST:
        return x[most * o->inner];
    case SMALLEST:
        return x[least * o->inner];
    case PRODUCT:
        return product;
    case LOG_SUM_EXP:
        return log(powers);
    }
    return (double)(o->function == LARGEST_PLACE ? most : least);
}

static void forward(const struct op_problem *p, const double *const x[],
                    const double *const w[], double *y)
{
    const struct options *o = p->options;
    const int64_t rows = p->samples * p->shapes->y.dim[0];
    (void)w;
    for (int64_t row = 0; row < rows; row++)
        y[row] = reduce(o, x[0] + row / o->inner * o->length * o->inner + row % o->inner);
}

static const struct op_oracle oracle = {forward, NULL, NULL};

/* Many equal numbers: places alone have no slopes to be found by differences. */
static void arrange(const struct lk_op_shapes *shapes, int64_t samples, double *const x[],
                    double *const w[])
{
    (void)w;
    for (int64_t i = 0; i < samples * lk_shape_count(&shapes->x[0]); i++)
        x[0][i] = (double)(i * i % 3);
}

static const struct op_oracle with_ties = {forward, NULL, arrange};

/* clang-format off */
#define CASE(name, ...)                                                                        \
    {.op = "reduce", .options = "length=5 inner=3 function=" name, .x = {OP_SHAPE(2, 5, 3)},   \
     .samples = 5, .y = OP_SHAPE(6), __VA_ARGS__}

static const struct op_case cases[] = {
    CASE("sum", .integers = true),
    CASE("mean", .shards = 1),
    CASE("largest", .shards = 1),
    CASE("smallest", .shards = 1),
    CASE("product", .shards = 1),
    CASE("log_sum_exp", .shards = 1),
    CASE("largest_place", .inference = true, .oracle = &with_ties),
    CASE("smallest_place", .inference = true, .oracle = &with_ties),
    CASE("largest_place last=true", .inference = true, .oracle = &with_ties),
    CASE("smallest_place last=true", .inference = true, .oracle = &with_ties),
    {.op = "reduce", .options = "length=7", .x = {OP_SHAPE(35)}, .samples = 37, .shards = 2,
     .thorough = true, .sizes = true},
    {.op = "reduce", .options = "length=1 function=log_sum_exp", .x = {OP_SHAPE(33)},
     .samples = 5},
};

static const struct op_refusal refusals[] = {
    {.op = "reduce", .options = "length=4", .x = {OP_SHAPE(6)}, .status = LK_E_SHAPE,
     .said = "no rows"},
    {.op = "reduce", .options = "length=2 inner=2", .x = {OP_SHAPE(6)}, .status = LK_E_SHAPE,
     .said = "no rows"},
    {.op = "reduce", .options = "length=2", .x = {OP_SHAPE(6)}, .labels = {true},
     .status = LK_E_SHAPE, .said = "labels"},
    {.op = "reduce", .options = "", .x = {OP_SHAPE(6)}, .status = LK_E_ARGUMENT,
     .said = "length"},
};
/* clang-format on */

int main(void)
{
    const struct op_suite suite = OP_SUITE(&oracle, cases, refusals);
    return op_test(&suite);
}

/* Relus with a learned slope against their definition. */
#include "../driver.h"

/* As the options struct of src/ops/weighted/prelu.c. */
struct options {
    int slopes;
};

enum { CHANNELS, ONE, ELEMENTS };

/* The slope of number i of a sample. */
static int64_t slope_of(const struct op_problem *p, int64_t i)
{
    const struct options *o = p->options;
    const struct lk_shape *x = &p->shapes->x[0];
    if (o->slopes != CHANNELS)
        return o->slopes == ONE ? 0 : i;
    return x->rank == 2 ? i % x->dim[1] : i / (lk_shape_count(x) / x->dim[0]);
}

static void forward(const struct op_problem *p, const double *const x[],
                    const double *const w[], double *y)
{
    const int64_t count = lk_shape_count(&p->shapes->x[0]);
    for (int64_t i = 0; i < p->samples * count; i++)
        y[i] = x[0][i] > 0 ? x[0][i] : x[0][i] * w[0][slope_of(p, i % count)];
}

static void backward(const struct op_problem *p, const double *const x[],
                     const double *const w[], const double *dy, double *const dx[],
                     double *const dw[])
{
    const int64_t count = lk_shape_count(&p->shapes->x[0]);
    for (int64_t i = 0; i < p->samples * count; i++) {
        const int64_t j = slope_of(p, i % count);
        dx[0][i] = x[0][i] > 0 ? dy[i] : dy[i] * w[0][j];
        dw[0][j] += x[0][i] > 0 ? 0 : dy[i] * x[0][i];
    }
}

/* x is far from where the function bends, for differences. */
static void arrange(const struct lk_op_shapes *shapes, int64_t samples, double *const x[],
                    double *const w[])
{
    (void)w;
    for (int64_t i = 0; i < samples * lk_shape_count(&shapes->x[0]); i++)
        x[0][i] = (float)(x[0][i] + (x[0][i] < 0 ? -0.25 : 0.25));
}

static const struct op_oracle oracle = {forward, backward, arrange};
static const struct op_oracle whole = {forward, backward, NULL};

/* clang-format off */
#define CASE(options_, shape_, ...)                                                            \
    {.op = "prelu", .options = options_, .x = {shape_}, __VA_ARGS__}
#define ROW(k) OP_SHAPE(k)
#define SEQUENCE(t, c) OP_SHAPE(t, c)
#define IMAGE(c, h, w) OP_SHAPE(c, h, w)

static const struct op_case cases[] = {
    CASE("", IMAGE(5, 4, 6), .samples = 37, .thorough = true, .sizes = true),
    CASE("", ROW(70), .samples = 40, .shards = 2, .thorough = true),
    CASE("", SEQUENCE(9, 19), .samples = 37, .shards = 2, .integers = true, .oracle = &whole),
    CASE("slopes=one", IMAGE(3, 20, 19), .samples = 40, .shards = 2, .half = true),
    CASE("slopes=one", ROW(9), .samples = 17, .integers = true, .oracle = &whole),
    CASE("slopes=elements", IMAGE(3, 5, 9), .samples = 40, .shards = 2, .half = true),
    CASE("slopes=elements", SEQUENCE(4, 7), .samples = 17),
    CASE("", IMAGE(3, 30, 29), .samples = 20, .integers = true, .oracle = &whole),
    CASE("", IMAGE(5, 4, 6), .samples = 20, .inference = true),
    CASE("", IMAGE(5, 4, 6), .samples = 20, .frozen = true),
};

static const struct op_refusal refusals[] = {
    {.op = "prelu", .x = {ROW(1)}, .labels = {true}, .status = LK_E_SHAPE,
     .said = "not labels"},
    {.op = "prelu", .options = "slopes=two", .x = {ROW(5)}, .status = LK_E_ARGUMENT,
     .said = "slopes"},
};
/* clang-format on */

int main(void)
{
    const struct op_suite suite = OP_SUITE(&oracle, cases, refusals);
    return op_test(&suite);
}

/* Local response normalization against its definition. */
#include "../driver.h"

#include <math.h>

/* As the options struct of src/ops/norm/local_response_norm.c. */
struct options {
    int64_t size;
    double alpha, beta, bias;
};

/* Channels of a place, how far apart they are, and how many numbers a sample has. */
struct places {
    int64_t channels, apart, count;
};

static struct places measure(const struct op_problem *p)
{
    const struct lk_shape *x = &p->shapes->x[0];
    const int64_t count = lk_shape_count(x), channels = x->dim[x->rank == 2 ? 1 : 0];
    return (struct places){channels, x->rank == 3 ? count / channels : 1, count};
}

/* The sum of number k, and the place of the first number of those that are added to it; *last:
 * of the last. */
static double sum_of(const struct op_problem *p, const double *x, int64_t k, int64_t *first,
                     int64_t *last)
{
    const struct options *o = p->options;
    const struct places s = measure(p);
    const int64_t c = k / s.apart % s.channels;
    const int64_t before = c < o->size / 2 ? c : o->size / 2, left = s.channels - 1 - c;
    const int64_t behind = left < (o->size - 1) / 2 ? left : (o->size - 1) / 2;
    double sum = 0;
    *first = k - before * s.apart;
    *last = k + behind * s.apart;
    for (int64_t j = *first; j <= *last; j += s.apart)
        sum += x[j] * x[j];
    return o->bias + o->alpha / (double)o->size * sum;
}

static void forward(const struct op_problem *p, const double *const x[],
                    const double *const w[], double *y)
{
    const struct options *o = p->options;
    int64_t first, last;
    (void)w;
    for (int64_t k = 0; k < p->samples * measure(p).count; k++)
        y[k] = x[0][k] * pow(sum_of(p, x[0], k, &first, &last), -o->beta);
}

static void backward(const struct op_problem *p, const double *const x[],
                     const double *const w[], const double *dy, double *const dx[],
                     double *const dw[])
{
    const struct options *o = p->options;
    int64_t first, last;
    (void)w, (void)dw;
    for (int64_t k = 0; k < p->samples * measure(p).count; k++) {
        const double sum = sum_of(p, x[0], k, &first, &last);
        dx[0][k] += dy[k] * pow(sum, -o->beta);
        for (int64_t j = first; j <= last; j += measure(p).apart)
            dx[0][j] -= dy[k] * x[0][k] * 2 * x[0][j] * o->alpha / (double)o->size * o->beta *
                        pow(sum, -o->beta - 1);
    }
}

static const struct op_oracle oracle = {forward, backward, NULL};

/* clang-format off */
#define CASE(options_, shape_, ...)                                                            \
    {.op = "local_response_norm", .options = options_, .x = {shape_}, __VA_ARGS__}
#define ROW(k) OP_SHAPE(k)
#define SEQUENCE(t, c) OP_SHAPE(t, c)
#define IMAGE(c, h, w) OP_SHAPE(c, h, w)

static const struct op_case cases[] = {
    CASE("alpha=2", IMAGE(11, 3, 5), .samples = 37, .thorough = true, .sizes = true),
    CASE("alpha=1 beta=0.5 size=4", ROW(20), .samples = 33, .shards = 2, .thorough = true),
    CASE("", IMAGE(24, 4, 4), .samples = 17, .low = -20, .high = 20, .half = true),
    CASE("alpha=3 beta=1 size=3 bias=0.5", SEQUENCE(5, 9), .samples = 20),
    CASE("alpha=3 beta=0.6 size=7 bias=2", IMAGE(3, 3, 4), .samples = 17),
    CASE("alpha=1 size=21", IMAGE(40, 3, 4), .samples = 17),
    CASE("alpha=1 size=1", IMAGE(4, 3, 4), .samples = 17),
    CASE("alpha=1", IMAGE(9, 3, 5), .samples = 20, .inference = true),
};

static const struct op_refusal refusals[] = {
    {.op = "local_response_norm", .x = {ROW(1)}, .labels = {true}, .status = LK_E_SHAPE,
     .said = "not labels"},
    {.op = "local_response_norm", .options = "bias=0", .x = {ROW(5)},
     .status = LK_E_ARGUMENT, .said = "bias"},
    {.op = "local_response_norm", .options = "size=0", .x = {ROW(5)},
     .status = LK_E_ARGUMENT, .said = "size"},
};
/* clang-format on */

int main(void)
{
    const struct op_suite suite = OP_SUITE(&oracle, cases, refusals);
    return op_test(&suite);
}

/* Embedding against a walk over all tokens in double. */
#include "../driver.h"

/* As the options struct of src/ops/sequence/embedding.c. */
struct options {
    int64_t vocabulary, units;
};

/* The row of token t of sample n; -1: none. */
static int64_t row_of(const struct op_problem *p, const double *const x[], int64_t n, int64_t t)
{
    const struct options *o = p->options;
    const int64_t steps = lk_shape_count(&p->shapes->x[0]);
    const double token = x[0][n * steps + t];
    const bool is_valid = p->shapes->inputs < 2 || (double)t < x[1][n];
    return is_valid && token >= 0 && token < (double)o->vocabulary ? (int64_t)token : -1;
}

static void forward(const struct op_problem *p, const double *const x[],
                    const double *const w[], double *y)
{
    const int64_t units = ((const struct options *)p->options)->units;
    const int64_t steps = lk_shape_count(&p->shapes->x[0]);
    for (int64_t i = 0; i < p->samples * steps; i++) {
        const int64_t row = row_of(p, x, i / steps, i % steps);
        for (int64_t u = 0; u < units; u++)
            y[i * units + u] = row < 0 ? 0 : w[0][row * units + u];
    }
}

static void backward(const struct op_problem *p, const double *const x[],
                     const double *const w[], const double *dy, double *const dx[],
                     double *const dw[])
{
    (void)w, (void)dx;
    const int64_t units = ((const struct options *)p->options)->units;
    const int64_t steps = lk_shape_count(&p->shapes->x[0]);
    for (int64_t i = 0; i < p->samples * steps; i++) {
        const int64_t row = row_of(p, x, i / steps, i % steps);
        for (int64_t u = 0; u < units && row >= 0; u++)
            dw[0][row * units + u] += dy[i * units + u];
    }
}

/* Some tokens are no rows of the table, as far off as an int can be; some lengths are below 0,
 * some beyond the sequence. */
static void arrange(const struct lk_op_shapes *shapes, int64_t samples, double *const x[],
                    double *const w[])
{
    (void)w;
    static const double strange[] = {-1, 2147483647, -2147483647 - 1};
    const int64_t steps = lk_shape_count(&shapes->x[0]);
    for (int64_t i = 0; i < samples * steps; i += 7)
        x[0][i] = i % 14 ? shapes->param[0].shape.dim[0] : strange[i / 14 % 3];
    for (int64_t n = 0; n < samples && shapes->inputs > 1; n++)
        x[1][n] = n % 5 == 4 ? strange[n % 3] : (double)(n % (steps + 2));
}

static const struct op_oracle oracle = {forward, backward, arrange};

/* clang-format off */
#define CASE(options_, steps_, tokens, ...)                                                    \
    {.op = "embedding", .options = options_, .x = {steps_}, .classes = {tokens, 1},            \
     .tolerance = 512, __VA_ARGS__}
#define STEPS(t) OP_SHAPE(t)

static const struct op_case cases[] = {
    CASE("vocabulary=30 units=20", STEPS(6), 30, .inputs = 2, .samples = 37,
         .y = OP_SHAPE(6, 20), .thorough = true, .sizes = true),
    CASE("vocabulary=7 units=16", STEPS(9), 7, .samples = 40, .shards = 2, .half = true),
    CASE("vocabulary=5 units=3", STEPS(4), 5, .inputs = 2, .samples = 33, .shards = 4,
         .integers = true),
    CASE("vocabulary=1 units=1", STEPS(1), 1, .samples = 5),
    /* one number for each sample; more rows than tokens */
    CASE("vocabulary=1000 units=33", {0}, 1000, .samples = 50, .y = OP_SHAPE(33), .shards = 2),
    CASE("vocabulary=9 units=40", STEPS(5), 9, .inputs = 2, .samples = 20, .inference = true),
    CASE("vocabulary=9 units=40", STEPS(5), 9, .inputs = 2, .samples = 20, .frozen = true),
};

static const struct op_refusal refusals[] = {
    {.op = "embedding", .options = "vocabulary=9 units=4", .x = {STEPS(5)},
     .status = LK_E_SHAPE, .said = "takes tokens, int32 [t] or [], not real numbers [5]"},
    {.op = "embedding", .options = "vocabulary=9 units=4", .x = {OP_SHAPE(5, 2)},
     .labels = {true}, .status = LK_E_SHAPE, .said = "not int32 [5, 2]"},
    {.op = "embedding", .options = "vocabulary=9 units=4", .x = {STEPS(5), STEPS(5)},
     .inputs = 2, .labels = {true, true}, .status = LK_E_SHAPE, .said = "length of a sequence"},
    {.op = "embedding", .options = "vocabulary=9 units=4", .x = {STEPS(5), {0}}, .inputs = 2,
     .labels = {true}, .status = LK_E_SHAPE, .said = "length of a sequence"},
    {.op = "embedding", .options = "vocabulary=0 units=4", .x = {STEPS(5)}, .labels = {true},
     .status = LK_E_ARGUMENT, .said = "vocabulary"},
    {.op = "embedding", .options = "vocabulary=9", .x = {STEPS(5)}, .labels = {true},
     .status = LK_E_ARGUMENT, .said = "units"},
};
/* clang-format on */

int main(void)
{
    const struct op_suite suite = OP_SUITE(&oracle, cases, refusals);
    return op_test(&suite);
}

/* Places of time steps, learned and by sines, against their formulas in double. */
#include "../driver.h"
#include <math.h>

struct options {
    int kind; /* 0: sines */
    double base;
};

static bool counts(const struct op_problem *p, const double *const x[], int64_t i)
{
    const int64_t channels = p->shapes->y.dim[1], steps = p->shapes->y.dim[0];
    return p->shapes->inputs == 1 ||
           (double)(i / channels % steps) < x[1][i / (steps * channels)];
}

static void forward(const struct op_problem *p, const double *const x[],
                    const double *const w[], double *y)
{
    const struct options *o = p->options;
    const int64_t channels = p->shapes->y.dim[1], steps = p->shapes->y.dim[0];
    for (int64_t i = 0; i < p->samples * steps * channels; i++) {
        const int64_t t = i / channels % steps, c = i % channels;
        const double angle = (double)t / pow(o->base, (double)(c / 2 * 2) / (double)channels);
        const double sine = c % 2 ? cos(angle) : sin(angle);
        y[i] = counts(p, x, i) ? x[0][i] + (o->kind ? w[0][t * channels + c] : sine) : 0;
    }
}

static void backward(const struct op_problem *p, const double *const x[],
                     const double *const w[], const double *dy, double *const dx[],
                     double *const dw[])
{
    const struct options *o = p->options;
    const int64_t row = lk_shape_count(&p->shapes->y);
    (void)w;
    for (int64_t i = 0; i < p->samples * row; i++) {
        if (!counts(p, x, i))
            continue;
        dx[0][i] = dy[i];
        if (o->kind)
            dw[0][i % row] += dy[i];
    }
}

static const struct op_oracle oracle = {forward, backward, NULL};

/* clang-format off */
#define S(t, c) OP_SHAPE(t, c)

static const struct op_case cases[] = {
    {.op = "position", .options = "kind=learned", .x = {S(5, 6)}, .samples = 37, .shards = 2,
     .integers = true, .thorough = true, .sizes = true},
    {.op = "position", .options = "kind=learned", .inputs = 2, .x = {S(5, 6), {0}},
     .classes = {0, 6}, .samples = 37, .shards = 2, .thorough = true},
    {.op = "position", .x = {S(6, 7)}, .samples = 19, .half = true},
    {.op = "position", .options = "base=50", .inputs = 2, .x = {S(6, 7), {0}},
     .classes = {0, 7}, .samples = 37, .shards = 2, .thorough = true},
    {.op = "position", .options = "kind=learned", .x = {S(3, 5)}, .samples = 9, .frozen = true},
    {.op = "position", .x = {S(3, 5)}, .samples = 9, .inference = true},
};

static const struct op_refusal refusals[] = {
    {.op = "position", .x = {OP_SHAPE(4)}, .status = LK_E_SHAPE, .said = "sequence"},
    {.op = "position", .x = {S(4, 2)}, .labels = {true}, .status = LK_E_SHAPE,
     .said = "whole numbers"},
    {.op = "position", .inputs = 2, .x = {S(4, 2), S(4, 2)}, .status = LK_E_SHAPE,
     .said = "length"},
    {.op = "position", .options = "kind=random", .x = {S(4, 2)}, .status = LK_E_ARGUMENT,
     .said = "kind"},
};
/* clang-format on */

int main(void)
{
    const struct op_suite suite = OP_SUITE(&oracle, cases, refusals);
    return op_test(&suite);
}

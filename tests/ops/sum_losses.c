/* The weighted sum of losses. */
#include "driver.h"

static void forward(const struct op_problem *p, const double *const x[],
                    const double *const w[], double *y)
{
    const double *weights = p->options;
    (void)w;
    for (int64_t n = 0; n < p->samples; n++) {
        for (int i = 0; i < p->shapes->inputs; i++)
            y[2 * n] += weights[i] * x[i][2 * n];
        y[2 * n + 1] = x[0][2 * n + 1];
    }
}

static void backward(const struct op_problem *p, const double *const x[],
                     const double *const w[], const double *dy, double *const dx[],
                     double *const dw[])
{
    const double *weights = p->options;
    (void)x, (void)w, (void)dy, (void)dw;
    for (int64_t n = 0; n < p->samples; n++)
        for (int i = 0; i < p->shapes->inputs; i++)
            dx[i][2 * n] = weights[i];
}

static const struct op_oracle oracle = {forward, backward, NULL};

#define PAIR OP_SHAPE(2)

static const struct op_case cases[] = {
    {.op = "sum_losses", .x = {PAIR}, .y = PAIR, .samples = 19, .shards = 2, .integers = true},
    {.op = "sum_losses",
     .options = "weights=[1,0.5,0,0,0,0,0,0]",
     .inputs = 2,
     .x = {PAIR, PAIR},
     .samples = 5,
     .sizes = true},
    {.op = "sum_losses",
     .options = "weights=[1,-2,3,0.25,5,6,-7,8]",
     .inputs = 8,
     .x = {PAIR, PAIR, PAIR, PAIR, PAIR, PAIR, PAIR, PAIR},
     .samples = 37,
     .shards = 4},
};

static const struct op_refusal refusals[] = {
    {.op = "sum_losses",
     .inputs = 2,
     .x = {PAIR, OP_SHAPE(3)},
     .status = LK_E_SHAPE,
     .said = "takes losses, of shape [2], not [3]"},
    {.op = "sum_losses",
     .options = "weights=[1,2]",
     .x = {PAIR},
     .status = LK_E_ARGUMENT,
     .said = "option 'weights': '[1,2]' is not one number, or one for each"},
};

int main(void)
{
    static const struct op_suite suite = OP_SUITE(&oracle, cases, refusals);
    return op_test(&suite);
}

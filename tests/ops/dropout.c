/* Dropout: the kernels' mask is the host's, element by element, in every tiling. */
#include "driver.h"

#include "base/random.h"

/* Scales what is kept of one sample's element; 0: dropped. */
static double factor(const struct op_problem *p, int64_t sample, int64_t element)
{
    const double rate = *(const double *)p->options;
    if (!p->training)
        return 1;
    const struct lk_random4 key =
        lk_random(p->seed, LK_RANDOM_DROPOUT, p->stream, (uint64_t)p->step);
    const struct lk_random4 r =
        lk_random(key.v[0] | (uint64_t)key.v[1] << 32, LK_RANDOM_DROPOUT,
                  (uint32_t)(p->first + sample), (uint64_t)element / 4);
    return lk_random_unit(r.v[element % 4]) < rate ? 0 : 1 / (1 - rate);
}

static void forward(const struct op_problem *p, const double *const x[],
                    const double *const w[], double *y)
{
    (void)w;
    const int64_t count = lk_shape_count(&p->shapes->y);
    for (int64_t i = 0; i < p->samples * count; i++)
        y[i] = x[0][i] * factor(p, i / count, i % count);
}

static void backward(const struct op_problem *p, const double *const x[],
                     const double *const w[], const double *dy, double *const dx[],
                     double *const dw[])
{
    (void)x, (void)dw;
    forward(p, &dy, w, dx[0]);
}

static const struct op_oracle oracle = {forward, backward, NULL};

static const struct op_case cases[] = {
    {.op = "dropout",
     .x = {OP_SHAPE(3, 5, 7)},
     .samples = 19,
     .shards = 2,
     .integers = true,
     .thorough = true,
     .sizes = true},
    {.op = "dropout", .options = "rate=0.1", .x = {OP_SHAPE(1001)}, .samples = 5},
    {.op = "dropout", .options = "rate=0", .x = {OP_SHAPE(9)}, .samples = 5, .integers = true},
    {.op = "dropout", .options = "rate=0.999", .x = {OP_SHAPE(2, 3)}, .samples = 5},
    {.op = "dropout", .x = {OP_SHAPE(9)}, .samples = 5, .inference = true},
};

static const struct op_refusal refusals[] = {
    {.op = "dropout",
     .options = "rate=1",
     .x = {OP_SHAPE(4)},
     .status = LK_E_ARGUMENT,
     .said = "not in 0..0.999"},
    {.op = "dropout",
     .x = {{0}},
     .labels = {true},
     .status = LK_E_SHAPE,
     .said = "real numbers expected"},
};

int main(void)
{
    static const struct op_suite suite = OP_SUITE(&oracle, cases, refusals);
    return op_test(&suite);
}

/* Dropout: the kernels' mask is the host's, element by element, in every tiling. */
#include "driver.h"

#include "base/random.h"

/* As the options lie. */
struct options {
    double rate;
    int per;
};

/* The element, or the channel or sample (the only one of itself) that it is of. */
static int64_t unit_of(const struct op_problem *p, int64_t element)
{
    const struct options *o = p->options;
    const struct lk_shape *y = &p->shapes->y;
    if (o->per == 0 || (o->per == 1 && y->rank == 1))
        return element;
    if (o->per == 2)
        return 0;
    return y->rank == 2 ? element % y->dim[1] : element / (y->dim[1] * y->dim[2]);
}

/* Scales what is kept of one sample's element; 0: dropped. */
static double factor(const struct op_problem *p, int64_t sample, int64_t element)
{
    const double rate = ((const struct options *)p->options)->rate;
    const int64_t unit = unit_of(p, element);
    if (!p->training)
        return 1;
    const struct lk_random4 key =
        lk_random(p->seed, LK_RANDOM_DROPOUT, p->stream, (uint64_t)p->step);
    const struct lk_random4 r =
        lk_random(key.v[0] | (uint64_t)key.v[1] << 32, LK_RANDOM_DROPOUT,
                  (uint32_t)(p->first + sample), (uint64_t)unit / 4);
    return lk_random_unit(r.v[unit % 4]) < rate ? 0 : 1 / (1 - rate);
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
    {.op = "dropout",
     .options = "per=channel",
     .x = {OP_SHAPE(7, 5, 6)},
     .samples = 19,
     .shards = 2,
     .integers = true,
     .sizes = true},
    {.op = "dropout", .options = "rate=0.3 per=channel", .x = {OP_SHAPE(11, 9)}, .samples = 5},
    {.op = "dropout", .options = "per=channel", .x = {OP_SHAPE(9)}, .samples = 5},
    {.op = "dropout",
     .options = "rate=0.75 per=sample",
     .x = {OP_SHAPE(3, 21, 17)},
     .samples = 37,
     .shards = 2,
     .sizes = true},
    {.op = "dropout", .options = "per=sample", .x = {OP_SHAPE(5, 4)}, .samples = 5},
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

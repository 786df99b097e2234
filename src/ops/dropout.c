/* Dropout: y = x / (1 - rate) where an element is kept, which it is with probability 1 - rate.
 * The mask is a function of seed, node, step, sample and element: no device, tile or shard
 * changes it, and backward draws it again.
 * source: Srivastava et al., Dropout (JMLR 2014), scaled while training. Whole channels:
 * Tompson et al., Efficient Object Localization (2015); whole samples, which before an addition
 * is stochastic depth: Huang et al. (2016) */
#include "ops/dropout.h"

#include "base/fail.h"
#include "base/random.h"
#include <math.h>

enum { ELEMENT, CHANNEL, SAMPLE };
static const char *const wholes[] = {"element", "channel", "sample", NULL};

struct options {
    double rate;
    int per;
};

static enum lk_status infer(struct lk_op_shapes *shapes)
{
    if (shapes->x_dtype[0] != LK_F32)
        return lk_fail(LK_E_SHAPE, "dropout: real numbers expected, found labels");
    shapes->y = shapes->x[0];
    shapes->flops = (double)lk_shape_count(&shapes->y);
    return LK_OK;
}

static enum lk_status prepare(struct lk_op_setup *setup)
{
    struct lk_kernel *kernel;
    LK_TRY(lk_op_kernel(setup, "ops/dropout", "dropout", NULL, &kernel));
    setup->state = kernel;
    return LK_OK;
}

struct lk_drop lk_drop(const struct lk_op_setup *setup, const struct lk_op_run *run,
                       double rate)
{
    const struct lk_random4 key =
        lk_random(setup->seed, LK_RANDOM_DROPOUT, setup->stream, (uint64_t)run->step);
    const double threshold = fmin(round(rate * 0x1p32), 0xffffffffu);
    return (struct lk_drop){.first = run->first_sample,
                            .shard_samples = setup->tiling.shard_samples,
                            .shard_tiles = setup->tiling.shard_tiles,
                            .key_low = (int32_t)key.v[0],
                            .key_high = (int32_t)key.v[1],
                            .threshold = (int32_t)(uint32_t)threshold};
}

/* What of a sample is dropped together: `run` elements that follow one another, and again those
 * `units` such runs further on. A sequence has its channels behind each other at each time
 * step, an image the pixels of a channel. */
static void find_units(const struct lk_op_setup *setup, int64_t *run, int64_t *units)
{
    const struct options *o = setup->options;
    const struct lk_shape *y = &setup->shapes.y;
    const int64_t count = lk_shape_count(y), channels = y->dim[y->rank == 2 ? 1 : 0];
    *run = o->per == SAMPLE ? count : y->rank == 2 ? 1 : count / channels;
    *units = o->per == SAMPLE ? 1 : o->per == CHANNEL && y->rank > 1 ? channels : 0;
}

static enum lk_status enqueue(const struct lk_op_setup *setup, const struct lk_op_run *run,
                              const struct lk_buffer *from, struct lk_buffer *to)
{
    const struct options *o = setup->options;
    const struct lk_tiling *t = &setup->tiling;
    const struct lk_drop drop = lk_drop(setup, run, o->rate);
    const int64_t count = lk_shape_count(&setup->shapes.y), quads = (count + 3) / 4;
    const int64_t each = t->vector == 1 ? 4 : 64;
    int64_t together, units;
    find_units(setup, &together, &units);
    const struct lk_grid grid = {{(quads + each - 1) / each, t->tiles, 1}, lk_op_items(setup)};
    return LK_ENQUEUE(setup->state, grid, LK_BUF(from), LK_BUF(to), LK_INT(count), LK_INT(each),
                      LK_STRUCT(&drop), LK_REAL(1 / (1 - o->rate)), LK_INT(together),
                      LK_INT(units));
}

static enum lk_status forward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    return enqueue(setup, run, run->x[0], run->y);
}

static enum lk_status backward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    return run->dx[0] ? enqueue(setup, run, run->dy, run->dx[0]) : LK_OK;
}

static const struct lk_option options[] = {
    {.name = "rate",
     .kind = LK_OPTION_REAL,
     .offset = offsetof(struct options, rate),
     .max = 0.999,
     .standard = "0.5",
     .help = "part of the elements that training drops"},
    {.name = "per",
     .kind = LK_OPTION_CHOICE,
     .offset = offsetof(struct options, per),
     .standard = "element",
     .choices = wholes,
     .help = "what is dropped or kept together: nothing, all of a channel, all of a sample"},
    {0},
};

const struct lk_op lk_op_dropout = {
    .name = "dropout",
    .options = options,
    .options_bytes = sizeof(struct options),
    .min_inputs = 1,
    .max_inputs = 1,
    .only_trains = true,
    .time = LK_TIME_OWN,
    .infer = infer,
    .prepare = prepare,
    .forward = forward,
    .backward = backward,
};

/* Rotary positions of queries and keys. source: Su et al., RoFormer (2021); numbers i and
 * i + half of a head are a pair, as in GPT-NeoX and Llama */
#include "base/fail.h"
#include "ops/sequence/steps.h"
#include <math.h>

struct options {
    int64_t heads;
    double base;
    bool packed;
};

/* Channels that are turned: all, or of queries, keys and values side by side the first two. */
static int64_t turned_of(const struct lk_op_shapes *shapes)
{
    const struct options *o = shapes->options;
    const int64_t channels = shapes->x[0].dim[1];
    return o->packed ? channels / 3 * 2 : channels;
}

/* Heads among the channels that are turned. */
static int64_t heads_of(const struct options *o)
{
    return o->packed ? 2 * o->heads : o->heads;
}

static enum lk_status infer(struct lk_op_shapes *shapes)
{
    const struct options *o = shapes->options;
    LK_TRY(lk_steps_check(shapes, "rotary"));
    const int64_t channels = shapes->x[0].dim[1], parts = o->packed ? 3 : 1;
    if (channels % (2 * parts * o->heads) != 0)
        return lk_fail(LK_E_SHAPE, "rotary: %lld channels are not %lld heads of pairs%s",
                       (long long)channels, (long long)o->heads,
                       o->packed ? ", of queries, keys and values" : "");
    shapes->y = shapes->x[0];
    shapes->flops = 3.0 * (double)lk_shape_count(&shapes->y);
    return LK_OK;
}

static enum lk_status prepare(struct lk_op_setup *setup)
{
    struct lk_kernel *kernel;
    LK_TRY(lk_op_kernel(setup, "ops/sequence/rotary", "rotary", NULL, &kernel));
    setup->state = kernel;
    return LK_OK;
}

/* A work-group for each time step of each tile. */
static struct lk_grid grid_of(const struct lk_op_setup *setup)
{
    return (struct lk_grid){{setup->shapes.x[0].dim[0], setup->tiling.tiles, 1},
                            lk_op_items(setup)};
}

static enum lk_status enqueue(const struct lk_op_setup *setup, const struct lk_op_run *run,
                              const struct lk_buffer *from, struct lk_buffer *to, double turn)
{
    const struct options *o = setup->options;
    const int64_t turned = turned_of(&setup->shapes), dim = turned / heads_of(o);
    return LK_ENQUEUE(setup->state, grid_of(setup), LK_BUF(from),
                      LK_BUF(lk_steps_length(setup, run)), LK_BUF(to),
                      LK_INT(setup->shapes.y.dim[1]), LK_INT(turned), LK_INT(dim / 2),
                      LK_REAL(log(o->base) / (double)dim), LK_REAL(turn), LK_INT(run->time));
}

static enum lk_status forward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    return enqueue(setup, run, run->x[0], run->y, 1);
}

static enum lk_status backward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    return run->dx[0] ? enqueue(setup, run, run->dy, run->dx[0], -1) : LK_OK;
}

static const struct lk_option options[] = {
    {.name = "heads",
     .kind = LK_OPTION_INT,
     .offset = offsetof(struct options, heads),
     .count = 1,
     .min = 1,
     .max = 4096,
     .standard = "1",
     .help = "those of the attention that follows"},
    {.name = "base",
     .kind = LK_OPTION_REAL,
     .offset = offsetof(struct options, base),
     .min = 1,
     .max = 1e9,
     .standard = "10000",
     .help = "the slowest pair turns once in less than 2 pi times so many time steps"},
    {.name = "packed",
     .kind = LK_OPTION_BOOL,
     .offset = offsetof(struct options, packed),
     .standard = "false",
     .help = "queries, keys and values lie side by side, and values stay as they are"},
    {0},
};

const struct lk_op lk_op_rotary = {
    .name = "rotary",
    .options = options,
    .options_bytes = sizeof(struct options),
    .min_inputs = 1,
    .max_inputs = 2,
    .takes_length = true,
    .time = LK_TIME_BEFORE,
    .infer = infer,
    .prepare = prepare,
    .forward = forward,
    .backward = backward,
};

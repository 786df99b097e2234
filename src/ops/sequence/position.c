/* Adds to every time step of a sequence what tells its place: a learned row of its own, or the
 * sines of Vaswani et al., Attention Is All You Need (2017). */
#include "base/fail.h"
#include "ops/sequence/steps.h"
#include <math.h>

enum { SINES, LEARNED };
static const char *const kinds[] = {"sines", "learned", NULL};

struct options {
    int kind;
    double base;
};

static enum lk_status infer(struct lk_op_shapes *shapes)
{
    const struct options *o = shapes->options;
    const struct lk_shape *x = &shapes->x[0];
    LK_TRY(lk_steps_check(shapes, "position"));
    shapes->y = *x;
    shapes->params = o->kind == LEARNED;
    const int64_t steps = shapes->window > 0 ? shapes->window : x->dim[0];
    shapes->param[0] = (struct lk_param_spec){
        .name = "weight", .shape = {2, {steps, x->dim[1]}}, .init = LK_INIT_UNIFORM};
    shapes->flops = (double)lk_shape_count(x);
    return LK_OK;
}

struct state {
    struct lk_kernel *forward, *backward, *table;
};

static enum lk_status prepare(struct lk_op_setup *setup)
{
    static const char source[] = "ops/sequence/position";
    void *memory;
    LK_TRY(lk_arena_allocate(setup->arena, sizeof(struct state), &memory));
    struct state *s = setup->state = memory;
    LK_TRY(lk_op_kernel(setup, source, "position_forward", NULL, &s->forward));
    if (setup->training && setup->wants_dx[0])
        LK_TRY(lk_op_kernel(setup, source, "position_backward", NULL, &s->backward));
    if (setup->training && setup->wants_dw && setup->shapes.params > 0)
        LK_TRY(lk_op_kernel(setup, source, "position_table", NULL, &s->table));
    return LK_OK;
}

/* A work-group for each time step of each of `count` tiles or shards. */
static struct lk_grid grid_of(const struct lk_op_setup *setup, int64_t count)
{
    return (struct lk_grid){{setup->shapes.x[0].dim[0], count, 1}, lk_op_items(setup)};
}

static enum lk_status forward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct options *o = setup->options;
    const struct state *s = setup->state;
    const int64_t channels = setup->shapes.y.dim[1];
    return LK_ENQUEUE(s->forward, grid_of(setup, setup->tiling.tiles), LK_BUF(run->x[0]),
                      LK_BUF(lk_steps_length(setup, run)),
                      LK_BUF(o->kind == LEARNED ? run->w[0] : NULL), LK_BUF(run->y),
                      LK_INT(channels), LK_REAL(log(o->base) / (double)channels),
                      LK_INT(run->time));
}

static enum lk_status backward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct state *s = setup->state;
    const struct lk_tiling *t = &setup->tiling;
    const struct lk_buffer *length = lk_steps_length(setup, run);
    const int64_t channels = setup->shapes.y.dim[1];
    if (run->dx[0])
        LK_TRY(LK_ENQUEUE(s->backward, grid_of(setup, t->tiles), LK_BUF(run->dy),
                          LK_BUF(length), LK_BUF(run->dx[0]), LK_INT(channels)));
    if (!s->table || !run->dw[0])
        return LK_OK;
    return LK_ENQUEUE(s->table, grid_of(setup, t->shards), LK_BUF(run->dy), LK_BUF(length),
                      LK_BUF(run->dw[0]), LK_INT(channels), LK_INT(t->shard_tiles),
                      LK_INT(run->dw_stride),
                      LK_LOCAL(t->lanes * (int64_t)lk_dtype_bytes(setup->real)));
}

static const struct lk_option options[] = {
    {.name = "kind",
     .kind = LK_OPTION_CHOICE,
     .offset = offsetof(struct options, kind),
     .standard = "sines",
     .choices = kinds,
     .help = "what is added: sines and cosines in turn, or a learned row for each time step"},
    {.name = "base",
     .kind = LK_OPTION_REAL,
     .offset = offsetof(struct options, base),
     .min = 1,
     .max = 1e9,
     .standard = "10000",
     .help = "of sines: the longest wave is 2 pi times that"},
    {0},
};

const struct lk_op lk_op_position = {
    .name = "position",
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

/* Embedding: the row of a table for each token. Tokens outside the table, and those behind the
 * length, have no row: y is 0 there, and no gradient comes of them. */
#include "base/fail.h"
#include "ops/args.h"
#include "ops/sequence/steps.h"

struct options {
    int64_t vocabulary, units;
};

static const struct lk_option table[] = {
    {.name = "vocabulary",
     .kind = LK_OPTION_INT,
     .offset = offsetof(struct options, vocabulary),
     .count = 1,
     .min = 1,
     .max = 1 << 28,
     .help = "rows of the table: tokens are 0 to vocabulary - 1 (Keras: input_dim)"},
    {.name = "units",
     .kind = LK_OPTION_INT,
     .offset = offsetof(struct options, units),
     .count = 1,
     .min = 1,
     .max = 1 << 16,
     .help = "numbers of a row (Keras: output_dim)"},
    {0},
};

static enum lk_status infer(struct lk_op_shapes *shapes)
{
    const struct options *o = shapes->options;
    const struct lk_shape *x = &shapes->x[0];
    char text[96];
    lk_shape_print_hwc(x, text, sizeof text);
    if (shapes->x_dtype[0] != LK_I32 || x->rank > 1)
        return lk_fail(LK_E_SHAPE, "embedding takes tokens, int32 [t] or [], not %s%s",
                       shapes->x_dtype[0] == LK_I32 ? "int32 " : "real numbers ", text);
    LK_TRY(lk_steps_check_length(shapes, "embedding"));
    shapes->y = x->rank == 1 ? (struct lk_shape){2, {x->dim[0], o->units}}
                             : (struct lk_shape){1, {o->units}};
    if (lk_shape_count(&shapes->y) < 0)
        return lk_fail(LK_E_SHAPE, "embedding: %s tokens of %lld units are too many", text,
                       (long long)o->units);
    shapes->param[0] = (struct lk_param_spec){.name = "weight",
                                              .shape = {2, {o->vocabulary, o->units}},
                                              .init = LK_INIT_UNIFORM,
                                              .is_rows = true};
    shapes->params = 1;
    shapes->backward_reads_x = true;
    shapes->flops = (double)lk_shape_count(&shapes->y);
    return LK_OK;
}

struct state {
    struct lk_kernel *forward, *turn, *zero, *sum, *list;
};

static int64_t steps_of(const struct lk_op_setup *setup)
{
    return setup->shapes.x[0].rank == 1 ? setup->shapes.x[0].dim[0] : 1;
}

static enum lk_status prepare(struct lk_op_setup *setup)
{
    static const char source[] = "ops/sequence/embedding";
    void *memory;
    LK_TRY(lk_arena_allocate(setup->arena, sizeof(struct state), &memory));
    struct state *s = setup->state = memory;
    LK_TRY(lk_op_kernel(setup, source, "embedding_forward", NULL, &s->forward));
    if (!setup->training || !setup->wants_dw)
        return LK_OK;
    LK_TRY(lk_op_kernel(setup, source, "embedding_turn", NULL, &s->turn));
    if (setup->lists_rows)
        return lk_op_kernel(setup, source, "embedding_list", NULL, &s->list);
    setup->workspace_bytes = lk_tiled_bytes(&setup->tiling, &setup->shapes.y, setup->real);
    LK_TRY(lk_op_kernel(setup, source, "embedding_zero", NULL, &s->zero));
    return lk_op_kernel(setup, source, "embedding_sum", NULL, &s->sum);
}

/* Groups of a shard share the rows of the table, and each adds to its own. So no bit depends on
 * how many they are: enough for the device, a power of two. */
static int64_t find_groups(const struct lk_op_setup *setup)
{
    const int64_t each = setup->tiling.vector == 1 ? 8 : 1; /* work-groups of a compute unit */
    const int64_t wanted = each * lk_device_info(setup->device)->compute_units;
    int64_t groups = 1;
    while (groups * setup->tiling.shards < wanted && groups < 1024)
        groups *= 2;
    return groups;
}

static struct lk_embedding args_of(const struct lk_op_setup *setup)
{
    const struct options *o = setup->options;
    return (struct lk_embedding){.vocabulary = o->vocabulary,
                                 .units = o->units,
                                 .steps = steps_of(setup),
                                 .each = setup->tiling.vector == 1 ? 1 : 8,
                                 .shard_tiles = setup->tiling.shard_tiles,
                                 .groups = find_groups(setup)};
}

static struct lk_grid grid_of(const struct lk_op_setup *setup, const struct lk_embedding *a)
{
    return (struct lk_grid){{lk_divide_up(a->steps, a->each), setup->tiling.tiles, 1},
                            lk_op_items(setup)};
}

static enum lk_status forward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct lk_embedding a = args_of(setup);
    const struct state *s = setup->state;
    return LK_ENQUEUE(s->forward, grid_of(setup, &a), LK_BUF(run->x[0]),
                      LK_BUF(lk_steps_length(setup, run)), LK_BUF(run->w[0]), LK_BUF(run->y),
                      LK_STRUCT(&a));
}

/* dw is a list: the rows of dy, and which they are. */
static enum lk_status backward_list(const struct lk_op_setup *setup,
                                    const struct lk_op_run *run, const struct lk_embedding *a)
{
    const struct state *s = setup->state;
    const int64_t samples = setup->tiling.shard_samples;
    LK_TRY(LK_ENQUEUE(s->turn, grid_of(setup, a), LK_BUF(run->dy), LK_BUF(run->dw[0]),
                      LK_INT(samples), LK_INT(run->dw_stride), LK_STRUCT(a)));
    return LK_ENQUEUE(s->list, grid_of(setup, a), LK_BUF(run->x[0]),
                      LK_BUF(lk_steps_length(setup, run)), LK_BUF(run->dw[0]), LK_INT(samples),
                      LK_INT(run->dw_stride), LK_STRUCT(a));
}

/* dy is turned into rows, one for each token, which are added to those of the table. */
static enum lk_status backward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    enum { REALS = 1 << 14 }; /* that a work-group sets to zero */
    const struct lk_buffer *length = lk_steps_length(setup, run);
    const struct state *s = setup->state;
    struct lk_embedding a = args_of(setup);
    const int64_t samples = a.shard_tiles * setup->tiling.lanes;
    if (!run->dw[0])
        return LK_OK;
    if (setup->lists_rows)
        return backward_list(setup, run, &a);
    LK_TRY(LK_ENQUEUE(s->turn, grid_of(setup, &a), LK_BUF(run->dy), LK_BUF(run->workspace),
                      LK_INT(samples), LK_INT(samples * a.steps * a.units), LK_STRUCT(&a)));
    a.each = lk_divide_up(REALS, a.units); /* rows */
    const struct lk_grid zeros = {{lk_divide_up(a.vocabulary, a.each), setup->tiling.shards, 1},
                                  lk_op_items(setup)};
    LK_TRY(
        LK_ENQUEUE(s->zero, zeros, LK_BUF(run->dw[0]), LK_INT(run->dw_stride), LK_STRUCT(&a)));
    const struct lk_grid sums = {{a.groups, setup->tiling.shards, 1}, lk_op_items(setup)};
    return LK_ENQUEUE(s->sum, sums, LK_BUF(run->x[0]), LK_BUF(length), LK_BUF(run->workspace),
                      LK_BUF(run->dw[0]), LK_INT(run->dw_stride), LK_STRUCT(&a));
}

const struct lk_op lk_op_embedding = {
    .name = "embedding",
    .options = table,
    .options_bytes = sizeof(struct options),
    .min_inputs = 1,
    .max_inputs = 2,
    .takes_length = true,
    .time = LK_TIME_OWN,
    .infer = infer,
    .prepare = prepare,
    .forward = forward,
    .backward = backward,
};

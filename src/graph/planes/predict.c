/* Schedules a graph for plane tiles (tensor/tensor.h), in which few samples cost no more than
 * they have to: where every operation can. What reads an image as a vector gets a scheduled
 * operation before it that spreads the image over all lanes, as vectors lie. */
#include "base/fail.h"
#include "graph/replica_internal.h"
#include <string.h>

enum { CACHED_BYTES = 4 << 20 };

/* --- an image as a vector ---------------------------------------------------------------- */

static enum lk_status prepare_spread(struct lk_op_setup *setup)
{
    void *memory;
    LK_TRY(lk_arena_allocate(setup->arena, sizeof(struct lk_kernel *), &memory));
    setup->state = memory;
    return lk_op_kernel(setup, "tensor/planes", "planes_spread", NULL, setup->state);
}

static enum lk_status forward_spread(const struct lk_op_setup *setup,
                                     const struct lk_op_run *run)
{
    struct lk_kernel *const *kernel = setup->state;
    const struct lk_shape *x = &setup->shapes.x[0];
    const struct lk_grid grid = {{x->dim[0], setup->tiling.tiles, 1}, 1};
    return LK_ENQUEUE(*kernel, grid, LK_BUF(run->x[0]), LK_BUF(run->y),
                      LK_INT(x->dim[1] * x->dim[2]));
}

static const struct lk_option no_options[] = {{0}};
static const struct lk_op spread = {.name = "spread",
                                    .options = no_options,
                                    .min_inputs = 1,
                                    .max_inputs = 1,
                                    .planes = LK_PLANES_KNOWN,
                                    .prepare = prepare_spread,
                                    .forward = forward_spread};

/* --- whether all can --------------------------------------------------------------------- */

static bool is_image(const struct lk_shape *shape)
{
    return shape->rank == 3;
}

/* Whether input j of operation i is an image that it reads as a vector. */
static bool is_flattened(const struct lk_schedule *schedule, int i, int j)
{
    const struct lk_scheduled_op *s = &schedule->ops[i];
    return is_image(&schedule->values[s->x[j]].shape) && !is_image(&s->shapes.x[j]);
}

static bool can_read(const struct lk_schedule *schedule, int i, int j)
{
    const struct lk_scheduled_op *s = &schedule->ops[i];
    const struct lk_shape *x = &s->shapes.x[j];
    if (is_flattened(schedule, i, j))
        return j < s->node->inputs;
    return is_image(x) ? lk_shape_equal(x, &schedule->values[s->x[j]].shape) : true;
}

/* Whether two shapes are images of one size, or one of them is no image. */
static bool are_of_a_size(const struct lk_shape *a, const struct lk_shape *b)
{
    return !is_image(a) || !is_image(b) || (a->dim[1] == b->dim[1] && a->dim[2] == b->dim[2]);
}

static bool can_compute(const struct lk_schedule *schedule, int i)
{
    const struct lk_scheduled_op *s = &schedule->ops[i];
    bool has_images = is_image(&s->shapes.y), is_even = true;
    for (int j = 0; j < s->shapes.inputs; j++) {
        if (!can_read(schedule, i, j))
            return false;
        has_images |= is_image(&s->shapes.x[j]);
        is_even &= are_of_a_size(&s->shapes.x[j], &s->shapes.y) &&
                   (is_image(&s->shapes.y) || !is_image(&s->shapes.x[j]));
    }
    if (s->shapes.is_loss || !lk_shape_equal(&schedule->values[s->y].shape, &s->shapes.y))
        return false;
    return !has_images || s->op->planes == LK_PLANES_KNOWN ||
           (s->op->planes == LK_PLANES_OWN && is_even);
}

static bool can_load(const struct lk_value *value)
{
    return !value->input || !is_image(&value->shape) || value->dtype != LK_I32;
}

bool lk_replica_takes_planes(const struct lk_replica *replica)
{
    const struct lk_replica_config *c = &replica->config;
    const struct lk_schedule *s = &replica->schedule;
    bool knows = false;
    if (!c->few_samples || c->training || c->stores_half || c->places > 1 ||
        c->part != LK_PART_ALL || c->one_step || lk_device_info(c->device)->vector < 4 ||
        lk_transform_has_params(&replica->transform))
        return false;
    for (int i = 0; i < s->output_count; i++)
        if (!lk_shape_equal(&c->outputs[i]->shapes.y, &s->values[s->outputs[i]].shape))
            return false;
    for (int v = 0; v < s->value_count; v++)
        if (!can_load(&s->values[v]))
            return false;
    for (int i = 0; i < s->op_count; i++) {
        if (!can_compute(s, i))
            return false;
        knows |= s->ops[i].op->absorb_forward != NULL;
    }
    return knows;
}

/* --- the schedule ------------------------------------------------------------------------ */

/* The value of image `from` as a vector of that shape, made by a new operation at place `at`.
 * The schedule has room for both. */
static int insert_spread(struct lk_schedule *schedule, int at, int from,
                         const struct lk_node *node, const struct lk_shape *shape)
{
    const int to = schedule->value_count++;
    memmove(&schedule->ops[at + 1], &schedule->ops[at],
            (size_t)(schedule->op_count++ - at) * sizeof schedule->ops[0]);
    schedule->values[to] = (struct lk_value){.shape = *shape, .dtype = LK_F32};
    struct lk_scheduled_op *s = &schedule->ops[at];
    *s = (struct lk_scheduled_op){.node = node, .op = &spread, .x = {from}, .y = to};
    s->shapes = (struct lk_op_shapes){.inputs = 1, .y = *shape};
    s->shapes.x[0] = schedule->values[from].shape;
    for (int i = at; i < schedule->op_count; i++)
        schedule->values[schedule->ops[i].y].producer = i;
    return to;
}

/* Every reader of the image as such a vector reads the new value. */
static void spread_input(struct lk_schedule *schedule, int i, int j)
{
    const struct lk_scheduled_op reader = schedule->ops[i];
    const int from = reader.x[j];
    const int to =
        insert_spread(schedule, i, from, reader.node->input_nodes[j], &reader.shapes.x[j]);
    for (int k = i + 1; k < schedule->op_count; k++)
        for (int l = 0; l < schedule->ops[k].shapes.inputs; l++)
            if (schedule->ops[k].x[l] == from && is_flattened(schedule, k, l))
                schedule->ops[k].x[l] = to;
}

/* Samples whose largest activation stays in the caches until its reader comes: a power of two.
 * Eight images of resnet50 at once take 1.2 times as long as one after the other. */
static int64_t samples_at_once(const struct lk_replica *replica)
{
    const struct lk_schedule *schedule = &replica->schedule;
    const size_t real = lk_dtype_bytes(replica->config.real);
    size_t largest = 1;
    for (int v = 0; v < schedule->value_count; v++) {
        const size_t bytes = (size_t)lk_shape_count(&schedule->values[v].shape) * real;
        largest = bytes > largest ? bytes : largest;
    }
    int64_t samples = 1;
    while (samples < replica->config.batch && 2 * (size_t)samples * largest <= CACHED_BYTES)
        samples *= 2;
    return lk_least(samples, replica->config.batch);
}

void lk_replica_spread_planes(struct lk_replica *replica)
{
    struct lk_schedule *schedule = &replica->schedule;
    struct lk_replica_config *c = &replica->config;
    c->batch = samples_at_once(replica);
    c->shards = (int)lk_least(c->shards, c->batch);
    replica->tiling = lk_tiling_make_planes(lk_device_info(c->device), c->batch, c->shards);
    for (int i = 0; i < schedule->op_count; i++)
        for (int j = 0; j < schedule->ops[i].shapes.inputs; j++)
            if (schedule->ops[i].op != &spread && is_flattened(schedule, i, j))
                spread_input(schedule, i, j);
}

/* --- shapes ------------------------------------------------------------------------------ */

enum lk_status lk_scheduled_op_map_planes(struct lk_scheduled_op *s,
                                          const struct lk_tiling *planes)
{
    if (s->op->planes != LK_PLANES_OWN)
        return LK_OK;
    for (int j = 0; j < s->shapes.inputs; j++)
        s->shapes.x[j] = lk_plane_shape(planes, &s->shapes.x[j]);
    return s->op->infer(&s->shapes);
}

enum lk_status lk_replica_map_planes(struct lk_replica *replica)
{
    for (int i = 0; i < replica->schedule.op_count; i++) {
        struct lk_scheduled_op *s = &replica->schedule.ops[i];
        if (replica->tiling.planes || s->in_planes)
            LK_TRY(lk_scheduled_op_map_planes(s, lk_replica_tiling_of(replica, s->in_planes)));
    }
    return LK_OK;
}

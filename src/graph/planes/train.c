/* Training in plane tiles, for few samples of a shard: images that most of the work is done on
 * lie in plane tiles (tensor/tensor.h), all else in batch tiles. Between them stand operations
 * that turn the one into the other, and their gradients back. */
#include "graph/planes.h"

#include "base/fail.h"
#include "graph/replica_internal.h"
#include <string.h>

/* --- turning ----------------------------------------------------------------------------- */

struct turning {
    struct lk_tiling batch; /* tiles */
    struct lk_kernel *to_planes, *to_batch;
};

static enum lk_status prepare_turning(struct lk_op_setup *setup)
{
    const struct lk_device_info *info = lk_device_info(setup->device);
    const struct lk_tiling *planes = &setup->tiling;
    void *memory;
    LK_TRY(lk_arena_allocate(setup->arena, sizeof(struct turning), &memory));
    struct turning *t = setup->state = memory;
    t->batch = lk_tiling_make(info, planes->shard_samples * planes->shards, planes->shards);
    LK_TRY(lk_op_kernel(setup, "tensor/planes", "planes_of_batch", NULL, &t->to_planes));
    return lk_op_kernel(setup, "tensor/planes", "planes_to_batch", NULL, &t->to_batch);
}

static enum lk_status turn(const struct lk_op_setup *setup, bool to_planes,
                           const struct lk_buffer *from, struct lk_buffer *to)
{
    const struct turning *t = setup->state;
    const struct lk_shape *x = &setup->shapes.x[0];
    const int64_t batch_tiles = setup->tiling.shards * t->batch.shard_tiles;
    const struct lk_grid grid = {{x->dim[0], to_planes ? setup->tiling.tiles : batch_tiles, 1},
                                 1};
    return LK_ENQUEUE(to_planes ? t->to_planes : t->to_batch, grid, LK_BUF(from), LK_BUF(to),
                      LK_INT(x->dim[1] * x->dim[2]), LK_INT(t->batch.lanes),
                      LK_INT(t->batch.shard_samples), LK_INT(t->batch.shard_tiles));
}

static enum lk_status forward_to_planes(const struct lk_op_setup *setup,
                                        const struct lk_op_run *run)
{
    return turn(setup, true, run->x[0], run->y);
}

static enum lk_status backward_to_planes(const struct lk_op_setup *setup,
                                         const struct lk_op_run *run)
{
    return turn(setup, false, run->dy, run->dx[0]);
}

static enum lk_status forward_to_batch(const struct lk_op_setup *setup,
                                       const struct lk_op_run *run)
{
    return turn(setup, false, run->x[0], run->y);
}

static enum lk_status backward_to_batch(const struct lk_op_setup *setup,
                                        const struct lk_op_run *run)
{
    return turn(setup, true, run->dy, run->dx[0]);
}

static const struct lk_option no_options[] = {{0}};
static const struct lk_op to_planes = {.name = "to_planes",
                                       .options = no_options,
                                       .min_inputs = 1,
                                       .max_inputs = 1,
                                       .planes = LK_PLANES_KNOWN,
                                       .prepare = prepare_turning,
                                       .forward = forward_to_planes,
                                       .backward = backward_to_planes};
static const struct lk_op to_batch = {.name = "to_batch",
                                      .options = no_options,
                                      .min_inputs = 1,
                                      .max_inputs = 1,
                                      .planes = LK_PLANES_KNOWN,
                                      .prepare = prepare_turning,
                                      .forward = forward_to_batch,
                                      .backward = backward_to_batch};

/* --- which operations -------------------------------------------------------------------- */

/* Images alone, of real numbers, of which an operation that knows no planes has one size. */
static bool can_compute(const struct lk_schedule *schedule, int i)
{
    const struct lk_scheduled_op *s = &schedule->ops[i];
    const struct lk_shape *y = &s->shapes.y;
    if (!s->op->trains_planes || y->rank != 3 ||
        !lk_shape_equal(y, &schedule->values[s->y].shape))
        return false;
    for (int j = 0; j < s->shapes.inputs; j++) {
        const struct lk_shape *x = &s->shapes.x[j];
        const bool is_even = x->dim[1] == y->dim[1] && x->dim[2] == y->dim[2];
        if (x->rank != 3 || s->shapes.x_dtype[j] != LK_F32 ||
            !lk_shape_equal(x, &schedule->values[s->x[j]].shape) ||
            (s->op->planes == LK_PLANES_OWN && !is_even))
            return false;
    }
    return true;
}

/* Outputs have to lie in batch tiles: what makes one computes it so. */
bool lk_schedule_has_planes(const struct lk_schedule *schedule, int i)
{
    return can_compute(schedule, i) && !lk_schedule_is_output(schedule, schedule->ops[i].y);
}

/* Worth it where plane tiles have most of the work: what turns images costs as much as the
 * lanes that it leaves out. */
bool lk_schedule_trains_planes(const struct lk_schedule *s)
{
    double all = 0, able = 0;
    for (int i = 0; i < s->op_count; i++) {
        all += s->ops[i].shapes.flops;
        able += can_compute(s, i) ? s->ops[i].shapes.flops : 0;
    }
    return able > all / 2;
}

bool lk_devices_take_planes(struct lk_device *const *devices, int count)
{
    for (int i = 0; i < count; i++)
        if (lk_device_info(devices[i])->vector < 4)
            return false;
    return true;
}

bool lk_replica_trains_planes(const struct lk_replica *replica)
{
    const struct lk_replica_config *c = &replica->config;
    return c->few_samples && c->training && !c->stores_half && c->part == LK_PART_ALL &&
           lk_devices_take_planes(&c->device, 1) &&
           lk_schedule_trains_planes(&replica->schedule);
}

enum lk_status lk_planes_are_trained(const struct lk_node *loss, bool *are)
{
    struct lk_schedule schedule = {0};
    LK_TRY(lk_schedule_make((const struct lk_node *[]){loss, NULL}, true, &schedule));
    *are = lk_schedule_trains_planes(&schedule);
    lk_schedule_clear(&schedule);
    return LK_OK;
}

bool lk_replica_has_planes(const struct lk_replica *replica)
{
    return replica->tiling.planes || replica->planes.planes;
}

/* --- the schedule ------------------------------------------------------------------------ */

/* The value, made by an operation in place `at` that turns `from`. In a group it is computed
 * where its input was made, or, of an input of the graph, where it is read. */
static int insert_turning(struct lk_schedule *schedule, int at, int from)
{
    const struct lk_value source = schedule->values[from];
    const struct lk_node *reader = schedule->ops[at].node;
    const int to = schedule->value_count++;
    memmove(&schedule->ops[at + 1], &schedule->ops[at],
            (size_t)(schedule->op_count++ - at) * sizeof schedule->ops[0]);
    schedule->values[to] = (struct lk_value){.shape = source.shape,
                                             .dtype = source.dtype,
                                             .wants_gradient = source.wants_gradient,
                                             .in_planes = !source.in_planes};
    schedule->ops[at] = (struct lk_scheduled_op){
        .node = source.producer >= 0 ? schedule->ops[source.producer].node : reader,
        .op = source.in_planes ? &to_batch : &to_planes,
        .shapes = {.inputs = 1, .x = {source.shape}, .x_dtype = {LK_F32}, .y = source.shape},
        .x = {from},
        .y = to,
        .wants_dx = {source.wants_gradient},
        .has_backward = source.wants_gradient,
        .in_planes = true};
    for (int i = at; i < schedule->op_count; i++)
        schedule->values[schedule->ops[i].y].producer = i;
    return to;
}

/* Input j of operation i, which lies otherwise, is turned before it; so it is for all readers
 * behind. An input of the graph is turned for each reader: places that read it do not wait for
 * each other. */
static void turn_input(struct lk_schedule *schedule, int i, int j)
{
    const int from = schedule->ops[i].x[j], to = insert_turning(schedule, i, from);
    const int end = schedule->values[from].input ? i + 2 : schedule->op_count;
    for (int k = i + 1; k < end; k++) {
        struct lk_scheduled_op *s = &schedule->ops[k];
        for (int l = 0; l < s->shapes.inputs; l++)
            if (s->x[l] == from && s->in_planes == schedule->values[to].in_planes) {
                s->x[l] = to;
                s->asks_gate[l] = false;
            }
    }
}

void lk_schedule_turn_planes(struct lk_schedule *schedule)
{
    for (int i = 0; i < schedule->op_count; i++) {
        struct lk_scheduled_op *s = &schedule->ops[i];
        s->in_planes = lk_schedule_has_planes(schedule, i);
        schedule->values[s->y].in_planes = s->in_planes;
    }
    for (int i = 0; i < schedule->op_count; i++)
        for (int j = 0; j < schedule->ops[i].shapes.inputs; j++) {
            const struct lk_scheduled_op *s = &schedule->ops[i];
            const bool turns = s->op == &to_planes || s->op == &to_batch;
            const struct lk_value *x = &schedule->values[s->x[j]];
            if (!turns && x->in_planes != s->in_planes)
                turn_input(schedule, i, j);
        }
}

void lk_replica_turn_planes(struct lk_replica *replica)
{
    const struct lk_replica_config *c = &replica->config;
    replica->planes = lk_tiling_make_planes(lk_device_info(c->device), c->batch, c->shards);
    lk_schedule_turn_planes(&replica->schedule);
}

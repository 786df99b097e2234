/* Direct sums forward and of the data gradient: one gather forward, one for each phase of the
 * strides in the data gradient, by either of two kernels. */
#include "products/direct/direct.h"

#include "base/fail.h"
#include <stdio.h>

struct direct {
    const struct lk_direct_kind *way;
    enum lk_pass pass;
    struct lk_direct_gather *gathers; /* one after another */
    int gather_count;
};

static int64_t greatest_divisor(int64_t a, int64_t b)
{
    return b ? greatest_divisor(b, a % b) : a;
}

/* Every stride-th input from number `phase` on takes part in products with the same taps.
 * `first`: the last of them; `every`: the distance between them. */
static struct lk_product_axis phase_axis(const struct lk_product_axis *axis, int64_t phase,
                                         int64_t *first, int64_t *every)
{
    struct lk_product_axis made = {.in = axis->out, .stride = 1, .gap = 1};
    const int64_t common = greatest_divisor(axis->stride, axis->gap);
    made.out = (axis->in - phase + axis->stride - 1) / axis->stride;
    *every = axis->stride / common;
    *first = 0;
    for (int64_t r = 0; r < axis->taps; r++)
        if ((phase + axis->pad - r * axis->gap) % axis->stride == 0) {
            made.taps++;
            *first = r;
        }
    if (made.taps > 0) {
        made.gap = axis->gap / common;
        made.pad = (*first * axis->gap - phase - axis->pad) / axis->stride;
    }
    return made;
}

static void describe_phase(const struct lk_product_shape *s, int64_t y, int64_t x,
                           struct lk_direct_gather *made)
{
    const int64_t all = s->filters * s->groups, column = all, row = s->axis[1].taps * all;
    int64_t first[2], every[2];
    *made = (struct lk_direct_gather){
        .axis = {phase_axis(&s->axis[0], y, &first[0], &every[0]),
                 phase_axis(&s->axis[1], x, &first[1], &every[1])},
        .groups = s->groups,
        .ins = s->filters,
        .outs = s->channels,
        .out_stride = {s->axis[0].stride, s->axis[1].stride},
        .out_first = {y, x},
        .plane_width = s->axis[1].in,
        .plane = s->axis[0].in * s->axis[1].in,
        .fills = y == 0 && x == 0 && s->axis[0].taps == 1 && s->axis[1].taps == 1};
    made->from = (struct lk_direct_taps){.group_stride = s->filters,
                                         .out_stride = s->axis[0].taps * row,
                                         .in_stride = 1,
                                         .first = first[0] * row + first[1] * column,
                                         .row_stride = -every[0] * row,
                                         .column_stride = -every[1] * column};
}

void lk_direct_describe_forward(const struct lk_product_shape *s, struct lk_direct_gather *made)
{
    const int64_t all = s->filters * s->groups, row = s->axis[1].taps * all;
    const int64_t height = s->axis[0].out >> s->pool, width = s->axis[1].out >> s->pool;
    *made = (struct lk_direct_gather){.axis = {s->axis[0], s->axis[1]},
                                      .groups = s->groups,
                                      .ins = s->channels,
                                      .outs = s->filters,
                                      .out_stride = {1, 1},
                                      .plane_width = width,
                                      .plane = height * width,
                                      .pool = s->pool,
                                      .ends = s};
    made->from = (struct lk_direct_taps){.group_stride = s->filters,
                                         .out_stride = 1,
                                         .in_stride = s->axis[0].taps * row,
                                         .row_stride = row,
                                         .column_stride = all};
}

int lk_direct_phases(const struct lk_product_shape *s)
{
    return (int)(lk_least(s->axis[0].stride, s->axis[0].in) *
                 lk_least(s->axis[1].stride, s->axis[1].in));
}

void lk_direct_describe_phase(const struct lk_product_shape *s, int number,
                              struct lk_direct_gather *made)
{
    const int64_t across = lk_least(s->axis[1].stride, s->axis[1].in);
    describe_phase(s, number / across, number % across, made);
}

/* Where taps are single, only the first phase has products: it writes 0 for the others. */
static enum lk_status prepare(const struct lk_product_setup *setup, struct lk_product_job *job,
                              const struct lk_direct_kind *way, void **state)
{
    const bool forward = job->pass == LK_PASS_FORWARD;
    const int count =
        forward || way == &lk_direct_pointwise_kind ? 1 : lk_direct_phases(job->shape);
    void *gathers;
    LK_TRY(lk_arena_allocate(setup->arena, sizeof(struct direct), state));
    LK_TRY(lk_arena_allocate(setup->arena, (size_t)count * sizeof(struct lk_direct_gather),
                             &gathers));
    struct direct *direct = *state;
    *direct = (struct direct){.way = way, .pass = job->pass, .gathers = gathers};
    for (int i = 0; i < count; i++) {
        struct lk_direct_gather *g = &direct->gathers[direct->gather_count++];
        if (forward)
            lk_direct_describe_forward(job->shape, g);
        else
            lk_direct_describe_phase(job->shape, i, g);
        g->keeps = forward && job->weights_stay;
        g->packed_first = g->keeps ? job->packed_first + job->packed : job->first + job->count;
        g->blocking = job->blocking;
        g->is_gated = job->is_gated;
        LK_TRY(way->prepare(setup, g));
        *(g->keeps ? &job->packed : &job->count) += g->packed_count;
    }
    return LK_OK;
}

static enum lk_status enqueue(const struct lk_product_setup *setup, void *state,
                              const struct lk_product_run *run)
{
    const struct direct *direct = state;
    const bool forward = direct->pass == LK_PASS_FORWARD;
    const struct lk_direct_gather_run gather = {
        .x = forward ? run->x : run->dz,
        .x_first = forward ? 0 : run->dz_first,
        .w = run->w,
        .bias = forward ? run->bias : NULL,
        .gate = forward ? run->more : run->x,
        .norms = run->norms,
        .y = forward ? run->y : run->dx,
        .at = forward ? run->at : NULL,
        .packed = direct->gathers[0].keeps ? run->packed : run->workspace,
        .weights_are_new = run->weights_are_new};
    for (int i = 0; i < direct->gather_count; i++)
        LK_TRY(direct->way->enqueue(setup, &direct->gathers[i], &gather));
    return LK_OK;
}

/* Without local memory, a GPU waits for its caches: each block of filters reads all inputs. */
static double gpu_cost(const struct lk_product_setup *setup, const struct lk_product_job *job)
{
    const struct lk_product_shape *s = job->shape;
    struct lk_direct_gather g;
    if (job->pass == LK_PASS_FORWARD)
        lk_direct_describe_forward(s, &g);
    else
        lk_direct_describe_phase(s, 0, &g);
    g.blocking = "";
    lk_direct_choose_block(setup, &g);
    const int64_t blocks = lk_divide_up(g.outs, g.block.rows);
    const double adds = lk_product_adds(s) / (double)g.outs * (double)(blocks * g.block.rows);
    const double items = (double)(blocks * g.groups * (g.axis[0].out >> g.pool) *
                                  setup->tiling.shard_tiles * setup->tiling.lanes);
    return adds * (1 / 0.25 + LK_GPU_CACHE / (double)g.block.rows) *
           lk_product_idleness(setup, items);
}

static double cost(const struct lk_product_setup *setup, const struct lk_product_job *job)
{
    return setup->tiling.vector == 1 ? gpu_cost(setup, job)
                                     : lk_product_adds(job->shape) / 0.85;
}

/* Filters x columns whose sums fill the registers. */
static bool blocking(const struct lk_product_setup *setup, const struct lk_product_job *job,
                     int index, char text[LK_BLOCKING_BYTES])
{
    static const int blocks[] = {12, 6, 4, 3, 2};
    const int sums = lk_direct_gather_sums(setup), count = (int)LK_COUNT(blocks);
    if (setup->tiling.vector == 1 || job->shape->pool || index >= count)
        return false;
    snprintf(text, LK_BLOCKING_BYTES, "%dx%d", blocks[index], sums / blocks[index]);
    return true;
}

static enum lk_status prepare_gather(const struct lk_product_setup *setup,
                                     struct lk_product_job *job, void **state)
{
    return prepare(setup, job, &lk_direct_gather_kind, state);
}

const struct lk_product_verbs lk_direct_gather_verbs = {
    .cost = cost, .blocking = blocking, .prepare = prepare_gather, .enqueue = enqueue};

static bool fits_pointwise(const struct lk_product_setup *setup,
                           const struct lk_product_job *job)
{
    struct lk_direct_gather g;
    if (job->pass == LK_PASS_FORWARD)
        lk_direct_describe_forward(job->shape, &g);
    else
        lk_direct_describe_phase(job->shape, 0, &g);
    return lk_direct_is_pointwise(setup, &g);
}

static enum lk_status prepare_pointwise(const struct lk_product_setup *setup,
                                        struct lk_product_job *job, void **state)
{
    return prepare(setup, job, &lk_direct_pointwise_kind, state);
}

const struct lk_product_verbs lk_direct_pointwise_verbs = {.fits = fits_pointwise,
                                                           .cost = cost,
                                                           .blocking = blocking,
                                                           .prepare = prepare_pointwise,
                                                           .enqueue = enqueue};

/* The weight gradient of depthwise convolutions of the GPU class, in strips of rows. See
 * cl/products/direct/depthwise_weights.cl. */
#include "products/kernel/geometry.h"
#include "products/kernel/partial_sums.h"

#include "base/fail.h"
#include <stdio.h>

enum {
    MOST_TAPS = 49, /* that are unrolled */
    GROUPS =
        8192 /* work-groups of a shard, if its strips are as many: a large GPU holds half */
};

/* Blocks whose sums and pixels fit into registers of all vendors. */
static const struct block {
    int64_t most_taps;
    struct lk_product_block of; /* rows of a strip, columns of a block */
} blocks[] = {{16, {4, 4}}, {25, {2, 4}}, {MOST_TAPS, {2, 2}}};

struct sums {
    int64_t channels, part_strips;
    struct lk_partial_sums parts;
    struct lk_kernel *kernel;
};

static bool fits(const struct lk_product_setup *setup, const struct lk_product_job *job)
{
    const struct lk_product_shape *s = job->shape;
    (void)setup;
    return s->groups > 1 && s->channels == 1 && s->filters == 1 &&
           s->axis[0].taps * s->axis[1].taps <= MOST_TAPS;
}

static double cost(const struct lk_product_setup *setup, const struct lk_product_job *job)
{
    (void)setup;
    return lk_product_adds(job->shape);
}

/* Strips, blocks and parts decide the order of sums: they follow from the shape and the shard
 * alone. */
static struct lk_product_block choose_parts(const struct lk_product_setup *setup,
                                            const struct lk_product_shape *s, struct sums *sums)
{
    const int64_t taps = s->axis[0].taps * s->axis[1].taps;
    int i = 0;
    while (taps > blocks[i].most_taps)
        i++;
    const int64_t strips =
        setup->tiling.shard_tiles * lk_divide_up(s->axis[0].out, blocks[i].of.rows);
    sums->channels = s->groups;
    sums->part_strips = lk_divide_up(strips, lk_divide_up(GROUPS, s->groups));
    sums->parts.parts = lk_divide_up(strips, sums->part_strips);
    sums->parts.count = s->groups * taps;
    return blocks[i].of;
}

static enum lk_status prepare(const struct lk_product_setup *setup, struct lk_product_job *job,
                              void **state)
{
    const struct lk_geometry numbers = lk_geometry_of(job->shape->axis);
    char geometry[LK_GEOMETRY_BYTES], text[LK_GEOMETRY_BYTES + 48];
    LK_TRY(lk_arena_allocate(setup->arena, sizeof(struct sums), state));
    struct sums *sums = *state;
    const struct lk_product_block block = choose_parts(setup, job->shape, sums);
    sums->parts.first = job->first;
    lk_geometry_print(&numbers, LK_GEOMETRY_ALL, geometry);
    snprintf(text, sizeof text, "%s -DSTRIP=%d -DCOLUMNS=%d", geometry, block.rows,
             block.columns);
    LK_TRY(lk_product_kernel(setup, "products/direct/depthwise_weights",
                             "conv2d_depthwise_sums", text, &sums->kernel));
    return lk_partial_sums_prepare(setup, &sums->parts, &job->count);
}

static enum lk_status enqueue(const struct lk_product_setup *setup, void *state,
                              const struct lk_product_run *run)
{
    const struct sums *sums = state;
    const struct lk_tiling *t = &setup->tiling;
    const struct lk_grid grid = {{sums->channels * sums->parts.parts * t->shards, 1, 1},
                                 lk_product_items(setup)};
    const int64_t taps = sums->parts.count / sums->channels;
    LK_TRY(LK_ENQUEUE(sums->kernel, grid, LK_BUF(run->x), LK_BUF(run->dz),
                      LK_INT(run->dz_first),
                      LK_PARTIAL_SUMS_TO(&sums->parts, run->workspace, run->dw, run->dw_stride),
                      LK_INT(sums->channels), LK_INT(t->shard_tiles), LK_INT(sums->part_strips),
                      LK_LOCAL(taps * (t->lanes + 1) * (int64_t)lk_dtype_bytes(setup->real))));
    return lk_partial_sums_enqueue(setup, &sums->parts, run->workspace, run->dw,
                                   run->dw_stride);
}

const struct lk_product_verbs lk_direct_depthwise_weights = {
    .fits = fits, .cost = cost, .prepare = prepare, .enqueue = enqueue};

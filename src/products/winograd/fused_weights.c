/* Winograd weight gradient of layers whose sums fit in a second-level cache: blocks, parts,
 * launches. See cl/products/winograd/fused_weights.cl. */
#include "products/kernel/partial_sums.h"
#include "products/winograd/winograd.h"

#include "base/fail.h"
#include <stdio.h>

/* Parts decide the order of sums: they follow from the shape and the class alone. */
enum {
    PAD = 4, /* as in the kernel */
    BLOCK_FILTERS = 64,
    SUMS_BYTES = 320 << 10,
    MOST_BLOCKS = 4, /* more would transform the same numbers too often */
    MOST_PARTS = 16,
    LEAST_SQUARES = 16 /* of a part */
};

struct fused {
    struct lk_product_shape shape;
    int64_t tile, squares;         /* squares: of a shard */
    int source;                    /* as enum lk_gradient */
    struct lk_product_block block; /* channels x vectors of filters */
    int64_t panels, block_channels, blocks;
    int64_t groups, scratch_first;
    struct lk_partial_sums parts;
    struct lk_kernel *kernel;
};

static int64_t positions_of(const struct fused *w)
{
    return (w->tile + 2) * (w->tile + 2);
}

/* Blocks of filters, then as many channels as leave room for their sums. */
static void choose_blocks(const struct lk_product_setup *setup,
                          const struct lk_product_shape *s, struct fused *w)
{
    const int64_t vector = setup->tiling.vector, bytes = (int64_t)lk_dtype_bytes(setup->real);
    const int64_t vectors = lk_divide_up(s->filters, vector);
    const bool wide = vector * bytes == 64;
    w->block.columns = (int)lk_least(vectors, wide ? 4 : 2);
    w->block.rows = wide && w->block.columns <= 2 ? 8 : 4;
    const int64_t panel = w->block.columns * vector;
    const int64_t most = BLOCK_FILTERS / panel < 1 ? 1 : BLOCK_FILTERS / panel;
    const int64_t panels = lk_divide_up(s->filters, panel);
    const int64_t f_blocks = lk_divide_up(panels, most);
    w->panels = lk_divide_up(panels, f_blocks);
    int64_t fit = SUMS_BYTES / (positions_of(w) * w->panels * panel * bytes) / w->block.rows;
    fit = (fit < 1 ? 1 : fit) * w->block.rows;
    const int64_t c_blocks = lk_divide_up(s->channels, fit);
    w->block_channels =
        lk_divide_up(lk_divide_up(s->channels, c_blocks), w->block.rows) * w->block.rows;
    w->blocks = c_blocks * f_blocks;
}

/* Whether the sums fit where the kernel keeps them. */
static bool fits(const struct lk_product_setup *setup, const struct lk_product_job *job)
{
    struct fused w = {.tile = job->product->tile};
    if (setup->tiling.vector == 1 || !lk_winograd_fits(setup, job))
        return false;
    choose_blocks(setup, job->shape, &w);
    return w.blocks <= MOST_BLOCKS;
}

/* It goes over whole vectors of filters, and is half as fast with one. */
static double cost(const struct lk_product_setup *setup, const struct lk_product_job *job)
{
    const int64_t vectors = lk_divide_up(job->shape->filters, setup->tiling.vector);
    const int64_t filters = (vectors < 2 ? 2 : vectors) * setup->tiling.vector;
    return lk_winograd_cost(setup, job, (double)(job->shape->channels * filters), 20, 3.5);
}

static enum lk_status prepare(const struct lk_product_setup *setup, struct lk_product_job *job,
                              void **state)
{
    char text[128];
    const int64_t tile = job->product->tile;
    LK_TRY(lk_arena_allocate(setup->arena, sizeof(struct fused), state));
    struct fused *w = *state;
    const struct lk_product_shape *s = job->shape;
    const struct lk_tiling *t = &setup->tiling;
    w->shape = *s;
    w->tile = tile;
    w->source = (int)job->gradient;
    w->squares = lk_divide_up(s->axis[0].out, tile) * lk_divide_up(s->axis[1].out, tile) *
                 t->shard_tiles;
    choose_blocks(setup, s, w);
    const int64_t filters = w->panels * w->block.columns * t->vector;
    w->parts =
        (struct lk_partial_sums){.parts = lk_least(lk_divide_up(MOST_PARTS, w->blocks),
                                                   lk_divide_up(w->squares, LEAST_SQUARES)),
                                 .first = job->first,
                                 .count = 9 * s->channels * s->filters};
    int64_t of_parts;
    LK_TRY(lk_partial_sums_prepare(setup, &w->parts, &of_parts));
    of_parts = lk_divide_up(of_parts, 16) * 16;
    w->scratch_first = job->first + of_parts;
    w->groups = lk_least(lk_device_info(setup->device)->compute_units,
                         t->shards * w->parts.parts * w->blocks);
    job->count = of_parts + w->groups * positions_of(w) *
                                ((w->block_channels + 3 * PAD) * t->vector +
                                 filters * (t->vector + w->block_channels));
    snprintf(text, sizeof text, "-DTILE=%d -DSOURCE=%d -DROWS=%d -DCOLUMNS=%d -DPANELS=%d",
             (int)tile, w->source, w->block.rows, w->block.columns, (int)w->panels);
    return lk_product_kernel(setup, "products/winograd/fused_weights", "conv2d_winograd_fused",
                             text, &w->kernel);
}

static enum lk_status enqueue(const struct lk_product_setup *setup, void *state,
                              const struct lk_product_run *run)
{
    const struct fused *w = state;
    const struct lk_tiling *t = &setup->tiling;
    const struct lk_geometry geometry = lk_geometry_of(w->shape.axis);
    const struct lk_winograd_parts args = {.shards = t->shards,
                                           .shard_tiles = t->shard_tiles,
                                           .parts = w->parts.parts,
                                           .channels = w->shape.channels,
                                           .filters = w->shape.filters,
                                           .block_channels = w->block_channels};
    const struct lk_grid grid = {
        {lk_least(w->groups, t->shards * w->parts.parts * w->blocks), 1, 1},
        lk_product_items(setup)};
    const size_t stage = lk_winograd_stage_bytes(setup, w->tile);
    LK_TRY(LK_ENQUEUE(w->kernel, grid, LK_BUF(run->x), LK_BUF(run->dz), LK_INT(run->dz_first),
                      LK_BUF(w->source == LK_GRADIENT_MASKED ? run->y : NULL),
                      LK_BUF(w->source == LK_GRADIENT_POOLED ? run->at : NULL),
                      LK_PARTIAL_SUMS_TO(&w->parts, run->workspace, run->dw, run->dw_stride),
                      LK_BUF(run->workspace), LK_INT(w->scratch_first), LK_STRUCT(&args),
                      LK_STRUCT(&geometry), LK_LOCAL(stage)));
    return lk_partial_sums_enqueue(setup, &w->parts, run->workspace, run->dw, run->dw_stride);
}

const struct lk_product_verbs lk_winograd_fused_weights = {
    .fits = fits, .cost = cost, .prepare = prepare, .enqueue = enqueue};

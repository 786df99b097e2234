/* Winograd convolution of the GPU class: transforms, and between them products of matrices,
 * which the kernels of direct sums do as convolutions of single taps. See
 * cl/products/winograd/gpu.cl. */
#include "products/gpu/args.h"
#include "products/gpu/tile.h"
#include "products/kernel/geometry.h"
#include "products/winograd/winograd.h"

#include "base/fail.h"
#include <stdio.h>

enum {
    CHUNK = 8,
    TERMS_BYTES = 64 << 20, /* of a round */
};

struct gpu {
    struct lk_winograd_geometry g; /* of the forward pass for a weight gradient */
    bool of_weights;
    int64_t positions, squares;        /* squares: Winograd tiles of a batch tile */
    int64_t room, pitch;               /* Winograd tiles of a round; row of weights */
    int64_t shards;                    /* of a round, of a weight gradient */
    int64_t u_first, v_first, m_first; /* in the workspace; of a weight gradient, u is z */
    struct lk_gpu_tile tile;
    struct lk_kernel *inputs, *other, *products, *results; /* other: taps, or gradients */
};

/* A weight gradient adds a round's sums to those before it: rounds decide the order of
 * sums, and follow from the shape alone. Shards of one round have it together, as many as there
 * is room for with their sums: a launch takes as long as the work of a small one. */
static void choose_round(const struct lk_product_setup *setup, struct lk_product_job *job,
                         struct gpu *w)
{
    const struct lk_tiling *t = &setup->tiling;
    const int64_t row = (int64_t)t->lanes * w->positions;
    const int64_t bytes = (w->g.ins + w->g.outs) * row * (int64_t)lk_dtype_bytes(setup->real);
    const int64_t all = (w->of_weights ? t->shard_tiles : t->tiles) * w->squares;
    const int64_t most = TERMS_BYTES / bytes > 1 ? TERMS_BYTES / bytes : 1;
    w->room = lk_divide_up(all, lk_divide_up(all, most));
    const int64_t sums = w->positions * w->g.ins * w->pitch;
    const int64_t shard = bytes * all + sums * (int64_t)lk_dtype_bytes(setup->real);
    w->shards = w->of_weights && w->room == all && shard < TERMS_BYTES
                    ? lk_least(t->shards, TERMS_BYTES / shard)
                    : 1;
    const int64_t ins = w->g.ins * w->shards * w->room * row;
    const int64_t outs = w->g.outs * w->shards * w->room * row;
    const int64_t products = w->shards * sums;
    w->u_first = job->first;
    w->v_first = w->u_first + (w->of_weights ? outs : lk_divide_up(products, 16) * 16);
    w->m_first = w->v_first + ins;
    job->count = w->m_first - job->first + (w->of_weights ? products : outs);
}

/* A matrix for each position; `columns` are those of all Winograd tiles and lanes. */
static struct lk_gpu_product product_of(const struct gpu *w, int64_t columns)
{
    return (struct lk_gpu_product){.use = w->of_weights ? LK_GPU_WEIGHTS : LK_GPU_GATHER,
                                   .rows = w->of_weights ? w->g.ins : w->g.outs,
                                   .columns = w->of_weights ? w->g.outs : columns,
                                   .count = w->positions};
}

static enum lk_status prepare_products(const struct lk_product_setup *setup,
                                       const char *blocking, struct gpu *w)
{
    const struct lk_gpu_product product = product_of(w, w->room * setup->tiling.lanes);
    const int chunk = w->g.ins < CHUNK ? 1 : CHUNK;
    struct lk_product_setup terms = *setup;
    terms.stores_half = false;
    char tile[96], text[192];
    if (!lk_gpu_tile_choose(setup, &product, blocking, &w->tile))
        return lk_fail(LK_E_UNSUPPORTED, "%s: no tile fits the device", setup->node);
    lk_gpu_tile_print(&w->tile, 0, tile, sizeof tile);
    if (w->of_weights) {
        snprintf(text, sizeof text, "-DTAPS_Y=1 -DTAPS_X=1%s", tile);
        return lk_product_kernel(&terms, "products/gpu/weights", "conv2d_gpu_weights", text,
                                 &w->products);
    }
    snprintf(text, sizeof text,
             "-DTAPS_Y=1 -DTAPS_X=1 -DCHUNK=%d -DEVEN=%d -DRELU=0 -DPOOL=0%s", chunk,
             w->g.ins % chunk == 0 && w->g.ins % w->tile.depth == 0, tile);
    return lk_product_kernel(&terms, "products/gpu/gather", "conv2d_gpu", text, &w->products);
}

static void describe(const struct lk_product_job *job, struct gpu *w)
{
    const int64_t tile = job->product->tile;
    struct lk_product_job forward = *job;
    w->of_weights = job->pass == LK_PASS_WEIGHTS;
    if (w->of_weights)
        forward.pass = LK_PASS_FORWARD;
    lk_winograd_describe(&forward, tile, &w->g);
    if (w->of_weights)
        w->g.source = (int)job->gradient;
    w->positions = (tile + 2) * (tile + 2);
    w->squares = lk_winograd_squares(w->g.out, tile);
}

static enum lk_status prepare(const struct lk_product_setup *setup, struct lk_product_job *job,
                              void **state)
{
    const int64_t tile = job->product->tile;
    const char *file = "products/winograd/gpu";
    char plain[64], text[64];
    LK_TRY(lk_arena_allocate(setup->arena, sizeof(struct gpu), state));
    struct gpu *w = *state;
    describe(job, w);
    w->pitch = w->of_weights ? w->g.outs : lk_divide_up(w->g.outs, 4) * 4;
    choose_round(setup, job, w);
    LK_TRY(prepare_products(setup, job->blocking, w));
    snprintf(plain, sizeof plain, "-DTILE=%d -DSOURCE=0 -DPOOL=0", (int)tile);
    snprintf(text, sizeof text, "-DTILE=%d -DSOURCE=%d -DPOOL=%d%s", (int)tile, w->g.source,
             w->g.pool && !w->of_weights, w->g.is_gated ? " -DGATED=1" : "");
    LK_TRY(lk_product_kernel(setup, file, "conv2d_winograd_inputs",
                             w->of_weights ? plain : text, &w->inputs));
    LK_TRY(lk_product_kernel(
        setup, file, w->of_weights ? "conv2d_winograd_gradients" : "conv2d_winograd_taps", text,
        &w->other));
    return lk_product_kernel(
        setup, file, w->of_weights ? "conv2d_winograd_finish" : "conv2d_winograd_outputs", text,
        &w->results);
}

/* --- forward and data gradient --------------------------------------------------------- */

static enum lk_status enqueue_taps(const struct lk_product_setup *setup, const struct gpu *w,
                                   const struct lk_product_run *run)
{
    const struct lk_grid grid = {{w->g.ins, 1, 1}, lk_product_items(setup)};
    const struct lk_winograd_from from = lk_winograd_from(&w->g);
    return LK_ENQUEUE(w->other, grid, LK_BUF(run->w), LK_INT(w->g.w_first),
                      LK_BUF(run->workspace), LK_INT(w->u_first), LK_INT(w->pitch),
                      LK_STRUCT(&from));
}

/* Of single taps over an image of one row. */
static struct lk_geometry row_geometry(int64_t in, int64_t out)
{
    return (struct lk_geometry){.taps_y = 1,
                                .taps_x = 1,
                                .stride_y = 1,
                                .stride_x = 1,
                                .gap_y = 1,
                                .gap_x = 1,
                                .in_h = 1,
                                .in_w = in,
                                .out_h = 1,
                                .out_w = out};
}

/* u v, a matrix for each position: as many groups of channels in an image of one row. */
static enum lk_status enqueue_products(const struct lk_product_setup *setup,
                                       const struct gpu *w, const struct lk_product_run *run,
                                       int64_t count)
{
    const struct lk_grid grid = {{lk_divide_up(count * setup->tiling.lanes, w->tile.columns),
                                  lk_divide_up(w->g.outs, w->tile.rows), w->positions},
                                 lk_gpu_tile_items(&w->tile)};
    const struct lk_geometry geometry = row_geometry(w->room, count);
    const struct lk_gpu_gather args = {.tiles = 1,
                                       .channels = w->g.ins,
                                       .filters = w->g.outs,
                                       .w_group = w->g.ins * w->pitch,
                                       .w_pitch = w->pitch,
                                       .y_column = 1,
                                       .plane = w->room};
    return LK_ENQUEUE(w->products, grid, LK_BUF(run->workspace), LK_INT(w->v_first),
                      LK_BUF(run->workspace), LK_INT(w->u_first), LK_BUF(NULL),
                      LK_BUF(run->workspace), LK_INT(w->m_first), LK_BUF(NULL), LK_BUF(NULL),
                      LK_STRUCT(&args), LK_STRUCT(&geometry));
}

static enum lk_status enqueue_round(const struct lk_product_setup *setup, const struct gpu *w,
                                    const struct lk_product_run *run, int64_t first,
                                    int64_t count)
{
    const struct lk_winograd_geometry *g = &w->g;
    const struct lk_geometry numbers = lk_winograd_numbers(g);
    const struct lk_grid of_ins = {{count, g->ins, 1}, lk_product_items(setup)};
    const struct lk_grid of_outs = {{count, g->outs, 1}, lk_product_items(setup)};
    LK_TRY(LK_ENQUEUE(w->inputs, of_ins, LK_BUF(g->forward ? run->x : run->dz),
                      LK_INT(g->forward ? 0 : run->dz_first),
                      LK_BUF(g->source == LK_GRADIENT_MASKED ? run->y : NULL),
                      LK_BUF(g->source == LK_GRADIENT_POOLED ? run->at : NULL),
                      LK_BUF(run->workspace), LK_INT(w->v_first), LK_INT(first),
                      LK_INT(w->room), LK_STRUCT(&numbers)));
    LK_TRY(enqueue_products(setup, w, run, count));
    return LK_ENQUEUE(w->results, of_outs, LK_BUF(run->workspace), LK_INT(w->m_first),
                      LK_BUF(g->forward ? run->bias : NULL),
                      LK_BUF(g->forward ? run->y : run->dx),
                      LK_BUF(g->forward ? run->at : NULL), LK_BUF(g->is_gated ? run->x : NULL),
                      LK_INT(first), LK_INT(w->room), LK_INT(g->relu), LK_STRUCT(&numbers));
}

/* --- weight gradient ------------------------------------------------------------------- */

/* Of `shards` times `count` Winograd tiles. Rows are as long, so that a matrix is an image of
 * one row, of which a shard is a part. */
static enum lk_status enqueue_sums(const struct lk_product_setup *setup, const struct gpu *w,
                                   const struct lk_product_run *run, int64_t first,
                                   int64_t shards, int64_t count)
{
    const int64_t row = shards * count;
    const struct lk_winograd_geometry *g = &w->g;
    const struct lk_geometry numbers = lk_winograd_numbers(g);
    const struct lk_grid of_ins = {{row, g->ins, 1}, lk_product_items(setup)};
    const struct lk_grid of_outs = {{row, g->outs, 1}, lk_product_items(setup)};
    const struct lk_grid products = {{lk_divide_up(g->outs, w->tile.columns),
                                      lk_divide_up(g->ins, w->tile.rows),
                                      w->positions * shards},
                                     lk_gpu_tile_items(&w->tile)};
    const struct lk_geometry geometry = row_geometry(row, row);
    const struct lk_gpu_sums args = {.groups = 1,
                                     .channels = g->ins,
                                     .filters = g->outs,
                                     .shard_tiles = 1,
                                     .parts = shards,
                                     .run_pixels = row,
                                     .part_pixels = count};
    LK_TRY(LK_ENQUEUE(w->inputs, of_ins, LK_BUF(run->x), LK_INT(0), LK_BUF(NULL), LK_BUF(NULL),
                      LK_BUF(run->workspace), LK_INT(w->v_first), LK_INT(first), LK_INT(row),
                      LK_STRUCT(&numbers)));
    LK_TRY(LK_ENQUEUE(w->other, of_outs, LK_BUF(run->dz), LK_INT(run->dz_first),
                      LK_BUF(g->source == LK_GRADIENT_MASKED ? run->y : NULL),
                      LK_BUF(g->source == LK_GRADIENT_POOLED ? run->at : NULL),
                      LK_BUF(run->workspace), LK_INT(w->u_first), LK_INT(first), LK_INT(row),
                      LK_STRUCT(&numbers)));
    return LK_ENQUEUE(w->products, products, LK_BUF(run->workspace), LK_INT(w->v_first),
                      LK_BUF(run->workspace), LK_INT(w->u_first), LK_BUF(run->workspace),
                      LK_INT(w->m_first), LK_INT(g->ins * g->outs), LK_STRUCT(&args),
                      LK_STRUCT(&geometry));
}

static enum lk_status enqueue_weights(const struct lk_product_setup *setup, const struct gpu *w,
                                      const struct lk_product_run *run)
{
    const struct lk_tiling *t = &setup->tiling;
    const int64_t all = t->shard_tiles * w->squares;
    for (int64_t shard = 0; shard < t->shards; shard += w->shards)
        for (int64_t q = 0; q < all; q += w->room) {
            const int64_t shards = lk_least(w->shards, t->shards - shard);
            const struct lk_grid grid = {{w->g.ins, shards, 1}, lk_product_items(setup)};
            LK_TRY(enqueue_sums(setup, w, run, shard * all + q, shards,
                                lk_least(w->room, all - q)));
            LK_TRY(LK_ENQUEUE(w->results, grid, LK_BUF(run->workspace), LK_INT(w->m_first),
                              LK_BUF(run->dw), LK_INT(shard * run->dw_stride),
                              LK_INT(run->dw_stride), LK_INT(w->g.outs), LK_INT(q == 0)));
        }
    return LK_OK;
}

static enum lk_status enqueue(const struct lk_product_setup *setup, void *state,
                              const struct lk_product_run *run)
{
    const struct gpu *w = state;
    const int64_t all = setup->tiling.tiles * w->squares;
    if (w->of_weights)
        return enqueue_weights(setup, w, run);
    LK_TRY(enqueue_taps(setup, w, run));
    for (int64_t q = 0; q < all; q += w->room)
        LK_TRY(enqueue_round(setup, w, run, q, lk_least(w->room, all - q)));
    return LK_OK;
}

static bool fits(const struct lk_product_setup *setup, const struct lk_product_job *job)
{
    return setup->tiling.vector == 1 && lk_winograd_fits(setup, job);
}

/* Transforms wait for memory: four numbers of a channel and position. */
static double cost(const struct lk_product_setup *setup, const struct lk_product_job *job)
{
    struct gpu w;
    describe(job, &w);
    const struct lk_tiling *t = &setup->tiling;
    const struct lk_gpu_product product = product_of(&w, w.squares * t->shard_tiles * t->lanes);
    const double products = (double)(job->shape->channels * job->shape->filters) *
                            lk_gpu_tile_excess(setup, &product);
    const double shared = job->pass == LK_PASS_WEIGHTS ? 7 : 3.5;
    return lk_winograd_cost(setup, job, products, 4 * LK_GPU_MEMORY, shared);
}

const struct lk_product_verbs lk_winograd_gpu = {
    .fits = fits, .cost = cost, .prepare = prepare, .enqueue = enqueue};

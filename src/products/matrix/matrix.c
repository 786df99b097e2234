/* Products of matrices on batch tiles: blocks, launches. See cl/products/matrix/matrix.cl. */
#include "products/matrix/matrix.h"

#include "base/fail.h"
#include "products/gpu/gpu.h"
#include <math.h>
#include <stdio.h>

/* Of local memory, where half of it is as much, for so many rows of weights. */
enum { PACKED_BYTES = 24 << 10, PACKED_ROWS = 24 };

/* What kernels count kept reals in. */
enum { KEPT_REALS = 16 };

/* As many sums as the registers hold beside the operands: 24 where a vector fills a 64-byte
 * register, else 12, over no more columns than there are. */
static struct lk_product_block choose_block(const struct lk_product_setup *setup,
                                            int64_t columns)
{
    const size_t bytes = (size_t)setup->tiling.vector * lk_dtype_bytes(setup->real);
    const int sums = bytes == 64 ? 24 : 12;
    if (setup->tiling.vector == 1)
        return (struct lk_product_block){8, 1};
    struct lk_product_block block = {.columns = sums / 6};
    while (block.columns > 1 && block.columns / 2 >= columns)
        block.columns /= 2;
    block.rows = sums / block.columns < 12 ? sums / block.columns : 12;
    return block;
}

/* The chunks that `count` is cut into, of a multiple of `block` each, so that with `groups`
 * groups in other dimensions every compute unit has work. */
static int64_t choose_chunk(const struct lk_product_setup *setup, int64_t count, int64_t block,
                            int64_t groups)
{
    const struct lk_device_info *info = lk_device_info(setup->device);
    const int64_t all = info->compute_units * (setup->tiling.vector == 1 ? 32 : 8);
    const int64_t blocks = lk_divide_up(count, block), wanted = lk_divide_up(all, groups);
    return lk_divide_up(blocks, wanted < blocks ? wanted : blocks) * block;
}

/* What the gradients share: how wide a panel of turned gradients is. Each row of sums walks the
 * whole panel, which lies in a CPU's second-level cache: few columns leave more rows to a walk.
 */
static struct lk_product_block choose_panel(const struct lk_product_setup *setup, int64_t units,
                                            int64_t *panels)
{
    const int64_t lanes = setup->tiling.lanes;
    const int64_t columns = lk_divide_up(units, lanes);
    const struct lk_product_block block = choose_block(setup, columns < 2 ? columns : 2);
    *panels = lk_divide_up(units, block.columns * lanes);
    return block;
}

static enum lk_status panel_kernel(const struct lk_product_setup *setup, const char *name,
                                   bool is_masked, int64_t units, struct lk_kernel **kernel)
{
    char text[80];
    int64_t panels;
    const struct lk_product_block block = choose_panel(setup, units, &panels);
    snprintf(text, sizeof text, "-DRELU=%d -DROWS=%d -DCOLUMNS=%d", is_masked, block.rows,
             block.columns);
    return lk_product_kernel(setup, "products/matrix/matrix", name, text, kernel);
}

/* --- dz --------------------------------------------------------------------------------- */

enum lk_status lk_matrix_transpose_prepare(const struct lk_product_setup *setup,
                                           const struct lk_product_shape *shape,
                                           struct lk_matrix_transpose *turn)
{
    const int64_t lanes = setup->tiling.lanes, n = setup->tiling.tiles * lanes;
    turn->units = shape->filters;
    const struct lk_product_block block = choose_panel(setup, turn->units, &turn->panels);
    turn->count = turn->kept + ((turn->is_masked ? turn->units : 0) +
                                (turn->turns ? turn->panels * block.columns * lanes : 0)) *
                                   n;
    return panel_kernel(setup, "dense_gradient", turn->is_masked, turn->units, &turn->kernel);
}

enum lk_status lk_matrix_transpose_enqueue(const struct lk_product_setup *setup,
                                           const struct lk_matrix_transpose *turn,
                                           const struct lk_buffer *dy,
                                           const struct lk_buffer *y,
                                           struct lk_buffer *workspace)
{
    const struct lk_grid grid = {{turn->panels, setup->tiling.tiles, 1},
                                 lk_product_items(setup)};
    return LK_ENQUEUE(turn->kernel, grid, LK_BUF(dy), LK_BUF(turn->is_masked ? y : NULL),
                      LK_BUF(workspace), LK_INT(turn->units), LK_INT(setup->tiling.tiles),
                      LK_INT(turn->turns), LK_INT(turn->kept / KEPT_REALS));
}

/* --- forward and data gradient ---------------------------------------------------------- */

struct product {
    struct lk_product_shape shape;
    bool forward;
    struct lk_product_block block;
    int pieces;
    struct lk_kernel *kernel;
};

/* Weights go through local memory a slice of the depth at a time, and between slices y keeps
 * the sums. Halves could not without rounding them, so where activations are halves nothing is
 * packed. */
static bool is_packed(const struct lk_product_setup *setup, bool forward)
{
    return forward && setup->tiling.vector > 1 && !setup->stores_half;
}

static size_t packed_bytes(const struct lk_product_setup *setup)
{
    const size_t half = lk_device_info(setup->device)->local_bytes / 2;
    return half < PACKED_BYTES ? half : PACKED_BYTES;
}

static enum lk_status prepare_product(const struct lk_product_setup *setup,
                                      struct lk_product_job *job, void **state)
{
    char text[160];
    LK_TRY(lk_arena_allocate(setup->arena, sizeof(struct product), state));
    struct product *p = *state;
    p->shape = *job->shape;
    p->forward = job->pass == LK_PASS_FORWARD;
    p->block = choose_block(setup, setup->tiling.tiles);
    p->pieces = setup->tiling.vector > 1 ? PACKED_ROWS / p->block.rows : 1;
    const size_t row = packed_bytes(setup) / PACKED_ROWS;
    const int depth =
        setup->stores_half ? INT32_MAX / 2 : (int)(row / lk_dtype_bytes(setup->real));
    snprintf(text, sizeof text,
             "-DFORWARD=%d -DBIAS=%d -DROWS=%d -DCOLUMNS=%d -DPIECES=%d -DDEPTH=%d -DPACK=%d",
             p->forward, p->forward && p->shape.bias, p->block.rows, p->block.columns,
             p->pieces, depth, is_packed(setup, p->forward));
    return lk_product_kernel(setup, "products/matrix/matrix", "dense_product", text,
                             &p->kernel);
}

static enum lk_status enqueue_product(const struct lk_product_setup *setup, void *state,
                                      const struct lk_product_run *run)
{
    const struct product *p = state;
    const size_t real = lk_dtype_bytes(setup->real);
    const size_t local = is_packed(setup, p->forward) ? packed_bytes(setup) : real;
    const double least = p->forward && p->shape.relu ? 0 : -INFINITY;
    const int64_t rows = p->forward ? p->shape.filters : p->shape.channels;
    const int64_t depth = p->forward ? p->shape.channels : p->shape.filters;
    const int64_t blocks = lk_divide_up(rows, (int64_t)p->pieces * p->block.rows);
    const int64_t tiles = setup->tiling.tiles;
    const int64_t chunk = choose_chunk(setup, tiles, p->block.columns, blocks);
    const struct lk_grid grid = {{blocks, lk_divide_up(tiles, chunk), 1},
                                 lk_product_items(setup)};
    return LK_ENQUEUE(p->kernel, grid, LK_BUF(run->w), LK_BUF(p->forward ? run->bias : NULL),
                      LK_BUF(p->forward ? run->x : run->dz),
                      LK_BUF(p->forward ? run->y : run->dx), LK_REAL(least), LK_INT(rows),
                      LK_INT(depth), LK_INT(tiles), LK_INT(chunk), LK_LOCAL(local));
}

static void release_product(void *state)
{
    lk_kernel_destroy(((struct product *)state)->kernel);
}

static bool fits(const struct lk_product_setup *setup, const struct lk_product_job *job)
{
    return job->shape->is_matrix && !lk_gpu_takes_matrix(setup, job->shape);
}

/* Of the peak, what products with few columns reach. */
static double cost(const struct lk_product_setup *setup, const struct lk_product_job *job)
{
    return lk_product_adds(job->shape) / (setup->tiling.vector == 1 ? 0.25 : 0.75);
}

const struct lk_product_verbs lk_matrix_product = {.fits = fits,
                                                   .cost = cost,
                                                   .prepare = prepare_product,
                                                   .enqueue = enqueue_product,
                                                   .release = release_product};

/* --- weight gradient -------------------------------------------------------------------- */

struct weights {
    struct lk_product_shape shape;
    struct lk_product_block block;
    int64_t panels, kept;
    struct lk_kernel *weights, *bias;
};

static enum lk_status prepare_weights(const struct lk_product_setup *setup,
                                      struct lk_product_job *job, void **state)
{
    LK_TRY(lk_arena_allocate(setup->arena, sizeof(struct weights), state));
    struct weights *w = *state;
    const bool is_masked = job->gradient == LK_GRADIENT_MASKED;
    w->shape = *job->shape;
    w->block = choose_panel(setup, w->shape.filters, &w->panels);
    w->kept = job->kept;
    job->gives_db = true;
    LK_TRY(panel_kernel(setup, "dense_weight", is_masked, w->shape.filters, &w->weights));
    if (!w->shape.bias)
        return LK_OK;
    return panel_kernel(setup, "dense_bias", is_masked, w->shape.filters, &w->bias);
}

static enum lk_status enqueue_weights(const struct lk_product_setup *setup, void *state,
                                      const struct lk_product_run *run)
{
    const struct weights *w = state;
    const struct lk_tiling *t = &setup->tiling;
    const int64_t channels = w->shape.channels, units = w->shape.filters;
    const int64_t chunk = choose_chunk(setup, channels, w->block.rows, w->panels * t->shards);
    const int items = lk_product_items(setup);
    const struct lk_grid grid = {{w->panels, lk_divide_up(channels, chunk), t->shards}, items};
    const struct lk_grid of_bias = {{w->panels, t->shards, 1}, items};
    LK_TRY(LK_ENQUEUE(w->weights, grid, LK_BUF(run->x), LK_BUF(run->workspace), LK_BUF(run->dw),
                      LK_INT(channels), LK_INT(units), LK_INT(t->tiles), LK_INT(t->shard_tiles),
                      LK_INT(run->dw_stride), LK_INT(chunk), LK_INT(w->kept / KEPT_REALS)));
    if (!run->db)
        return LK_OK;
    return LK_ENQUEUE(w->bias, of_bias, LK_BUF(run->workspace), LK_BUF(run->db), LK_INT(units),
                      LK_INT(t->tiles), LK_INT(t->shard_tiles), LK_INT(run->dw_stride),
                      LK_INT(w->kept / KEPT_REALS));
}

static void release_weights(void *state)
{
    struct weights *w = state;
    lk_kernel_destroy(w->weights);
    lk_kernel_destroy(w->bias);
}

const struct lk_product_verbs lk_matrix_weights = {.fits = fits,
                                                   .cost = cost,
                                                   .prepare = prepare_weights,
                                                   .enqueue = enqueue_weights,
                                                   .release = release_weights};

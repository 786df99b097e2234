/* Products of matrices on batch tiles, forward and their data gradient: blocks, launches. See
 * cl/products/matrix/matrix.cl. */
#include "products/matrix/matrix.h"

#include "base/fail.h"
#include "products/gpu/gpu.h"
#include <math.h>
#include <stdio.h>

/* Of local memory, where half of it is as much, for so many rows of weights. */
enum { PACKED_BYTES = 24 << 10, PACKED_ROWS = 24 };

/* Of x, in a CPU's second-level cache; tiles that are worth packing weights once more. */
enum { CACHED_BYTES = 768 << 10, CACHED_TILES = 32 };

struct lk_product_block lk_matrix_block(const struct lk_product_setup *setup, int64_t columns)
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

int64_t lk_matrix_chunk(const struct lk_product_setup *setup, int64_t count, int64_t block,
                        int64_t groups)
{
    const struct lk_device_info *info = lk_device_info(setup->device);
    const int64_t all = info->compute_units * (setup->tiling.vector == 1 ? 32 : 8);
    const int64_t blocks = lk_divide_up(count, block), wanted = lk_divide_up(all, groups);
    return lk_divide_up(blocks, wanted < blocks ? wanted : blocks) * block;
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
    p->block = lk_matrix_block(setup, setup->tiling.tiles);
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

/* Tiles that a group goes over: on a CPU so many of a sequence that x stays in the second-level
 * cache for the groups that take the same tiles. */
static int64_t choose_chunk(const struct lk_product_setup *setup, const struct product *p,
                            int64_t depth, int64_t groups)
{
    const int64_t bytes = depth * setup->tiling.lanes * (int64_t)lk_dtype_bytes(setup->real);
    const int64_t fit = CACHED_BYTES / bytes, most = fit < CACHED_TILES ? CACHED_TILES : fit;
    const int64_t chunk = lk_matrix_chunk(setup, setup->tiling.tiles, p->block.columns, groups);
    const int64_t even = lk_divide_up(chunk, lk_divide_up(chunk, most)), one = p->block.columns;
    return setup->tiling.vector == 1 ? chunk : lk_divide_up(even, one) * one;
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
    const int64_t chunk = choose_chunk(setup, p, depth, blocks);
    const struct lk_grid grid = {{blocks, lk_divide_up(tiles, chunk), 1},
                                 lk_product_items(setup)};
    return LK_ENQUEUE(p->kernel, grid, LK_BUF(run->w), LK_BUF(p->forward ? run->bias : NULL),
                      LK_BUF(p->forward ? run->x : run->dz),
                      LK_BUF(p->forward ? run->y : run->dx), LK_BUF(run->lengths),
                      LK_INT(setup->run_tiles), LK_REAL(least), LK_INT(rows), LK_INT(depth),
                      LK_INT(tiles), LK_INT(chunk), LK_LOCAL(local));
}

bool lk_matrix_fits(const struct lk_product_setup *setup, const struct lk_product_job *job)
{
    return job->shape->is_matrix && !lk_gpu_takes_matrix(setup, job->shape);
}

/* Of the peak, what products with few columns reach. */
double lk_matrix_cost(const struct lk_product_setup *setup, const struct lk_product_job *job)
{
    return lk_product_adds(job->shape) / (setup->tiling.vector == 1 ? 0.25 : 0.75);
}

const struct lk_product_verbs lk_matrix_product = {.fits = lk_matrix_fits,
                                                   .cost = lk_matrix_cost,
                                                   .prepare = prepare_product,
                                                   .enqueue = enqueue_product};

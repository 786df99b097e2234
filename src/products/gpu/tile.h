/* How a product of matrices is cut into blocks for the work-groups of a GPU:
 * cl/products/gpu/gemm.cl. Floor 3. Private to src/products.
 *
 * No choice changes the order of a sum, so each device may have its own. */
#ifndef LK_PRODUCTS_TILE_H
#define LK_PRODUCTS_TILE_H

#include "products/kernel/kernel.h"

/* A work-group does rows x columns results in slices of `depth` products, a work-item
 * block.rows x block.columns of them. */
struct lk_gpu_tile {
    int rows, columns, depth;
    struct lk_product_block block;
};

/* What is multiplied. The two kernels differ in local memory and in what compilers make of
 * them. */
enum lk_gpu_use { LK_GPU_GATHER, LK_GPU_WEIGHTS, LK_GPU_USES };

/* `count` products of rows x columns results. */
struct lk_gpu_product {
    enum lk_gpu_use use;
    int64_t rows, columns, count;
    int matrix; /* by the device's matrix units: see products/gpu/units.h; 0: not */
};

enum { LK_GPU_TILE_BYTES = 24 };

/* The tile for a product on the setup's device: the one called `wanted` where that fits its
 * work-groups and local memory, else, of those shipped for its vendor, the one that should take
 * least time. False: none fits, or the device is of the CPU class. */
bool lk_gpu_tile_choose(const struct lk_product_setup *setup,
                        const struct lk_gpu_product *product, const char *wanted,
                        struct lk_gpu_tile *tile);

/* How many times as long as whole blocks of the largest tile, and enough of them for a large
 * GPU, the product takes: results that blocks have too many, smaller blocks, compute units
 * without one. 0: none fits. */
double lk_gpu_tile_excess(const struct lk_product_setup *setup,
                          const struct lk_gpu_product *product);

/* The name, "128x128x8", of tile `index` of those that fit the device; false past the last. */
bool lk_gpu_tile_name(const struct lk_product_setup *setup,
                      const struct lk_gpu_product *product, int index,
                      char text[LK_GPU_TILE_BYTES]);

/* Work-items of a group. */
int lk_gpu_tile_items(const struct lk_gpu_tile *tile);

/* " -DBM=128 ...", and by which matrix units. */
void lk_gpu_tile_print(const struct lk_gpu_tile *tile, int matrix, char *text, size_t bytes);

#endif

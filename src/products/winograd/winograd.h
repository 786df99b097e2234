/* The parts of Winograd convolution: geometry, the weight gradient of the CPU class, all passes
 * of the GPU class. Floor 3. Private to src/products/winograd. `tile`: 2 or 4, outputs
 * along each side of a Winograd tile. */
#ifndef LK_PRODUCTS_WINOGRAD_H
#define LK_PRODUCTS_WINOGRAD_H

#include "products/kernel/geometry.h"
#include "products/kernel/kernel.h"
#include "products/winograd/args.h"

/* Forward, or a data gradient as a convolution of dz with turned taps. `transposed`: as the
 * transpose of the forward pass. */
struct lk_winograd_geometry {
    bool forward, transposed;
    int64_t tile, ins, outs, in[2], out[2], pad[2];
    int64_t w_first, in_stride, row_stride, column_stride,
        out_stride; /* elements of the parameter */
    bool relu, pool;
    bool is_gated; /* outputs are 0 where x is not > 0 */
    int source;    /* of the inputs, as enum lk_gradient */
};

void lk_winograd_describe(const struct lk_product_job *job, int64_t tile,
                          struct lk_winograd_geometry *geometry);

/* As kernels take it. */
struct lk_geometry lk_winograd_numbers(const struct lk_winograd_geometry *geometry);
struct lk_winograd_from lk_winograd_from(const struct lk_winograd_geometry *geometry);

/* Winograd tiles of a plane. */
int64_t lk_winograd_squares(const int64_t plane[2], int64_t tile);

/* Whether a data gradient of the CPU class is the transpose of the forward pass. */
bool lk_winograd_is_transposed(const struct lk_product_shape *shape, int64_t tile);

/* Local memory in which weight gradients of the CPU class turn the gradients of a tile. */
size_t lk_winograd_stage_bytes(const struct lk_product_setup *setup, int64_t tile);

/* Whether Winograd's algorithm can do the job at all, on any class. */
bool lk_winograd_fits(const struct lk_product_setup *setup, const struct lk_product_job *job);

/* Products at 0.8 of the peak, the transforms of inputs and outputs at `each` multiply-adds a
 * channel and position, and those of the weights or of their sums at `shared` a product, which
 * a shard's tiles share. products: of channels and filters that are computed. */
double lk_winograd_cost(const struct lk_product_setup *setup, const struct lk_product_job *job,
                        double products, double each, double shared);

#endif

/* The parts of Winograd convolution: geometry, the weight gradient of the CPU class, all passes
 * of the GPU class. Floor 4. Private to src/ops/conv2d_winograd*.c. `tile`: 2 or 4, outputs
 * along each side of a Winograd tile. */
#ifndef LK_OPS_CONV2D_WINOGRAD_H
#define LK_OPS_CONV2D_WINOGRAD_H

#include "ops/conv2d.h"

/* Forward, or a data gradient as a convolution of dz with turned taps. `transposed`: as the
 * transpose of the forward pass. */
struct lk_conv2d_winograd_geometry {
    bool forward, transposed;
    int64_t tile, ins, outs, in[2], out[2], pad[2];
    int64_t w_first, in_step, row_step, column_step, out_step; /* elements of the parameter */
    bool relu, pool;
    bool is_gated; /* outputs are 0 where x is not > 0 */
    int source;    /* of the inputs, as enum lk_conv2d_gradient */
};

void lk_conv2d_winograd_describe(const struct lk_conv2d_job *job, int64_t tile,
                                 struct lk_conv2d_winograd_geometry *geometry);

/* As the verbs of an algorithm. */
struct lk_conv2d_winograd_part {
    enum lk_status (*prepare)(struct lk_op_setup *setup, struct lk_conv2d_job *job,
                              int64_t tile, void **state);
    enum lk_status (*enqueue)(const struct lk_op_setup *setup, void *state,
                              const struct lk_conv2d_operands *run);
    void (*release)(void *state);
};

extern const struct lk_conv2d_winograd_part lk_conv2d_winograd_weights,
    lk_conv2d_winograd_fused, lk_conv2d_winograd_gpu;

/* Local memory in which weight gradients of the CPU class turn the gradients of a tile. */
size_t lk_conv2d_winograd_stage_bytes(const struct lk_op_setup *setup, int64_t tile);

/* Whether the weight gradient's sums fit where lk_conv2d_winograd_fused keeps them. */
bool lk_conv2d_winograd_fits(const struct lk_op_setup *setup,
                             const struct lk_conv2d_shape *shape, int64_t tile);

#endif

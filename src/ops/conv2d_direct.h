/* The parts of the direct algorithm of conv2d: the gather kernel and what stands in for it
 * where taps are single (forward and data gradient), and the weight gradient. Floor 4. Private
 * to src/ops/conv2d*.c. */
#ifndef LK_OPS_CONV2D_DIRECT_H
#define LK_OPS_CONV2D_DIRECT_H

#include "ops/conv2d.h"
#include "ops/conv2d_parts.h"

/* One use of the gather kernel: all outputs, or those of one phase. Offsets count reals. */
struct lk_conv2d_gather {
    struct lk_conv2d_axis axis[2];
    int64_t groups, ins, outs;                             /* channels of one group */
    int64_t out_step[2], out_first[2], plane_width, plane; /* where outputs go */
    bool relu, pool;
    bool is_gated;          /* outputs are 0 where the run's gate is not > 0 */
    bool stream;            /* outputs are written past the caches */
    bool fills;             /* other phases have no taps: it writes their outputs, 0, too */
    struct lk_conv2d_taps { /* where weights come from, in elements of the parameter */
        int64_t group_step, out_step, in_step, first, row_step, column_step;
    } from;
    int64_t packed_first, packed_count; /* packed weights in the workspace */
    int64_t packed_blocks;              /* blocks of filters that they are of */
    const char *blocking;               /* asked for: "filters x columns"; "": by rule */
    int block, columns;                 /* register block */
    bool pointwise;                     /* see lk_conv2d_is_pointwise() */
    bool in_place;                      /* which then reads weights where they are */
    struct lk_kernel *pack, *gather;
};

/* Sums that registers hold beside the operands. */
int lk_conv2d_gather_sums(const struct lk_op_setup *setup);

/* Single taps inside the image: a product of matrices, see cl/products/direct/pointwise.cl. */
enum { LK_CONV2D_PANEL = 3 }; /* pixels */
bool lk_conv2d_is_pointwise(const struct lk_op_setup *setup,
                            const struct lk_conv2d_gather *gather);
LK_MUST_CHECK enum lk_status lk_conv2d_pointwise_prepare(struct lk_op_setup *setup,
                                                         struct lk_conv2d_gather *gather);

/* The gathers of the forward pass and of the data gradient, one for each phase of the strides:
 * axes, channels, where outputs go and where weights come from. */
void lk_conv2d_describe_forward(const struct lk_conv2d_shape *shape,
                                struct lk_conv2d_gather *gather);
int lk_conv2d_phases(const struct lk_conv2d_shape *shape);
void lk_conv2d_describe_phase(const struct lk_conv2d_shape *shape, int number,
                              struct lk_conv2d_gather *gather);

/* Chooses the register block, announces the kernels. fails: LK_E_BUILD, LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_conv2d_gather_prepare(struct lk_op_setup *setup,
                                                      struct lk_conv2d_gather *gather);
void lk_conv2d_gather_release(struct lk_conv2d_gather *gather);

/* x: stored numbers from x_first on. */
struct lk_conv2d_gather_run {
    const struct lk_buffer *x, *w, *bias, *gate;
    struct lk_buffer *y, *at, *workspace;
    int64_t x_first;
};
/* So many blocks of filters, from number `block` on. */
LK_MUST_CHECK enum lk_status lk_conv2d_pointwise_enqueue(const struct lk_op_setup *setup,
                                                         const struct lk_conv2d_gather *gather,
                                                         const struct lk_conv2d_gather_run *run,
                                                         int64_t block, int64_t blocks);
LK_MUST_CHECK enum lk_status lk_conv2d_gather_enqueue(const struct lk_op_setup *setup,
                                                      const struct lk_conv2d_gather *gather,
                                                      const struct lk_conv2d_gather_run *run);

/* The weight gradient. even_share: the size of runs that `count` is cut into, as few as with
 * `most`, in multiples of `unit`, as even as can be. */
int64_t lk_conv2d_even_share(int64_t count, int64_t most, int64_t unit);
struct lk_conv2d_weights {
    enum lk_conv2d_gradient gradient;
    int64_t group_channels, group_filters; /* of a work-group */
    int64_t part_tiles;
    bool is_staged; /* sums and copied gradients are in local memory */
    struct lk_conv2d_parts parts;
    size_t sums_bytes, staged_bytes; /* local memory */
    bool products;                   /* then instead of part_tiles and group_filters: */
    int64_t vectors, wide,
        blocks; /* blocks of filters: `wide` of so many vectors, then of two */
    int64_t block_channels, blocks_each, strip, rows_each, areas_each;
    bool points; /* of these: single taps, for which inputs are copied */
    size_t copied_bytes;
    bool lanewise;                   /* instead of tiles and products: */
    int64_t unit_rows, unit_filters; /* register block */
    struct lk_conv2d_parts bias;     /* its gradient */
    struct lk_kernel *weights;
};

/* Groups of channels and filters, and parts of shards. */
struct lk_grid lk_conv2d_weights_grid(const struct lk_op_setup *setup,
                                      const struct lk_conv2d_shape *shape,
                                      const struct lk_conv2d_weights *weights);

/* Enough channels and filters for cl/products/direct/turned_weights.cl. */
bool lk_conv2d_are_products(const struct lk_op_setup *setup,
                            const struct lk_conv2d_shape *shape);
LK_MUST_CHECK enum lk_status lk_conv2d_products_prepare(struct lk_op_setup *setup,
                                                        const struct lk_conv2d_shape *shape,
                                                        struct lk_conv2d_weights *weights);
LK_MUST_CHECK enum lk_status lk_conv2d_products_enqueue(const struct lk_op_setup *setup,
                                                        const struct lk_conv2d_shape *shape,
                                                        const struct lk_conv2d_weights *weights,
                                                        const struct lk_conv2d_operands *run);

/* Few channels, or gradients of a pool, for cl/products/direct/lanewise_weights.cl, which gives
 * db too. */
bool lk_conv2d_is_lanewise(const struct lk_op_setup *setup, const struct lk_conv2d_shape *shape,
                           enum lk_conv2d_gradient gradient);
LK_MUST_CHECK enum lk_status lk_conv2d_lanewise_prepare(struct lk_op_setup *setup,
                                                        const struct lk_conv2d_shape *shape,
                                                        struct lk_conv2d_weights *weights);
LK_MUST_CHECK enum lk_status lk_conv2d_lanewise_enqueue(const struct lk_op_setup *setup,
                                                        const struct lk_conv2d_shape *shape,
                                                        const struct lk_conv2d_weights *weights,
                                                        const struct lk_conv2d_operands *run);

LK_MUST_CHECK enum lk_status lk_conv2d_weights_prepare(struct lk_op_setup *setup,
                                                       const struct lk_conv2d_shape *shape,
                                                       struct lk_conv2d_weights *weights);
void lk_conv2d_weights_release(struct lk_conv2d_weights *weights);

LK_MUST_CHECK enum lk_status lk_conv2d_weights_enqueue(const struct lk_op_setup *setup,
                                                       const struct lk_conv2d_shape *shape,
                                                       const struct lk_conv2d_weights *weights,
                                                       const struct lk_conv2d_operands *run);

#endif

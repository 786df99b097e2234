/* The parts of conv2d: its geometry, the gather kernel (forward and data gradient) and the
 * weight gradient. Floor 3. Private to src/ops/conv2d*.c. Knows no other operation. */
#ifndef LK_OPS_CONV2D_H
#define LK_OPS_CONV2D_H

#include "ops/op.h"
#include "ops/window.h"

enum { LK_CONV2D_NONE, LK_CONV2D_RELU };

/* What gradient the weight kernel finds in dy, and how it makes dz of it. */
enum lk_conv2d_gradient {
    LK_CONV2D_PLAIN,  /* dz = dy */
    LK_CONV2D_MASKED, /* dz = dy where y > 0 */
    LK_CONV2D_POOLED  /* dz = dy at the place that won its 2x2 pool */
};

struct lk_conv2d_options {
    int64_t filters, kernel[2], stride[2], dilation[2], groups;
    char padding[LK_PADDING_BYTES];
    bool bias, pool;
    int activation;
};

/* Along one axis. out: all_out outputs, less one that a pool drops. */
struct lk_conv2d_axis {
    int64_t in, out, all_out, taps, step, gap;
    int64_t pad; /* before the image; in a data gradient it may be negative */
};

struct lk_conv2d_shape {
    struct lk_conv2d_axis axis[2];     /* y, x */
    int64_t groups, channels, filters; /* of one group */
    bool relu, pool;
};

/* The geometry of a convolution. fails: LK_E_SHAPE, LK_E_ARGUMENT, saying which numbers */
LK_MUST_CHECK enum lk_status lk_conv2d_shape(const struct lk_conv2d_options *options,
                                             const struct lk_shape *x,
                                             struct lk_conv2d_shape *shape);

/* One use of the gather kernel: all outputs, or those of one phase. Offsets count reals. */
struct lk_conv2d_gather {
    struct lk_conv2d_axis axis[2];
    int64_t groups, ins, outs;                             /* channels of one group */
    int64_t out_step[2], out_first[2], plane_width, plane; /* where outputs go */
    bool relu, pool;
    struct lk_conv2d_taps { /* where weights come from, in elements of the parameter */
        int64_t group_step, out_step, in_step, first, row_step, column_step;
    } from;
    int64_t packed_first, packed_count; /* packed weights in the workspace */
    int block, columns;                 /* register block */
    int span;                           /* blocks of columns in a panel */
    int64_t depth;                      /* channels of a panel; 0: no panels */
    struct lk_kernel *pack, *gather;
};

/* Chooses the register block, announces the kernels. fails: LK_E_BUILD, LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_conv2d_gather_prepare(struct lk_op_setup *setup,
                                                      struct lk_conv2d_gather *gather);
void lk_conv2d_gather_release(struct lk_conv2d_gather *gather);

struct lk_conv2d_operands {
    const struct lk_buffer *x, *w, *bias;
    struct lk_buffer *y, *at, *workspace;
    int64_t x_first;
};
LK_MUST_CHECK enum lk_status lk_conv2d_gather_enqueue(const struct lk_op_setup *setup,
                                                      const struct lk_conv2d_gather *gather,
                                                      const struct lk_conv2d_operands *run);

/* The weight gradient. */
struct lk_conv2d_weights {
    enum lk_conv2d_gradient gradient;
    int64_t group_channels, group_filters; /* of a work-group */
    int64_t part_tiles, parts;             /* parts: of one shard */
    int64_t parts_first, count;            /* partial sums in the workspace; parameters */
    size_t sums_bytes, staged_bytes;       /* local memory */
    struct lk_kernel *weights, *total;
};

LK_MUST_CHECK enum lk_status lk_conv2d_weights_prepare(struct lk_op_setup *setup,
                                                       const struct lk_conv2d_shape *shape,
                                                       struct lk_conv2d_weights *weights);
void lk_conv2d_weights_release(struct lk_conv2d_weights *weights);

/* dw[0] of run from x and dz (dy, or the workspace at dz_first). */
LK_MUST_CHECK enum lk_status lk_conv2d_weights_enqueue(const struct lk_op_setup *setup,
                                                       const struct lk_conv2d_shape *shape,
                                                       const struct lk_conv2d_weights *weights,
                                                       const struct lk_op_run *run,
                                                       int64_t dz_first);

#endif

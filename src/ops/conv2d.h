/* The parts of conv2d: its geometry, what an algorithm is, and the direct one: the gather
 * kernel (forward and data gradient) and the weight gradient. Floor 3. Private to
 * src/ops/conv2d*.c, and to dense.c, which is a convolution of one pixel. Knows no other
 * operation. */
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

enum lk_conv2d_pass {
    LK_CONV2D_FORWARD, /* y (and at) from x, w, bias */
    LK_CONV2D_DATA,    /* dx from dz, w */
    LK_CONV2D_WEIGHTS, /* dw from x, dz */
    LK_CONV2D_PASSES
};

/* What an algorithm is asked to do, and what it takes for it. */
struct lk_conv2d_job {
    const struct lk_conv2d_shape *shape;
    enum lk_conv2d_pass pass;
    enum lk_conv2d_gradient gradient; /* of DATA and WEIGHTS; PLAIN unless it reads dy */
    const char *blocking;             /* one of the algorithm's own; "": its rule decides */
    int64_t first, count; /* reals of the workspace: from where; how many (result) */
};

/* Those that the pass needs; dz: reals from dz_first on, for which an algorithm that reads dy
 * gets dy, y or at. */
struct lk_conv2d_operands {
    const struct lk_buffer *x, *w, *bias, *dz;
    int64_t dz_first;
    struct lk_buffer *y, *at, *dx, *dw, *workspace;
    int64_t dw_stride;
};

enum { LK_CONV2D_BLOCKING_BYTES = 24 };

/* A way to compute a convolution. */
struct lk_conv2d_algorithm {
    const char *name;
    bool is_direct; /* sums of products of inputs and weights: for LK_MATH_STRICT */
    bool reads_dy[LK_CONV2D_PASSES]; /* takes masked and pooled gradients too */

    /* As lk_candidate has it: follows from shapes and the class of the device alone. */
    double (*cost)(const struct lk_op_setup *setup, const struct lk_conv2d_shape *shape,
                   enum lk_conv2d_pass pass);

    /* (optional) Blocking number `index` that may be faster than the rule's; false past the
     * last. They change no bit. */
    bool (*blocking)(const struct lk_op_setup *setup, const struct lk_conv2d_job *job,
                     int index, char text[LK_CONV2D_BLOCKING_BYTES]);

    /* As the verbs of lk_op; `state` is the arena's. */
    enum lk_status (*prepare)(struct lk_op_setup *setup, struct lk_conv2d_job *job,
                              void **state);
    enum lk_status (*enqueue)(const struct lk_op_setup *setup, void *state,
                              const struct lk_conv2d_operands *run);
    void (*release)(void *state);
};

struct lk_conv2d_way {
    const struct lk_conv2d_algorithm *algorithm;
    char blocking[LK_CONV2D_BLOCKING_BYTES];
};

/* What a pass takes: see lk_choices_make(). */
LK_MUST_CHECK enum lk_status lk_conv2d_choose(const struct lk_op_setup *setup,
                                              const struct lk_conv2d_shape *shape,
                                              enum lk_conv2d_pass pass,
                                              struct lk_conv2d_way *way);

/* The verb of lk_op. */
bool lk_conv2d_choice(const struct lk_op_setup *setup, int index, struct lk_choice *choice);

extern const struct lk_option lk_conv2d_table[];

/* Multiply-adds of a sample. */
double lk_conv2d_products(const struct lk_conv2d_shape *shape);

extern const struct lk_conv2d_algorithm lk_conv2d_blas, lk_conv2d_direct, lk_conv2d_fft,
    lk_conv2d_gpu, lk_conv2d_winograd2, lk_conv2d_winograd4;

extern const struct lk_op lk_op_conv2d;

/* --- direct sums ----------------------------------------------------------------------- */

/* One use of the gather kernel: all outputs, or those of one phase. Offsets count reals. */
struct lk_conv2d_gather {
    struct lk_conv2d_axis axis[2];
    int64_t groups, ins, outs;                             /* channels of one group */
    int64_t out_step[2], out_first[2], plane_width, plane; /* where outputs go */
    bool relu, pool;
    bool stream;            /* outputs are written past the caches */
    bool fills;             /* other phases have no taps: it writes their outputs, 0, too */
    struct lk_conv2d_taps { /* where weights come from, in elements of the parameter */
        int64_t group_step, out_step, in_step, first, row_step, column_step;
    } from;
    int64_t packed_first, packed_count; /* packed weights in the workspace */
    const char *blocking;               /* asked for: "filters x columns"; "": by rule */
    int block, columns;                 /* register block */
    bool pointwise;                     /* see lk_conv2d_is_pointwise() */
    struct lk_kernel *pack, *gather;
};

/* Sums that registers hold beside the operands. */
int lk_conv2d_gather_sums(const struct lk_op_setup *setup);

/* Single taps inside the image: a product of matrices, see cl/conv2d_pointwise.cl. */
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

/* x: reals from x_first on. */
struct lk_conv2d_gather_run {
    const struct lk_buffer *x, *w, *bias;
    struct lk_buffer *y, *at, *workspace;
    int64_t x_first;
};
LK_MUST_CHECK enum lk_status
lk_conv2d_pointwise_enqueue(const struct lk_op_setup *setup,
                            const struct lk_conv2d_gather *gather,
                            const struct lk_conv2d_gather_run *run);
LK_MUST_CHECK enum lk_status lk_conv2d_gather_enqueue(const struct lk_op_setup *setup,
                                                      const struct lk_conv2d_gather *gather,
                                                      const struct lk_conv2d_gather_run *run);

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

LK_MUST_CHECK enum lk_status lk_conv2d_weights_enqueue(const struct lk_op_setup *setup,
                                                       const struct lk_conv2d_shape *shape,
                                                       const struct lk_conv2d_weights *weights,
                                                       const struct lk_conv2d_operands *run);

#endif

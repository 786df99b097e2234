/* The geometry of conv2d, and what an algorithm is. Floor 4. Private to src/ops/conv2d*.c, and
 * to dense.c, which is a convolution of one pixel. Knows no other operation. */
#ifndef LK_OPS_CONV2D_H
#define LK_OPS_CONV2D_H

#include "ops/op.h"
#include "ops/window.h"

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
    int activation; /* ops/activation.h */
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
    bool is_gated;                    /* of DATA: dx is 0 where x is not > 0 */
    const char *blocking;             /* one of the algorithm's own; "": its rule decides */
    int64_t first, count; /* reals of the workspace: from where; how many (result) */
    bool gives_db;        /* (result) of WEIGHTS: sums dz for the bias too, if asked to */
};

/* Those that the pass needs, x for DATA that is gated; dz: stored numbers from dz_first on, for
 * which an algorithm that reads dy gets dy, y or at. */
struct lk_conv2d_operands {
    const struct lk_buffer *x, *w, *bias, *dz;
    int64_t dz_first;
    struct lk_buffer *y, *at, *dx, *dw, *workspace;
    struct lk_buffer *db; /* for what gives it; NULL: not wanted */
    int64_t dw_stride;    /* of db too */
};

enum { LK_CONV2D_BLOCKING_BYTES = 24 };

/* A way to compute a convolution. */
struct lk_conv2d_algorithm {
    const char *name;
    bool is_direct;  /* sums of products of inputs and weights: for LK_MATH_STRICT */
    bool is_reduced; /* products of reduced precision: for LK_MATH_FAST alone */
    bool reads_dy[LK_CONV2D_PASSES]; /* takes masked and pooled gradients too */
    bool gates_dx;                   /* makes DATA that is gated */

    /* As lk_candidate has it: follows from shapes and the class of the device alone. The
     * setup's shards are of a usual size. */
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

/* The verbs of lk_op. */
bool lk_conv2d_choice(const struct lk_op_setup *setup, int index, struct lk_choice *choice);
bool lk_conv2d_device_choice(const struct lk_op_setup *setup, struct lk_choice *choice);

extern const struct lk_option lk_conv2d_table[];

/* Multiply-adds of a sample. */
double lk_conv2d_products(const struct lk_conv2d_shape *shape);

extern const struct lk_conv2d_algorithm lk_conv2d_blas, lk_conv2d_depthwise, lk_conv2d_direct,
    lk_conv2d_fft, lk_conv2d_gpu, lk_conv2d_gpu_matrix, lk_conv2d_winograd2,
    lk_conv2d_winograd4;

extern const struct lk_op lk_op_conv2d;

#endif

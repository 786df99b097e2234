/* What a product is: a matrix or a convolution of images times a batch, in one of three passes,
 *
 *   FORWARD  y = act(b + w * x), perhaps a 2x2 max-pool of it
 *   DATA     dx = w^T * dz                 dz: the gradient before activation and pool
 *   WEIGHTS  dw = x * dz, and db = sum of dz
 *
 * and what a kernel that makes one has to offer. x, y: [tiles][channels][h][w][lanes]; w:
 * [channels][taps of y][taps of x][filters]. Floor 3. Knows no operation. */
#ifndef LK_PRODUCTS_KERNEL_H
#define LK_PRODUCTS_KERNEL_H

#include "base/arena.h"
#include "products/kernel/choice.h"
#include "products/kernel/rows.h"
#include "tensor/tensor.h"

enum lk_pass { LK_PASS_FORWARD, LK_PASS_DATA, LK_PASS_WEIGHTS, LK_PASSES };

/* What a kernel that takes dy finds in it, and how it makes dz of it. */
enum lk_gradient {
    LK_GRADIENT_PLAIN,  /* dz = dy */
    LK_GRADIENT_MASKED, /* dz = dy where y > 0 */
    LK_GRADIENT_POOLED  /* dz = dy at the place that won its 2x2 pool */
};

/* A convolution along one axis. all_out: its outputs; out: the same but for one that a pool
 * drops; gap: dilation. */
struct lk_product_axis {
    int64_t in, out, all_out, taps, stride, gap;
    int64_t pad; /* before the image; in a data gradient it may be negative */
};

struct lk_product_shape {
    struct lk_product_axis axis[2];    /* y, x */
    int64_t groups, channels, filters; /* of one group */
    bool bias, relu, pool;
    bool norm, adds; /* outside training: batch normalization by moving averages, and the sum
                      * with another image, come before the relu */
    double epsilon;  /* of the normalization */
    double most;     /* outside training: relu with this upper bound; 0: without any */
    bool silu;       /* outside training: act is x / (1 + exp(-x)) */
    bool is_matrix;  /* images are of one pixel, and so are taps */
};

/* What the products of a layer have in common. Operations fill it from their own setup. */
struct lk_product_setup {
    struct lk_device *device;
    const char *node;        /* for messages */
    const char *problem;     /* shapes and options, for keys of choices */
    struct lk_tiling tiling; /* as lk_op_setup: to prepare with the most shards; to enqueue with
                              * those of this run */
    int64_t run_tiles;       /* of a sequence: as many of its tiles as time steps; else 0 */
    enum lk_dtype real;      /* LK_F32 or LK_F64 */
    bool stores_half;        /* activations and their gradients lie in memory as halves */
    struct lk_arena *arena;  /* lives as long as what is prepared, and keeps its kernels */
    struct lk_choices *choices; /* NULL: direct sums */
};

enum { LK_BLOCKING_BYTES = 24 };

/* What is asked of a kernel, and what it takes for it. */
struct lk_product_job {
    const struct lk_product *product;
    const struct lk_product_shape *shape;
    enum lk_pass pass;
    enum lk_gradient gradient;        /* of DATA and WEIGHTS; PLAIN unless it takes dy */
    bool is_gated;                    /* of DATA: dx is 0 where x is not > 0 */
    char blocking[LK_BLOCKING_BYTES]; /* one of the kernel's own; "": its rule decides */
    int64_t first, count;         /* reals of the workspace: from where; how many (result) */
    int64_t packed_first, packed; /* reals of memory that is the product's alone: from where;
                                   * how many (result). What it makes of weights, as long as
                                   * they stay */
    bool weights_stay;            /* over batch tiles: that memory is asked for */
    int64_t kept;  /* of the workspace, those at its beginning that are the caller's */
    bool gives_db; /* (result) of WEIGHTS: sums dz for the bias too, if asked to */
};

/* A register block: the sums that a work-item makes at once. In kernels ROWS and COLUMNS;
 * README.md says what they count. */
struct lk_product_block {
    int rows, columns;
};

/* The parameters of a batch normalization. */
enum { LK_NORM_GAMMA, LK_NORM_BETA, LK_NORM_MEAN, LK_NORM_VARIANCE, LK_NORMS };

/* Those that the pass needs, x for DATA that is gated; dz: stored numbers from dz_first on, for
 * which a kernel that takes dy gets dy, y or at. */
struct lk_product_run {
    const struct lk_buffer *x, *w, *bias, *dz;
    int64_t dz_first;
    struct lk_buffer *y, *at, *dx, *dw, *workspace;
    struct lk_buffer *db;                          /* for what gives it; NULL: not wanted */
    int64_t dw_stride;                             /* reals from shard to shard, of db too */
    const struct lk_buffer *norm[LK_NORMS], *more; /* what shape.norm and shape.adds take */
    const struct lk_buffer *norms; /* over batch tiles: what products/ending.h makes of norm */
    struct lk_buffer *packed;
    bool weights_are_new; /* w, bias or norm changed since the last run */

    /* Of samples of a sequence of run_tiles steps: [batch tiles][lanes]. On CPUs with whole
     * vectors, tiles behind the longest of a batch tile are dead: there x and dz are not read,
     * y is not written, dx is 0. NULL: no tile is. */
    const struct lk_buffer *lengths;
};

/* In what form a gradient kernel takes dz. */
enum lk_dz_form {
    LK_DZ_STORED,    /* as y lies */
    LK_DZ_FROM_DY,   /* dy, whatever lk_gradient says of it */
    LK_DZ_TRANSPOSED /* in panels of units: products/matrix/matrix.h */
};

/* What a kernel can do, and its verbs. */
struct lk_product_verbs {
    /* Whether it can: a pure function of the job's shape, pass and gradient and of the device,
     * whatever the batch. NULL: always. */
    bool (*fits)(const struct lk_product_setup *setup, const struct lk_product_job *job);

    /* Of what fits: as lk_candidate has it; as pure. The setup's shards are of a usual size. */
    double (*cost)(const struct lk_product_setup *setup, const struct lk_product_job *job);

    /* (optional) Blocking number `index` that may be faster than the rule's; false past the
     * last. They change no bit. */
    bool (*blocking)(const struct lk_product_setup *setup, const struct lk_product_job *job,
                     int index, char text[LK_BLOCKING_BYTES]);

    /* Picks blocks and announces kernels, once, before lk_device_build(); `state` is the
     * arena's. fails: LK_E_BUILD, LK_E_MEMORY, LK_E_UNSUPPORTED */
    enum lk_status (*prepare)(const struct lk_product_setup *setup, struct lk_product_job *job,
                              void **state);

    /* Enqueue only: allocate nothing, wait for nothing. Results are overwritten. */
    enum lk_status (*enqueue)(const struct lk_product_setup *setup, void *state,
                              const struct lk_product_run *run);
};

enum lk_product_class { LK_ON_ANY, LK_ON_CPU, LK_ON_GPU };

/* A row of the table: products/table.c says what its words mean. */
struct lk_product {
    const char *name; /* family first */
    enum lk_pass pass;
    enum lk_product_class device_class;
    enum lk_math math; /* least that allows it */
    const char *order; /* of its sums */
    const struct lk_product_verbs *verbs;
    enum lk_dz_form takes;
    bool gates;    /* of DATA: makes what is gated */
    bool finishes; /* of FORWARD over batch tiles: does what lk_has_finish() tells of */
    bool is_only;  /* where it fits, rows without this word do not */
    int tile;      /* of Winograd: outputs along each side */
};

/* The verbs that the rows name. */
#define LK_PRODUCT_VERBS(path, verbs, ...) extern const struct lk_product_verbs verbs;
LK_PRODUCT_ROWS(LK_PRODUCT_VERBS)
#undef LK_PRODUCT_VERBS

/* A kernel of the setup's real type, which the arena keeps. fails: as lk_kernel_create */
LK_MUST_CHECK enum lk_status lk_product_kernel(const struct lk_product_setup *setup,
                                               const char *source, const char *name,
                                               const char *options, struct lk_kernel **kernel);

/* The type of activations and their gradients in memory. */
enum lk_dtype lk_product_stored(const struct lk_product_setup *setup);

/* Work-items of a group: the parts of a batch tile. */
int lk_product_items(const struct lk_product_setup *setup);

/* Multiply-adds of a sample. */
double lk_product_adds(const struct lk_product_shape *shape);

/* What costs are made of on GPUs: the multiply-adds that one makes in the time for a number of
 * its memory, or for one of its caches; and how many times as long a launch of so many
 * work-items takes for all that a large one does not have to do meanwhile. */
enum { LK_GPU_MEMORY = 40, LK_GPU_CACHE = 20 };
double lk_product_idleness(const struct lk_product_setup *setup, double items);

#endif

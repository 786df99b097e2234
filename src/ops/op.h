/* What an operation is: one const table of verbs. Floor 4.
 *
 * An operation maps input tensors x[i] and parameters w[j] to one output y. All activations lie
 * in batch tiles, or images in plane tiles (tensor/tensor.h); parameters have one physical
 * layout on every device. Knows no node, no file, no optimizer, no other operation. */
#ifndef LK_OPS_OP_H
#define LK_OPS_OP_H

#include "base/arena.h"
#include "base/option.h"
#include "ops/kinds.h"
#include "products/kernel/choice.h"
#include "tensor/tensor.h"

enum { LK_MOST_INPUTS = 8, LK_MOST_PARAMS = 8 };

/* A parameter as infer describes it. Glorot uniform: U(-a, a), a^2 = 6 / (fan_in + fan_out). */
struct lk_param_spec {
    const char *name; /* "weight", "bias" */
    struct lk_shape shape;
    enum lk_init init;
    int64_t fan_in, fan_out;
    bool is_tracked; /* a moving average: an update subtracts the mean of its dw over the
                      * samples, a difference; or what stays as it is, whose dw is 0 */
    bool is_rows;    /* a table, of which a step reads few rows; dw of the others is 0 */
    bool is_affine;  /* scales or shifts numbers one by one, whatever its shape */
};

/* What is known of an operation's shapes: the caller fills the first part, infer the second. */
struct lk_op_shapes {
    const void *options;
    int inputs;
    struct lk_shape x[LK_MOST_INPUTS];
    enum lk_dtype x_dtype[LK_MOST_INPUTS]; /* LK_F32 stands for real, LK_I32 for whole
                                            * numbers: labels, tokens */
    int64_t window; /* 0; else x[i] are one time step, [1, c], of at most so many, which are
                     * run one after the other: see LK_TIME_BEFORE */

    struct lk_shape y;
    int params;
    struct lk_param_spec param[LK_MOST_PARAMS];
    bool backward_reads_x, backward_reads_y; /* they are then kept until backward has run */
    bool is_gate; /* y ends in a relu: backward uses dy only where y > 0. So whatever
                   * makes dy may set it to 0 elsewhere, and backward then need not
                   * read y */
    bool is_loss; /* y is real [2] for each sample: its loss, and what fraction of its answers
                   * is right (1 or 0 for one class); 0 in dead lanes. backward takes no dy: it
                   * is the loss scale in every lane with a sample */
    bool scales;  /* y is homogeneous of degree 1: multiplying all w by some a > 0 multiplies y
                   * by a, and so does multiplying x and all w but the first. lk_graph_check()
                   * tests such operations by Euler's theorem */
    bool forgets_nothing; /* more time steps than `window` may come: states stand for them */
    bool ends_steps;      /* y [t, k] has other rows than x has time steps, even if as many */
    double flops;         /* of forward for one sample; a multiply-add counts 2 */
};

/* One operation on one device: the caller fills the first part, prepare the second. */
struct lk_op_setup {
    struct lk_device *device;
    const char *node; /* for messages */
    const void *options;
    struct lk_op_shapes shapes;
    struct lk_tiling tiling; /* in prepare: with the largest number of shards; in
                              * forward and backward: with the shards and tiles of this
                              * run, perhaps fewer */
    enum lk_dtype real;      /* LK_F32 or LK_F64 */
    bool stores_half;        /* activations and their gradients are stored as halves, except
                              * the output of a loss; real is LK_F32 */
    bool training;           /* backward will be called; dropout drops */
    bool weights_stay;       /* what is packed of them serves many runs */
    bool lists_rows; /* dw[0] of a table is a row list of samples' steps (tensor/row_list.h) */
    bool wants_dx[LK_MOST_INPUTS], wants_dw;
    bool asks_gate[LK_MOST_INPUTS]; /* x[i] ends in a relu: backward should write 0 to
                                     * dx[i] wherever x[i] is not > 0, if it can */
    bool dy_is_gated;               /* dy is 0 already where y is not > 0: backward gets no y */
    uint64_t seed;                  /* of the run */
    uint32_t stream;                /* this node's own stream of random numbers */
    struct lk_arena *arena;     /* lives as long as what is prepared, and keeps its kernels */
    struct lk_choices *choices; /* of algorithms, for devices of this kind; NULL: direct sums */

    bool gates_dx[LK_MOST_INPUTS]; /* backward does what asks_gate[i] asked for */
    void *state;                   /* the operation's own: kernels, chosen tiles */
    size_t saved_bytes;            /* buffer filled by forward and read by backward; 0: none.
                                    * Of no use to frozen entries, which have no backward */
    size_t workspace_bytes;        /* scratch of one forward or backward; 0: none */
    size_t packed_bytes;           /* buffer for what it makes of its weights; 0: none */
    size_t past_bytes;             /* buffer for what is kept of earlier time steps; 0: none */
};

/* The buffers of one forward or backward. Gradients that are not wanted are NULL.
 * y, x[i], dy, dx[i]: stored [tiles][shape][lanes]. dw[j]: sums (not means) of gradients over
 * the samples of each shard, reals [shards][dw_stride], of each row the parameter's elements
 * first. Dead lanes: x has any finite numbers, dy has 0; forward must write finite numbers to
 * y, and backward 0 to dx. */
struct lk_op_run {
    const struct lk_buffer *x[LK_MOST_INPUTS], *w[LK_MOST_PARAMS], *dy;
    struct lk_buffer *y, *dx[LK_MOST_INPUTS], *dw[LK_MOST_PARAMS];
    struct lk_buffer *saved, *workspace, *past, *packed;
    bool weights_are_new; /* since the last forward: what is packed has to be made again */
    const struct lk_buffer *loss_scale; /* its first real is dy of a loss; NULL: 1 */
    int64_t dw_stride;
    int64_t samples;      /* in this batch; later lanes are dead */
    int64_t step;         /* with setup.seed and stream, the key of random numbers */
    int64_t first_sample; /* of this batch, within the whole batch that devices share */
    int64_t time; /* where shapes.window: which time step x is, from 0 on without gaps */
};

/* Which time steps of its inputs a time step of y [t, c] depends on: any; its own alone, so
 * that [1, c] is computed as [t, c] is; those up to its own. The last kind takes shapes.window
 * and keeps earlier ones in `past`, which at time 0 counts for nothing, or fails in infer. */
enum lk_op_time { LK_TIME_ANY, LK_TIME_OWN, LK_TIME_BEFORE };

struct lk_op {
    const char *name;
    const struct lk_option *options; /* table over the options struct */
    size_t options_bytes;
    int min_inputs, max_inputs;
    enum lk_op_planes planes;
    bool trains_planes;  /* in training, too, of images alone */
    bool is_view;        /* y is x in another shape: y and x share memory, and so do dy and
                          * dx; no kernel runs, only infer is called */
    bool only_trains;    /* outside training the operation is a view: dropout */
    bool takes_length;   /* behind its inputs it may get one more, i32 [], the number of valid
                          * time steps of each sample; max_inputs counts it. Data: to be clamped
                          * to 0..t. Backward finds integer inputs whether it reads x or not */
    bool length_of_last; /* the graph gives it that of the last input, not of the first */
    bool shares_rows;    /* its weights may be another operation's table (is_rows) */
    enum lk_op_time time;

    /* Pure shape logic. fails: LK_E_SHAPE, LK_E_ARGUMENT */
    enum lk_status (*infer)(struct lk_op_shapes *shapes);

    /* Picks kernels and announces them (lk_op_kernel); called once, before
     * lk_device_build(). All that it makes is the arena's. Nothing is enqueued.
     * fails: LK_E_BUILD, LK_E_MEMORY */
    enum lk_status (*prepare)(struct lk_op_setup *setup);

    /* Enqueue only: allocate nothing, wait for nothing. Results are overwritten (=). */
    enum lk_status (*forward)(const struct lk_op_setup *setup, const struct lk_op_run *run);
    enum lk_status (*backward)(const struct lk_op_setup *setup, const struct lk_op_run *run);

    /* (optional) Choice number `index` of those that prepare makes; false past the last. */
    bool (*choice)(const struct lk_op_setup *setup, int index, struct lk_choice *choice);

    /* (optional) A choice made once for the device, such as a library's tiles, on which the
     * speed of some candidates depends. False: there is none. */
    bool (*device_choice)(const struct lk_op_setup *setup, struct lk_choice *choice);

    /* (optional) Fuses the operation `next`, the only reader of this one's output, into this
     * one by changing this one's options, such as a relu or max-pool behind a convolution.
     * next_options: all of them, as lk_options_print() writes them. Further inputs of `next`
     * become inputs of this one, and infer is called again. False: it cannot. */
    bool (*absorb)(void *options, const char *next, const char *next_options);

    /* (optional) As absorb, outside training: this one's output may be any input of `next`,
     * whose parameters become further ones. */
    bool (*absorb_forward)(void *options, const char *next, const char *next_options);
};

/* All operations; ends with NULL. Made from the list in meson.build. */
extern const struct lk_op *const lk_ops[];

/* The operation of that name. fails: LK_E_MODEL, naming the nearest one */
LK_MUST_CHECK enum lk_status lk_op_find(const char *name, const struct lk_op **op);

/* A kernel of its real type, which the arena keeps. fails: as lk_kernel_create */
LK_MUST_CHECK enum lk_status lk_op_kernel(const struct lk_op_setup *setup, const char *source,
                                          const char *name, const char *options,
                                          struct lk_kernel **kernel);

/* The type of activations and their gradients in memory. */
enum lk_dtype lk_op_stored(const struct lk_op_setup *setup);

/* Whether kernels write a tensor of that shape past the caches, since it is larger than they
 * are: -D STREAM of cl/lib/put.cl. */
bool lk_op_streams(const struct lk_op_setup *setup, const struct lk_shape *written);

/* Input 0 is a real image. `name`: the operation, for messages. fails: LK_E_SHAPE */
LK_MUST_CHECK enum lk_status lk_op_check_image(const struct lk_op_shapes *shapes,
                                               const char *name);

/* The rows of LANES numbers that y has, `each` of them a work-group: worth a launch. */
struct lk_op_rows {
    struct lk_grid grid;
    int64_t count, each;
};
struct lk_op_rows lk_op_rows(const struct lk_op_setup *setup);

/* A work-group for every `each` of so many rows, of each of `tiles` tiles or shards. */
struct lk_grid lk_op_grid(const struct lk_op_setup *setup, int64_t rows, int64_t each,
                          int64_t tiles);

/* Work-items of a work-group, which together compute one batch tile. */
int lk_op_items(const struct lk_op_setup *setup);

#endif

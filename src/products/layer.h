/* A layer y = act(b + w * x) and its gradients: which product makes each pass, what is made of
 * dy before, the bias gradient, and the workspace that they share. Any operation that
 * multiplies by weights holds one. Floor 3. Knows no operation.
 *
 * A matrix over the time steps of a sequence is one product: they count as tiles. */
#ifndef LK_PRODUCTS_LAYER_H
#define LK_PRODUCTS_LAYER_H

#include "products/ending.h"
#include "products/expand.h"
#include "products/matrix/matrix.h"
#include "products/table.h"

/* What a training step asks of a layer. */
struct lk_layer_wants {
    bool training, dx, dw;
    bool asks_gate;    /* dx should be 0 where x is not > 0 */
    bool dy_is_gated;  /* dy is 0 where y is not > 0: backward gets no y */
    bool without_y;    /* forward will not be called */
    bool weights_stay; /* from run to run: what forward and dx pack of them may be kept in
                        * `packed` */
    int64_t kept;      /* reals at the beginning of the workspace, which the caller keeps for
                        * itself; a multiple of 16 */
};

/* A pass and what makes it. */
struct lk_layer_use {
    struct lk_product_selection way;
    void *state; /* NULL: the pass is not wanted */
};

/* lk_layer_prepare() fills it; it has to begin as zeros. */
struct lk_layer {
    struct lk_product_shape shape;
    struct lk_layer_wants wants;
    bool gates_dx;          /* dx is 0 where x is not > 0, as was asked */
    size_t workspace_bytes; /* of one forward or backward */
    size_t packed_bytes;    /* kept from run to run, see lk_product_job */

    /* its own */
    struct lk_layer_use uses[LK_PASSES];
    struct lk_product_shape bare; /* without what `ending` does behind the sums */
    struct lk_ending ending;
    struct lk_expand expand;
    struct lk_matrix_transpose turn; /* for the kernels of matrices, in place of expand */
    struct lk_kernel *clear; /* in training over plane tiles: lanes beyond y and dx become 0 */
    bool expands;            /* dz is made in the workspace */
    bool gives_db;           /* the weight gradient does */
};

/* Those that the pass needs; dw, db: arrays [shards][dw_stride]. What is not wanted is NULL. */
struct lk_layer_run {
    const struct lk_buffer *x, *w, *bias, *dy;
    struct lk_buffer *y, *at, *dx, *dw, *db, *workspace; /* at: u8, which won its 2x2 pool */
    int64_t dw_stride;
    const struct lk_buffer *norm[LK_NORMS], *more; /* as lk_product_run */
    struct lk_buffer *packed;
    const struct lk_buffer *lengths; /* as lk_product_run */
    bool weights_are_new;
    bool dy_is_turned; /* the backward before this one was that of a layer of as many units on
                        * this dy: the workspace still holds what was made of it */
};

/* The shape of a product of matrices: y[units] from x[channels]. */
struct lk_product_shape lk_matrix_shape(int64_t channels, int64_t units, bool bias, bool relu);

/* Picks kernels and announces them. fails: LK_E_BUILD, LK_E_MEMORY, LK_E_UNSUPPORTED */
LK_MUST_CHECK enum lk_status lk_layer_prepare(const struct lk_product_setup *setup,
                                              const struct lk_product_shape *shape,
                                              const struct lk_layer_wants *wants,
                                              struct lk_layer *layer);

/* Enqueue only. backward: dx and dw where they are asked for. */
LK_MUST_CHECK enum lk_status lk_layer_forward(const struct lk_product_setup *setup,
                                              const struct lk_layer *layer,
                                              const struct lk_layer_run *run);
LK_MUST_CHECK enum lk_status lk_layer_backward(const struct lk_product_setup *setup,
                                               const struct lk_layer *layer,
                                               const struct lk_layer_run *run);

/* Choice number `index` of those that lk_layer_prepare() makes; false past the last. */
bool lk_layer_choice(const struct lk_product_setup *setup, const struct lk_product_shape *shape,
                     const struct lk_layer_wants *wants, int index, struct lk_choice *choice);

/* The choice of the device that some of them depend on. False: none does. */
bool lk_layer_device_choice(const struct lk_product_setup *setup,
                            const struct lk_product_shape *shape, struct lk_choice *choice);

#endif

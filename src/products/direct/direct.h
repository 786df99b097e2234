/* Direct sums of products: the gather kernel and what stands in for it where taps are single
 * (forward and data gradient), and the weight gradients. Floor 3. Private to src/products. */
#ifndef LK_PRODUCTS_DIRECT_H
#define LK_PRODUCTS_DIRECT_H

#include "products/direct/args.h"
#include "products/kernel/finish.h"
#include "products/kernel/kernel.h"
#include "products/kernel/partial_sums.h"

/* One use of the gather kernel: all outputs, or those of one phase of the strides. Offsets
 * count reals. */
struct lk_direct_gather {
    struct lk_product_axis axis[2];
    int64_t groups, ins, outs;                               /* channels of one group */
    int64_t out_stride[2], out_first[2], plane_width, plane; /* where outputs go */
    bool pool;
    const struct lk_product_shape *ends; /* what comes behind the sums; NULL: nothing */
    bool is_gated;                       /* outputs are 0 where the run's gate is not > 0 */
    bool stream;                         /* outputs are written past the caches */
    bool fills; /* also writes the outputs of the other phases, which have no taps: 0 */
    struct lk_direct_taps { /* where weights come from, in elements of the parameter */
        int64_t group_stride, out_stride, in_stride, first, row_stride, column_stride;
    } from;
    bool keeps;                         /* packed weights are kept from run to run */
    int64_t packed_first, packed_count; /* where they lie: see lk_direct_gather_run */
    int64_t packed_blocks;              /* how many blocks of filters are packed at once */
    const char *blocking;               /* asked for: "filters x columns"; "": by rule */
    struct lk_product_block block;      /* filters x pixels */
    bool in_place;                      /* single taps: reads weights where they are */
    struct lk_kernel *pack, *gather;
};

/* x: stored numbers from x_first on. */
struct lk_direct_gather_run {
    const struct lk_buffer *x, *w, *bias, *gate; /* gate: or what is added */
    const struct lk_buffer *norms;
    struct lk_buffer *y, *at, *packed; /* packed: the workspace, or memory that keeps it */
    int64_t x_first;
    bool weights_are_new;
};

/* The options of finish.cl and of put.cl's gate. */
enum { LK_DIRECT_END_BYTES = LK_FINISH_BYTES + 16 };
void lk_direct_print_end(const struct lk_direct_gather *gather, char text[LK_DIRECT_END_BYTES]);

/* Sums that registers hold beside the operands. */
int lk_direct_gather_sums(const struct lk_product_setup *setup);

/* What a gather's kernel reads beside its inputs: what gates the outputs or is added. */
const struct lk_buffer *lk_direct_gate(const struct lk_direct_gather *gather,
                                       const struct lk_direct_gather_run *run);

/* The gathers of the forward pass and of the data gradient, one for each phase of the strides:
 * axes, channels, where outputs go and where weights come from. */
void lk_direct_describe_forward(const struct lk_product_shape *shape,
                                struct lk_direct_gather *gather);
int lk_direct_phases(const struct lk_product_shape *shape);
void lk_direct_describe_phase(const struct lk_product_shape *shape, int number,
                              struct lk_direct_gather *gather);

/* Forward and data gradient: how one gather is made by gather.c, of any taps, and by
 * pointwise.c, of single taps inside the image. prepare: chooses the register block, announces
 * the kernels. */
struct lk_direct_kind {
    enum lk_status (*prepare)(const struct lk_product_setup *setup,
                              struct lk_direct_gather *gather);
    enum lk_status (*enqueue)(const struct lk_product_setup *setup,
                              const struct lk_direct_gather *gather,
                              const struct lk_direct_gather_run *run);
};
extern const struct lk_direct_kind lk_direct_gather_kind, lk_direct_pointwise_kind;

/* Single taps inside the image: a product of matrices, see cl/products/direct/pointwise.cl. */
bool lk_direct_is_pointwise(const struct lk_product_setup *setup,
                            const struct lk_direct_gather *gather);

/* The pieces that both have in common: the register block, and weights packed in that order,
 * for so many blocks of filters from number `block` on. */
void lk_direct_choose_block(const struct lk_product_setup *setup, struct lk_direct_gather *g);
LK_MUST_CHECK enum lk_status lk_direct_prepare_pack(const struct lk_product_setup *setup,
                                                    struct lk_direct_gather *gather,
                                                    int64_t most_blocks);
/* Where in run->packed block number `block` begins. */
int64_t lk_direct_packed_at(const struct lk_direct_gather *gather, int64_t block);
/* Does nothing where what is kept still holds. */
LK_MUST_CHECK enum lk_status lk_direct_enqueue_pack(const struct lk_product_setup *setup,
                                                    const struct lk_direct_gather *gather,
                                                    const struct lk_direct_gather_run *run,
                                                    int64_t block, int64_t blocks);

/* Cuts `count` into as few runs as `most` for each allows, and returns the size of a run: a
 * multiple of `multiple`, so that runs are as even as can be. */
int64_t lk_direct_even_share(int64_t count, int64_t most, int64_t multiple);

/* Single taps on every pixel do not know rows: the image is one long row, read without a break.
 * Weight gradients alone take it so. */
struct lk_product_shape lk_direct_in_one_row(const struct lk_product_shape *shape);

double lk_direct_weights_cost(const struct lk_product_setup *setup,
                              const struct lk_product_job *job);

#endif

/* Sums over the parameters of all places of a group: norms of gradients and penalties of
 * weights. Floor 4. Knows no graph and no other device.
 *
 * They are sums over blocks of parameters, added in the order of one device. The checks of a
 * step's gradient, or own_penalties(), sum the blocks of each optimizer's own parameters. Then
 * the caller reads these into memory for all blocks and writes all to each optimizer, which
 * goes on with its decision, or with all_penalties(). */
#ifndef LK_OPTIM_GROUP_SUMS_H
#define LK_OPTIM_GROUP_SUMS_H

#include "optim/optimizer.h"

/* Sums the penalties of the blocks of its own parameters w; writes the sum of all blocks to
 * y[at], or 0 if it is not to count. Nothing where no weights have any. Enqueue. */
LK_MUST_CHECK enum lk_status lk_optimizer_enqueue_own_penalties(struct lk_optimizer *optimizer,
                                                                const struct lk_buffer *w);
LK_MUST_CHECK enum lk_status lk_optimizer_enqueue_all_penalties(struct lk_optimizer *optimizer,
                                                                bool counts,
                                                                struct lk_buffer *y,
                                                                int64_t at);

/* The bytes of all sums, 0: there are none; reads its own sums, to where they are among all;
 * writes all. Wait. */
size_t lk_optimizer_sum_bytes(const struct lk_optimizer *optimizer, enum lk_block_sums which);
LK_MUST_CHECK enum lk_status lk_optimizer_read_sums(const struct lk_optimizer *optimizer,
                                                    enum lk_block_sums which, void *all);
LK_MUST_CHECK enum lk_status lk_optimizer_write_sums(struct lk_optimizer *optimizer,
                                                     enum lk_block_sums which, const void *all);

#endif

/* How updates are adjusted: by factors of single parameters, and by limits to the gradient.
 * Floor 4. Private to this room; cl/lib/update.cl has what kernels do with it. */
#ifndef LK_OPTIM_ADJUST_H
#define LK_OPTIM_ADJUST_H

#include "optim/optimizer.h"
#include "optim/rows.h"

struct lk_adjustment;

enum { LK_ADJUSTMENT_ARGS = 4 }; /* arguments of an update's kernel, behind its numbers */

/* Makes what the configuration asks for; *adjustment stays NULL where that is nothing. Kernels
 * can run after lk_device_build(). fails: LK_E_ARGUMENT for ranges and limits that make no
 * sense, LK_E_MEMORY, LK_E_DEVICE_MEMORY */
LK_MUST_CHECK enum lk_status lk_adjustment_create(const struct lk_optimizer_config *config,
                                                  struct lk_adjustment **adjustment);
void lk_adjustment_destroy(struct lk_adjustment *adjustment);

/* Whether the gradient's norm has a limit. */
bool lk_adjustment_has_norm(const struct lk_adjustment *adjustment);

/* Adds a piece of the gradient, elements first to first + count - 1, to the norm; then, after
 * all of them, finds what the gradient is multiplied by. `scale` and `scaling`: of the update.
 * Both do nothing where the norm has no limit. Enqueue. */
LK_MUST_CHECK enum lk_status lk_adjustment_enqueue_piece(struct lk_adjustment *adjustment,
                                                         const struct lk_buffer *g,
                                                         int64_t first, int64_t count);
/* The same for a piece that came as a list of rows, whose sums these are; a row that has none
 * adds 0. As many bits as those of a gradient as large as the table. clears: after the norm was
 * found, makes room for the next. */
LK_MUST_CHECK enum lk_status lk_adjustment_enqueue_rows(struct lk_adjustment *adjustment,
                                                        const struct lk_row_sums *sums,
                                                        bool clears);
LK_MUST_CHECK enum lk_status lk_adjustment_enqueue_norm(struct lk_adjustment *adjustment,
                                                        double scale,
                                                        const struct lk_buffer *scaling);

/* Sums the penalties of w, l1 |w| + l2 w^2, of each block; then writes the sum of all to y[at],
 * or 0 if it is not to count. Where no weights have a penalty both do nothing. Enqueue. */
LK_MUST_CHECK enum lk_status lk_adjustment_enqueue_penalty(struct lk_adjustment *adjustment,
                                                           const struct lk_buffer *w);
LK_MUST_CHECK enum lk_status lk_adjustment_enqueue_penalties(struct lk_adjustment *adjustment,
                                                             bool counts, struct lk_buffer *y,
                                                             int64_t at);

/* In a group the sums of all blocks, real [blocks], lie with those who have the parameters,
 * until they are put together: bytes of all, 0: there are none; copies those of this one's
 * parameters from the device to `all`, at their place; all of them back. Wait. */
size_t lk_adjustment_sum_bytes(const struct lk_adjustment *adjustment,
                               enum lk_block_sums which);
LK_MUST_CHECK enum lk_status lk_adjustment_read_sums(const struct lk_adjustment *adjustment,
                                                     enum lk_block_sums which, void *all);
LK_MUST_CHECK enum lk_status lk_adjustment_write_sums(struct lk_adjustment *adjustment,
                                                      enum lk_block_sums which,
                                                      const void *all);

/* The further arguments of an update's kernel. */
void lk_adjustment_args(const struct lk_adjustment *adjustment,
                        struct lk_arg args[LK_ADJUSTMENT_ARGS]);

#endif

/* Hands sums over blocks of parameters to an optimizer of a group, and takes its own. */
#include "optim/group_sums.h"

#include "optim/internal.h"

enum lk_status lk_optimizer_enqueue_own_penalties(struct lk_optimizer *optimizer,
                                                  const struct lk_buffer *w)
{
    return lk_adjustment_enqueue_penalty(optimizer->adjustment, w);
}

enum lk_status lk_optimizer_enqueue_all_penalties(struct lk_optimizer *optimizer, bool counts,
                                                  struct lk_buffer *y, int64_t at)
{
    return lk_adjustment_enqueue_penalties(optimizer->adjustment, counts, y, at);
}

size_t lk_optimizer_sum_bytes(const struct lk_optimizer *optimizer, enum lk_block_sums which)
{
    return lk_adjustment_sum_bytes(optimizer->adjustment, which);
}

enum lk_status lk_optimizer_read_sums(const struct lk_optimizer *optimizer,
                                      enum lk_block_sums which, void *all)
{
    return lk_adjustment_read_sums(optimizer->adjustment, which, all);
}

enum lk_status lk_optimizer_write_sums(struct lk_optimizer *optimizer, enum lk_block_sums which,
                                       const void *all)
{
    return lk_adjustment_write_sums(optimizer->adjustment, which, all);
}

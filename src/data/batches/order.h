/* The orders in which epochs go through a data set, kept for some epochs at a time. Floor 4.
 * Knows no data set. */
#ifndef LK_DATA_BATCHES_ORDER_H
#define LK_DATA_BATCHES_ORDER_H

#include <lockstep/data.h>

struct lk_epoch_orders;

struct lk_epoch_order {
    int64_t epoch;  /* -1: none yet */
    int readers;    /* threads that read it, so that it may not be replaced */
    int64_t *items; /* [count]: samples of the data set */
};

struct lk_order_config {
    bool shuffle; /* each epoch has an order of its own; otherwise samples come in the order of
                   * the data set, and so do batches of similar length */
    uint64_t seed;
    int64_t count;
    int64_t batch, bucket; /* samples of a batch; batches whose samples are sorted by length
                            * together, 0: none */
    int64_t *lengths;      /* [count]; the orders free it. NULL without buckets */
};

/* Takes the lengths over, even where it fails. fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_epoch_orders_create(const struct lk_order_config *config,
                                                    struct lk_epoch_orders **orders);
void lk_epoch_orders_destroy(struct lk_epoch_orders *orders);

/* Takes an epoch's order, which stays valid until it is given back. The first thread that asks
 * for it computes it, while others wait. Orders of three epochs are kept: readers of a fourth
 * one wait until one of these is given back. */
struct lk_epoch_order *lk_epoch_orders_acquire(struct lk_epoch_orders *orders, int64_t epoch);
void lk_epoch_orders_release(struct lk_epoch_orders *orders, struct lk_epoch_order *order);

#endif

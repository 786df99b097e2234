/* The orders in which epochs go through a data set, kept for some epochs at a time. Floor 4.
 * Knows no batch. */
#ifndef LK_DATA_BATCHES_ORDER_H
#define LK_DATA_BATCHES_ORDER_H

#include <lockstep/data.h>

struct lk_orders;

struct lk_order {
    int64_t epoch;  /* -1: none yet */
    int readers;    /* who may not be disturbed */
    int64_t *items; /* [count]: samples of the data set */
};

/* shuffle: a new order each epoch; else all have that of the samples. fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_orders_create(bool shuffle, uint64_t seed, int64_t count,
                                              struct lk_orders **orders);
void lk_orders_destroy(struct lk_orders *orders);

/* An epoch's order, which stays until it is given back. The first to ask for one waits until it
 * is made, and so do others meanwhile; readers of more than three epochs wait for each other.
 */
struct lk_order *lk_orders_take(struct lk_orders *orders, int64_t epoch);
void lk_orders_give(struct lk_orders *orders, struct lk_order *order);

#endif

/* The shuffled order of each epoch, made when it is first asked for. */
#include "data/batches/order.h"

#include "base/fail.h"
#include "base/random.h"

#include <pthread.h>
#include <stdlib.h>

/* At the end of an epoch some threads still read its last batches, while others read the next
 * epoch. */
enum { ORDERS = 3 };

struct lk_epoch_orders {
    bool shuffle;
    uint64_t seed;
    int64_t count;
    pthread_mutex_t mutex;
    pthread_cond_t is_free;
    struct lk_epoch_order orders[ORDERS];
};

/* 64 random bits scaled to [0, bound): the top 64 bits of a product of 96, for bound <= 2^32.
 * No value is more than 2^-32 likelier than another. */
static int64_t scale(struct lk_random4 r, uint64_t bound)
{
    return (int64_t)((r.v[1] * bound + (r.v[0] * bound >> 32)) >> 32);
}

void lk_data_order(uint64_t seed, int64_t epoch, int64_t count, int64_t *order)
{
    for (int64_t i = 0; i < count; i++)
        order[i] = i;
    for (int64_t i = count - 1; i > 0; i--) {
        const struct lk_random4 r =
            lk_random(seed, LK_RANDOM_SHUFFLE, (uint32_t)epoch, (uint64_t)i);
        const int64_t j = scale(r, (uint64_t)i + 1), kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
}

enum lk_status lk_epoch_orders_create(bool shuffle, uint64_t seed, int64_t count,
                                      struct lk_epoch_orders **orders)
{
    struct lk_epoch_orders *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("the order of an epoch", sizeof *made);
    *made = (struct lk_epoch_orders){.shuffle = shuffle, .seed = seed, .count = count};
    pthread_mutex_init(&made->mutex, NULL);
    pthread_cond_init(&made->is_free, NULL);
    for (int i = 0; i < ORDERS; i++) {
        made->orders[i].epoch = -1;
        made->orders[i].items = calloc((size_t)count, sizeof(int64_t));
        if (!made->orders[i].items) {
            lk_epoch_orders_destroy(made);
            return lk_fail_memory("the order of an epoch", (size_t)count * sizeof(int64_t));
        }
    }
    *orders = made;
    return LK_OK;
}

void lk_epoch_orders_destroy(struct lk_epoch_orders *orders)
{
    if (!orders)
        return;
    for (int i = 0; i < ORDERS; i++)
        free(orders->orders[i].items);
    pthread_cond_destroy(&orders->is_free);
    pthread_mutex_destroy(&orders->mutex);
    free(orders);
}

/* Finds the order of `epoch`; if it is not there, the oldest one that nobody reads, to be
 * replaced. NULL: all are being read. */
static struct lk_epoch_order *find_order(struct lk_epoch_orders *orders, int64_t epoch)
{
    struct lk_epoch_order *oldest = NULL;
    for (int i = 0; i < ORDERS; i++) {
        struct lk_epoch_order *order = &orders->orders[i];
        if (order->epoch == epoch)
            return order;
        if (order->readers == 0 && (!oldest || order->epoch < oldest->epoch))
            oldest = order;
    }
    return oldest;
}

/* Other readers wait while an epoch is put in order: most of them want the same one. */
struct lk_epoch_order *lk_epoch_orders_acquire(struct lk_epoch_orders *orders, int64_t epoch)
{
    struct lk_epoch_order *order;
    if (!orders->shuffle)
        epoch = 0;
    pthread_mutex_lock(&orders->mutex);
    while (!(order = find_order(orders, epoch)))
        pthread_cond_wait(&orders->is_free, &orders->mutex);
    if (order->epoch != epoch) {
        for (int64_t i = 0; i < orders->count && !orders->shuffle; i++)
            order->items[i] = i;
        if (orders->shuffle)
            lk_data_order(orders->seed, epoch, orders->count, order->items);
        order->epoch = epoch;
    }
    order->readers++;
    pthread_mutex_unlock(&orders->mutex);
    return order;
}

void lk_epoch_orders_release(struct lk_epoch_orders *orders, struct lk_epoch_order *order)
{
    pthread_mutex_lock(&orders->mutex);
    if (--order->readers == 0)
        pthread_cond_broadcast(&orders->is_free);
    pthread_mutex_unlock(&orders->mutex);
}

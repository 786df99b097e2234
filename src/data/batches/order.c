/* The shuffled order of each epoch, made when it is first asked for. With buckets, samples of
 * similar length stand side by side in it, so that they come into one batch. */
#include "data/batches/order.h"

#include "base/fail.h"
#include "base/random.h"

#include <pthread.h>
#include <stdlib.h>

/* At the end of an epoch some threads still read its last batches, while others read the next
 * epoch. */
enum { ORDERS = 3 };

/* A sample while a bucket is sorted. */
struct place {
    int64_t length, at, item;
};

struct lk_epoch_orders {
    struct lk_order_config config;
    struct place *places; /* [count]; NULL without buckets, as the next one */
    int64_t *batches;     /* [full batches of an epoch]: their order */
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

static void count_up(int64_t count, int64_t *order)
{
    for (int64_t i = 0; i < count; i++)
        order[i] = i;
}

static void shuffle(uint64_t seed, enum lk_random_purpose purpose, int64_t epoch, int64_t count,
                    int64_t *order)
{
    count_up(count, order);
    for (int64_t i = count - 1; i > 0; i--) {
        const struct lk_random4 r = lk_random(seed, purpose, (uint32_t)epoch, (uint64_t)i);
        const int64_t j = scale(r, (uint64_t)i + 1), kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
}

void lk_data_order(uint64_t seed, int64_t epoch, int64_t count, int64_t *order)
{
    shuffle(seed, LK_RANDOM_SHUFFLE, epoch, count, order);
}

static bool make_room(struct lk_epoch_orders *orders)
{
    const struct lk_order_config *c = &orders->config;
    for (int i = 0; i < ORDERS; i++) {
        orders->orders[i].epoch = -1;
        orders->orders[i].items = calloc((size_t)c->count, sizeof(int64_t));
        if (!orders->orders[i].items)
            return false;
    }
    if (c->bucket == 0)
        return true;
    orders->places = calloc((size_t)c->count, sizeof *orders->places);
    orders->batches = calloc((size_t)(c->count / c->batch) + 1, sizeof *orders->batches);
    return orders->places && orders->batches;
}

enum lk_status lk_epoch_orders_create(const struct lk_order_config *config,
                                      struct lk_epoch_orders **orders)
{
    struct lk_epoch_orders *made = calloc(1, sizeof *made);
    if (!made) {
        free(config->lengths);
        return lk_fail_memory("the order of an epoch", sizeof *made);
    }
    made->config = *config;
    pthread_mutex_init(&made->mutex, NULL);
    pthread_cond_init(&made->is_free, NULL);
    if (!make_room(made)) {
        lk_epoch_orders_destroy(made);
        return lk_fail_memory("the order of an epoch", (size_t)config->count * sizeof(int64_t));
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
    free(orders->places);
    free(orders->batches);
    free(orders->config.lengths);
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

/* By length; samples of one length stay in the order that they have. */
static int compare_places(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->length != y->length)
        return x->length < y->length ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

static void sort_by_length(struct lk_epoch_orders *orders, int64_t first, int64_t count)
{
    qsort(orders->places + first, (size_t)count, sizeof *orders->places, compare_places);
}

/* Sorts each bucket, and then puts its batches anywhere among all full ones. A batch that is
 * not full stays the last one. */
static void sort_buckets(struct lk_epoch_orders *orders, int64_t epoch, int64_t *items)
{
    const struct lk_order_config *c = &orders->config;
    const int64_t batches = c->count / c->batch, full = batches * c->batch;
    const int64_t bucket = c->bucket * c->batch;
    for (int64_t i = 0; i < c->count; i++)
        orders->places[i] = (struct place){c->lengths[items[i]], i, items[i]};
    for (int64_t first = 0; first < full; first += bucket)
        sort_by_length(orders, first, full - first < bucket ? full - first : bucket);
    sort_by_length(orders, full, c->count - full);
    if (c->shuffle)
        shuffle(c->seed, LK_RANDOM_BUCKET, epoch, batches, orders->batches);
    else
        count_up(batches, orders->batches);
    for (int64_t i = 0; i < c->count; i++) {
        const int64_t batch = i < full ? orders->batches[i / c->batch] : batches;
        items[i] = orders->places[batch * c->batch + i % c->batch].item;
    }
}

static void put_in_order(struct lk_epoch_orders *orders, int64_t epoch, int64_t *items)
{
    const struct lk_order_config *c = &orders->config;
    if (c->shuffle)
        lk_data_order(c->seed, epoch, c->count, items);
    else
        count_up(c->count, items);
    if (c->bucket > 0)
        sort_buckets(orders, epoch, items);
}

/* Other readers wait while an epoch is put in order: most of them want the same one. */
struct lk_epoch_order *lk_epoch_orders_acquire(struct lk_epoch_orders *orders, int64_t epoch)
{
    struct lk_epoch_order *order;
    if (!orders->config.shuffle)
        epoch = 0;
    pthread_mutex_lock(&orders->mutex);
    while (!(order = find_order(orders, epoch)))
        pthread_cond_wait(&orders->is_free, &orders->mutex);
    if (order->epoch != epoch) {
        put_in_order(orders, epoch, order->items);
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

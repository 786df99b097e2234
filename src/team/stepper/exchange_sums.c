/* What a device adds up before it sends: the gradients of its shards, micro-batch by
 * micro-batch, to sums over subtrees. */
#include "team/stepper/exchange_internal.h"

#include "base/fail.h"

static size_t parcel_bytes(const struct lk_exchange *e, const struct lk_exchange_parcel *p)
{
    return (size_t)(e->head + e->count * p->count) * e->real_bytes;
}

static enum lk_status find_slice(const struct lk_exchange_parcel *p,
                                 const struct lk_replica *from, int shards,
                                 struct lk_shard_slice *slice)
{
    struct lk_shape shape;
    if (p->bucket < 0)
        return lk_shard_sum_enqueue_metrics(p->side->sum, lk_replica_output(from, 0, &shape),
                                            shards, slice);
    *slice = (struct lk_shard_slice){.x = lk_replica_gradients(p->side->replica),
                                     .stride = lk_replica_gradient_stride(p->side->replica),
                                     .first = p->first,
                                     .count = p->count};
    return LK_OK;
}

/* The sum over a subtree of the shards at work, or where they are a list their places. */
static enum lk_status sum_subtree(const struct lk_exchange_parcel *p,
                                  const struct lk_shard_slice *slice,
                                  struct lk_shard_run at_once, struct lk_subtree subtree,
                                  const struct lk_shard_target *to)
{
    const struct lk_subtree here = {subtree.first - at_once.first, subtree.count};
    if (p->bucket < 0 || lk_replica_bucket(p->side->replica, p->bucket).list_stride == 0)
        return lk_shard_sum_enqueue(p->side->sum, here, slice, to);
    const struct lk_bucket list = lk_replica_bucket(p->side->replica, p->bucket);
    const struct lk_shard_places places = {.x = list.list,
                                           .stride = list.list_stride,
                                           .shift = at_once.first,
                                           .first = subtree.first,
                                           .count = subtree.count,
                                           .shards = (int)(list.sum_count / list.list_stride)};
    return lk_shard_sum_enqueue_place(p->side->sum, &places, to);
}

/* Adds the subtrees of a micro-batch to the terms of those before: each to its other half, if
 * that is there, else it is put behind them. Returns how many terms there are now. */
static enum lk_status sum_micro_batch(const struct lk_exchange *e,
                                      const struct lk_exchange_parcel *p,
                                      const struct lk_shard_slice *slice,
                                      struct lk_shard_run at_once, int *terms)
{
    struct lk_subtree open[LK_MOST_SUBTREES + 1], added[LK_MOST_SUBTREES];
    struct lk_buffer *y = lk_transfer_buffer_on_device(p->terms);
    int count = lk_subtrees_of(e->run.first, at_once.first - e->run.first, open);
    const int added_count = lk_subtrees_of(at_once.first, at_once.count, added);
    for (int i = 0; i < added_count; i++) {
        int joins = lk_terms_push(open, &count, added[i]);
        int64_t at = e->head + (count - 1 + (joins > 1 ? joins - 1 : 0)) * p->count;
        const struct lk_shard_target to = {.y = y, .first = at, .adds = joins > 0};
        LK_TRY(sum_subtree(p, slice, at_once, added[i], &to));
        for (; joins > 1; joins--, at -= p->count)
            LK_TRY(lk_shard_sum_enqueue_join(p->side->sum, y, at - p->count, at, p->count));
    }
    *terms = count;
    return LK_OK;
}

static enum lk_status enqueue_terms(struct lk_exchange *e, const struct lk_exchange_parcel *p,
                                    const struct lk_replica *from, struct lk_shard_run at_once)
{
    struct lk_buffer *y = lk_transfer_buffer_on_device(p->terms);
    struct lk_shard_slice slice;
    int terms = 0;
    LK_TRY(find_slice(p, from, at_once.count, &slice));
    LK_TRY(sum_micro_batch(e, p, &slice, at_once, &terms));
    if (at_once.first + at_once.count < e->run.first + e->run.count)
        return LK_OK;
    for (int i = 0; i < terms; i++)
        LK_TRY(lk_shard_sum_enqueue_checksum(p->side->sum, y, e->head + i * p->count, p->count,
                                             y, i));
    return lk_transfer_buffer_enqueue_to_host(p->terms, parcel_bytes(e, p));
}

enum lk_status lk_exchange_enqueue_bucket(struct lk_exchange *e, int bucket,
                                          struct lk_shard_run at_once)
{
    return enqueue_terms(e, &e->parcels[bucket], NULL, at_once);
}

enum lk_status lk_exchange_enqueue_metrics(struct lk_exchange *e, const struct lk_replica *from,
                                           struct lk_shard_run at_once)
{
    return enqueue_terms(e, &e->parcels[e->buckets], from, at_once);
}

/* Sums of gradients between a device and the host, bucket by bucket. */
#include "team/stepper/exchange.h"

#include "base/fail.h"
#include "tensor/elementwise.h"
#include <stdlib.h>

/* The sums of a bucket on their way to the host: a checksum for each term, padded to `head`
 * reals, then the terms. */
struct parcel {
    int64_t first, count; /* reals of a term: of the gradients, or metrics */
    struct lk_transfer_buffer *terms, *result;
};

struct lk_exchange {
    struct lk_device *device;
    struct lk_replica *replica;
    struct lk_shard_sum *sum;
    size_t real_bytes;
    int most;       /* shards at a time */
    int buckets;    /* without the metrics */
    int most_terms; /* of any run */
    int64_t head;
    struct parcel parcels[LK_MOST_BUCKETS + 1];
    struct lk_transfer_buffer *checks;

    struct lk_shard_run run;
    struct lk_subtree subtrees[LK_MOST_SUBTREES];
    int count;
    bool is_weighed; /* the last checksums include that of the weights */
    uint32_t checksums[LK_MOST_BUCKETS + 1];
};

struct lk_shard_run lk_shard_run_at_once(struct lk_shard_run run, int first, int most)
{
    const int end = run.first + run.count, stop = (first / most + 1) * most;
    return (struct lk_shard_run){first, (stop < end ? stop : end) - first};
}

/* `open` are subtrees whose other halves are not there yet. Puts one behind them and, as long
 * as the last two are the halves of a larger subtree, joins these. Returns how often it joined.
 */
static int push(struct lk_subtree *open, int *count, struct lk_subtree next)
{
    int joins = 0;
    while (*count > 0 && lk_subtrees_join(open[*count - 1], next)) {
        next = open[--*count];
        next.count *= 2;
        joins++;
    }
    open[(*count)++] = next;
    return joins;
}

/* The most terms that are held at once while the run is computed. */
static int count_terms(struct lk_shard_run run, int most)
{
    struct lk_subtree open[LK_MOST_SUBTREES + 1], added[LK_MOST_SUBTREES];
    int count = 0, found = 0;
    for (int first = run.first; first < run.first + run.count;) {
        const struct lk_shard_run at_once = lk_shard_run_at_once(run, first, most);
        const int added_count = lk_subtrees_of(at_once.first, at_once.count, added);
        for (int i = 0; i < added_count; i++) {
            found = count + 1 > found ? count + 1 : found;
            push(open, &count, added[i]);
        }
        first += at_once.count;
    }
    return found;
}

int lk_exchange_terms(int shards, int most)
{
    int found = 1;
    for (int first = 0; first < shards; first++)
        for (int end = first + 1; end <= shards; end++) {
            const int count = count_terms((struct lk_shard_run){first, end - first}, most);
            found = count > found ? count : found;
        }
    return found;
}

static enum lk_status create_transfer_buffer(struct lk_exchange *e, size_t bytes,
                                             enum lk_transfer_buffer_writer writer,
                                             struct lk_transfer_buffer **transfer)
{
    LK_TRY(lk_transfer_buffer_create(e->device, bytes, writer, transfer));
    return lk_buffer_enqueue_fill(lk_transfer_buffer_on_device(*transfer), 0);
}

static enum lk_status create_parcels(struct lk_exchange *e)
{
    for (int b = 0; b <= e->buckets; b++) {
        struct parcel *p = &e->parcels[b];
        const struct lk_bucket bucket =
            b < e->buckets ? lk_replica_bucket(e->replica, b)
                           : (struct lk_bucket){.count = LK_PAD, .sum_count = LK_PAD};
        p->first = bucket.first - lk_replica_listed_count(e->replica);
        p->count = bucket.sum_count;
        const size_t reals = (size_t)(e->head + e->most_terms * p->count);
        LK_TRY(create_transfer_buffer(e, reals * e->real_bytes, LK_DEVICE_WRITES, &p->terms));
        if (b == e->buckets)
            break;
        LK_TRY(create_transfer_buffer(e, (size_t)p->count * e->real_bytes, LK_HOST_WRITES,
                                      &p->result));
        LK_TRY(lk_transfer_buffer_enqueue_to_host(p->result, (size_t)p->count * e->real_bytes));
    }
    return create_transfer_buffer(e, sizeof e->checksums, LK_DEVICE_WRITES, &e->checks);
}

static enum lk_status create(struct lk_exchange *e, int shards)
{
    const struct lk_tiling *tiling = lk_replica_tiling(e->replica);
    e->most = tiling->shards;
    e->buckets = lk_replica_bucket_count(e->replica);
    e->most_terms = lk_exchange_terms(shards, e->most);
    const int64_t line = LK_PAD * (int64_t)(e->real_bytes / sizeof(uint32_t));
    e->head = lk_divide_up(e->most_terms, line) * LK_PAD;
    LK_TRY(lk_shard_sum_create(e->device, tiling, lk_replica_real(e->replica), true, &e->sum));
    return create_parcels(e);
}

enum lk_status lk_exchange_create(struct lk_device *device, struct lk_replica *replica,
                                  int shards, struct lk_exchange **exchange)
{
    struct lk_exchange *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("an exchange", sizeof *made);
    made->device = device;
    made->replica = replica;
    made->real_bytes = lk_dtype_bytes(lk_replica_real(replica));
    const enum lk_status status = create(made, shards);
    if (status != LK_OK) {
        lk_exchange_destroy(made);
        return status;
    }
    *exchange = made;
    return LK_OK;
}

void lk_exchange_destroy(struct lk_exchange *exchange)
{
    if (!exchange)
        return;
    for (int b = 0; b <= exchange->buckets; b++) {
        lk_transfer_buffer_destroy(exchange->parcels[b].terms);
        lk_transfer_buffer_destroy(exchange->parcels[b].result);
    }
    lk_transfer_buffer_destroy(exchange->checks);
    lk_shard_sum_destroy(exchange->sum);
    free(exchange);
}

static size_t parcel_bytes(const struct lk_exchange *e, const struct parcel *p)
{
    return (size_t)(e->head + e->count * p->count) * e->real_bytes;
}

int lk_exchange_metrics(const struct lk_exchange *exchange)
{
    return exchange->buckets;
}

struct lk_buffer *lk_exchange_shard_metrics(struct lk_exchange *exchange)
{
    return lk_shard_sum_metrics(exchange->sum);
}

enum lk_status lk_exchange_begin(struct lk_exchange *e, struct lk_shard_run run)
{
    for (int b = 0; b <= e->buckets; b++)
        LK_TRY(lk_transfer_buffer_enqueue_to_device(e->parcels[b].terms, 0));
    e->run = run;
    e->count = lk_subtrees_of(run.first, run.count, e->subtrees);
    return LK_OK;
}

static enum lk_status find_slice(struct lk_exchange *e, int bucket, int shards,
                                 struct lk_shard_slice *slice)
{
    struct lk_shape shape;
    if (bucket == e->buckets)
        return lk_shard_sum_enqueue_metrics(e->sum, lk_replica_output(e->replica, 0, &shape),
                                            shards, slice);
    *slice = (struct lk_shard_slice){.x = lk_replica_gradients(e->replica),
                                     .stride = lk_replica_gradient_stride(e->replica),
                                     .first = e->parcels[bucket].first,
                                     .count = e->parcels[bucket].count};
    return LK_OK;
}

/* The sum over a subtree of the shards at work, or where they are a list their places. */
static enum lk_status sum_subtree(struct lk_exchange *e, int bucket,
                                  const struct lk_shard_slice *slice,
                                  struct lk_shard_run at_once, struct lk_subtree subtree,
                                  int64_t at)
{
    struct lk_buffer *y = lk_transfer_buffer_on_device(e->parcels[bucket].terms);
    const struct lk_subtree here = {subtree.first - at_once.first, subtree.count};
    if (bucket == e->buckets || lk_replica_bucket(e->replica, bucket).list_stride == 0)
        return lk_shard_sum_enqueue(e->sum, here, slice, y, at);
    const struct lk_bucket list = lk_replica_bucket(e->replica, bucket);
    const struct lk_shard_places places = {.x = list.list,
                                           .stride = list.list_stride,
                                           .shift = at_once.first,
                                           .first = subtree.first,
                                           .count = subtree.count,
                                           .shards = (int)(list.sum_count / list.list_stride)};
    return lk_shard_sum_enqueue_place(e->sum, &places, y, at);
}

/* Adds the subtrees of a micro-batch to the terms of those before: each is put behind them,
 * then added to its other half if that is there. Returns how many terms there are now. */
static enum lk_status sum_micro_batch(struct lk_exchange *e, int bucket,
                                      const struct lk_shard_slice *slice,
                                      struct lk_shard_run at_once, int *terms)
{
    const struct parcel *p = &e->parcels[bucket];
    struct lk_subtree open[LK_MOST_SUBTREES + 1], added[LK_MOST_SUBTREES];
    struct lk_buffer *y = lk_transfer_buffer_on_device(p->terms);
    int count = lk_subtrees_of(e->run.first, at_once.first - e->run.first, open);
    const int added_count = lk_subtrees_of(at_once.first, at_once.count, added);
    for (int i = 0; i < added_count; i++) {
        int64_t at = e->head + count * p->count;
        LK_TRY(sum_subtree(e, bucket, slice, at_once, added[i], at));
        for (int joins = push(open, &count, added[i]); joins > 0; joins--, at -= p->count)
            LK_TRY(lk_shard_sum_enqueue_join(e->sum, y, at - p->count, at, p->count));
    }
    *terms = count;
    return LK_OK;
}

enum lk_status lk_exchange_enqueue_bucket(struct lk_exchange *e, int bucket,
                                          struct lk_shard_run at_once)
{
    const struct parcel *p = &e->parcels[bucket];
    struct lk_buffer *y = lk_transfer_buffer_on_device(p->terms);
    struct lk_shard_slice slice;
    int terms = 0;
    LK_TRY(find_slice(e, bucket, at_once.count, &slice));
    LK_TRY(sum_micro_batch(e, bucket, &slice, at_once, &terms));
    if (at_once.first + at_once.count < e->run.first + e->run.count)
        return LK_OK;
    for (int i = 0; i < terms; i++)
        LK_TRY(
            lk_shard_sum_enqueue_checksum(e->sum, y, e->head + i * p->count, p->count, y, i));
    return lk_transfer_buffer_enqueue_to_host(p->terms, parcel_bytes(e, p));
}

enum lk_status lk_exchange_wait(struct lk_exchange *e, int bucket,
                                struct lk_term terms[LK_MOST_SHARDS],
                                const uint32_t **checksums, int *count)
{
    const struct parcel *p = &e->parcels[bucket];
    void *memory;
    LK_TRY(lk_transfer_buffer_wait(p->terms, &memory));
    for (int i = 0; i < LK_REPLICA_SLOTS && bucket == e->buckets; i++)
        LK_TRY(lk_replica_wait_slot(e->replica, i));
    for (int i = 0; i < e->count; i++) {
        const size_t at = (size_t)(e->head + i * p->count) * e->real_bytes;
        terms[i] = (struct lk_term){e->subtrees[i], (const char *)memory + at};
    }
    *checksums = memory;
    *count = e->count;
    return LK_OK;
}

enum lk_status lk_exchange_result(struct lk_exchange *e, int bucket, void **memory)
{
    return lk_transfer_buffer_wait(e->parcels[bucket].result, memory);
}

enum lk_status lk_exchange_enqueue_result(struct lk_exchange *e, int bucket)
{
    const struct parcel *p = &e->parcels[bucket];
    return lk_transfer_buffer_enqueue_to_device(p->result, (size_t)p->count * e->real_bytes);
}

struct lk_buffer *lk_exchange_sum(struct lk_exchange *e, int bucket)
{
    return lk_transfer_buffer_on_device(e->parcels[bucket].result);
}

enum lk_status lk_exchange_end(struct lk_exchange *e, bool weights)
{
    struct lk_buffer *y = lk_transfer_buffer_on_device(e->checks);
    LK_TRY(lk_transfer_buffer_enqueue_to_device(e->checks, 0));
    for (int b = 0; b < e->buckets; b++)
        LK_TRY(lk_shard_sum_enqueue_checksum(e->sum, lk_exchange_sum(e, b), 0,
                                             e->parcels[b].count, y, b));
    if (weights)
        LK_TRY(lk_shard_sum_enqueue_checksum(e->sum, lk_replica_weights(e->replica), 0,
                                             lk_replica_gradient_count(e->replica), y,
                                             e->buckets));
    e->is_weighed = weights;
    for (int b = 0; b < e->buckets; b++)
        LK_TRY(lk_transfer_buffer_enqueue_to_host(e->parcels[b].result,
                                                  (size_t)e->parcels[b].count * e->real_bytes));
    return lk_transfer_buffer_enqueue_to_host(e->checks, sizeof e->checksums);
}

enum lk_status lk_exchange_checks(struct lk_exchange *e, const uint32_t **checksums)
{
    void *memory;
    LK_TRY(lk_transfer_buffer_wait(e->checks, &memory));
    for (int b = 0; b <= e->buckets; b++)
        e->checksums[b] = b < e->buckets || e->is_weighed ? ((const uint32_t *)memory)[b] : 0;
    *checksums = e->checksums;
    return LK_OK;
}

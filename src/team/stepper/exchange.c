/* Sums of gradients between a device and the host, bucket by bucket. */
#include "team/stepper/exchange_internal.h"

#include "base/fail.h"
#include "tensor/elementwise.h"
#include <stdlib.h>
#include <string.h>

static enum lk_status create_transfer_buffer(struct lk_device *device, size_t bytes,
                                             enum lk_buffer_writer writer,
                                             struct lk_transfer_buffer **transfer)
{
    LK_TRY(lk_transfer_buffer_create(device, bytes, writer, transfer));
    return lk_buffer_enqueue_fill(lk_transfer_buffer_on_device(*transfer), 0);
}

static enum lk_status create_parcel(struct lk_exchange *e, struct lk_exchange_parcel *p)
{
    struct lk_device *device = p->side->device;
    const size_t bytes = (size_t)p->count * e->real_bytes;
    const size_t reals = (size_t)(e->head + e->most_terms * p->count);
    LK_TRY(create_transfer_buffer(device, reals * e->real_bytes, LK_DEVICE_WRITES, &p->terms));
    if (p->bucket < 0)
        return LK_OK;
    if (e->keeps_sums)
        return lk_buffer_view(lk_transfer_buffer_on_device(p->terms),
                              (size_t)e->head * e->real_bytes, bytes, &p->kept);
    LK_TRY(create_transfer_buffer(device, bytes, LK_HOST_WRITES, &p->result));
    return lk_transfer_buffer_enqueue_to_host(p->result, bytes);
}

static enum lk_status create_side(struct lk_exchange *e, struct lk_exchange_side *side)
{
    struct lk_replica *replica = side->replica;
    LK_TRY(lk_shard_sum_create(side->device, lk_replica_tiling(replica),
                               lk_replica_real(replica), true, &side->sum));
    side->first = e->buckets;
    side->buckets = lk_replica_bucket_count(replica);
    e->buckets += side->buckets;
    for (int b = 0; b < side->buckets; b++) {
        const struct lk_bucket bucket = lk_replica_bucket(replica, b);
        struct lk_exchange_parcel *p = &e->parcels[side->first + b];
        *p = (struct lk_exchange_parcel){
            .side = side, .bucket = b, .first = bucket.at, .count = bucket.sum_count};
        LK_TRY(create_parcel(e, p));
    }
    return create_transfer_buffer(side->device, sizeof e->checksums, LK_DEVICE_WRITES,
                                  &side->checks);
}

int lk_exchange_terms(int shards, int most, bool keeps_sums)
{
    const struct lk_shard_run all = {0, shards};
    return keeps_sums ? lk_terms_held(all, most) : lk_terms_held_most(shards, most);
}

/* Reals before the terms: room for their checksums, after which a view may begin. */
static int64_t find_head(const struct lk_exchange *e, const struct lk_exchange_config *c)
{
    const int64_t line = LK_PAD * (int64_t)(e->real_bytes / sizeof(uint32_t));
    int64_t bytes = lk_divide_up(e->most_terms, line) * LK_PAD * (int64_t)e->real_bytes;
    for (int i = 0; i < c->places; i++) { /* powers of two */
        const int64_t align = (int64_t)lk_device_info(c->devices[i])->align_bytes;
        bytes = lk_divide_up(bytes, align) * align;
    }
    return bytes / (int64_t)e->real_bytes;
}

/* Backward finishes the buckets of the last place first. */
static enum lk_status create(struct lk_exchange *e, const struct lk_exchange_config *c)
{
    const struct lk_tiling *tiling = lk_replica_tiling(c->replicas[0]);
    e->most_terms = lk_exchange_terms(c->shards, tiling->shards, c->keeps_sums);
    e->head = find_head(e, c);
    for (int i = c->places - 1; i >= 0; i--) {
        e->sides[i].device = c->devices[i];
        e->sides[i].replica = c->replicas[i];
        LK_TRY(create_side(e, &e->sides[i]));
    }
    struct lk_exchange_parcel *metrics = &e->parcels[e->buckets];
    *metrics = (struct lk_exchange_parcel){
        .side = &e->sides[c->place_of_loss], .bucket = -1, .count = LK_PAD};
    for (int b = 1; b <= e->buckets; b++)
        e->parcels[b].before = e->parcels[b - 1].before + e->parcels[b - 1].count;
    return create_parcel(e, metrics);
}

enum lk_status lk_exchange_create(const struct lk_exchange_config *config,
                                  struct lk_exchange **exchange)
{
    struct lk_exchange *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("an exchange", sizeof *made);
    made->places = config->places;
    made->keeps_sums = config->keeps_sums;
    made->real_bytes = lk_dtype_bytes(lk_replica_real(config->replicas[0]));
    const enum lk_status status = create(made, config);
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
        lk_buffer_destroy(exchange->parcels[b].kept);
        lk_transfer_buffer_destroy(exchange->parcels[b].terms);
        lk_transfer_buffer_destroy(exchange->parcels[b].result);
    }
    for (int i = 0; i < exchange->places; i++) {
        lk_transfer_buffer_destroy(exchange->sides[i].checks);
        lk_shard_sum_destroy(exchange->sides[i].sum);
    }
    free(exchange);
}

int lk_exchange_metrics(const struct lk_exchange *exchange)
{
    return exchange->buckets;
}

int lk_exchange_bucket(const struct lk_exchange *exchange, int place, int bucket)
{
    return exchange->sides[place].first + bucket;
}

int64_t lk_exchange_reals(const struct lk_exchange *exchange, int bucket)
{
    return exchange->parcels[bucket].count;
}

int64_t lk_exchange_reals_before(const struct lk_exchange *exchange, int bucket)
{
    return exchange->parcels[bucket].before;
}

struct lk_buffer *lk_exchange_shard_metrics(struct lk_exchange *exchange)
{
    return lk_shard_sum_metrics(exchange->parcels[exchange->buckets].side->sum);
}

enum lk_status lk_exchange_begin(struct lk_exchange *e, struct lk_shard_run run)
{
    for (int b = 0; b <= e->buckets; b++)
        LK_TRY(lk_transfer_buffer_enqueue_to_device(e->parcels[b].terms, 0));
    e->run = run;
    e->count = lk_subtrees_of(run.first, run.count, e->subtrees);
    return LK_OK;
}

enum lk_status lk_exchange_wait(struct lk_exchange *e, int bucket,
                                struct lk_term terms[LK_MOST_SHARDS],
                                const uint32_t **checksums, int *count)
{
    const struct lk_exchange_parcel *p = &e->parcels[bucket];
    void *memory;
    LK_TRY(lk_transfer_buffer_wait(p->terms, &memory));
    for (int i = 0; i < LK_REPLICA_SLOTS && bucket == e->buckets; i++)
        LK_TRY(lk_replica_wait_slot(p->side->replica, i));
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
    const struct lk_exchange_parcel *p = &e->parcels[bucket];
    if (!p->kept)
        return lk_transfer_buffer_wait(p->result, memory);
    LK_TRY(lk_transfer_buffer_wait(p->terms, memory));
    *memory = (char *)*memory + (size_t)e->head * e->real_bytes;
    return LK_OK;
}

enum lk_status lk_exchange_enqueue_result(struct lk_exchange *e, int bucket)
{
    const struct lk_exchange_parcel *p = &e->parcels[bucket];
    if (p->kept)
        return lk_transfer_buffer_enqueue_to_device(p->terms, 0);
    return lk_transfer_buffer_enqueue_to_device(p->result, (size_t)p->count * e->real_bytes);
}

struct lk_buffer *lk_exchange_sum(struct lk_exchange *e, int bucket)
{
    const struct lk_exchange_parcel *p = &e->parcels[bucket];
    return p->kept ? p->kept : lk_transfer_buffer_on_device(p->result);
}

static enum lk_status enqueue_weights(const struct lk_exchange_side *side)
{
    const int64_t trained = lk_replica_gradient_count(side->replica);
    if (trained == 0)
        return LK_OK;
    return lk_shard_sum_enqueue_checksum(side->sum, lk_replica_weights(side->replica), 0,
                                         trained, lk_transfer_buffer_on_device(side->checks),
                                         side->buckets);
}

static enum lk_status end_side(struct lk_exchange *e, const struct lk_exchange_side *side,
                               bool weights)
{
    struct lk_buffer *y = lk_transfer_buffer_on_device(side->checks);
    LK_TRY(lk_transfer_buffer_enqueue_to_device(side->checks, 0));
    for (int b = 0; b < side->buckets; b++)
        LK_TRY(lk_shard_sum_enqueue_checksum(side->sum, lk_exchange_sum(e, side->first + b), 0,
                                             e->parcels[side->first + b].count, y, b));
    if (weights)
        LK_TRY(enqueue_weights(side));
    for (int b = side->first; b < side->first + side->buckets && !e->keeps_sums; b++)
        LK_TRY(lk_transfer_buffer_enqueue_to_host(e->parcels[b].result,
                                                  (size_t)e->parcels[b].count * e->real_bytes));
    return lk_transfer_buffer_enqueue_to_host(side->checks, sizeof e->checksums);
}

enum lk_status lk_exchange_end(struct lk_exchange *e, bool weights)
{
    e->is_weighed = weights;
    for (int i = 0; i < e->places; i++)
        LK_TRY(end_side(e, &e->sides[i], weights));
    return LK_OK;
}

/* The checksums of the sums stay in the buffer. */
enum lk_status lk_exchange_weigh(struct lk_exchange *e)
{
    e->is_weighed = true;
    for (int i = 0; i < e->places; i++) {
        const struct lk_exchange_side *side = &e->sides[i];
        LK_TRY(lk_transfer_buffer_enqueue_to_device(side->checks, 0));
        LK_TRY(enqueue_weights(side));
        LK_TRY(lk_transfer_buffer_enqueue_to_host(side->checks, sizeof e->checksums));
    }
    return LK_OK;
}

/* A device alone gives the checksum of its weights as it is; those of several are told apart by
 * their places. */
enum lk_status lk_exchange_checks(struct lk_exchange *e, const uint32_t **checksums)
{
    uint32_t weights = 0;
    for (int i = 0; i < e->places; i++) {
        const struct lk_exchange_side *side = &e->sides[i];
        void *memory;
        LK_TRY(lk_transfer_buffer_wait(side->checks, &memory));
        const uint32_t *found = memory;
        memcpy(e->checksums + side->first, found, (size_t)side->buckets * sizeof *found);
        weights += found[side->buckets] * (2 * (uint32_t)i + 1);
    }
    e->checksums[e->buckets] = e->is_weighed ? weights : 0;
    *checksums = e->checksums;
    return LK_OK;
}

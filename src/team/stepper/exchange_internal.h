/* The inside of an exchange, for the files that make it up. Floor 7. */
#ifndef LK_TEAM_STEPPER_EXCHANGE_INTERNAL_H
#define LK_TEAM_STEPPER_EXCHANGE_INTERNAL_H

#include "team/stepper/exchange.h"

/* A device with its replica, whose buckets are `buckets` of the exchange from `first` on. */
struct lk_exchange_side {
    struct lk_device *device;
    struct lk_replica *replica;
    struct lk_shard_sum *sum;
    int first, buckets;
    struct lk_transfer_buffer *checks;
};

/* The sums of a bucket on their way to the host: a checksum for each term, padded to `head`
 * reals, then the terms. */
struct lk_exchange_parcel {
    struct lk_exchange_side *side;
    int bucket;           /* of the side's replica; -1: the metrics */
    int64_t first, count; /* reals of a term: of the gradients, or metrics */
    int64_t before;       /* reals of all parcels before */
    struct lk_transfer_buffer *terms, *result; /* result: NULL where the sum is kept */
    struct lk_buffer *kept;                    /* the only term's part of `terms`, or NULL */
};

struct lk_exchange {
    struct lk_exchange_side sides[LK_MOST_PLACES];
    int places;
    bool keeps_sums;
    size_t real_bytes;
    int buckets;    /* without the metrics */
    int most_terms; /* of any run */
    int64_t head;
    struct lk_exchange_parcel parcels[LK_MOST_BUCKETS + 1];

    struct lk_shard_run run;
    struct lk_subtree subtrees[LK_MOST_SUBTREES];
    int count;
    bool is_weighed; /* the last checksums include that of the weights */
    uint32_t checksums[LK_MOST_BUCKETS + 1];
};

#endif

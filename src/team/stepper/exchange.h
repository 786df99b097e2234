/* What a device gives to a step that devices share, and gets back: sums of gradients over
 * subtrees of its shards, bucket by bucket, and the sum over all shards. Floor 7. Knows no
 * other device, no thread and no optimizer. */
#ifndef LK_TEAM_STEPPER_EXCHANGE_H
#define LK_TEAM_STEPPER_EXCHANGE_H

#include "graph/replica.h"
#include "mirror/shards.h"

struct lk_exchange;

/* A run of a batch's shards, computed `most` at a time: in passes that end where a multiple of
 * `most` begins. */
struct lk_shard_run {
    int first, count;
};

/* The pass that begins with shard `first` of a run. */
struct lk_shard_run lk_shard_run_pass(struct lk_shard_run run, int first, int most);

/* For a replica of a training whose batches have `shards` shards; kernels run after
 * lk_device_build(). fails: LK_E_MEMORY, LK_E_DEVICE_MEMORY */
LK_MUST_CHECK enum lk_status lk_exchange_create(struct lk_device *device,
                                                struct lk_replica *replica, int shards,
                                                struct lk_exchange **exchange);
void lk_exchange_destroy(struct lk_exchange *exchange);

/* The most sums over subtrees that are held at once while any run of `shards` shards is
 * computed, `most` at a time: as long as the gradient, on the device, beside the one over all
 * shards. They are added as siblings come, so that small passes need no more than large ones.
 */
int lk_exchange_terms(int shards, int most);

/* Begins a share of a step: the shards of `run`. Enqueues. */
LK_MUST_CHECK enum lk_status lk_exchange_begin(struct lk_exchange *exchange,
                                               struct lk_shard_run run);

/* Sums what forward or backward has left of a pass over its subtrees, and with those of the
 * passes before. Buckets are those of the
 * replica; number lk_replica_bucket_count() is loss and correct answers, after forward. The
 * run's last pass sends the bucket to the host. Enqueues. */
LK_MUST_CHECK enum lk_status lk_exchange_enqueue_bucket(struct lk_exchange *exchange,
                                                        int bucket, struct lk_shard_run pass);

/* Waits until a bucket is on the host, and gives its terms in ascending order and their
 * checksums as the device made them; valid until the next begin. fails: LK_E_DEVICE, for the
 * metrics also where an upload of the samples has failed */
LK_MUST_CHECK enum lk_status lk_exchange_wait(struct lk_exchange *exchange, int bucket,
                                              struct lk_term terms[LK_MOST_SHARDS],
                                              const uint32_t **checksums, int *count);

/* Host memory for a bucket's sum over all shards; waits until the last update has read it. */
LK_MUST_CHECK enum lk_status lk_exchange_result(struct lk_exchange *exchange, int bucket,
                                                void **memory);

/* Sends a bucket's sum to the device. Enqueues. */
LK_MUST_CHECK enum lk_status lk_exchange_enqueue_result(struct lk_exchange *exchange,
                                                        int bucket);

/* The sum on the device, for the update. */
struct lk_buffer *lk_exchange_sum(struct lk_exchange *exchange, int bucket);

/* Ends a step behind its update: lets the host have the results' memory again, and makes
 * checksums of what the device has got and, with `weights`, of its weights. Enqueues. */
LK_MUST_CHECK enum lk_status lk_exchange_end(struct lk_exchange *exchange, bool weights);

/* Waits for the checksums of the last end: one for each bucket, then that of the weights (0
 * where none was asked for). Valid until the next end. */
LK_MUST_CHECK enum lk_status lk_exchange_checks(struct lk_exchange *exchange,
                                                const uint32_t **checksums);

#endif

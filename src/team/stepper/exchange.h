/* The exchange of gradients between a device and the host in a step that several devices share:
 * the device gives sums over subtrees of its shards, bucket by bucket, and gets back the sums
 * over all shards. One that has all shards gives its sums only to be looked at. Floor 7. Knows
 * no other device, no thread and no optimizer. */
#ifndef LK_TEAM_STEPPER_EXCHANGE_H
#define LK_TEAM_STEPPER_EXCHANGE_H

#include "graph/place/group.h"
#include "mirror/shards.h"
#include "mirror/terms.h"

struct lk_exchange;

/* Of one device, or of those of a group (graph/place/group.h) with the replicas that have the
 * weights and gradients of each place. */
struct lk_exchange_config {
    struct lk_device *const *devices;
    struct lk_replica *const *replicas;
    int places, place_of_loss;
    int shards;      /* of a batch */
    bool keeps_sums; /* the device has all shards of every batch: their sum needs no memory
                      * beside that of its terms, and does not come back from the host */
};

/* How many terms, each as long as the gradient, a device has room for that computes `most` of a
 * batch's shards at a time. */
int lk_exchange_terms(int shards, int most, bool keeps_sums);

/* Kernels run after lk_device_build(). fails: LK_E_MEMORY, LK_E_DEVICE_MEMORY */
LK_MUST_CHECK enum lk_status lk_exchange_create(const struct lk_exchange_config *config,
                                                struct lk_exchange **exchange);
void lk_exchange_destroy(struct lk_exchange *exchange);

/* Begins a share of a step: the shards of `run`. Enqueues. */
LK_MUST_CHECK enum lk_status lk_exchange_begin(struct lk_exchange *exchange,
                                               struct lk_shard_run run);

/* Where the metrics of single shards are, before they are added (lk_shard_sum_metrics()). */
struct lk_buffer *lk_exchange_shard_metrics(struct lk_exchange *exchange);

/* The number under which the metrics (sums of the loss and of right answers) travel as if they
 * were a bucket: the one behind the last bucket. */
int lk_exchange_metrics(const struct lk_exchange *exchange);

/* The number of a bucket of a place's replica. Of several places those of the last one come
 * first, which backward finishes before others. */
int lk_exchange_bucket(const struct lk_exchange *exchange, int place, int bucket);

/* Reals of a bucket's sum, or of the metrics; and of all buckets before it. */
int64_t lk_exchange_reals(const struct lk_exchange *exchange, int bucket);
int64_t lk_exchange_reals_before(const struct lk_exchange *exchange, int bucket);

/* Adds up a bucket's gradients of one micro-batch along the tree, together with those of the
 * micro-batches before; likewise its metrics, once `from` has run forward. With the run's last
 * micro-batch the sums are sent to the host. Enqueue. */
LK_MUST_CHECK enum lk_status lk_exchange_enqueue_bucket(struct lk_exchange *exchange,
                                                        int bucket,
                                                        struct lk_shard_run at_once);
LK_MUST_CHECK enum lk_status lk_exchange_enqueue_metrics(struct lk_exchange *exchange,
                                                         const struct lk_replica *from,
                                                         struct lk_shard_run at_once);

/* Waits until a bucket is on the host, and gives its terms, ordered by their shards, with the
 * checksums that the device made of them; valid until the next begin. fails: LK_E_DEVICE; for
 * the metrics also if an upload of the samples has failed */
LK_MUST_CHECK enum lk_status lk_exchange_wait(struct lk_exchange *exchange, int bucket,
                                              struct lk_term terms[LK_MOST_SHARDS],
                                              const uint32_t **checksums, int *count);

/* Host memory for a bucket's sum over all shards; waits until the device has taken over the sum
 * that was in it. Of a device that keeps its sums: the only term, which is that sum. */
LK_MUST_CHECK enum lk_status lk_exchange_result(struct lk_exchange *exchange, int bucket,
                                                void **memory);

/* Sends a bucket's sum to the device. Enqueues. */
LK_MUST_CHECK enum lk_status lk_exchange_enqueue_result(struct lk_exchange *exchange,
                                                        int bucket);

/* The sum on the device, for the update. */
struct lk_buffer *lk_exchange_sum(struct lk_exchange *exchange, int bucket);

/* Ends a step after its update: gives the results' memory back to the host, and computes
 * checksums of the sums that the device got and, with `weights`, of its weights. Enqueues. */
LK_MUST_CHECK enum lk_status lk_exchange_end(struct lk_exchange *exchange, bool weights);

/* Computes the checksum of the weights after an end without it. Enqueues. */
LK_MUST_CHECK enum lk_status lk_exchange_weigh(struct lk_exchange *exchange);

/* Waits for the checksums of the last end: one for each bucket, then that of the weights (0
 * where none was asked for). Valid until the next end or weighing. */
LK_MUST_CHECK enum lk_status lk_exchange_checks(struct lk_exchange *exchange,
                                                const uint32_t **checksums);

#endif

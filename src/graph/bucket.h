/* Buckets of gradients: how they leave a replica while backward goes on. Floor 5. Knows no
 * particular operation. */
#ifndef LK_GRAPH_BUCKET_H
#define LK_GRAPH_BUCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lk_buffer;
struct lk_replica;

/* Parameters whose gradients backward finishes together: elements first to first + count - 1 of
 * the weights, whose gradients are those from `at` on. Their sum over a batch has sum_count
 * reals: as many, or it is a row list; list: those of the last backward, [shards][list_stride],
 * where list_stride is not 0. */
struct lk_bucket {
    int64_t first, at, count, sum_count, list_stride;
    struct lk_buffer *list;
};

/* Of all replicas of a group together. */
enum { LK_MOST_BUCKETS = 128 };

/* Buckets in the order in which backward finishes them: the last layers' first; each about
 * 2^18 elements or one parameter, whatever is more. They cover all of 0 to gradient_count; last
 * come tables with lists, then tracked parameters. */
int lk_replica_bucket_count(const struct lk_replica *replica);
struct lk_bucket lk_replica_bucket(const struct lk_replica *replica, int index);

/* Tables with row lists. */
enum { LK_MOST_LISTS = 4 };

/* Run number `index` of elements that no row list parts: elements first to first + count - 1,
 * whose gradients lie side by side, from `at` on. False past the last. */
struct lk_gradient_run {
    int64_t first, at, count;
};
bool lk_replica_gradient_run(const struct lk_replica *replica, int index,
                             struct lk_gradient_run *run);

/* With config.packs_once what is packed of weights is kept, where there is memory for that,
 * until this tells that they may have changed: for all replicas with the same weights. Call it
 * before any forward. packs_once(): whether there was memory. */
void lk_replica_renew_weights(struct lk_replica *replica);
bool lk_replica_packs_once(const struct lk_replica *replica);

/* With config.one_step: whether more steps may come than sequences have. */
bool lk_replica_forgets_nothing(const struct lk_replica *replica);

/* Bytes of a sample of an input in a slot (lk_replica_slot()). */
struct lk_node;
size_t lk_replica_sample_bytes(const struct lk_replica *replica, const struct lk_node *input);

#endif

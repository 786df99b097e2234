/* Sums over a shard that are made in parts, which are then added in order: enough work for all
 * of a device, whose bits do not depend on it. Floor 3. Private to src/products. */
#ifndef LK_PRODUCTS_PARTIAL_SUMS_H
#define LK_PRODUCTS_PARTIAL_SUMS_H

#include "products/kernel/kernel.h"

struct lk_partial_sums {
    int64_t parts;        /* of a shard; 1: sums lie where their total would */
    int64_t first, count; /* in the workspace: from which real on; reals of a part */
    struct lk_kernel *total;
};

/* The pixels of a run, within which parts lie (cl/lib/parts.cl), of tiles of so many: the time
 * steps of a batch tile, or the whole shard; and the parts of all of them. */
int64_t lk_run_pixels(const struct lk_product_setup *setup, int64_t tile_pixels);
int64_t lk_count_parts(const struct lk_product_setup *setup, int64_t tile_pixels,
                       int64_t part_pixels);

/* Announces what adds them. *reals: how many they take in the workspace. fails: LK_E_BUILD */
LK_MUST_CHECK enum lk_status lk_partial_sums_prepare(const struct lk_product_setup *setup,
                                                     struct lk_partial_sums *parts,
                                                     int64_t *reals);

/* Where the kernel that makes sums puts them: buffer, first real, reals from one to the next.
 * `result`: where the totals go, those of shards `stride` reals apart. */
#define LK_PARTIAL_SUMS_TO(p, workspace, result, stride)                                       \
    LK_BUF((p)->parts > 1 ? (workspace) : (result)), LK_INT((p)->parts > 1 ? (p)->first : 0),  \
        LK_INT((p)->parts > 1 ? (p)->count : (stride))

/* Adds them, where there is more than one. Enqueues. */
LK_MUST_CHECK enum lk_status lk_partial_sums_enqueue(const struct lk_product_setup *setup,
                                                     const struct lk_partial_sums *parts,
                                                     const struct lk_buffer *workspace,
                                                     struct lk_buffer *result, int64_t stride);

#endif

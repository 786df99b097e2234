/* Adds the sums of several devices in host memory, on several threads, along the fixed tree
 * over shards: the part of averaging gradients that no device can do alone. Floor 4. Knows no
 * device and no network. */
#ifndef LK_MIRROR_REDUCE_H
#define LK_MIRROR_REDUCE_H

#include "mirror/tree.h"
#include <lockstep/status.h>
#include <lockstep/tensor.h>
#include <stdint.h>

enum { LK_MOST_COPIES = 64 };

/* The sum over a subtree, a result. It is written to each of the copies. A copy may be the
 * memory of a term of the same subtree, but must not overlap anything else. */
struct lk_reduction_result {
    struct lk_subtree subtree;
    void *const *copies; /* [copy_count]: memory for the sum, one for each device */
    int copy_count;      /* 0: it is only looked at */
    uint32_t checksum;   /* result, where the job has `checksums`: of the sum, as of terms */
    bool is_finite;      /* result, likewise: no value is infinite or NaN */
};

struct lk_reduction_job {
    enum lk_dtype dtype;         /* LK_F32, LK_F64 */
    int64_t count;               /* reals of each term and each sum */
    const struct lk_term *terms; /* ascending, aligned as their type is */
    int term_count;
    struct lk_reduction_result *sums; /* of the subtrees that lk_terms_join() gives */
    int sum_count;
    uint32_t *checksums; /* [term_count]: sum of w[i] * (2 i + 1) over a term's 32-bit words w,
                            modulo 2^32; NULL: nothing is checked */
};

/* Joins terms in ascending order to as few subtrees as possible; returns how many. Terms of a
 * run of shards without a gap give the subtrees of lk_subtrees_of(). */
int lk_terms_join(const struct lk_term *terms, int count,
                  struct lk_subtree subtrees[LK_MOST_SHARDS]);

struct lk_reducer;

/* A reducer with `threads` threads, 1 to 256, the caller's among them; the others sleep between
 * jobs.
 * fails: LK_E_ARGUMENT, LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_reducer_create(int threads, struct lk_reducer **reducer);
void lk_reducer_destroy(struct lk_reducer *reducer);

/* Each sum of siblings is lower + higher, as cl/mirror/shards.cl has it: the same bits. Waits,
 * allocates nothing; one job at a time. fails: LK_E_ARGUMENT for terms that overlap or are no
 * subtrees, or sums that are not theirs; nothing is written then */
LK_MUST_CHECK enum lk_status lk_reducer_sum(struct lk_reducer *reducer,
                                            const struct lk_reduction_job *job);

#endif

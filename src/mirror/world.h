/* The world: all ranks of a job that trains one model on many hosts. A rank is a process that
 * mpirun has started; a process started otherwise is a world of one. Sums over all shards are
 * added along the fixed tree, so they have the same bits at any number of ranks. All calls on
 * one thread. Functions marked "together" are called by every rank, in the same order. Floor 4.
 * Knows no device. */
#ifndef LK_MIRROR_WORLD_H
#define LK_MIRROR_WORLD_H

#include "mirror/reduce.h"
#include "mirror/tree.h"
#include <lockstep/status.h>
#include <lockstep/tensor.h>
#include <stddef.h>

struct lk_world;

/* Together: joins the job. Once in a process, since MPI can be started only once.
 * fails: LK_E_ARGUMENT several ranks, but this build has no MPI; LK_E_IO */
LK_MUST_CHECK enum lk_status lk_world_open(struct lk_world **world);

/* Together: leaves the job; sums that are not finished are given up. NULL is fine. */
void lk_world_close(struct lk_world *world);

/* This process's rank and the number of ranks as the launcher's environment variables tell
 * them, before the job is joined. Without a launcher 0 and 1; 0 ranks where it does not tell
 * them. */
int lk_world_launched_rank(void);
int lk_world_launched_ranks(void);

/* This process's rank, and the number of ranks. NULL is a world of one. */
int lk_world_rank(const struct lk_world *world);
int lk_world_size(const struct lk_world *world);

/* Together, a barrier: returns LK_OK when every rank has called it with LK_OK. A rank that
 * calls it with a failure makes all fail, as lk_world_fail() does. */
LK_MUST_CHECK enum lk_status lk_world_barrier(struct lk_world *world, enum lk_status status);

/* Tells all ranks that this one has failed, and returns `status`. The job is over: all calls of
 * all ranks, running or later, fail with that status and "rank N: <text>", and only
 * lk_world_close() is left to do. */
enum lk_status lk_world_fail(struct lk_world *world, enum lk_status status);

/* Whether this rank or another one has failed, so that all calls fail. */
bool lk_world_has_failed(const struct lk_world *world);

/* Together, a broadcast: copies rank 0's memory to all ranks. fails: LK_E_IO */
LK_MUST_CHECK enum lk_status lk_world_broadcast(struct lk_world *world, size_t bytes,
                                                void *memory);

/* Together, an all-reduce: values [count], at most LK_MOST_ADDED, become their sums over all
 * ranks, added in any order. fails: LK_E_IO */
enum { LK_MOST_ADDED = 16384 };
LK_MUST_CHECK enum lk_status lk_world_all_reduce(struct lk_world *world, size_t count,
                                                 double *values);

/* Together: checks that all ranks have the same text. Otherwise the job is over and every rank
 * fails with one message that quotes the first lines that differ: "<what> differ: rank 0 has
 * ..., rank 2 has ...". fails: LK_E_ARGUMENT, LK_E_IO */
LK_MUST_CHECK enum lk_status lk_world_check_equal(struct lk_world *world, const char *what,
                                                  const char *text);

struct lk_world_plan {
    int shards;
    const int *runs;       /* [ranks]: how many of the shards each has, in turn; 0 is allowed */
    enum lk_dtype real;    /* LK_F32, LK_F64 */
    int buckets;           /* buckets, whose sums may all run at the same time */
    const int64_t *counts; /* [buckets]: values in each */
    bool in_any_order;     /* by MPI's all-reduce, whose bits may differ from run to run */
    struct lk_reducer *reducer; /* borrowed until the next plan or the close */
};

/* Allocates the memory for sums; replaces an earlier plan, none of whose sums may be running.
 * All ranks must plan the same, or their sums are wrong. fails: LK_E_ARGUMENT, LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_world_plan(struct lk_world *world,
                                           const struct lk_world_plan *plan);

/* Together: begins the sum of a bucket over all shards; does not wait. terms: one for each
 * subtree that lk_subtrees_of() cuts this rank's run into. Their values, and result
 * [counts[bucket]], must not be touched until lk_world_sum_end() has returned, or after a
 * failure lk_world_close(), since other ranks may still read them. */
LK_MUST_CHECK enum lk_status lk_world_sum_begin(struct lk_world *world, int bucket,
                                                const struct lk_term *terms, void *result);

/* Makes progress with all running sums. They make none by themselves, so call it often between
 * other work. */
LK_MUST_CHECK enum lk_status lk_world_sum_advance(struct lk_world *world);

/* Waits until the bucket's `result` holds the sum. fails: LK_E_IO, or with the failure of
 * another rank */
LK_MUST_CHECK enum lk_status lk_world_sum_end(struct lk_world *world, int bucket);

#endif

/* The ranks of a job that trains one model on many hosts: one process each, started by mpirun;
 * a process started otherwise is a world of one. Sums over all shards are added along the fixed
 * tree, so that they have the same bits at any number of ranks. All calls on one thread. What
 * is marked "together" is called by every rank, in the same order. Floor 4. Knows no device. */
#ifndef LK_MIRROR_WORLD_H
#define LK_MIRROR_WORLD_H

#include "mirror/reduce.h"
#include "mirror/tree.h"
#include <lockstep/status.h>
#include <lockstep/tensor.h>
#include <stddef.h>

struct lk_world;

/* Joins the job, together; once a process, since MPI starts only once. fails: LK_E_UNSUPPORTED
 * for several ranks without MPI in this build; LK_E_IO */
LK_MUST_CHECK enum lk_status lk_world_open(struct lk_world **world);

/* Leaves it, together; sums on their way are given up. NULL is fine. */
void lk_world_close(struct lk_world *world);

/* As the launcher tells in the environment, before the job is joined: 0 and 1 without one; 0
 * ranks where it does not tell how many. */
int lk_world_launched_rank(void);
int lk_world_launched_ranks(void);

/* NULL is a world of one. */
int lk_world_rank(const struct lk_world *world);
int lk_world_size(const struct lk_world *world);

/* Together: returns when every rank has come here with LK_OK. Where one comes with a failure,
 * it tells the others as lk_world_fail() does. */
LK_MUST_CHECK enum lk_status lk_world_agree(struct lk_world *world, enum lk_status status);

/* Tells all ranks that this one has failed, and returns `status`; their calls, begun or still
 * to come, fail with it and "rank N: <text>", which becomes this rank's text too. The job is
 * over: what is left to do is lk_world_close(). */
enum lk_status lk_world_fail(struct lk_world *world, enum lk_status status);

/* This rank or another has: all calls fail. */
bool lk_world_has_failed(const struct lk_world *world);

/* Together: rank 0's memory to all. fails: LK_E_IO */
LK_MUST_CHECK enum lk_status lk_world_share(struct lk_world *world, size_t bytes, void *memory);

/* Together: adds values [count], at most LK_MOST_ADDED, of all ranks, in any order.
 * fails: LK_E_IO */
enum { LK_MOST_ADDED = 16384 };
LK_MUST_CHECK enum lk_status lk_world_add(struct lk_world *world, size_t count, double *values);

/* Together: fails on every rank, as one that has failed, with one message where a rank's text
 * is not rank 0's; it quotes the first lines that differ: "<what> differ: rank 0 has ..., rank
 * 2 has ...". fails: LK_E_ARGUMENT, LK_E_IO */
LK_MUST_CHECK enum lk_status lk_world_check_equal(struct lk_world *world, const char *what,
                                                  const char *text);

struct lk_world_plan {
    int shards;
    const int *runs;       /* [ranks]: how many of the shards each has, in turn; 0 is allowed */
    enum lk_dtype real;    /* LK_F32, LK_F64 */
    int buckets;           /* sums that may be on their way at once */
    const int64_t *counts; /* [buckets]: values in each */
    bool in_any_order;     /* by MPI's all-reduce: no promise of equal bits */
    struct lk_reducer *reducer; /* adds; borrowed while the plan holds */
};

/* Takes the memory for sums, in place of an earlier plan's; none may be on its way. Ranks that
 * plan differently have wrong sums. fails: LK_E_ARGUMENT, LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_world_plan(struct lk_world *world,
                                           const struct lk_world_plan *plan);

/* Together: begins the sum over all shards of a bucket that is not on its way. terms: one for
 * each subtree that lk_subtrees_of() cuts this rank's run into; their values, and result
 * [counts[bucket]], are left alone until the end; after a failure until lk_world_close(), since
 * others may still read them. Waits for nothing. */
LK_MUST_CHECK enum lk_status lk_world_sum_begin(struct lk_world *world, int bucket,
                                                const struct lk_term *terms, void *result);

/* Carries on with all sums on their way; nothing else does, so call it between other work. */
LK_MUST_CHECK enum lk_status lk_world_sum_advance(struct lk_world *world);

/* Waits until `result` holds the sum. fails: LK_E_IO, or as a rank that has failed */
LK_MUST_CHECK enum lk_status lk_world_sum_end(struct lk_world *world, int bucket);

#endif

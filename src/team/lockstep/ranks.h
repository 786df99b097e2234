/* A team and the other ranks of its job, with which it shares sums and what each tells. An
 * arrival is a bucket, the metrics first. Floor 7.*/
#ifndef LK_TEAM_LOCKSTEP_RANKS_H
#define LK_TEAM_LOCKSTEP_RANKS_H

#include "team/lockstep/lockstep.h"

/* An arrival's sums: over each of this rank's subtrees, and over all shards. */
struct lk_rank_bucket {
    void *values[LK_MOST_SUBTREES], *result;
    bool is_sent;
};

/* The report that ranks exchange after each step: numbers for each rank and for each device.
 * Each rank fills in its own and leaves 0 elsewhere, so that the sum over ranks has all of
 * them. */
enum { LK_REPORT_STOP, LK_REPORT_CHECKSUM, LK_REPORT_WEIGHTS, LK_RANK_REPORTS };
enum {
    LK_REPORT_LEFT,
    LK_REPORT_SAMPLES,
    LK_REPORT_SHARE,
    LK_REPORT_INPUT,
    LK_REPORT_TRANSFER,
    LK_REPORT_COMPUTE,
    LK_REPORT_REDUCE,
    LK_REPORT_WAIT, /* in the step before: that of this one is not known yet */
    LK_DEVICE_REPORTS
};

struct lk_team_ranks {
    struct lk_world *world;
    int first[LK_MOST_SPLIT_DEVICES +
              1]; /* of each rank: its first device among those of all */
    struct lk_subtree subtrees[LK_MOST_SUBTREES];
    int terms, sent;
    struct lk_rank_bucket buckets[LK_MOST_BUCKETS + 1];
    char *memory; /* of the buckets */
    double told[LK_MOST_SPLIT_DEVICES *
                (LK_RANK_REPORTS + LK_DEVICE_REPORTS)]; /* ranks, then devices */
    double waits[LK_MOST_TEAM]; /* of this rank's devices, in the step before */
};

/* Together: all learn how many devices each has. */
LK_MUST_CHECK enum lk_status lk_team_ranks_create(struct lk_world *world, int devices,
                                                  struct lk_team_ranks **ranks);
void lk_team_ranks_destroy(struct lk_team_ranks *ranks);

/* Of all ranks; this rank's first one among them. */
int lk_team_ranks_devices(const struct lk_team_ranks *ranks);
int lk_team_ranks_first(const struct lk_team_ranks *ranks);

/* Takes the memory for the sums of this rank's shards, which have changed. No step may be on
 * its way between ranks. fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_team_ranks_allocate(struct lk_team *team);

/* Where this rank's sums of an arrival go: of each of its subtrees; returns how many. */
int lk_team_ranks_sums(const struct lk_team_ranks *ranks, int arrival,
                       struct lk_reduction_result sums[LK_MOST_SUBTREES]);

/* Sends them; whether they were sent in an earlier try of the step. */
LK_MUST_CHECK enum lk_status lk_team_ranks_send(struct lk_team *team, int arrival);
bool lk_team_ranks_has_sent(const struct lk_team_ranks *ranks, int arrival);

/* After a step: of the devices of all ranks, as they were told. What other ranks' waited is of
 * the step before. */
void lk_team_ranks_times(struct lk_team *team, struct lk_device_times *times);

/* As lk_team_wait(), and carries on with what travels. Releases the mutex meanwhile. */
LK_MUST_CHECK enum lk_status lk_team_ranks_wait(struct lk_team *team, double until,
                                                bool *is_late);

/* Once all is sent: waits for the sums over all ranks and hands them out to the devices. Where
 * the ranks' parameters differ, they become rank 0's and *is_right false: the step has to be
 * computed again, by all. The mutex is not held. fails: as a rank that has failed */
LK_MUST_CHECK enum lk_status lk_team_ranks_receive(struct lk_team *team, void *metrics,
                                                   bool *is_right);

/* Exchanges what ranks tell, together. *is_right: the ranks' parameters are the same, as far as
 * they were compared. */
LK_MUST_CHECK enum lk_status lk_team_ranks_exchange_reports(struct lk_team *team,
                                                            bool *is_right);

#endif

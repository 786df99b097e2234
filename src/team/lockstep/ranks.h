/* A team and the other ranks of its job: together they add sums, and after each step they
 * exchange a report. Floor 7. */
#ifndef LK_TEAM_LOCKSTEP_RANKS_H
#define LK_TEAM_LOCKSTEP_RANKS_H

#include "team/lockstep/lockstep.h"

/* An arrival's sums: over each of this rank's subtrees, and over all shards. */
struct lk_rank_arrival {
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
    struct lk_rank_arrival arrivals[LK_ARRIVAL_BUCKETS + LK_MOST_BUCKETS];
    char *memory; /* of the sums */
    double told[LK_MOST_SPLIT_DEVICES *
                (LK_RANK_REPORTS + LK_DEVICE_REPORTS)]; /* ranks, then devices */
    double waits[LK_MOST_TEAM]; /* of this rank's devices, in the step before */
};

/* All ranks call it together, and learn how many devices each of them has. */
LK_MUST_CHECK enum lk_status lk_team_ranks_create(struct lk_world *world, int devices,
                                                  struct lk_team_ranks **ranks);
void lk_team_ranks_destroy(struct lk_team_ranks *ranks);

/* The number of devices of all ranks; the number of this rank's first one among them. */
int lk_team_ranks_devices(const struct lk_team_ranks *ranks);
int lk_team_ranks_first(const struct lk_team_ranks *ranks);

/* Takes the memory for the sums of this rank's shards, which have changed. No step may be on
 * its way between ranks. fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_team_ranks_allocate(struct lk_team *team);

/* Where this rank's sums of an arrival go: of each of its subtrees; returns how many. */
int lk_team_ranks_sums(const struct lk_team_ranks *ranks, int arrival,
                       struct lk_reduction_result sums[LK_MOST_SUBTREES]);

/* Sends them to the ranks that own them; whether that was done in an earlier try of the step.
 */
LK_MUST_CHECK enum lk_status lk_team_ranks_send(struct lk_team *team, int arrival);
bool lk_team_ranks_has_sent(const struct lk_team_ranks *ranks, int arrival);

/* After a step: the times of the devices of all ranks, as the ranks have reported them. The
 * waiting times of other ranks' devices are those of the step before. */
void lk_team_ranks_times(struct lk_team *team, struct lk_device_times *times);

/* As lk_team_wait(), and goes on with transfers between ranks. Releases the mutex meanwhile. */
LK_MUST_CHECK enum lk_status lk_team_ranks_wait(struct lk_team *team, double until,
                                                bool *is_late);

/* Once all is sent: waits for the sums over all ranks and hands them out to the devices. Where
 * the ranks' parameters differ, they become rank 0's and *is_right false: the step has to be
 * computed again, by all. The mutex is not held. fails: as a rank that has failed */
LK_MUST_CHECK enum lk_status lk_team_ranks_receive(struct lk_team *team, void *metrics,
                                                   bool *is_right);

/* Exchanges the reports; all ranks call it together. *is_right: the checksums of the ranks'
 * parameters are equal, where they were compared. */
LK_MUST_CHECK enum lk_status lk_team_ranks_exchange_reports(struct lk_team *team,
                                                            bool *is_right);

#endif

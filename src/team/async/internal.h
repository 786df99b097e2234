/* The inside of asynchronous training, for the files that make it up. Floor 7. */
#ifndef LK_TEAM_ASYNC_INTERNAL_H
#define LK_TEAM_ASYNC_INTERNAL_H

#include "team/async/async.h"

enum { LK_MOST_GROUPS = LK_MOST_BEGUN * LK_MOST_TEAM };

/* A group: the shards of a step that one device computes at a time. */
struct lk_async_group {
    struct lk_step_share share;
    int64_t samples; /* its own */
    double lr;
    int tries;
    int doubted;        /* 1 + the number of a device on which its sums were not finite, so
                         * that another one is to compute it; 0: none */
    int64_t doubted_at; /* how many updates that device's replica had then */
};

/* A step that has begun and not ended. */
struct lk_async_step {
    struct lk_team_step step;
    int groups, applied, tries;
    double loss, correct, penalty; /* sums over the groups that were applied; the last of one */
    struct lk_device_times devices[LK_MOST_TEAM];
};

/* An entry of the log. */
struct lk_async_update {
    void *gradient;                 /* real [gradient_count]: the sum over a group */
    uint32_t sums[LK_MOST_BUCKETS]; /* its buckets' checksums */
    int64_t samples;
    double lr;
};

/* What asynchronous training knows of one device. */
struct lk_async_member {
    struct lk_async_group group; /* that it computes */
    bool has_group;
    bool is_wrong;                  /* what its replica received of an update is not what was
                                     * sent */
    double since;                   /* when it began to compute or to update; 0: it waits for
                                     * others */
    int64_t applied;                /* how many updates its replica has had */
    uint32_t sums[LK_MOST_BUCKETS]; /* checksums of the last of these */
    int doubts;                     /* groups in a row whose sums were finite on other
                                     * devices only */
    bool has_computed, has_applied; /* has done so at least once: the kernels for it are
                                     * compiled */
};

/* The team's mutex guards all but the gradients of the log: an entry is written by one
 * device while is_adding, and then only read, until all replicas have applied it. */
struct lk_async {
    struct lk_staleness staleness;
    struct lk_async_update *log; /* [room]: update n + 1 is entry n % room */
    int room;
    struct lk_async_group queue[LK_MOST_GROUPS];
    int queued;
    int groups; /* of a step: equal parts, so that updates weigh the same */
    struct lk_async_step steps[LK_MOST_BEGUN]; /* by their number */
    int64_t oldest;                            /* number of the first that is not ended */
    int begun;
    struct lk_async_member members[LK_MOST_TEAM];
    bool is_adding;    /* a device writes the next entry */
    bool is_pausing;   /* no group is taken until the replicas were compared */
    bool is_unchecked; /* updates were made since the replicas were compared */
    bool is_stopped;   /* training has ended: threads leave the queue and the log as they are */
};

static inline struct lk_async_member *lk_async_member(struct lk_worker *worker)
{
    return &worker->team->async->members[worker->position];
}

/* The step with that number, which has begun and not ended. */
struct lk_async_step *lk_async_step(struct lk_async *async, int64_t number);

/* Puts the groups of a step into the queue; those of a short batch that have no samples are
 * left out. */
void lk_async_queue_step(struct lk_team *team, const struct lk_team_step *step);

/* On a device's thread; the mutex is held, but not while the device works. Takes the queue's
 * next group where the device may begin one; computes it and makes it the log's next entry. */
bool lk_async_dequeue_group(struct lk_worker *worker);
LK_MUST_CHECK enum lk_status lk_async_do_group(struct lk_worker *worker);

/* Puts the group of a device that did not finish it back at the head of the queue. */
void lk_async_return(struct lk_async *async, int position);

/* Wakes all devices that have nothing to do; the threads of others look at the queue
 * themselves. */
void lk_async_wake(struct lk_team *team);

/* On the trainer's thread, with the mutex held: waits until `is_so`, and keeps the devices
 * at work on what is in the queue. fails: LK_E_DEVICE where no device is left; as a device
 * for a reason that is not its own, such as an unreadable sample: then all stop */
LK_MUST_CHECK enum lk_status lk_async_await(struct lk_team *team,
                                            bool (*is_so)(const struct lk_team *));
bool lk_async_is_idle(const struct lk_team *team);

/* Compares all replicas, if a comparison is due or one is known to be wrong, and lets the
 * devices go on. No device may be at work. */
LK_MUST_CHECK enum lk_status lk_async_check_replicas(struct lk_team *team);

/* The number-th update's entry, numbers from 1. */
struct lk_async_update *lk_async_update(struct lk_async *async, int64_t number);

#endif

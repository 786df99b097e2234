/* The inside of a team, for the files that make it up. Floor 7. */
#ifndef LK_TEAM_WORKERS_PARTS_H
#define LK_TEAM_WORKERS_PARTS_H

#include "mirror/reduce.h"
#include "mirror/split.h"
#include "team/workers/call.h"
#include "team/workers/profile.h"

enum { LK_TRIAL_STEPS = 7, LK_TRIAL_ROUNDS = 3, LK_SETTLING_STEPS = 10 };

/* At the start, once shares fit the devices' speeds: is the fastest one alone faster than all
 * together? Rounds in turn, of which most decide: what else runs on the host may spoil one. */
struct lk_trial {
    enum { LK_TRIAL_ALL, LK_TRIAL_ONE, LK_TRIAL_OVER } phase;
    int settled, steps, fastest; /* settled: steps since shares changed */
    int rounds, won;             /* won: by one device */
    double seconds[LK_TRIAL_STEPS], all_seconds;
    bool is_one_faster; /* then the others are sent home after this step */
    int64_t wait,
        again_at; /* steps until all are tried again, and the step; 0: never was one */
};

/* What a device has learnt, in host memory. */
struct lk_team_state {
    int64_t step; /* the last one that it is of */
    void *weights, *optimizer;
    size_t weights_bytes, optimizer_bytes;
};

struct lk_async;

struct lk_team {
    struct lk_team_config config;
    char devices[256], optimizer[64], optimizer_options[256], split_text[256], log_folder[512];
    struct lk_worker *workers[LK_MOST_TEAM];
    int count;
    bool is_alone; /* one device of one rank, from the start or by trial: its sums stay on it */
    struct lk_team_ranks *ranks; /* NULL: there is one */
    int all, first;             /* devices of all ranks, of which this one's begin at `first` */
    bool wants_stop, must_stop; /* this rank; one of all, in the step that ended last */
    struct lk_batches *batches;
    void (*describe)(void *context, int64_t number, struct lk_team_step *step);
    void *describe_context;
    struct lk_profile *profile;
    struct lk_reducer *reducer;
    struct lk_split split; /* over the devices of all ranks, who keep it the same */
    struct lk_trial trial;
    struct lk_team_state kept; /* while one is alone and others are idle: to go on from */
    int buckets;
    struct lk_team_counts counts;
    struct lk_async *async; /* NULL: in lockstep */

    pthread_mutex_t mutex; /* of all workers' orders and arrivals, and `pending` */
    pthread_cond_t changed;

    struct lk_team_step steps[2]; /* begun, not ended: the older first */
    int begun;
    struct lk_part pending; /* the step after the one at work; step 0: not known yet */
    int64_t ticket;
    bool is_at_work; /* parts of steps[0] were ordered */
    double hang_seconds;
    double step_seconds; /* running estimate; 0: no step was done */
    double ordered_at;   /* lk_team_seconds() */
    double committed_at; /* lk_seconds() */
    int64_t committed;   /* the last step that counts */
    double looked_at, lapsed;

    uint32_t sums[LK_MOST_BUCKETS];     /* checksums of the last step's results */
    uint32_t new_sums[LK_MOST_BUCKETS]; /* of the step's at work, which may be repeated */
    bool has_sums;                      /* a step was committed, and its sums may be compared */
    bool has_worked;                    /* a step was done: kernels are compiled */
    bool has_diverged;                  /* a step gave no numbers on any device */
    bool has_no_numbers;                /* in this try, though they came as they were sent */
    bool has_overflowed; /* in this try, as halves may: the step will change nothing */
    int overflows;       /* steps in a row that did */
    double reduce_seconds;
};

/* Samples a second while the device worked. */
static inline double lk_team_rate(const struct lk_device_times *t)
{
    const double ms = t->transfer_ms + t->compute_ms;
    return ms > 0 ? 1e3 * (double)t->samples / ms : 0;
}

/* Takes a device out: an order of its failed, or `text` says what else is wrong. The mutex is
 * held. */
void lk_team_lose(struct lk_team *team, struct lk_worker *worker, const char *text);

/* Seconds that count against a device: not those of a lapse in which nobody looked, as where
 * the whole process was stopped. The mutex is held. */
double lk_team_seconds(struct lk_team *team);

/* Waits until something has changed or it is time for another look; the mutex is held. False:
 * lk_team_seconds() has passed `until`. */
bool lk_team_wait(struct lk_team *team, double until);

/* Notes how long a step took, of which the next ones may take some multiple: rises fast, falls
 * slowly. */
void lk_team_note_step(struct lk_team *team, double seconds);

/* Seconds after which a device that computes is taken for one that hangs; is_new: its kernels
 * may have to be compiled first. */
double lk_team_limit(const struct lk_team *team, bool is_new);

/* fails: LK_E_DEVICE, saying why the first device was lost */
LK_MUST_CHECK enum lk_status lk_team_none_left(const struct lk_team *team);

/* Compares what the devices at work have sent as checks of the step before; where one is wrong
 * its state is copied from another's and *is_right becomes false. The mutex is not held.
 * fails: LK_E_DEVICE where none is right */
LK_MUST_CHECK enum lk_status lk_team_check_replicas(struct lk_team *team, bool *is_right);

/* Calls on a device's thread, context: a struct lk_team_state. Reading takes memory for it. */
LK_MUST_CHECK enum lk_status lk_team_read_state(void *context, struct lk_worker *worker);
LK_MUST_CHECK enum lk_status lk_team_write_state(void *context, struct lk_worker *worker);
void lk_team_clear_state(struct lk_team_state *state);

/* Copies a device's state to all others that are left where is_wrong(team, other, from). */
LK_MUST_CHECK enum lk_status lk_team_copy_state(struct lk_team *team, struct lk_worker *from,
                                                bool (*is_wrong)(const struct lk_team *,
                                                                 const struct lk_worker *,
                                                                 const struct lk_worker *));

/* Devices that rest while another goes on alone. */
int lk_team_idle(const struct lk_team *team);

/* Calls on the first device that is left, then on the next where it fails; the others stay
 * where they are. fails: as lk_team_call() */
LK_MUST_CHECK enum lk_status
lk_team_call_first(struct lk_team *team, enum lk_status (*call)(void *, struct lk_worker *),
                   void *context);

/* lk_team_call() on that device alone. */
LK_MUST_CHECK enum lk_status
lk_team_call_one(struct lk_team *team, struct lk_worker *worker,
                 enum lk_status (*call)(void *, struct lk_worker *), void *context);

#endif

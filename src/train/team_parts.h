/* The inside of a team, for the files that make it up. Floor 8. */
#ifndef LK_TRAIN_TEAM_PARTS_H
#define LK_TRAIN_TEAM_PARTS_H

#include "mirror/reduce.h"
#include "mirror/split.h"
#include "train/profile.h"
#include "train/team.h"

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

/* Reads the policy. fails: LK_E_ARGUMENT */
LK_MUST_CHECK enum lk_status lk_team_init_deal(struct lk_team *team);

/* The shards of this rank. */
struct lk_shard_run lk_team_run(const struct lk_team *team);

/* Gives every device of this rank that is left its run of them. */
void lk_team_deal(struct lk_team *team);

/* Learns from a step that counts how fast the devices of all ranks are, and which were lost;
 * the next one may be dealt otherwise. The mutex is held. fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status
lk_team_measure(struct lk_team *team, const struct lk_team_result *result, double step_seconds);

/* Lets the device go on alone, if it can; the others become idle. The mutex is not held, here
 * and in what follows. */
void lk_team_go_alone(struct lk_team *team, struct lk_worker *worker);
int lk_team_idle(const struct lk_team *team);

/* Behind lk_team_keep_state(), where one is alone and it is time: takes all back to work for
 * another trial. */
LK_MUST_CHECK enum lk_status lk_team_try_again(struct lk_team *team);

/* Keeps the state of the one that is alone, so that little is done again where it fails. */
LK_MUST_CHECK enum lk_status lk_team_keep_state(struct lk_team *team);

/* Takes all that are idle back to work, after the one that was alone is lost: they end all
 * steps that it has ended, and have begun those that it had begun. fails: LK_E_DEVICE where
 * none of them can */
LK_MUST_CHECK enum lk_status lk_team_call_back(struct lk_team *team,
                                               struct lk_team_result *last);

/* Does steps again that were ended before; those that are begun are begun anew. *result: of
 * the last one. */
LK_MUST_CHECK enum lk_status lk_team_redo(struct lk_team *team, int64_t first, int64_t last,
                                          struct lk_team_result *result);

/* Steps of one that is alone; the mutex is held. */
void lk_team_order_alone(struct lk_team *team, enum lk_order_kind kind,
                         const struct lk_team_step *step);
LK_MUST_CHECK enum lk_status lk_team_end_alone(struct lk_team *team,
                                               struct lk_team_result *result);

/* Ends the oldest step, which several devices share; the mutex is held. */
LK_MUST_CHECK enum lk_status lk_team_end_shared(struct lk_team *team,
                                                struct lk_team_result *result);

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

/* Adds up all that the devices bring for the oldest step, for every device that is left, and
 * the metrics. False in *is_whole: the step has to be computed again. The mutex is held, but
 * not while adding. */
LK_MUST_CHECK enum lk_status lk_team_collect(struct lk_team *team, void *metrics,
                                             bool *is_whole);

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

/* Of this rank's devices, in the step at work. */
void lk_team_fill_times(const struct lk_team *team, struct lk_device_times *times);

/* lk_team_call() on that device alone. */
LK_MUST_CHECK enum lk_status
lk_team_call_one(struct lk_team *team, struct lk_worker *worker,
                 enum lk_status (*call)(void *, struct lk_worker *), void *context);

#endif

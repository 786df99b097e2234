/* The inside of a team, for the files that make it up. Floor 7. */
#ifndef LK_TEAM_WORKERS_INTERNAL_H
#define LK_TEAM_WORKERS_INTERNAL_H

#include "mirror/reduce.h"
#include "mirror/split.h"
#include "team/workers/call.h"
#include "team/workers/profile.h"

/* A copy of a device's parameters and optimizer state in host memory. */
struct lk_training_state {
    int64_t step; /* the last one that it is of */
    void *weights, *optimizer;
    size_t weights_bytes, optimizer_bytes;
};

/* The replacement of a worker's stepper by another one, which gets the training state. */
struct lk_stepper_change {
    struct lk_training_state *state;
    int most_shards; /* at a time; 0: of a device that is alone, which needs no host */
};

/* What a device's thread does with the device for its team: a table, so that tests can do
 * without devices. "Share": sums are added on the host; "alone": they stay on the device. */
struct lk_team_acts {
    enum lk_status (*begin_share)(struct lk_worker *worker, const struct lk_command *command);
    enum lk_status (*end_share)(struct lk_worker *worker, const struct lk_command *command);
    enum lk_status (*begin_alone)(struct lk_worker *worker, const struct lk_command *command);
    enum lk_status (*end_alone)(struct lk_worker *worker, const struct lk_command *command);

    /* The rest are calls; context: a struct lk_training_state, for which `read` allocates. */
    enum lk_status (*read)(void *context, struct lk_worker *worker);
    enum lk_status (*write)(void *context, struct lk_worker *worker);
    enum lk_status (*change)(void *context, struct lk_worker *worker); /* a struct
                                                                        * lk_stepper_change */
};

/* Steps that are begun and not ended, the oldest first. */
struct lk_step_queue {
    struct lk_team_step steps[2];
    int begun, sent;              /* sent: for how many of them the devices have a command */
    struct lk_step_share pending; /* the second step, until it is sent; step 0: none */
    int64_t ticket;               /* the number of the oldest step's last try */
    int64_t committed;            /* the last step that counts */
};

struct lk_team_clock {
    double hang_seconds;
    double first_seconds;   /* of the first step, which compiles kernels; 0: not done yet */
    double step_seconds;    /* running estimate of the others; 0: there was none */
    double fastest_seconds; /* of the device that is done first; 0: there was one alone */
    double sent_at, committed_at; /* lk_team_seconds(); lk_seconds() */
    double looked_at, lapsed;     /* see lk_team_seconds() */
    bool has_worked;              /* a step was done: kernels are compiled */
};

/* What is known of the numbers that devices compute. */
struct lk_judgement {
    bool has_diverged;   /* in some step the sums were not finite on any device */
    bool is_not_finite;  /* in this try of the step sums were not finite, though they arrived
                          * unchanged */
    bool has_overflowed; /* in this try gradients overflowed in halves: the step makes
                          * no update */
    int overflows;       /* steps in a row that did */
};

/* Checksums of the sums that devices were sent, to compare with what they have got. */
struct lk_sent_sums {
    uint32_t last[LK_MOST_BUCKETS]; /* of the last step that counts */
    uint32_t next[LK_MOST_BUCKETS]; /* of the step at work, which may be repeated */
    bool has_last;                  /* `last` is there to be compared with */
};

/* The ranks of the job that the team is part of. */
struct lk_team_job {
    struct lk_team_ranks *ranks; /* NULL: there is one */
    int all, first;              /* devices of all ranks; those of this one begin at `first` */
    bool wants_stop, must_stop;  /* this rank, or any, wants to stop */
};

enum { LK_TRIAL_STEPS = 7, LK_TRIAL_ROUNDS = 3, LK_SETTLING_STEPS = 10 };

/* A trial, once shards are divided by the devices' speeds: is the fastest device alone faster
 * than all together? Steps by all and by one are timed in turns for some rounds, and the
 * majority of rounds decides, since other work on the host may disturb one. */
struct lk_trial {
    int settled, steps, fastest; /* settled: steps with these shares */
    int rounds, won;             /* won: rounds in which one device was faster than all */
    double seconds[LK_TRIAL_STEPS], all_seconds;
    bool is_one_faster;     /* the others rest after this step */
    int64_t wait, again_at; /* wait: steps to the next trial, 0: no device went alone yet */
};

/* The state from which steps are repeated when a device that is alone fails. */
struct lk_recall {
    struct lk_training_state kept;
    void (*describe)(void *context, int64_t number, struct lk_team_step *step);
    void *context;
};

struct lk_async;

struct lk_team {
    /* Set before the first step and read by all threads. */
    struct lk_team_config config;
    struct {
        char devices[256], optimizer[64], optimizer_options[256], split[256], log_folder[512];
    } texts; /* of the configuration */
    struct lk_worker *workers[LK_MOST_TEAM];
    int count;
    const struct lk_team_acts *acts;
    struct lk_batches *batches;
    struct lk_profile *profile;
    struct lk_reducer *reducer;
    int buckets;
    int64_t values[LK_ARRIVAL_BUCKETS + LK_MOST_BUCKETS]; /* of each arrival: how many */

    /* Guarded by the mutex, as every worker's state, commands and deliveries are. */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    enum lk_team_phase phase; /* lk_team_enter() alone writes it */
    struct lk_step_queue queue;
    struct lk_team_clock clock;
    struct lk_judgement judgement;
    struct lk_team_counts counts;
    struct lk_async *async; /* NULL: in lockstep */

    /* The trainer's thread's own. */
    struct lk_team_job job;
    struct lk_split split; /* over the devices of all ranks; every rank computes the same one */
    struct lk_trial trial;
    struct lk_recall recall;
    struct lk_sent_sums sums;
    double reduce_seconds; /* of the step at work */
};

/* The only function that changes the phase; the mutex is held, or no other thread runs yet. */
void lk_team_enter(struct lk_team *team, enum lk_team_phase phase);

/* Samples a second while the device worked. */
static inline double lk_team_rate(const struct lk_device_times *t)
{
    const double ms = t->transfer_ms + t->compute_ms;
    return ms > 0 ? 1e3 * (double)t->samples / ms : 0;
}

/* A clock for hang limits, in seconds. Time in which the whole process was stopped, as by
 * SIGSTOP, does not count. The mutex is held. */
double lk_team_seconds(struct lk_team *team);

/* Waits until something has changed, or until the next look at the devices is due; the mutex
 * is held. False: lk_team_seconds() has passed `until`. */
bool lk_team_wait(struct lk_team *team, double until);

/* Updates the estimates of a step's time, from which hang limits follow: that of all rises fast
 * and falls slowly, that of the fastest device (0: there is none to compare) the other way. */
void lk_team_note_step(struct lk_team *team, double seconds, double fastest);

/* Seconds after which a device that is at work counts as hanging; is_new: its kernels may
 * have to be compiled first. */
double lk_team_limit(const struct lk_team *team, bool is_new);

/* Takes a device out if it has failed or is `late`; the mutex is held. Returns whether it
 * did. */
bool lk_team_take_out(struct lk_worker *worker, bool is_late);

/* fails: LK_E_DEVICE, saying why the first device was lost */
LK_MUST_CHECK enum lk_status lk_team_none_left(const struct lk_team *team);

/* Devices that rest while another goes on alone. */
int lk_team_resting(const struct lk_team *team);

/* Compares the checksums that the devices at work made of the sums that they received in the
 * step before. A device whose checksums are wrong gets a copy of another one's state, and
 * *is_right becomes false. The mutex is not held. fails: LK_E_DEVICE where none is right */
LK_MUST_CHECK enum lk_status lk_team_check_replicas(struct lk_team *team, bool *is_right);

/* Calls (lk_team_call()) that read and write the training state of a device. */
LK_MUST_CHECK enum lk_status lk_training_state_read(void *context, struct lk_worker *worker);
LK_MUST_CHECK enum lk_status lk_training_state_write(void *context, struct lk_worker *worker);
void lk_training_state_clear(struct lk_training_state *state);

/* Copies a device's state to all others that are left where is_wrong(team, other, from). */
LK_MUST_CHECK enum lk_status lk_team_copy_state(struct lk_team *team, struct lk_worker *from,
                                                bool (*is_wrong)(const struct lk_team *,
                                                                 const struct lk_worker *,
                                                                 const struct lk_worker *));

/* Calls on the first device that is left, then on the next where it fails; those that rest
 * stay where they are. fails: as lk_team_call() */
LK_MUST_CHECK enum lk_status
lk_team_call_first(struct lk_team *team, enum lk_status (*call)(void *, struct lk_worker *),
                   void *context);

/* lk_team_call() on that device alone. */
LK_MUST_CHECK enum lk_status
lk_team_call_one(struct lk_team *team, struct lk_worker *worker,
                 enum lk_status (*call)(void *, struct lk_worker *), void *context);

#endif

/* One device of a team: its host thread, the commands that it was sent, and what has come of
 * them. Floor 7. All OpenCL calls for a device are made on its thread: where a driver hangs,
 * only that thread does, and it is left behind with everything that belongs to it. */
#ifndef LK_TEAM_WORKERS_WORKER_H
#define LK_TEAM_WORKERS_WORKER_H

#include "team/stepper/stepper.h"
#include "team/workers/states.h"
#include <pthread.h>

struct lk_team;
struct lk_worker;

enum lk_command_kind {
    LK_COMMAND_CALL,  /* runs call(context, worker); a failure is reported to the caller */
    LK_COMMAND_BEGIN, /* begins a step: computes a share of it */
    LK_COMMAND_END,  /* ends it: updates; a device that is alone has done so by itself, and only
                      * waits for the result */
    LK_COMMAND_WORK, /* without lockstep: computes groups and applies updates until nothing
                      * is left to do */
    LK_COMMAND_QUIT, /* the thread ends */
};

struct lk_command {
    enum lk_command_kind kind;
    enum lk_status (*call)(void *context, struct lk_worker *worker);
    void *context;
    enum lk_status (*run)(struct lk_worker *worker,
                          const struct lk_command *command); /* of BEGIN, END and WORK */
    struct lk_step_share share;
    int64_t ticket; /* the number of this try of the step: sums with an older number are not
                     * wanted */
    double lr;
    bool weights;        /* of END: make a checksum of the weights too */
    bool keeps_gradient; /* of END: copy the sums that it updates by */
    bool copies_state;   /* of the command that updates: copy what comes of it */
};

/* What a device brings in a step, in the order in which it comes: the metrics (sums of the loss
 * and of right answers), then its sums of each bucket; bucket b is LK_ARRIVAL_BUCKETS + b. */
enum { LK_ARRIVAL_METRICS, LK_ARRIVAL_BUCKETS };

struct lk_arrival {
    struct lk_term terms[LK_MOST_SHARDS];
    const uint32_t *checksums;
    int count;
    void *result; /* where the sum over all shards goes; NULL for the metrics */
};

enum { LK_MOST_COMMANDS = 8 };

struct lk_command_queue {
    struct lk_command commands[LK_MOST_COMMANDS];
    int first, count;
    pthread_cond_t filled; /* wakes this worker's thread and no other */
    bool is_awaited;       /* by the thread, which nothing else holds then; or it has ended */
};

/* What is known of its last call or failure. */
struct lk_worker_report {
    enum lk_status status;
    char text[512];
    int64_t heartbeats; /* counted up in long calls, to show that they do not hang */
};

/* What the device has brought of the step at work. Its thread writes the arrivals and then
 * counts them; the trainer's thread reads those that are counted. */
struct lk_delivery {
    int64_t ticket;              /* of the share whose arrivals these are */
    int arrived;                 /* how many */
    struct lk_arrival *arrivals; /* [LK_ARRIVAL_BUCKETS + buckets] */
    const uint32_t *checks;      /* checksums of what it received in the step before; there
                                  * once the metrics are */
    struct lk_share_times times;
    int wrong_at;           /* the place at which what follows was seen */
    bool has_crossed_wrong; /* in its group: its sums are of no use. Known as lockstep/share.c
                             * says */
    struct lk_step_result result; /* of a device that is alone, which brings no sums */
    double came_at; /* lk_seconds() at the last arrival, since when the device waits; of a
                     * device that is alone, since when the host waits for it */
};

/* What speaks against a device in the step at work. It is kept apart from the state, since
 * it outlasts calls, repairs and further tries of the step until a verdict is given. */
struct lk_evidence {
    int changed;     /* how often what it sent did not arrive unchanged */
    bool not_finite; /* its sums were infinite or NaN: others compute its shards in the next
                      * try */
};

struct lk_worker {
    struct lk_team *team;
    int position; /* in the list of devices */
    pthread_t thread;

    /* Used by its thread alone; other threads may ask what is known without the device. */
    struct lk_device *device; /* NULL: it could not be opened; of a group the first */
    struct lk_device *group[LK_MOST_PLACES]; /* [places]; without a group `device` alone */
    int places;
    int in_flight, usual_in_flight; /* micro-batches on their way through a group, at most;
                                     * where it has room */
    struct lk_stepper *stepper;
    bool has_updated; /* its stepper has updated, so that there are checksums of the sums
                       * that it received */
    double input_ms[LK_REPLICA_SLOTS];
    struct lk_worker_copies {
        struct lk_state_copy list[2]; /* the trainer may use one while the other is made */
        int next;                     /* which one that is */
        int64_t begun;                /* the step of the one that is being made; 0: none */
        bool is_impossible;           /* for lack of memory */
        int64_t step;                 /* of the one that is there; guarded by the mutex */
    } copies;
    struct lk_trouble {
        double slowness;  /* for tests (LOCKSTEP_SLOW): takes so many times as long; 1:
                           * does not */
        int64_t fails_at; /* for tests (LOCKSTEP_FAIL): fails, or hangs, in this step; 0:
                           * none */
        bool hangs;
        int place; /* of a group: the device that fails, for good; -1: none of them */
    } trouble;

    /* Guarded by the team's mutex. */
    _Atomic enum lk_worker_state state; /* Only lk_worker_change() writes it. Atomic, since
                                         * the trainer's thread, which alone decides who is
                                         * at work, reads that without the mutex. */
    struct lk_command_queue queue;
    struct lk_worker_report report;
    struct lk_delivery delivery;
    struct lk_evidence evidence;
    struct lk_shard_run share; /* shards it has been given */
    bool has_computed;         /* at least once: its kernels are compiled */
    int most_shards;           /* that it computes at a time */
    bool is_released;          /* once it was lost: its devices are closed */
    bool stays;                /* its thread hangs, or the one that closes its devices does */
};

/* Starts the thread. fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_worker_start(struct lk_worker *worker);

/* The only function that changes a state; the team's mutex is held. `why` says why a device
 * is lost, and is not read for other events. */
void lk_worker_change(struct lk_worker *worker, enum lk_worker_event event, const char *why);

/* Abandons its devices that are open; the team's mutex is held. */
void lk_worker_abandon(struct lk_worker *worker);

/* Whether the device is among those that are left (though it may fail at any moment). */
bool lk_worker_is_at_work(const struct lk_worker *worker);

/* What the replicas of its stepper will be made by, and how many micro-batches are on their way
 * through those of a group. */
LK_MUST_CHECK enum lk_status lk_worker_plan(const struct lk_worker *worker, int *in_flight,
                                            struct lk_replica_config *replica);

/* After a try that lacked memory, whether the next one can do with less: with no micro-batch on
 * its way beside one for each place, then with half of `*most` shards at a time and as many
 * micro-batches on their way as usual, and where that is one, with fewer of these. */
bool lk_worker_take_less(struct lk_worker *worker, int *most);

/* Makes its stepper, of `most` shards at a time or, with 0, of a device that is alone. */
LK_MUST_CHECK enum lk_status lk_worker_create_stepper(struct lk_worker *worker, int most);

/* Whether a failure is the device's own, so that another one may succeed. */
bool lk_is_device_failure(enum lk_status status);

/* Queues a command; the team's mutex is held. A device that has failed takes none. */
void lk_worker_send(struct lk_worker *worker, const struct lk_command *command);

/* To be called on its thread when `count` more arrivals of the share with this ticket are on
 * the host. False where nobody waits for them any more. */
bool lk_worker_deliver(struct lk_worker *worker, int64_t ticket, int count);

/* On its thread: begins to copy the state after `step`, where the memory suffices; and takes
 * the copy, which has come by then, when a later step is about to be delivered. */
LK_MUST_CHECK enum lk_status lk_worker_begin_copy(struct lk_worker *worker, int64_t step);
LK_MUST_CHECK enum lk_status lk_worker_end_copy(struct lk_worker *worker, int64_t step);

/* Called on the device's thread by long calls, to show that they do not hang. */
void lk_worker_heartbeat(void *worker);

/* Reads from the environment which faults tests want (LOCKSTEP_SLOW, LOCKSTEP_FAIL).
 * fails: LK_E_ARGUMENT */
LK_MUST_CHECK enum lk_status lk_worker_read_faults(struct lk_worker *worker);

/* On its thread: makes the device as slow as LOCKSTEP_SLOW asks for, by waiting that much
 * longer than `seconds`; fails or hangs where LOCKSTEP_FAIL asks for it. fails: LK_E_DEVICE */
void lk_worker_be_slow(const struct lk_worker *worker, double seconds);
LK_MUST_CHECK enum lk_status lk_worker_fail(const struct lk_worker *worker, int64_t step);

/* For the trace: what is enqueued from now on belongs to `step`; takes what was done of it. */
void lk_worker_trace(const struct lk_worker *worker, int64_t step);
void lk_worker_collect(const struct lk_worker *worker, int64_t step);

/* Notes in the trace what its thread did from `begin` to `end`. */
void lk_worker_note(const struct lk_worker *worker, const char *what, int64_t step,
                    double begin, double end);

#endif

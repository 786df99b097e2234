/* The host thread of one device of a team, and what it has been told to do. Floor 7. Private to
 * team*.c and worker.c. All that calls OpenCL for a device runs on its thread: where a driver
 * hangs, that thread alone does, and is left behind with everything that belongs to it. */
#ifndef LK_TEAM_WORKERS_WORKER_H
#define LK_TEAM_WORKERS_WORKER_H

#include "team/stepper/stepper.h"
#include <pthread.h>

struct lk_team;
struct lk_worker;

enum lk_order_kind {
    LK_ORDER_CALL,   /* call(context, worker) */
    LK_ORDER_START,  /* alone: read a batch and enqueue a step on it */
    LK_ORDER_FINISH, /* alone: wait for that step */
    LK_ORDER_PART, /* one of several: a part of a step, until all of it has come to the host */
    LK_ORDER_UPDATE, /* one of several: the step's end */
    LK_ORDER_ASYNC,  /* without lockstep: call(context, worker) does all there is to do */
    LK_ORDER_QUIT,
};

struct lk_order {
    enum lk_order_kind kind;
    struct lk_part part;
    int64_t ticket; /* of a part: tells a repeated one from the one before */
    double lr;
    bool weights; /* UPDATE: make their checksum */
    enum lk_status (*call)(void *context, struct lk_worker *worker);
    void *context;
};

/* A bucket that has come from a device. */
struct lk_arrival {
    struct lk_term terms[LK_MOST_SHARDS];
    const uint32_t *checksums;
    int count;
    void *result; /* where the sum over all shards goes; NULL for the metrics */
};

enum { LK_MOST_ORDERS = 8 };

struct lk_worker {
    struct lk_team *team;
    int position; /* in the list of devices */
    struct lk_device *device;
    struct lk_stepper *stepper;
    pthread_t thread;
    bool has_thread;
    pthread_cond_t ordered; /* wakes this thread and no other */

    /* Guarded by the team's mutex. */
    struct lk_order orders[LK_MOST_ORDERS];
    int first_order, order_count;
    bool is_lost;      /* left behind: nobody waits for it, nobody touches what it has */
    bool is_idle;      /* lost only until lk_team_call_back(), since another goes on alone */
    bool has_failed;   /* the device, at an order: it carries out no other */
    bool has_error;    /* an order, for a reason that is not the device's: status, text */
    bool has_returned; /* from its call */
    int64_t beats;     /* of long calls: signs that they get on */
    enum lk_status status; /* of its call or failure, with the text */
    char text[512];

    int64_t ticket; /* of the part whose arrivals these are */
    int arrived;    /* the metrics, then buckets in their order */
    struct lk_arrival *arrivals;
    const uint32_t *checks; /* of the step before, once the metrics are there */
    struct lk_part_times times;
    double came_at;  /* lk_seconds() of the last arrival */
    int strikes;     /* times that what it sent in this step did not arrive unchanged */
    bool is_doubted; /* its sums were no numbers: others compute its shards in the next try */
    struct lk_step_result result; /* alone */

    struct lk_shard_run run; /* the part it has been given */
    bool has_computed;       /* one: its kernels are compiled */
    int most_shards;         /* that it computes at a time */

    /* Its thread's own. */
    bool has_updated;
    double slowness;  /* takes that many times as long as it needs; 1: as it is */
    int64_t fails_at; /* a step; 0: none. It hangs there, or fails. */
    bool hangs;
    double input_ms[LK_REPLICA_SLOTS];
};

/* Starts the thread. fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_worker_start(struct lk_worker *worker);

/* Makes its stepper, of `most` shards at a time or, with 0, of a device that is alone. */
LK_MUST_CHECK enum lk_status lk_worker_create_stepper(struct lk_worker *worker, int most);

/* Whether a failure is the device's own, so that another one may succeed. */
bool lk_is_device_trouble(enum lk_status status);

/* Gives an order; the team's mutex is held. */
void lk_worker_order(struct lk_worker *worker, const struct lk_order *order);

/* On its thread, `worker`'s: a long call gets on. */
void lk_worker_beat(void *worker);

/* Reads what trouble the environment asks for. */
void lk_worker_read_trouble(struct lk_worker *worker);

/* On its thread: waits as much longer than `seconds` as the device is slow; fails or hangs
 * where that is asked for. fails: LK_E_DEVICE */
void lk_worker_be_slow(const struct lk_worker *worker, double seconds);
LK_MUST_CHECK enum lk_status lk_worker_fail(const struct lk_worker *worker, int64_t step);

/* A span of its thread, for the trace. */
void lk_worker_note(const struct lk_worker *worker, const char *what, int64_t step,
                    double begin, double end);

#endif

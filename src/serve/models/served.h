/* Models that are served: versions of each, and the worker that owns a version's predictor and
 * gathers jobs into batches. Floor 9. Knows no protocol. */
#ifndef LK_SERVE_SERVED_H
#define LK_SERVE_SERVED_H

#include "serve/models/counts.h"
#include "serve/models/job.h"
#include <lockstep/serve.h>
#include <pthread.h>

enum { LK_SERVED_PATH = 1024, LK_MOST_FAILED = 16 };

struct lk_version {
    struct lk_served *served;
    int64_t number;
    char path[LK_SERVED_PATH], device[128];
    struct lk_predictor *first; /* decodes images as long as the version lives */
    struct lk_predictor *used;  /* that predicts: the first one until its device fails */
    struct lk_signature signature;
    int users;                 /* who has acquired it; the served model's mutex is held */
    struct lk_version *behind; /* of those that are served, or replaced */

    pthread_mutex_t mutex; /* of all below */
    pthread_cond_t news;
    struct lk_job *jobs, **last;
    int64_t waiting;      /* samples of the jobs in the queue */
    struct lk_job *taken; /* by the worker, which computes them */
    double waits_since;   /* the worker for its device, lk_seconds(); 0: it does not */
    bool is_hung;         /* it waited too long, and is left to itself */
    bool ends, has_thread;
    pthread_t thread;
    double hang_seconds;
    uint8_t *inputs[LK_MOST_INPUTS]; /* [max_batch]: of the worker alone */
    float *outputs[LK_MOST_OUTPUTS];
};

/* A version that could not be opened, which is not tried again while it stays as it is: what
 * its folder looked like then, and when it was last looked at. */
struct lk_failed_version {
    int64_t number;
    uint64_t stamp, seen;
};

/* One model and its versions that are served, the highest first. */
struct lk_served {
    const char *name, *path;
    const struct lk_serve_model *model; /* which versions */
    const struct lk_serve_options *options;
    int index; /* which entry of the device list it takes */
    struct lk_counts counts;
    pthread_mutex_t mutex; /* of all below */
    struct lk_version *open, *replaced;
    struct lk_failed_version failed[LK_MOST_FAILED];
    int failed_count;
    uint64_t opening; /* what the folder of the version opened last looked like before */
    char failure[LK_JOB_ERROR]; /* of the last one */
    double tried; /* when a device that hangs was last to be replaced, lk_seconds() */
};

/* Opens the model's versions. fails: as lk_server_open() */
LK_MUST_CHECK enum lk_status lk_served_open(struct lk_served *served,
                                            const struct lk_serve_model *model,
                                            const struct lk_serve_options *options, int index);
void lk_served_close(struct lk_served *served);

/* Looks which versions are there, opens those that are to be served, and then closes those that
 * are not; ends replaced ones that nobody uses. Takes as long as opening does; jobs go on
 * meanwhile. */
void lk_served_renew(struct lk_served *served);

/* A version that is served, to be released; number 0: the highest. NULL: it is not there. */
struct lk_version *lk_served_acquire(struct lk_served *served, int64_t number);
void lk_served_release(struct lk_version *version);

/* The version of a label; 0 of "latest" where no label is called so; -1: there is none. */
int64_t lk_served_find_label(const struct lk_served *served, const char *label, size_t length);

/* Opens a version's predictor, predicts with it and starts the worker. fails: as
 * lk_predictor_open() */
LK_MUST_CHECK enum lk_status lk_version_open(struct lk_served *served, int64_t number,
                                             const char *path, struct lk_version **version);

/* Ends the worker when its queue is empty. NULL is fine. */
void lk_version_close(struct lk_version *version);

/* Hands a job to the worker, which calls job->done. Else it is still the caller's. */
enum lk_submitted { LK_SUBMITTED, LK_QUEUE_IS_FULL, LK_DEVICE_HANGS };
enum lk_submitted lk_version_submit(struct lk_version *version, struct lk_job *job);

/* False: its device hangs. The first time all its jobs are answered. */
bool lk_version_check(struct lk_version *version);

/* Of the worker: its thread; opens the predictor again on a device that is left. */
void *lk_version_work(void *version);
LK_MUST_CHECK enum lk_status lk_version_reopen(struct lk_version *version);

/* Whether the device has failed: the worker's affair. */
bool lk_status_is_of_device(enum lk_status status);

#endif

/* Training and evaluation of a model on data, into a run directory. Floor 8. */
#ifndef LOCKSTEP_TRAIN_H
#define LOCKSTEP_TRAIN_H

#include <lockstep/settings.h>
#include <lockstep/status.h>
#include <lockstep/team.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct lk_evaluation;
struct lk_figure;

enum lk_event_kind {
    LK_EVENT_START,      /* ready to train: text says on what, resumed or not */
    LK_EVENT_STEP,       /* a step's figures have come in */
    LK_EVENT_EVALUATION, /* validation has run */
    LK_EVENT_CHECKPOINT, /* file has been written */
    LK_EVENT_DEVICES,    /* a device was lost, repaired or given other work: text says what */
    LK_EVENT_END,        /* training is over, hash is set */
    LK_EVENT_SETTINGS,   /* the run goes on with other settings: text and changes say which */
    LK_EVENT_CALLBACK,   /* a callback has done something: text says what */
};

/* A setting that is another one than the run had before. */
struct lk_setting_change {
    const char *name, *was, *is;
};

/* A device that begins to train, of this rank. */
struct lk_start_device {
    const char *name;
    size_t memory_bytes, taken_bytes; /* that it has; that the run has allocated there */
};

/* What a training begins with. */
struct lk_start {
    int64_t parameters, samples, batch;
    int shards, ranks, device_count;
    const struct lk_start_device *devices; /* [device_count] */
    const char *remarks; /* the end of the event's text: what is not as usual; "": nothing */
};

struct lk_event {
    enum lk_event_kind kind;
    int64_t step, steps;   /* done, in all */
    int64_t epoch, epochs; /* being in, from 0; in all */
    double loss, accuracy; /* means: of the step, or of the evaluation; accuracy NaN where no
                            * output predicts a class */
    double samples_per_s, step_ms, lr, seconds;
    int64_t samples;    /* of the step */
    int tries, devices; /* how often it was computed; devices at the start, of all ranks */
    const struct lk_device_times *device_times; /* [devices]: of a step */
    const char *text, *file, *hash;
    const int64_t *staleness; /* [max_staleness + 1]: of an end in mode async, updates since the
                               * start by the number of others they had not seen; else NULL */
    int max_staleness;        /* that is allowed */
    int64_t updates;          /* of the whole run */
    double loss_scale;        /* precision mixed, of an evaluation or the end; else 0 */
    int64_t skipped_steps;    /* then: of the whole run, that overflowed and made no update */
    const struct lk_evaluation *evaluation;  /* of an evaluation: all of it */
    const char *json;                        /* the event as a line of metrics.jsonl */
    const struct lk_setting_change *changes; /* [change_count]: of settings */
    int change_count;
    const struct lk_figure *figures; /* [figure_count]: of a step or an evaluation, what
                                      * callbacks of the program have added */
    int figure_count;
    const struct lk_start *start; /* of a start */
};

/* A process that mpirun started is one rank of a job that trains one model on many hosts: each
 * creates and runs a trainer, on one thread; each has its own devices. Rank 0 alone has a run
 * directory and events. These are its number and how many there are, as the launcher tells:
 * 0 and 1 where there is none. */
LK_API int lk_rank(void);
LK_API int lk_ranks(void);

struct lk_trainer;

/* Opens device, data, model and run directory, builds the kernels, goes on from the newest
 * checkpoint where there is one. `handler` may be NULL; it is called on the caller's thread.
 * Where one of several devices that were opened fails meanwhile, on the others, with a warning.
 * fails: as its parts do; a run directory of another model is refused with LK_E_ARGUMENT */
LK_API LK_MUST_CHECK enum lk_status
lk_trainer_create(const struct lk_settings *settings,
                  void (*handler)(void *context, const struct lk_event *event), void *context,
                  struct lk_trainer **trainer);

/* Trains to the end. fails: LK_E_INTERRUPTED after lk_trainer_stop() (a checkpoint is written),
 * LK_E_DEVICE, LK_E_IO */
LK_API LK_MUST_CHECK enum lk_status lk_trainer_run(struct lk_trainer *trainer);

/* Asks a running trainer to finish its step, save and return. Any thread, signal handlers too.
 */
LK_API void lk_trainer_stop(struct lk_trainer *trainer);

/* Once lk_trainer_run() has failed for want of devices (LK_E_DEVICE): whether the model was
 * divided among devices of which some still work, so that the run can go on from its
 * checkpoint, or begin again if it has not done a step, with the model placed anew on those.
 * Then it sets the devices and the places of `settings`. Destroy the trainer before the next
 * one is made. */
LK_API bool lk_trainer_find_left(const struct lk_trainer *trainer,
                                 struct lk_settings *settings);

/* Releases the trainer and its device. NULL is fine. */
LK_API void lk_trainer_destroy(struct lk_trainer *trainer);

/* A metric of an output: "accuracy", "mean_absolute_error"; NaN where it is not defined. */
struct lk_figure {
    const char *name;
    double value;
};

/* What was found of one output of a model. */
struct lk_output_evaluation {
    const char *name, *loss_name; /* loss_name NULL: it has no loss and no figures */
    double loss, weight;          /* of its loss in that of the model */
    int figure_count;
    const struct lk_figure *figures; /* [figure_count] */
};

/* A sample that was taken for a class that it is not. */
struct lk_mistake {
    int64_t sample; /* its index in the data */
    int truth, taken;
    double margin; /* by how much the prediction of `taken` is higher than that of `truth` */
};

/* What an evaluation found. */
struct lk_evaluation {
    int64_t samples;
    int classes;           /* of the first output that predicts a class; 0: none does */
    double loss, accuracy; /* of all outputs, weighted, and the penalties of weights; of the
                            * first that has one, else NaN */
    double seconds;
    const int64_t *confusion;       /* [classes][classes]: rows truth, columns prediction */
    int named_classes;              /* the data's: fewer than the model's, or 0 */
    const char *const *class_names; /* [named_classes] */
    int output_count;
    const struct lk_output_evaluation *outputs; /* [output_count] */
    double data_loss;                           /* the loss without penalties */
    int mistake_count;                          /* of the output with the confusion matrix: */
    const struct lk_mistake *mistakes;          /* the worst ones, the highest margin first */
};

#ifdef __cplusplus
}
#endif

#include <lockstep/predict.h>
#endif

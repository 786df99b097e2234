/* The inside of a trainer, for the files that make it up. Floor 8. trainer.c creates it by
 * means of the others; these report events through trainer.c (lk_trainer_report()). */
#ifndef LK_TRAIN_TRAINER_INTERNAL_H
#define LK_TRAIN_TRAINER_INTERNAL_H

#include "data/stages/pipeline.h"
#include "io/sha256.h"
#include "optim/plateau.h"
#include "team/team.h"
#include "team/workers/profile.h"
#include "train/callbacks/callbacks.h"
#include "train/evaluation/evaluator.h"
#include "train/evaluation/features.h"
#include "train/evaluation/images.h"
#include "train/evaluation/period.h"
#include "train/features.h"
#include "train/run/folder.h"
#include "train/settings/settings.h"
#include <pthread.h>
#include <stdatomic.h>

/* Data being read on a thread of its own while kernels are built. */
struct lk_data_load {
    const struct lk_settings *settings;
    struct lk_data_options wanted, wanted_validation;
    pthread_t thread;
    bool is_running;
    atomic_bool has_failed;
    enum lk_status status;
    char text[1024]; /* of the failure */
    struct lk_data *train, *validation;
};

struct lk_trainer {
    struct lk_settings *settings;
    void (*handler)(void *context, const struct lk_event *event);
    void *context;
    atomic_bool stop;

    struct lk_world *world;               /* the job's ranks */
    struct lk_choices *choices;           /* of algorithms, for devices of all kinds */
    struct lk_choices *tuned, *blockings; /* the fastest known here, for choices to come */
    char *classes_text;                   /* as checkpoints have them */
    char *kept_vocabulary; /* of texts, of the run or of the one it begins with; NULL: none */
    struct lk_run_folder *folder; /* without a path on all ranks but 0 */
    struct lk_model *model;
    struct lk_pipeline pipeline, eval_pipeline;
    char *text, *eval_text; /* of both, with what was measured over the training data */
    struct lk_transform transform, eval_transform;
    struct lk_node *loss;
    bool has_accuracy;   /* an output predicts a class */
    struct lk_feed feed; /* of the training data, once it is there */
    struct lk_team *team;
    double planned_ms[LK_MOST_PLACES]; /* of a group's equal share of a batch on each of its
                                        * devices, by measured times; 0: not measured */
    struct lk_evaluator *evaluators[LK_MOST_TEAM]; /* of each device, whose weights it uses;
                                                    * NULL: none yet, or no validation */
    struct lk_evaluator *evaluator; /* the one of these that evaluates; the others predict
                                     * parts; NULL: none yet */
    bool is_full[LK_MOST_TEAM];     /* the device has no memory for an evaluator beside its
                                     * stepper */
    struct lk_saved *state; /* the last one in host memory, which is saved as a checkpoint if no
                             * device is left; NULL: none */
    struct lk_saved *passing;   /* what was noted of a state that is being copied; NULL: none */
    bool has_no_copies;         /* no memory for such */
    bool saves_late;            /* one was lost: a checkpoint is due as soon as can be */
    struct lk_writing *writing; /* a checkpoint that is on its way to disk; NULL: none */
    double snapshot_at;         /* lk_seconds() */
    struct lk_profile *profile; /* NULL: none is asked for */
    struct lk_data_load load;
    struct lk_batches *batches;
    struct lk_features features; /* that batches have in the place of samples */
    struct lk_evaluated_features evaluated;
    struct lk_checkpoint_file *checkpoint; /* to go on from; NULL: none, or done */
    struct lk_foreign_weights *weights;    /* to begin with; NULL: none, or done */
    struct lk_lr_schedule schedule;
    struct lk_plateau plateau; /* of that schedule; the same on all ranks */
    const char *monitor;       /* what it follows, of a callback; NULL: the schedule's own */
    struct lk_callbacks *callbacks;
    char *settings_text;   /* for them */
    char why_stopped[512]; /* "": by a signal */
    double rate;
    int shards;
    bool asks_planes;              /* lk_settings_ask_planes() */
    char data_sum[LK_SHA256_TEXT]; /* of the training data */

    int64_t steps_per_epoch, total_steps;
    int64_t done; /* steps finished */
    struct lk_eval_period eval_period;
    double evaluated_at;    /* lk_seconds() */
    int64_t evaluated_step; /* the last that was; 0: none */
    bool is_due;            /* an evaluation, at this pause */
    bool owes_evaluation;   /* it is not over; as checkpoints have it */
    int64_t saved;          /* the step of the last checkpoint; 0: none */
    int64_t unsaved;        /* checkpoints since then that could not be written */
    bool has_missed_logs;   /* the last one was written without logs that are not on disk */
    bool has_missed_files; /* env.json or config.yaml was removed and cannot be written again */
    struct lk_team_step
        steps[LK_MOST_BEGUN];       /* begun and not ended: step n is n % their count */
    struct lk_team_counts reported; /* devices' events that were told before */
    double started, last_finish;
    double last_ended;  /* the last step, by its device's clock; 0: not known */
    int64_t stop_after; /* the step after which all ranks stop, once one has asked for it */
    bool has_warned;
    double loss_scale; /* precision mixed: as it was after step looked_at; else 0 */
    int64_t skipped, skipped_before, looked_at;
};

/* Destroys the evaluator that uses the weights of this device's stepper; a team calls it before
 * it destroys a stepper. */
void lk_trainer_leave_stepper(void *context, struct lk_worker *worker);

/* With all ranks: compares settings and models. Ranks other than 0 have no run directory, no
 * validation and no events from here on. fails: LK_E_ARGUMENT, naming what differs */
LK_MUST_CHECK enum lk_status lk_trainer_join(struct lk_trainer *trainer);

/* With all ranks: compares the training data. fails: LK_E_ARGUMENT */
LK_MUST_CHECK enum lk_status lk_trainer_compare_data(struct lk_trainer *trainer);

/* With all ranks: rank 0's text, which all others get in place of their own; the caller frees
 * it. fails: LK_E_MEMORY, LK_E_IO */
LK_MUST_CHECK enum lk_status lk_trainer_share_text(struct lk_world *world, char **text);

/* With all ranks: rank 0's steps done, parameters and optimizer state become those of all. */
LK_MUST_CHECK enum lk_status lk_trainer_broadcast_state(struct lk_trainer *trainer);

/* Opens the list of algorithms: what the checkpoint that is open has, rank 0's on all ranks,
 * and what tuning has found before. fails: LK_E_ARGUMENT where the checkpoint's was made for
 * another `math` */
LK_MUST_CHECK enum lk_status lk_trainer_open_choices(struct lk_trainer *trainer);

/* Tunes on the devices' threads if the run is long enough to be worth it; rank 0 does so for
 * all ranks. The team calls it when the devices are open; `trainer` is a struct lk_trainer. */
LK_MUST_CHECK enum lk_status lk_trainer_tune(void *trainer, struct lk_team *team);

/* Checks every device's numbers before the first step; one that computes wrongly is lost. */
LK_MUST_CHECK enum lk_status lk_trainer_check(struct lk_trainer *trainer);

/* Starts reading the data as the trainer's settings, pipelines and model want it. */
LK_MUST_CHECK enum lk_status lk_data_load_start(struct lk_trainer *trainer);

/* Waits until the data is open. fails: as opening it did */
LK_MUST_CHECK enum lk_status lk_data_load_join(struct lk_data_load *load);

/* A checksum of the data set's shape and of some of its samples, of the fields that the model
 * reads: tells one data set from another. fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_data_fingerprint(const struct lk_data *data,
                                                 const struct lk_feed *feed,
                                                 char sum[LK_SHA256_TEXT]);

/* Fills in what every event has, writes its line and tells the handler. fails: LK_E_IO */
LK_MUST_CHECK enum lk_status lk_trainer_report(struct lk_trainer *trainer,
                                               struct lk_event event);

/* Tells what is trained on which devices, and with which other settings than before the run
 * goes on, or would if it were not finished. */
LK_MUST_CHECK enum lk_status lk_trainer_announce(struct lk_trainer *trainer);
LK_MUST_CHECK enum lk_status
lk_trainer_announce_changes(struct lk_trainer *trainer,
                            const struct lk_setting_changes *changes);

/* Writes which settings the run has, and on what it runs. `changes` is empty before. */
LK_MUST_CHECK enum lk_status lk_trainer_describe(struct lk_trainer *trainer,
                                                 enum lk_run_progress progress,
                                                 struct lk_setting_changes *changes);

/* Prepares validation on the first device that has room for it; nothing where there is none.
 * fails: LK_E_DEVICE_MEMORY where no device has */
LK_MUST_CHECK enum lk_status lk_trainer_open_evaluator(struct lk_trainer *trainer);

/* Evaluates and reports, and nothing follows from it. */
LK_MUST_CHECK enum lk_status lk_trainer_validate(struct lk_trainer *trainer);

/* Runs validation, reports it, and does what follows. */
LK_MUST_CHECK enum lk_status lk_trainer_evaluate(struct lk_trainer *trainer);

/* With all ranks: names the classes of the model's outputs as the checkpoint that is open does,
 * or, if the data has them, the run that this one begins with. fails: LK_E_DATA */
LK_MUST_CHECK enum lk_status lk_trainer_read_classes(struct lk_trainer *trainer);

/* Makes of the trainer's pipelines what follows from them: texts of the settings, transforms.
 * fails: LK_E_ARGUMENT */
LK_MUST_CHECK enum lk_status lk_trainer_use_pipelines(struct lk_trainer *trainer);

/* A run that took its normalization from weights goes on with it, though nobody has typed it:
 * `there` is the checkpoint's pipeline. fails: LK_E_ARGUMENT */
LK_MUST_CHECK enum lk_status lk_trainer_take_normalization(struct lk_trainer *trainer,
                                                           const char *there);

/* With all ranks: opens the weights that a new run begins with, where the settings name some,
 * on rank 0 alone; its pipelines, normalized as the weights expect, become those of all. fails:
 * as lk_foreign_open(); LK_E_ARGUMENT where both settings name some */
LK_MUST_CHECK enum lk_status lk_trainer_open_weights(struct lk_trainer *trainer);

/* Writes them into all replicas of this rank, and closes them. */
LK_MUST_CHECK enum lk_status lk_trainer_put_weights(struct lk_trainer *trainer);

#endif

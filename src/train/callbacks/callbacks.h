/* Callbacks of a training: what is done at its steps, evaluations and checkpoints beside the
 * training itself. Floor 8. They know no trainer; what they want of it is a wish, which the
 * trainer obeys when no step is on its way.
 *
 * As text: "early_stopping patience=3 | csv_log". Their state (counters, best figures, lengths
 * of files) is part of checkpoints. */
#ifndef LK_TRAIN_CALLBACKS_CALLBACKS_H
#define LK_TRAIN_CALLBACKS_CALLBACKS_H

#include "optim/lr_schedule.h"
#include "train/callbacks/figures.h"
#include <lockstep/callback.h>
#include <lockstep/data.h>

struct lk_param;

enum {
    LK_MOST_CALLBACKS = 16,    /* of the text */
    LK_MOST_OWN_CALLBACKS = 8, /* of the program */
    LK_CALLBACKS_TEXT = 1024,
    LK_MOST_KEPT = 8 * LK_MOST_CALLBACKS
};

/* What callbacks have to know of a training; outlives them. */
struct lk_callback_site {
    const char *run;      /* the run directory; "": none */
    struct lk_logs *logs; /* set by lk_callbacks_create() */
    const struct lk_model *model;
    const char *settings;           /* all, as a run file has them */
    int64_t checkpoint_every;       /* the setting */
    bool sees_epochs;               /* evaluations are at the ends of epochs */
    bool by_clock;                  /* the clock says when they are */
    int64_t steps_per_epoch, ahead; /* steps that may be on their way beside the oldest */
    int ranks;
    bool is_first; /* rank 0, where alone callbacks are called */
    bool follows;  /* rank 0 has some */
    bool has_validation, has_accuracy;
    const struct lk_data *validation; /* NULL: none */
    const struct lk_callback *own;    /* [own_count]: callbacks of the program */
    int own_count;

    /* Calls see() with each parameter's numbers on the host. No step may be on its way. */
    enum lk_status (*each_param)(void *trainer, void *context,
                                 enum lk_status (*see)(void *context,
                                                       const struct lk_param *param,
                                                       const float *values));

    /* Likewise with the gradients of the last step, means over its batch, of a step for which
     * lk_callbacks_see_gradient() was true; does not call it for row lists, and for none
     * without lockstep, where no step has a gradient of its own. */
    enum lk_status (*each_gradient)(void *trainer, void *context,
                                    enum lk_status (*see)(void *context,
                                                          const struct lk_param *param,
                                                          const float *values));

    /* Says with which operation it began that numbers of `step` are not finite, "": that is not
     * known. Training cannot go on after this. */
    enum lk_status (*find_origin)(void *trainer, int64_t step, char *text, size_t bytes);

    /* Batches as training reads them, which the caller destroys; NULL: it reads features. */
    enum lk_status (*open_batches)(void *trainer, struct lk_batches **batches);
    void *trainer;
};

/* How training stops. INTERRUPTS: it can go on, as after Ctrl-C; ENDS: it is finished. The last
 * ones are stronger. */
enum lk_callback_stop {
    LK_CALLBACK_GOES_ON,
    LK_CALLBACK_INTERRUPTS,
    LK_CALLBACK_ENDS,
    LK_CALLBACK_FAILS
};

/* What callbacks want; {0}: nothing. */
struct lk_callback_wish {
    enum lk_callback_stop stop;
    char reason[512]; /* of that */
    const char *own;  /* the program's callback that wants it to end; NULL: none */
    bool saves;       /* a checkpoint now */
    int64_t restores; /* the step whose checkpoint has the weights to end with; 0: none */
};

/* Reads a text and writes it anew, so that equal callbacks are equal texts.
 * fails: LK_E_ARGUMENT, naming the callback */
LK_MUST_CHECK enum lk_status lk_callbacks_normalize(const char *text,
                                                    char normal[LK_CALLBACKS_TEXT]);

/* Name and options of kind `index`; NULL past the last. For pages of help. */
const char *lk_callback_kind_name(int index);
const struct lk_option *lk_callback_kind_options(int index);

struct lk_callbacks;

/* fails: LK_E_ARGUMENT: what does not fit the training, such as a figure that it has not */
LK_MUST_CHECK enum lk_status lk_callbacks_create(const char *text,
                                                 const struct lk_callback_site *site,
                                                 struct lk_callbacks **callbacks);
void lk_callbacks_destroy(struct lk_callbacks *callbacks);

/* Whether there is one that looks at epochs: then evaluation comes before saving. */
bool lk_callbacks_follow(const struct lk_callbacks *callbacks);

/* The schedule of a reduce_on_plateau, if there is one: sets `schedule` and what it monitors.
 * fails: LK_E_ARGUMENT: there is a schedule already */
LK_MUST_CHECK enum lk_status lk_callbacks_schedule(const struct lk_callbacks *callbacks,
                                                   struct lk_lr_schedule *schedule,
                                                   const char **monitor);

/* The step, not beyond `last`, after which one wants a pause. */
int64_t lk_callbacks_next_pause(const struct lk_callbacks *callbacks, int64_t done,
                                int64_t last);

/* Whether one wants to see the gradient of that step. */
bool lk_callbacks_see_gradient(const struct lk_callbacks *callbacks, int64_t step);

/* The steps between checkpoints, 0 for those of an epoch, given what the setting says. */
int64_t lk_callbacks_save_every(const struct lk_callbacks *callbacks, int64_t setting);

/* Whether one has to be asked, with no step on its way, before a checkpoint is written. */
bool lk_callbacks_pause_to_save(const struct lk_callbacks *callbacks);

/* Which checkpoints are kept: the newest `newest`, and those of steps [returned count]. */
int lk_callbacks_keep(const struct lk_callbacks *callbacks, int64_t steps[LK_MOST_KEPT],
                      int *newest);

/* The state as text, which the caller frees, and back: of callbacks with the same options, the
 * others begin anew. fails: LK_E_MEMORY; LK_E_ARGUMENT */
LK_MUST_CHECK enum lk_status lk_callbacks_print(struct lk_callbacks *callbacks, char **text);
LK_MUST_CHECK enum lk_status lk_callbacks_parse(struct lk_callbacks *callbacks,
                                                const char *text);

/* The callback that has ended the run of which the state is; NULL: none, it is not finished. */
const char *lk_callbacks_ended(const struct lk_callbacks *callbacks);

/* Begins after `step` steps: opens files behind what the state knows of them. */
LK_MUST_CHECK enum lk_status lk_callbacks_open(struct lk_callbacks *callbacks, int64_t step);

/* Sees an event, to which figures may be added. */
LK_MUST_CHECK enum lk_status lk_callbacks_see(struct lk_callbacks *callbacks,
                                              struct lk_event *event);

/* After an evaluation that was due, or in its place where there is no validation: what was
 * trained since the one before is over. Usually that is an epoch, as callbacks call it. */
LK_MUST_CHECK enum lk_status lk_callbacks_end_epoch(struct lk_callbacks *callbacks,
                                                    int64_t step);

/* The figures of the epoch that has just ended, for the schedule. */
const struct lk_figures *lk_callbacks_figures(const struct lk_callbacks *callbacks);

/* Between steps. saves: a checkpoint is going to be written. */
LK_MUST_CHECK enum lk_status lk_callbacks_pause(struct lk_callbacks *callbacks, int64_t step,
                                                bool saves);

/* Training is over after this step. */
void lk_callbacks_end(struct lk_callbacks *callbacks);

/* All wishes since they were taken last; takes them. stops: and that training stops, which
 * otherwise is still wished for afterwards. */
const struct lk_callback_wish *lk_callbacks_wish(const struct lk_callbacks *callbacks);
struct lk_callback_wish lk_callbacks_take_wish(struct lk_callbacks *callbacks, bool stops);

/* The learning rate of a step, given that of the schedule. */
double lk_callbacks_rate(const struct lk_callbacks *callbacks, double rate, int64_t step);

/* Of several ranks: what has to be the same on all. */
struct lk_callback_rates {
    int count;
    int64_t from[8]; /* the steps from which they are, the latest first */
    double rates[8];
};
struct lk_callback_rates *lk_callbacks_rates(struct lk_callbacks *callbacks);

LK_MUST_CHECK enum lk_status lk_callbacks_saved(struct lk_callbacks *callbacks, int64_t step,
                                                const char *path);

/* Writes files as far as the state knows of them; is_last: there is no later try. Before a
 * checkpoint with that state is written they have to be on disk, which sync waits for, on any
 * thread. fails: LK_E_IO */
LK_MUST_CHECK enum lk_status lk_callbacks_flush(struct lk_callbacks *callbacks, bool is_last);
LK_MUST_CHECK enum lk_status lk_callbacks_sync(const struct lk_callbacks *callbacks);

/* Writes files again that somebody has removed from the run directory, which is said. */
void lk_callbacks_find(struct lk_callbacks *callbacks);

#endif

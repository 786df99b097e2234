/* The inside of callbacks: what a kind of them is. Floor 8. Private to src/train/callbacks; a
 * new kind is a file with a row of struct lk_callback_kind, and its name in callbacks.c. */
#ifndef LK_TRAIN_CALLBACKS_KINDS_H
#define LK_TRAIN_CALLBACKS_KINDS_H

#include "base/option.h"
#include "train/callbacks/callbacks.h"
#include "train/logs/log_file.h"

struct lk_called {
    const struct lk_callback_kind *kind;
    const struct lk_callback_site *site;
    void *options, *state; /* of the kind's sizes; `state` goes into checkpoints */
    void *memory;          /* (optional) of the kind's own; close() releases it */
};

/* What has an epoch that is over; where evaluations are not at the ends of epochs, what was
 * trained since the last one. */
struct lk_epoch {
    int64_t number; /* from 0, of the last step */
    int64_t step;   /* done */
    struct lk_figures figures;
};

/* Verbs that a kind does not need are NULL. Those with a wish add to it. */
struct lk_callback_kind {
    const char *name;
    const struct lk_option *options, *state; /* state NULL: it has none */
    size_t options_bytes, state_bytes;
    const char *path;   /* the option that names a file or folder, which is its alone */
    bool needs_run;     /* a run directory */
    bool sees_gradient; /* at its pauses */
    bool sees_saves;    /* wants a pause before each checkpoint */

    /* fails: LK_E_ARGUMENT for options that do not fit one another or the training */
    enum lk_status (*check)(const void *options, const struct lk_callback_site *site);

    /* Begins after `step` steps, with the state that a checkpoint had, or zeros. */
    enum lk_status (*open)(struct lk_called *called, int64_t step);
    enum lk_status (*see_step)(struct lk_called *called, const struct lk_event *event,
                               struct lk_callback_wish *wish);

    /* An evaluation, also one of which no epoch follows. */
    enum lk_status (*see_evaluation)(struct lk_called *called,
                                     const struct lk_evaluation *evaluation);

    /* Adds figures to an epoch, before any callback sees it. */
    void (*measure)(struct lk_called *called, struct lk_epoch *epoch);
    enum lk_status (*see_epoch)(struct lk_called *called, const struct lk_epoch *epoch,
                                struct lk_callback_wish *wish);

    /* Between steps, none of which is on its way. saves: a checkpoint is going to be written */
    enum lk_status (*pause)(struct lk_called *called, int64_t step, bool saves,
                            struct lk_callback_wish *wish);
    int64_t (*pause_every)(const struct lk_called *called); /* steps; 0: at none of its own */
    int64_t (*save_every)(const struct lk_called *called);  /* steps between checkpoints */

    /* After the last step. */
    void (*end)(struct lk_called *called, struct lk_callback_wish *wish);

    /* Adds the steps of checkpoints that are to be kept, 8 at most; may set how many of the
     * newest are. */
    int (*keep)(const struct lk_called *called, int64_t *steps, int *newest);

    /* The checkpoint of `step` steps was written at `path`. */
    enum lk_status (*saved)(struct lk_called *called, int64_t step, const char *path);

    /* Brings to the state what is in files; is_last: there is no later try to write them. */
    enum lk_status (*flush)(struct lk_called *called, bool is_last);

    /* Brings the files to disk, on a thread of its own. */
    enum lk_status (*sync)(const struct lk_called *called);
    void (*close)(struct lk_called *called);
};

extern const struct lk_callback_kind lk_early_stopping, lk_save_checkpoint,
    lk_reduce_on_plateau, lk_stop_on_nan, lk_stop_at, lk_stop_file, lk_csv_log, lk_time_history,
    lk_tensorboard;

/* Adds to a wish that training stops, if nothing stronger does. */
void lk_wish_stop(struct lk_callback_wish *wish, enum lk_callback_stop stop, const char *format,
                  ...) __attribute__((format(printf, 3, 4)));

/* The figure that a callback monitors. fails: LK_E_ARGUMENT: the epoch has none */
LK_MUST_CHECK enum lk_status lk_epoch_find(const struct lk_epoch *epoch,
                                           const struct lk_called *called, const char *monitor,
                                           double *value);

/* Whether the training will have that figure. fails: LK_E_ARGUMENT, with the nearest one */
LK_MUST_CHECK enum lk_status lk_monitor_check(const char *monitor,
                                              const struct lk_callback_site *site);

/* A bound that need not be there: "" is none. fails: LK_E_ARGUMENT */
LK_MUST_CHECK enum lk_status lk_bound_read(const char *name, const char *text, bool *is_there,
                                           double *bound);

/* Refuses a path that is a run's own file or folder (config.yaml, metrics.jsonl, ...), or that
 * of one of the `count` callbacks before it. fails: LK_E_ARGUMENT, also for "" */
LK_MUST_CHECK enum lk_status lk_called_check_path(const struct lk_called *called,
                                                  const struct lk_called *before, int count);

#define LK_CALLED_OPTION(type, field) .name = #field, .offset = offsetof(type, field)

#endif

/* The figures of an epoch by name, which callbacks watch and write: "loss", "val_accuracy".
 * Floor 8. Knows no callback. */
#ifndef LK_TRAIN_CALLBACKS_FIGURES_H
#define LK_TRAIN_CALLBACKS_FIGURES_H

#include "model/model.h"
#include <lockstep/train.h>

enum { LK_MOST_FIGURES = 256, LK_FIGURE_NAME = 128 };

struct lk_named_figure {
    char name[LK_FIGURE_NAME];
    double value;
};

/* In the order in which they were set; {0}: none. */
struct lk_figures {
    int count;
    struct lk_named_figure items[LK_MOST_FIGURES];
};

/* Sets one, in place of an earlier value; what has no room is left out. */
void lk_figures_set(struct lk_figures *figures, const char *name, double value);

/* The value of that name; false: there is none. */
bool lk_figures_find(const struct lk_figures *figures, const char *name, double *value);

/* Sets those of an evaluation: val_loss, val_accuracy, val_METRIC; of several outputs
 * val_OUTPUT_loss and val_OUTPUT_METRIC, as Keras names them. */
void lk_figures_set_evaluation(struct lk_figures *figures,
                               const struct lk_evaluation *evaluation);

/* Sets those that an epoch of the model will have, of no value. */
void lk_figures_set_expected(struct lk_figures *figures, const struct lk_model *model,
                             bool has_accuracy, bool has_validation);

/* Which way a figure is better. */
enum lk_monitor_mode { LK_MONITOR_AUTO, LK_MONITOR_MIN, LK_MONITOR_MAX };
extern const char *const lk_monitor_modes[];

/* Whether larger is better: as the mode says; auto: as the metric is that the name tells of. */
bool lk_monitor_is_up(const char *name, int mode);

/* Whether `now` is better than `best` by more than `delta`; no number is not. */
bool lk_monitor_is_better(bool is_up, double now, double best, double delta);

#endif

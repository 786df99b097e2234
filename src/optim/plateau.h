/* The learning-rate schedule that depends on how training goes: the rate falls where a figure
 * of the validation no longer improves. So it has state. Floor 4.
 *
 * As keras.callbacks.ReduceLROnPlateau: a figure is better by more than min_delta or counts as
 * none; after `patience` figures without one the rate is multiplied by `factor`, but does not
 * fall below min_lr; then `cooldown` figures are not counted. */
#ifndef LK_OPTIM_PLATEAU_H
#define LK_OPTIM_PLATEAU_H

#include "optim/lr_schedule.h"

enum { LK_PLATEAU_STEPS = 8, LK_PLATEAU_TEXT = 512 };

struct lk_plateau {
    double best;
    bool has_best;
    int64_t waited, cooling; /* figures without a better one; figures not to be counted yet */
    int64_t reductions;
    int64_t at[LK_PLATEAU_STEPS]; /* the steps after which the last reductions were, the latest
                                   * first: steps before are perhaps computed again */
};

/* Takes a figure that was found after `step` steps. Returns whether the rate falls from the
 * next step on. base: the first rate. */
bool lk_plateau_take(const struct lk_lr_schedule *schedule, struct lk_plateau *plateau,
                     double base, int64_t step, double figure);

/* The rate of step `step`, given lk_lr_schedule_rate() of it. */
double lk_plateau_rate(const struct lk_lr_schedule *schedule, const struct lk_plateau *plateau,
                       double rate, int64_t step);

/* The state as text, and back. fails: LK_E_ARGUMENT */
void lk_plateau_print(const struct lk_plateau *plateau, char text[LK_PLATEAU_TEXT]);
LK_MUST_CHECK enum lk_status lk_plateau_parse(const char *text, struct lk_plateau *plateau);

#endif

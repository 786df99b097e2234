/* How often a training evaluates. Floor 8. */
#ifndef LK_TRAIN_EVALUATION_PERIOD_H
#define LK_TRAIN_EVALUATION_PERIOD_H

#include <lockstep/status.h>
#include <stdint.h>

struct lk_eval_period {
    int64_t epochs, steps; /* one of these three is not 0 */
    double minutes;
};

/* Reads "200steps", "2epochs" or "5minutes". fails: LK_E_ARGUMENT: something else, or none */
LK_MUST_CHECK enum lk_status lk_eval_period_parse(const char *text,
                                                  struct lk_eval_period *period);

/* Steps from one evaluation to the next; 0: the clock says when. */
int64_t lk_eval_period_steps(const struct lk_eval_period *period, int64_t steps_per_epoch);

#endif

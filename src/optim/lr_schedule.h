/* Learning-rate schedules: the rate as a pure function of the step's number. Floor 4. */
#ifndef LK_OPTIM_LR_SCHEDULE_H
#define LK_OPTIM_LR_SCHEDULE_H

#include "base/option.h"

enum lk_lr_schedule_kind {
    LK_LR_SCHEDULE_CONSTANT,
    LK_LR_SCHEDULE_STEP,
    LK_LR_SCHEDULE_EXPONENTIAL,
    LK_LR_SCHEDULE_COSINE,
    LK_LR_SCHEDULE_POLYNOMIAL,
    LK_LR_SCHEDULE_PLATEAU, /* optim/plateau.h */
};

enum lk_lr_monitor { LK_MONITOR_LOSS, LK_MONITOR_ACCURACY };

struct lk_lr_schedule {
    int kind;
    int64_t warmup; /* steps in which the rate first rises linearly from 0 */
    int64_t every;  /* step, exponential: in so many steps the rate is multiplied by `factor` */
    double factor;  /* plateau: likewise, where the monitored figure does not improve */
    int64_t steps; /* cosine, polynomial: the last rate is reached after so many steps, and then
                    * kept */
    double last;   /* cosine, polynomial: the last rate divided by the first */
    double power;  /* polynomial */
    int monitor;   /* plateau, as the rest */
    int64_t patience, cooldown;
    double min_delta, min_lr;
};

extern const struct lk_option lk_lr_schedule_options[];

/* Reads "kind=cosine steps=1000 warmup=100"; "" or NULL is constant. fails: LK_E_ARGUMENT, also
 * where the kind's own number (every, steps) is missing, or the factor of a plateau is no less
 * than 1 */
LK_MUST_CHECK enum lk_status lk_lr_schedule_parse(const char *text,
                                                  struct lk_lr_schedule *schedule);

/* The rate of step `step`, 1 for the first. base * step / warmup up to step `warmup`, then,
 * with t = step - 1 - warmup: base; base * factor^floor(t / every); base * factor^(t / every);
 * base * (last + (1 - last) * (1 + cos(pi * min(t / steps, 1))) / 2);
 * base * (last + (1 - last) * (1 - min(t / steps, 1))^power). Of a plateau: base.
 * source: Goyal et al. arXiv:1706.02677 (warm-up); Loshchilov and Hutter arXiv:1608.03983 */
double lk_lr_schedule_rate(const struct lk_lr_schedule *schedule, double base, int64_t step);

#endif

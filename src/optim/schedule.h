/* Learning rates over time: a pure function of the step. Floor 4. */
#ifndef LK_OPTIM_SCHEDULE_H
#define LK_OPTIM_SCHEDULE_H

#include "base/option.h"

enum lk_schedule_kind {
    LK_SCHEDULE_CONSTANT,
    LK_SCHEDULE_STEP,
    LK_SCHEDULE_EXPONENTIAL,
    LK_SCHEDULE_COSINE,
};

struct lk_schedule {
    int kind;
    int64_t warmup; /* steps of linear rise in front of the schedule proper */
    int64_t every;  /* step: steps between drops; exponential: steps a factor takes */
    double factor;
    int64_t steps; /* cosine: from the full rate to the last one; constant after it */
    double last;   /* cosine: the last rate, as a share of the first */
};

extern const struct lk_option lk_schedule_options[];

/* Reads "kind=cosine steps=1000 warmup=100"; "" or NULL is constant. fails: LK_E_ARGUMENT, also
 * where the kind's own number (every, steps) is missing */
LK_MUST_CHECK enum lk_status lk_schedule_parse(const char *text, struct lk_schedule *schedule);

/* The rate of step `step`, 1 for the first. base * step / warmup up to step `warmup`, then,
 * with t = step - 1 - warmup: base; base * factor^floor(t / every); base * factor^(t / every);
 * base * (last + (1 - last) * (1 + cos(pi * min(t / steps, 1))) / 2).
 * source: Goyal et al. arXiv:1706.02677 (warm-up); Loshchilov and Hutter arXiv:1608.03983 */
double lk_schedule_rate(const struct lk_schedule *schedule, double base, int64_t step);

#endif

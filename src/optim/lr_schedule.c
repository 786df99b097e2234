/* Computes the learning rate of a step, and reads a schedule's options. */
#include "optim/lr_schedule.h"

#include "base/fail.h"
#include "optim/optimizer.h"
#include <math.h>

static const char *const kinds[] = {[LK_LR_SCHEDULE_CONSTANT] = "constant",
                                    [LK_LR_SCHEDULE_STEP] = "step",
                                    [LK_LR_SCHEDULE_EXPONENTIAL] = "exponential",
                                    [LK_LR_SCHEDULE_COSINE] = "cosine",
                                    [LK_LR_SCHEDULE_POLYNOMIAL] = "polynomial",
                                    [LK_LR_SCHEDULE_PLATEAU] = "plateau",
                                    NULL};

static const char *const monitors[] = {
    [LK_MONITOR_LOSS] = "loss", [LK_MONITOR_ACCURACY] = "accuracy", NULL};

const struct lk_option lk_lr_schedule_options[] = {
    {.name = "kind",
     .kind = LK_OPTION_CHOICE,
     .offset = offsetof(struct lk_lr_schedule, kind),
     .standard = "constant",
     .choices = kinds},
    {.name = "warmup",
     .kind = LK_OPTION_INT,
     .offset = offsetof(struct lk_lr_schedule, warmup),
     .max = 1e15,
     .standard = "0",
     .help = "steps of linear rise to the full rate"},
    {.name = "every",
     .kind = LK_OPTION_INT,
     .offset = offsetof(struct lk_lr_schedule, every),
     .max = 1e15,
     .standard = "0",
     .help = "step, exponential: steps that one factor takes"},
    {.name = "factor",
     .kind = LK_OPTION_REAL,
     .offset = offsetof(struct lk_lr_schedule, factor),
     .max = 1000,
     .standard = "0.1",
     .help = "step, exponential, plateau: what the rate is multiplied with"},
    {.name = "steps",
     .kind = LK_OPTION_INT,
     .offset = offsetof(struct lk_lr_schedule, steps),
     .max = 1e15,
     .standard = "0",
     .help = "cosine, polynomial: steps to the last rate"},
    {.name = "last",
     .kind = LK_OPTION_REAL,
     .offset = offsetof(struct lk_lr_schedule, last),
     .max = 1,
     .standard = "0",
     .help = "cosine, polynomial: the last rate as a share of the first"},
    {.name = "power",
     .kind = LK_OPTION_REAL,
     .offset = offsetof(struct lk_lr_schedule, power),
     .max = 1000,
     .standard = "1",
     .help = "polynomial: the power; 1 is a straight line"},
    {.name = "monitor",
     .kind = LK_OPTION_CHOICE,
     .offset = offsetof(struct lk_lr_schedule, monitor),
     .standard = "loss",
     .choices = monitors,
     .help = "plateau: the figure of the validation that is to improve"},
    {.name = "patience",
     .kind = LK_OPTION_INT,
     .offset = offsetof(struct lk_lr_schedule, patience),
     .max = 1e9,
     .standard = "10",
     .help = "plateau: validations without a better figure until the rate falls"},
    {.name = "min_delta",
     .kind = LK_OPTION_REAL,
     .offset = offsetof(struct lk_lr_schedule, min_delta),
     .max = 1e30,
     .standard = "0.0001",
     .help = "plateau: a figure that differs by no more is not better"},
    {.name = "cooldown",
     .kind = LK_OPTION_INT,
     .offset = offsetof(struct lk_lr_schedule, cooldown),
     .max = 1e9,
     .standard = "0",
     .help = "plateau: validations that are not counted once the rate has fallen"},
    {.name = "min_lr",
     .kind = LK_OPTION_REAL,
     .offset = offsetof(struct lk_lr_schedule, min_lr),
     .max = 1e6,
     .standard = "0",
     .help = "plateau: the least rate"},
    {0},
};

enum lk_status lk_lr_schedule_parse(const char *text, struct lk_lr_schedule *schedule)
{
    struct lk_lr_schedule s = {0};
    const enum lk_status status = lk_options_parse(lk_lr_schedule_options, &s, text);
    if (status != LK_OK)
        return lk_fail_within(status, "learning-rate schedule");
    if ((s.kind == LK_LR_SCHEDULE_STEP || s.kind == LK_LR_SCHEDULE_EXPONENTIAL) && s.every < 1)
        return lk_fail(LK_E_ARGUMENT, "learning-rate schedule '%s' needs every=STEPS",
                       kinds[s.kind]);
    if ((s.kind == LK_LR_SCHEDULE_COSINE || s.kind == LK_LR_SCHEDULE_POLYNOMIAL) && s.steps < 1)
        return lk_fail(LK_E_ARGUMENT, "learning-rate schedule '%s' needs steps=STEPS",
                       kinds[s.kind]);
    if (s.kind == LK_LR_SCHEDULE_PLATEAU && s.factor >= 1)
        return lk_fail(LK_E_ARGUMENT,
                       "learning-rate schedule 'plateau': factor %g: expected less than 1",
                       s.factor);
    *schedule = s;
    return LK_OK;
}

double lk_lr_schedule_rate(const struct lk_lr_schedule *schedule, double base, int64_t step)
{
    static const double pi = 3.14159265358979323846;
    if (step <= schedule->warmup)
        return base * (double)step / (double)schedule->warmup;
    const int64_t t = step - 1 - schedule->warmup;
    switch (schedule->kind) {
    case LK_LR_SCHEDULE_STEP:
        return base * lk_optimizer_power(schedule->factor, t / schedule->every);
    case LK_LR_SCHEDULE_EXPONENTIAL:
        return base * pow(schedule->factor, (double)t / (double)schedule->every);
    case LK_LR_SCHEDULE_COSINE: {
        const double part = t < schedule->steps ? (double)t / (double)schedule->steps : 1;
        return base * (schedule->last + (1 - schedule->last) * (1 + cos(pi * part)) / 2);
    }
    case LK_LR_SCHEDULE_POLYNOMIAL: {
        const double left = t < schedule->steps ? 1 - (double)t / (double)schedule->steps : 0;
        return base * (schedule->last + (1 - schedule->last) * pow(left, schedule->power));
    }
    default:
        return base;
    }
}

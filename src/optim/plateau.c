/* Decides when the rate of a schedule `plateau` falls, and keeps the state of that as text. */
#include "optim/plateau.h"

#include "base/fail.h"
#include "optim/optimizer.h"
#include <math.h>
#include <string.h>

#define COUNT(field)                                                                           \
    {                                                                                          \
        .name = #field, .kind = LK_OPTION_INT, .offset = offsetof(struct lk_plateau, field),   \
        .max = 1e15, .standard = "0"                                                           \
    }

static const struct lk_option table[] = {
    {.name = "best",
     .kind = LK_OPTION_REAL,
     .offset = offsetof(struct lk_plateau, best),
     .standard = "0"},
    {.name = "has_best",
     .kind = LK_OPTION_BOOL,
     .offset = offsetof(struct lk_plateau, has_best),
     .standard = "false"},
    COUNT(waited),
    COUNT(cooling),
    COUNT(reductions),
    {.name = "at",
     .kind = LK_OPTION_INT,
     .offset = offsetof(struct lk_plateau, at),
     .count = LK_PLATEAU_STEPS,
     .max = 1e15,
     .standard = "0"},
    {0},
};

/* The rate after so many reductions. */
static double reduce(const struct lk_lr_schedule *schedule, double rate, int64_t reductions)
{
    const double least = fmin(schedule->min_lr, rate);
    return fmax(rate * lk_optimizer_power(schedule->factor, reductions), least);
}

static bool is_better(const struct lk_lr_schedule *schedule, const struct lk_plateau *plateau,
                      double figure)
{
    if (!plateau->has_best)
        return isfinite(figure);
    return schedule->monitor == LK_MONITOR_LOSS ? figure < plateau->best - schedule->min_delta
                                                : figure > plateau->best + schedule->min_delta;
}

bool lk_plateau_take(const struct lk_lr_schedule *schedule, struct lk_plateau *plateau,
                     double base, int64_t step, double figure)
{
    if (plateau->cooling > 0) {
        plateau->cooling--;
        plateau->waited = 0;
    }
    if (is_better(schedule, plateau, figure)) {
        plateau->best = figure;
        plateau->has_best = true;
        plateau->waited = 0;
        return false;
    }
    if (plateau->cooling > 0 || ++plateau->waited < schedule->patience ||
        !(reduce(schedule, base, plateau->reductions) > schedule->min_lr))
        return false;
    memmove(plateau->at + 1, plateau->at, sizeof plateau->at - sizeof plateau->at[0]);
    plateau->at[0] = step;
    plateau->reductions++;
    plateau->cooling = schedule->cooldown;
    plateau->waited = 0;
    return true;
}

double lk_plateau_rate(const struct lk_lr_schedule *schedule, const struct lk_plateau *plateau,
                       double rate, int64_t step)
{
    int64_t reductions = plateau->reductions;
    for (int i = 0; i < LK_PLATEAU_STEPS && reductions > 0 && step <= plateau->at[i]; i++)
        reductions--;
    return reduce(schedule, rate, reductions);
}

void lk_plateau_print(const struct lk_plateau *plateau, char text[LK_PLATEAU_TEXT])
{
    (void)!lk_options_print(table, plateau, true, text, LK_PLATEAU_TEXT);
}

enum lk_status lk_plateau_parse(const char *text, struct lk_plateau *plateau)
{
    struct lk_plateau parsed = {0};
    const enum lk_status status = lk_options_parse(table, &parsed, text);
    if (status != LK_OK)
        return lk_fail_within(status, "the state of the learning-rate schedule");
    *plateau = parsed;
    return LK_OK;
}

/* reduce_on_plateau: the learning-rate schedule `plateau` under the name that Keras gives it,
 * for any figure. The trainer follows it; nothing is done here. */
#include "base/fail.h"
#include "train/callbacks/internal.h"
#include <string.h>

struct options {
    char monitor[LK_FIGURE_NAME];
    int mode;
    double factor, min_delta, min_lr;
    int64_t patience, cooldown;
};

#define OPTION(field) LK_CALLED_OPTION(struct options, field)

static const struct lk_option options_table[] = {
    {OPTION(monitor), .kind = LK_OPTION_TEXT, .count = LK_FIGURE_NAME, .standard = "val_loss",
     .help = "the figure that is to improve"},
    {OPTION(mode), .kind = LK_OPTION_CHOICE, .standard = "auto", .choices = lk_monitor_modes,
     .help = "which way it improves; auto: as the metric of that name does"},
    {OPTION(factor), .kind = LK_OPTION_REAL, .max = 1, .standard = "0.1",
     .help = "what the learning rate is multiplied with, less than 1"},
    {OPTION(patience), .kind = LK_OPTION_INT, .max = 1e9, .standard = "10",
     .help = "evaluations without a better figure until it falls"},
    {OPTION(min_delta), .kind = LK_OPTION_REAL, .max = 1e30, .standard = "0.0001",
     .help = "a figure that differs by no more is not better"},
    {OPTION(cooldown), .kind = LK_OPTION_INT, .max = 1e9, .standard = "0",
     .help = "evaluations after a fall that do not count"},
    {OPTION(min_lr), .kind = LK_OPTION_REAL, .max = 1e6, .standard = "0",
     .help = "the learning rate falls no lower"},
    {0},
};

static enum lk_status check(const void *options, const struct lk_callback_site *site)
{
    const struct options *o = options;
    if (o->factor >= 1)
        return lk_fail(LK_E_ARGUMENT, "option 'factor': less than 1 is expected, found %g",
                       o->factor);
    return lk_monitor_check(o->monitor, site);
}

const struct lk_callback_kind lk_reduce_on_plateau = {
    .name = "reduce_on_plateau",
    .options = options_table,
    .options_bytes = sizeof(struct options),
    .check = check,
};

/* The schedule's monitor says which way is better, whatever the figure. */
enum lk_status lk_callbacks_schedule(const struct lk_callbacks *callbacks,
                                     struct lk_lr_schedule *schedule, const char **monitor)
{
    for (int i = 0; i < callbacks->count; i++) {
        const struct options *o = callbacks->list[i].options;
        if (callbacks->list[i].kind != &lk_reduce_on_plateau)
            continue;
        if (schedule->kind != LK_LR_SCHEDULE_CONSTANT)
            return lk_fail(
                LK_E_ARGUMENT,
                "callback 'reduce_on_plateau' is a learning-rate schedule, and there "
                "is one already: leave one of them out");
        schedule->kind = LK_LR_SCHEDULE_PLATEAU;
        schedule->monitor =
            lk_monitor_is_up(o->monitor, o->mode) ? LK_MONITOR_ACCURACY : LK_MONITOR_LOSS;
        schedule->factor = o->factor;
        schedule->patience = o->patience;
        schedule->cooldown = o->cooldown;
        schedule->min_delta = o->min_delta;
        schedule->min_lr = o->min_lr;
        *monitor = o->monitor;
    }
    return LK_OK;
}

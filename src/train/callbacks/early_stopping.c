/* Ends the training where a figure no longer improves, as keras.callbacks.EarlyStopping. */
#include "base/fail.h"
#include "base/log.h"
#include "train/callbacks/kinds.h"
#include <math.h>

struct options {
    char monitor[LK_FIGURE_NAME], baseline[32];
    int mode;
    double min_delta;
    int64_t patience, start_from_epoch;
    bool restore_best;
};

struct state {
    double best;
    bool has_best;
    int64_t waited, evaluations, best_step;
};

#define OPTION(field) LK_CALLED_OPTION(struct options, field)
#define STATE(field) LK_CALLED_OPTION(struct state, field)

static const struct lk_option options_table[] = {
    {OPTION(monitor), .kind = LK_OPTION_TEXT, .count = LK_FIGURE_NAME, .standard = "val_loss",
     .help = "the figure that is to improve"},
    {OPTION(mode), .kind = LK_OPTION_CHOICE, .standard = "auto", .choices = lk_monitor_modes,
     .help = "which way it improves; auto: as the metric of that name does"},
    {OPTION(min_delta), .kind = LK_OPTION_REAL, .max = 1e30, .standard = "0",
     .help = "a figure that differs by no more is not better"},
    {OPTION(patience), .kind = LK_OPTION_INT, .max = 1e9, .standard = "0",
     .help = "evaluations without a better figure after which training ends"},
    {OPTION(baseline), .kind = LK_OPTION_TEXT, .count = 32, .standard = "",
     .help = "a better figure counts only where it is better than this one too"},
    {OPTION(start_from_epoch), .kind = LK_OPTION_INT, .max = 1e9, .standard = "0",
     .help = "epochs before it, counted from 0, do not count"},
    {OPTION(restore_best), .kind = LK_OPTION_BOOL, .standard = "false",
     .help = "the run ends with the state that had the best figure (Keras: "
             "restore_best_weights)"},
    {0},
};

static const struct lk_option state_table[] = {
    {STATE(best), .kind = LK_OPTION_REAL, .standard = "0"},
    {STATE(has_best), .kind = LK_OPTION_BOOL, .standard = "false"},
    {STATE(waited), .kind = LK_OPTION_INT, .standard = "0"},
    {STATE(evaluations), .kind = LK_OPTION_INT, .standard = "0"},
    {STATE(best_step), .kind = LK_OPTION_INT, .standard = "0"},
    {0},
};

static enum lk_status check(const void *options, const struct lk_callback_site *site)
{
    const struct options *o = options;
    bool is_there;
    double baseline;
    if (o->restore_best && !*site->run)
        return lk_fail(LK_E_ARGUMENT,
                       "restore_best needs a run directory, which keeps the best state: "
                       "--run DIR would do");
    LK_TRY(lk_bound_read("baseline", o->baseline, &is_there, &baseline));
    return lk_monitor_check(o->monitor, site);
}

static void take_best(struct state *s, double value, int64_t step)
{
    s->best = value;
    s->has_best = true;
    s->best_step = step;
}

static enum lk_status see_epoch(struct lk_called *called, const struct lk_epoch *epoch,
                                struct lk_callback_wish *wish)
{
    const struct options *o = called->options;
    struct state *s = called->state;
    const bool is_up = lk_monitor_is_up(o->monitor, o->mode);
    double value, baseline = 0;
    bool has_baseline;
    if (epoch->number < o->start_from_epoch)
        return LK_OK;
    LK_TRY(lk_epoch_find(epoch, called, o->monitor, &value));
    LK_TRY(lk_bound_read("baseline", o->baseline, &has_baseline, &baseline));
    if (s->best_step == 0) { /* whatever it is, no other state is there */
        s->best_step = epoch->step;
        wish->saves |= o->restore_best;
    }
    s->evaluations++;
    s->waited++;
    const bool improves =
        isfinite(value) &&
        (!s->has_best || lk_monitor_is_better(is_up, value, s->best, o->min_delta));
    if (improves) {
        take_best(s, value, epoch->step);
        wish->saves |= o->restore_best;
        if (!has_baseline || lk_monitor_is_better(is_up, value, baseline, o->min_delta))
            s->waited = 0;
    } else if (s->waited >= o->patience && s->evaluations > 1) {
        const bool is_below =
            has_baseline && !lk_monitor_is_better(is_up, s->best, baseline, 0);
        lk_wish_stop(wish, LK_CALLBACK_ENDS, "%lld evaluation%s without a better %s than %s%g",
                     (long long)s->waited, s->waited == 1 ? "" : "s", o->monitor,
                     is_below ? "the baseline of " : "", is_below ? baseline : s->best);
    }
    return LK_OK;
}

static void end(struct lk_called *called, struct lk_callback_wish *wish)
{
    const struct options *o = called->options;
    const struct state *s = called->state;
    if (o->restore_best && s->best_step > 0)
        wish->restores = s->best_step;
}

static int keep(const struct lk_called *called, int64_t *steps, int *newest)
{
    const struct options *o = called->options;
    const struct state *s = called->state;
    (void)newest;
    if (!o->restore_best || s->best_step == 0)
        return 0;
    steps[0] = s->best_step;
    return 1;
}

const struct lk_callback_kind lk_early_stopping = {
    .name = "early_stopping",
    .options = options_table,
    .state = state_table,
    .options_bytes = sizeof(struct options),
    .state_bytes = sizeof(struct state),
    .check = check,
    .see_epoch = see_epoch,
    .end = end,
    .keep = keep,
};

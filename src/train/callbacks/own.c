/* Callbacks of programs, and what they reply. */
#include "train/callbacks/internal.h"

#include "base/fail.h"
#include "base/utf8.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

struct lk_callback_reply {
    struct lk_callbacks *callbacks;
    const struct lk_callback *callback;
    const struct lk_event *event;
};

void lk_callback_stop(struct lk_callback_reply *reply)
{
    struct lk_callbacks *callbacks = reply->callbacks;
    lk_wish_stop(&callbacks->wish, LK_CALLBACK_ENDS, "%s has ended the training",
                 reply->callback->name);
    if (callbacks->wish.stop == LK_CALLBACK_ENDS && !callbacks->wish.own)
        callbacks->wish.own = reply->callback->name;
}

enum lk_status lk_callback_set_lr(struct lk_callback_reply *reply, double lr)
{
    struct lk_callback_rates *rates = &reply->callbacks->sums.rates;
    const struct lk_callback_site *site = &reply->callbacks->site;
    const bool is_step = reply->event->kind == LK_EVENT_STEP;
    const int most = LK_COUNT(rates->rates);
    if (!(lr >= 0) || !isfinite(lr))
        return lk_fail(LK_E_ARGUMENT, "%g is no learning rate", lr);
    if (site->ranks > 1 && reply->event->kind != LK_EVENT_EVALUATION)
        return lk_fail(LK_E_ARGUMENT,
                       "in a job of several ranks the learning rate can be set at evaluations "
                       "alone");
    if (site->ranks > 1 && site->by_clock)
        return lk_fail(LK_E_ARGUMENT,
                       "in a job of several ranks that evaluates by minutes the learning rate "
                       "cannot be set");
    const int64_t from = reply->event->step + 1 + (is_step ? site->ahead : 0);
    if (rates->count > 0 && rates->from[0] == from) {
        rates->rates[0] = lr;
        return LK_OK;
    }
    memmove(rates->rates + 1, rates->rates, sizeof rates->rates - sizeof rates->rates[0]);
    memmove(rates->from + 1, rates->from, sizeof rates->from - sizeof rates->from[0]);
    rates->rates[0] = lr;
    rates->from[0] = from;
    rates->count = rates->count < most ? rates->count + 1 : most;
    return LK_OK;
}

double lk_callbacks_rate(const struct lk_callbacks *callbacks, double rate, int64_t step)
{
    const struct lk_callback_rates *rates = &callbacks->sums.rates;
    for (int i = 0; i < rates->count; i++)
        if (rates->from[i] <= step)
            return rates->rates[i] > 0 ? rates->rates[i] : rate;
    return rate;
}

struct lk_callback_rates *lk_callbacks_rates(struct lk_callbacks *callbacks)
{
    return &callbacks->sums.rates;
}

/* Whether the training itself, or a callback of ours, has a figure or a column of that name. */
static bool is_own_figure(const struct lk_callbacks *callbacks, const char *name)
{
    static const char *const others[] = {"epoch", "step", "seconds", "epoch_seconds",
                                         "steps_per_s"};
    char full[LK_FIGURE_NAME];
    double value;
    for (int i = 0; i < LK_COUNT(others); i++)
        if (strcmp(name, others[i]) == 0)
            return true;
    snprintf(full, sizeof full, "val_%s", name);
    return lk_figures_find(&callbacks->own, name, &value) ||
           lk_figures_find(&callbacks->own, full, &value);
}

/* Names stand in JSON, tables and lists of columns. */
static bool is_text(const char *name)
{
    for (const char *p = name; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f || *p == '"')
            return false;
    return lk_utf8_find_broken(name, strlen(name)) == strlen(name);
}

enum lk_status lk_callback_add_figure(struct lk_callback_reply *reply, const char *name,
                                      double value)
{
    struct lk_callbacks *callbacks = reply->callbacks;
    const enum lk_event_kind kind = reply->event->kind;
    const int i = callbacks->added_count;
    if (kind != LK_EVENT_STEP && kind != LK_EVENT_EVALUATION)
        return lk_fail(LK_E_ARGUMENT,
                       "figure '%s' is for a step or an evaluation, this event is neither",
                       name);
    if (i == LK_MOST_ADDED_FIGURES || !*name || strlen(name) >= LK_ADDED_NAME)
        return lk_fail(LK_E_ARGUMENT,
                       "figure '%s' has no name or one of more than %d characters, or is one "
                       "of more than %d",
                       name, LK_ADDED_NAME - 1, LK_MOST_ADDED_FIGURES);
    if (!is_text(name))
        return lk_fail(LK_E_ARGUMENT,
                       "the name of a figure is UTF-8 without quotes and control characters");
    if (is_own_figure(callbacks, name))
        return lk_fail(LK_E_ARGUMENT, "figure '%s' is of the training itself", name);
    memcpy(callbacks->names[i], name, strlen(name) + 1);
    callbacks->added[i] = (struct lk_figure){callbacks->names[i], value};
    callbacks->added_count++;
    return LK_OK;
}

enum lk_status lk_own_callbacks_see(struct lk_callbacks *callbacks, struct lk_event *event)
{
    const struct lk_callback_site *site = &callbacks->site;
    callbacks->added_count = 0;
    for (int i = 0; i < site->own_count; i++) {
        struct lk_callback_reply reply = {callbacks, &site->own[i], event};
        const enum lk_status status = site->own[i].call(site->own[i].context, event, &reply);
        if (status != LK_OK) {
            (void)!lk_fail(status, "it has failed: %s", lk_status_text(status));
            return lk_fail_within(status, "callback '%s'", site->own[i].name);
        }
    }
    event->figures = callbacks->added;
    event->figure_count = callbacks->added_count;
    return LK_OK;
}

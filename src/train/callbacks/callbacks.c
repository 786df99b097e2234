/* The list of callbacks: what happens is told to each, and what they wish is collected. */
#include "train/callbacks/internal.h"

#include "base/fail.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- making ----------------------------------------------------------------------------- */

static enum lk_status add(struct lk_callbacks *callbacks, const char *text)
{
    struct lk_called *called = &callbacks->list[callbacks->count++];
    LK_TRY(lk_called_read(text, called));
    const struct lk_callback_kind *kind = called->kind;
    called->site = &callbacks->site;
    if (!callbacks->site.is_first)
        return LK_OK;
    if (kind->needs_run && !*callbacks->site.run)
        return lk_fail(LK_E_ARGUMENT, "callback '%s' needs a run directory: --run DIR would do",
                       kind->name);
    enum lk_status status =
        kind->check ? kind->check(called->options, &callbacks->site) : LK_OK;
    if (status == LK_OK)
        status = lk_called_check_path(called, callbacks->list, callbacks->count - 1);
    return status == LK_OK ? LK_OK : lk_fail_within(status, "callback '%s'", kind->name);
}

enum lk_status lk_callbacks_create(const char *text, const struct lk_callback_site *site,
                                   struct lk_callbacks **callbacks)
{
    char normal[LK_CALLBACKS_TEXT], one[LK_CALLBACKS_TEXT];
    LK_TRY(lk_callbacks_normalize(text, normal));
    struct lk_callbacks *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("callbacks", sizeof *made);
    made->site = *site;
    made->site.logs = &made->logs;
    made->logs.run = site->run;
    lk_figures_set_expected(&made->own, site->model, site->has_accuracy, true);
    enum lk_status status = LK_OK;
    for (const char *at = normal; status == LK_OK && lk_called_next(&at, one);)
        status = add(made, one);
    if (status != LK_OK) {
        lk_callbacks_destroy(made);
        return status;
    }
    *callbacks = made;
    return LK_OK;
}

void lk_callbacks_destroy(struct lk_callbacks *callbacks)
{
    if (!callbacks)
        return;
    for (int i = 0; i < callbacks->count; i++)
        lk_called_clear(&callbacks->list[i]);
    free(callbacks);
}

enum lk_status lk_callbacks_open(struct lk_callbacks *callbacks, int64_t step)
{
    for (int i = 0; i < callbacks->count; i++) {
        struct lk_called *called = &callbacks->list[i];
        const enum lk_status status =
            called->kind->open ? called->kind->open(called, step) : LK_OK;
        if (status != LK_OK)
            return lk_fail_within(status, "callback '%s'", called->kind->name);
    }
    callbacks->is_open = true;
    return LK_OK;
}

/* --- asking ----------------------------------------------------------------------------- */

bool lk_callbacks_follow(const struct lk_callbacks *callbacks)
{
    return callbacks->site.follows;
}

int64_t lk_callbacks_next_pause(const struct lk_callbacks *callbacks, int64_t done,
                                int64_t last)
{
    for (int i = 0; i < callbacks->count; i++) {
        const struct lk_called *called = &callbacks->list[i];
        const int64_t every = called->kind->pause_every ? called->kind->pause_every(called) : 0;
        if (every > 0 && (done / every + 1) * every < last)
            last = (done / every + 1) * every;
    }
    return last;
}

bool lk_callbacks_see_gradient(const struct lk_callbacks *callbacks, int64_t step)
{
    for (int i = 0; i < callbacks->count; i++) {
        const struct lk_called *called = &callbacks->list[i];
        const int64_t every =
            called->kind->sees_gradient ? called->kind->pause_every(called) : 0;
        if (every > 0 && step % every == 0)
            return true;
    }
    return false;
}

int64_t lk_callbacks_save_every(const struct lk_callbacks *callbacks, int64_t setting)
{
    for (int i = 0; i < callbacks->count && setting == 0; i++)
        if (callbacks->list[i].kind->save_every)
            setting = callbacks->list[i].kind->save_every(&callbacks->list[i]);
    return setting;
}

bool lk_callbacks_pause_to_save(const struct lk_callbacks *callbacks)
{
    bool pauses = callbacks->site.own_count > 0;
    for (int i = 0; i < callbacks->count; i++)
        pauses |= callbacks->list[i].kind->sees_saves;
    return pauses;
}

int lk_callbacks_keep(const struct lk_callbacks *callbacks, int64_t steps[LK_MOST_KEPT],
                      int *newest)
{
    int count = 0;
    for (int i = 0; i < callbacks->count; i++) {
        const struct lk_called *called = &callbacks->list[i];
        if (called->kind->keep)
            count += called->kind->keep(called, steps + count, newest);
    }
    return count;
}

const struct lk_figures *lk_callbacks_figures(const struct lk_callbacks *callbacks)
{
    return &callbacks->epoch.figures;
}

struct lk_callback_wish lk_callbacks_take_wish(struct lk_callbacks *callbacks, bool stops)
{
    const struct lk_callback_wish wish = callbacks->wish;
    callbacks->wish.saves = false;
    callbacks->wish.restores = 0;
    if (!stops)
        return wish;
    callbacks->wish = (struct lk_callback_wish){0};
    if (wish.stop == LK_CALLBACK_ENDS && wish.own)
        snprintf(callbacks->sums.ended, sizeof callbacks->sums.ended, "%s", wish.own);
    return wish;
}

const struct lk_callback_wish *lk_callbacks_wish(const struct lk_callbacks *callbacks)
{
    return &callbacks->wish;
}

void lk_wish_stop(struct lk_callback_wish *wish, enum lk_callback_stop stop, const char *format,
                  ...)
{
    if (stop <= wish->stop)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(wish->reason, sizeof wish->reason, format, args);
    va_end(args);
    wish->stop = stop;
}

/* --- telling ---------------------------------------------------------------------------- */

static enum lk_status add_step(struct lk_callbacks *callbacks, const struct lk_event *event)
{
    struct lk_epoch_sums *sums = &callbacks->sums;
    if (isfinite(event->loss))
        sums->loss += event->loss * (double)event->samples;
    else
        sums->is_broken = true;
    if (isfinite(event->accuracy))
        sums->accuracy += event->accuracy * (double)event->samples;
    sums->samples += event->samples;
    sums->lr = event->lr;
    for (int i = 0; i < callbacks->count; i++) {
        struct lk_called *called = &callbacks->list[i];
        const enum lk_status status =
            called->kind->see_step ? called->kind->see_step(called, event, &callbacks->wish)
                                   : LK_OK;
        if (status != LK_OK)
            return lk_fail_within(status, "callback '%s'", called->kind->name);
    }
    return LK_OK;
}

static enum lk_status add_evaluation(struct lk_callbacks *callbacks,
                                     const struct lk_event *event)
{
    lk_figures_set_evaluation(&callbacks->evaluated, event->evaluation);
    for (int i = 0; i < event->figure_count; i++)
        lk_figures_set(&callbacks->evaluated, event->figures[i].name, event->figures[i].value);
    for (int i = 0; i < callbacks->count && callbacks->is_open; i++) {
        struct lk_called *called = &callbacks->list[i];
        const enum lk_status status =
            called->kind->see_evaluation
                ? called->kind->see_evaluation(called, event->evaluation)
                : LK_OK;
        if (status != LK_OK)
            return lk_fail_within(status, "callback '%s'", called->kind->name);
    }
    return LK_OK;
}

enum lk_status lk_callbacks_see(struct lk_callbacks *callbacks, struct lk_event *event)
{
    LK_TRY(lk_own_callbacks_see(callbacks, event));
    if (callbacks->is_open && event->kind == LK_EVENT_STEP)
        LK_TRY(add_step(callbacks, event));
    return event->kind == LK_EVENT_EVALUATION ? add_evaluation(callbacks, event) : LK_OK;
}

/* Means over the epoch's steps first, then what the evaluation has found. */
static void sum_up(struct lk_callbacks *callbacks, int64_t step)
{
    struct lk_epoch *epoch = &callbacks->epoch;
    struct lk_epoch_sums *sums = &callbacks->sums;
    const double samples = (double)sums->samples;
    *epoch =
        (struct lk_epoch){.number = (step - 1) / callbacks->site.steps_per_epoch, .step = step};
    lk_figures_set(&epoch->figures, "loss", sums->is_broken ? NAN : sums->loss / samples);
    if (callbacks->site.has_accuracy)
        lk_figures_set(&epoch->figures, "accuracy", sums->accuracy / samples);
    for (int i = 0; i < callbacks->evaluated.count; i++)
        lk_figures_set(&epoch->figures, callbacks->evaluated.items[i].name,
                       callbacks->evaluated.items[i].value);
    lk_figures_set(&epoch->figures, "lr", sums->lr);
    callbacks->evaluated.count = 0;
    sums->loss = sums->accuracy = 0;
    sums->samples = 0;
    sums->is_broken = false;
}

enum lk_status lk_callbacks_end_epoch(struct lk_callbacks *callbacks, int64_t step)
{
    struct lk_callback_wish *wish = &callbacks->wish;
    if (!callbacks->is_open)
        return LK_OK;
    sum_up(callbacks, step);
    for (int i = 0; i < callbacks->count; i++)
        if (callbacks->list[i].kind->measure)
            callbacks->list[i].kind->measure(&callbacks->list[i], &callbacks->epoch);
    for (int i = 0; i < callbacks->count; i++) {
        struct lk_called *called = &callbacks->list[i];
        const enum lk_callback_stop before = wish->stop;
        if (!called->kind->see_epoch)
            continue;
        const enum lk_status status = called->kind->see_epoch(called, &callbacks->epoch, wish);
        if (status != LK_OK)
            return lk_fail_within(status, "callback '%s'", called->kind->name);
        callbacks->has_ended[i] |= before != wish->stop && wish->stop == LK_CALLBACK_ENDS;
    }
    return LK_OK;
}

enum lk_status lk_callbacks_pause(struct lk_callbacks *callbacks, int64_t step, bool saves)
{
    for (int i = 0; i < callbacks->count && callbacks->is_open; i++) {
        struct lk_called *called = &callbacks->list[i];
        const enum lk_status status =
            called->kind->pause ? called->kind->pause(called, step, saves, &callbacks->wish)
                                : LK_OK;
        if (status != LK_OK)
            return lk_fail_within(status, "callback '%s'", called->kind->name);
    }
    return LK_OK;
}

void lk_callbacks_end(struct lk_callbacks *callbacks)
{
    for (int i = 0; i < callbacks->count && callbacks->is_open; i++)
        if (callbacks->list[i].kind->end)
            callbacks->list[i].kind->end(&callbacks->list[i], &callbacks->wish);
}

enum lk_status lk_callbacks_saved(struct lk_callbacks *callbacks, int64_t step,
                                  const char *path)
{
    for (int i = 0; i < callbacks->count && callbacks->is_open; i++) {
        struct lk_called *called = &callbacks->list[i];
        const enum lk_status status =
            called->kind->saved ? called->kind->saved(called, step, path) : LK_OK;
        if (status != LK_OK)
            return lk_fail_within(status, "callback '%s'", called->kind->name);
    }
    return LK_OK;
}

enum lk_status lk_callbacks_sync(const struct lk_callbacks *callbacks)
{
    for (int i = 0; i < callbacks->count && callbacks->is_open; i++)
        if (callbacks->list[i].kind->sync)
            LK_TRY(callbacks->list[i].kind->sync(&callbacks->list[i]));
    return LK_OK;
}

enum lk_status lk_callbacks_flush(struct lk_callbacks *callbacks, bool is_last)
{
    for (int i = 0; i < callbacks->count && callbacks->is_open; i++) {
        struct lk_called *called = &callbacks->list[i];
        const enum lk_status status =
            called->kind->flush ? called->kind->flush(called, is_last) : LK_OK;
        if (status != LK_OK)
            return lk_fail_within(status, "callback '%s'", called->kind->name);
    }
    return LK_OK;
}

void lk_callbacks_find(struct lk_callbacks *callbacks)
{
    lk_logs_find(&callbacks->logs);
}

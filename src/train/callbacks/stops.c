/* Callbacks that stop the training: where a value is not finite, at a time, where a file is
 * there. */
#include "base/clock.h"
#include "base/fail.h"
#include "graph/replica.h"
#include "io/file.h"
#include "train/callbacks/kinds.h"
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* --- stop_on_nan ------------------------------------------------------------------------ */

static const struct lk_option no_options[] = {{0}};

/* The memory is the first step whose loss is not finite; 0: none was. */
static enum lk_status open_nan(struct lk_called *called, int64_t step)
{
    (void)step;
    called->memory = calloc(1, sizeof(int64_t));
    return called->memory ? LK_OK : lk_fail_memory("a callback", sizeof(int64_t));
}

static enum lk_status see_loss(struct lk_called *called, const struct lk_event *event,
                               struct lk_callback_wish *wish)
{
    int64_t *first = called->memory;
    if (isfinite(event->loss))
        return LK_OK;
    if (*first == 0)
        *first = event->step;
    lk_wish_stop(wish, LK_CALLBACK_FAILS, "the loss of step %lld is not finite",
                 (long long)event->step);
    return LK_OK;
}

static void add_reason(struct lk_callback_wish *wish, const char *format, ...)
{
    const size_t used = strlen(wish->reason);
    va_list args;
    va_start(args, format);
    vsnprintf(wish->reason + used, sizeof wish->reason - used, format, args);
    va_end(args);
}

struct search {
    char name[96];
    int64_t count; /* of its values that are not finite; 0: none was found */
};

/* The first parameter that has such; a search that begins anew forgets. */
static enum lk_status search_param(void *context, const struct lk_param *param,
                                   const float *values)
{
    struct search *search = context;
    if (!param)
        search->count = 0;
    if (!param || search->count > 0)
        return LK_OK;
    for (int64_t i = 0; i < param->count; i++)
        search->count += !isfinite(values[i]);
    memcpy(search->name, param->name, sizeof search->name);
    return LK_OK;
}

/* The operation with which it has begun. Of parameters that are not finite before any loss was,
 * the last step's gradients tell nothing more. */
static enum lk_status find_operation(struct lk_called *called, struct lk_callback_wish *wish)
{
    const int64_t *first = called->memory;
    char text[192] = "";
    if (*first > 0)
        LK_TRY(called->site->find_origin(called->site->trainer, *first, text, sizeof text));
    if (*text)
        add_reason(wish, "; %s", text);
    return LK_OK;
}

static enum lk_status find_parameter(struct lk_called *called, int64_t step, bool saves,
                                     struct lk_callback_wish *wish)
{
    struct search found = {.count = 0};
    const bool has_failed = wish->stop == LK_CALLBACK_FAILS;
    if (!saves && !has_failed)
        return LK_OK;
    LK_TRY(called->site->each_param(called->site->trainer, &found, search_param));
    if (found.count == 0)
        return find_operation(called, wish);
    if (!has_failed)
        lk_wish_stop(wish, LK_CALLBACK_FAILS, "parameters are not finite after step %lld",
                     (long long)step);
    add_reason(wish, "; the first is '%s', %lld of its values", found.name,
               (long long)found.count);
    return find_operation(called, wish);
}

const struct lk_callback_kind lk_stop_on_nan = {
    .name = "stop_on_nan",
    .options = no_options,
    .sees_saves = true,
    .open = open_nan,
    .see_step = see_loss,
    .pause = find_parameter,
};

/* --- stop_at ---------------------------------------------------------------------------- */

struct at_options {
    char time[32];
    double minutes;
};

struct at_memory {
    double began;
    time_t at; /* 0: none */
};

static const struct lk_option at_table[] = {
    {LK_CALLED_OPTION(struct at_options, time), .kind = LK_OPTION_TEXT, .count = 32,
     .standard = "", .help = "2027-01-31T08:00, or 08:00 for the next time that it is"},
    {LK_CALLED_OPTION(struct at_options, minutes), .kind = LK_OPTION_REAL, .max = 1e9,
     .standard = "0", .help = "so long after the training began or went on; 0: no such limit"},
    {0},
};

/* Local time. fails: LK_E_ARGUMENT */
static enum lk_status read_time(const char *text, time_t *at)
{
    const time_t now = time(NULL);
    struct tm parts, asked = {.tm_isdst = -1};
    int end = 0;
    *at = 0;
    if (!*text)
        return LK_OK;
    localtime_r(&now, &parts);
    const bool has_date =
        sscanf(text, "%4d-%2d-%2d%*1[T ]%2d:%2d%n", &asked.tm_year, &asked.tm_mon,
               &asked.tm_mday, &asked.tm_hour, &asked.tm_min, &end) == 5 &&
        end > 0;
    if (has_date) {
        asked.tm_year -= 1900;
        asked.tm_mon -= 1;
    } else {
        asked = (struct tm){.tm_year = parts.tm_year,
                            .tm_mon = parts.tm_mon,
                            .tm_mday = parts.tm_mday,
                            .tm_isdst = -1};
        end = 0;
        (void)sscanf(text, "%2d:%2d%n", &asked.tm_hour, &asked.tm_min, &end);
    }
    const bool is_right = end > 0 && text[end] == '\0' && asked.tm_hour >= 0 &&
                          asked.tm_hour < 24 && asked.tm_min >= 0 && asked.tm_min < 60 &&
                          asked.tm_mon >= 0 && asked.tm_mon < 12 && asked.tm_mday > 0 &&
                          asked.tm_mday < 32;
    const int day = asked.tm_mday; /* mktime() makes 2 March of 30 February */
    if (is_right)
        *at = mktime(&asked);
    if (!is_right || asked.tm_mday != day)
        return lk_fail(LK_E_ARGUMENT,
                       "option 'time': 2027-01-31T08:00 or 08:00 is expected, found '%s'",
                       text);
    if (!has_date && *at <= now) {
        asked.tm_mday++;
        asked.tm_isdst = -1;
        *at = mktime(&asked);
    }
    return LK_OK;
}

static enum lk_status check_at(const void *options, const struct lk_callback_site *site)
{
    const struct at_options *o = options;
    time_t at;
    (void)site;
    if (!*o->time && o->minutes == 0)
        return lk_fail(LK_E_ARGUMENT, "option 'time' or 'minutes' is missing");
    return read_time(o->time, &at);
}

static enum lk_status open_at(struct lk_called *called, int64_t step)
{
    const struct at_options *o = called->options;
    struct at_memory *m = calloc(1, sizeof *m);
    (void)step;
    if (!m)
        return lk_fail_memory("a callback", sizeof *m);
    called->memory = m;
    m->began = lk_seconds();
    return read_time(o->time, &m->at);
}

static enum lk_status see_time(struct lk_called *called, const struct lk_event *event,
                               struct lk_callback_wish *wish)
{
    const struct at_options *o = called->options;
    const struct at_memory *m = called->memory;
    (void)event;
    if (m->at && time(NULL) >= m->at)
        lk_wish_stop(wish, LK_CALLBACK_INTERRUPTS, "stop_at: it is %s", o->time);
    if (o->minutes > 0 && lk_seconds() - m->began >= 60 * o->minutes)
        lk_wish_stop(wish, LK_CALLBACK_INTERRUPTS, "stop_at: it has trained for %g minutes",
                     o->minutes);
    return LK_OK;
}

const struct lk_callback_kind lk_stop_at = {
    .name = "stop_at",
    .options = at_table,
    .options_bytes = sizeof(struct at_options),
    .check = check_at,
    .open = open_at,
    .see_step = see_time,
};

/* --- stop_file -------------------------------------------------------------------------- */

struct file_options {
    char file[512];
};

static const struct lk_option file_table[] = {
    {LK_CALLED_OPTION(struct file_options, file), .kind = LK_OPTION_TEXT, .count = 512,
     .standard = "STOP", .help = "its path, below the run directory unless it begins with /"},
    {0},
};

/* Else a run that goes on would stop at once. */
static enum lk_status refuse_file(struct lk_called *called, int64_t step)
{
    const struct file_options *o = called->options;
    char path[LK_LOG_PATH];
    (void)step;
    LK_TRY(lk_log_path(called->site->run, o->file, path));
    return lk_file_exists(path)
               ? lk_fail(LK_E_ARGUMENT, "file '%s' is there; remove it to train on", path)
               : LK_OK;
}

static enum lk_status see_file(struct lk_called *called, const struct lk_event *event,
                               struct lk_callback_wish *wish)
{
    const struct file_options *o = called->options;
    char path[LK_LOG_PATH];
    (void)event;
    LK_TRY(lk_log_path(called->site->run, o->file, path));
    if (lk_file_exists(path))
        lk_wish_stop(wish, LK_CALLBACK_INTERRUPTS, "stop_file: '%.300s' is there", path);
    return LK_OK;
}

const struct lk_callback_kind lk_stop_file = {
    .name = "stop_file",
    .options = file_table,
    .options_bytes = sizeof(struct file_options),
    .path = "file",
    .open = refuse_file,
    .see_step = see_file,
};

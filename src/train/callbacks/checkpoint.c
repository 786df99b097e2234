/* Which checkpoints are written and kept, as keras.callbacks.ModelCheckpoint: the best of a
 * figure beside the newest, from which the run goes on. */
#include "base/clock.h"
#include "base/fail.h"
#include "io/file.h"
#include "train/callbacks/kinds.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_BEST = 8 };
static const char standard_monitor[] = "val_loss";
static const size_t most_bytes = (size_t)1 << 36;

struct options {
    char monitor[LK_FIGURE_NAME], threshold[32], file[256];
    int mode;
    bool best_only;
    int64_t every, keep, keep_best;
    double minutes;
};

struct state {
    int64_t count;
    int64_t steps[MOST_BEST]; /* the best first */
    double values[MOST_BEST];
};

/* What is not kept: the epoch that was the best when it was seen, and when was saved last. */
struct memory {
    struct lk_epoch epoch;
    bool names_file;
    double saved_at;
};

#define OPTION(field) LK_CALLED_OPTION(struct options, field)
#define STATE(field) LK_CALLED_OPTION(struct state, field)

static const struct lk_option options_table[] = {
    {OPTION(monitor), .kind = LK_OPTION_TEXT, .count = LK_FIGURE_NAME,
     .standard = standard_monitor, .help = "the figure by which checkpoints are the best"},
    {OPTION(mode), .kind = LK_OPTION_CHOICE, .standard = "auto", .choices = lk_monitor_modes,
     .help = "which way it improves; auto: as the metric of that name does"},
    {OPTION(best_only), .kind = LK_OPTION_BOOL, .standard = "false",
     .help = "keep is of the best ones; beside them the newest alone is kept (Keras: "
             "save_best_only)"},
    {OPTION(keep), .kind = LK_OPTION_INT, .min = 1, .max = 1000, .standard = "3",
     .help = "how many of the newest are kept; best_only: of the best, at most 8"},
    {OPTION(keep_best), .kind = LK_OPTION_INT, .max = MOST_BEST, .standard = "0",
     .help = "how many of the best are kept beside the newest"},
    {OPTION(threshold), .kind = LK_OPTION_TEXT, .count = 32, .standard = "",
     .help = "none is the best that is no better than this (Keras: initial_value_threshold)"},
    {OPTION(every), .kind = LK_OPTION_INT, .max = 1e15, .standard = "0",
     .help = "steps between checkpoints, as checkpoint_every; 0: every epoch"},
    {OPTION(minutes), .kind = LK_OPTION_REAL, .max = 1e6, .standard = "0",
     .help = "one more is written when the last is so old; 0: none is"},
    {OPTION(file), .kind = LK_OPTION_TEXT, .count = 256, .standard = "",
     .help = "a name for each new best one as well: best.safetensors, "
             "{epoch}-{val_loss:.3}.safetensors"},
    {0},
};

static const struct lk_option state_table[] = {
    {STATE(count), .kind = LK_OPTION_INT, .max = MOST_BEST, .standard = "0"},
    {STATE(steps), .kind = LK_OPTION_INT, .count = MOST_BEST, .standard = "0"},
    {STATE(values), .kind = LK_OPTION_REAL, .count = MOST_BEST, .standard = "0"},
    {0},
};

static int64_t best_count(const struct options *o)
{
    const int64_t asked = o->best_only ? o->keep : o->keep_best;
    return *o->file && asked == 0 ? 1 : asked;
}

/* One figure of a file's name, "val_loss:.2f": which it is, and how it is written. */
static enum lk_status check_figure(const char *what, const struct lk_callback_site *site)
{
    char name[LK_FIGURE_NAME];
    const size_t length = strcspn(what, ":");
    snprintf(name, sizeof name, "%.*s", (int)length, what);
    const bool is_number = strcmp(name, "epoch") == 0 || strcmp(name, "step") == 0;
    const char *form = what[length] ? what + length + 1 : "";
    form += !is_number && *form == '.';
    form += strspn(form, "0123456789");
    form += *form == (is_number ? 'd' : 'f');
    if (*form)
        return lk_fail(LK_E_ARGUMENT, "{%s}: {epoch:3} or {val_loss:.2} is expected", what);
    return is_number ? LK_OK : lk_monitor_check(name, site);
}

static enum lk_status check_file(const char *file, const struct lk_callback_site *site)
{
    if (strchr(file, '/') || strncmp(file, "step-", 5) == 0 || strcmp(file, ".") == 0 ||
        strcmp(file, "..") == 0)
        return lk_fail(LK_E_ARGUMENT,
                       "option 'file': a name in the folder of checkpoints that does not begin "
                       "with 'step-' is expected, found '%s'",
                       file);
    for (const char *at = strchr(file, '{'); at; at = strchr(at, '{')) {
        char what[LK_FIGURE_NAME];
        const size_t length = strcspn(++at, "}");
        if (!at[length] || length >= sizeof what)
            return lk_fail(LK_E_ARGUMENT, "option 'file': '}' is missing in '%s'", file);
        snprintf(what, sizeof what, "%.*s", (int)length, at);
        const enum lk_status status = check_figure(what, site);
        if (status != LK_OK)
            return lk_fail_within(status, "option 'file'");
    }
    return LK_OK;
}

static enum lk_status check(const void *options, const struct lk_callback_site *site)
{
    const struct options *o = options;
    bool is_there;
    double threshold;
    if (o->every > 0 && site->checkpoint_every > 0 && o->every != site->checkpoint_every)
        return lk_fail(LK_E_ARGUMENT, "every is %lld, and setting checkpoint_every is %lld",
                       (long long)o->every, (long long)site->checkpoint_every);
    if (best_count(o) > MOST_BEST)
        return lk_fail(LK_E_ARGUMENT, "option 'keep': at most %d of the best, found %lld",
                       MOST_BEST, (long long)best_count(o));
    LK_TRY(check_file(o->file, site));
    LK_TRY(lk_bound_read("threshold", o->threshold, &is_there, &threshold));
    const bool is_told = strcmp(o->monitor, standard_monitor) != 0;
    return is_told || best_count(o) > 0 ? lk_monitor_check(o->monitor, site) : LK_OK;
}

static enum lk_status begin(struct lk_called *called, int64_t step)
{
    struct memory *m = calloc(1, sizeof *m);
    (void)step;
    if (!m)
        return lk_fail_memory("a callback", sizeof *m);
    m->saved_at = lk_seconds();
    called->memory = m;
    return LK_OK;
}

/* The place that a figure has among the best; MOST_BEST: none. */
static int64_t find_place(const struct options *o, const struct state *s, double value)
{
    const bool is_up = lk_monitor_is_up(o->monitor, o->mode);
    double threshold = 0;
    bool is_there = false;
    (void)!lk_bound_read("threshold", o->threshold, &is_there, &threshold);
    if (!isfinite(value) || (is_there && !lk_monitor_is_better(is_up, value, threshold, 0)))
        return MOST_BEST;
    int64_t place = 0;
    while (place < s->count && !lk_monitor_is_better(is_up, value, s->values[place], 0))
        place++;
    return place < best_count(o) ? place : MOST_BEST;
}

static enum lk_status see_epoch(struct lk_called *called, const struct lk_epoch *epoch,
                                struct lk_callback_wish *wish)
{
    const struct options *o = called->options;
    struct state *s = called->state;
    struct memory *m = called->memory;
    double value;
    if (best_count(o) == 0)
        return LK_OK;
    LK_TRY(lk_epoch_find(epoch, called, o->monitor, &value));
    const int64_t place = find_place(o, s, value);
    if (place == MOST_BEST)
        return LK_OK;
    s->count = s->count < best_count(o) ? s->count + 1 : s->count;
    for (int64_t i = s->count - 1; i > place; i--) {
        s->steps[i] = s->steps[i - 1];
        s->values[i] = s->values[i - 1];
    }
    s->steps[place] = epoch->step;
    s->values[place] = value;
    m->epoch = *epoch;
    m->names_file = *o->file && place == 0;
    wish->saves = true;
    return LK_OK;
}

static enum lk_status see_pause(struct lk_called *called, int64_t step, bool saves,
                                struct lk_callback_wish *wish)
{
    const struct options *o = called->options;
    const struct memory *m = called->memory;
    (void)step;
    wish->saves |= !saves && o->minutes > 0 && lk_seconds() - m->saved_at >= 60 * o->minutes;
    return LK_OK;
}

static int64_t save_every(const struct lk_called *called)
{
    return ((const struct options *)called->options)->every;
}

static int keep(const struct lk_called *called, int64_t *steps, int *newest)
{
    const struct options *o = called->options;
    const struct state *s = called->state;
    *newest = o->best_only ? 1 : (int)o->keep;
    memcpy(steps, s->steps, (size_t)s->count * sizeof *steps);
    return (int)s->count;
}

/* --- a name of its own ------------------------------------------------------------------ */

/* Writes what "{epoch:3}" or "{val_loss:.2}" stands for: at least so many digits, or so many
 * behind the point. fails: LK_E_ARGUMENT: the epoch has no such figure */
static enum lk_status print_figure(const struct lk_called *called, const struct lk_epoch *epoch,
                                   const char *what, char *text, size_t bytes)
{
    char name[LK_FIGURE_NAME];
    const size_t length = strcspn(what, ":");
    const char *form = what[length] ? what + length + 1 : "";
    double value;
    snprintf(name, sizeof name, "%.*s", (int)length, what);
    if (strcmp(name, "epoch") == 0 || strcmp(name, "step") == 0) {
        const int64_t number = *name == 'e' ? epoch->number + 1 : epoch->step;
        snprintf(text, bytes, "%0*lld", atoi(form) % 16, (long long)number);
        return LK_OK;
    }
    LK_TRY(lk_epoch_find(epoch, called, name, &value));
    const int digits = *form == '.' ? atoi(form + 1) % 16 : 4;
    snprintf(text, bytes, "%.*f", digits, value);
    return LK_OK;
}

/* The pattern with its figures. */
static enum lk_status print_name(const struct lk_called *called, const struct lk_epoch *epoch,
                                 char *name, size_t bytes)
{
    const struct options *o = called->options;
    size_t used = 0;
    for (const char *at = o->file; *at && used < bytes;) {
        const char *end = *at == '{' ? strchr(at, '}') : NULL;
        char what[LK_FIGURE_NAME], shown[64];
        if (!end) {
            used += (size_t)snprintf(name + used, bytes - used, "%c", *at++);
            continue;
        }
        snprintf(what, sizeof what, "%.*s", (int)(end - at) - 1, at + 1);
        LK_TRY(print_figure(called, epoch, what, shown, sizeof shown));
        used += (size_t)snprintf(name + used, bytes - used, "%s", shown);
        at = end + 1;
    }
    return used < bytes ? LK_OK
                        : lk_fail(LK_E_ARGUMENT, "the name of file '%s' is too long", o->file);
}

/* A second name of one file where the file system has such; else a copy. */
static enum lk_status copy(const char *from, const char *to)
{
    char draft[1100];
    void *data = NULL;
    size_t bytes = 0;
    /* named as drafts of files are, which are removed where they are found */
    snprintf(draft, sizeof draft, "%s.%ld-0.tmp", to, (long)getpid());
    unlink(draft);
    if (link(from, draft) == 0 && rename(draft, to) == 0)
        return LK_OK;
    unlink(draft);
    LK_TRY(lk_file_read(from, most_bytes, &data, &bytes));
    const enum lk_status status = lk_file_write(to, data, bytes);
    free(data);
    return status;
}

static enum lk_status saved(struct lk_called *called, int64_t step, const char *path)
{
    struct memory *m = called->memory;
    char name[400], to[1024];
    m->saved_at = lk_seconds();
    if (!m->names_file || m->epoch.step != step)
        return LK_OK;
    m->names_file = false;
    LK_TRY(print_name(called, &m->epoch, name, sizeof name));
    const int folder = (int)(strrchr(path, '/') - path);
    if (snprintf(to, sizeof to, "%.*s/%s", folder, path, name) >= (int)sizeof to)
        return lk_fail(LK_E_ARGUMENT, "the name of file '%s' is too long", name);
    return copy(path, to);
}

const struct lk_callback_kind lk_save_checkpoint = {
    .name = "checkpoint",
    .options = options_table,
    .state = state_table,
    .options_bytes = sizeof(struct options),
    .state_bytes = sizeof(struct state),
    .needs_run = true,
    .check = check,
    .open = begin,
    .see_epoch = see_epoch,
    .pause = see_pause,
    .save_every = save_every,
    .keep = keep,
    .saved = saved,
};

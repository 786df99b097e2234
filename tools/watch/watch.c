/* lockstep watch: a live view of runs that other processes train, by what they write. */
#include "command.h"
#include "terminal/terminal.h"
#include "watch/block.h"
#include "watch/screen.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_WATCHED = 256, LEAST_BLOCK = 4, PLAIN_COLUMNS = 300, ONCE_COLUMNS = 80 };

struct watch {
    struct watched *runs; /* [count] */
    int count;
    struct scene *scene;
    double every;                 /* seconds */
    int64_t *told_step, *told_at; /* plain: the last step; how many events. [count] */
};

/* Reads what has come, of a long run for so long that keys still work. Returns whether there is
 * more. */
static bool update(struct watch *watch)
{
    bool more = false;
    for (int i = 0; i < watch->count; i++)
        more |= watched_update(&watch->runs[i]);
    return more;
}

/* --- the window ------------------------------------------------------------------------- */

static void add_head(const struct watch *watch, bool is_live)
{
    char clock[32] = "";
    const time_t now = time(NULL);
    struct tm local;
    struct scene *scene = watch->scene;
    if (localtime_r(&now, &local))
        strftime(clock, sizeof clock, "%H:%M:%S", &local);
    scene_line(scene, 0);
    scene_add(scene, INK_DIM, "lockstep watch");
    if (watch->count > 1)
        scene_add(scene, INK_DIM, "  %d runs", watch->count);
    if (is_live && scene_room(scene) > 20) {
        scene_to(scene, scene->columns - 17);
        scene_add(scene, INK_DIM, "q leaves %s", clock);
    }
}

static int longest_name(const struct watch *watch)
{
    int longest = 0;
    for (int i = 0; i < watch->count; i++) {
        const int width = terminal_width(watch->runs[i].record.path);
        longest = width > longest ? width : longest;
    }
    return longest;
}

/* Many runs in a low window: a line each. */
static void add_lines(const struct watch *watch, int rows)
{
    const int half = watch->scene->columns / 2, longest = longest_name(watch);
    const int shown = watch->count <= rows ? watch->count : rows > 1 ? rows - 1 : 0;
    for (int i = 0; i < shown; i++)
        block_add_line(watch->scene, &watch->runs[i], longest < half ? longest : half);
    if (shown < watch->count && rows > 0) {
        scene_line(watch->scene, 0);
        scene_add(watch->scene, INK_DIM, "%d more", watch->count - shown);
    }
}

/* rows 0: as many as are wanted. */
static void compose(const struct watch *watch, int columns, int rows, bool is_live,
                    bool has_colour)
{
    struct scene *scene = watch->scene;
    const int most = rows ? rows - 1 : SCENE_LINES / watch->count * watch->count;
    const int each = most / watch->count;
    scene_start(scene, columns, has_colour, terminal_has_unicode());
    add_head(watch, is_live);
    if (each < LEAST_BLOCK && watch->count > 1) {
        add_lines(watch, most);
        return;
    }
    for (int i = 0; i < watch->count; i++) {
        const int first = scene->count;
        if (watch->count > 1)
            scene_line(scene, 1);
        block_add(scene, &watch->runs[i]);
        scene_fit(scene, first, each);
    }
}

static void draw(const struct watch *watch)
{
    const char *lines[SCENE_LINES];
    compose(watch, terminal_result_columns(), terminal_result_rows(), true,
            terminal_has_colour(STDOUT_TERMINAL));
    const int rows = terminal_result_rows(), count = watch->scene->count;
    for (int i = 0; i < count; i++)
        lines[i] = watch->scene->lines[i].text;
    screen_draw(lines, count, rows);
}

static int watch_live(struct watch *watch)
{
    enum screen_news news = SCREEN_TIME;
    screen_enter(true);
    while (news != SCREEN_QUIT && news != SCREEN_INTERRUPTED) {
        const bool more = update(watch);
        draw(watch);
        news = screen_wait(more ? 0 : (int)(1000 * watch->every));
    }
    screen_leave();
    return news == SCREEN_INTERRUPTED ? INTERRUPTED : DONE;
}

/* --- plain lines ------------------------------------------------------------------------ */

static void print_events(const struct watch *watch, int run)
{
    const struct watched *w = &watch->runs[run];
    int64_t *told = &watch->told_at[run];
    if (*told > w->event_count) /* the file is another one */
        *told = 0;
    if (w->event_count - *told > WATCHED_EVENTS)
        *told = w->event_count - WATCHED_EVENTS;
    for (; *told < w->event_count; ++*told) {
        const struct watched_event *event = &w->events[*told % WATCHED_EVENTS];
        scene_start(watch->scene, SCENE_COLUMNS, false, terminal_has_unicode());
        scene_add(watch->scene, INK_PLAIN, "%s  step %" PRId64 "  %s", w->record.path,
                  event->step, event->text);
        puts(watch->scene->lines[0].text);
    }
}

static void print_state(const struct watch *watch, int run)
{
    const struct watched *w = &watch->runs[run];
    if (watch->told_step[run] == w->record.step)
        return;
    watch->told_step[run] = w->record.step;
    scene_start(watch->scene, SCENE_COLUMNS, false, terminal_has_unicode());
    block_add_line(watch->scene, w, terminal_width(w->record.path));
    puts(watch->scene->lines[0].text);
}

static bool are_finished(const struct watch *watch)
{
    for (int i = 0; i < watch->count; i++) {
        const struct watched *w = &watch->runs[i];
        if (w->is_held || (strcmp(w->record.state, "finished") != 0 &&
                           strcmp(w->record.state, RECORD_DROPPED) != 0))
            return false;
    }
    return true;
}

/* What happened before is told by its last lines. */
static int watch_plain(struct watch *watch)
{
    enum screen_news news = SCREEN_TIME;
    bool is_over = false;
    screen_enter(false);
    for (int64_t turn = 0; news != SCREEN_QUIT && news != SCREEN_INTERRUPTED && !is_over;) {
        const bool more = update(watch);
        is_over = !more && are_finished(watch);
        for (int i = 0; i < watch->count && !more; i++) {
            if (turn == 0)
                watch->told_at[i] = watch->runs[i].event_count - 2;
            if (turn == 0 && watch->told_at[i] < 0)
                watch->told_at[i] = 0;
            if (turn == 0 && !watch->runs[i].is_there && !watch->runs[i].is_held)
                say_plain("waiting for '%s', which has no metrics.jsonl yet",
                          watch->runs[i].record.path);
            print_events(watch, i);
            print_state(watch, i);
        }
        turn += !more;
        if (!terminal_flush())
            break;
        if (!is_over)
            news = screen_wait(more ? 0 : (int)(1000 * watch->every));
    }
    return news == SCREEN_INTERRUPTED ? INTERRUPTED : DONE;
}

static int watch_once(struct watch *watch)
{
    const int columns = terminal_result_columns();
    int result = DONE;
    while (update(watch))
        ;
    compose(watch, columns ? columns : ONCE_COLUMNS, 0, false,
            terminal_has_colour(STDOUT_TERMINAL));
    for (int i = 1; i < watch->scene->count; i++)
        puts(watch->scene->lines[i].text);
    for (int i = 0; i < watch->count; i++)
        if (!watch->runs[i].is_there && !watch->runs[i].is_held) {
            say("'%s' has no metrics.jsonl", watch->runs[i].record.path);
            result = BAD_INPUT;
        }
    return result;
}

/* --- the command ------------------------------------------------------------------------ */

static int start(struct watch *watch, const struct arguments *arguments)
{
    const int count = arguments->word_count;
    watch->scene = malloc(sizeof *watch->scene);
    watch->runs = calloc((size_t)count, sizeof *watch->runs);
    watch->told_step = calloc((size_t)count, sizeof *watch->told_step);
    watch->told_at = calloc((size_t)count, sizeof *watch->told_at);
    if (!watch->scene || !watch->runs || !watch->told_step || !watch->told_at)
        return failed(LK_E_MEMORY);
    for (; watch->count < count; watch->count++) {
        if (strlen(arguments->words[watch->count]) >= RECORD_PATH) {
            say("a path has %zu bytes, expected less than %d",
                strlen(arguments->words[watch->count]), (int)RECORD_PATH);
            return BAD_INPUT;
        }
        watched_start(&watch->runs[watch->count], arguments->words[watch->count]);
    }
    return DONE;
}

static int run(const struct arguments *arguments)
{
    const bool is_live = terminal_result_rows() > 0;
    struct watch watch = {.every = is_live ? 1 : 5};
    if (arguments->word_count < 1 || arguments->word_count > MOST_WATCHED)
        return wrong_usage(arguments->command, "needs 1 to %d RUN directories, found %d words",
                           (int)MOST_WATCHED, arguments->word_count);
    int result = option_real(arguments, "every", 0.1, 3600, &watch.every);
    if (result == DONE)
        result = start(&watch, arguments);
    if (result == DONE)
        result = option_given(arguments, "once") ? watch_once(&watch)
                 : is_live                       ? watch_live(&watch)
                                                 : watch_plain(&watch);
    for (int i = 0; i < watch.count; i++)
        watched_clear(&watch.runs[i]);
    free(watch.runs);
    free(watch.scene);
    free(watch.told_step);
    free(watch.told_at);
    return result;
}

static const struct option options[] = {
    {"once", NULL, "print what there is and end"},
    {"every", "SECONDS", "how often it is looked at; default: 1, in a pipe 5"},
    {0},
};

static const struct example examples[] = {
    {"lockstep watch out", "a run, from another terminal or another machine's disk"},
    {"lockstep watch trials/*", "several; a line each where the window is low"},
    {"lockstep watch out --once", "how it is now, for scripts and mails"},
    {0},
};

const struct command watch_command = {
    .name = "watch",
    .usage = "RUN... [options]",
    .help = "show runs in training: curves, devices, time that is left, what happened last",
    .options = options,
    .examples = examples,
    .run = run,
};

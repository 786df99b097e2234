/* lockstep convert: image data sets to TFRecord shards, and TFRecords to folders of files. */
#include "command.h"
#include "terminal/interrupt.h"
#include "terminal/table.h"
#include "terminal/terminal.h"
#include "train/progress.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Seconds between two redraws of the bar, between two plain lines. */
static const double redraw_s = 0.1, line_s = 5;
enum { BAR_LEAST = 6, BAR_MOST = 100 };

static const struct option options[] = {
    {"shards", "N", "TFRecord files of each part (default one for every 1024 samples)"},
    {"resize", "HxW", "scale images, as training does; they become PNG"},
    {"max-bad", "N|P%", "broken images that are left out; more end it (default 1%)"},
    {"threads", "N", "threads that decode and encode (default one a core)"},
    {"force", NULL, "replace what is there, start over what was interrupted"},
    {"no-progress", NULL, "no bar and no regular lines"},
    {0},
};

struct watch {
    bool is_silent, has_bar;
    double began, shown; /* of what is done now, monotonic seconds */
    char now[64];        /* "converting" */
};

static double seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* On a narrow line the bar goes first, then the rate. */
static void draw_bar(const struct lk_conversion_progress *p, const char *figures,
                     const char *eta)
{
    char bar[4 * BAR_MOST + 1] = "", line[1024];
    const int room = terminal_columns() - 1;
    const int used = (int)(strlen(p->what) + strlen(p->part) + strlen(figures) + strlen(eta));
    const int columns = room - used - 7;
    if (columns >= BAR_LEAST)
        bar_text(bar, columns > BAR_MOST ? BAR_MOST : columns,
                 (double)p->done / (double)p->total);
    if (columns >= BAR_LEAST)
        snprintf(line, sizeof line, "%s %s  %s  %s  %s", p->what, p->part, bar, figures, eta);
    else
        snprintf(line, sizeof line, "%.*s", room,
                 (int)(strlen(figures) + strlen(eta)) + 2 <= room ? figures : eta);
    terminal_status(line);
}

static void show(void *context, const struct lk_conversion_progress *p)
{
    struct watch *watch = context;
    const double time = seconds();
    char figures[128], eta[64], rate[32], left[32];
    if (watch->is_silent)
        return;
    if (strcmp(watch->now, p->what) != 0 || p->done == 1) {
        snprintf(watch->now, sizeof watch->now, "%s", p->what);
        watch->began = time;
    }
    if (time - watch->shown < (watch->has_bar ? redraw_s : line_s))
        return;
    if (watch->shown == 0 && !watch->has_bar) { /* the first line is due after some seconds */
        watch->shown = time;
        return;
    }
    watch->shown = time;
    const double took = time - watch->began;
    snprintf(figures, sizeof figures, "%.0f%%  %" PRId64 "/%" PRId64 "  %s/s",
             100 * (double)p->done / (double)p->total, p->done, p->total,
             rate_text(took > 0 ? (double)p->done / took : 0, rate));
    snprintf(eta, sizeof eta, "ETA %s",
             duration_text(took / (double)p->done * (double)(p->total - p->done), left));
    if (watch->has_bar)
        draw_bar(p, figures, eta);
    else
        say_plain("%s %s  %s  %s", p->what, p->part, figures, eta);
}

static void stop(void *conversion)
{
    lk_conversion_stop(conversion);
}

static const struct interrupt_words words = {.stop = stop,
                                             .second = "\nlockstep: stopped at once\n"};

static const char *class_name(const struct lk_conversion_report *report, int class,
                              char number[16])
{
    snprintf(number, 16, "%d", class);
    return report->class_names[class] ? report->class_names[class] : number;
}

static void add_row(struct table *table, const struct lk_conversion_report *report,
                    const char *name,
                    int64_t (*figure)(const struct lk_conversion_part *part, int class),
                    int class)
{
    table_cell(table, "%s", name);
    for (int i = 0; i < report->part_count; i++)
        table_cell(table, "%" PRId64, figure(&report->parts[i], class));
}

static int64_t count_of(const struct lk_conversion_part *part, int class)
{
    return part->counts[class];
}

static int64_t samples_of(const struct lk_conversion_part *part, int class)
{
    (void)class;
    return part->samples;
}

static int64_t skipped_of(const struct lk_conversion_part *part, int class)
{
    (void)class;
    return part->skipped;
}

static int64_t shards_of(const struct lk_conversion_part *part, int class)
{
    (void)class;
    return part->shards;
}

/* "8.88 MB", "512 B". */
static const char *size_text(double bytes, char text[40])
{
    char number[32];
    rate_text(bytes, number);
    const size_t digits = strspn(number, "0123456789.");
    snprintf(text, 40, "%.*s %sB", (int)digits, number, number + digits);
    return text;
}

static void print_report(const struct lk_conversion_report *report, double took)
{
    char number[16], time[32], size[40];
    int width = 7, shards = 0;
    int64_t skipped = 0, kept = 0;
    for (int i = 0; i < report->classes; i++) {
        const int found = terminal_width(class_name(report, i, number));
        width = found > width ? found : width;
    }
    for (int i = 0; i < report->part_count; i++) {
        shards += report->parts[i].shards;
        skipped += report->parts[i].skipped;
        kept += report->parts[i].kept;
    }
    struct table table;
    struct table_column columns[TABLE_COLUMNS] = {
        {"class", 0, width, .is_left = true, .is_name = true}};
    for (int i = 0; i < report->part_count && i < TABLE_COLUMNS - 1; i++)
        columns[1 + i] = (struct table_column){report->parts[i].name, 2, .width = 10};
    table_start(&table, columns, 1 + report->part_count);
    for (int i = 0; i < report->classes; i++)
        add_row(&table, report, class_name(report, i, number), count_of, i);
    add_row(&table, report, "samples", samples_of, 0);
    if (skipped > 0)
        add_row(&table, report, "skipped", skipped_of, 0);
    if (shards > 0)
        add_row(&table, report, "shards", shards_of, 0);
    table_end(&table);
    if (kept > 0)
        printf("%" PRId64 " %s there already and whole\n", kept,
               shards ? (kept == 1 ? "shard was" : "shards were")
                      : (kept == 1 ? "file was" : "files were"));
    if (kept > 0 && report->bytes == 0)
        printf("nothing to do\n");
    printf("%s written in %s: ", size_text((double)report->bytes, size),
           duration_text(took, time));
    terminal_print(report->target, 0);
    printf("\n");
}

static int parse_size(const struct arguments *arguments, struct lk_conversion_options *o)
{
    const char *text = option_text(arguments, "resize");
    char more;
    if (text && (sscanf(text, "%dx%d%c", &o->height, &o->width, &more) != 2 || o->height < 1 ||
                 o->width < 1))
        return wrong_usage(arguments->command,
                           "option '--resize' needs height x width such as 96x96, found '%s'",
                           text);
    return DONE;
}

static int parse(const struct arguments *arguments, struct lk_conversion_options *o)
{
    int64_t shards = 0, threads = 0;
    int result = option_number(arguments, "shards", 1, 99999, &shards);
    if (result == DONE)
        result = option_number(arguments, "threads", 1, 256, &threads);
    if (result == DONE)
        result = parse_size(arguments, o);
    o->shards = (int)shards;
    o->threads = (int)threads;
    o->max_bad = option_text(arguments, "max-bad");
    o->force = option_given(arguments, "force");
    return result;
}

static int convert(const char *source, const char *target,
                   const struct lk_conversion_options *o)
{
    struct lk_conversion *conversion = NULL;
    const double began = seconds();
    interrupt_catch(&words);
    enum lk_status status = lk_conversion_create(source, target, o, &conversion);
    if (status == LK_OK) {
        interrupt_set_running(conversion);
        status = lk_conversion_run(conversion);
        interrupt_set_running(NULL);
    }
    terminal_status(NULL);
    const int result = status == LK_OK ? DONE : failed(status);
    if (status == LK_OK)
        print_report(lk_conversion_report(conversion), seconds() - began);
    else if (status == LK_E_INTERRUPTED)
        say("what is whole stays in '%s'; the same command goes on from there", target);
    lk_conversion_destroy(conversion);
    return result;
}

static int run(const struct arguments *arguments)
{
    struct watch watch = {.is_silent = option_given(arguments, "no-progress"),
                          .has_bar = terminal_has_status()};
    struct lk_conversion_options o = {.progress = show, .context = &watch};
    if (arguments->word_count != 2)
        return wrong_usage(arguments->command, "needs SRC and DST, found %d words",
                           arguments->word_count);
    const int result = parse(arguments, &o);
    return result != DONE ? result : convert(arguments->words[0], arguments->words[1], &o);
}

static void more(void)
{
    printf(
        "SRC is folder:DIR, tfrecord:GLOB, idx:DIR, csv:FILE or a known name, as for "
        "training,\n"
        "or a path that can be only one of these. DST is tfrecord:DIR or folder:DIR; a plain\n"
        "DIR becomes a folder of files where SRC is TFRecords, else TFRecords.\n"
        "Behind tfrecord:DIR stand the options that will read it: image=KEY, label=KEY,\n"
        "offset=-1 (labels then count from 1 in the file).\n\n"
        "Parts (train, test, val) stay parts. A command that was interrupted goes on where it\n"
        "was when it is given again. DST/labels.txt names the classes, DST/skipped.txt what\n"
        "was broken.\n");
}

static const struct example examples[] = {
    {"lockstep convert photos records --shards 4", "TFRecord files of a folder of images"},
    {"lockstep convert tfrecord:records photos-again", "and back"},
    {0},
};

const struct command convert_command = {
    .name = "convert",
    .usage = "SRC DST [options]",
    .help = "turn image folders into TFRecord files, and back",
    .options = options,
    .examples = examples,
    .more = more,
    .run = run,
};

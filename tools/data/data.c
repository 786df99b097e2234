/* lockstep data: what is in a data set, how fast it is read, what a training sees of it. */
#include "data/data.h"

#include "command.h"
#include "data/sheet.h"
#include "data/text.h"
#include "terminal/terminal.h"
#include "train/progress.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A batch has so many samples, or fewer where these are large. */
enum { BATCH = 32, MOST_BATCH_BYTES = 64 << 20 };

/* Seconds for which batches are read, of a small set that was read several times; between two
 * status lines, two plain lines. */
static const double batches_s = 1, small_s = 0.2, redraw_s = 0.1, line_s = 5;
enum { SEVERAL = 3 };

struct request {
    const struct arguments *arguments;
    int64_t samples, threads, seed;
    int crop[2];  /* height, width; 0: none */
    char *stages; /* of training, with what they measure of the data; NULL: none were given */
};

struct watch {
    const char *part;
    int64_t total; /* another than before: it begins anew */
    double began, shown;
};

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int64_t data_bad(const struct lk_survey *survey)
{
    return survey->bad.count + survey->lost;
}

static void show(void *context, int64_t done, int64_t total)
{
    struct watch *watch = context;
    const double time = now();
    const bool has_status = terminal_has_status();
    char text[128], left[32];
    if (total != watch->total) {
        watch->total = total;
        watch->began = time;
    }
    if (time - watch->shown < (has_status ? redraw_s : line_s))
        return;
    watch->shown = time;
    snprintf(
        text, sizeof text, "%s: %" PRId64 " of %" PRId64 " samples  %d%%  ETA %s", watch->part,
        done, total, (int)(100.0 * (double)done / (double)total),
        duration_text((time - watch->began) * (double)(total - done) / (double)done, left));
    const int columns = terminal_columns();
    if (has_status && columns < (int)sizeof text)
        text[columns - 1] = '\0';
    if (has_status)
        terminal_status(text);
    else
        say_plain("%s", text);
}

/* NULL: none were given. */
static const char *stages(const struct request *request)
{
    const char *given = option_text(request->arguments, "pipeline");
    return given ? given : option_text(request->arguments, "augment");
}

static size_t sample_bytes(const struct lk_field *fields, int count)
{
    size_t bytes = 0;
    for (int i = 0; i < count; i++)
        bytes += lk_field_bytes(&fields[i]);
    return bytes;
}

static struct lk_batches_options batches_options(const struct request *request,
                                                 const struct data_part *part, bool is_training)
{
    const struct lk_data_info *info = lk_data_info(part->data);
    const int64_t bytes = (int64_t)sample_bytes(info->fields, info->field_count);
    const int64_t size = MOST_BATCH_BYTES / bytes;
    return (struct lk_batches_options){
        .size = size < 1       ? 1
                : size > BATCH ? BATCH
                               : (int)size,
        .seed = (uint64_t)request->seed,
        .shuffle = is_training,
        .threads = request->threads ? (int)request->threads : LK_BATCHES_AUTO,
        .height = request->crop[0],
        .width = request->crop[1],
        .pipeline = !is_training      ? NULL
                    : request->stages ? request->stages
                                      : "",
    };
}

/* Reads batches as a training does, for a while. */
static enum lk_status time_batches(struct data_part *part,
                                   const struct lk_batches_options *options)
{
    const struct lk_data_info *info = lk_data_info(part->data);
    void *to[LK_MOST_FIELDS] = {NULL};
    int count;
    const struct lk_field *fields = lk_batches_fields(part->batches, &count);
    uint8_t *samples = malloc((size_t)options->size * sample_bytes(fields, count));
    enum lk_status status = samples ? LK_OK : LK_E_MEMORY;
    const double began = now();
    double seconds = 0;
    int64_t done = 0;
    size_t used = 0;
    for (int i = 0; status == LK_OK && i < count; i++) {
        to[i] = samples + used;
        used += (size_t)options->size * lk_field_bytes(&fields[i]);
    }
    for (int64_t batch = 0;
         status == LK_OK && seconds < (done < SEVERAL * info->count ? batches_s : small_s);
         batch++) {
        const int64_t size = lk_batches_size(part->batches, batch);
        status = lk_batches_read_fields(part->batches, batch, 0, size, to);
        done += size;
        seconds = now() - began;
    }
    free(samples);
    if (status == LK_OK)
        part->batches_per_s = (double)done / seconds;
    return status;
}

/* Batches are created first: what is wrong with their options is then said at once. */
static enum lk_status look_at(struct request *request, struct data_part *part, bool is_training)
{
    struct watch watch = {.part = part->name, .began = now(), .shown = now()};
    if (is_training && stages(request)) {
        const enum lk_status status =
            lk_pipeline_resolve(part->data, stages(request), &request->stages);
        if (status != LK_OK)
            return status;
    }
    const struct lk_batches_options options = batches_options(request, part, is_training);
    const struct lk_survey_options survey = {.samples = request->samples,
                                             .threads = (int)request->threads,
                                             .progress = show,
                                             .context = &watch};
    enum lk_status status = lk_batches_create(part->data, &options, &part->batches);
    if (status == LK_OK)
        status = lk_survey_create(part->data, &survey, &part->survey);
    terminal_status(NULL);
    if (status != LK_OK)
        return status;
    part->batch_threads =
        request->threads || lk_data_info(part->data)->decodes ? part->survey->threads : 1;
    if (part->survey->good > 0)
        status = time_batches(part, &options);
    return status == LK_OK ? data_measure_texts(part) : status;
}

static enum lk_status open_part(const struct request *request, struct data_report *report,
                                enum lk_data_part kind)
{
    struct data_part *part = &report->parts[report->count];
    const struct lk_data_options wanted = {
        .max_bad = option_text(request->arguments, "max-bad"),
        .vocabulary = report->count ? lk_data_vocabulary(report->parts[0].data) : NULL};
    const double began = now();
    const enum lk_status status = lk_data_open_as(report->spec, kind, &wanted, &part->data);
    if (status != LK_OK)
        return status;
    if (lk_data_info(part->data)->part != kind) { /* the other one, in its place */
        lk_data_close(part->data);
        part->data = NULL;
        return LK_OK;
    }
    part->name = kind == LK_DATA_TRAIN ? "train" : kind == LK_DATA_TEST ? "test" : "val";
    part->list_per_s = (double)lk_data_info(part->data)->count / (now() - began);
    report->count++;
    return LK_OK;
}

/* A set without another part is one part, and so is one whose part is named in the SPEC. */
static enum lk_status open_parts(const struct request *request, struct data_report *report)
{
    static const enum lk_data_part others[] = {LK_DATA_VALIDATION, LK_DATA_TEST};
    enum lk_status status = open_part(request, report, LK_DATA_TRAIN);
    if (status != LK_OK)
        return status;
    for (int i = 0; i < DATA_PARTS - 1 && !strstr(report->spec, ",part="); i++) {
        status = open_part(request, report, others[i]);
        if (status == LK_E_IO) { /* there is neither */
            say("one part only: %s", lk_error_text());
            lk_error_clear();
            break;
        }
        if (status != LK_OK)
            return status;
    }
    if (report->count == 1)
        report->parts[0].name = "all";
    return LK_OK;
}

static enum lk_status draw_grid(const struct request *request, const struct data_report *report)
{
    const struct data_part *part = &report->parts[0];
    const struct lk_batches_options options = batches_options(request, part, true);
    const char *augment = stages(request);
    const char *path = option_text(request->arguments, "grid");
    char title[512];
    if (!path)
        return LK_OK;
    snprintf(title, sizeof title, "%s, %s%s%s", lk_data_info(part->data)->name, part->name,
             augment ? ", " : "", augment ? augment : "");
    return sheet_write(part->data, &options, title, path);
}

/* DONE, or BAD_INPUT where more are broken than may be. */
static int judge(const struct data_report *report)
{
    int result = DONE;
    for (int i = 0; i < report->count; i++) {
        const struct lk_survey *survey = report->parts[i].survey;
        if (data_bad(survey) <= survey->most_bad)
            continue;
        say("%s: %" PRId64 " of %" PRId64 " samples are broken; --max-bad allows %" PRId64,
            report->parts[i].name, data_bad(survey), survey->samples, survey->most_bad);
        result = BAD_INPUT;
    }
    return result;
}

static enum lk_status make_report(struct request *request, struct data_report *report)
{
    enum lk_status status = open_parts(request, report);
    for (int i = 0; status == LK_OK && i < report->count; i++)
        status = look_at(request, &report->parts[i], i == 0);
    const int channels = report->count ? lk_data_info(report->parts[0].data)->channels : 0;
    if (status == LK_OK && channels > 0 && stages(request))
        status = lk_pipeline_normalization(stages(request), channels, &report->normalization);
    if (status == LK_OK && report->parts[0].survey->good > 0)
        status = draw_grid(request, report);
    return status;
}

static int parse(const struct arguments *arguments, struct request *request)
{
    const char *crop = option_text(arguments, "crop");
    char more;
    request->arguments = arguments;
    request->seed = 1;
    if (arguments->word_count != 1)
        return wrong_usage(arguments->command, "needs one SPEC, found %d words",
                           arguments->word_count);
    int status = option_number(arguments, "samples", 1, INT32_MAX, &request->samples);
    if (status == DONE)
        status = option_number(arguments, "data-threads", 1, 64, &request->threads);
    if (status == DONE)
        status = option_number(arguments, "seed", 0, INT64_MAX, &request->seed);
    if (status != DONE || !crop)
        return status;
    if (sscanf(crop, "%dx%d%c", &request->crop[0], &request->crop[1], &more) != 2 ||
        request->crop[0] < 1 || request->crop[1] < 1)
        return wrong_usage(arguments->command,
                           "option '--crop' needs height x width such as 96x96, found '%s'",
                           crop);
    return DONE;
}

static int run(const struct arguments *arguments)
{
    struct request request = {0};
    int status = parse(arguments, &request);
    if (status != DONE)
        return status;
    struct data_report report = {.spec = arguments->words[0]};
    const enum lk_status made = make_report(&request, &report);
    if (made != LK_OK)
        status = failed(made);
    else if (option_given(arguments, "json"))
        status = data_print_json(&report);
    else
        data_print(&report);
    if (made == LK_OK && status == DONE)
        status = judge(&report);
    free(request.stages);
    for (int i = 0; i < DATA_PARTS; i++) {
        lk_survey_destroy(report.parts[i].survey);
        lk_batches_destroy(report.parts[i].batches);
        lk_data_close(report.parts[i].data);
        free(report.parts[i].lengths);
    }
    return status;
}

static const struct option options[] = {
    {"samples", "N", "look at N images, spread evenly, not all; labels are counted of all"},
    {"max-bad", "N|P%", "broken samples that are no failure (default 1%)"},
    {"grid", "FILE.png", "draw samples as training sees them, with their classes"},
    {"pipeline", "STAGES", "what training does to images, as for 'lockstep train'"},
    {"augment", "STAGES", "the same"},
    {"crop", "HxW", "cut this out of each sample, by chance: a model's smaller input"},
    {"seed", "N", "of the order and of chance (default 1)"},
    {"data-threads", "N", "threads that read and decode (default: a core each)"},
    {"json", NULL, "print JSON, with all broken files"},
    {0},
};

static const struct example examples[] = {
    {"lockstep data fashion-mnist", "classes, values, speed"},
    {"lockstep data folder:photos,size=96x96 --grid sheet.png",
     "and a sheet of 48 samples as training sees them"},
    {0},
};

const struct command data_command = {
    .name = "data",
    .usage = "SPEC [options]",
    .help = "show what is in a data set: classes, sizes, values, broken files, speed",
    .options = options,
    .examples = examples,
    .run = run,
};

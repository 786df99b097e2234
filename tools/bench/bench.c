/* lockstep bench: throughput per operation and per model beside the device's measured peaks. */
#include "bench/bench.h"

#include "command.h"
#include "terminal/table.h"
#include "terminal/task.h"
#include "terminal/terminal.h"
#include "train/progress.h"
#include "train/train.h"
#include <inttypes.h>
#include <lockstep/bench.h>
#include <lockstep/file.h>
#include <lockstep/settings.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

struct bench {
    struct lk_device *device;
    struct lk_peaks peaks;
    struct lk_launch_times launch;
    struct lk_bench_options options;
    struct lk_settings *settings; /* of --set; NULL: none are given */
    char set[128];                /* these as words behind a model's name */
    int64_t megabytes;            /* of gradients to average; 0: the usual ones */
    json_t *kernels, *models;     /* arrays */
    json_t *averaging;            /* an object, null where it was not measured */
};

static void status_text(const char *format, const char *name, int done, int count)
{
    char text[128];
    snprintf(text, sizeof text, format, name, done, count);
    if (terminal_has_status())
        terminal_status(text);
}

static void print_kernel(const struct lk_bench_kernel *k)
{
    static const struct table_column columns[] = {
        {NULL, 0, 12, .is_left = true, .least = 7},
        {NULL, 1, 8, .is_left = true, .least = 7},
        {NULL, 1, 16, .is_left = true, .least = 15, .rank = 1},
        {NULL, 1, 12, .least = 10},
        {NULL, 1, 15, .least = 13, .rank = 3},
        {NULL, 1, 11, .least = 10, .rank = 4},
        {NULL, 1, 7, .least = 7, .rank = 2},
        {NULL, 2, 12, .is_left = true, .rank = 6},
        {NULL, 2, 14, .is_left = true, .rank = 7},
        {NULL, 2, 0, .is_left = true, .rank = 5},
    };
    struct table table;
    table_start(&table, columns, 10);
    table_cell(&table, "%s", k->op);
    table_cell(&table, "%s", k->pass);
    table_cell(&table, "%s", k->algorithm);
    table_cell(&table, "%.3f ms", k->ms);
    table_cell(&table, "%.1f GFLOPS", k->gflops);
    table_cell(&table, "%.1f GB/s", k->gbs);
    table_cell(&table, "%.1f %%", k->percent_of_peak);
    table_cell(&table, "host %4.0f us", k->host_us);
    table_cell(&table, "build %5.0f ms", k->build_ms);
    table_cell(&table, "%s", k->shape);
    table_end(&table);
    fflush(stdout);
}

static json_t *kernel_json(const struct lk_bench_kernel *k)
{
    return json_pack(
        "{s:s, s:s, s:s, s:o, s:s, s:b, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "set",
        k->set, "op", k->op, "pass", k->pass, "shape", json_text(k->shape), "algorithm",
        k->algorithm, "reference", (int)k->is_reference, "memory_bound", (int)k->memory_bound,
        "flops", json_number(k->flops), "bytes", json_number(k->bytes), "ms",
        json_number(k->ms), "gflops", json_number(k->gflops), "gbs", json_number(k->gbs),
        "percent_of_peak", json_number(k->percent_of_peak), "host_us", json_number(k->host_us),
        "build_ms", json_number(k->build_ms));
}

/* The device's peaks are the best that were seen at any time. */
static bool kernel_event(void *context, const struct lk_bench_kernel *kernel)
{
    struct bench *bench = context;
    if (kernel->peaks.fma_gflops > bench->peaks.fma_gflops)
        bench->peaks.fma_gflops = kernel->peaks.fma_gflops;
    if (kernel->peaks.bandwidth_gbs > bench->peaks.bandwidth_gbs)
        bench->peaks.bandwidth_gbs = kernel->peaks.bandwidth_gbs;
    terminal_status(NULL);
    print_kernel(kernel);
    json_array_append_new(bench->kernels, kernel_json(kernel));
    if (kernel->done < kernel->count)
        status_text("%s: %d of %d measured", kernel->set, kernel->done, kernel->count);
    return true;
}

static void print_model(const struct lk_bench_model *m, bool is_first)
{
    static const struct table_column columns[] = {
        {"model", 0, 15, .is_left = true, .is_name = true, .least = 15},
        {"batch", 1, 6, .least = 5},
        {"samples/s", 1, 10, .least = 9},
        {"step ms", 1, 10, .least = 7},
        {"build s", 1, 8, .least = 6, .rank = 2},
        {"memory", 1, 9, .least = 8, .rank = 3},
        {"host", 1, 6, .least = 6, .rank = 4},
        {"loss", 1, 8, .least = 7, .rank = 5},
    };
    struct table table;
    char rate[32];
    table_start(&table, columns, 8);
    table.has_heading = !is_first;
    table_cell(&table, "%s", m->name);
    table_cell(&table, "%" PRId64, m->batch);
    table_cell(&table, "%s", rate_text(m->samples_per_s, rate));
    table_cell(&table, "%.2f", m->step_ms);
    table_cell(&table, "%.2f", m->build_s);
    table_cell(&table, "%.0f MiB", (double)m->peak_bytes / (1 << 20));
    table_cell(&table, "%.1f %%", m->host_percent);
    table_cell(&table, "%.4f", m->loss);
    table_end(&table);
    fflush(stdout);
}

static json_t *model_json(const struct lk_bench_model *m)
{
    return json_pack(
        "{s:s, s:I, s:i, s:o, s:o, s:o, s:o, s:o, s:I, s:I}", "name", m->name, "batch",
        (json_int_t)m->batch, "steps", m->steps, "samples_per_s", json_number(m->samples_per_s),
        "step_ms", json_number(m->step_ms), "build_s", json_number(m->build_s), "host_percent",
        json_number(m->host_percent), "loss", json_number(m->loss), "peak_bytes",
        (json_int_t)m->peak_bytes, "resident_bytes", (json_int_t)m->resident_bytes);
}

static enum lk_status bench_model(struct bench *bench, const char *name)
{
    struct lk_bench_model model;
    status_text("%.64s: building and measuring ...", name, 0, 0);
    const enum lk_status status = lk_bench_model(bench->device, name, &bench->options, &model);
    char named[192];
    terminal_status(NULL);
    if (status != LK_OK)
        return status;
    if (*bench->set)
        print_lines("%s with%s\n", name, bench->set);
    print_model(&model, json_array_size(bench->models) == 0);
    snprintf(named, sizeof named, "%s%s", name, bench->set);
    model.name = named; /* so that figures of other settings are not compared with it */
    json_array_append_new(bench->models, model_json(&model));
    return LK_OK;
}

static void print_averaging(const struct lk_bench_averaging *a)
{
    print_lines(
        "averaging: %d replicas of %.0f MB on %d threads: %.2f ms, %.1f GB/s, %.1f %% of\n"
        "  this host's bandwidth (reading %.1f GB/s, copying %.1f GB/s); checked %.1f GB/s\n",
        a->replicas, 1e-6 * (double)a->bytes, a->threads, a->ms, a->gbs,
        a->percent_of_bandwidth, a->read_gbs, a->copy_gbs, a->checked_gbs);
    fflush(stdout);
}

static enum lk_status bench_averaging(struct bench *bench)
{
    struct lk_bench_averaging a;
    status_text("averaging: measuring ...", "", 0, 0);
    const enum lk_status status = lk_bench_averaging(bench->megabytes * 1000000, &a);
    terminal_status(NULL);
    if (status != LK_OK)
        return status;
    print_averaging(&a);
    json_decref(bench->averaging);
    bench->averaging =
        json_pack("{s:i, s:i, s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "replicas", a.replicas,
                  "threads", a.threads, "bytes", (json_int_t)a.bytes, "ms", json_number(a.ms),
                  "gbs", json_number(a.gbs), "checked_gbs", json_number(a.checked_gbs),
                  "read_gbs", json_number(a.read_gbs), "copy_gbs", json_number(a.copy_gbs),
                  "percent_of_bandwidth", json_number(a.percent_of_bandwidth));
    return LK_OK;
}

/* A word is a model, "averaging", "kernels", or "kernels:" and the name of a set. */
static enum lk_status bench_word(struct bench *bench, const char *word)
{
    task_only_building(); /* a line is printed for each kernel and model */
    if (strcmp(word, "kernels") == 0)
        return lk_bench_kernels(bench->device, NULL, &bench->options, kernel_event, bench);
    if (strncmp(word, "kernels:", 8) == 0)
        return lk_bench_kernels(bench->device, word + 8, &bench->options, kernel_event, bench);
    if (strcmp(word, "averaging") == 0)
        return bench_averaging(bench);
    return bench_model(bench, word);
}

/* Misspelt words are found before anything is measured. */
static int check_words(const struct arguments *arguments)
{
    enum { MOST = 64 };
    char sets[MOST][64];
    const char *names[3 * MOST + 3] = {"kernels", "averaging"};
    int count = 2;
    for (int i = 0; i < MOST && lk_bench_model_name(i); i++)
        names[count++] = lk_bench_model_name(i);
    for (int i = 0; i < MOST && lk_bench_other_model_name(i); i++)
        names[count++] = lk_bench_other_model_name(i);
    for (int i = 0; i < MOST && lk_bench_set(i); i++) {
        snprintf(sets[i], sizeof sets[i], "kernels:%s", lk_bench_set(i));
        names[count++] = sets[i];
    }
    for (int i = 0; i < arguments->word_count; i++) {
        const char *word = arguments->words[i], *near = nearest_name(word, names);
        if (near && strcmp(near, word) == 0)
            continue;
        const enum lk_status status = lk_bench_model_check(word);
        if (status == LK_E_UNSUPPORTED) {
            (void)failed(status);
            return USAGE;
        }
        lk_error_clear();
        return wrong_usage(arguments->command, "nothing to measure is called '%s'%s%s%s", word,
                           near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    }
    return DONE;
}

/* Without words: the kernels, averaging, and all models. */
static enum lk_status bench_all(struct bench *bench)
{
    enum lk_status status = bench_word(bench, "kernels");
    if (status == LK_OK)
        status = bench_averaging(bench);
    const char *name;
    for (int i = 0; status == LK_OK && (name = lk_bench_model_name(i)) != NULL; i++)
        status = bench_model(bench, name);
    return status;
}

static enum lk_status measure(struct bench *bench, const struct arguments *arguments)
{
    status_text("measuring the device's peaks ...%s", "", 0, 0);
    enum lk_status status =
        lk_peaks_measure(bench->device, bench->options.seconds, &bench->peaks);
    if (status == LK_OK)
        status = lk_launch_measure(bench->device, &bench->launch);
    terminal_status(NULL);
    if (status != LK_OK)
        return status;
    print_lines(
        "%s: %.1f GFLOPS multiply-add, %.1f GB/s\n"
        "a kernel's launch: %.1f us of the host, %.1f us in a row, %.1f us with the wait\n",
        lk_device_info(bench->device)->name, bench->peaks.fma_gflops,
        bench->peaks.bandwidth_gbs, bench->launch.enqueue_us, bench->launch.launch_us,
        bench->launch.round_trip_us);
    if (arguments->word_count == 0)
        status = bench_all(bench);
    for (int i = 0; status == LK_OK && i < arguments->word_count; i++)
        status = bench_word(bench, arguments->words[i]);
    return status;
}

static json_t *date_json(void)
{
    char text[32] = "";
    struct tm date;
    const time_t now = time(NULL);
    if (gmtime_r(&now, &date))
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &date);
    return json_string(text);
}

/* All figures; NULL: out of memory. */
static json_t *figures_json(const struct bench *bench)
{
    json_t *device = device_json(lk_device_info(bench->device));
    json_object_set_new(device, "fma_gflops", json_number(bench->peaks.fma_gflops));
    json_object_set_new(device, "bandwidth_gbs", json_number(bench->peaks.bandwidth_gbs));
    json_object_set_new(device, "enqueue_us", json_number(bench->launch.enqueue_us));
    json_object_set_new(device, "launch_us", json_number(bench->launch.launch_us));
    json_object_set_new(device, "round_trip_us", json_number(bench->launch.round_trip_us));
    return json_pack("{s:s, s:o, s:s, s:o, s:O, s:O, s:O}", "lockstep", LK_VERSION, "date",
                     date_json(), "math", bench->options.math ? bench->options.math : "normal",
                     "device", device, "models", bench->models, "kernels", bench->kernels,
                     "averaging", bench->averaging);
}

/* The page is made of what the JSON says, as it is of files that are compared. */
static int write_page(const struct bench *bench, const char *path)
{
    struct figures figures = {0};
    struct joined joined = {0};
    int result = figures_take(figures_json(bench), &figures);
    if (result == DONE)
        result = figures_join(&figures, 1, &joined);
    if (result == DONE)
        result = bench_page(&joined, path);
    figures_part(&joined);
    figures_clear(&figures);
    return result;
}

static int write_files(const struct bench *bench, const struct arguments *arguments)
{
    const char *json = option_text(arguments, "json"), *html = option_text(arguments, "html");
    const int result = json ? json_write(figures_json(bench), json) : DONE;
    return result == DONE && html ? write_page(bench, html) : result;
}

/* Found before measuring, which takes minutes. */
static int check_files(const char *json, const char *html)
{
    enum lk_status status = json ? lk_file_check(json) : LK_OK;
    if (status == LK_OK && html)
        status = lk_file_check(html);
    return status == LK_OK ? DONE : failed(status);
}

static int check_math(const struct arguments *arguments, const char *math)
{
    static const char *const names[] = {"strict", "normal", "fast", NULL};
    for (int i = 0; names[i]; i++)
        if (!math || strcmp(math, names[i]) == 0)
            return DONE;
    return wrong_usage(arguments->command,
                       "option '--math' needs strict, normal or fast, found '%s'", math);
}

/* --set changes one model, which has to be named. */
static int read_settings(const struct arguments *arguments, struct bench *bench)
{
    if (!option_given(arguments, "set"))
        return DONE;
    if (arguments->word_count != 1 || lk_bench_model_check(arguments->words[0]) != LK_OK) {
        lk_error_clear();
        return wrong_usage(arguments->command, "--set needs one MODEL to measure");
    }
    size_t used = 0;
    for (int i = 0; i < arguments->given_count; i++)
        if (strcmp(arguments->given[i].option->name, "set") == 0 && used < sizeof bench->set)
            used += (size_t)snprintf(bench->set + used, sizeof bench->set - used, " %s",
                                     arguments->given[i].value);
    const int result = train_model_settings(arguments, &bench->settings);
    bench->options.settings = bench->settings;
    return result;
}

static int read_options(const struct arguments *arguments, struct bench *bench)
{
    const char *json = option_text(arguments, "json"), *html = option_text(arguments, "html");
    int result = option_number(arguments, "batch-size", 1, 1 << 24, &bench->options.batch);
    if (result == DONE)
        result = option_number(arguments, "size", 1, 100000, &bench->megabytes);
    if (result == DONE)
        result = option_real(arguments, "seconds", 1e-3, 600, &bench->options.seconds);
    if (result == DONE)
        result = check_math(arguments, bench->options.math);
    if (result == DONE && json && html && strcmp(json, html) == 0)
        result =
            wrong_usage(arguments->command, "--json and --html name the same file '%s'", json);
    if (result == DONE)
        result = check_words(arguments);
    if (result == DONE)
        result = read_settings(arguments, bench);
    return result == DONE ? check_files(json, html) : result;
}

static int run_measurements(const struct arguments *arguments)
{
    struct bench bench = {.options.math = option_text(arguments, "math"),
                          .options.precision = option_text(arguments, "precision"),
                          .options.tiles = option_text(arguments, "tiles"),
                          .kernels = json_array(),
                          .models = json_array(),
                          .averaging = json_null()};
    int result = read_options(arguments, &bench);
    if (result == DONE) {
        enum lk_status status =
            lk_device_open(option_text(arguments, "device"), 0, &bench.device);
        if (status == LK_OK)
            status = measure(&bench, arguments);
        terminal_status(NULL);
        result = status == LK_OK ? DONE : failed(status);
        if (bench.peaks.fma_gflops > 0) { /* what was measured before a failure, too */
            const int written = write_files(&bench, arguments);
            result = result == DONE ? written : result;
        }
    }
    json_decref(bench.kernels);
    json_decref(bench.models);
    json_decref(bench.averaging);
    lk_device_close(bench.device);
    lk_settings_destroy(bench.settings);
    return result;
}

/* --- comparing -------------------------------------------------------------------------- */

static bool is_same_file(const char *a, const char *b)
{
    struct stat about[2];
    return strcmp(a, b) == 0 ||
           (stat(a, &about[0]) == 0 && stat(b, &about[1]) == 0 &&
            about[0].st_dev == about[1].st_dev && about[0].st_ino == about[1].st_ino);
}

static int check_comparison(const struct arguments *arguments)
{
    static const char *const others[] = {"batch-size", "device", "json", "math", "precision",
                                         "seconds",    "set",    "size", "tiles"};
    const char *html = option_text(arguments, "html");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (option_given(arguments, others[i]))
            return wrong_usage(arguments->command,
                               "--compare measures nothing: --%s is of no use", others[i]);
    if (arguments->word_count < 1 || arguments->word_count > MOST_FILES)
        return wrong_usage(arguments->command, "--compare needs 1 to %d files, found %d",
                           MOST_FILES, arguments->word_count);
    for (int i = 0; html && i < arguments->word_count; i++)
        if (is_same_file(html, arguments->words[i]))
            return wrong_usage(arguments->command,
                               "--html would replace '%s', which is compared", html);
    return DONE;
}

static int run_comparison(const struct arguments *arguments)
{
    struct figures figures[MOST_FILES] = {0};
    struct joined joined = {0};
    const char *html = option_text(arguments, "html");
    int result = check_comparison(arguments);
    for (int i = 0; result == DONE && i < arguments->word_count; i++)
        result = figures_read(arguments->words[i], &figures[i]);
    if (result == DONE)
        result = figures_join(figures, arguments->word_count, &joined);
    if (result == DONE) {
        bench_compare(&joined);
        if (html)
            result = bench_page(&joined, html);
    }
    figures_part(&joined);
    for (int i = 0; i < MOST_FILES; i++)
        figures_clear(&figures[i]);
    return result;
}

static int run(const struct arguments *arguments)
{
    return option_given(arguments, "compare") ? run_comparison(arguments)
                                              : run_measurements(arguments);
}

static void more(void)
{
    printf("SET (kernels of a model):");
    for (int i = 0; lk_bench_set(i); i++)
        printf(" %s", lk_bench_set(i));
    printf("\nMODEL (batch size):");
    for (int i = 0; lk_bench_model_name(i); i++)
        printf(" %s (%" PRId64 ")", lk_bench_model_name(i), lk_bench_model_batch(i));
    printf("\nand, where they are named:");
    for (int i = 0; lk_bench_other_model_name(i); i++)
        printf(" %s (%" PRId64 ")", lk_bench_other_model_name(i),
               lk_bench_other_model_batch(i));
    printf("\nWithout words: all but the last. Figures are fp32; percentages are of this "
           "device's\n"
           "own measured multiply-add rate, or of its bandwidth where memory is the limit.\n"
           "averaging: sums of 4 replicas' gradients on all cores; its percentage is of the\n"
           "faster of reading all of them and copying one, on as many threads.\n");
}

static const struct option options[] = {
    {"batch-size", "N", "samples in a batch; default: what each set or model is known for"},
    {"compare", NULL, "instead: set figures of --json side by side; one file: show it"},
    {"device", "LIST", "device to measure; 'lockstep devices' lists them"},
    {"html", "FILE", "write a page with charts and tables there"},
    {"json", "FILE", "write all figures there as JSON"},
    {"seconds", "S", "to measure each operation (usual: 0.4) and each model (usual: 6) for"},
    {"math", "strict|normal|fast", "which algorithms may run (normal)"},
    {"precision", "float|mixed", "of models: mixed keeps activations as halves (float)"},
    {"set", "KEY=VALUE", "of a model: input=[96,96,3], classes=6, or one of its parameters"},
    {"size", "MB", "averaging: gradients of a replica; default 100, in 5 times the memory"},
    {"tiles", "auto|batch|planes", "of models, in training: as the setting (auto)"},
    {0},
};

static const struct example examples[] = {
    {"lockstep bench fashion-convnet", "how fast a model trains here"},
    {"lockstep bench kernels:vgg16 vgg16 --json here.json --html here.html",
     "kernels and model, as figures and as a page"},
    {"lockstep bench text-lstm --set width=256 --set units=256", "a model of another size"},
    {"lockstep bench --compare here.json there.json --html both.html",
     "two devices side by side"},
    {0},
};

const struct command bench_command = {
    .name = "bench",
    .usage = "[kernels|kernels:SET|averaging|MODEL...] [options]\n"
             "       lockstep bench --compare FILE... [--html FILE]",
    .help = "measure throughput per operation and model, beside the device's peaks",
    .options = options,
    .examples = examples,
    .more = more,
    .run = run,
};

/* lockstep scale: what synchronous training on more devices like this one would take. */
#include "command.h"
#include "scale_group.h"
#include "terminal/json.h"
#include "terminal/table.h"
#include "terminal/terminal.h"
#include "train/progress.h"
#include "train/train.h"
#include <inttypes.h>
#include <lockstep/bench.h>
#include <lockstep/settings.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DEVICES = 256, EACH_UP_TO = 8, STANDARD_BATCH = 512 };
static const double LEAST_GBS = 1e-6, MOST_GBS = 1e6;

struct plan {
    struct lk_scale_options options;
    int devices[MOST_DEVICES];
    struct lk_scale_row rows[MOST_DEVICES];
    struct lk_scale_report report;
};

/* --- the command line ------------------------------------------------------------------- */

static int wrong_devices(const struct arguments *arguments, const char *text)
{
    return wrong_usage(
        arguments->command,
        "option '--devices' needs ascending numbers in 1..%d, as 1..64 or 1,2,4, "
        "found '%s'",
        MOST_DEVICES, text);
}

static bool read_number(const char **text, int *number)
{
    char *end;
    if (**text < '0' || **text > '9')
        return false;
    const long found = strtol(*text, &end, 10);
    *text = end;
    *number = found < MOST_DEVICES + 1 ? (int)found : MOST_DEVICES + 1;
    return *number >= 1 && *number <= MOST_DEVICES;
}

/* A longer range by powers of two, and both ends. */
static void add_range(struct plan *plan, int first, int last)
{
    for (int n = first; n <= last; n++)
        if (last - first < EACH_UP_TO || n == first || n == last || (n & (n - 1)) == 0)
            plan->devices[plan->options.count++] = n;
}

static int read_devices(const struct arguments *arguments, struct plan *plan)
{
    const char *given = option_text(arguments, "devices"), *text = given ? given : "1..64";
    int last = 0, first, end;
    for (const char *p = text;; p++) {
        if (!read_number(&p, &first))
            return wrong_devices(arguments, text);
        end = first;
        if (strncmp(p, "..", 2) == 0) {
            p += 2;
            if (!read_number(&p, &end))
                return wrong_devices(arguments, text);
        }
        if (first <= last || end < first || (*p && *p != ','))
            return wrong_devices(arguments, text);
        add_range(plan, first, end);
        last = end;
        if (!*p)
            break;
    }
    plan->options.devices = plan->devices;
    return DONE;
}

static int64_t usual_batch(const char *model)
{
    for (int i = 0; lk_bench_model_name(i); i++)
        if (strcmp(lk_bench_model_name(i), model) == 0)
            return lk_bench_model_batch(i);
    return STANDARD_BATCH;
}

static int read_batch(const struct arguments *arguments, struct lk_scale_options *o)
{
    int result = option_number(arguments, "batch-size", 1, 1 << 24, &o->batch);
    if (result == DONE)
        result = option_number(arguments, "batch-per-device", 1, 1 << 24, &o->each);
    if (result == DONE && o->batch && o->each)
        result = wrong_usage(arguments->command,
                             "--batch-size and --batch-per-device exclude one another");
    if (!o->batch && !o->each)
        o->batch = usual_batch(o->model);
    return result;
}

static int read_hosts(const struct arguments *arguments, struct lk_scale_options *o)
{
    int64_t hosts = 1;
    int result = option_number(arguments, "hosts", 1, MOST_DEVICES, &hosts);
    o->hosts = (int)hosts;
    if (result == DONE)
        result = option_real(arguments, "net", LEAST_GBS, MOST_GBS, &o->net_gbs);
    if (result == DONE && o->hosts > 1 && !o->net_gbs)
        result = wrong_usage(arguments->command, "--hosts %d needs --net GB/s", o->hosts);
    return result;
}

static int read_plan(const struct arguments *arguments, struct plan *plan)
{
    struct lk_scale_options *o = &plan->options;
    int64_t shards = 0;
    if (arguments->word_count != 1)
        return wrong_usage(arguments->command, "needs one MODEL, found %d words",
                           arguments->word_count);
    o->model = arguments->words[0];
    plan->report.rows = plan->rows;
    int result = read_devices(arguments, plan);
    if (result == DONE)
        result = option_real(arguments, "link", LEAST_GBS, MOST_GBS, &o->link_gbs);
    if (result == DONE)
        result = read_hosts(arguments, o);
    if (result == DONE)
        result = read_batch(arguments, o);
    if (result == DONE)
        result = option_number(arguments, "shards", 1, 256, &shards);
    o->shards = (int)shards;
    return result;
}

/* --- what was found --------------------------------------------------------------------- */

static const struct table_column columns[] = {
    {"devices", 0, .width = 7},
    {"batch", 1, 8, .rank = 1},
    {"shards", 1, 6, .rank = 2},
    {"step ms", 1, 9, .rank = 3},
    {"samples/s", 1, .width = 9},
    {"efficiency", 1, .width = 10},
    {"bottleneck", 2, 0, .is_left = true, .is_name = true},
};

static void add_row(struct table *table, const struct lk_scale_row *row)
{
    char rate[32], idle[32] = "";
    if (row->devices > row->shards)
        snprintf(idle, sizeof idle, ", %d idle", row->devices - row->shards);
    table_cell(table, "%d", row->devices);
    table_cell(table, "%" PRId64, row->batch);
    table_cell(table, "%d", row->shards);
    table_cell(table, "%.2f", row->step_ms);
    table_cell(table, "%s", rate_text(row->samples_per_s, rate));
    table_cell(table, "%.1f %%", row->percent);
    table_cell(table, "%s%s", lk_scale_limit_name(row->limit), idle);
}

static int64_t share_samples(const struct lk_scale_row *row)
{
    const int working = row->devices < row->shards ? row->devices : row->shards;
    const int64_t shard = (row->batch + row->shards - 1) / row->shards;
    const int64_t samples = (row->shards + working - 1) / working * shard;
    return samples < row->batch ? samples : row->batch;
}

/* Why a row has more than 100 %, which nobody expects. */
static void explain_surplus(const struct plan *plan)
{
    const struct lk_scale_row *most = &plan->rows[0], *alone = &plan->report.alone;
    for (int i = 1; i < plan->options.count; i++)
        if (plan->rows[i].percent > most->percent)
            most = &plan->rows[i];
    if (most->percent < 100.05)
        return;
    if (most->percent - 100 <= most->noise) {
        print_lines(
            "\nMore than 100 %% is noise here: the times that were measured vary by %.0f %%.\n",
            most->noise);
        return;
    }
    const int64_t samples = share_samples(most);
    const double own = 1e3 * alone->ms[LK_SCALE_COMPUTE] / (double)alone->batch;
    const double shared = 1e3 * most->ms[LK_SCALE_COMPUTE] / (double)samples;
    print_lines(
        "\nMore than 100 %%: a device alone computes %" PRId64 " samples in %.1f us each,\n"
        "one of %d its %" PRId64
        " in %.1f us each: a small share fits caches better, or other\n"
        "programs took the device's time meanwhile. The times measured vary by %.0f %%.\n",
        alone->batch, own, most->devices, samples, shared, most->noise);
}

/* A small batch has fewer shards than there are devices: what to do is told below the table. */
static void explain_shards(const struct plan *plan)
{
    const struct lk_scale_row *last = &plan->rows[plan->options.count - 1];
    if (last->devices <= last->shards)
        return;
    print_lines("\nA batch of %" PRId64 " has %d shard%s, and a device computes at least one: "
                "a larger --batch-size, or --batch-per-device, lets more of them work.\n",
                last->batch, last->shards, last->shards == 1 ? "" : "s");
}

static void print_table(const struct plan *plan, const struct lk_device_info *info)
{
    const struct lk_scale_options *o = &plan->options;
    const struct lk_scale_report *r = &plan->report;
    struct table table;
    print_lines("%s on devices like %s\n", o->model, info->name);
    print_lines("gradients %.2f MB in %d bucket%s, links %.1f GB/s, host addition %.1f GB/s\n",
                1e-6 * r->bytes, r->buckets, r->buckets == 1 ? "" : "s", r->link_gbs,
                r->add_gbs);
    if (r->reading_ms > 0)
        print_lines("reading samples: %.4g ms of a core each\n", r->reading_ms);
    if (o->hosts > 1)
        print_lines("%d hosts, network %.2f GB/s\n", o->hosts, o->net_gbs);
    printf("\n");
    table_start(&table, columns, (int)(sizeof columns / sizeof *columns));
    for (int i = 0; i < o->count; i++)
        add_row(&table, &plan->rows[i]);
    table_end(&table);
    explain_surplus(plan);
    explain_shards(plan);
}

static json_t *row_json(const struct lk_scale_row *row)
{
    json_t *times = json_object();
    for (int i = 0; i < LK_SCALE_LIMITS; i++)
        if (i != LK_SCALE_SHARDS)
            json_object_set_new(times, lk_scale_limit_name((enum lk_scale_limit)i),
                                json_number(row->ms[i]));
    return json_pack("{s:i, s:I, s:i, s:o, s:o, s:o, s:o, s:s, s:o}", "devices", row->devices,
                     "batch", (json_int_t)row->batch, "shards", row->shards, "step_ms",
                     json_number(row->step_ms), "samples_per_s",
                     json_number(row->samples_per_s), "efficiency_percent",
                     json_number(row->percent), "noise_percent", json_number(row->noise),
                     "bottleneck", lk_scale_limit_name(row->limit), "ms", times);
}

static json_t *plan_json(const struct plan *plan, const struct lk_device_info *info)
{
    const struct lk_scale_report *r = &plan->report;
    json_t *rows = json_array();
    for (int i = 0; i < plan->options.count; i++)
        json_array_append_new(rows, row_json(&plan->rows[i]));
    return json_pack("{s:o, s:o, s:o, s:o, s:i, s:o, s:o, s:i, s:o, s:o}", "device",
                     device_json(info), "model", json_text(plan->options.model),
                     "reading_ms_per_sample", json_number(r->reading_ms), "gradient_bytes",
                     json_number(r->bytes), "buckets", r->buckets, "link_gbs",
                     json_number(r->link_gbs), "addition_gbs", json_number(r->add_gbs), "hosts",
                     plan->options.hosts, "net_gbs", json_number(plan->options.net_gbs), "rows",
                     rows);
}

static int predict(struct plan *plan, const struct arguments *arguments)
{
    struct lk_device *device = NULL;
    const char *path = option_text(arguments, "json");
    int result = DONE;
    enum lk_status status = lk_device_open(option_text(arguments, "device"), 0, &device);
    if (terminal_has_status())
        terminal_status("building and measuring ...");
    if (status == LK_OK)
        status = lk_bench_scale(device, &plan->options, &plan->report);
    terminal_status(NULL);
    if (status != LK_OK) {
        result = failed(status);
    } else {
        print_table(plan, lk_device_info(device));
        if (path)
            result = json_write(plan_json(plan, lk_device_info(device)), path);
    }
    lk_device_close(device);
    return result;
}

/* With --place the devices are those of the list. */
static int predict_group(const struct plan *plan, const struct arguments *arguments)
{
    static const char *const others[] = {"devices", "link", "hosts", "net", "batch-per-device"};
    const struct lk_scale_options *o = &plan->options;
    struct lk_scale_group_options group = {
        .model = o->model, .settings = o->settings, .batch = o->batch, .shards = o->shards};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (option_text(arguments, others[i]))
            return wrong_usage(arguments->command, "--place and --%s exclude one another",
                               others[i]);
    return scale_group(arguments, option_text(arguments, "place"), &group);
}

static int run(const struct arguments *arguments)
{
    struct plan *plan = calloc(1, sizeof *plan);
    if (!plan) {
        say("out of memory");
        return FAILED;
    }
    struct lk_settings *settings = NULL;
    int result = read_plan(arguments, plan);
    if (result == DONE)
        result = train_model_settings(arguments, &settings);
    plan->options.settings = settings;
    if (result == DONE)
        result = option_text(arguments, "place") ? predict_group(plan, arguments)
                                                 : predict(plan, arguments);
    lk_settings_destroy(settings);
    free(plan);
    return result;
}

static void more(void)
{
    printf(
        "Measures the first device of the list and simulates a step on more like it: devices\n"
        "compute their shards, each bucket of gradients travels to the host as soon as it is\n"
        "ready, is added up and, between hosts, reduced and gathered; then all sums go back\n"
        "and every device updates. The bottleneck is what most of the step's time goes to.\n"
        "With --data the host reads samples meanwhile, with the cores that train on a CPU.\n"
        "Of a range of more than %d numbers the powers of two are shown, and both ends.\n"
        "'--device 0/2' measures one half of device 0.\n",
        EACH_UP_TO);
}

static const struct option options[] = {
    {"devices", "LIST", "how many: 1..64 (default) or 1,2,4; of all hosts together"},
    {"link", "GB/s", "between a device and its host; default: as memory is copied here"},
    {"hosts", "N", "machines the devices are spread over (default 1)"},
    {"net", "GB/s", "between hosts"},
    {"data", "SPEC", "read meanwhile, by the host's cores; default: samples wait in memory"},
    {"batch-size", "N", "samples a step, over all devices; default: the model's usual"},
    {"batch-per-device", "N", "samples a step and device instead: the batch grows"},
    {"shards", "N", "parts of a batch, a power of two; default: as training chooses"},
    {"set", "KEY=VALUE", "of the model: input=[96,96,3], classes=6, or one of its parameters"},
    {"place", "WORDS", "one model divided among the devices of --device: auto, or a=0,b=1"},
    {"device", "LIST", "device to measure; 'lockstep devices' lists them"},
    {"json", "FILE", "write all figures there as JSON"},
    {0},
};

static const struct example examples[] = {
    {"lockstep scale resnet50 --devices 1..8", "eight devices like the first one here"},
    {"lockstep scale resnet50 --devices 1..64 --link 12 --hosts 8 --net 3",
     "64 devices in eight machines"},
    {"lockstep scale vgg16 --place auto --device 0/2 --batch-size 64",
     "one model in two stages, on two halves of device 0"},
    {"lockstep scale resnet50 --data folder:photos --devices 1..8",
     "with the time of reading photos"},
    {0},
};

const struct command scale_command = {
    .name = "scale",
    .usage = "MODEL [options]",
    .help = "predict training on more devices, and what holds them up",
    .options = options,
    .examples = examples,
    .more = more,
    .run = run,
};

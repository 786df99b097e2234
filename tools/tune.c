/* lockstep tune: the fastest way to compute a model's operations on a device, measured. */
#include "command.h"
#include "terminal/interrupt.h"
#include "terminal/task.h"
#include "train/train.h"
#include <inttypes.h>
#include <lockstep/settings.h>
#include <lockstep/tune.h>
#include <stdio.h>
#include <string.h>

/* A first interrupt ends the tuning after the measurement at hand. */
static void stop(void *tuning)
{
    (void)tuning;
}

static const struct interrupt_words words = {.stop = stop,
                                             .second = "\nlockstep: stopped at once\n"};

struct show {
    const char *model;
    const struct lk_device_info *device;
    bool has_begun;
    char key[768]; /* of the choice being printed */
    int choices;
};

/* A key without the device, which the first line names. */
static void print_key(const char *key)
{
    const char *on = strstr(key, " on ");
    const int length = on ? (int)(on - key) : (int)strlen(key);
    printf("%.*s\n", length, key);
}

static void print_head(struct show *show)
{
    if (!show->has_begun)
        printf("%s on %s, %s\n", show->model, show->device->name, show->device->driver);
    show->has_begun = true;
}

static bool print_candidate(void *context, const struct lk_tune_report *report)
{
    static const char *const outcomes[] = {"", "wrong numbers", "cannot run here"};
    struct show *show = context;
    const bool is_new = strcmp(show->key, report->key) != 0;
    print_head(show);
    if (is_new) {
        snprintf(show->key, sizeof show->key, "%s", report->key);
        print_key(report->key);
    }
    if (report->outcome == LK_TUNE_GOOD && report->samples == 0)
        printf("    %-24s %10.3f ms in all\n", report->name, report->ms);
    else if (report->outcome == LK_TUNE_GOOD)
        printf("    %-24s %10.3f ms for %" PRId64 " samples\n", report->name, report->ms,
               report->samples);
    else
        printf("    %-24s %s\n", report->name, outcomes[report->outcome]);
    if (report->fastest) {
        printf("    -> %s\n", report->fastest);
        show->choices++;
    }
    fflush(stdout);
    return !interrupt_came();
}

static int tune(struct lk_tune_options *options, const char *devices)
{
    struct show show = {0};
    struct lk_device *device = NULL;
    enum lk_status status = lk_device_open(devices, 0, &device);
    if (status != LK_OK)
        return failed(status);
    show.model = options->model;
    show.device = lk_device_info(device);
    interrupt_catch(&words);
    interrupt_set_running(&show);
    task_only_building(); /* what is measured is printed */
    options->handler = print_candidate;
    options->context = &show;
    status = lk_tune_model(device, options);
    if (status == LK_OK)
        print_head(&show);
    lk_device_close(device);
    if (status != LK_OK)
        return failed(status);
    printf("%d choice%s measured%s\n", show.choices, show.choices == 1 ? "" : "s",
           show.choices  ? ""
           : show.key[0] ? ": the time was over before one was decided"
                         : ": what there is to choose is known, or there is one kernel only");
    return interrupt_came() ? INTERRUPTED : DONE;
}

static int run(const struct arguments *arguments)
{
    struct lk_tune_options options = {.math = option_text(arguments, "math"),
                                      .precision = option_text(arguments, "precision"),
                                      .again = option_given(arguments, "again")};
    int64_t seconds = 0;
    if (arguments->word_count != 1)
        return wrong_usage(arguments->command, "needs one MODEL, found %d words",
                           arguments->word_count);
    options.model = arguments->words[0];
    int result = option_number(arguments, "batch-size", 1, 1 << 24, &options.batch);
    if (result == DONE)
        result = option_number(arguments, "seconds", 1, 1 << 24, &seconds);
    options.seconds = (double)seconds;
    struct lk_settings *settings = NULL;
    if (result == DONE)
        result = train_model_settings(arguments, &settings);
    options.settings = settings;
    if (result == DONE)
        result = tune(&options, option_text(arguments, "device"));
    lk_settings_destroy(settings);
    return result;
}

static const struct option options[] = {
    {"device", "LIST", "the first of these devices: 0, gpu, cpu, 0/2"},
    {"batch-size", "N", "most samples at a time (512)"},
    {"math", "strict|normal|fast", "which algorithms may be taken (normal)"},
    {"precision", "float|mixed", "of training: mixed keeps activations as halves (float)"},
    {"set", "KEY=VALUE", "of the model: input=[96,96,3], classes=6, or one of its parameters"},
    {"seconds", "N", "begin nothing more after this time"},
    {"again", NULL, "measure also what is known"},
    {0},
};

static const struct example examples[] = {
    {"lockstep tune resnet50 --batch-size 16",
     "measures what later runs of this batch size take"},
    {0},
};

const struct command tune_command = {
    .name = "tune",
    .usage = "MODEL [options]",
    .help = "find the fastest kernels for a model's shapes and keep them for later runs",
    .options = options,
    .examples = examples,
    .run = run,
};

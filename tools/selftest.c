/* lockstep selftest: every kernel against known answers, on each chosen device. */
#include "command.h"
#include "terminal/task.h"
#include "terminal/terminal.h"
#include "train/drill.h"
#include <lockstep/accuracy.h>
#include <lockstep/bench.h>
#include <stdio.h>
#include <string.h>

static void verdict(void *context, const struct lk_selftest *test)
{
    int *count = context;
    *count = test->count;
    terminal_status(NULL);
    if (!test->ok)
        printf("  FAILED %s: %s\n", test->name, test->detail);
    if (terminal_has_status()) {
        char text[128];
        snprintf(text, sizeof text, "  %d of %d  %.80s", test->done, test->count, test->name);
        text[terminal_columns() <= (int)sizeof text ? terminal_columns() - 1
                                                    : (int)sizeof text - 1] = '\0';
        terminal_status(text);
    }
}

/* What was printed last. */
struct heading {
    char shape[160];
};

static void print_accuracy(void *context, const struct lk_accuracy *a)
{
    struct heading *heading = context;
    if (strcmp(heading->shape, a->shape) != 0)
        printf("  %s, error beside sums in double\n", a->shape);
    snprintf(heading->shape, sizeof heading->shape, "%s", a->shape);
    printf("    %-10s %-8s %8.1e%s\n", a->algorithm, a->pass, a->error,
           a->error <= a->allowed ? "" : "  FAILED: too large");
    fflush(stdout);
}

static enum lk_status test_accuracy(const char *list, int position, int *failures)
{
    struct lk_device *device = NULL;
    struct heading heading = {0};
    enum lk_status status = lk_device_open(list, position, &device);
    if (status != LK_OK)
        return status;
    printf("%s (%s)\n", lk_device_info(device)->name, lk_device_info(device)->driver);
    *failures = 0;
    status = lk_accuracy_measure(device, print_accuracy, &heading, failures);
    lk_device_close(device);
    return status;
}

static enum lk_status test_device(const char *list, int position, int *failures)
{
    struct lk_device *device = NULL;
    int count = 0;
    enum lk_status status = lk_device_open(list, position, &device);
    if (status != LK_OK)
        return status;
    printf("%s (%s)\n", lk_device_info(device)->name, lk_device_info(device)->driver);
    fflush(stdout);
    *failures = 0;
    task_only_building(); /* each test is counted */
    status = lk_selftest_run(device, verdict, &count, failures);
    terminal_status(NULL);
    if (status == LK_OK)
        printf("  %d of %d known answers were found\n", count - *failures, count);
    lk_device_close(device);
    return status;
}

/* Once for each device of the list, also where several of its entries are on one. */
static int drill_devices(const char *list, int devices)
{
    int result = DONE;
    bool is_drilled[64] = {false};
    for (int i = 0; i < devices; i++) {
        struct lk_device *device = NULL;
        const enum lk_status status = lk_device_open(list, i, &device);
        if (status != LK_OK)
            return failed(status);
        const int index = lk_device_info(device)->index;
        const bool is_new = !is_drilled[index % 64];
        if (is_new)
            printf("%s (%s)\n", lk_device_info(device)->name, lk_device_info(device)->driver);
        fflush(stdout);
        lk_device_close(device);
        if (is_new && drill_faults(index) != DONE)
            result = NO_DEVICE;
        is_drilled[index % 64] = true;
    }
    return result;
}

/* A device that computes wrong results is no usable device. */
static int run(const struct arguments *arguments)
{
    const char *list = option_text(arguments, "device");
    int devices = 0, result = DONE;
    if (arguments->word_count)
        return wrong_usage(arguments->command, "takes options only, found '%s'",
                           arguments->words[0]);
    if (!list)
        list = "all";
    const enum lk_status status = lk_device_list_count(list, &devices);
    if (status != LK_OK)
        return failed(status);
    if (option_given(arguments, "faults"))
        return drill_devices(list, devices);
    for (int i = 0; i < devices; i++) {
        int failures = 0;
        const enum lk_status tested = option_given(arguments, "accuracy")
                                          ? test_accuracy(list, i, &failures)
                                          : test_device(list, i, &failures);
        if (tested != LK_OK) {
            result = failed(tested);
            lk_error_clear();
        } else if (failures) {
            result = NO_DEVICE;
        }
    }
    return result;
}

static const struct option options[] = {
    {"device", "LIST", "devices to test (default all)"},
    {"accuracy", NULL, "how far each algorithm of convolutions is from sums in double"},
    {"faults", NULL, "instead, train on each while replicas fail, hang, stop and are killed"},
    {0},
};

static const struct example examples[] = {
    {"lockstep selftest", "known answers on every device"},
    {"lockstep selftest --faults --device 0", "drills of devices that fail"},
    {0},
};

const struct command selftest_command = {
    .name = "selftest",
    .usage = "[--device LIST] [--accuracy] [--faults]",
    .help = "test every kernel against known answers on each device",
    .options = options,
    .examples = examples,
    .run = run,
};

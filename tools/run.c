/* lockstep run: computes a model's outputs, and other values of it, on arrays of numbers. */
#include "command.h"
#include "terminal/interrupt.h"
#include "terminal/task.h"
#include "terminal/terminal.h"
#include "train/train.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the command line asks for. */
struct asked {
    struct lk_computation_options options;
    const char **taps;
    struct lk_computation_file *files;
    char **names; /* [file_count]: of the inputs, where they are given */
    int file_count;
    bool compares;
    struct lk_settings *settings; /* that --set asks for; NULL: none */
};

static int out_of_memory(void)
{
    say("out of memory");
    return FAILED;
}

/* "image=x.npy", or "x.npy" for the only input. */
static int take_input(struct asked *asked, const char *value)
{
    const char *equals = strchr(value, '=');
    struct lk_computation_file *file = &asked->files[asked->file_count];
    *file = (struct lk_computation_file){.path = equals ? equals + 1 : value};
    if (equals) {
        asked->names[asked->file_count] = strndup(value, (size_t)(equals - value));
        if (!asked->names[asked->file_count])
            return out_of_memory();
        file->input = asked->names[asked->file_count];
    }
    asked->file_count++;
    return DONE;
}

static int parse(const struct arguments *arguments, struct asked *asked)
{
    const size_t most = (size_t)arguments->given_count + 1;
    int64_t seed = 0;
    asked->taps = calloc(most, sizeof *asked->taps);
    asked->files = calloc(most, sizeof *asked->files);
    asked->names = calloc(most, sizeof *asked->names);
    if (!asked->taps || !asked->files || !asked->names)
        return out_of_memory();
    for (int i = 0; i < arguments->given_count; i++) {
        const struct given *given = &arguments->given[i];
        if (strcmp(given->option->name, "tap") == 0)
            asked->taps[asked->options.tap_count++] = given->value;
        else if (strcmp(given->option->name, "input") == 0 &&
                 take_input(asked, given->value) != DONE)
            return FAILED;
    }
    if (option_text(arguments, "compare"))
        asked->compares = true;
    else if (asked->file_count == 0)
        return wrong_usage(arguments->command, "needs --input NAME=FILE.npy for each input");
    if (!asked->compares && !option_text(arguments, "output"))
        return wrong_usage(arguments->command, "needs --output DIR for what it computes");
    int result = option_number(arguments, "seed", 0, INT64_MAX, &seed);
    if (result == DONE)
        result = option_number(arguments, "batch-size", 1, 1 << 20, &asked->options.batch);
    asked->options.seed = (uint64_t)seed;
    asked->options.taps = asked->taps;
    asked->options.weights = option_text(arguments, "weights");
    asked->options.device = option_text(arguments, "device");
    asked->options.math = option_text(arguments, "math");
    return result;
}

/* A line for each file: its path and the shape of its array. */
static void print_files(const struct lk_computation *computation, const char *folder,
                        int64_t samples)
{
    struct lk_field value;
    for (int i = 0; lk_computation_value(computation, i, &value); i++) {
        terminal_print(folder, 0);
        printf("/%s.npy [%" PRId64, value.name, samples);
        for (int axis = 0; axis < value.shape.rank; axis++)
            printf(", %" PRId64, value.shape.dim[axis]);
        printf("]\n");
    }
}

static void stop(void *computation)
{
    lk_computation_stop(computation);
}

static const struct interrupt_words words = {.stop = stop,
                                             .second = "\nlockstep: stopped at once\n"};

static int compute(const struct arguments *arguments, const struct asked *asked)
{
    struct lk_computation *computation = NULL;
    const char *folder = option_text(arguments, "output");
    int64_t samples = 0;
    interrupt_catch(&words);
    enum lk_status status =
        lk_computation_open(arguments->words[0], &asked->options, &computation);
    if (status == LK_OK) {
        interrupt_set_running(computation);
        status = lk_computation_run_files(computation, asked->files, asked->file_count, folder,
                                          option_given(arguments, "force"), &samples);
        interrupt_set_running(NULL);
    }
    const int result = status == LK_OK ? DONE : failed(status);
    if (status == LK_OK)
        print_files(computation, folder, samples);
    lk_computation_close(computation);
    return result;
}

/* --- models of ONNX ---------------------------------------------------------------------- */

static bool is_onnx(const char *path)
{
    const size_t length = strlen(path);
    return length > 5 && strcmp(path + length - 5, ".onnx") == 0;
}

static int compare(const struct arguments *arguments, const struct asked *asked)
{
    struct lk_comparison comparison = {.relative = 1e-3, .absolute = 1e-5};
    int result = option_real(arguments, "rtol", 0, 1e30, &comparison.relative);
    if (result == DONE)
        result = option_real(arguments, "atol", 0, 1e30, &comparison.absolute);
    if (result != DONE)
        return result;
    const enum lk_status status = lk_compare_onnx(
        arguments->words[0], option_text(arguments, "compare"), &asked->options, &comparison);
    if (status != LK_OK) {
        result = failed(status);
        return result == USAGE ? BAD_INPUT : result;
    }
    if (comparison.difference[0]) {
        terminal_print(comparison.difference, 0);
        printf("\n");
        return FAILED;
    }
    printf("all outputs are near%s\n",
           comparison.computes ? "" : "; they follow from whole numbers, nothing was run");
    return DONE;
}

static int run_onnx(const struct arguments *arguments, const struct asked *asked)
{
    const char *folder = option_text(arguments, "output");
    if (asked->compares)
        return compare(arguments, asked);
    const enum lk_status status =
        lk_run_onnx(arguments->words[0], asked->files, asked->file_count, folder,
                    option_given(arguments, "force"), &asked->options);
    return status == LK_OK ? DONE : failed(status);
}

static int run(const struct arguments *arguments)
{
    struct asked asked = {0};
    if (arguments->word_count != 1)
        return wrong_usage(arguments->command, "needs one model, found %d words",
                           arguments->word_count);
    int result = parse(arguments, &asked);
    if (result == DONE)
        result = train_model_settings(arguments, &asked.settings);
    asked.options.settings = asked.settings;
    if (result == DONE && asked.compares && !is_onnx(arguments->words[0]))
        result = wrong_usage(arguments->command, "compares what FILE.onnx computes");
    else if (result == DONE)
        result = is_onnx(arguments->words[0]) ? run_onnx(arguments, &asked)
                                              : compute(arguments, &asked);
    for (int i = 0; i < asked.file_count; i++)
        free(asked.names[i]);
    free(asked.names);
    free(asked.files);
    free(asked.taps);
    lk_settings_destroy(asked.settings);
    return result;
}

static const struct option options[] = {
    {"input", "NAME=FILE", "array of an input, .npy; the first axis is the batch"},
    {"output", "DIR", "where each value becomes NAME.npy, float32"},
    {"compare", "DIR",
     "of FILE.onnx: compute DIR/input_0.pb ... and compare with DIR/output_0.pb ..."},
    {"rtol", "R", "how near: |a - b| <= atol + rtol |b| (default 1e-3)"},
    {"atol", "A", "see --rtol (default 1e-5)"},
    {"tap", "NAME", "also the value of this entry or input; may be repeated"},
    {"weights", "FILE", "take the weights from this file"},
    {"set", "KEY=VALUE",
     "of a model that is no run: input=[96,96,3], classes=6, or one of its parameters"},
    {"seed", "N", "of first weights, where the model has none (default 0)"},
    {"batch-size", "N", "samples computed at a time (default 16)"},
    {"math", "strict|normal|fast", "algorithms of a model that is no run (default strict)"},
    {"device", "LIST", "device to use; 'lockstep devices' lists them"},
    {"force", NULL, "replace files that are there already"},
    {0},
};

static const struct example examples[] = {
    {"lockstep run net.yaml --input image=x.npy --output values --tap conv2d_1",
     "the output of a model with first weights, and that of its first layer"},
    {"lockstep run out --input x.npy --output values", "of a trained model"},
    {"lockstep run net.onnx --input image=x.pb --output values", "of a model of ONNX"},
    {"lockstep run net.onnx --compare test_data_set_0",
     "whether it computes what it should: 0 yes, 1 no, 3 an operator is not supported"},
    {0},
};

const struct command run_command = {
    .name = "run",
    .usage = "MODEL|DIR|RUN|FILE.onnx --input NAME=FILE ... --output DIR [options]",
    .help = "compute a model's outputs, and values within it, on arrays of numbers",
    .options = options,
    .examples = examples,
    .run = run,
};

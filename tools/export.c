/* lockstep export: writes the weights of a run, or all of its model, for other programs; or a
 * bundle, all that predicts in one folder. */
#include "command.h"
#include "terminal/terminal.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Beside FILE.ENDING, or FILE.weights.h5, it is FILE.vocabulary.json. */
static void name_vocabulary(const char *output, char name[4096])
{
    static const char *const endings[] = {".safetensors", ".weights.h5", ".h5"};
    size_t length = strlen(output);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        const size_t bytes = strlen(endings[i]);
        if (length > bytes && output[length - bytes - 1] != '/' &&
            strcmp(output + length - bytes, endings[i]) == 0) {
            length -= bytes;
            break;
        }
    }
    snprintf(name, 4096, "%.*s.vocabulary.json", (int)(length < 4000 ? length : 4000), output);
}

static bool ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text), bytes = strlen(end);
    return length > bytes && strcmp(text + length - bytes, end) == 0;
}

/* A whole number of 1 to `most`; 0: not given, -1: something else. */
static long read_number(const struct arguments *arguments, const char *option, long most)
{
    const char *text = option_text(arguments, option);
    char *end;
    if (!text)
        return 0;
    const long number = strtol(text, &end, 10);
    return *text >= '0' && *text <= '9' && *end == '\0' && number >= 1 && number <= most
               ? number
               : -1;
}

static int export_onnx(const struct arguments *arguments, const char *to)
{
    const char *batch = option_text(arguments, "batch");
    const bool is_open = !batch || strcmp(batch, "dynamic") == 0;
    const long length = is_open ? 0 : read_number(arguments, "batch", 1 << 20);
    const long operators = read_number(arguments, "opset", 999);
    if (length < 0)
        return wrong_usage(arguments->command,
                           "option '--batch' needs a number of 1 to 1048576, or dynamic, found "
                           "'%s'",
                           batch);
    if (operators < 0)
        return wrong_usage(arguments->command,
                           "option '--opset' needs a whole number such as 17, found '%s'",
                           option_text(arguments, "opset"));
    const struct lk_onnx_options how = {.batch = length,
                                        .operators = (int)operators,
                                        .preprocess = option_given(arguments, "preprocess"),
                                        .fold = option_given(arguments, "fold")};
    const enum lk_status status = lk_onnx_export(arguments->words[0], to, &how);
    if (status != LK_OK)
        return failed(status);
    terminal_print(to, 0);
    printf("\n");
    return DONE;
}

static int export_bundle(const struct arguments *arguments, const char *to)
{
    const enum lk_status status =
        lk_bundle_export(arguments->words[0], to, option_given(arguments, "force"));
    if (status != LK_OK)
        return failed(status);
    terminal_print(to, 0);
    printf(": a bundle\n");
    return DONE;
}

/* "model/", or a folder that is there. */
static bool is_folder(const char *name)
{
    struct stat about;
    const size_t length = strlen(name);
    return (length > 0 && name[length - 1] == '/') ||
           (stat(name, &about) == 0 && S_ISDIR(about.st_mode));
}

static int run(const struct arguments *arguments)
{
    char vocabulary[4096];
    bool has_vocabulary = false;
    const char *format = option_text(arguments, "format"),
               *to = option_text(arguments, "output");
    const char *names = option_text(arguments, "names");
    const bool is_keras = format && strcmp(format, "keras-h5") == 0;
    if (arguments->word_count != 1)
        return wrong_usage(arguments->command,
                           "needs one RUN directory or CHECKPOINT file, found %d words",
                           arguments->word_count);
    if (!to)
        return wrong_usage(arguments->command, "needs --output FILE or DIR/");
    if (format ? strcmp(format, "onnx") == 0 : ends_with(to, ".onnx"))
        return export_onnx(arguments, to);
    if (format ? strcmp(format, "bundle") == 0 : is_folder(to))
        return export_bundle(arguments, to);
    if (!format || (!is_keras && strcmp(format, "safetensors") != 0))
        return wrong_usage(
            arguments->command,
            "option '--format' needs bundle, safetensors, keras-h5 or onnx, found '%s'",
            format ? format : "nothing");
    const struct lk_weights_export_options how = {
        .kind = is_keras ? LK_WEIGHTS_KERAS_H5 : LK_WEIGHTS_SAFETENSORS,
        .names = names,
        .vocabulary = vocabulary,
        .may_replace = option_given(arguments, "force")};
    name_vocabulary(to, vocabulary);
    const enum lk_status status =
        lk_weights_export_with(arguments->words[0], to, &how, &has_vocabulary);
    if (status != LK_OK)
        return failed(status);
    terminal_print(to, 0);
    printf("\n");
    if (has_vocabulary) {
        terminal_print(vocabulary, 0);
        printf(": the vocabulary of its texts\n");
    }
    return DONE;
}

static const struct option options[] = {
    {"format", "bundle|safetensors|keras-h5|onnx",
     "onnx where the output's name ends in .onnx, bundle where it ends in /"},
    {"output", "FILE",
     "where it is written; a file that is there is replaced. Of a bundle: DIR/"},
    {"names", "NAMES", "lockstep, torchvision, keras, or pytorch: our layers as PyTorch's"},
    {"batch", "N|dynamic", "of onnx: the length of the batch; dynamic, unless given: any"},
    {"opset", "N", "of onnx: the version of its operators, 13 to 28; 17 unless given"},
    {"preprocess", NULL, "of onnx: images are uint8 [n, h, w, c], normalized by the graph"},
    {"fold", NULL, "of onnx: batch norms become part of the convolutions before them"},
    {"force", NULL, "replace another vocabulary, or a bundle, that is there already"},
    {0},
};

static const struct example examples[] = {
    {"lockstep export out -o model/", "a bundle: all that predicts, in one folder"},
    {"lockstep export out --format safetensors --output out.safetensors --names torchvision",
     "for PyTorch: torchvision's model of that name loads it"},
    {"lockstep export out --output out.onnx", "the model as well, for onnxruntime and others"},
    {"lockstep export out -o out.onnx --preprocess --fold",
     "pixels in, probabilities out, with fewer operators"},
    {"lockstep export out --format keras-h5 --output out.h5", "for TensorFlow"},
    {0},
};

const struct command export_command = {
    .name = "export",
    .usage = "RUN|CHECKPOINT --output FILE [options]",
    .help = "write a run's weights, or its model, as a bundle or for other programs",
    .options = options,
    .examples = examples,
    .run = run,
};

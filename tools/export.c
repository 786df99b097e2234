/* lockstep export: writes the weights of a run for other programs. */
#include "command.h"
#include "terminal/terminal.h"
#include <stdio.h>
#include <string.h>

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
        return wrong_usage(arguments->command, "needs --output FILE");
    if (!format || (!is_keras && strcmp(format, "safetensors") != 0))
        return wrong_usage(arguments->command,
                           "option '--format' needs safetensors or keras-h5, found '%s'",
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
    {"format", "safetensors|keras-h5", "of the file"},
    {"output", "FILE", "where it is written; a file that is there is replaced"},
    {"names", "NAMES", "lockstep, torchvision, keras, or pytorch: our layers as PyTorch's"},
    {"force", NULL, "replace another vocabulary that is there already"},
    {0},
};

static const struct example examples[] = {
    {"lockstep export out --format safetensors --output out.safetensors --names torchvision",
     "for PyTorch: torchvision's model of that name loads it"},
    {"lockstep export out --format keras-h5 --output out.h5", "for TensorFlow"},
    {0},
};

const struct command export_command = {
    .name = "export",
    .usage = "RUN|CHECKPOINT --format FORMAT --output FILE [options]",
    .help = "write a run's weights for PyTorch or TensorFlow",
    .options = options,
    .examples = examples,
    .run = run,
};

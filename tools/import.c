/* lockstep import: makes model text and weights of a model of ONNX or Keras. */
#include "command.h"
#include "terminal/terminal.h"
#include <inttypes.h>
#include <stdio.h>

static int parse(const struct arguments *arguments, struct lk_import_options *o)
{
    const char *text = option_text(arguments, "size");
    char more;
    o->may_replace = option_given(arguments, "force");
    if (text && (sscanf(text, "%dx%d%c", &o->height, &o->width, &more) != 2 || o->height < 1 ||
                 o->width < 1))
        return wrong_usage(arguments->command,
                           "option '--size' needs height x width such as 224x224, found '%s'",
                           text);
    return DONE;
}

static void print_report(const char *folder, const struct lk_import_report *report)
{
    terminal_print(folder, 0);
    printf("/model.yaml: %d layers, %" PRId64 " parameters\n", report->layers,
           report->parameters);
    terminal_print(folder, 0);
    if (report->has_weights)
        printf("/weights.safetensors: %d arrays\n", report->arrays);
    else
        printf(" has no weights: the file has a model alone\n");
}

static int run(const struct arguments *arguments)
{
    struct lk_import_options options = {0};
    struct lk_import_report report;
    const char *folder = option_text(arguments, "output");
    if (arguments->word_count != 1)
        return wrong_usage(arguments->command, "needs one FILE, found %d words",
                           arguments->word_count);
    if (!folder)
        return wrong_usage(arguments->command, "needs -o DIR for what it makes");
    const int result = parse(arguments, &options);
    if (result != DONE)
        return result;
    const enum lk_status status = lk_import(arguments->words[0], folder, &options, &report);
    if (status != LK_OK)
        return failed(status);
    print_report(folder, &report);
    return DONE;
}

static const struct option options[] = {
    {"output", "DIR", "where model.yaml and weights.safetensors are written"},
    {"size", "HEIGHTxWIDTH", "of images, where the model leaves it open"},
    {"force", NULL, "replace files that are there already"},
    {0},
};

static const struct example examples[] = {
    {"lockstep import model.onnx -o net", "a model of ONNX, as PyTorch exports it"},
    {"lockstep import model.keras -o net", "a model of Keras, with its weights"},
    {"lockstep import net.json -o net --size 224x224",
     "the model alone, for images of that size"},
    {0},
};

const struct command import_command = {
    .name = "import",
    .usage = "FILE -o DIR [options]",
    .help = "turn a model of ONNX or Keras into model text and weights",
    .options = options,
    .examples = examples,
    .run = run,
};

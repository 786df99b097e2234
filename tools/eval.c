/* lockstep eval: loss, accuracy and per-class figures of a trained model. */
#include "command.h"
#include "figures.h"
#include "terminal/table.h"
#include "terminal/terminal.h"
#include "train/train.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { STANDARD_BATCH = 512 };

/* Room for the longest name of what print_outputs() prints. */
static int figure_width(const struct lk_evaluation *e)
{
    int width = 8;
    for (int i = 0; i < e->output_count; i++) {
        const struct lk_output_evaluation *o = &e->outputs[i];
        const int columns = e->output_count > 1 ? terminal_width(o->name) : 0;
        width = columns > width ? columns : width;
        for (int m = 0; m < o->figure_count && e->output_count == 1; m++)
            if ((int)strlen(o->figures[m].name) > width)
                width = (int)strlen(o->figures[m].name);
    }
    return width;
}

/* The metrics of one output, a line each; of several a line each with its loss. */
static void print_outputs(const struct lk_evaluation *e, int width)
{
    char text[512];
    for (int i = 0; i < e->output_count && e->output_count > 1; i++)
        if (e->outputs[i].loss_name) {
            output_text(&e->outputs[i], text, sizeof text);
            const int more = width - terminal_width(e->outputs[i].name);
            print_lines("%s%*s  %s\n", e->outputs[i].name, more > 0 ? more : 0, "", text);
        }
    for (int i = 0; i < e->outputs[0].figure_count && e->output_count == 1; i++)
        printf("%-*s  %s\n", width, e->outputs[0].figures[i].name,
               figure_text(&e->outputs[0].figures[i], text));
}

static void print(const struct lk_evaluation *e)
{
    int width = figure_width(e);
    printf("%-*s  %" PRId64 "\n%-*s  %.6f\n", width, "samples", e->samples, width, "loss",
           e->loss);
    print_outputs(e, width);
    if (!e->confusion)
        return;
    width = 5;
    for (int i = 0; i < e->classes; i++) {
        const int columns = terminal_width(class_figures_of(e, i).name);
        width = columns > width ? columns : width;
    }
    width = width > 40 ? 40 : width;
    const struct table_column columns[] = {
        {"class", 0, width, .is_left = true, .is_name = true},
        {"samples", 2, 9, .rank = 1},
        {"precision", 2, .width = 9},
        {"recall", 2, .width = 9},
    };
    struct table table;
    printf("\n");
    table_start(&table, columns, 4);
    for (int i = 0; i < e->classes; i++) {
        const struct class_figures f = class_figures_of(e, i);
        table_cell(&table, "%s", f.name);
        table_cell(&table, "%" PRId64, f.count);
        table_cell(&table, "%.2f %%", 100 * f.precision);
        table_cell(&table, "%.2f %%", 100 * f.recall);
    }
    table_end(&table);
}

static json_t *as_json(const struct lk_evaluation *e)
{
    json_t *classes = json_array(), *confusion = json_array();
    for (int i = 0; i < e->classes; i++) {
        const struct class_figures f = class_figures_of(e, i);
        json_array_append_new(classes,
                              json_pack("{s:o, s:I, s:f, s:f}", "name", json_text(f.name),
                                        "samples", (json_int_t)f.count, "precision",
                                        f.precision, "recall", f.recall));
        json_t *row = json_array();
        for (int j = 0; j < e->classes; j++)
            json_array_append_new(row, json_integer(e->confusion[(int64_t)i * e->classes + j]));
        json_array_append_new(confusion, row);
    }
    return json_pack("{s:I, s:o, s:o, s:f, s:o, s:o, s:o}", "samples", (json_int_t)e->samples,
                     "loss", json_number(e->loss), "accuracy", json_number(e->accuracy),
                     "seconds", e->seconds, "classes", classes, "confusion", confusion,
                     "outputs", outputs_json(e));
}

/* Evaluates what training validated with, or the part that is asked for. */
static enum lk_status evaluate(const struct arguments *arguments,
                               struct lk_predictor *predictor, struct lk_evaluation *evaluation)
{
    const char *data = option_text(arguments, "data"), *part = option_text(arguments, "part");
    if (!part)
        return lk_predictor_evaluate(predictor, data, evaluation);
    const enum lk_data_part kind = strcmp(part, "train") == 0  ? LK_DATA_TRAIN
                                   : strcmp(part, "test") == 0 ? LK_DATA_TEST
                                                               : LK_DATA_VALIDATION;
    return lk_predictor_evaluate_part(predictor, data, kind, evaluation);
}

static enum lk_status set(struct lk_settings *settings, const char *name, const char *value)
{
    return value ? lk_settings_set(settings, name, value) : LK_OK;
}

/* Opens a model, or the model of a run, with the weights of a file. */
static int open_weights(const struct arguments *arguments, int64_t batch,
                        struct lk_predictor **predictor)
{
    char number[32];
    struct lk_settings *settings = NULL;
    snprintf(number, sizeof number, "%" PRId64, batch);
    enum lk_status made = lk_settings_create(&settings);
    if (made != LK_OK)
        return failed(made);
    const char *const values[][2] = {
        {"model", arguments->words[0]},
        {"data", option_text(arguments, "data")},
        {"weights", option_text(arguments, "weights")},
        {"skip_mismatch", option_given(arguments, "skip-mismatch") ? "true" : NULL},
        {"device", option_text(arguments, "device")},
        {"batch_size", number},
    };
    for (size_t i = 0; i < sizeof values / sizeof *values && made == LK_OK; i++)
        made = set(settings, values[i][0], values[i][1]);
    int status = made == LK_OK ? train_set_pairs(arguments, settings) : failed(made);
    if (status == DONE) {
        made = lk_predictor_open_weights(settings, predictor);
        status = made == LK_OK ? DONE : failed(made);
    }
    lk_settings_destroy(settings);
    return status;
}

static int open_predictor(const struct arguments *arguments, int64_t batch,
                          struct lk_predictor **predictor)
{
    if (option_given(arguments, "weights"))
        return open_weights(arguments, batch, predictor);
    if (option_given(arguments, "set") || option_given(arguments, "skip-mismatch"))
        return wrong_usage(arguments->command, "--set and --skip-mismatch are for --weights");
    const enum lk_status made = lk_predictor_open(
        arguments->words[0], option_text(arguments, "device"), batch, predictor);
    return made == LK_OK ? DONE : failed(made);
}

static int run(const struct arguments *arguments)
{
    int64_t batch = STANDARD_BATCH;
    const char *part = option_text(arguments, "part");
    if (arguments->word_count != 1)
        return wrong_usage(arguments->command,
                           "needs one RUN directory, CHECKPOINT file or MODEL, found %d words",
                           arguments->word_count);
    if (part && strcmp(part, "train") != 0 && strcmp(part, "val") != 0 &&
        strcmp(part, "test") != 0)
        return wrong_usage(arguments->command,
                           "option '--part' needs train, val or test, found '%s'", part);
    struct lk_predictor *predictor = NULL;
    struct lk_evaluation evaluation;
    int status = option_number(arguments, "batch-size", 1, 1 << 24, &batch);
    if (status == DONE)
        status = open_predictor(arguments, batch, &predictor);
    if (status != DONE)
        return status;
    const enum lk_status made = evaluate(arguments, predictor, &evaluation);
    if (made != LK_OK)
        status = failed(made);
    else if (option_given(arguments, "json"))
        status = json_print(as_json(&evaluation), JSON_INDENT(2));
    else
        print(&evaluation);
    lk_predictor_close(predictor);
    return status;
}

static const struct option options[] = {
    {"data", "SPEC", "data whose test part counts; default: what it was validated with"},
    {"part", "train|val|test", "this part of the data; default: what training validated with"},
    {"weights", "FILE", "of a MODEL, or in place of the run's: of another program too"},
    {"skip-mismatch", NULL, "leave what of weights does not fit the model as initialized"},
    {"set", "KEY=VALUE",
     "of a MODEL: any setting of training, such as classes, input, pipeline"},
    {"device", "LIST", "device to use; 'lockstep devices' lists them"},
    {"batch-size", "N", "samples at a time (default 512)"},
    {"json", NULL, "print JSON, with the confusion matrix (rows: truth)"},
    {0},
};

static const struct example examples[] = {
    {"lockstep eval out", "the newest checkpoint, on what it was validated with"},
    {"lockstep eval vgg16 --weights vgg16.h5 --data folder:photos",
     "a model of the zoo with weights of Keras"},
    {"lockstep eval out --data folder:more-photos --json", "on other data, as JSON"},
    {0},
};

const struct command eval_command = {
    .name = "eval",
    .usage = "RUN|CHECKPOINT|MODEL [options]",
    .help = "measure a trained model: loss, accuracy, precision and recall of each class",
    .options = options,
    .examples = examples,
    .run = run,
};

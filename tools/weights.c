/* lockstep weights: what a file of weights holds. */
#include "command.h"
#include "help/pages.h"
#include "terminal/json.h"
#include "terminal/terminal.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    SHAPE_COLUMNS = 20,
    FIGURE_COLUMNS = 43, /* of all columns behind the name */
    MOST_WIDTH = 100     /* of names: one of any length must not fill every line */
};

struct array {
    struct lk_weights_array info;
    double mean, deviation;
};

static enum lk_status read_array(const struct lk_weights_file *file, int index,
                                 struct array *array)
{
    return lk_weights_array(file, index, &array->info)
               ? lk_weights_measure(file, index, &array->mean, &array->deviation)
               : LK_OK;
}

static const char *shape_text(const struct lk_weights_array *array, char text[192])
{
    int used = snprintf(text, 192, "[");
    for (int i = 0; i < array->rank; i++)
        used += snprintf(text + used, 192 - (size_t)used, "%s%" PRId64, i ? ", " : "",
                         array->shape[i]);
    snprintf(text + used, 192 - (size_t)used, "]");
    return text;
}

static int name_width(const struct lk_weights_file *file)
{
    struct lk_weights_array array;
    int width = 4;
    for (int i = 0; lk_weights_array(file, i, &array); i++)
        if (terminal_width(array.name) > width)
            width = terminal_width(array.name);
    return width;
}

/* Without the sign that some operations give to what is no number. */
static double unsigned_nan(double figure)
{
    return isnan(figure) ? NAN : figure;
}

/* One line an array where its name leaves room for the figures, else they stand in a line of
 * their own. */
static void print_array(const struct array *array, int all)
{
    char shape[192];
    const int width = terminal_width(array->info.name) <= all ? all : 0;
    if (width > 0)
        terminal_print(array->info.name, width);
    else {
        terminal_print(array->info.name, 0);
        printf("\n  ");
    }
    printf("  %-*s  %-4s", width > 0 ? SHAPE_COLUMNS : 0, shape_text(&array->info, shape),
           array->info.type);
    printf(width > 0 ? "  %10.4g  %9.4g\n" : "  %.4g  %.4g\n", unsigned_nan(array->mean),
           unsigned_nan(array->deviation));
}

static enum lk_status print(const struct lk_weights_file *file)
{
    struct array array;
    const int all = name_width(file);
    const bool is_wide = !isatty(STDOUT_FILENO) || all + 4 + FIGURE_COLUMNS <= stdout_columns();
    const int width = !is_wide ? 0 : all < MOST_WIDTH ? all : MOST_WIDTH;
    int64_t count = 0;
    int arrays = 0;
    if (width > 0)
        printf("%-*s  %-*s  %-4s  %10s  %9s\n", width, "name", SHAPE_COLUMNS, "shape", "type",
               "mean", "deviation");
    else
        printf("name\n    shape  type  mean  deviation\n");
    for (; lk_weights_array(file, arrays, &array.info); arrays++) {
        const enum lk_status status = read_array(file, arrays, &array);
        if (status != LK_OK)
            return status;
        print_array(&array, width);
        count += array.info.count;
    }
    printf("\n%s, %d arrays, %" PRId64 " numbers\n", lk_weights_format(file), arrays, count);
    return LK_OK;
}

static json_t *array_json(const struct array *array)
{
    json_t *shape = json_array();
    for (int i = 0; i < array->info.rank; i++)
        json_array_append_new(shape, json_integer(array->info.shape[i]));
    return json_pack("{s:o, s:o, s:s, s:o, s:o}", "name", json_text(array->info.name), "shape",
                     shape, "type", array->info.type, "mean", json_number(array->mean),
                     "deviation", json_number(array->deviation));
}

static int print_json(const struct lk_weights_file *file)
{
    json_t *list = json_array();
    struct array array;
    for (int i = 0; lk_weights_array(file, i, &array.info); i++) {
        const enum lk_status status = read_array(file, i, &array);
        if (status != LK_OK) {
            json_decref(list);
            return failed(status);
        }
        json_array_append_new(list, array_json(&array));
    }
    return json_print(
        json_pack("{s:s, s:o}", "format", lk_weights_format(file), "arrays", list),
        JSON_INDENT(2));
}

static int run(const struct arguments *arguments)
{
    struct lk_weights_file *file = NULL;
    if (arguments->word_count != 1)
        return wrong_usage(arguments->command, "needs one FILE, found %d words",
                           arguments->word_count);
    enum lk_status status = lk_weights_open(arguments->words[0], &file);
    int result = DONE;
    if (status == LK_OK && option_given(arguments, "json"))
        result = print_json(file);
    else if (status == LK_OK)
        status = print(file);
    lk_weights_close(file);
    return status == LK_OK ? result : failed(status);
}

static const struct option options[] = {
    {"json", NULL, "print JSON"},
    {0},
};

static const struct example examples[] = {
    {"lockstep weights mobilenet-v2.pt", "what a file of PyTorch holds"},
    {"lockstep weights vgg16.weights.h5 --json", "names, shapes and figures, as JSON"},
    {0},
};

const struct command weights_command = {
    .name = "weights",
    .usage = "FILE [options]",
    .help = "list what a file of weights holds: name, shape, type, mean and deviation of each "
            "array",
    .options = options,
    .examples = examples,
    .run = run,
};

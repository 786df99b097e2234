/* Reads the outputs of a model text, and what they are trained for and judged by: `output:`,
 * `loss:` and `metrics:`. */
#include "base/fail.h"
#include "model/text/reading.h"
#include <stdio.h>
#include <string.h>

enum { OPTIONS_BYTES = 1024 };

/* --- what is predicted, and the form of its targets -------------------------------------- */

static bool suits(const struct lk_metric_kind *kind, enum lk_metric_form form)
{
    return kind->forms >> form & 1;
}

/* What an output predicts: probabilities of the classes in its last axis, or else numbers. */
static void measure(struct lk_model_output *output, enum lk_metric_form form)
{
    const struct lk_shape *y = &output->node->shapes.y;
    const int64_t count = lk_shape_count(y), width = y->rank ? y->dim[y->rank - 1] : 1;
    const bool is_class = form == LK_FORM_CLASS || form == LK_FORM_DISTRIBUTION;
    output->shape = (struct lk_metric_shape){form, is_class ? count / width : 1,
                                             is_class ? width : count, 0.5F};
}

/* --- which nodes ------------------------------------------------------------------------- */

/* The name that the text has for a node: an activation has that of the entry before it. */
static const char *name_of(const struct lk_reading *reading, const struct lk_yaml *value,
                           const struct lk_node *node)
{
    if (value)
        return value->text;
    for (int i = 0; i < reading->count; i++)
        if (reading->layers[i].last == node && lk_yaml_find(reading->layers[i].entry, "name"))
            return reading->layers[i].first->name;
    return node->name;
}

static enum lk_status add_output(struct lk_reading *reading, const char *name,
                                 const struct lk_yaml *value)
{
    struct lk_model *model = reading->model;
    struct lk_node *node = reading->before;
    if (model->output_count == LK_MOST_OUTPUTS)
        return lk_yaml_fail(value, "more than %d outputs", LK_MOST_OUTPUTS);
    if (value)
        LK_TRY(lk_layer_find(reading, value, &node));
    for (int i = 0; i < model->output_count; i++)
        if (model->outputs[i].node == node)
            return lk_yaml_fail(value, "'%s' is an output twice", node->name);
    struct lk_model_output *output = &model->outputs[model->output_count];
    *output = (struct lk_model_output){.node = node, .weight = 1};
    measure(output, LK_FORM_VALUES);
    LK_TRY(lk_arena_text(&model->arena, name ? name : node->name, &output->name));
    LK_TRY(lk_arena_text(&model->arena, name ? name : name_of(reading, value, node),
                         &output->said));
    model->output_count++;
    return LK_OK;
}

/* Sets *are_named where `loss:` and `metrics:` speak of each output by its name. */
static enum lk_status read_nodes(struct lk_reading *reading, const struct lk_yaml *root,
                                 bool *are_named)
{
    const struct lk_yaml *value = lk_yaml_find(root, "output");
    *are_named = value && value->kind != LK_YAML_SCALAR;
    if (!*are_named)
        return add_output(reading, NULL, value);
    if (value->count == 0)
        return lk_yaml_fail(value, "'output' names no layer");
    for (const struct lk_yaml *entry = value->first; entry; entry = entry->next)
        LK_TRY(add_output(reading, entry->key, entry));
    return LK_OK;
}

/* --- a loss or metric: a name, or {name: {options}} -------------------------------------- */

struct figure {
    const struct lk_yaml *name_at;
    const struct lk_metric_kind *kind;
    char options[OPTIONS_BYTES]; /* as lk_metric_create() takes them */
    const struct lk_yaml *weight, *target;
};

static enum lk_status add_option(const struct lk_reading *reading, const struct lk_yaml *option,
                                 struct figure *figure)
{
    char value[256];
    double tried[16]; /* room for the options of any kind */
    const size_t used = strlen(figure->options);
    LK_TRY(lk_layer_value(reading, option, value, sizeof value));
    if (figure->kind->options_bytes > sizeof tried)
        return lk_yaml_fail(option, "%s has too many options", figure->kind->name);
    LK_TRY(lk_yaml_at(option, lk_option_set(figure->kind->options, tried, option->key, value)));
    if ((size_t)snprintf(figure->options + used, OPTIONS_BYTES - used, "%s=\"%s\" ",
                         option->key, value) >= OPTIONS_BYTES - used)
        return lk_yaml_fail(option, "%s: too many options", figure->kind->name);
    return LK_OK;
}

static enum lk_status read_figure(const struct lk_reading *reading, const struct lk_yaml *value,
                                  bool is_loss, struct figure *figure)
{
    char found[80];
    const struct lk_yaml *at = value;
    *figure = (struct figure){0};
    if (value->kind == LK_YAML_MAP && value->count == 1)
        at = value->first;
    else if (value->kind != LK_YAML_SCALAR || value->is_null)
        return lk_yaml_fail(value, "a name or {name: {options}} expected, found %s",
                            lk_yaml_found(value, found, sizeof found));
    LK_TRY(lk_yaml_at(at, lk_metric_find(at == value ? value->text : at->key, &figure->kind)));
    figure->name_at = at;
    if (at == value || (at->kind == LK_YAML_SCALAR && at->is_null))
        return LK_OK;
    if (at->kind != LK_YAML_MAP)
        return lk_yaml_fail(at, "%s takes {option: value, ...}, found %s", figure->kind->name,
                            lk_yaml_found(at, found, sizeof found));
    for (const struct lk_yaml *option = at->first; option; option = option->next) {
        if (is_loss && strcmp(option->key, "weight") == 0)
            figure->weight = option;
        else if (is_loss && strcmp(option->key, "target") == 0)
            figure->target = option;
        else
            LK_TRY(add_option(reading, option, figure));
    }
    return LK_OK;
}

/* "top_k(k=2)", of options as they are kept: `k="2" `. */
static void make_label(const struct figure *figure, char label[OPTIONS_BYTES])
{
    size_t used = (size_t)snprintf(label, OPTIONS_BYTES, "%s", figure->kind->name);
    const char *from = figure->options;
    for (char before = '('; *from && used + 3 < OPTIONS_BYTES; from++) {
        if (*from == '"')
            continue;
        if (*from == ' ' && !from[1])
            break;
        if (before) {
            label[used++] = before;
            before = '\0';
        }
        label[used++] = *from == ' ' ? ',' : *from;
    }
    if (*figure->options)
        label[used++] = ')';
    label[used] = '\0';
}

static enum lk_status keep(struct lk_model *model, const struct figure *figure,
                           struct lk_model_metric *kept)
{
    char label[OPTIONS_BYTES];
    make_label(figure, label);
    kept->kind = figure->kind;
    LK_TRY(lk_arena_text(&model->arena, label, &kept->label));
    return lk_arena_text(&model->arena, figure->options, &kept->options);
}

/* Whether the options and the output's form suit: makes the metric once, so that a message can
 * name the line. */
static enum lk_status try_metric(const struct figure *figure,
                                 const struct lk_metric_shape *shape)
{
    struct lk_metric *metric = NULL;
    const enum lk_status status =
        lk_metric_create(figure->kind, figure->options, shape, &metric);
    lk_metric_destroy(metric);
    return lk_yaml_at(figure->name_at, status);
}

/* --- the form of targets ----------------------------------------------------------------- */

static enum lk_status read_target(const struct lk_reading *reading, const struct figure *figure,
                                  int *target)
{
    static const char *const names[] = {"by loss", "class", "numbers", NULL};
    static const struct lk_option table[] = {
        {.name = "target", .kind = LK_OPTION_CHOICE, .standard = "by loss", .choices = names},
        {0}};
    char text[64];
    lk_options_default(table, target);
    if (!figure->target)
        return LK_OK;
    LK_TRY(lk_layer_value(reading, figure->target, text, sizeof text));
    return lk_yaml_at(figure->target, lk_option_set(table, target, "target", text));
}

static enum lk_status choose_form(const struct lk_reading *reading, const struct figure *figure,
                                  struct lk_model_output *output)
{
    enum { BY_LOSS, CLASS, NUMBERS };
    const struct lk_metric_kind *kind = figure->kind;
    const bool is_single = lk_shape_count(&output->node->shapes.y) == 1;
    const int rank = output->node->shapes.y.rank;
    int target = BY_LOSS;
    LK_TRY(read_target(reading, figure, &target));
    if (target == CLASS && !kind->takes_class)
        return lk_yaml_fail(figure->target, "%s compares with numbers, not with a class",
                            kind->name);
    if (suits(kind, LK_FORM_CLASS)) {
        if (is_single || rank > 2)
            return lk_yaml_fail(figure->name_at,
                                "%s takes a probability for each class, [k] or [t, k], which "
                                "output '%s' is not",
                                kind->name, output->name);
        measure(output, target == NUMBERS ? LK_FORM_DISTRIBUTION : LK_FORM_CLASS);
    } else if (suits(kind, LK_FORM_VALUES) && target != CLASS) {
        measure(output, LK_FORM_VALUES);
    } else {
        if (target == CLASS && !is_single)
            return lk_yaml_fail(figure->target,
                                "a class, yes or no, is the target of one number, output '%s' "
                                "has more",
                                output->name);
        const bool is_choice = target == CLASS || (target == BY_LOSS && is_single);
        measure(output, is_choice ? LK_FORM_CHOICE : LK_FORM_UNITS);
    }
    output->shape.border = kind->border;
    return LK_OK;
}

/* --- loss and metrics -------------------------------------------------------------------- */

static enum lk_status read_loss(struct lk_reading *reading, const struct lk_yaml *value,
                                struct lk_model_output *output)
{
    static const struct lk_option table[] = {
        {.name = "weight", .kind = LK_OPTION_REAL, .min = 0, .max = 1e30}, {0}};
    struct figure figure;
    const struct lk_op *op = NULL;
    char text[64];
    LK_TRY(read_figure(reading, value, true, &figure));
    if (lk_op_find(figure.kind->name, &op) != LK_OK) {
        lk_error_clear();
        return lk_yaml_fail(figure.name_at, "%s is a metric, but nothing to train for",
                            figure.kind->name);
    }
    LK_TRY(choose_form(reading, &figure, output));
    LK_TRY(try_metric(&figure, &output->shape));
    if (figure.weight) {
        LK_TRY(lk_layer_value(reading, figure.weight, text, sizeof text));
        LK_TRY(
            lk_yaml_at(figure.weight, lk_option_set(table, &output->weight, "weight", text)));
    }
    return keep(reading->model, &figure, &output->loss);
}

static enum lk_status add_metric(struct lk_reading *reading, const struct lk_yaml *value,
                                 struct lk_model_output *output)
{
    struct figure figure;
    if (output->metric_count == LK_MOST_METRICS)
        return lk_yaml_fail(value, "more than %d metrics", LK_MOST_METRICS);
    LK_TRY(read_figure(reading, value, false, &figure));
    LK_TRY(try_metric(&figure, &output->shape));
    struct lk_model_metric *metric = &output->metrics[output->metric_count];
    LK_TRY(keep(reading->model, &figure, metric));
    for (int i = 0; i < output->metric_count; i++)
        if (strcmp(output->metrics[i].label, metric->label) == 0)
            return lk_yaml_fail(value, "metric %s twice", metric->label);
    output->metric_count++;
    return LK_OK;
}

static enum lk_status read_metrics(struct lk_reading *reading, const struct lk_yaml *value,
                                   struct lk_model_output *output)
{
    if (value->kind != LK_YAML_LIST)
        return add_metric(reading, value, output);
    for (const struct lk_yaml *entry = value->first; entry; entry = entry->next)
        LK_TRY(add_metric(reading, entry, output));
    return LK_OK;
}

/* Where the text says nothing of metrics: accuracy of classes, the mean error of numbers. */
static void add_standard_metric(struct lk_model_output *output)
{
    const struct lk_metric_kind *kind = NULL;
    const bool is_number = output->shape.form == LK_FORM_VALUES;
    if (lk_metric_find(is_number ? "mean_absolute_error" : "accuracy", &kind) == LK_OK)
        output->metrics[output->metric_count++] =
            (struct lk_model_metric){.kind = kind, .options = "", .label = kind->name};
}

/* Calls a function for what stands behind `key`: once for the only output, or for each output
 * by its name. */
static enum lk_status for_each(struct lk_reading *reading, const struct lk_yaml *root,
                               const char *key, bool are_named,
                               enum lk_status (*read)(struct lk_reading *reading,
                                                      const struct lk_yaml *value,
                                                      struct lk_model_output *output))
{
    struct lk_model *model = reading->model;
    const struct lk_yaml *value = lk_yaml_find(root, key);
    const char *names[LK_MOST_OUTPUTS + 1] = {NULL};
    char found[80];
    if (!value)
        return LK_OK;
    if (!are_named)
        return read(reading, value, &model->outputs[0]);
    for (int i = 0; i < model->output_count; i++)
        names[i] = model->outputs[i].name;
    if (value->kind != LK_YAML_MAP)
        return lk_yaml_fail(value, "{output: %s, ...} expected, found %s", key,
                            lk_yaml_found(value, found, sizeof found));
    LK_TRY(lk_yaml_check_keys(value, names));
    for (int i = 0; i < model->output_count; i++) {
        const struct lk_yaml *own = lk_yaml_find(value, names[i]);
        if (own)
            LK_TRY(read(reading, own, &model->outputs[i]));
    }
    return LK_OK;
}

static bool is_class_vector(const struct lk_model_output *output)
{
    const struct lk_shape *shape = &output->node->shapes.y;
    return shape->rank == 1 && shape->dim[0] > 1;
}

enum lk_status lk_output_set_standard(const struct lk_model *model,
                                      struct lk_model_output *output)
{
    char text[96];
    lk_shape_print_hwc(&output->node->shapes.y, text, sizeof text);
    if (!is_class_vector(output))
        return lk_fail(LK_E_MODEL,
                       "model '%s': the output '%s' is %s; without `loss:` an output is a "
                       "vector of at least 2 class probabilities. `loss: cross_entropy` or "
                       "another one in the text says what it is",
                       model->name, output->node->name, text);
    LK_TRY(lk_metric_find("cross_entropy", &output->loss.kind));
    output->loss.options = "";
    output->loss.label = output->loss.kind->name;
    measure(output, LK_FORM_CLASS);
    if (output->metric_count == 0)
        add_standard_metric(output);
    return LK_OK;
}

enum lk_status lk_outputs_read(struct lk_reading *reading, const struct lk_yaml *root)
{
    struct lk_model *model = reading->model;
    const struct lk_yaml *metrics = lk_yaml_find(root, "metrics");
    bool are_named = false;
    LK_TRY(read_nodes(reading, root, &are_named));
    model->says_loss = lk_yaml_find(root, "loss") != NULL;
    for (int i = 0; i < model->output_count && !model->says_loss; i++)
        if (metrics || (are_named && is_class_vector(&model->outputs[i])))
            LK_TRY(lk_yaml_at(root, lk_output_set_standard(model, &model->outputs[i])));
    LK_TRY(for_each(reading, root, "loss", are_named, read_loss));
    for (int i = 0; i < model->output_count && model->says_loss; i++)
        if (!model->outputs[i].loss.kind)
            return lk_yaml_fail(lk_yaml_find(root, "loss"),
                                "output '%s' has no loss; what is not trained is no output",
                                model->outputs[i].name);
    for (int i = 0; i < model->output_count && metrics; i++)
        model->outputs[i].metric_count = 0;
    LK_TRY(for_each(reading, root, "metrics", are_named, read_metrics));
    for (int i = 0; i < model->output_count; i++)
        if (model->outputs[i].loss.kind && model->outputs[i].metric_count == 0)
            add_standard_metric(&model->outputs[i]);
    return LK_OK;
}

/* Binds a model's inputs and targets to the fields of a data set. */
#include "train/evaluation/binding.h"

#include "base/fail.h"
#include "base/log.h"
#include "data/labels.h"
#include "model/classes.h"
#include "train/evaluation/labels.h"
#include <lockstep/train.h>
#include <stdio.h>
#include <string.h>

struct binding {
    const struct lk_model *model;
    const struct lk_data_info *data;
    struct lk_feed *feed;
};

/* --- finding a field --------------------------------------------------------------------- */

/* "image uint8 [28, 28, 1], label int32 []" of the fields with that role. */
static void list_fields(const struct lk_data_info *data, enum lk_field_role role, char *text,
                        size_t bytes)
{
    size_t used = 0;
    snprintf(text, bytes, "none");
    for (int i = 0; i < data->field_count && used < bytes; i++) {
        const struct lk_field *field = &data->fields[i];
        char shape[96];
        lk_shape_print(&field->shape, shape, sizeof shape);
        if (field->role == role)
            used += (size_t)snprintf(text + used, bytes - used, "%s%s %s %s", used ? ", " : "",
                                     field->name, lk_dtype_name(field->dtype), shape);
    }
}

/* Whether a field only holds the length of another one. */
static bool is_length(const struct lk_data_info *data, int index)
{
    for (int i = 0; i < data->field_count; i++)
        if (data->fields[i].length == index)
            return true;
    return false;
}

/* The only field of a role and, unless it is -1, of a type; -1: none or several. */
static int only_field(const struct lk_data_info *data, enum lk_field_role role, int dtype)
{
    int found = -1;
    for (int i = 0; i < data->field_count; i++) {
        const struct lk_field *field = &data->fields[i];
        if (field->role != role || (dtype >= 0 && field->dtype != (enum lk_dtype)dtype) ||
            is_length(data, i))
            continue;
        if (found >= 0)
            return -1;
        found = i;
    }
    return found;
}

/* A node's name has no dot: the input "tokens_length" takes the field "tokens.length". */
static int field_named(const struct lk_data_info *data, const char *name)
{
    static const char ending[] = "_length";
    const size_t length = strlen(name), end = sizeof ending - 1;
    char dotted[96];
    const int field = lk_field_find(data->fields, data->field_count, name);
    if (field >= 0 || length <= end || strcmp(name + length - end, ending) != 0)
        return field;
    snprintf(dotted, sizeof dotted, "%.*s.length", (int)(length - end), name);
    return lk_field_find(data->fields, data->field_count, dotted);
}

static enum lk_status fail_to_find(const struct binding *b, enum lk_field_role role,
                                   const char *what, const char *name)
{
    char list[512];
    list_fields(b->data, role, list, sizeof list);
    return lk_fail(LK_E_SHAPE,
                   "data '%s' has no field for %s '%s' of model '%s', by name or as the only "
                   "one of its kind; there are: %s",
                   b->data->name, what, name, lk_model_name(b->model), list);
}

static enum lk_status add_row(struct binding *b, const struct lk_node *node, int field,
                              bool converts)
{
    if (b->feed->count == LK_MOST_INPUTS)
        return lk_fail(LK_E_UNSUPPORTED, "more than %d inputs and targets", LK_MOST_INPUTS);
    b->feed->rows[b->feed->count++] = (struct lk_feed_row){node, field, converts};
    return LK_OK;
}

/* --- inputs ------------------------------------------------------------------------------ */

/* Images may be larger than the model's input if they are cropped on the way, as a SPEC or a
 * pipeline can ask for. */
static enum lk_status check_image(const struct binding *b, const struct lk_node *node,
                                  const struct lk_field *field)
{
    const struct lk_shape x = node->shapes.y;
    const int64_t *f = field->shape.dim;
    const bool is_same = x.dim[1] == f[0] && x.dim[2] == f[1];
    const bool is_cropped = b->data->decodes && x.dim[1] <= f[0] && x.dim[2] <= f[1];
    if (x.dim[0] == f[2] && (is_same || is_cropped))
        return LK_OK;
    return lk_fail(LK_E_SHAPE,
                   "data '%s' has images of %lldx%lldx%lld, model '%s' expects "
                   "%lldx%lldx%lld; set input and classes in a run file for another size",
                   b->data->name, (long long)f[0], (long long)f[1], (long long)f[2],
                   lk_model_name(b->model), (long long)x.dim[1], (long long)x.dim[2],
                   (long long)x.dim[0]);
}

/* Numbers may have another shape of as many elements: [] and [1], [784] and [28, 28]. */
static enum lk_status check_numbers(const struct binding *b, const struct lk_node *node,
                                    const struct lk_field *field, bool *converts)
{
    const struct lk_input *input = &node->input;
    const int64_t count = lk_shape_count(&input->shape);
    char wanted[96], found[96];
    *converts = input->dtype == LK_F32 && field->dtype == LK_I32 && count == 1;
    const bool is_same = input->dtype == LK_F32 ? lk_shape_count(&field->shape) == count
                                                : lk_shape_equal(&field->shape, &input->shape);
    if (is_same && (field->dtype == input->dtype || *converts))
        return LK_OK;
    lk_shape_print(&input->shape, wanted, sizeof wanted);
    lk_shape_print(&field->shape, found, sizeof found);
    return lk_fail(LK_E_SHAPE, "field '%s' of data '%s' is %s %s, model '%s' expects %s %s",
                   field->name, b->data->name, lk_dtype_name(field->dtype), found,
                   lk_model_name(b->model), lk_dtype_name(input->dtype), wanted);
}

/* A field of inputs, of the node's name. */
static int input_named(const struct binding *b, const struct lk_node *node)
{
    const int field = field_named(b->data, node->name);
    return field >= 0 && b->data->fields[field].role == LK_FIELD_INPUT ? field : -1;
}

/* Of the inputs that no field is named after, one of each type may take the only field of that
 * type that no other is named after; a model's only input whatever field is the only one. */
static int unnamed_field(const struct binding *b, const struct lk_node *node)
{
    const struct lk_model *model = b->model;
    int found = only_field(b->data, LK_FIELD_INPUT, (int)node->input.dtype);
    if (found < 0 && model->input_count == 1)
        found = only_field(b->data, LK_FIELD_INPUT, -1);
    for (int i = 0; i < model->input_count && found >= 0; i++) {
        const struct lk_node *other = model->inputs[i];
        const int named = input_named(b, other);
        if (other != node &&
            (named == found || (named < 0 && other->input.dtype == node->input.dtype)))
            found = -1;
    }
    return found;
}

/* The node with the smallest of the tables from which an input's tokens take rows; NULL: none.
 */
static const struct lk_node *smallest_table(const struct lk_node *input)
{
    const struct lk_graph *graph = input->graph;
    const struct lk_node *found = NULL;
    for (int i = 0; i < graph->count && input->input.dtype == LK_I32; i++) {
        const struct lk_node *node = graph->nodes[i];
        const struct lk_op_shapes *shapes = &node->shapes;
        if (node->op && node->input_nodes[0] == input && shapes->params > 0 &&
            shapes->param[0].is_rows &&
            (!found || shapes->param[0].shape.dim[0] < found->shapes.param[0].shape.dim[0]))
            found = node;
    }
    return found;
}

/* Each token needs a row in every table that it selects from, whether the model says how large
 * its vocabulary is or not. Without one it would count as no token at all. */
static enum lk_status check_table(const struct binding *b, struct lk_data *data,
                                  const struct lk_node *node, int index)
{
    const struct lk_field *field = &b->data->fields[index];
    const struct lk_node *table = smallest_table(node);
    if (!table)
        return LK_OK;
    const int64_t rows = table->shapes.param[0].shape.dim[0];
    char taker[128];
    if (field->classes > rows)
        return lk_fail(LK_E_SHAPE,
                       "data '%s' has a vocabulary of %lld tokens, '%s' of model '%s' a table "
                       "of %lld rows",
                       b->data->name, (long long)field->classes, table->name,
                       lk_model_name(b->model), (long long)rows);
    snprintf(taker, sizeof taker, "the table of '%.40s' of model '%.50s'", table->name,
             lk_model_name(b->model));
    return field->classes > 0 ? LK_OK
                              : lk_data_limit_labels(data, index, 0, (double)rows - 1, taker);
}

/* Tokens are within the vocabulary that the model names. */
static enum lk_status check_tokens(const struct binding *b, struct lk_data *data,
                                   const struct lk_node *node, int index)
{
    const struct lk_field *field = &b->data->fields[index];
    const int64_t most = b->model->vocabulary;
    char taker[128];
    if (most == 0 || node->input.dtype != LK_I32 || node->input.shape.rank != 1)
        return check_table(b, data, node, index);
    if (field->classes > most)
        return lk_fail(
            LK_E_SHAPE, "data '%s' has a vocabulary of %lld tokens, model '%s' one of %lld",
            b->data->name, (long long)field->classes, lk_model_name(b->model), (long long)most);
    snprintf(taker, sizeof taker, "the vocabulary of model '%.80s'", lk_model_name(b->model));
    if (field->classes == 0)
        LK_TRY(lk_data_limit_labels(data, index, 0, (double)most - 1, taker));
    return check_table(b, data, node, index);
}

static enum lk_status bind_input(struct binding *b, const struct lk_node *node)
{
    int field = input_named(b, node);
    bool converts = false;
    if (field < 0)
        field = unnamed_field(b, node);
    if (field < 0)
        return fail_to_find(b, LK_FIELD_INPUT, "input", node->name);
    const struct lk_field *found = &b->data->fields[field];
    if (node->input.dtype == LK_U8 && found->dtype == LK_U8)
        LK_TRY(check_image(b, node, found));
    else
        LK_TRY(check_numbers(b, node, found, &converts));
    return add_row(b, node, field, converts);
}

/* --- targets ----------------------------------------------------------------------------- */

static enum lk_status check_classes(const struct binding *b,
                                    const struct lk_model_output *output,
                                    const struct lk_field *field)
{
    const int64_t most = lk_output_classes(output);
    if (field->classes <= most)
        return LK_OK;
    return lk_fail(LK_E_SHAPE, "data '%s' has %lld classes, model '%s' predicts %lld",
                   b->data->name, (long long)field->classes, lk_model_name(b->model),
                   (long long)most);
}

static bool is_class_form(enum lk_metric_form form)
{
    return form == LK_FORM_CLASS || form == LK_FORM_CHOICE;
}

static enum lk_status check_target(const struct binding *b,
                                   const struct lk_model_output *output,
                                   const struct lk_field *field, bool *converts)
{
    const struct lk_metric_shape *shape = &output->shape;
    const struct lk_shape time_steps = {1, {shape->time_steps}};
    const int64_t count = lk_shape_count(&field->shape);
    char found[96];
    *converts = false;
    lk_shape_print(&field->shape, found, sizeof found);
    if (!is_class_form(shape->form)) {
        *converts = field->dtype == LK_I32 && count == 1 && shape->width == 1;
        if (*converts &&
            (field->class_names || (shape->form == LK_FORM_UNITS && field->classes > 2)))
            return lk_fail(LK_E_SHAPE,
                           "label '%s' of data '%s' is one of %lld classes, %s of output '%s' "
                           "takes a number; label_type=number reads whole numbers as such",
                           field->name, b->data->name, (long long)field->classes,
                           output->loss.kind->name, output->name);
        if ((field->dtype == LK_F32 || *converts) && count == shape->time_steps * shape->width)
            return LK_OK;
        return lk_fail(LK_E_SHAPE,
                       "label '%s' of data '%s' is %s %s, %s of output '%s' takes %lld numbers",
                       field->name, b->data->name, lk_dtype_name(field->dtype), found,
                       output->loss.kind->name, output->name,
                       (long long)(shape->time_steps * shape->width));
    }
    const bool is_sequence = output->node->shapes.y.rank == 2;
    if (field->dtype == LK_I32 &&
        (is_sequence ? lk_shape_equal(&field->shape, &time_steps) : count == 1))
        return check_classes(b, output, field);
    return lk_fail(
        LK_E_SHAPE, "label '%s' of data '%s' is %s %s, %s of output '%s' takes a class%s",
        field->name, b->data->name, lk_dtype_name(field->dtype), found, output->loss.kind->name,
        output->name, is_sequence ? " for each time step" : "");
}

static int count_losses(const struct lk_model *model)
{
    int losses = 0;
    for (int i = 0; i < model->output_count; i++)
        losses += model->outputs[i].loss.kind != NULL;
    return losses;
}

/* The field of an output's targets; -1: none is. */
static int target_field(const struct binding *b, const struct lk_model_output *output)
{
    const int field = field_named(b->data, output->name);
    if (field >= 0 && b->data->fields[field].role == LK_FIELD_LABEL)
        return field;
    return count_losses(b->model) == 1 ? only_field(b->data, LK_FIELD_LABEL, -1) : -1;
}

static enum lk_status bind_target(struct binding *b, struct lk_data *data,
                                  const struct lk_model_output *output, int *target)
{
    const int field = target_field(b, output);
    bool converts;
    if (field < 0)
        return fail_to_find(b, LK_FIELD_LABEL, "output", output->name);
    LK_TRY(lk_labels_match(data, output, field));
    LK_TRY(check_target(b, output, &b->data->fields[field], &converts));
    LK_TRY(lk_labels_limit(data, output, field));
    *target = field;
    return output->target ? add_row(b, output->target, field, converts) : LK_OK;
}

enum lk_status lk_binding_make_inputs(const struct lk_model *model, struct lk_data *data,
                                      struct lk_feed *feed)
{
    struct binding b = {.model = model, .data = lk_data_info(data), .feed = feed};
    *feed = (struct lk_feed){0};
    for (int i = 0; i < model->input_count; i++) {
        LK_TRY(bind_input(&b, model->inputs[i]));
        LK_TRY(check_tokens(&b, data, model->inputs[i], feed->rows[feed->count - 1].field));
    }
    return LK_OK;
}

enum lk_status lk_binding_make(const struct lk_model *model, struct lk_data *data,
                               struct lk_feed *feed, int targets[LK_MOST_OUTPUTS])
{
    struct binding b = {.model = model, .data = lk_data_info(data), .feed = feed};
    LK_TRY(lk_binding_make_inputs(model, data, feed));
    for (int i = 0; i < model->output_count; i++) {
        targets[i] = -1;
        if (model->outputs[i].loss.kind)
            LK_TRY(bind_target(&b, data, &model->outputs[i], &targets[i]));
    }
    return LK_OK;
}

/* Whether the names stay. */
static enum lk_status keep_names(const struct binding *b, const struct lk_model_output *output,
                                 const char *whose, bool *stay)
{
    const int field = output->loss.kind ? target_field(b, output) : -1;
    const bool is_said = lk_rank() == 0;
    enum lk_class_order order = LK_CLASSES_DIFFER;
    if (field >= 0)
        LK_TRY(lk_labels_compare(&b->data->fields[field], output, &order));
    *stay = order != LK_CLASSES_DIFFER;
    if (is_said && order == LK_CLASSES_IN_OTHER_ORDER)
        lk_log(LK_LOG_INFO,
               "classes have the numbers that they have in '%s', whose first is '%s'", whose,
               output->class_names[0]);
    if (is_said && !*stay && field >= 0 && b->data->fields[field].class_names &&
        lk_output_has_words(output) && output->class_count == lk_output_classes(output))
        lk_log(LK_LOG_WARNING,
               "data '%s' has other classes than '%s': the head of output '%s' was trained for "
               "those",
               b->data->name, whose, output->name);
    return LK_OK;
}

enum lk_status lk_binding_keep_classes(struct lk_model *model, const struct lk_data *data,
                                       const char *whose)
{
    const struct binding b = {.model = model, .data = lk_data_info(data)};
    for (int i = 0; i < model->output_count; i++) {
        struct lk_model_output *output = &model->outputs[i];
        bool stay = true;
        if (output->class_count > 0)
            LK_TRY(keep_names(&b, output, whose, &stay));
        if (!stay) {
            output->class_count = 0;
            output->class_names = NULL;
        }
    }
    return LK_OK;
}

enum lk_status lk_binding_take_classes(struct lk_model *model, const struct lk_data *data,
                                       const int targets[LK_MOST_OUTPUTS])
{
    for (int i = 0; i < model->output_count; i++) {
        struct lk_model_output *output = &model->outputs[i];
        if (targets[i] < 0 || !is_class_form(output->shape.form) || output->class_count > 0)
            continue;
        const struct lk_field *field = &lk_data_info(data)->fields[targets[i]];
        if (field->class_names)
            LK_TRY(lk_output_name_classes(model, output, field->class_names, field->classes));
    }
    return LK_OK;
}

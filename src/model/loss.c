/* Adds targets and losses behind the outputs of a model: what it is trained for. */
#include "base/fail.h"
#include "base/log.h"
#include "model/model.h"
#include <stdio.h>
#include <string.h>

/* Warns of an output that has no softmax: nothing says that it gives probabilities, and the
 * loss could be NaN. */
static void warn_of_raw_output(const struct lk_model *model,
                               const struct lk_model_output *output)
{
    const struct lk_node *node = output->node;
    while (node->op && node->op->is_view)
        node = node->input_nodes[0];
    if (!node->op || strcmp(node->op->name, "softmax") != 0)
        lk_log(LK_LOG_WARNING,
               "model '%s': the loss takes probabilities, but the output '%s' is no softmax",
               model->name, output->node->name);
}

/* Targets as the host has them: classes as integers, or smoothed over all classes; numbers,
 * those of a weight for each class smoothed in the same way. */
static struct lk_input describe_target(const struct lk_model_output *output, double smoothing)
{
    const struct lk_shape *y = &output->node->shapes.y;
    const bool is_class = output->shape.form == LK_FORM_CLASS;
    struct lk_input made = {.dtype = LK_I32};
    if (is_class && y->rank == 2)
        made.shape = (struct lk_shape){1, {y->dim[0]}};
    if (is_class && y->rank == 1 && smoothing >= 0)
        made = (struct lk_input){.dtype = LK_F32,
                                 .shape = *y,
                                 .scale = 1 - smoothing,
                                 .shift = smoothing / (double)y->dim[0]};
    if (!is_class && output->shape.form != LK_FORM_CHOICE)
        made =
            (struct lk_input){.dtype = LK_F32, .shape = *y, .scale = 1, .takes_numbers = true};
    if (output->shape.form == LK_FORM_DISTRIBUTION && smoothing > 0) {
        made.scale = 1 - smoothing;
        made.shift = smoothing / (double)output->shape.width;
    }
    return made;
}

/* Named "labels", or with a number where the model has a layer of that name. */
static enum lk_status add_target(struct lk_model *model, struct lk_model_output *output,
                                 double smoothing)
{
    char name[32] = "labels";
    struct lk_input input = describe_target(output, smoothing);
    for (int i = 1; lk_graph_find(model->graph, name); i++)
        snprintf(name, sizeof name, "labels_%d", i);
    input.name = name;
    return lk_graph_add_input(model->graph, &input, &output->target);
}

/* The weight is an option of the loss operation, for gradients, and of the sum, for the loss
 * that is reported. */
static enum lk_status add_loss(struct lk_model *model, struct lk_model_output *output,
                               double smoothing)
{
    char options[1200] = "";
    if (output->shape.form == LK_FORM_CLASS)
        warn_of_raw_output(model, output);
    if (!output->target)
        LK_TRY(add_target(model, output, smoothing));
    snprintf(options, sizeof options, "%s", output->loss.options);
    if (output->weight != 1)
        snprintf(options + strlen(options), sizeof options - strlen(options), "weight=%.17g",
                 output->weight);
    return lk_graph_add_many(model->graph, output->loss.kind->name, 2,
                             (struct lk_node *[]){output->node, output->target}, options,
                             &output->loss_node);
}

/* Adds the weighted sum of losses. Losses that count right answers come first, since the sum
 * takes that count from its first input. */
static enum lk_status add_sum(struct lk_model *model)
{
    struct lk_node *nodes[LK_MOST_OUTPUTS];
    double weights[LK_MOST_INPUTS] = {0};
    char options[400] = "weights=[";
    int count = 0;
    for (int values = 0; values < 2; values++)
        for (int i = 0; i < model->output_count; i++) {
            const struct lk_model_output *output = &model->outputs[i];
            if (!output->loss_node || (output->shape.form == LK_FORM_VALUES) != values)
                continue;
            weights[count] = output->weight;
            nodes[count++] = output->loss_node;
        }
    if (count == 1 && weights[0] == 1) {
        model->loss = nodes[0];
        return LK_OK;
    }
    for (int i = 0; i < LK_MOST_INPUTS; i++)
        snprintf(options + strlen(options), sizeof options - strlen(options), "%s%.17g",
                 i ? "," : "", weights[i]);
    snprintf(options + strlen(options), sizeof options - strlen(options), "]");
    return lk_graph_add_many(model->graph, "sum_losses", count, nodes, options, &model->loss);
}

static enum lk_status add_all(struct lk_model *model, double smoothing)
{
    for (int i = 0; i < model->output_count; i++) {
        struct lk_model_output *output = &model->outputs[i];
        if (!model->says_loss && !output->loss.kind)
            LK_TRY(lk_output_set_standard(model, output));
        if (output->loss.kind && !output->loss_node)
            LK_TRY(add_loss(model, output, smoothing));
    }
    return add_sum(model);
}

enum lk_status lk_model_add_losses(struct lk_model *model, double smoothing,
                                   struct lk_node **loss)
{
    if (!model->loss) {
        const enum lk_status status = add_all(model, smoothing);
        if (status != LK_OK)
            return status == LK_E_MODEL
                       ? status
                       : lk_fail_within(status == LK_E_MEMORY ? status : LK_E_MODEL,
                                        "model '%s'", model->name);
    }
    *loss = model->loss;
    return LK_OK;
}

static struct lk_node *first_target(const struct lk_model *model)
{
    for (int i = 0; i < model->output_count; i++)
        if (model->outputs[i].target)
            return model->outputs[i].target;
    return NULL;
}

enum lk_status lk_model_add_loss(struct lk_model *model, struct lk_node **labels,
                                 struct lk_node **loss)
{
    LK_TRY(lk_model_add_losses(model, -1, loss));
    *labels = first_target(model);
    return LK_OK;
}

enum lk_status lk_model_add_one_hot_loss(struct lk_model *model, double smoothing,
                                         struct lk_node **labels, struct lk_node **loss)
{
    if (!(smoothing >= 0 && smoothing <= 1))
        return lk_fail(LK_E_ARGUMENT, "smoothing of labels: %g is not in 0..1", smoothing);
    LK_TRY(lk_model_add_losses(model, smoothing, loss));
    *labels = first_target(model);
    return LK_OK;
}

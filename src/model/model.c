#include "model/model.h"

#include "base/fail.h"
#include "base/log.h"
#include "graph/replica.h"
#include "mirror/shards.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void lk_model_destroy(struct lk_model *model)
{
    if (!model)
        return;
    lk_graph_destroy(model->graph);
    lk_arena_clear(&model->arena);
    free(model);
}

struct lk_graph *lk_model_graph(struct lk_model *model)
{
    return model->graph;
}

struct lk_node *lk_model_input(const struct lk_model *model, int index)
{
    return index >= 0 && index < model->input_count ? model->inputs[index] : NULL;
}

struct lk_node *lk_model_output(const struct lk_model *model)
{
    return model->output;
}

const char *lk_model_text(const struct lk_model *model)
{
    return model->text;
}

const char *lk_model_name(const struct lk_model *model)
{
    return model->name;
}

/* Without softmax nothing says that the outputs are probabilities; the loss could be NaN. */
static void warn_of_raw_output(const struct lk_model *model)
{
    const struct lk_node *node = model->output;
    while (node->op && node->op->is_view)
        node = node->input_nodes[0];
    if (!node->op || strcmp(node->op->name, "softmax") != 0)
        lk_log(LK_LOG_WARNING,
               "model '%s': the loss takes probabilities, but the output '%s' is no softmax",
               model->name, model->output->name);
}

/* Named "labels", or with a number where the model has a layer of that name. */
static enum lk_status add_labels(struct lk_model *model, const struct lk_input *like)
{
    char name[32] = "labels";
    struct lk_input input = *like;
    for (int i = 1; lk_graph_find(model->graph, name); i++)
        snprintf(name, sizeof name, "labels_%d", i);
    input.name = name;
    return lk_graph_add_input(model->graph, &input, &model->labels);
}

static enum lk_status add_loss(struct lk_model *model, const struct lk_input *like,
                               struct lk_node **labels, struct lk_node **loss)
{
    const struct lk_shape *shape = &model->output->shapes.y;
    if (!model->loss) {
        char text[96];
        lk_shape_print(shape, text, sizeof text);
        if (shape->rank != 1 || shape->dim[0] < 2)
            return lk_fail(LK_E_MODEL,
                           "model '%s': the output '%s' is %s, cross-entropy takes a vector "
                           "of at least 2 class probabilities",
                           model->name, model->output->name, text);
        warn_of_raw_output(model);
        enum lk_status status = LK_OK;
        if (!model->labels)
            status = add_labels(model, like);
        if (status == LK_OK)
            status = lk_graph_add_many(model->graph, "cross_entropy", 2,
                                       (struct lk_node *[]){model->output, model->labels}, "",
                                       &model->loss);
        if (status != LK_OK)
            return lk_fail_within(status == LK_E_MEMORY ? status : LK_E_MODEL, "model '%s'",
                                  model->name);
    }
    *labels = model->labels;
    *loss = model->loss;
    return LK_OK;
}

enum lk_status lk_model_add_loss(struct lk_model *model, struct lk_node **labels,
                                 struct lk_node **loss)
{
    const struct lk_input input = {.dtype = LK_I32};
    return add_loss(model, &input, labels, loss);
}

enum lk_status lk_model_add_one_hot_loss(struct lk_model *model, double smoothing,
                                         struct lk_node **labels, struct lk_node **loss)
{
    const struct lk_shape *shape = &model->output->shapes.y;
    const struct lk_input input = {.dtype = LK_F32,
                                   .shape = *shape,
                                   .scale = 1 - smoothing,
                                   .shift = smoothing / (double)shape->dim[0]};
    if (!(smoothing >= 0 && smoothing <= 1))
        return lk_fail(LK_E_ARGUMENT, "smoothing of labels: %g is not in 0..1", smoothing);
    return add_loss(model, &input, labels, loss);
}

enum { ADAM_ARRAYS = 3 }; /* both moments, and the gradient summed over shards */

enum lk_status lk_model_memory(struct lk_model *model, struct lk_device *device, int64_t batch,
                               int shards, enum lk_memory_use use, struct lk_memory *memory)
{
    const bool training = use != LK_MEMORY_PREDICTING;
    struct lk_node *labels = NULL, *output = model->output;
    struct lk_replica *replica = NULL;
    if (training)
        LK_TRY(lk_model_add_loss(model, &labels, &output));
    struct lk_replica_config config = {
        .device = device,
        .outputs = {output},
        .batch = batch,
        .shards = shards > 0 ? shards : (training ? lk_shards_choose(batch) : 1),
        .real = LK_F32,
        .stores_half = use == LK_MEMORY_TRAINING_MIXED,
        .training = training,
        .guests = training ? ADAM_ARRAYS : 0,
    };
    enum lk_status status = lk_choices_create(LK_MATH_NORMAL, &config.choices);
    if (status == LK_OK)
        status = lk_replica_create(&config, &replica);
    const struct lk_replica_bytes bytes =
        status == LK_OK ? lk_replica_bytes(replica) : (struct lk_replica_bytes){0};
    lk_replica_destroy(replica);
    lk_choices_destroy(config.choices);
    LK_TRY(status);
    *memory = (struct lk_memory){.weights = bytes.weights,
                                 .gradients = bytes.gradients,
                                 .activations = bytes.activations,
                                 .inputs = bytes.inputs,
                                 .optimizer = bytes.guests,
                                 .total = bytes.total};
    return LK_OK;
}

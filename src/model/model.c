/* A model as its users see it: nodes, text, and what memory it takes. */
#include "model/model.h"

#include "base/fail.h"
#include "base/log.h"
#include "graph/replica.h"
#include "mirror/shards.h"
#include "mirror/terms.h"
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
    return model->outputs[0].node;
}

void lk_model_output_nodes(const struct lk_model *model,
                           const struct lk_node *nodes[LK_MOST_OUTPUTS + 1])
{
    for (int i = 0; i <= LK_MOST_OUTPUTS; i++)
        nodes[i] = i < model->output_count ? model->outputs[i].node : NULL;
}

static const char *known_name(const void *model, int i)
{
    const struct lk_model *m = model;
    if (i < m->node_count)
        return m->graph->nodes[i]->name;
    return i - m->node_count < m->name_count ? m->names[i - m->node_count].name : NULL;
}

/* What a name of the text stands for, such as an entry that is there, or is not; NULL: nothing.
 */
static struct lk_node *find_name(const struct lk_model *model, const char *name, bool is_there)
{
    for (int i = 0; i < model->name_count; i++)
        if (strcmp(model->names[i].name, name) == 0 &&
            (model->names[i].first < model->names[i].end) == is_there)
            return model->names[i].node;
    return NULL;
}

enum lk_status lk_model_find(const struct lk_model *model, const char *name,
                             struct lk_node **node)
{
    *node = find_name(model, name, true);
    if (!*node)
        *node = lk_graph_find(model->graph, name);
    if (!*node) /* behind the others: one of two entries of that name may be there */
        *node = find_name(model, name, false);
    if (*node)
        return LK_OK;
    const char *near = lk_nearest_name(name, known_name, model);
    return lk_fail(LK_E_ARGUMENT, "model '%s' has no entry and no input '%.60s'%s%s%s",
                   model->name, name, near ? "; did you mean '" : "", near ? near : "",
                   near ? "'?" : "");
}

const char *lk_model_text(const struct lk_model *model)
{
    return model->text;
}

const char *lk_model_name(const struct lk_model *model)
{
    return model->name;
}

enum { ADAM_ARRAYS = 2 }; /* both moments */

bool lk_model_trains_planes(struct lk_model *model, int64_t batch, int shards)
{
    const struct lk_node *node;
    for (int i = 0; (node = lk_graph_node(model->graph, i)); i++) {
        const struct lk_node_info info = lk_node_info(node);
        if (info.parameters > 0 && !info.is_trainable)
            return false;
    }
    return lk_divide_up(batch, shards) <= LK_FEW_TRAINED;
}

enum lk_status lk_model_config(struct lk_model *model, enum lk_memory_use use,
                               struct lk_replica_config *config)
{
    struct lk_node *loss = NULL;
    config->training = use != LK_MEMORY_PREDICTING;
    if (config->training)
        LK_TRY(lk_model_add_losses(model, -1, &loss));
    if (config->shards == 0)
        config->shards = config->training ? lk_shards_choose(config->batch) : 1;
    config->list_shards = config->training ? config->shards : 0;
    config->real = LK_F32;
    config->stores_half = use == LK_MEMORY_TRAINING_MIXED;
    config->few_samples =
        config->training && lk_model_trains_planes(model, config->batch, config->shards);
    config->optimizer_arrays = config->training ? ADAM_ARRAYS : 0;
    config->gradient_sums = config->training ? 1 : 0;
    if (loss)
        config->outputs[0] = loss;
    else
        lk_model_output_nodes(model, config->outputs);
    return lk_choices_create(LK_MATH_NORMAL, &config->choices);
}

struct lk_memory lk_memory_of(const struct lk_replica_bytes *bytes)
{
    return (struct lk_memory){.weights = bytes->weights,
                              .gradients = bytes->gradients,
                              .activations = bytes->activations,
                              .inputs = bytes->inputs,
                              .optimizer = bytes->optimizer_arrays,
                              .total = bytes->total,
                              .again = bytes->again,
                              .pieces = 1};
}

static enum lk_status plan_replica(const struct lk_replica_config *config,
                                   struct lk_memory *memory)
{
    struct lk_replica *replica = NULL;
    LK_TRY(lk_replica_create(config, &replica));
    const struct lk_replica_bytes bytes = lk_replica_bytes(replica);
    *memory = lk_memory_of(&bytes);
    if (config->micro_batches > 1)
        memory->pieces = config->micro_batches;
    lk_replica_destroy(replica);
    return LK_OK;
}

/* As a device alone trains on a batch that it has no room for: half as many shards at a time at
 * each try, which costs no work, and for single ones activations computed again. */
static enum lk_status plan_pieces(struct lk_replica_config config, struct lk_memory *memory)
{
    const enum lk_recompute_mode mode = config.recompute;
    const struct lk_shard_run all = {0, config.shards};
    const int64_t each = lk_divide_up(config.batch, config.shards);
    enum lk_status status = LK_E_DEVICE_MEMORY;
    for (int most = all.count / 2; most > 0 && status == LK_E_DEVICE_MEMORY; most /= 2) {
        lk_error_clear();
        config.shards = most;
        config.batch = most * each;
        config.micro_batches = all.count / most;
        config.gradient_sums = lk_terms_held(all, most);
        config.recompute = most > 1 && mode == LK_RECOMPUTE_AUTO ? LK_RECOMPUTE_OFF : mode;
        status = plan_replica(&config, memory);
    }
    return status;
}

/* Plans for a batch and what else the configuration has. */
static enum lk_status plan_memory(struct lk_model *model, struct lk_replica_config config,
                                  enum lk_memory_use use, struct lk_memory *memory)
{
    char why[512];
    LK_TRY(lk_model_config(model, use, &config));
    enum lk_status status = plan_replica(&config, memory);
    snprintf(why, sizeof why, "%s", lk_error_text());
    if (status == LK_E_DEVICE_MEMORY && config.training && config.shards > 1)
        status = plan_pieces(config, memory);
    if (status == LK_E_DEVICE_MEMORY) {
        lk_error_clear();
        (void)!lk_fail(status, "%s", why);
    }
    lk_choices_destroy(config.choices);
    return status;
}

enum lk_status lk_model_memory(struct lk_model *model, struct lk_device *device, int64_t batch,
                               int shards, enum lk_memory_use use, struct lk_memory *memory)
{
    const struct lk_replica_config config = {
        .device = device, .batch = batch, .shards = shards, .recompute = LK_RECOMPUTE_AUTO};
    return plan_memory(model, config, use, memory);
}

enum lk_status lk_model_memory_recomputing(struct lk_model *model, struct lk_device *device,
                                           int64_t batch, int shards, enum lk_memory_use use,
                                           enum lk_recompute_mode mode,
                                           struct lk_memory *memory)
{
    const struct lk_replica_config config = {
        .device = device, .batch = batch, .shards = shards, .recompute = mode};
    return plan_memory(model, config, use, memory);
}

void lk_model_mark_needed(const struct lk_model *model, bool *needed)
{
    for (int i = 0; i < model->output_count; i++)
        needed[model->outputs[i].node->index] = true;
    for (int i = model->graph->count - 1; i >= 0; i--) /* inputs come before their readers */
        for (int j = 0; needed[i] && j < model->graph->nodes[i]->inputs; j++)
            needed[model->graph->nodes[i]->input_nodes[j]->index] = true;
}

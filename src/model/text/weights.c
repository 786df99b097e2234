/* `weights: NAME` of an entry: the parameters of another one, or of all layers of a block. */
#include "base/fail.h"
#include "graph/nodes/node.h"
#include "model/text/entry.h"
#include <string.h>

static enum lk_status check_name(const struct lk_yaml *name)
{
    char found[80];
    if (name->kind == LK_YAML_SCALAR && !name->is_null)
        return LK_OK;
    return lk_yaml_fail(name, "'weights' names one layer, found %s",
                        lk_yaml_found(name, found, sizeof found));
}

enum lk_status lk_weights_find(const struct lk_reading *reading, const struct lk_entry *entry,
                               struct lk_node **owner)
{
    const struct lk_yaml *name = entry->at[LK_ENTRY_WEIGHTS];
    *owner = NULL;
    if (!name)
        return LK_OK;
    LK_TRY(check_name(name));
    *owner = lk_graph_find(reading->model->graph, name->text);
    if (*owner)
        return LK_OK;
    const struct lk_named *block = lk_layer_find_named(reading, name->text, true);
    if (!block)
        return lk_layer_refuse_name(reading, name);
    return lk_yaml_fail(name,
                        "'%.60s' is a block '%s'; %s can have the weights of a layer alone",
                        name->text, block->block, entry->op->name);
}

/* Checks `trainable: false`: it must stand at the owner of the weights, and may stand at the
 * other entry too. */
static enum lk_status agree(const struct lk_entry *entry, const struct lk_node *node,
                            const struct lk_node *owner)
{
    const struct lk_yaml *says = entry->at[LK_ENTRY_TRAINABLE];
    const bool is_frozen = !node->is_trainable;
    if (is_frozen == !owner->is_trainable || (!is_frozen && !says))
        return LK_OK;
    return lk_yaml_fail(says ? says : entry->at[LK_ENTRY_WEIGHTS],
                        "'%s' is %s, but '%s', whose weights it has, is %s", node->name,
                        is_frozen ? "frozen" : "trainable", owner->name,
                        is_frozen ? "trainable" : "frozen");
}

enum lk_status lk_weights_share(const struct lk_entry *entry, struct lk_node *node,
                                struct lk_node *owner)
{
    if (!owner)
        return LK_OK;
    for (int key = LK_ENTRY_LR_SCALE; key <= LK_ENTRY_L2; key++)
        if (entry->at[key])
            return lk_yaml_fail(entry->at[key],
                                "'%s' has the weights of '%s', where %s is to stand",
                                node->name, owner->name, lk_entry_words[key]);
    LK_TRY(lk_yaml_at(entry->at[LK_ENTRY_WEIGHTS], lk_node_share_weights(node, owner)));
    LK_TRY(agree(entry, node, owner));
    lk_node_set_trainable(node, owner->is_trainable);
    return LK_OK;
}

static bool has_weights(const struct lk_reading *reading, int layer)
{
    return reading->layers[layer].first->shapes.params > 0;
}

static int count_weighted(const struct lk_reading *reading, const struct lk_named *use)
{
    int count = 0;
    for (int i = use->layers; i < use->end_layer; i++)
        count += has_weights(reading, i);
    return count;
}

static enum lk_status find_block(const struct lk_reading *reading, const struct lk_entry *entry,
                                 const struct lk_named *use, const struct lk_named **found)
{
    const struct lk_yaml *name = entry->at[LK_ENTRY_WEIGHTS];
    LK_TRY(check_name(name));
    const struct lk_named *block = lk_layer_find_named(reading, name->text, true);
    if (!block && !lk_graph_find(reading->model->graph, name->text))
        return lk_layer_refuse_name(reading, name);
    if (!block || strcmp(block->block, use->block) != 0)
        return lk_yaml_fail(name, "'%.60s' is %s'%s'; another block '%s' is expected",
                            name->text, block ? "a block " : "the layer ",
                            block ? block->block : name->text, use->block);
    const int own = count_weighted(reading, use), other = count_weighted(reading, block);
    if (own != other)
        return lk_yaml_fail(name,
                            "'%s' has %d layers with weights, '%s' has %d; the same is "
                            "expected",
                            use->name, own, block->name, other);
    *found = block;
    return LK_OK;
}

/* Goes from the last layer to the first. A layer may share the weights of an earlier one in its
 * own block; once that earlier one uses another's weights, it can no longer be the owner. */
enum lk_status lk_weights_share_block(const struct lk_reading *reading,
                                      const struct lk_entry *entry, const struct lk_named *use)
{
    const struct lk_named *block = NULL;
    if (!entry->at[LK_ENTRY_WEIGHTS])
        return LK_OK;
    LK_TRY(find_block(reading, entry, use, &block));
    for (int i = use->end_layer, j = block->end_layer; i > use->layers;) {
        if (!has_weights(reading, --i))
            continue;
        while (!has_weights(reading, --j))
            continue;
        struct lk_node *owner = reading->layers[j].first;
        LK_TRY(lk_weights_share(entry, reading->layers[i].first,
                                owner->weights_of ? owner->weights_of : owner));
    }
    return LK_OK;
}

/* Finds the nodes that are the parts of one layer: both directions of a recurrent layer, both
 * convolutions of a separable one, the dense layers of attention. */
#include "model/naming/parts.h"

#include "base/fail.h"
#include <stdio.h>
#include <string.h>

enum { LAYER_NAME = sizeof((struct lk_node){0}.name) };

/* --- directions --------------------------------------------------------------------------- */

static const struct {
    const char *suffix, *keras, *torch;
} directions[] = {{"_forward", "forward", "l0"}, {"_backward", "backward", "l0_reverse"}};

/* The number of the direction that the node's name tells, and the length of what is before
 * its suffix; -1: none. */
static int direction_of(const struct lk_node *node, size_t *length)
{
    for (int i = 0; i < LK_COUNT(directions); i++) {
        const size_t own = strlen(node->name), suffix = strlen(directions[i].suffix);
        *length = own > suffix ? own - suffix : 0;
        if (*length > 0 && strcmp(node->name + *length, directions[i].suffix) == 0)
            return i;
    }
    return -1;
}

/* Whether a recurrent node walks from the last time step to the first. */
static bool goes_backwards(const struct lk_node *node)
{
    return lk_option_is(node->op->options, node->options, "go_backwards", "true");
}

/* The direction of the node, if there is another node for the other one; else -1. */
static int find_direction(const struct lk_node *node, size_t *length)
{
    char other[sizeof node->name + 16];
    const int own = direction_of(node, length);
    if (own < 0 || !lk_option_find(node->op->options, "go_backwards"))
        return -1;
    snprintf(other, sizeof other, "%.*s%s", (int)*length, node->name,
             directions[1 - own].suffix);
    const struct lk_node *partner = lk_graph_find(node->graph, other);
    const bool is_pair =
        partner && partner->op == node->op && partner->input_nodes[0] == node->input_nodes[0] &&
        goes_backwards(node) == (own == 1) && goes_backwards(partner) == (own == 0);
    return is_pair ? own : -1;
}

/* --- separable convolutions --------------------------------------------------------------- */

bool lk_node_is_depthwise(const struct lk_node *node)
{
    return strcmp(node->op->name, "conv2d") == 0 && node->shapes.param[0].shape.dim[0] == 1 &&
           node->shapes.x[0].dim[0] > 1;
}

/* What Keras calls the layer of a node: without "_linear" where the node of that name is the
 * function behind it, as layers are imported whose activation is an entry of its own. */
static void name_layer(const struct lk_node *node, char name[LAYER_NAME])
{
    static const char suffix[] = "_linear";
    const size_t length = strlen(node->name), own = sizeof suffix - 1;
    snprintf(name, LAYER_NAME, "%s", node->name);
    if (length <= own || strcmp(node->name + length - own, suffix) != 0)
        return;
    name[length - own] = '\0';
    const struct lk_node *behind = lk_graph_find(node->graph, name);
    if (!behind || behind->shapes.params > 0 || behind->inputs != 1 ||
        behind->input_nodes[0] != node)
        snprintf(name, LAYER_NAME, "%s", node->name);
}

/* Whether `second` is the convolution of 1x1 behind `first`, and named so. */
static bool is_separable(const struct lk_node *first, const struct lk_node *second)
{
    char layer[LAYER_NAME];
    const int64_t *kernel = second->shapes.param[0].shape.dim;
    if (!first->op || !lk_node_is_depthwise(first) || first->shapes.params != 1 ||
        strcmp(second->op->name, "conv2d") != 0 || kernel[0] != second->shapes.x[0].dim[0] ||
        kernel[1] != 1 || kernel[2] != 1 || second->input_nodes[0] != first ||
        !lk_option_is(first->op->options, first->options, "activation", "none"))
        return false;
    name_layer(second, layer);
    const size_t length = strlen(layer);
    return strncmp(first->name, layer, length) == 0 &&
           strcmp(first->name + length, "_depthwise") == 0;
}

/* The second node of the layer of which the node is a part; NULL: of none. */
static const struct lk_node *find_separable(const struct lk_node *node)
{
    if (node->inputs > 0 && is_separable(node->input_nodes[0], node))
        return node;
    if (!lk_node_is_depthwise(node))
        return NULL;
    for (int i = node->index + 1; i < node->graph->count; i++) {
        const struct lk_node *reader = node->graph->nodes[i];
        if (reader->inputs > 0 && reader->input_nodes[0] == node && is_separable(node, reader))
            return reader;
    }
    return NULL;
}

/* --- attention ---------------------------------------------------------------------------- */

/* The length of NAME in NAME_SUFFIX; 0: it has another end. */
static size_t before_suffix(const char *name, const char *suffix)
{
    const size_t own = strlen(name), end = strlen(suffix);
    return own > end && strcmp(name + own - end, suffix) == 0 ? own - end : 0;
}

/* Whether a node is the dense layer NAME_query, NAME_key or NAME_value that is input i of
 * attention NAME_heads, or NAME behind that (i 3). */
static bool is_of_attention(const struct lk_node *node, const struct lk_node *heads, int i)
{
    static const char *const suffixes[] = {"_query", "_key", "_value", ""};
    const size_t length = before_suffix(heads->name, "_heads");
    char name[LAYER_NAME];
    if (!length || !node->op || strcmp(node->op->name, "dense") != 0)
        return false;
    name_layer(node, name);
    return strlen(name) == length + strlen(suffixes[i]) &&
           strncmp(name, heads->name, length) == 0 && strcmp(name + length, suffixes[i]) == 0;
}

/* Which part of attention the node is, and the length of the layer's name; NULL: of none. */
static const char *find_attention(const struct lk_node *node, size_t *length)
{
    static const char *const parts[] = {"query", "key", "value", "output"};
    for (int n = 0; n < node->graph->count; n++) {
        const struct lk_node *heads = node->graph->nodes[n];
        if (!heads->op || strcmp(heads->op->name, "attention") != 0 || heads->inputs != 3)
            continue;
        *length = before_suffix(heads->name, "_heads");
        for (int i = 0; i < 3; i++)
            if (heads->input_nodes[i] == node && is_of_attention(node, heads, i))
                return parts[i];
        if (node->inputs > 0 && node->input_nodes[0] == heads &&
            is_of_attention(node, heads, 3))
            return parts[3];
    }
    return NULL;
}

/* --- all ---------------------------------------------------------------------------------- */

/* "LAYER:part" of a node, or the name of its layer. */
static void name_part(const struct lk_node *node, enum lk_naming_style style, char *text,
                      size_t bytes)
{
    const bool is_torch = style == LK_NAMING_TORCH; /* which has no separable convolution */
    size_t length;
    char layer[LAYER_NAME];
    const int direction = find_direction(node, &length);
    const struct lk_node *second = is_torch ? NULL : find_separable(node);
    size_t name_bytes = 0;
    const char *part = is_torch ? NULL : find_attention(node, &name_bytes);
    if (direction >= 0) {
        snprintf(text, bytes, "%.*s:%s", (int)length, node->name,
                 is_torch ? directions[direction].torch : directions[direction].keras);
    } else if (part) {
        snprintf(text, bytes, "%.*s:%s", (int)name_bytes, node->name, part);
    } else if (second) {
        name_layer(second, layer);
        snprintf(text, bytes, "%s:%s", layer, second == node ? "pointwise" : "depthwise");
    } else {
        name_layer(node, layer);
        snprintf(text, bytes, "%s", is_torch ? node->name : layer);
    }
}

enum lk_status lk_parts_list(const struct lk_namings *params, enum lk_naming_style style,
                             struct lk_arena *arena, const char ***base)
{
    const size_t bytes = ((size_t)params->params + 1) * sizeof **base;
    void *memory = NULL;
    *base = NULL;
    for (int p = 0; p < params->params; p++) {
        const struct lk_node *node = params->param[p].node;
        char text[sizeof node->name + 32];
        name_part(node, style, text, sizeof text);
        if (strcmp(text, node->name) == 0)
            continue;
        if (!memory)
            LK_TRY(lk_arena_allocate(arena, bytes, &memory));
        *base = memory;
        LK_TRY(lk_arena_text(arena, text, &(*base)[p]));
    }
    return LK_OK;
}

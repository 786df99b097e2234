/* Finds the two nodes of recurrent layers that walk a sequence in both directions. */
#include "model/foreign/directions.h"

#include "base/fail.h"
#include <stdio.h>
#include <string.h>

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

enum lk_status lk_directions_list(const struct lk_namings *params, enum lk_naming_style style,
                                  struct lk_arena *arena, const char ***base)
{
    const size_t bytes = ((size_t)params->params + 1) * sizeof **base;
    void *memory = NULL;
    size_t length;
    *base = NULL;
    for (int p = 0; p < params->params; p++) {
        const struct lk_node *node = params->param[p].node;
        const int direction = find_direction(node, &length);
        char text[sizeof node->name + 32];
        if (direction < 0)
            continue;
        if (!memory)
            LK_TRY(lk_arena_allocate(arena, bytes, &memory));
        *base = memory;
        snprintf(text, sizeof text, "%.*s:%s", (int)length, node->name,
                 style == LK_NAMING_TORCH ? directions[direction].torch
                                          : directions[direction].keras);
        LK_TRY(lk_arena_text(arena, text, &(*base)[p]));
    }
    return LK_OK;
}

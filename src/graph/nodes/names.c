/* Nodes of a graph by name: a hash table of lists, so that a graph of thousands of nodes, each
 * of which asks whether its name is free, takes time in proportion to their number. */
#include "graph/nodes/names.h"

#include "base/fail.h"
#include <stdlib.h>
#include <string.h>

/* source: FNV-1a, 64 bits */
static size_t hash(const char *name)
{
    uint64_t sum = 14695981039346656037u;
    for (; *name; name++)
        sum = (sum ^ (uint8_t)*name) * 1099511628211u;
    return (size_t)(sum ^ sum >> 32);
}

static struct lk_node **list_of(const struct lk_graph *graph, const char *name)
{
    return &graph->lists[hash(name) & (size_t)(graph->list_count - 1)];
}

struct lk_node *lk_graph_find(const struct lk_graph *graph, const char *name)
{
    struct lk_node *node = graph->list_count ? *list_of(graph, name) : NULL;
    while (node && strcmp(node->name, name) != 0)
        node = node->next_in_list;
    return node;
}

enum lk_status lk_names_make_room(struct lk_graph *graph)
{
    if (graph->count < graph->list_count)
        return LK_OK;
    const int lists = graph->list_count ? 2 * graph->list_count : 16;
    struct lk_node **made = calloc((size_t)lists, sizeof *made);
    if (!made)
        return lk_fail_memory("names of nodes", (size_t)lists * sizeof *made);
    free(graph->lists);
    graph->lists = made;
    graph->list_count = lists;
    for (int i = 0; i < graph->count; i++)
        lk_names_enter(graph->nodes[i]);
    return LK_OK;
}

void lk_names_enter(struct lk_node *node)
{
    struct lk_node **list = list_of(node->graph, node->name);
    node->next_in_list = *list;
    *list = node;
}

void lk_names_leave(struct lk_node *node)
{
    struct lk_node **at = list_of(node->graph, node->name);
    while (*at != node)
        at = &(*at)->next_in_list;
    *at = node->next_in_list;
}

/* --- how many nodes an operation has ----------------------------------------------------- */

enum lk_status lk_names_count(struct lk_graph *graph, const struct lk_op *op, int **count)
{
    int i = 0;
    while (i < graph->op_count && graph->ops[i].op != op)
        i++;
    if (i == graph->op_count) {
        const size_t bytes = ((size_t)i + 1) * sizeof *graph->ops;
        struct lk_op_use *ops = realloc(graph->ops, bytes);
        if (!ops)
            return lk_fail_memory("operations of a graph", bytes);
        ops[i] = (struct lk_op_use){.op = op};
        graph->ops = ops;
        graph->op_count++;
    }
    *count = &graph->ops[i].nodes;
    return LK_OK;
}

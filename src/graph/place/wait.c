/* How long the devices of a group wait for one another. */
#include "graph/place/group.h"

#include "base/fail.h"
#include "graph/nodes/node.h"
#include <math.h>
#include <stdlib.h>

/* A device computes its nodes in their order, and an input is there at once. */
static double walk(const struct lk_graph *graph, int places, double *ends)
{
    double busy[LK_MOST_PLACES] = {0}, ready[LK_MOST_PLACES] = {0}, most = 0, last = 0;
    for (int i = 0; i < graph->count; i++) {
        const struct lk_node *node = graph->nodes[i];
        const int place = lk_node_place(node);
        if (!node->op || place < 0 || place >= places)
            continue;
        for (int j = 0; j < node->inputs; j++)
            ready[place] = fmax(ready[place], ends[node->input_nodes[j]->index]);
        busy[place] += node->shapes.flops;
        ready[place] += node->shapes.flops;
        ends[i] = ready[place];
    }
    for (int p = 0; p < places; p++) {
        most = fmax(most, busy[p]);
        last = fmax(last, ready[p]);
    }
    return most > 0 ? last / most - 1 : 0;
}

enum lk_status lk_group_wait(const struct lk_graph *graph, int places, double *wait)
{
    double *ends = calloc((size_t)graph->count + 1, sizeof *ends);
    if (!ends)
        return lk_fail_memory("the times of nodes", (size_t)graph->count * sizeof *ends);
    *wait = walk(graph, places, ends);
    free(ends);
    return LK_OK;
}

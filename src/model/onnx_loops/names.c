/* Names of a graph, by a table: a file has tens of thousands of them, and a loop asks for many.
 */
#include "model/onnx_loops/loops.h"

#include "base/fail.h"
#include <string.h>

bool lk_loop_is_op(const struct lk_onnx_node *node, const char *op)
{
    return strcmp(node->op, op) == 0 &&
           (!*node->domain || strcmp(node->domain, "ai.onnx") == 0);
}

static struct lk_loop_name *place_of(const struct lk_loop_graph *graph, const char *name)
{
    size_t at = lk_onnx_hash(name) & (graph->slots - 1);
    while (graph->names[at].name && strcmp(graph->names[at].name, name) != 0)
        at = (at + 1) & (graph->slots - 1);
    return &graph->names[at];
}

static struct lk_loop_name *enter(const struct lk_loop_graph *graph, const char *name)
{
    struct lk_loop_name *place = place_of(graph, name);
    if (!place->name)
        *place = (struct lk_loop_name){.name = name, .input = -1};
    return place;
}

/* A name that is there twice stays the first; make.c refuses such files. */
enum lk_status lk_loop_open_graph(struct lk_arena *arena, const struct lk_onnx_graph *of,
                                  struct lk_loop_graph *graph)
{
    void *memory;
    size_t names = (size_t)of->constant_count + (size_t)of->input_count + 1;
    for (int n = 0; n < of->node_count; n++)
        names += (size_t)of->nodes[n].output_count;
    *graph = (struct lk_loop_graph){.of = of, .slots = 16};
    while (graph->slots < 2 * names)
        graph->slots *= 2;
    LK_TRY(lk_arena_allocate(arena, graph->slots * sizeof *graph->names, &memory));
    graph->names = memory;
    for (int i = 0; i < of->constant_count; i++) {
        struct lk_loop_name *place = enter(graph, of->constants[i].name);
        place->constant = place->constant ? place->constant : &of->constants[i];
    }
    for (int i = 0; i < of->input_count; i++) {
        struct lk_loop_name *place = enter(graph, of->inputs[i].name);
        place->input = place->input < 0 ? i : place->input;
    }
    for (int n = 0; n < of->node_count; n++)
        for (int o = 0; o < of->nodes[n].output_count; o++) {
            struct lk_loop_name *place = enter(graph, of->nodes[n].outputs[o]);
            place->output = place->node ? place->output : o;
            place->node = place->node ? place->node : &of->nodes[n];
        }
    return LK_OK;
}

const struct lk_loop_name *lk_loop_find(const struct lk_loop_graph *graph, const char *name)
{
    const struct lk_loop_name *place = place_of(graph, name);
    return *name && place->name ? place : NULL;
}

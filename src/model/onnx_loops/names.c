/* Names of a graph, by a table: a file has tens of thousands of them, and a loop asks for many.
 */
#include "model/onnx_loops/loops.h"

#include "base/fail.h"
#include <string.h>

enum { MOST_DEPTH = 8 };

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

/* --- in a loop --------------------------------------------------------------------------- */

const struct lk_onnx_node *lk_loop_find_maker(const struct lk_loop_graph *graph,
                                              const char *name, int *output)
{
    const struct lk_loop_name *found = lk_loop_find(graph, name);
    if (!found || !found->node)
        return NULL;
    *output = found->output;
    return found->node;
}

bool lk_loop_takes(const struct lk_onnx_node *node, const char *op, int inputs)
{
    return node && lk_loop_is_op(node, op) && node->input_count >= inputs;
}

const char *lk_loop_skip(const struct lk_loop_graph *graph, const char *name)
{
    int output;
    for (int i = 0; i < MOST_DEPTH; i++) {
        const struct lk_onnx_node *node = lk_loop_find_maker(graph, name, &output);
        if (!lk_loop_takes(node, "Identity", 1))
            break;
        name = node->inputs[0];
    }
    return name;
}

const struct lk_onnx_node *lk_loop_maker(const struct lk_loop *l, const char *name, int *output)
{
    return lk_loop_find_maker(l->body, lk_loop_skip(l->body, name), output);
}

const struct lk_onnx_tensor *lk_loop_find_constant(const struct lk_loop_graph *graph,
                                                   const char *name)
{
    const struct lk_loop_name *found = lk_loop_find(graph, lk_loop_skip(graph, name));
    if (!found || found->constant)
        return found ? found->constant : NULL;
    const struct lk_onnx_attribute *said = lk_loop_takes(found->node, "Constant", 0)
                                               ? lk_onnx_find_attribute(found->node, "value")
                                               : NULL;
    return said ? said->tensor : NULL;
}

int lk_loop_find_input(const struct lk_loop *l, const char *name)
{
    const struct lk_loop_name *found = lk_loop_find(l->body, lk_loop_skip(l->body, name));
    return found ? found->input : -1;
}

const char *lk_loop_find_outside(const struct lk_loop *l, const char *name)
{
    const int input = lk_loop_find_input(l, name);
    name = lk_loop_skip(l->body, name);
    if (input < 0)
        return lk_loop_find(l->body, name) ? NULL : name;
    return input >= 2 && input < l->node->input_count &&
                   input == lk_loop_find_input(l, l->body->of->outputs[input - 1].name)
               ? l->node->inputs[input]
               : NULL;
}

const struct lk_onnx_tensor *lk_loop_tensor(const struct lk_loop *l, const char *name)
{
    const struct lk_onnx_tensor *own = lk_loop_find_constant(l->body, name);
    const char *outside = own ? NULL : lk_loop_find_outside(l, name);
    return outside ? lk_loop_find_constant(l->file, outside) : own;
}

bool lk_loop_is_number(const struct lk_onnx_tensor *tensor, double number)
{
    return tensor && tensor->count == 1 && lk_onnx_real(tensor, 0) == number;
}

int64_t lk_loop_say(const struct lk_onnx_node *node, const char *name, int64_t standard)
{
    const struct lk_onnx_attribute *said = lk_onnx_find_attribute(node, name);
    return said && said->kind == LK_ONNX_INTEGER ? said->integer : standard;
}

/* Adds nodes to a graph and infers their shapes. */
#include "graph/nodes/names.h"

#include "base/fail.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DEVICE_NAME = 40 };

enum lk_status lk_graph_create(struct lk_graph **graph)
{
    struct lk_graph *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("a graph", sizeof *made);
    *graph = made;
    return LK_OK;
}

void lk_graph_destroy(struct lk_graph *graph)
{
    if (!graph)
        return;
    lk_arena_clear(&graph->arena);
    free(graph->nodes);
    free(graph->lists);
    free(graph->ops);
    free(graph);
}

struct lk_node *lk_graph_node(const struct lk_graph *graph, int index)
{
    return index >= 0 && index < graph->count ? graph->nodes[index] : NULL;
}

static enum lk_status new_node(struct lk_graph *graph, struct lk_node **node)
{
    void *memory = NULL;
    LK_TRY(lk_names_make_room(graph));
    LK_TRY(lk_arena_allocate(&graph->arena, sizeof **node, &memory));
    if (graph->count == graph->room) {
        const int room = graph->room ? 2 * graph->room : 16;
        struct lk_node **nodes = realloc(graph->nodes, (size_t)room * sizeof *nodes);
        if (!nodes)
            return lk_fail_memory("nodes", (size_t)room * sizeof *nodes);
        graph->nodes = nodes;
        graph->room = room;
    }
    *node = memory;
    (*node)->graph = graph;
    (*node)->index = graph->count;
    (*node)->place = -1;
    (*node)->is_trainable = true;
    (*node)->lr_scale = 1;
    return LK_OK;
}

/* The graph has a node that new_node() made, with its name, from now on. */
static void enter(struct lk_graph *graph, struct lk_node *node)
{
    graph->nodes[graph->count++] = node;
    lk_names_enter(node);
}

/* Names are written into files, such as checkpoints: letters, digits, '_', '-', '/'. */
static enum lk_status check_name(const struct lk_graph *graph, const char *name)
{
    const size_t length = strlen(name);
    if (length == 0 || length >= sizeof graph->nodes[0]->name)
        return lk_fail(LK_E_ARGUMENT, "a node's name has 1 to %zu characters, not %zu",
                       sizeof graph->nodes[0]->name - 1, length);
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)name[i]) && !strchr("_-/", name[i]))
            return lk_fail(LK_E_ARGUMENT,
                           "node name '%s': only letters, digits, '_', '-' and '/'", name);
    if (lk_graph_find(graph, name))
        return lk_fail(LK_E_ARGUMENT, "two nodes are named '%s'", name);
    return LK_OK;
}

enum lk_status lk_graph_add_input(struct lk_graph *graph, const struct lk_input *input,
                                  struct lk_node **node)
{
    struct lk_node *made = NULL;
    LK_TRY(check_name(graph, input->name));
    if (lk_shape_count(&input->shape) < 1 ||
        (input->dtype == LK_U8 && input->shape.rank != 3) ||
        (input->dtype == LK_F32 && !input->takes_numbers && input->shape.rank != 1))
        return lk_fail(LK_E_SHAPE, "input '%s' has no usable shape", input->name);
    LK_TRY(new_node(graph, &made));
    snprintf(made->name, sizeof made->name, "%s", input->name);
    made->input = *input;
    made->input.name = made->name;
    made->shapes.y = input->shape;
    enter(graph, made);
    *node = made;
    return LK_OK;
}

/* A sequence is numbers [t, c], or integers [t]. */
static bool is_sequence(const struct lk_node *node)
{
    const bool is_integers = !node->op && node->input.dtype == LK_I32;
    return node->shapes.y.rank == (is_integers ? 1 : 2);
}

enum lk_status lk_graph_add_length(struct lk_node *sequence, struct lk_node **length)
{
    char name[sizeof sequence->name + sizeof "_length"], shape[64];
    snprintf(name, sizeof name, "%s_length", sequence->name);
    const struct lk_input input = {.name = name, .dtype = LK_I32};
    lk_shape_print(&sequence->shapes.y, shape, sizeof shape);
    if (sequence->op || !is_sequence(sequence))
        return lk_fail(
            LK_E_SHAPE,
            "only an input that is a sequence, numbers [t, c] or integers [t], has a "
            "length; '%s' is %s %s",
            sequence->name, sequence->op ? "a layer of" : "an input of", shape);
    if (sequence->length)
        return lk_fail(LK_E_ARGUMENT, "input '%s' has a length already", sequence->name);
    LK_TRY(lk_graph_add_input(sequence->graph, &input, length));
    (*length)->sequence = sequence;
    sequence->length = *length;
    return LK_OK;
}

size_t lk_input_bytes(const struct lk_input *input)
{
    const bool is_label = input->dtype == LK_F32 && !input->takes_numbers;
    return is_label ? sizeof(int32_t)
                    : (size_t)lk_shape_count(&input->shape) * lk_dtype_bytes(input->dtype);
}

/* The first of an operation's nodes is OP_1. Where many of the names that follow are taken, as
 * an import may name nodes, ever more are skipped. */
static void name_after_op(struct lk_node *node, int nodes)
{
    int number = nodes + 1;
    for (int tries = 0, step = 1;; tries++, number += step) {
        snprintf(node->name, sizeof node->name, "%.48s_%d", node->op->name, number);
        if (!lk_graph_find(node->graph, node->name))
            return;
        if (tries >= 100)
            step *= 2;
    }
}

static enum lk_status infer(struct lk_node *node)
{
    struct lk_op_shapes *shapes = &node->shapes;
    shapes->options = node->options;
    shapes->inputs = node->inputs;
    for (int i = 0; i < node->inputs; i++) {
        const struct lk_node *x = node->input_nodes[i];
        shapes->x[i] = x->shapes.y;
        shapes->x_dtype[i] = !x->op && x->input.dtype == LK_I32 ? LK_I32 : LK_F32;
    }
    const enum lk_status status = node->op->infer(shapes);
    if (status != LK_OK)
        return lk_fail_within(status, "%s", node->name);
    if (lk_shape_count(&shapes->y) < 1)
        return lk_fail(LK_E_SHAPE, "%s: its output has no elements", node->name);
    return LK_OK;
}

/* Adds the length of an input, where the operation takes one and none is given. */
static int add_length(const struct lk_op *op, int count, struct lk_node *x[LK_MOST_INPUTS])
{
    const struct lk_node *last = x[count - 1];
    const bool is_given = !last->op && last->input.dtype == LK_I32 && last->shapes.y.rank == 0;
    const struct lk_node *sequence = op->length_of_last ? last : x[0];
    if (!op->takes_length || !sequence->length || is_given || count == op->max_inputs)
        return count;
    x[count] = sequence->length;
    return count + 1;
}

/* A sequence that has as many time steps as the first input has its length. */
static struct lk_node *length_of(const struct lk_node *node)
{
    const struct lk_node *x = node->input_nodes[0];
    const bool is_as_long = is_sequence(node) && is_sequence(x) && !node->shapes.ends_steps &&
                            node->shapes.y.dim[0] == x->shapes.y.dim[0];
    return is_as_long ? x->length : NULL;
}

enum lk_status lk_graph_add_many(struct lk_graph *graph, const char *op, int count,
                                 struct lk_node *const *x, const char *options,
                                 struct lk_node **y)
{
    const struct lk_op *found = NULL;
    struct lk_node *made = NULL;
    int *nodes = NULL;
    LK_TRY(lk_op_find(op, &found));
    if (count < found->min_inputs || count > found->max_inputs)
        return lk_fail(LK_E_MODEL, "%s takes %d to %d inputs, not %d", op, found->min_inputs,
                       found->max_inputs, count);
    for (int i = 0; i < count; i++)
        if (!x[i] || x[i]->graph != graph)
            return lk_fail(LK_E_ARGUMENT, "%s: input %d is no node of this graph", op, i);
    LK_TRY(new_node(graph, &made));
    LK_TRY(lk_arena_allocate(&graph->arena, found->options_bytes + 1, &made->options));
    made->op = found;
    memcpy(made->input_nodes, x, (size_t)count * sizeof *x);
    made->inputs = add_length(found, count, made->input_nodes);
    LK_TRY(lk_names_count(graph, found, &nodes));
    name_after_op(made, *nodes);
    const enum lk_status status = lk_options_parse(found->options, made->options, options);
    if (status != LK_OK)
        return lk_fail_within(status, "%s", made->name);
    LK_TRY(infer(made));
    made->length = length_of(made);
    enter(graph, made);
    ++*nodes;
    *y = made;
    return LK_OK;
}

enum lk_status lk_graph_add(struct lk_graph *graph, const char *op, struct lk_node *x,
                            const char *options, struct lk_node **y)
{
    return lk_graph_add_many(graph, op, 1, &x, options, y);
}

enum lk_status lk_node_set_name(struct lk_node *node, const char *name)
{
    node->is_named = true;
    if (strcmp(node->name, name) == 0)
        return LK_OK;
    LK_TRY(check_name(node->graph, name));
    lk_names_leave(node);
    snprintf(node->name, sizeof node->name, "%s", name);
    lk_names_enter(node);
    return LK_OK;
}

void lk_node_set_place(struct lk_node *node, int place)
{
    node->place = place;
}

enum lk_status lk_node_set_device(struct lk_node *node, const char *name)
{
    static const char known[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    const size_t length = strlen(name);
    if (length == 0 || length > MOST_DEVICE_NAME || strspn(name, known) < length)
        return lk_fail(LK_E_ARGUMENT,
                       "device: a word of at most %d letters, digits, '_' and '-' expected, "
                       "found '%.60s'",
                       MOST_DEVICE_NAME, name);
    return lk_arena_text(&node->graph->arena, name, &node->device);
}

void lk_node_set_trainable(struct lk_node *node, bool is_trainable)
{
    node->is_trainable = is_trainable;
}

enum lk_status lk_node_set_lr_scale(struct lk_node *node, double scale)
{
    if (!(scale >= 0 && scale <= 1e6))
        return lk_fail(LK_E_ARGUMENT, "%s: lr_scale %g is not in 0..1e6", node->name, scale);
    node->lr_scale = scale;
    return LK_OK;
}

enum lk_status lk_node_set_penalties(struct lk_node *node, double l1, double l2)
{
    if (!(l1 >= 0 && l1 <= 1e6 && l2 >= 0 && l2 <= 1e6))
        return lk_fail(LK_E_ARGUMENT, "%s: l1 %g, l2 %g: not in 0..1e6", node->name, l1, l2);
    node->l1 = l1;
    node->l2 = l2;
    return LK_OK;
}

struct lk_node_info lk_node_info(const struct lk_node *node)
{
    struct lk_node_info info = {.name = node->name,
                                .op = node->op ? node->op->name : "input",
                                .shape = node->shapes.y,
                                .inputs = node->inputs,
                                .is_trainable = lk_node_owner(node)->is_trainable,
                                .flops = node->shapes.flops,
                                .lr_scale = lk_node_owner(node)->lr_scale,
                                .l1 = lk_node_owner(node)->l1,
                                .l2 = lk_node_owner(node)->l2,
                                .weights_of = node->weights_of ? node->weights_of->name : NULL,
                                .length = node->length ? node->length->name : NULL,
                                .device = node->device,
                                .place = lk_node_place(node),
                                .has_place = node->op && node->place >= 0};
    for (int i = 0; !node->weights_of && i < node->shapes.params; i++) {
        const struct lk_param_spec *param = &node->shapes.param[i];
        info.parameters += lk_shape_count(&param->shape);
        if (node->is_trainable && !param->is_tracked)
            info.trained += lk_shape_count(&param->shape);
    }
    return info;
}

struct lk_node *lk_node_input(const struct lk_node *node, int index)
{
    return index >= 0 && index < node->inputs ? node->input_nodes[index] : NULL;
}

void lk_node_options(const struct lk_node *node, char *text, size_t bytes)
{
    if (bytes)
        text[0] = '\0';
    if (node->op)
        (void)lk_options_print(node->op->options, node->options, false, text, bytes);
}

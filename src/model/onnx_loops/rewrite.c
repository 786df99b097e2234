/* Loops over time steps as converters from TensorFlow write Keras's GRU and SimpleRNN: a body
 * that computes one step, with the step's number and the state as what it carries. They become
 * the operators GRU and RNN, whose weights are trained. What is no such loop stays as it is. */
#include "model/onnx_loops/loops.h"

#include "base/fail.h"
#include <stdio.h>
#include <string.h>

enum { ADDED_NODES = 2, ADDED_CONSTANTS = 6, INPUTS = 5 };

static enum lk_status new_tensor(struct lk_loop *l, const char *role, enum lk_onnx_type type,
                                 struct lk_onnx_tensor *made)
{
    void *memory, *name;
    const size_t length = strlen(l->name) + 16;
    made->count = 1;
    for (int i = 0; i < made->rank; i++)
        made->count *= made->dim[i];
    made->type = type;
    LK_TRY(
        lk_arena_allocate(l->arena, (size_t)made->count * lk_onnx_type_bytes(type), &memory));
    LK_TRY(lk_arena_allocate(l->arena, length, &name));
    snprintf(name, length, "%s/%s", l->name, role);
    made->data = memory;
    made->name = name;
    return LK_OK;
}

/* [1, columns, rows] of a matrix [rows, columns]. */
static enum lk_status turn(struct lk_loop *l, const char *role,
                           const struct lk_onnx_tensor *from, struct lk_onnx_tensor *made)
{
    *made = (struct lk_onnx_tensor){.rank = 3, .dim = {1, from->dim[1], from->dim[0]}};
    LK_TRY(new_tensor(l, role, LK_ONNX_FLOAT, made));
    float *to = (float *)(uintptr_t)made->data;
    for (int64_t c = 0; c < from->dim[1]; c++)
        for (int64_t r = 0; r < from->dim[0]; r++)
            *to++ = (float)lk_onnx_real(from, r * from->dim[1] + c);
    return LK_OK;
}

static enum lk_status join_biases(struct lk_loop *l, struct lk_onnx_tensor *made)
{
    const int64_t each = l->gates * l->units;
    *made = (struct lk_onnx_tensor){.rank = 2, .dim = {1, 2 * each}};
    LK_TRY(new_tensor(l, "B", LK_ONNX_FLOAT, made));
    float *to = (float *)(uintptr_t)made->data;
    memset(to, 0, 2 * (size_t)each * sizeof *to);
    for (int b = 0; b < l->given.biases; b++)
        for (int64_t i = 0; i < each; i++)
            to[b * each + i] =
                (float)lk_onnx_real(l->given.bias[b].of, l->given.bias[b].first + i);
    for (int64_t i = 0; l->carried.biases && i < each; i++)
        to[each + i] = (float)lk_onnx_real(l->carried.bias[0].of, l->carried.bias[0].first + i);
    return LK_OK;
}

/* A Squeeze of one axis, said as the file's operators do. */
static enum lk_status add_squeeze(struct lk_loop *l, const char *from, const char *to,
                                  const struct lk_onnx_tensor *axis, struct lk_onnx_node *made)
{
    void *memory;
    const bool is_old = l->file->of->operators < 13;
    LK_TRY(lk_arena_allocate(l->arena, 3 * sizeof(char *) + sizeof(struct lk_onnx_attribute),
                             &memory));
    const char **names = memory;
    struct lk_onnx_attribute *axes = (struct lk_onnx_attribute *)(names + 3);
    names[0] = from;
    names[1] = axis->name;
    names[2] = to;
    *axes = (struct lk_onnx_attribute){
        .name = "axes", .kind = LK_ONNX_INTEGERS, .integers = axis->data, .count = 1};
    *made = (struct lk_onnx_node){.name = l->node->name,
                                  .op = "Squeeze",
                                  .domain = "",
                                  .inputs = names,
                                  .outputs = names + 2,
                                  .input_count = is_old ? 1 : 2,
                                  .output_count = 1,
                                  .attributes = axes,
                                  .attribute_count = is_old};
    return LK_OK;
}

static enum lk_status make_constants(struct lk_loop *l, struct lk_onnx_tensor *constants)
{
    LK_TRY(turn(l, "W", l->given.w, &constants[0]));
    LK_TRY(turn(l, "R", l->gates == 3 ? l->carried.r : l->given.r, &constants[1]));
    LK_TRY(join_biases(l, &constants[2]));
    static const char *const roles[] = {"steps", "first", "second"};
    const int64_t numbers[] = {l->steps, 0, 1}; /* the length of all x; axes of directions */
    for (int i = 0; i < 3; i++) {
        constants[3 + i] = (struct lk_onnx_tensor){.rank = i > 0, .dim = {1}};
        LK_TRY(new_tensor(l, roles[i], LK_ONNX_INT64, &constants[3 + i]));
        lk_onnx_put_integer(&constants[3 + i], 0, numbers[i]);
    }
    return LK_OK;
}

/* What the operator says: names[0] is a function of it. */
static void say_options(const struct lk_loop *l, const char **names,
                        struct lk_onnx_attribute *said)
{
    names[0] = l->function;
    said[0] = (struct lk_onnx_attribute){
        .name = "hidden_size", .kind = LK_ONNX_INTEGER, .integer = l->units};
    said[1] =
        l->gates == 3
            ? (struct lk_onnx_attribute){.name = "linear_before_reset",
                                         .kind = LK_ONNX_INTEGER,
                                         .integer = 1}
            : (struct lk_onnx_attribute){
                  .name = "activations", .kind = LK_ONNX_TEXTS, .texts = names, .count = 1};
}

/* The nodes and constants that a loop becomes: the operator, and its outputs without the axis
 * of directions. */
static enum lk_status rewrite(struct lk_loop *l, struct lk_onnx_node *nodes,
                              struct lk_onnx_tensor *constants)
{
    enum { NAMES = INPUTS + 3 };
    void *memory;
    const int last = l->node->output_count - 1;
    LK_TRY(make_constants(l, constants));
    LK_TRY(lk_arena_allocate(
        l->arena, NAMES * sizeof(char *) + 2 * sizeof(struct lk_onnx_attribute), &memory));
    const char **names = memory;
    struct lk_onnx_attribute *said = (struct lk_onnx_attribute *)(names + NAMES);
    names[0] = l->x;
    for (int i = 1; i < INPUTS; i++)
        names[i] = constants[i - 1].name;
    for (int i = 0; i < 2; i++) {
        struct lk_onnx_tensor name = {.rank = 1, .dim = {1}};
        LK_TRY(new_tensor(l, i ? "Y_h" : "Y", LK_ONNX_BOOL, &name));
        names[INPUTS + i] = name.name;
    }
    say_options(l, names + INPUTS + 2, said);
    LK_TRY(add_squeeze(l, names[INPUTS], l->node->outputs[last], &constants[5], &nodes[1]));
    LK_TRY(add_squeeze(l, names[INPUTS + 1], l->node->outputs[l->state - 2], &constants[4],
                       &nodes[2]));
    nodes[0] = (struct lk_onnx_node){.name = l->node->name,
                                     .op = l->gates == 3 ? "GRU" : "RNN",
                                     .domain = "",
                                     .inputs = names,
                                     .outputs = names + INPUTS,
                                     .input_count = INPUTS,
                                     .output_count = 2,
                                     .attributes = said,
                                     .attribute_count = 2};
    return LK_OK;
}

/* NULL: it is no loop, or one whose body was not read. */
static const struct lk_onnx_graph *body_of(const struct lk_onnx_node *node)
{
    const struct lk_onnx_attribute *body = lk_loop_is_op(node, "Loop") && node->input_count >= 3
                                               ? lk_onnx_find_attribute(node, "body")
                                               : NULL;
    return body ? body->graph : NULL;
}

enum lk_status lk_onnx_join_loops(struct lk_arena *arena, struct lk_onnx_graph *graph)
{
    void *memory;
    int loops = 0, count = 0;
    struct lk_loop_graph names, body;
    for (int n = 0; n < graph->node_count; n++)
        loops += body_of(&graph->nodes[n]) != NULL;
    if (loops == 0)
        return LK_OK;
    const struct lk_onnx_graph file = *graph;
    LK_TRY(lk_loop_open_graph(arena, &file, &names));
    LK_TRY(lk_arena_allocate(
        arena, (size_t)(file.node_count + ADDED_NODES * loops) * sizeof *file.nodes, &memory));
    struct lk_onnx_node *nodes = memory;
    LK_TRY(lk_arena_allocate(
        arena, (size_t)(file.constant_count + ADDED_CONSTANTS * loops) * sizeof *file.constants,
        &memory));
    struct lk_onnx_tensor *constants = memory;
    memcpy(constants, file.constants, (size_t)file.constant_count * sizeof *constants);
    graph->nodes = nodes;
    graph->constants = constants;
    for (int n = 0; n < file.node_count; n++) {
        struct lk_loop l = {
            .arena = arena, .file = &names, .body = &body, .node = &file.nodes[n]};
        nodes[count++] = file.nodes[n];
        if (!body_of(l.node))
            continue;
        LK_TRY(lk_loop_open_graph(arena, body_of(l.node), &body));
        if (!lk_loop_recognize(&l))
            continue;
        LK_TRY(rewrite(&l, &nodes[count - 1], &constants[graph->constant_count]));
        graph->constant_count += ADDED_CONSTANTS;
        count += ADDED_NODES;
    }
    graph->node_count = count;
    return LK_OK;
}

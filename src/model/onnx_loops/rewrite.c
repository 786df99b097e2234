/* Loops over time steps as converters from TensorFlow write Keras's GRU and SimpleRNN, and all
 * recurrent layers behind a mask: a body that computes one step, with the step's number and the
 * state as what it carries. They become the operators GRU, LSTM and RNN, whose weights are
 * trained. What is no such loop stays as it is. */
#include "model/onnx_loops/loops.h"

#include "base/fail.h"
#include <stdio.h>
#include <string.h>

enum { INPUTS = 5, OUTPUTS = 3, ATTRIBUTES = 5 };

/* --- constants ---------------------------------------------------------------------------- */

static enum lk_status new_tensor(struct lk_loop *l, const char *role, enum lk_onnx_type type,
                                 struct lk_onnx_tensor *made)
{
    void *memory;
    made->count = 1;
    for (int i = 0; i < made->rank; i++)
        made->count *= made->dim[i];
    made->type = type;
    LK_TRY(
        lk_arena_allocate(l->arena, (size_t)made->count * lk_onnx_type_bytes(type), &memory));
    made->data = memory;
    return lk_loop_make_name(l, role, &made->name);
}

/* Column `i` of Keras's gates is of which column there: an LSTM has i, f, c, o, and i, o, f, c
 * in ONNX. */
static int64_t column_of(const struct lk_loop *l, int64_t i)
{
    static const int order[] = {0, 3, 1, 2};
    return l->gates == 4 ? order[i / l->units] * l->units + i % l->units : i;
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
            *to++ = (float)lk_onnx_real(from, r * from->dim[1] + column_of(l, c));
    return LK_OK;
}

static void put_bias(const struct lk_loop *l, const struct lk_loop_row *bias, float *to)
{
    for (int64_t i = 0; i < bias->count; i++)
        to[i] = (float)lk_onnx_real(bias->of, bias->first + column_of(l, i));
}

static enum lk_status join_biases(struct lk_loop *l, struct lk_onnx_tensor *made)
{
    const int64_t each = l->gates * l->units;
    *made = (struct lk_onnx_tensor){.rank = 2, .dim = {1, 2 * each}};
    LK_TRY(new_tensor(l, "B", LK_ONNX_FLOAT, made));
    float *to = (float *)(uintptr_t)made->data;
    memset(to, 0, 2 * (size_t)each * sizeof *to);
    for (int b = 0; b < l->given.biases; b++)
        put_bias(l, &l->given.bias[b], to + b * each);
    if (l->carried.biases)
        put_bias(l, &l->carried.bias[0], to + each);
    return LK_OK;
}

static enum lk_status make_constants(struct lk_loop *l, struct lk_onnx_tensor *constants)
{
    LK_TRY(turn(l, "W", l->given.w, &constants[0]));
    LK_TRY(turn(l, "R", l->gates == 3 ? l->carried.r : l->given.r, &constants[1]));
    LK_TRY(join_biases(l, &constants[2]));
    static const char *const roles[] = {"first", "second", "end"};
    const int64_t numbers[] = {0, 1, l->steps - 1};
    for (int i = 0; i < 3; i++) {
        constants[3 + i] = (struct lk_onnx_tensor){.rank = i < 2, .dim = {1}};
        LK_TRY(new_tensor(l, roles[i], LK_ONNX_INT64, &constants[3 + i]));
        lk_onnx_put_integer(&constants[3 + i], 0, numbers[i]);
    }
    return LK_OK;
}

/* --- nodes -------------------------------------------------------------------------------- */

/* What the operator says: texts[0] is a function of it, texts[1] of its mask. */
static int say_options(const struct lk_loop *l, const char **texts,
                       struct lk_onnx_attribute *said)
{
    int count = 2;
    texts[0] = l->function;
    said[0] = (struct lk_onnx_attribute){
        .name = "hidden_size", .kind = LK_ONNX_INTEGER, .integer = l->units};
    said[1] = (struct lk_onnx_attribute){
        .name = "loop_steps", .kind = LK_ONNX_INTEGER, .integer = l->steps};
    if (l->gates == 3)
        said[count++] = (struct lk_onnx_attribute){.name = "linear_before_reset",
                                                   .kind = LK_ONNX_INTEGER,
                                                   .integer = !l->resets_before};
    if (l->gates == 1)
        said[count++] = (struct lk_onnx_attribute){
            .name = "activations", .kind = LK_ONNX_TEXTS, .texts = texts, .count = 1};
    if (l->turned)
        said[count++] = (struct lk_onnx_attribute){
            .name = "direction", .kind = LK_ONNX_TEXT, .text = "reverse"};
    if (l->masked && !l->tokens)
        said[count++] =
            (struct lk_onnx_attribute){.name = "masked",
                                       .kind = LK_ONNX_TEXT,
                                       .text = l->masked == LK_LOOP_KEEPS ? "keep" : "zero"};
    return count;
}

/* The nodes and constants that a loop becomes: the operator, and what the loop gave. */
static enum lk_status rewrite(struct lk_loop *l, struct lk_onnx_node *nodes, int *count,
                              struct lk_onnx_tensor *constants)
{
    void *memory;
    static const char *const roles[OUTPUTS] = {"Y", "Y_h", "Y_c"};
    const char *names[INPUTS + OUTPUTS] = {l->x};
    LK_TRY(make_constants(l, constants));
    LK_TRY(lk_arena_allocate(
        l->arena, sizeof(char *) + ATTRIBUTES * sizeof(struct lk_onnx_attribute), &memory));
    struct lk_onnx_attribute *said = memory;
    for (int i = 1; i < INPUTS - 1; i++)
        names[i] = constants[i - 1].name;
    names[INPUTS - 1] = l->tokens ? l->length : l->mask ? l->mask : "";
    for (int i = 0; i < OUTPUTS; i++)
        LK_TRY(lk_loop_make_name(l, roles[i], &names[INPUTS + i]));
    struct lk_onnx_node *made = &nodes[(*count)++];
    LK_TRY(lk_loop_add(l, l->op, INPUTS, l->gates == 4 ? 3 : 2, names, made));
    made->attributes = said;
    made->attribute_count = say_options(l, (const char **)(said + ATTRIBUTES), said);
    return lk_loop_give(l, names + INPUTS, &constants[3], nodes, count);
}

/* --- the file ----------------------------------------------------------------------------- */

/* A file whose loops are joined, and lists of what it will have. */
struct joined {
    struct lk_arena *arena;
    struct lk_onnx_graph *graph, file; /* the new one, and as it was */
    struct lk_loop_graph names;
    bool is_whole;
    struct lk_onnx_node *nodes;
    struct lk_onnx_tensor *constants;
    struct lk_onnx_port *inputs;
    struct lk_loop *loops;
    int loop_count;
};

/* NULL: it is no loop, or one whose body was not read. */
static const struct lk_onnx_graph *body_of(const struct lk_onnx_node *node)
{
    const struct lk_onnx_attribute *body = lk_loop_is_op(node, "Loop") && node->input_count >= 3
                                               ? lk_onnx_find_attribute(node, "body")
                                               : NULL;
    return body ? body->graph : NULL;
}

/* The lists, with room for what `loops` loops become. */
static enum lk_status open_lists(struct joined *j, int loops)
{
    void *memory[4];
    const struct lk_onnx_graph *file = &j->file;
    const size_t bytes[] = {
        (size_t)(file->node_count + LK_LOOP_MOST_NODES * loops) * sizeof *j->nodes,
        (size_t)(file->constant_count + LK_LOOP_CONSTANTS * loops) * sizeof *j->constants,
        (size_t)(file->input_count + loops) * sizeof *j->inputs,
        (size_t)loops * sizeof *j->loops};
    for (int i = 0; i < 4; i++)
        LK_TRY(lk_arena_allocate(j->arena, bytes[i], &memory[i]));
    j->nodes = memory[0];
    j->constants = memory[1];
    j->inputs = memory[2];
    j->loops = memory[3];
    if (file->constant_count)
        memcpy(j->constants, file->constants,
               (size_t)file->constant_count * sizeof *j->constants);
    if (file->input_count)
        memcpy(j->inputs, file->inputs, (size_t)file->input_count * sizeof *j->inputs);
    j->graph->nodes = j->nodes;
    j->graph->constants = j->constants;
    j->graph->inputs = j->inputs;
    return LK_OK;
}

/* Whether a mask's lengths can be an input, which is added. */
static enum lk_status add_length(struct joined *j, struct lk_loop *l, bool *done)
{
    void *memory;
    *done = lk_loop_find_tokens(l);
    if (!*done)
        return LK_OK;
    const size_t room = strlen(l->tokens->name) + sizeof "_length";
    LK_TRY(lk_arena_allocate(j->arena, room, &memory));
    snprintf(memory, room, "%s_length", l->tokens->name);
    l->length = memory;
    for (int i = j->file.input_count; i < j->graph->input_count; i++)
        if (strcmp(j->inputs[i].name, l->length) == 0)
            return LK_OK;
    *done = !lk_loop_find(&j->names, l->length);
    if (*done)
        j->inputs[j->graph->input_count++] = (struct lk_onnx_port){.name = l->length,
                                                                   .batch = l->tokens->batch,
                                                                   .type = LK_ONNX_INT32,
                                                                   .rank = 1,
                                                                   .dim = {l->tokens->dim[0]}};
    return LK_OK;
}

static enum lk_status join(struct joined *j, const struct lk_onnx_node *node, int *count)
{
    struct lk_loop_graph body;
    struct lk_loop l = {.arena = j->arena, .file = &j->names, .body = &body, .node = node};
    bool done = false;
    j->nodes[*count] = *node;
    if (body_of(node)) {
        LK_TRY(lk_loop_open_graph(j->arena, body_of(node), &body));
        done = lk_loop_recognize(&l);
    }
    if (done && l.masked && !j->is_whole)
        LK_TRY(add_length(j, &l, &done));
    if (!done)
        return lk_loop_read(j->loops, j->loop_count, &j->names, &j->nodes[(*count)++]);
    lk_loop_read_steps(j->loops, j->loop_count, &l);
    LK_TRY(rewrite(&l, j->nodes, count, &j->constants[j->graph->constant_count]));
    j->graph->constant_count += LK_LOOP_CONSTANTS;
    j->loops[j->loop_count++] = l;
    return LK_OK;
}

enum lk_status lk_onnx_join_loops(struct lk_arena *arena, struct lk_onnx_graph *graph,
                                  bool is_whole)
{
    int loops = 0, count = 0;
    struct joined j = {.arena = arena, .graph = graph, .file = *graph, .is_whole = is_whole};
    for (int n = 0; n < graph->node_count; n++)
        loops += body_of(&graph->nodes[n]) != NULL;
    if (loops == 0)
        return LK_OK;
    LK_TRY(lk_loop_open_graph(arena, &j.file, &j.names));
    LK_TRY(open_lists(&j, loops));
    for (int n = 0; n < j.file.node_count; n++)
        LK_TRY(join(&j, &j.file.nodes[n], &count));
    graph->node_count = count;
    return LK_OK;
}

/* Reads ONNX files: protobuf-c makes messages of the bytes, of which this makes a graph. */
#include "io/onnx/memory.h"

#include "base/fail.h"
#include "io/file.h"
#include <stdlib.h>
#include <string.h>

enum { ROOM = 16 }; /* before each of protobuf-c's allocations, for its length */

static const size_t most_file_bytes = (size_t)1 << 31;

/* --- memory of protobuf-c ----------------------------------------------------------------- */

static void *take(void *context, size_t bytes)
{
    struct lk_onnx_memory *memory = context;
    if (bytes > memory->most || memory->taken > memory->most - bytes)
        return NULL;
    char *taken = malloc(bytes + ROOM);
    if (!taken)
        return NULL;
    memcpy(taken, &bytes, sizeof bytes);
    memory->taken += bytes;
    return taken + ROOM;
}

static void give_back(void *context, void *given)
{
    struct lk_onnx_memory *memory = context;
    size_t bytes;
    if (!given)
        return;
    memcpy(&bytes, (char *)given - ROOM, sizeof bytes);
    memory->taken -= bytes;
    free((char *)given - ROOM);
}

/* What a file of so many bytes may become: small parts grow most, up to a limit. */
static size_t bound(size_t bytes)
{
    const size_t small = ((size_t)16 << 20) + 40 * bytes;
    const size_t large = ((size_t)40 << 20) + 3 * bytes;
    return small < large ? small : large;
}

static enum lk_status unpack(struct lk_onnx_memory *memory, bool is_model)
{
    void *bytes = NULL;
    size_t count = 0;
    ProtobufCAllocator allocator = {take, give_back, memory};
    LK_TRY(lk_file_read(memory->path, most_file_bytes, &bytes, &count));
    memory->most = bound(count);
    const enum lk_status status =
        is_model ? lk_onnx_check_counts(memory->path, bytes, count) : LK_OK;
    if (is_model && status == LK_OK)
        memory->model = lk_onnx__model__unpack(&allocator, count, bytes);
    else if (!is_model)
        memory->tensor = lk_onnx__tensor__unpack(&allocator, count, bytes);
    free(bytes);
    LK_TRY(status);
    if (!is_model)
        return memory->tensor ? LK_OK
                              : lk_fail(LK_E_DATA, "'%s' is no tensor of ONNX", memory->path);
    if (!memory->model)
        return lk_fail(LK_E_DATA, "'%s' is no ONNX model, or one of absurdly many parts",
                       memory->path);
    if (!memory->model->graph || memory->model->n_operator_set == 0)
        return lk_fail(LK_E_DATA, "'%s': no graph, or no set of operators, is in it",
                       memory->path);
    return LK_OK;
}

/* --- nodes -------------------------------------------------------------------------------- */

static const char *text_or(const char *text, const char *standard)
{
    return text ? text : standard;
}

/* Room for count elements in the arena; its address goes to *to. */
static enum lk_status list(struct lk_onnx_memory *memory, size_t count, size_t each, void *to)
{
    void *made;
    LK_TRY(lk_arena_allocate(&memory->arena, count * each + 1, &made));
    memcpy(to, &made, sizeof made);
    return LK_OK;
}

/* Bytes as a text, which ends where they have a 0. */
static enum lk_status copy_text(struct lk_onnx_memory *memory, const ProtobufCBinaryData *from,
                                const char **text)
{
    char *made;
    LK_TRY(list(memory, from->len + 1, 1, &made));
    if (from->len)
        memcpy(made, from->data, from->len);
    made[from->len] = '\0';
    *text = made;
    return LK_OK;
}

static enum lk_status copy_texts(struct lk_onnx_memory *memory, const LkOnnx__Attribute *from,
                                 struct lk_onnx_attribute *made)
{
    const char **texts;
    LK_TRY(list(memory, from->n_texts, sizeof *texts, &texts));
    for (size_t i = 0; i < from->n_texts; i++)
        LK_TRY(copy_text(memory, &from->texts[i], &texts[i]));
    made->kind = LK_ONNX_TEXTS;
    made->texts = texts;
    made->count = (int)from->n_texts;
    return LK_OK;
}

static enum lk_status read_attribute(struct lk_onnx_memory *memory,
                                     const LkOnnx__Attribute *from, const char *node,
                                     struct lk_onnx_attribute *made)
{
    struct lk_onnx_tensor *tensor;
    *made = (struct lk_onnx_attribute){.name = text_or(from->name, "")};
    if (from->has_graph || (from->reference && *from->reference))
        return LK_OK;
    if (from->tensor) {
        LK_TRY(list(memory, 1, sizeof *tensor, &tensor));
        made->kind = LK_ONNX_TENSOR;
        made->tensor = tensor;
        return lk_onnx_make_tensor(memory, from->tensor, node, tensor);
    }
    if (from->has_text) {
        made->kind = LK_ONNX_TEXT;
        return copy_text(memory, &from->text, &made->text);
    }
    if (from->n_texts)
        return copy_texts(memory, from, made);
    made->real = from->real;
    made->integer = from->integer;
    made->reals = from->reals;
    made->integers = from->integers;
    made->kind = from->n_integers || from->type == 7 ? LK_ONNX_INTEGERS
                 : from->n_reals || from->type == 6  ? LK_ONNX_REALS
                 : from->has_integer                 ? LK_ONNX_INTEGER
                 : from->has_real || from->type == 1 ? LK_ONNX_REAL
                 : from->type == 2                   ? LK_ONNX_INTEGER
                                                     : LK_ONNX_OTHER;
    made->count = (int)(made->kind == LK_ONNX_INTEGERS ? from->n_integers : from->n_reals);
    return LK_OK;
}

static enum lk_status read_parts(struct lk_onnx_memory *memory, const LkOnnx__Graph *graph,
                                 struct lk_onnx_graph *made);

/* Loops inside of a body stay unread, so that nothing is nested deeper; so do bodies beyond as
 * many as there is room for, and such of far more parts than a step of a layer has. */
static enum lk_status read_body(struct lk_onnx_memory *memory, const LkOnnx__Attribute *from,
                                struct lk_onnx_attribute *made)
{
    ProtobufCAllocator allocator = {take, give_back, memory};
    struct lk_onnx_graph *graph;
    if (memory->is_inside || memory->body_count == LK_ONNX_MOST_BODIES ||
        !lk_onnx_is_small(from->graph.data, from->graph.len))
        return LK_OK;
    LkOnnx__Graph *body = lk_onnx__graph__unpack(&allocator, from->graph.len, from->graph.data);
    if (!body)
        return lk_fail(LK_E_DATA,
                       "%s: the body of a loop is no graph, or one of absurdly many parts",
                       memory->path);
    memory->bodies[memory->body_count++] = body;
    LK_TRY(list(memory, 1, sizeof *graph, &graph));
    *graph = (struct lk_onnx_graph){.name = ""};
    memory->is_inside = true;
    const enum lk_status status = read_parts(memory, body, graph);
    memory->is_inside = false;
    made->graph = graph;
    return status;
}

static enum lk_status read_node(struct lk_onnx_memory *memory, const LkOnnx__Node *from,
                                struct lk_onnx_node *made)
{
    struct lk_onnx_attribute *attributes;
    *made = (struct lk_onnx_node){.name = text_or(from->name, ""),
                                  .op = text_or(from->op, ""),
                                  .domain = text_or(from->domain, ""),
                                  .inputs = (const char *const *)from->input,
                                  .outputs = (const char *const *)from->output,
                                  .input_count = (int)from->n_input,
                                  .output_count = (int)from->n_output,
                                  .attribute_count = (int)from->n_attribute};
    LK_TRY(list(memory, from->n_attribute, sizeof *attributes, &attributes));
    for (size_t i = 0; i < from->n_attribute; i++) {
        LK_TRY(read_attribute(memory, from->attribute[i], made->name, &attributes[i]));
        if (from->attribute[i]->has_graph && strcmp(made->op, "Loop") == 0)
            LK_TRY(read_body(memory, from->attribute[i], &attributes[i]));
    }
    made->attributes = attributes;
    return LK_OK;
}

/* --- the graph ---------------------------------------------------------------------------- */

static enum lk_status read_port(const struct lk_onnx_memory *memory, const LkOnnx__Value *from,
                                struct lk_onnx_port *made)
{
    const LkOnnx__TensorType *type = from->type ? from->type->tensor : NULL;
    *made = (struct lk_onnx_port){.name = text_or(from->name, ""), .rank = -1};
    if (!type)
        return LK_OK;
    made->type = (enum lk_onnx_type)type->element;
    if (!type->shape)
        return LK_OK;
    if (type->shape->n_dimension > LK_ONNX_AXES)
        return lk_fail(LK_E_UNSUPPORTED, "%s: '%.80s' has more than %d axes", memory->path,
                       made->name, LK_ONNX_AXES);
    made->rank = (int)type->shape->n_dimension;
    for (int i = 0; i < made->rank; i++) {
        const LkOnnx__Dimension *dimension = type->shape->dimension[i];
        made->dim[i] = dimension->has_length ? dimension->length : -1;
        if (made->dim[i] == 0 || made->dim[i] < -1 || made->dim[i] > INT32_MAX)
            made->dim[i] = -1;
    }
    return LK_OK;
}

static enum lk_status read_ports(struct lk_onnx_memory *memory, size_t count,
                                 LkOnnx__Value *const *from, const struct lk_onnx_port **made,
                                 int *made_count)
{
    struct lk_onnx_port *ports;
    LK_TRY(list(memory, count, sizeof *ports, &ports));
    for (size_t i = 0; i < count; i++)
        LK_TRY(read_port(memory, from[i], &ports[i]));
    *made = ports;
    *made_count = (int)count;
    return LK_OK;
}

static enum lk_status check_parts(const struct lk_onnx_memory *memory)
{
    const LkOnnx__Graph *graph = memory->model->graph;
    if (graph->n_sparse_initializer || memory->model->n_function)
        return lk_fail(LK_E_UNSUPPORTED,
                       "%s: sparse constants and functions of its own are not supported",
                       memory->path);
    return LK_OK;
}

static enum lk_status read_parts(struct lk_onnx_memory *memory, const LkOnnx__Graph *graph,
                                 struct lk_onnx_graph *made)
{
    struct lk_onnx_node *nodes;
    struct lk_onnx_tensor *constants;
    LK_TRY(list(memory, graph->n_node, sizeof *nodes, &nodes));
    LK_TRY(list(memory, graph->n_initializer, sizeof *constants, &constants));
    for (size_t i = 0; i < graph->n_node; i++)
        LK_TRY(read_node(memory, graph->node[i], &nodes[i]));
    for (size_t i = 0; i < graph->n_initializer; i++)
        LK_TRY(lk_onnx_make_tensor(memory, graph->initializer[i], "", &constants[i]));
    made->nodes = nodes;
    made->node_count = (int)graph->n_node;
    made->constants = constants;
    made->constant_count = (int)graph->n_initializer;
    LK_TRY(read_ports(memory, graph->n_input, graph->input, &made->inputs, &made->input_count));
    return read_ports(memory, graph->n_output, graph->output, &made->outputs,
                      &made->output_count);
}

static enum lk_status read_graph(struct lk_onnx_memory *memory, struct lk_onnx_graph *made)
{
    const LkOnnx__Model *model = memory->model;
    LK_TRY(check_parts(memory));
    *made = (struct lk_onnx_graph){.name = text_or(model->graph->name, ""),
                                   .producer = text_or(model->producer, ""),
                                   .version = model->ir_version};
    for (size_t i = 0; i < model->n_operator_set; i++)
        if (!*text_or(model->operator_set[i]->domain, "") ||
            strcmp(model->operator_set[i]->domain, "ai.onnx") == 0)
            made->operators = model->operator_set[i]->version;
    return read_parts(memory, model->graph, made);
}

/* A model, or where `tensor` is given that alone. */
static enum lk_status open_file(const char *path, struct lk_onnx_file *file,
                                struct lk_onnx_tensor *tensor)
{
    struct lk_onnx_file made = {.memory = calloc(1, sizeof *made.memory)};
    if (!made.memory)
        return lk_fail_memory(path, sizeof *made.memory);
    made.memory->path = path;
    enum lk_status status = unpack(made.memory, !tensor);
    if (status == LK_OK)
        status = tensor ? lk_onnx_make_tensor(made.memory, made.memory->tensor, "", tensor)
                        : read_graph(made.memory, &made.graph);
    made.memory->path = NULL;
    if (status == LK_OK)
        *file = made;
    else
        lk_onnx_clear(&made);
    return status;
}

enum lk_status lk_onnx_read(const char *path, struct lk_onnx_file *file)
{
    return open_file(path, file, NULL);
}

enum lk_status lk_onnx_read_tensor(const char *path, struct lk_onnx_file *file,
                                   struct lk_onnx_tensor *tensor)
{
    return open_file(path, file, tensor);
}

void lk_onnx_clear(struct lk_onnx_file *file)
{
    if (!file->memory)
        return;
    ProtobufCAllocator allocator = {take, give_back, file->memory};
    for (int i = 0; i < file->memory->body_count; i++)
        lk_onnx__graph__free_unpacked(file->memory->bodies[i], &allocator);
    if (file->memory->model)
        lk_onnx__model__free_unpacked(file->memory->model, &allocator);
    if (file->memory->tensor)
        lk_onnx__tensor__free_unpacked(file->memory->tensor, &allocator);
    lk_arena_clear(&file->memory->arena);
    free(file->memory->folder);
    free(file->memory);
    *file = (struct lk_onnx_file){0};
}

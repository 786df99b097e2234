/* Writes ONNX files: messages of a graph, which protobuf-c packs into the file piece by piece.
 * Numbers of constants are not copied. */
#include "io/onnx/memory.h"

#include "base/fail.h"
#include "io/file.h"
#include <string.h>

/* Numbers that the format has for kinds of attributes. */
static const int kinds[] = {
    [LK_ONNX_REAL] = 1,   [LK_ONNX_INTEGER] = 2, [LK_ONNX_TEXT] = 3,
    [LK_ONNX_TENSOR] = 4, [LK_ONNX_REALS] = 6,   [LK_ONNX_INTEGERS] = 7};

/* The format's texts and lists are not const, but packing only reads them. */
#define PLAIN(pointer) ((void *)(uintptr_t)(pointer))

/* Makes `count` messages of a kind and the list of them: variables `made` and `listed`. */
#define MESSAGES(kind, initial, count)                                                         \
    kind *made, **listed;                                                                      \
    LK_TRY(list(arena, (count), sizeof *made, &made));                                         \
    LK_TRY(list(arena, (count), sizeof *listed, &listed));                                     \
    for (size_t i = 0; i < (count); i++) {                                                     \
        made[i] = (kind)initial;                                                               \
        listed[i] = &made[i];                                                                  \
    }

static enum lk_status list(struct lk_arena *arena, size_t count, size_t each, void *to)
{
    void *made;
    LK_TRY(lk_arena_allocate(arena, count * each + 1, &made));
    memcpy(to, &made, sizeof made);
    return LK_OK;
}

static enum lk_status put_tensors(struct lk_arena *arena, const struct lk_onnx_tensor *from,
                                  size_t count, LkOnnx__Tensor ***to)
{
    MESSAGES(LkOnnx__Tensor, LK_ONNX__TENSOR__INIT, count)
    for (size_t i = 0; i < count; i++) {
        made[i].name = PLAIN(from[i].name);
        made[i].has_type = made[i].has_raw_data = 1;
        made[i].type = (int)from[i].type;
        made[i].n_dimension = (size_t)from[i].rank;
        made[i].dimension = PLAIN(from[i].dim);
        made[i].raw_data.data = PLAIN(from[i].data);
        made[i].raw_data.len = (size_t)from[i].count * lk_onnx_type_bytes(from[i].type);
    }
    *to = listed;
    return LK_OK;
}

static enum lk_status put_attribute(struct lk_arena *arena,
                                    const struct lk_onnx_attribute *from,
                                    LkOnnx__Attribute *made)
{
    LkOnnx__Tensor **tensors;
    made->name = PLAIN(from->name);
    made->has_type = 1;
    made->type = kinds[from->kind];
    made->has_real = from->kind == LK_ONNX_REAL;
    made->real = from->real;
    made->has_integer = from->kind == LK_ONNX_INTEGER;
    made->integer = from->integer;
    made->has_text = from->kind == LK_ONNX_TEXT;
    if (from->text)
        made->text = (ProtobufCBinaryData){strlen(from->text), PLAIN(from->text)};
    if (from->kind == LK_ONNX_REALS)
        made->n_reals = (size_t)from->count;
    made->reals = PLAIN(from->reals);
    if (from->kind == LK_ONNX_INTEGERS)
        made->n_integers = (size_t)from->count;
    made->integers = PLAIN(from->integers);
    if (from->kind != LK_ONNX_TENSOR)
        return LK_OK;
    LK_TRY(put_tensors(arena, from->tensor, 1, &tensors));
    made->tensor = tensors[0];
    return LK_OK;
}

static enum lk_status put_attributes(struct lk_arena *arena, const struct lk_onnx_node *node,
                                     LkOnnx__Attribute ***to)
{
    MESSAGES(LkOnnx__Attribute, LK_ONNX__ATTRIBUTE__INIT, (size_t)node->attribute_count)
    for (int i = 0; i < node->attribute_count; i++)
        LK_TRY(put_attribute(arena, &node->attributes[i], &made[i]));
    *to = listed;
    return LK_OK;
}

static enum lk_status put_nodes(struct lk_arena *arena, const struct lk_onnx_graph *graph,
                                LkOnnx__Node ***to)
{
    MESSAGES(LkOnnx__Node, LK_ONNX__NODE__INIT, (size_t)graph->node_count)
    for (int i = 0; i < graph->node_count; i++) {
        const struct lk_onnx_node *from = &graph->nodes[i];
        made[i].name = PLAIN(from->name);
        made[i].op = PLAIN(from->op);
        made[i].n_input = (size_t)from->input_count;
        made[i].input = PLAIN(from->inputs);
        made[i].n_output = (size_t)from->output_count;
        made[i].output = PLAIN(from->outputs);
        made[i].n_attribute = (size_t)from->attribute_count;
        LK_TRY(put_attributes(arena, from, &made[i].attribute));
    }
    *to = listed;
    return LK_OK;
}

static enum lk_status put_shape(struct lk_arena *arena, const struct lk_onnx_port *port,
                                LkOnnx__Shape *shape)
{
    MESSAGES(LkOnnx__Dimension, LK_ONNX__DIMENSION__INIT, (size_t)port->rank)
    for (int i = 0; i < port->rank; i++) {
        made[i].has_length = port->dim[i] >= 0;
        made[i].length = port->dim[i];
        if (i == 0 && port->dim[0] < 0)
            made[i].name = PLAIN(port->batch);
    }
    shape->n_dimension = (size_t)port->rank;
    shape->dimension = listed;
    return LK_OK;
}

static enum lk_status put_ports(struct lk_arena *arena, const struct lk_onnx_port *from,
                                int count, LkOnnx__Value ***to)
{
    struct parts {
        LkOnnx__Type type;
        LkOnnx__TensorType tensor;
        LkOnnx__Shape shape;
    } * parts;
    MESSAGES(LkOnnx__Value, LK_ONNX__VALUE__INIT, (size_t)count)
    LK_TRY(list(arena, (size_t)count, sizeof *parts, &parts));
    for (int i = 0; i < count; i++) {
        parts[i] = (struct parts){LK_ONNX__TYPE__INIT, LK_ONNX__TENSOR_TYPE__INIT,
                                  LK_ONNX__SHAPE__INIT};
        parts[i].type.tensor = &parts[i].tensor;
        parts[i].tensor.has_element = 1;
        parts[i].tensor.element = (int)from[i].type;
        parts[i].tensor.shape = &parts[i].shape;
        made[i].name = PLAIN(from[i].name);
        made[i].type = &parts[i].type;
        LK_TRY(put_shape(arena, &from[i], &parts[i].shape));
    }
    *to = listed;
    return LK_OK;
}

static enum lk_status put_graph(struct lk_arena *arena, const struct lk_onnx_graph *from,
                                LkOnnx__Graph *made)
{
    made->name = PLAIN(from->name);
    made->n_node = (size_t)from->node_count;
    made->n_initializer = (size_t)from->constant_count;
    made->n_input = (size_t)from->input_count;
    made->n_output = (size_t)from->output_count;
    LK_TRY(put_nodes(arena, from, &made->node));
    LK_TRY(put_tensors(arena, from->constants, made->n_initializer, &made->initializer));
    LK_TRY(put_ports(arena, from->inputs, from->input_count, &made->input));
    return put_ports(arena, from->outputs, from->output_count, &made->output);
}

/* --- the file ----------------------------------------------------------------------------- */

struct stream {
    ProtobufCBuffer base; /* first: protobuf-c knows it alone */
    FILE *file;
};

static void append(ProtobufCBuffer *buffer, size_t bytes, const uint8_t *data)
{
    (void)!fwrite(data, 1, bytes, ((struct stream *)buffer)->file); /* the draft finds errors */
}

static enum lk_status pack(const char *path, const LkOnnx__Model *model)
{
    struct lk_file_draft *draft = NULL;
    if (lk_onnx__model__get_packed_size(model) > INT32_MAX)
        return lk_fail(LK_E_UNSUPPORTED,
                       "'%s' would have more than 2 GB, which ONNX files cannot", path);
    LK_TRY(lk_file_draft_open(path, &draft));
    struct stream stream = {{append}, lk_file_draft_stream(draft)};
    lk_onnx__model__pack_to_buffer(model, &stream.base);
    return lk_file_draft_commit(draft);
}

enum lk_status lk_onnx_write(const char *path, const struct lk_onnx_graph *graph)
{
    struct lk_arena arena = {0};
    LkOnnx__Model model = LK_ONNX__MODEL__INIT;
    LkOnnx__Graph body = LK_ONNX__GRAPH__INIT;
    LkOnnx__OperatorSet set = LK_ONNX__OPERATOR_SET__INIT, *sets[] = {&set};
    model.has_ir_version = set.has_version = 1;
    model.ir_version = graph->version;
    model.producer = PLAIN(graph->producer);
    model.producer_version = PLAIN(LK_VERSION);
    model.graph = &body;
    model.n_operator_set = 1;
    model.operator_set = sets;
    set.domain = PLAIN("");
    set.version = graph->operators;
    enum lk_status status = put_graph(&arena, graph, &body);
    if (status == LK_OK)
        status = pack(path, &model);
    lk_arena_clear(&arena);
    return status;
}

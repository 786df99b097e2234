/* Writes a run's model as an ONNX file. */
#include "model/onnx_export/export.h"

#include "base/fail.h"
#include "model/foreign/layout.h"
#include <lockstep/weights.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STANDARD_SET = 17, FIRST_SET = 13, LAST_SET = 23 };

enum lk_status lk_onnx_export_fail(const struct lk_onnx_export *e, const char *format, ...)
{
    char text[384];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    return lk_fail(LK_E_UNSUPPORTED, "%s '%s': %s", e->node->op ? e->node->op->name : "input",
                   e->node->name, text);
}

/* --- nodes ------------------------------------------------------------------------------- */

static enum lk_status take(struct lk_onnx_export *e, size_t count, size_t each, void *to)
{
    void *memory;
    LK_TRY(lk_arena_allocate(&e->arena, count * each + 1, &memory));
    memcpy(to, &memory, sizeof memory);
    return LK_OK;
}

enum lk_status lk_onnx_name(struct lk_onnx_export *e, const char *what, const char **name)
{
    char text[160];
    snprintf(text, sizeof text, "%s.%s", e->node->name, what);
    return lk_arena_text(&e->arena, text, name);
}

enum lk_status lk_onnx_emit_node(struct lk_onnx_export *e, const char *op, const char *output,
                                 int count, const char *const *inputs)
{
    const char **names;
    struct lk_onnx_node *node = &e->nodes[e->graph.node_count++];
    LK_TRY(take(e, (size_t)count + 1, sizeof *names, &names));
    LK_TRY(take(e, LK_ONNX_EXPORT_EACH, sizeof *e->last, &e->last));
    int used = 0;
    while (used < count && inputs[used]) {
        names[used] = inputs[used];
        used++;
    }
    names[count] = output;
    *node = (struct lk_onnx_node){.name = output,
                                  .op = op,
                                  .domain = "",
                                  .inputs = names,
                                  .outputs = &names[count],
                                  .input_count = used,
                                  .output_count = 1,
                                  .attributes = e->last};
    return LK_OK;
}

static struct lk_onnx_attribute *add_attribute(struct lk_onnx_export *e, const char *name,
                                               enum lk_onnx_kind kind)
{
    struct lk_onnx_node *node = &e->nodes[e->graph.node_count - 1];
    struct lk_onnx_attribute *added = &e->last[node->attribute_count++];
    *added = (struct lk_onnx_attribute){.name = name, .kind = kind};
    return added;
}

void lk_onnx_emit_integer(struct lk_onnx_export *e, const char *name, int64_t value)
{
    add_attribute(e, name, LK_ONNX_INTEGER)->integer = value;
}

void lk_onnx_emit_real(struct lk_onnx_export *e, const char *name, double value)
{
    add_attribute(e, name, LK_ONNX_REAL)->real = (float)value;
}

void lk_onnx_emit_text(struct lk_onnx_export *e, const char *name, const char *value)
{
    add_attribute(e, name, LK_ONNX_TEXT)->text = value;
}

enum lk_status lk_onnx_emit_list(struct lk_onnx_export *e, const char *name, int count,
                                 const int64_t *values)
{
    int64_t *copy;
    LK_TRY(take(e, (size_t)count, sizeof *copy, &copy));
    memcpy(copy, values, (size_t)count * sizeof *copy);
    struct lk_onnx_attribute *added = add_attribute(e, name, LK_ONNX_INTEGERS);
    added->integers = copy;
    added->count = count;
    return LK_OK;
}

/* --- constants --------------------------------------------------------------------------- */

static enum lk_status add_constant(struct lk_onnx_export *e, const char *what,
                                   enum lk_onnx_type type, int rank, int64_t count,
                                   struct lk_onnx_tensor **made, void **data)
{
    *made = &e->constants[e->graph.constant_count++];
    **made =
        (struct lk_onnx_tensor){.type = type, .rank = rank, .dim = {count}, .count = count};
    LK_TRY(lk_onnx_name(e, what, &(*made)->name));
    LK_TRY(take(e, (size_t)count, lk_onnx_type_bytes(type), data));
    (*made)->data = *data;
    return LK_OK;
}

enum lk_status lk_onnx_emit_integers(struct lk_onnx_export *e, const char *what, int count,
                                     const int64_t *values, const char **name)
{
    struct lk_onnx_tensor *made;
    void *data;
    LK_TRY(add_constant(e, what, LK_ONNX_INT64, 1, count, &made, &data));
    memcpy(data, values, (size_t)count * sizeof *values);
    *name = made->name;
    return LK_OK;
}

enum lk_status lk_onnx_emit_reals(struct lk_onnx_export *e, const char *what, int rank,
                                  int count, const double *values, const char **name)
{
    struct lk_onnx_tensor *made;
    void *data;
    LK_TRY(add_constant(e, what, LK_ONNX_FLOAT, rank, count, &made, &data));
    for (int i = 0; i < count; i++)
        ((float *)data)[i] = (float)values[i];
    *name = made->name;
    return LK_OK;
}

/* Reads the stored numbers into `ours`, and as the layout has them into `theirs`. */
static enum lk_status read_param(struct lk_onnx_export *e, const struct lk_array *array,
                                 const struct lk_layout *layout, float *theirs)
{
    const size_t bytes = (size_t)array->count * sizeof *theirs;
    float *ours = malloc(bytes + 1);
    if (!ours)
        return lk_fail_memory(array->name, bytes);
    const enum lk_status status =
        lk_arrays_read(e->stored.file, array, LK_SAFETENSOR_F32, ours);
    if (status == LK_OK)
        lk_layout_give(layout, sizeof *ours, ours, theirs);
    free(ours);
    return status;
}

enum lk_status lk_onnx_emit_param(struct lk_onnx_export *e, const char *param, bool is_ours,
                                  const struct lk_shape *shape, const char **name)
{
    const struct lk_node *owner = lk_node_owner(e->node);
    struct lk_layout layout;
    struct lk_onnx_tensor *made;
    char stored[192];
    void *data;
    int index = 0;
    *name = NULL;
    while (index < e->node->shapes.params &&
           strcmp(e->node->shapes.param[index].name, param) != 0)
        index++;
    if (index == e->node->shapes.params)
        return LK_OK;
    LK_TRY(lk_layout_describe(e->node, index, is_ours ? LK_LAYOUT_OWN : LK_LAYOUT_TORCH,
                              &e->arena, &layout));
    snprintf(stored, sizeof stored, "%s.%s", owner->name, param);
    const struct lk_array *array = lk_stored_find(&e->stored, stored);
    if (!array || array->count != lk_shape_count(&layout.own))
        return lk_fail(LK_E_DATA, "%s: no array '%s' as the model has it", e->stored.path,
                       stored);
    LK_TRY(add_constant(e, param, LK_ONNX_FLOAT, 1, array->count, &made, &data));
    made->rank = shape ? shape->rank : layout.rank;
    memcpy(made->dim, shape ? shape->dim : layout.shape,
           (size_t)made->rank * sizeof *made->dim);
    *name = made->name;
    return read_param(e, array, &layout, data);
}

/* --- options ----------------------------------------------------------------------------- */

void lk_onnx_option(const struct lk_onnx_export *e, const char *name, char text[96])
{
    const struct lk_option *row = lk_option_find(e->node->op->options, name);
    *text = '\0';
    if (row)
        lk_option_print(row, e->node->options, text, 96);
}

void lk_onnx_option_integers(const struct lk_onnx_export *e, const char *name, int count,
                             int64_t *values)
{
    char text[96], *at = text;
    lk_onnx_option(e, name, text);
    for (int i = 0; i < count; i++) {
        values[i] = *at || i == 0 ? strtoll(at, &at, 10) : values[i - 1];
        at += strspn(at, ", ");
    }
}

double lk_onnx_option_real(const struct lk_onnx_export *e, const char *name)
{
    char text[96];
    lk_onnx_option(e, name, text);
    return strtod(text, NULL);
}

bool lk_onnx_option_is(const struct lk_onnx_export *e, const char *name, const char *value)
{
    return lk_option_is(e->node->op->options, e->node->options, name, value);
}

/* --- the graph --------------------------------------------------------------------------- */

static void describe(const struct lk_node *node, int64_t batch, struct lk_onnx_port *port)
{
    const struct lk_shape *y = &node->shapes.y;
    *port = (struct lk_onnx_port){.name = node->name,
                                  .batch = "batch",
                                  .type = LK_ONNX_FLOAT,
                                  .rank = y->rank + 1,
                                  .dim = {batch > 0 ? batch : -1}};
    for (int i = 0; i < y->rank; i++)
        port->dim[1 + i] = y->dim[i];
}

/* Numbers of an input have its scale and shift; those of an image are what the first layer
 * reads. *name: what readers of the input read. */
static enum lk_status put_input(struct lk_onnx_export *e, const char **name)
{
    const struct lk_input *input = &e->node->input;
    const char *scale, *shift, *scaled;
    *name = e->node->name;
    if (input->dtype == LK_U8)
        return LK_OK;
    if (input->dtype == LK_I32)
        return lk_onnx_export_fail(e, "models of whole numbers, such as tokens, are not "
                                      "exported yet");
    const double by = input->scale == 0 ? 1 : input->scale;
    if (by == 1 && input->shift == 0)
        return LK_OK;
    LK_TRY(lk_onnx_emit_reals(e, "scale", 0, 1, &by, &scale));
    LK_TRY(lk_onnx_emit_reals(e, "shift", 0, 1, &input->shift, &shift));
    LK_TRY(lk_onnx_name(e, "scaled", &scaled));
    LK_TRY(lk_onnx_name(e, "shifted", name));
    LK_TRY(lk_onnx_emit_node(e, "Mul", scaled, 2, (const char *[]){e->node->name, scale}));
    return lk_onnx_emit_node(e, "Add", *name, 2, (const char *[]){scaled, shift});
}

static enum lk_status put_node(struct lk_onnx_export *e, const char **names)
{
    static const struct lk_onnx_pairing *const tables[] = {lk_onnx_image_pairings,
                                                           lk_onnx_plain_pairings};
    const char *x[LK_MOST_INPUTS + 1] = {NULL};
    const char *y = e->node->name;
    if (!e->node->op)
        return put_input(e, &names[e->node->index]);
    const bool is_gated = lk_onnx_option_is(e, "activation", "relu");
    for (int i = 0; i < e->node->inputs; i++)
        x[i] = names[e->node->input_nodes[i]->index];
    names[e->node->index] = y;
    if (is_gated)
        LK_TRY(lk_onnx_name(e, "linear", &y));
    for (int t = 0; t < LK_COUNT(tables); t++)
        for (const struct lk_onnx_pairing *p = tables[t]; p->op; p++)
            if (strcmp(p->op, e->node->op->name) == 0) {
                LK_TRY(p->emit(e, x, y));
                return is_gated ? lk_onnx_emit_node(e, "Relu", e->node->name, 1, &y) : LK_OK;
            }
    return lk_onnx_export_fail(e, "this operation is not exported yet");
}

static enum lk_status make_graph(struct lk_onnx_export *e, const struct lk_onnx_options *o)
{
    const struct lk_model *model = e->stored.model;
    const size_t most = (size_t)model->graph->count * LK_ONNX_EXPORT_EACH;
    struct lk_onnx_port *ports;
    const char **names;
    LK_TRY(take(e, most, sizeof *e->nodes, &e->nodes));
    LK_TRY(take(e, most, sizeof *e->constants, &e->constants));
    LK_TRY(take(e, (size_t)model->graph->count, sizeof *names, &names));
    LK_TRY(take(e, LK_MOST_INPUTS + LK_MOST_OUTPUTS, sizeof *ports, &ports));
    for (int i = 0; i < model->graph->count; i++) {
        e->node = model->graph->nodes[i];
        LK_TRY(put_node(e, names));
    }
    for (int i = 0; i < model->input_count; i++)
        describe(model->inputs[i], o->batch, &ports[e->graph.input_count++]);
    e->graph.inputs = ports;
    e->graph.outputs = ports + e->graph.input_count;
    for (int i = 0; i < model->output_count; i++)
        describe(model->outputs[i].node, o->batch,
                 &ports[e->graph.input_count + e->graph.output_count++]);
    e->graph.nodes = e->nodes;
    e->graph.constants = e->constants;
    return LK_OK;
}

/* The version of the format that came with a set of operators. */
static int64_t version_of(int64_t set)
{
    return set < 15 ? 7 : set < 19 ? 8 : set < 21 ? 9 : set < 23 ? 10 : 11;
}

enum lk_status lk_onnx_export(const char *run, const char *path,
                              const struct lk_onnx_options *options)
{
    static const struct lk_onnx_options none;
    const struct lk_onnx_options *o = options ? options : &none;
    struct lk_onnx_export e = {0};
    enum lk_status status;
    const int set = o->operators ? o->operators : STANDARD_SET;
    if (set < FIRST_SET || set > LAST_SET)
        return lk_fail(LK_E_ARGUMENT, "operator set %d of ONNX, expected %d to %d", set,
                       FIRST_SET, LAST_SET);
    LK_TRY_OUT(lk_stored_open(run, &e.stored));
    e.graph.name = lk_model_name(e.stored.model);
    e.graph.producer = "lockstep";
    e.graph.operators = set;
    e.graph.version = version_of(set);
    LK_TRY_OUT(make_graph(&e, o));
    LK_TRY_OUT(lk_onnx_write(path, &e.graph));
out:
    lk_arena_clear(&e.arena);
    lk_stored_close(&e.stored);
    return status;
}

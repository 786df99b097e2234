/* Nodes and constants of the graph that is made, and the options of the node at work. */
#include "model/onnx_export/export.h"

#include "base/fail.h"
#include "model/naming/layout.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- nodes ------------------------------------------------------------------------------- */

enum lk_status lk_onnx_take(struct lk_onnx_export *e, size_t count, size_t each, void *to)
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
    LK_TRY(lk_onnx_take(e, (size_t)count + 1, sizeof *names, &names));
    LK_TRY(lk_onnx_take(e, LK_ONNX_EXPORT_EACH, sizeof *e->last, &e->last));
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

enum lk_status lk_onnx_emit(struct lk_onnx_export *e, const char *op, const char *what,
                            int count, const char *const *inputs, const char **made)
{
    const char *name;
    LK_TRY(lk_onnx_name(e, what, &name));
    LK_TRY(lk_onnx_emit_node(e, op, name, count, inputs));
    *made = name; /* which may be an input's place */
    return LK_OK;
}

enum lk_status lk_onnx_emit_outputs(struct lk_onnx_export *e, int count,
                                    const char *const *outputs)
{
    const char **names;
    struct lk_onnx_node *node = &e->nodes[e->graph.node_count - 1];
    LK_TRY(lk_onnx_take(e, (size_t)count, sizeof *names, &names));
    memcpy(names, outputs, (size_t)count * sizeof *names);
    node->outputs = names;
    node->output_count = count;
    return LK_OK;
}

enum lk_status lk_onnx_emit_reshape(struct lk_onnx_export *e, const char *what, const char *x,
                                    const struct lk_shape *shape, const char *y)
{
    int64_t dim[1 + LK_MOST_AXES] = {0};
    const char *inputs[] = {x, NULL};
    memcpy(dim + 1, shape->dim, (size_t)shape->rank * sizeof *dim);
    LK_TRY(lk_onnx_emit_integers(e, what, 1 + shape->rank, dim, &inputs[1]));
    return lk_onnx_emit_node(e, "Reshape", y, 2, inputs);
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
    LK_TRY(lk_onnx_take(e, (size_t)count, sizeof *copy, &copy));
    memcpy(copy, values, (size_t)count * sizeof *copy);
    struct lk_onnx_attribute *added = add_attribute(e, name, LK_ONNX_INTEGERS);
    added->integers = copy;
    added->count = count;
    return LK_OK;
}

/* --- constants --------------------------------------------------------------------------- */

static enum lk_status add_constant(struct lk_onnx_export *e, const char *name,
                                   enum lk_onnx_type type, int rank, const int64_t *dim,
                                   const void *data)
{
    struct lk_onnx_tensor *made = &e->constants[e->graph.constant_count++];
    *made = (struct lk_onnx_tensor){
        .name = name, .type = type, .rank = rank, .count = 1, .data = data};
    for (int i = 0; i < rank; i++) {
        made->dim[i] = dim[i];
        made->count *= dim[i];
    }
    return LK_OK;
}

enum lk_status lk_onnx_emit_integers(struct lk_onnx_export *e, const char *what, int count,
                                     const int64_t *values, const char **name)
{
    int64_t *data;
    LK_TRY(lk_onnx_name(e, what, name));
    LK_TRY(lk_onnx_take(e, (size_t)count, sizeof *data, &data));
    memcpy(data, values, (size_t)count * sizeof *values);
    return add_constant(e, *name, LK_ONNX_INT64, 1, &(int64_t){count}, data);
}

enum lk_status lk_onnx_emit_integer_constant(struct lk_onnx_export *e, const char *what,
                                             int64_t value, const char **name)
{
    LK_TRY(lk_onnx_emit_integers(e, what, 1, &value, name));
    e->constants[e->graph.constant_count - 1].rank = 0;
    return LK_OK;
}

enum lk_status lk_onnx_emit_real_constant(struct lk_onnx_export *e, const char *what,
                                          double value, const char **name)
{
    return lk_onnx_emit_reals(e, what, 0, 1, &value, name);
}

enum lk_status lk_onnx_emit_reals(struct lk_onnx_export *e, const char *what, int rank,
                                  int count, const double *values, const char **name)
{
    float *data;
    LK_TRY(lk_onnx_take(e, (size_t)count, sizeof *data, &data));
    for (int i = 0; i < count; i++)
        data[i] = (float)values[i];
    return lk_onnx_emit_floats(e, what, rank, &(int64_t){count}, data, name);
}

enum lk_status lk_onnx_emit_floats(struct lk_onnx_export *e, const char *what, int rank,
                                   const int64_t *dim, const float *data, const char **name)
{
    LK_TRY(lk_onnx_name(e, what, name));
    return add_constant(e, *name, LK_ONNX_FLOAT, rank, dim, data);
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

static int find_param(const struct lk_onnx_export *e, const char *param)
{
    const struct lk_op_shapes *shapes = &e->node->shapes;
    for (int i = 0; i < shapes->params; i++)
        if (strcmp(shapes->param[i].name, param) == 0)
            return i;
    return -1;
}

static enum lk_status take_param(struct lk_onnx_export *e, int index, bool is_ours,
                                 struct lk_layout *layout, float **data)
{
    const char *owner = lk_node_owner(e->node)->name;
    char stored[192];
    LK_TRY(lk_layout_describe(e->node, index, is_ours ? LK_LAYOUT_OWN : LK_LAYOUT_TORCH,
                              &e->arena, layout));
    snprintf(stored, sizeof stored, "%s.%s", owner, e->node->shapes.param[index].name);
    const struct lk_array *array = lk_stored_find(&e->stored, stored);
    if (!array || array->count != lk_shape_count(&layout->own))
        return lk_fail(LK_E_DATA, "%s: no array '%s' as the model has it", e->stored.path,
                       stored);
    LK_TRY(lk_onnx_take(e, (size_t)array->count, sizeof **data, data));
    return read_param(e, array, layout, *data);
}

enum lk_status lk_onnx_take_param(struct lk_onnx_export *e, const char *param,
                                  const float **data)
{
    const int index = find_param(e, param);
    struct lk_layout layout;
    float *found;
    *data = NULL;
    if (index < 0)
        return LK_OK;
    LK_TRY(take_param(e, index, true, &layout, &found));
    *data = found;
    return LK_OK;
}

/* A constant of that name with the same numbers: weights that nodes share stand there once. */
static bool is_there(const struct lk_onnx_export *e, const char *name,
                     const struct lk_shape *shape, const float *data)
{
    for (int i = 0; i < e->graph.constant_count; i++) {
        const struct lk_onnx_tensor *t = &e->constants[i];
        if (strcmp(t->name, name) == 0)
            return t->rank == shape->rank &&
                   memcmp(t->dim, shape->dim, (size_t)t->rank * sizeof *t->dim) == 0 &&
                   memcmp(t->data, data, (size_t)t->count * sizeof *data) == 0;
    }
    return false;
}

enum lk_status lk_onnx_emit_param(struct lk_onnx_export *e, const char *param, bool is_ours,
                                  const struct lk_shape *shape, const char **name)
{
    const int index = find_param(e, param);
    struct lk_layout layout;
    struct lk_shape own = {0};
    char shared[192];
    float *data;
    *name = NULL;
    if (index < 0)
        return LK_OK;
    LK_TRY(take_param(e, index, is_ours, &layout, &data));
    own.rank = layout.rank;
    memcpy(own.dim, layout.shape, (size_t)own.rank * sizeof *own.dim);
    for (int64_t i = 0; e->factors && i < lk_shape_count(&own); i++)
        data[i] *= (float)e->factors[i / (lk_shape_count(&own) / own.dim[0])];
    shape = shape ? shape : &own;
    if (e->node->weights_of) {
        snprintf(shared, sizeof shared, "%s.%s", lk_node_owner(e->node)->name, param);
        if (is_there(e, shared, shape, data))
            return lk_arena_text(&e->arena, shared, name);
    }
    return lk_onnx_emit_floats(e, param, shape->rank, shape->dim, data, name);
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

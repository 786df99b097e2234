/* Adds entries to the model text of an ONNX model, and the same nodes to a graph, from which
 * shapes are known at once and every option is checked. */
#include "model/onnx/draft.h"

#include "base/fail.h"
#include "model/naming/layout.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ENTRIES = 5000 };

enum lk_status lk_onnx_say_where(const struct lk_onnx_draft *draft, enum lk_status status)
{
    if (status == LK_E_MEMORY)
        return status;
    if (draft->node)
        (void)lk_fail_within(LK_E_MODEL, "%s: node '%.80s' (%.60s)", draft->where,
                             *draft->node->name ? draft->node->name : draft->node->outputs[0],
                             draft->node->op);
    else
        (void)lk_fail_within(LK_E_MODEL, "%s", draft->where);
    return LK_E_MODEL;
}

/* --- names ------------------------------------------------------------------------------- */

/* The end of a long name says most: "/layer4/layer4.1/conv2/Conv" is layer4_1/conv2/Conv. A
 * node without a name is named after its operator. */
static void name_base(const struct lk_onnx_draft *draft, char base[LK_IMPORT_BASE])
{
    const char *theirs = draft->node->name;
    char lower[LK_IMPORT_BASE] = "";
    theirs += strspn(theirs, "/");
    if (strlen(theirs) > 30) {
        const char *cut = strchr(theirs + strlen(theirs) - 30, '/');
        theirs = cut ? cut + 1 : theirs + strlen(theirs) - 30;
    }
    if (!*theirs) {
        for (size_t i = 0; i < 30 && draft->node->op[i]; i++)
            lower[i] = (char)tolower((unsigned char)draft->node->op[i]);
        theirs = lower;
    }
    (void)lk_import_clean(theirs, base);
}

static enum lk_status name_node(struct lk_onnx_draft *draft, const char *base,
                                struct lk_node *node, const char **entry)
{
    char name[LK_IMPORT_NAME];
    lk_import_choose_name(draft->graph, node, base, "", name);
    LK_TRY(lk_node_set_name(node, name));
    return lk_arena_text(&draft->arena, name, entry);
}

/* --- entries ----------------------------------------------------------------------------- */

static enum lk_status add(struct lk_onnx_draft *draft, const char *op, const char *options,
                          int count, const struct lk_onnx_value *x, bool is_frozen,
                          struct lk_onnx_value *made)
{
    struct lk_node *nodes[LK_MOST_INPUTS];
    const char *from[LK_MOST_INPUTS];
    char base[LK_IMPORT_BASE];
    if (++draft->entries > MOST_ENTRIES || count > LK_MOST_INPUTS)
        return lk_onnx_fail(draft, "a model has at most %d entries, of %d inputs", MOST_ENTRIES,
                            LK_MOST_INPUTS);
    for (int i = 0; i < count; i++) {
        nodes[i] = x[i].node;
        from[i] = x[i].entry;
    }
    const struct lk_onnx_value first = x[0]; /* which `made` may be */
    *made = (struct lk_onnx_value){.is_last = first.is_last};
    const enum lk_status status =
        lk_graph_add_many(draft->graph, op, count, nodes, options, &made->node);
    if (status != LK_OK)
        return lk_onnx_say_where(draft, status);
    name_base(draft, base);
    LK_TRY(name_node(draft, base, made->node, &made->entry));
    const struct lk_import_entry line = {.name = made->entry,
                                         .op = op,
                                         .options = options,
                                         .is_frozen = is_frozen,
                                         .count = count,
                                         .from = from};
    lk_import_write_entry(&draft->layers, &line, draft->before);
    draft->before = made->entry;
    const struct lk_shape *y = &made->node->shapes.y;
    const bool turns = made->is_last && y->rank == 3;
    made->is_last = turns;
    made->rank = y->rank + 1;
    made->dim[0] = draft->batch;
    for (int i = 0; i < y->rank; i++)
        made->dim[1 + i] = y->dim[turns ? (i + 1) % 3 : i];
    return LK_OK;
}

enum lk_status lk_onnx_add(struct lk_onnx_draft *draft, const char *op, const char *options,
                           int count, const struct lk_onnx_value *x, struct lk_onnx_value *made)
{
    return add(draft, op, options, count, x, false, made);
}

enum lk_status lk_onnx_add_frozen(struct lk_onnx_draft *draft, const char *op,
                                  const char *options, const struct lk_onnx_value *x,
                                  struct lk_onnx_value *made)
{
    return add(draft, op, options, 1, x, true, made);
}

/* Whether the node has the shape that is noted, channels first where they come last there. */
static bool is_settled(const struct lk_onnx_value *x)
{
    const struct lk_shape *y = &x->node->shapes.y;
    bool same = y->rank == x->rank - 1;
    for (int i = 0; same && i < y->rank; i++)
        same = x->dim[1 + i] == y->dim[x->is_last ? (i + 1) % 3 : i];
    return same;
}

enum lk_status lk_onnx_settle(struct lk_onnx_draft *draft, const struct lk_onnx_value *x,
                              struct lk_onnx_value *settled)
{
    char shape[96] = "";
    size_t used = 0;
    const struct lk_onnx_value from = *x;
    if (is_settled(x)) {
        *settled = from;
        return LK_OK;
    }
    if (x->is_last || x->rank < 2 || x->rank > LK_MOST_AXES + 1)
        return lk_onnx_fail(draft, "it reads a value of %d axes%s, which is not supported",
                            x->rank, x->is_last ? " in another order than here" : "");
    if (x->rank == 2)
        return lk_onnx_add(draft, "flatten", "", 1, &from, settled);
    for (int i = 1; i < x->rank; i++)
        used += (size_t)snprintf(shape + used, sizeof shape - used, "%s%lld",
                                 i > 1 ? ", " : "shape=[", (long long)x->dim[i]);
    snprintf(shape + used, sizeof shape - used, "]");
    return lk_onnx_add(draft, "reshape", shape, 1, &from, settled);
}

enum lk_status lk_onnx_image(struct lk_onnx_draft *draft, int index,
                             struct lk_onnx_value *image)
{
    const struct lk_onnx_value *x;
    LK_TRY(lk_onnx_computed(draft, index, &x));
    if (x->rank != 4 || x->is_last)
        return lk_onnx_fail(draft, "it reads %d axes%s, expected images [n, c, h, w]", x->rank,
                            x->is_last ? " with the channels last" : "");
    return lk_onnx_settle(draft, x, image);
}

/* --- parameters -------------------------------------------------------------------------- */

/* Room for one more array of the model. */
static enum lk_status grow(struct lk_onnx_draft *draft)
{
    struct lk_imported *made = draft->made;
    void *memory;
    if (made->tensor_count < draft->tensor_room)
        return LK_OK;
    const int room = draft->tensor_room ? 2 * draft->tensor_room : 64;
    LK_TRY(lk_arena_allocate(&made->arena, (size_t)room * sizeof *made->tensors, &memory));
    if (made->tensor_count)
        memcpy(memory, made->tensors, (size_t)made->tensor_count * sizeof *made->tensors);
    made->tensors = memory;
    draft->tensor_room = room;
    return LK_OK;
}

/* An array for a parameter, with room for its numbers at *to. */
static enum lk_status add_array(struct lk_onnx_draft *draft, const struct lk_onnx_value *entry,
                                const char *param, int *index, float **to)
{
    const struct lk_op_shapes *shapes = &entry->node->shapes;
    char name[160];
    void *memory;
    *index = 0;
    while (*index < shapes->params && strcmp(shapes->param[*index].name, param) != 0)
        ++*index;
    if (*index == shapes->params)
        return lk_onnx_fail(draft, "'%s' has no '%s'", entry->entry, param);
    LK_TRY(grow(draft));
    const struct lk_shape *shape = &shapes->param[*index].shape;
    struct lk_safetensor *tensor = &draft->made->tensors[draft->made->tensor_count];
    *tensor = (struct lk_safetensor){.type = LK_SAFETENSOR_F32, .rank = shape->rank};
    memcpy(tensor->shape, shape->dim, sizeof shape->dim);
    snprintf(name, sizeof name, "%s.%s", entry->entry, param);
    LK_TRY(lk_arena_text(&draft->made->arena, name, &tensor->name));
    LK_TRY(lk_arena_allocate(&draft->made->arena, (size_t)lk_shape_count(shape) * sizeof(float),
                             &memory));
    tensor->data = *to = memory;
    draft->made->tensor_count++;
    return LK_OK;
}

static enum lk_status fill(struct lk_onnx_draft *draft, const struct lk_onnx_tensor *numbers,
                           double factor, float *to)
{
    const float number = (float)(factor * lk_onnx_real(numbers, 0));
    draft->equal += numbers->count;
    if (draft->equal > LK_ONNX_MOST_EQUAL)
        return lk_onnx_fail(draft, "constants of far more elements than the file has");
    for (int64_t i = 0; i < numbers->count; i++)
        to[i] = number;
    return LK_OK;
}

enum lk_status lk_onnx_set(struct lk_onnx_draft *draft, const struct lk_onnx_value *entry,
                           const char *param, const struct lk_onnx_tensor *numbers,
                           bool is_ours, double factor)
{
    struct lk_layout layout;
    float *to;
    int index;
    LK_TRY(add_array(draft, entry, param, &index, &to));
    LK_TRY(lk_layout_describe(entry->node, index, is_ours ? LK_LAYOUT_OWN : LK_LAYOUT_TORCH,
                              &draft->arena, &layout));
    if (!lk_layout_fits(&layout, numbers->rank, numbers->dim))
        return lk_onnx_fail(draft, "its constant '%.80s' has another shape than '%s' needs",
                            numbers->name, param);
    if (numbers->is_one)
        return fill(draft, numbers, factor, to);
    float *theirs = malloc((size_t)numbers->count * sizeof *theirs + 1);
    if (!theirs)
        return lk_fail_memory(numbers->name, (size_t)numbers->count * sizeof *theirs);
    for (int64_t i = 0; i < numbers->count; i++)
        theirs[i] = (float)(factor * lk_onnx_real(numbers, i));
    lk_layout_take(&layout, sizeof *theirs, theirs, to);
    free(theirs);
    return LK_OK;
}

enum lk_status lk_onnx_set_all(struct lk_onnx_draft *draft, const struct lk_onnx_value *entry,
                               const char *param, double number)
{
    float *to;
    int index;
    LK_TRY(add_array(draft, entry, param, &index, &to));
    const int64_t count = lk_shape_count(&entry->node->shapes.param[index].shape);
    for (int64_t i = 0; i < count; i++)
        to[i] = (float)number;
    return LK_OK;
}

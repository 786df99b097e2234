/* The values of a graph of ONNX by their names. */
#include "model/onnx/convert.h"

#include "base/fail.h"
#include <stdlib.h>
#include <string.h>

/* --- names ------------------------------------------------------------------------------- */

/* FNV-1a */
size_t lk_onnx_hash(const char *name)
{
    uint64_t sum = 14695981039346656037u;
    for (; *name; name++)
        sum = (sum ^ (uint8_t)*name) * 1099511628211u;
    return (size_t)(sum ^ sum >> 32);
}

static struct lk_onnx_value **place_of(const struct lk_onnx_draft *draft, const char *name)
{
    size_t at = lk_onnx_hash(name) & (draft->slots - 1);
    while (draft->table[at] && strcmp(draft->table[at]->name, name) != 0)
        at = (at + 1) & (draft->slots - 1);
    return &draft->table[at];
}

struct lk_onnx_value *lk_onnx_find(const struct lk_onnx_draft *draft, const char *name)
{
    return *place_of(draft, name);
}

bool lk_onnx_is_made(const struct lk_onnx_value *value)
{
    return value && (value->constant || value->node);
}

/* Enters a name, once. */
static enum lk_status enter(struct lk_onnx_draft *draft, const char *name)
{
    struct lk_onnx_value **place = place_of(draft, name);
    void *memory;
    if (*place)
        return lk_fail(LK_E_DATA, "%s: '%.120s' is made twice", draft->where, name);
    LK_TRY(lk_arena_allocate(&draft->arena, sizeof **place, &memory));
    *place = memory;
    (*place)->name = name;
    return LK_OK;
}

static size_t count_names(const struct lk_onnx_graph *file)
{
    size_t names = (size_t)file->constant_count + (size_t)file->input_count + 1;
    for (int i = 0; i < file->node_count; i++)
        names += (size_t)file->nodes[i].output_count;
    return names;
}

/* Models of older versions list constants among the inputs as well. */
enum lk_status lk_onnx_open_values(struct lk_onnx_draft *draft)
{
    const struct lk_onnx_graph *file = draft->file;
    const size_t names = count_names(file);
    void *memory;
    for (draft->slots = 16; draft->slots < 2 * names;)
        draft->slots *= 2;
    LK_TRY(lk_arena_allocate(&draft->arena, draft->slots * sizeof *draft->table, &memory));
    draft->table = memory;
    for (int i = 0; i < file->constant_count; i++) {
        LK_TRY(enter(draft, file->constants[i].name));
        (*place_of(draft, file->constants[i].name))->constant = &file->constants[i];
    }
    for (int i = 0; i < file->input_count; i++)
        if (!lk_onnx_find(draft, file->inputs[i].name))
            LK_TRY(enter(draft, file->inputs[i].name));
    for (int i = 0; i < file->node_count; i++)
        for (int o = 0; o < file->nodes[i].output_count; o++)
            if (*file->nodes[i].outputs[o])
                LK_TRY(enter(draft, file->nodes[i].outputs[o]));
    return LK_OK;
}

/* --- inputs and outputs of the node at work ---------------------------------------------- */

struct lk_onnx_value *lk_onnx_input(const struct lk_onnx_draft *draft, int index)
{
    if (index < 0 || index >= draft->node->input_count || !*draft->node->inputs[index])
        return NULL;
    return lk_onnx_find(draft, draft->node->inputs[index]);
}

enum lk_status lk_onnx_computed(const struct lk_onnx_draft *draft, int index,
                                const struct lk_onnx_value **value)
{
    *value = lk_onnx_input(draft, index);
    if (*value && (*value)->node)
        return LK_OK;
    return lk_onnx_fail(draft, "its input %d is %s, expected a value of each sample", index,
                        *value ? "a constant" : "left out");
}

enum lk_status lk_onnx_constant(const struct lk_onnx_draft *draft, int index,
                                const struct lk_onnx_tensor **tensor)
{
    const struct lk_onnx_value *value = lk_onnx_input(draft, index);
    *tensor = !value ? NULL : value->constant ? value->constant : value->known;
    if (!value || *tensor)
        return LK_OK;
    return lk_onnx_fail(draft, "its input %d, '%.80s', is computed, expected a constant", index,
                        value->name);
}

enum lk_status lk_onnx_give(struct lk_onnx_draft *draft, int index,
                            const struct lk_onnx_value *value)
{
    if (index >= draft->node->output_count || !*draft->node->outputs[index])
        return LK_OK;
    struct lk_onnx_value *to = lk_onnx_find(draft, draft->node->outputs[index]);
    const struct lk_onnx_value kept = *to;
    *to = *value;
    to->name = kept.name;
    to->readers = kept.readers;
    to->known = NULL;
    return LK_OK;
}

enum lk_status lk_onnx_give_constant(struct lk_onnx_draft *draft,
                                     const struct lk_onnx_tensor *tensor)
{
    return lk_onnx_give(draft, 0, &(struct lk_onnx_value){.constant = tensor});
}

enum lk_status lk_onnx_axis(const struct lk_onnx_draft *draft, int64_t axis, int rank,
                            int *found)
{
    if (axis < -rank || axis >= rank)
        return lk_onnx_fail(draft, "axis %lld of a value with %d axes", (long long)axis, rank);
    *found = (int)(axis < 0 ? axis + rank : axis);
    return LK_OK;
}

/* --- constants that are made here -------------------------------------------------------- */

enum lk_status lk_onnx_new_tensor(struct lk_onnx_draft *draft, enum lk_onnx_type type, int rank,
                                  const int64_t *dim, struct lk_onnx_tensor **tensor)
{
    void *memory, *data;
    int64_t count = 1;
    for (int i = 0; i < rank; i++) {
        if (dim[i] < 0 || (dim[i] && count > draft->budget / dim[i]))
            return lk_onnx_fail(draft, "constants of far more elements than the file has");
        count *= dim[i];
    }
    draft->budget -= count;
    if (type == LK_ONNX_HALF || type == LK_ONNX_BFLOAT)
        type = LK_ONNX_FLOAT;
    LK_TRY(lk_arena_allocate(&draft->arena, sizeof **tensor, &memory));
    LK_TRY(
        lk_arena_allocate(&draft->arena, (size_t)count * lk_onnx_type_bytes(type) + 1, &data));
    *tensor = memory;
    **tensor = (struct lk_onnx_tensor){
        .name = "", .type = type, .rank = rank, .count = count, .data = data};
    for (int i = 0; i < rank; i++)
        (*tensor)->dim[i] = dim[i];
    return LK_OK;
}

void lk_onnx_put_integer(struct lk_onnx_tensor *tensor, int64_t index, int64_t value)
{
    char *data = (char *)(uintptr_t)tensor->data;
    switch (lk_onnx_type_bytes(tensor->type)) {
    case 1:
        ((uint8_t *)data)[index] = (uint8_t)value;
        break;
    case 2:
        ((uint16_t *)data)[index] = (uint16_t)value;
        break;
    case 4:
        ((uint32_t *)data)[index] = (uint32_t)value;
        break;
    default:
        ((int64_t *)data)[index] = value;
    }
}

void lk_onnx_put_real(struct lk_onnx_tensor *tensor, int64_t index, double value)
{
    char *data = (char *)(uintptr_t)tensor->data;
    if (tensor->type == LK_ONNX_FLOAT)
        ((float *)data)[index] = (float)value;
    else if (tensor->type == LK_ONNX_DOUBLE)
        ((double *)data)[index] = value;
    else
        lk_onnx_put_integer(tensor, index, value > -9e18 && value < 9e18 ? (int64_t)value : 0);
}

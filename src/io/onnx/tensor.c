/* Tensors of ONNX's messages: their shapes checked, their numbers found wherever the file has
 * them. */
#include "io/onnx/memory.h"

#include "base/fail.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { IS_OUTSIDE = 1, LONGEST_NUMBER = 20 };

/* A tensor while it is made. */
struct making {
    struct lk_onnx_memory *memory;
    const LkOnnx__Tensor *from;
    struct lk_onnx_tensor *made;
};

static enum lk_status refuse(const struct making *m, enum lk_status status, const char *what)
{
    return lk_fail(status, "%s: tensor '%.80s' %s", m->memory->path, m->made->name, what);
}

static enum lk_status read_shape(struct making *m)
{
    struct lk_onnx_tensor *made = m->made;
    const int64_t each = (int64_t)lk_onnx_type_bytes(made->type);
    if (!each)
        return lk_fail(LK_E_UNSUPPORTED,
                       "%s: tensor '%.80s' has elements of type %d, which is not supported",
                       m->memory->path, made->name, (int)made->type);
    if (m->from->n_dimension > LK_ONNX_AXES)
        return refuse(m, LK_E_UNSUPPORTED, "has more than 8 axes");
    made->rank = (int)m->from->n_dimension;
    made->count = 1;
    for (int i = 0; i < made->rank; i++) {
        made->dim[i] = m->from->dimension[i];
        if (made->dim[i] < 0 || (made->dim[i] && made->count > INT32_MAX / made->dim[i]))
            return refuse(m, LK_E_DATA, "has a negative length, or more than 2^31 elements");
        made->count *= made->dim[i];
    }
    return LK_OK;
}

/* --- numbers outside ---------------------------------------------------------------------- */

static bool read_number(const char *text, int64_t *number)
{
    char *end;
    errno = 0;
    const size_t digits = strspn(text, "0123456789");
    *number = digits && !text[digits] ? strtoll(text, &end, 10) : -1;
    return *number >= 0 && errno == 0 && digits < LONGEST_NUMBER;
}

static enum lk_status read_outside(struct making *m)
{
    const char *location = NULL;
    int64_t offset = 0, length;
    const size_t bytes = (size_t)m->made->count * lk_onnx_type_bytes(m->made->type);
    length = (int64_t)bytes;
    for (size_t i = 0; i < m->from->n_external_data; i++) {
        const LkOnnx__Pair *pair = m->from->external_data[i];
        if (!pair->key || !pair->value)
            continue;
        if (strcmp(pair->key, "location") == 0)
            location = pair->value;
        if ((strcmp(pair->key, "offset") == 0 && !read_number(pair->value, &offset)) ||
            (strcmp(pair->key, "length") == 0 && !read_number(pair->value, &length)))
            return refuse(m, LK_E_DATA, "lies outside, at a place that is no number");
    }
    if (!location || !*location)
        return refuse(m, LK_E_DATA, "lies outside, in a file that is not named");
    if (length != (int64_t)bytes)
        return refuse(m, LK_E_DATA, "has another shape than its data outside");
    return lk_onnx_read_outside(m->memory, location, offset, bytes, &m->made->data);
}

/* --- numbers inside ----------------------------------------------------------------------- */

static enum lk_status check_count(const struct making *m, size_t found)
{
    if (found == (size_t)m->made->count)
        return LK_OK;
    return lk_fail(LK_E_DATA, "%s: tensor '%.80s' has %zu numbers, its shape needs %lld",
                   m->memory->path, m->made->name, found, (long long)m->made->count);
}

/* Narrow types, and halves as their bits, lie as one int32 each. */
static enum lk_status read_narrow(struct making *m)
{
    const size_t each = lk_onnx_type_bytes(m->made->type);
    void *memory;
    LK_TRY(check_count(m, m->from->n_int32_data));
    if (m->made->type == LK_ONNX_INT32) {
        m->made->data = m->from->int32_data;
        return LK_OK;
    }
    LK_TRY(lk_arena_allocate(&m->memory->arena, each * (size_t)m->made->count + 1, &memory));
    for (int64_t i = 0; i < m->made->count; i++) {
        const uint32_t value = (uint32_t)m->from->int32_data[i];
        if (each == 1)
            ((uint8_t *)memory)[i] = (uint8_t)value;
        else
            ((uint16_t *)memory)[i] = (uint16_t)value;
    }
    m->made->data = memory;
    return LK_OK;
}

static enum lk_status read_wide(struct making *m)
{
    void *memory;
    LK_TRY(check_count(m, m->from->n_uint64_data));
    if (m->made->type == LK_ONNX_UINT64) {
        m->made->data = m->from->uint64_data;
        return LK_OK;
    }
    LK_TRY(lk_arena_allocate(&m->memory->arena, 4 * (size_t)m->made->count + 1, &memory));
    for (int64_t i = 0; i < m->made->count; i++)
        ((uint32_t *)memory)[i] = (uint32_t)m->from->uint64_data[i];
    m->made->data = memory;
    return LK_OK;
}

static enum lk_status read_raw(struct making *m)
{
    const size_t bytes = (size_t)m->made->count * lk_onnx_type_bytes(m->made->type);
    if (m->from->raw_data.len != bytes)
        return lk_fail(LK_E_DATA, "%s: tensor '%.80s' has %zu bytes, its shape needs %zu",
                       m->memory->path, m->made->name, m->from->raw_data.len, bytes);
    m->made->data = m->from->raw_data.data;
    return LK_OK;
}

static enum lk_status read_numbers(struct making *m)
{
    if (m->from->has_raw_data)
        return read_raw(m);
    switch (m->made->type) {
    case LK_ONNX_FLOAT:
        m->made->data = m->from->float_data;
        return check_count(m, m->from->n_float_data);
    case LK_ONNX_DOUBLE:
        m->made->data = m->from->double_data;
        return check_count(m, m->from->n_double_data);
    case LK_ONNX_INT64:
        m->made->data = m->from->int64_data;
        return check_count(m, m->from->n_int64_data);
    case LK_ONNX_UINT32:
    case LK_ONNX_UINT64:
        return read_wide(m);
    default:
        return read_narrow(m);
    }
}

enum lk_status lk_onnx_make_tensor(struct lk_onnx_memory *memory, const LkOnnx__Tensor *from,
                                   const char *name, struct lk_onnx_tensor *made)
{
    struct making m = {memory, from, made};
    *made = (struct lk_onnx_tensor){.name = from->name && *from->name ? from->name : name,
                                    .type = (enum lk_onnx_type)from->type};
    LK_TRY(read_shape(&m));
    return from->location == IS_OUTSIDE ? read_outside(&m) : read_numbers(&m);
}

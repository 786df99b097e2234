/* Writes safetensors files. */
#include "io/safetensors.h"

#include "base/fail.h"
#include "io/file.h"
#include "io/safetensors_sum.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "arrays are written as they lie");

static json_t *numbers(const int64_t *values, int count)
{
    json_t *array = json_array();
    for (int i = 0; i < count; i++)
        if (json_array_append_new(array, json_integer(values[i])))
            break;
    return array;
}

/* Adds the array's entry to the header; *end: where the data of the array before it ends, then
 * of this one. */
static enum lk_status add_tensor(json_t *header, const struct lk_safetensor *tensor,
                                 int64_t *end)
{
    const struct lk_safetensor unit = {.type = tensor->type};
    const int64_t size = (int64_t)lk_safetensor_bytes(&unit);
    const uint64_t bytes = lk_safetensor_bytes(tensor);
    int64_t offsets[2] = {*end, 0};
    if (bytes > INT64_MAX || __builtin_add_overflow(*end, (int64_t)bytes, &offsets[1]))
        return lk_fail(LK_E_ARGUMENT, "array '%s' has a shape that cannot be", tensor->name);
    if (*end % size)
        return lk_fail(LK_E_ARGUMENT,
                       "array '%s' of %s would lie at byte %lld: larger elements go first",
                       tensor->name, lk_safetensor_type_name(tensor->type), (long long)*end);
    if (strcmp(tensor->name, "__metadata__") == 0 || json_object_get(header, tensor->name))
        return lk_fail(LK_E_ARGUMENT, "array name '%s' is taken", tensor->name);
    json_t *entry =
        json_pack("{s:s, s:o, s:o}", "dtype", lk_safetensor_type_name(tensor->type), "shape",
                  numbers(tensor->shape, tensor->rank), "data_offsets", numbers(offsets, 2));
    if (json_object_set_new(header, tensor->name, entry))
        return lk_fail(LK_E_ARGUMENT, "array name '%s' is not UTF-8", tensor->name);
    *end = offsets[1];
    return LK_OK;
}

static enum lk_status add_metadata(json_t *header, const struct lk_safetensors_text *metadata,
                                   int texts)
{
    json_t *object = json_object();
    if (texts > 0 && json_object_set_new(header, "__metadata__", object))
        return lk_fail_memory("a file header", 0);
    for (int i = 0; i < texts; i++) {
        const bool is_sum = strcmp(metadata[i].key, LK_SAFETENSORS_SUM) == 0;
        const char *value = is_sum ? lk_safetensors_no_sum : metadata[i].value;
        if (json_object_set_new(object, metadata[i].key, json_string(value)))
            return lk_fail(LK_E_ARGUMENT, "metadata '%s' is not UTF-8", metadata[i].key);
    }
    if (texts == 0)
        json_decref(object);
    return LK_OK;
}

/* Makes the header as it is in the file: its length, the JSON, spaces up to a multiple of 8.
 * After a failure the caller frees the data too. */
static enum lk_status print_header(const json_t *header, char **data, size_t *bytes)
{
    char *text = json_dumps(header, JSON_COMPACT);
    const size_t length = text ? strlen(text) : 0;
    const uint64_t padded = (length + 7) / 8 * 8;
    char *made = text ? malloc(sizeof padded + padded + 1) : NULL;
    if (made) {
        memcpy(made, &padded, sizeof padded);
        memset(made + sizeof padded, ' ', padded);
        memcpy(made + sizeof padded, text, length);
        made[sizeof padded + padded] = '\0';
    }
    free(text);
    if (!made)
        return lk_fail_memory("a file header", length);
    *data = made;
    *bytes = sizeof padded + padded;
    return lk_safetensors_add_sum(made + sizeof padded, padded);
}

/* Makes the list of the file's pieces: the header, then each array's data. */
static enum lk_status make_parts(json_t *header, const struct lk_safetensor *tensors, int count,
                                 struct lk_file_piece *parts)
{
    int64_t end = 0;
    char *text = NULL;
    for (int i = 0; i < count; i++) {
        LK_TRY(add_tensor(header, &tensors[i], &end));
        parts[i + 1].data = tensors[i].data;
        parts[i + 1].bytes = (size_t)lk_safetensor_bytes(&tensors[i]);
    }
    const enum lk_status status = print_header(header, &text, &parts[0].bytes);
    parts[0].data = text;
    return status;
}

enum lk_status lk_safetensors_write(const char *path, const struct lk_safetensor *tensors,
                                    int count, const struct lk_safetensors_text *metadata,
                                    int texts)
{
    json_t *header = json_object();
    struct lk_file_piece *parts = calloc((size_t)count + 1, sizeof *parts);
    enum lk_status status = LK_OK;
    if (!header || !parts)
        status = lk_fail_memory("a file header", ((size_t)count + 1) * sizeof *parts);
    if (status == LK_OK)
        status = add_metadata(header, metadata, texts);
    if (status == LK_OK)
        status = make_parts(header, tensors, count, parts);
    if (status != LK_OK)
        lk_fail_within(status, "cannot write '%s'", path);
    else
        status = lk_file_write_pieces(path, parts, count + 1);
    json_decref(header);
    if (parts)
        free((void *)parts[0].data);
    free(parts);
    return status;
}

/* Opens a file of named arrays by what it begins with, and turns its numbers into floats or
 * doubles; the readers of the formats lie beside. */
#include "io/arrays/arrays.h"

#include "base/fail.h"
#include "io/arrays/convert.h"
#include "io/arrays/file.h"
#include "io/arrays/keras.h"
#include "io/arrays/safetensors.h"
#include "io/arrays/torch.h"

#include <stdlib.h>
#include <string.h>

enum { BEGIN = 16 }; /* bytes that tell a format */

int lk_array_element_bytes(enum lk_safetensor_type type)
{
    static const int bytes[] = {
#define LK_X(name, bytes) bytes,
        LK_SAFETENSOR_TYPES(LK_X)
#undef LK_X
    };
    return bytes[type];
}

size_t lk_array_bytes(const struct lk_array *array)
{
    return (size_t)array->count * (size_t)lk_array_element_bytes(array->type);
}

static enum lk_status make_room(struct lk_arrays_file *file)
{
    const int room = file->room ? file->room * 2 : 64;
    if (file->public.count == LK_ARRAYS_MOST)
        return lk_fail(LK_E_DATA, "more than %d arrays", LK_ARRAYS_MOST);
    void *arrays = realloc(file->arrays, (size_t)room * sizeof *file->arrays);
    if (!arrays)
        return lk_fail_memory("a table of arrays", (size_t)room * sizeof *file->arrays);
    file->arrays = arrays;
    void *places = realloc(file->places, (size_t)room * sizeof *file->places);
    if (!places)
        return lk_fail_memory("a table of arrays", (size_t)room * sizeof *file->places);
    file->places = places;
    file->room = room;
    return LK_OK;
}

enum lk_status lk_arrays_add(struct lk_arrays_file *file, const struct lk_array *array,
                             const struct lk_array_place *place, uint64_t most)
{
    struct lk_safetensor shape = {.type = array->type, .rank = array->rank};
    memcpy(shape.shape, array->shape, sizeof shape.shape);
    const uint64_t bytes = lk_safetensor_bytes(&shape);
    if (bytes == UINT64_MAX || bytes > INT64_MAX)
        return lk_fail(LK_E_DATA, "array '%.100s': the product of the shape is too large",
                       array->name);
    if (bytes > most)
        return lk_fail(LK_E_DATA, "array '%.100s': shape and type give %llu bytes; it has %llu",
                       array->name, (unsigned long long)bytes, (unsigned long long)most);
    if (file->public.count == file->room)
        LK_TRY(make_room(file));
    struct lk_array *added = &file->arrays[file->public.count];
    *added = *array;
    added->count = (int64_t)(bytes / (uint64_t)lk_array_element_bytes(array->type));
    for (int i = array->rank; i < LK_SAFETENSOR_AXES; i++)
        added->shape[i] = 0;
    LK_TRY(lk_arena_text(&file->arena, array->name, &added->name));
    if (array->label)
        LK_TRY(lk_arena_text(&file->arena, array->label, &added->label));
    file->places[file->public.count++] = *place;
    file->public.arrays = file->arrays;
    return LK_OK;
}

enum lk_status lk_arrays_add_text(struct lk_arrays_file *file, const char *key,
                                  const char *value)
{
    struct lk_safetensors_text *text = &file->texts[file->public.texts];
    if (file->public.texts == LK_ARRAYS_TEXTS)
        return lk_fail(LK_E_DATA, "more than %d texts", LK_ARRAYS_TEXTS);
    LK_TRY(lk_arena_text(&file->arena, key, &text->key));
    LK_TRY(lk_arena_text(&file->arena, value, &text->value));
    file->public.metadata = file->texts;
    file->public.texts++;
    return LK_OK;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Names are what weights are asked for by: a file cannot have one twice. */
static enum lk_status check_names(const struct lk_arrays_file *file)
{
    const size_t count = (size_t)file->public.count;
    const char **names = malloc((count + 1) * sizeof *names);
    enum lk_status status = LK_OK;
    if (!names)
        return lk_fail_memory("a table of names", (count + 1) * sizeof *names);
    for (size_t i = 0; i < count; i++)
        names[i] = file->arrays[i].name;
    qsort(names, count, sizeof *names, compare_names);
    for (size_t i = 1; i < count && status == LK_OK; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            status = lk_fail(LK_E_DATA, "two arrays have the name '%.100s'", names[i]);
    free(names);
    return status;
}

static enum lk_status open_archive(struct lk_arrays_file *file)
{
    struct lk_zip *zip = NULL;
    LK_TRY(lk_zip_open(&file->bytes, &zip));
    if (lk_torch_find_pickle(zip) >= 0)
        return lk_torch_open_archive(file, zip);
    if (lk_keras_is_archive(zip))
        return lk_keras_open_archive(file, zip);
    lk_zip_close(zip);
    return lk_fail(LK_E_DATA, "a zip archive, but without the 'data.pkl' of PyTorch's files or "
                              "the 'model.weights.h5' of Keras's");
}

static enum lk_status open_as(const char *path, struct lk_arrays_file *file,
                              const unsigned char *begin)
{
    /* a header's length of 640 bytes begins like a pickle: 80 02 */
    if (file->bytes.size > 8 && begin[8] == '{' && memcmp(begin + 4, "\0\0\0", 4) == 0)
        return lk_arrays_open_safetensors(path, file);
    if (lk_torch_is_stream(begin))
        return lk_torch_open_stream(file);
    if (memcmp(begin, "\x89HDF\r\n\x1a\n", 8) == 0)
        return lk_keras_open(file);
    if (memcmp(begin, "PK\3\4", 4) == 0)
        return open_archive(file);
    if (file->bytes.size > 8 && begin[8] == '{')
        return lk_arrays_open_safetensors(path, file);
    return lk_fail(LK_E_DATA,
                   "begins like no file of weights: expected safetensors, HDF5 (.h5), a zip "
                   "archive (.keras, .pt, .pth) or PyTorch's pickles");
}

static enum lk_status open_bytes(const char *path, struct lk_arrays_file *file)
{
    unsigned char begin[BEGIN] = {0};
    const size_t there = file->bytes.size < BEGIN ? (size_t)file->bytes.size : BEGIN;
    LK_TRY(lk_bytes_read(&file->bytes, 0, there, "the begin of a file", begin));
    LK_TRY(open_as(path, file, begin));
    return check_names(file);
}

enum lk_status lk_arrays_open(const char *path, struct lk_arrays **file)
{
    struct lk_arrays_file *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("a file", sizeof *made);
    made->bytes.fd = -1;
    enum lk_status status = lk_bytes_open(path, &made->bytes);
    if (status == LK_OK)
        status = lk_arena_text(&made->arena, path, &made->path);
    if (status == LK_OK) {
        status = open_bytes(path, made);
        if (status != LK_OK && !strstr(lk_error_text(), path))
            lk_fail_within(status, "'%s'", path);
    }
    if (status != LK_OK) {
        lk_arrays_close(&made->public);
        return status;
    }
    *file = &made->public;
    return LK_OK;
}

void lk_arrays_close(struct lk_arrays *file)
{
    struct lk_arrays_file *inner = (struct lk_arrays_file *)file;
    if (!inner)
        return;
    if (inner->reader)
        inner->reader->close(inner);
    lk_bytes_close(&inner->bytes);
    lk_arena_clear(&inner->arena);
    free(inner->arrays);
    free(inner->places);
    free(inner);
}

const struct lk_array *lk_arrays_find(const struct lk_arrays *file, const char *name)
{
    for (int i = 0; i < file->count; i++)
        if (strcmp(file->arrays[i].name, name) == 0)
            return &file->arrays[i];
    return NULL;
}

const char *lk_arrays_text(const struct lk_arrays *file, const char *key)
{
    for (int i = 0; i < file->texts; i++)
        if (strcmp(file->metadata[i].key, key) == 0)
            return file->metadata[i].value;
    return NULL;
}

/* Some readers' messages name the file already. */
static enum lk_status read_raw(const struct lk_arrays_file *file, int i, void *to)
{
    const enum lk_status status = file->reader->read(file, i, to);
    if (status != LK_OK)
        lk_fail_within(status, "array '%s'", file->arrays[i].name);
    if (status != LK_OK && !strstr(lk_error_text(), file->path))
        lk_fail_within(status, "'%s'", file->path);
    return status;
}

enum lk_status lk_arrays_read(const struct lk_arrays *file, const struct lk_array *array,
                              enum lk_safetensor_type as, void *to)
{
    const struct lk_arrays_file *inner = (const struct lk_arrays_file *)file;
    const int i = (int)(array - file->arrays);
    const size_t bytes = lk_array_bytes(array);
    if (as != LK_SAFETENSOR_F32 && as != LK_SAFETENSOR_F64)
        return lk_fail(LK_E_ARGUMENT, "arrays are read as F32 or F64, not as %s",
                       lk_safetensor_type_name(as));
    if (bytes == 0)
        return LK_OK;
    if (array->type == as)
        return read_raw(inner, i, to);
    void *raw = malloc(bytes);
    if (!raw)
        return lk_fail_memory("an array of a file", bytes);
    const enum lk_status status = read_raw(inner, i, raw);
    if (status == LK_OK)
        lk_arrays_convert(array->type, raw, array->count, as, to);
    free(raw);
    return status;
}

/* Opens safetensors files, whose headers may come from anyone, and reads their arrays. */
#include "io/safetensors.h"

#include "base/arena.h"
#include "base/fail.h"
#include "io/file.h"
#include "io/safetensors_sum.h"

#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "arrays are read as they lie");

static const uint64_t most_header_bytes = 20 << 20; /* 10000 arrays have 2 MB, a vocabulary of
                                                     * texts, escaped, at most 16 */
static const int most_values = 1 << 17;             /* of the header, 10 for an array */

/* An open file; its first member is what callers get. */
struct file {
    struct lk_safetensors public;
    struct lk_arena arena;
    const char *path;
    int fd;
    uint64_t start, bytes; /* of all arrays' data */
};

static const struct {
    const char *name;
    int bytes;
} types[] = {
#define LK_X(name, bytes) {#name, bytes},
    LK_SAFETENSOR_TYPES(LK_X)
#undef LK_X
};

const char *lk_safetensor_type_name(enum lk_safetensor_type type)
{
    return types[type].name;
}

uint64_t lk_safetensor_bytes(const struct lk_safetensor *tensor)
{
    uint64_t bytes = (uint64_t)types[tensor->type].bytes;
    if (tensor->rank < 0 || tensor->rank > LK_SAFETENSOR_AXES)
        return UINT64_MAX;
    for (int i = 0; i < tensor->rank; i++)
        if (tensor->shape[i] < 0 ||
            __builtin_mul_overflow(bytes, (uint64_t)tensor->shape[i], &bytes))
            return UINT64_MAX;
    return bytes;
}

static enum lk_status read_at(const struct file *file, uint64_t offset, uint64_t bytes,
                              void *to)
{
    char *at = to;
    while (bytes > 0) {
        const size_t wanted = bytes < (1 << 30) ? (size_t)bytes : 1 << 30;
        const ssize_t got = pread(file->fd, at, wanted, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return lk_file_fail("read", file->path);
        if (got == 0)
            return lk_fail(LK_E_IO, "'%s' became shorter while it was read", file->path);
        at += got;
        offset += (uint64_t)got;
        bytes -= (uint64_t)got;
    }
    return LK_OK;
}

/* The header as text of `*bytes` bytes, which the caller frees. Sets file->start and bytes. */
static enum lk_status read_header(struct file *file, char **text, size_t *bytes)
{
    struct stat about;
    uint64_t length;
    if (fstat(file->fd, &about))
        return lk_file_fail("examine", file->path);
    const uint64_t size = (uint64_t)about.st_size;
    if (size < sizeof length)
        return lk_fail(LK_E_DATA, "%llu bytes; a safetensors file begins with 8",
                       (unsigned long long)size);
    LK_TRY(read_at(file, 0, sizeof length, &length));
    if (length > most_header_bytes)
        return lk_fail(LK_E_DATA, "header of %llu bytes; at most %llu are allowed",
                       (unsigned long long)length, (unsigned long long)most_header_bytes);
    if (length > size - sizeof length)
        return lk_fail(LK_E_DATA, "header of %llu bytes in a file of %llu",
                       (unsigned long long)length, (unsigned long long)size);
    char *made = malloc((size_t)length + 1);
    if (!made)
        return lk_fail_memory("a file header", length);
    const enum lk_status status = read_at(file, sizeof length, length, made);
    if (status != LK_OK) {
        free(made);
        return status;
    }
    made[length] = '\0';
    file->start = sizeof length + length;
    file->bytes = size - file->start;
    *text = made;
    *bytes = (size_t)length;
    return LK_OK;
}

static enum lk_status get_type(const json_t *value, enum lk_safetensor_type *type)
{
    const char *name = json_string_value(value);
    if (!name)
        return lk_fail(LK_E_DATA, "dtype is missing or not a text");
    for (int i = 0; i < LK_COUNT(types); i++)
        if (strcmp(types[i].name, name) == 0) {
            *type = (enum lk_safetensor_type)i;
            return LK_OK;
        }
    return lk_fail(LK_E_DATA, "dtype '%.40s' is not known", name);
}

/* Reads a JSON list of at most `most` whole numbers, none of them negative. */
static enum lk_status get_numbers(const json_t *value, const char *what, int most,
                                  int64_t *numbers, int *count)
{
    if (!json_is_array(value))
        return lk_fail(LK_E_DATA, "%s is missing or not a list", what);
    const size_t found = json_array_size(value);
    if (found > (size_t)most)
        return lk_fail(LK_E_DATA, "%s has %zu numbers; at most %d are allowed", what, found,
                       most);
    for (size_t i = 0; i < found; i++) {
        const json_t *number = json_array_get(value, i);
        if (!json_is_integer(number) || json_integer_value(number) < 0)
            return lk_fail(LK_E_DATA, "%s: number %zu is not a whole number from 0", what, i);
        numbers[i] = json_integer_value(number);
    }
    *count = (int)found;
    return LK_OK;
}

static enum lk_status get_tensor(const json_t *entry, uint64_t data_bytes,
                                 struct lk_safetensor *tensor)
{
    int64_t offsets[2];
    int count;
    if (!json_is_object(entry))
        return lk_fail(LK_E_DATA, "expected dtype, shape and data_offsets");
    LK_TRY(get_type(json_object_get(entry, "dtype"), &tensor->type));
    LK_TRY(get_numbers(json_object_get(entry, "shape"), "shape", LK_SAFETENSOR_AXES,
                       tensor->shape, &tensor->rank));
    LK_TRY(get_numbers(json_object_get(entry, "data_offsets"), "data_offsets", 2, offsets,
                       &count));
    if (count != 2)
        return lk_fail(LK_E_DATA, "data_offsets has %d numbers; expected 2", count);
    if (json_object_size(entry) != 3)
        return lk_fail(LK_E_DATA, "%zu keys; expected dtype, shape and data_offsets",
                       json_object_size(entry));
    if (offsets[0] > offsets[1] || (uint64_t)offsets[1] > data_bytes)
        return lk_fail(LK_E_DATA, "data_offsets [%lld, %lld] in %llu bytes of data",
                       (long long)offsets[0], (long long)offsets[1],
                       (unsigned long long)data_bytes);
    tensor->offset = (uint64_t)offsets[0];
    tensor->bytes = (uint64_t)(offsets[1] - offsets[0]);
    const uint64_t expected = lk_safetensor_bytes(tensor);
    if (expected == UINT64_MAX)
        return lk_fail(LK_E_DATA, "the product of the shape is too large");
    if (expected != tensor->bytes)
        return lk_fail(LK_E_DATA, "%llu bytes; shape and dtype give %llu",
                       (unsigned long long)tensor->bytes, (unsigned long long)expected);
    return LK_OK;
}

static enum lk_status take_metadata(struct file *file, json_t *object)
{
    void *memory;
    const char *key;
    json_t *value;
    if (!json_is_object(object))
        return lk_fail(LK_E_DATA, "__metadata__ is not an object");
    LK_TRY(lk_arena_allocate(
        &file->arena, json_object_size(object) * sizeof(struct lk_safetensors_text), &memory));
    struct lk_safetensors_text *texts = memory;
    file->public.metadata = texts;
    json_object_foreach(object, key, value)
    {
        struct lk_safetensors_text *text = &texts[file->public.texts];
        if (!json_is_string(value))
            return lk_fail(LK_E_DATA, "__metadata__ '%.100s' is not a text", key);
        LK_TRY(lk_arena_text(&file->arena, key, &text->key));
        LK_TRY(lk_arena_text(&file->arena, json_string_value(value), &text->value));
        file->public.texts++;
    }
    return LK_OK;
}

static enum lk_status take_tensors(struct file *file, json_t *header)
{
    void *memory;
    const char *name;
    json_t *entry;
    LK_TRY(lk_arena_allocate(&file->arena,
                             json_object_size(header) * sizeof(struct lk_safetensor), &memory));
    struct lk_safetensor *tensors = memory;
    file->public.tensors = tensors;
    json_object_foreach(header, name, entry)
    {
        struct lk_safetensor *tensor = &tensors[file->public.count];
        if (strcmp(name, "__metadata__") == 0)
            continue;
        const enum lk_status status = get_tensor(entry, file->bytes, tensor);
        if (status != LK_OK)
            return lk_fail_within(status, "array '%.100s'", name);
        LK_TRY(lk_arena_text(&file->arena, name, &tensor->name));
        file->public.count++;
    }
    return LK_OK;
}

static int compare_offsets(const void *a, const void *b)
{
    const struct lk_safetensor *const *x = a, *const *y = b;
    if ((*x)->offset != (*y)->offset)
        return (*x)->offset < (*y)->offset ? -1 : 1;
    return ((*x)->bytes > (*y)->bytes) - ((*x)->bytes < (*y)->bytes);
}

/* Checks that every byte of data belongs to exactly one array. */
static enum lk_status check_cover(const struct file *file)
{
    const int count = file->public.count;
    const struct lk_safetensor **sorted = malloc(((size_t)count + 1) * sizeof *sorted);
    if (!sorted)
        return lk_fail_memory("a table of arrays", ((size_t)count + 1) * sizeof *sorted);
    for (int i = 0; i < count; i++)
        sorted[i] = &file->public.tensors[i];
    qsort(sorted, (size_t)count, sizeof *sorted, compare_offsets);
    uint64_t end = 0;
    enum lk_status status = LK_OK;
    for (int i = 0; i < count && status == LK_OK; i++) {
        if (sorted[i]->offset != end)
            status = lk_fail(LK_E_DATA, "array '%.100s' begins at byte %llu; the last one %s",
                             sorted[i]->name, (unsigned long long)sorted[i]->offset,
                             sorted[i]->offset > end ? "ends before it" : "reaches beyond it");
        end = sorted[i]->offset + sorted[i]->bytes;
    }
    free(sorted);
    if (status == LK_OK && end != file->bytes)
        return lk_fail(LK_E_DATA, "%llu bytes of data, of which the arrays are %llu",
                       (unsigned long long)file->bytes, (unsigned long long)end);
    return status;
}

/* JSON takes a hundred bytes of memory for a value that is two bytes of text. */
static enum lk_status check_values(const char *text, size_t bytes)
{
    bool inside = false; /* of a text */
    int values = 0;
    for (size_t i = 0; i < bytes; i++) {
        if (inside && text[i] == '\\')
            i++;
        else if (text[i] == '"')
            inside = !inside;
        else if (!inside && (text[i] == ',' || text[i] == '[' || text[i] == '{'))
            values++;
        if (values > most_values)
            return lk_fail(LK_E_DATA, "header, byte %zu: more than %d values", i, most_values);
    }
    return LK_OK;
}

static enum lk_status parse(struct file *file, char *text, size_t bytes)
{
    json_error_t error;
    if (bytes == 0 || text[0] != '{')
        return lk_fail(LK_E_DATA, "the header does not begin with '{'");
    LK_TRY(check_values(text, bytes));
    json_t *header = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
    if (!header)
        return lk_fail(LK_E_DATA, "header, byte %d: %s", error.position, error.text);
    json_t *metadata = json_object_get(header, "__metadata__");
    enum lk_status status = metadata ? take_metadata(file, metadata) : LK_OK;
    if (status == LK_OK)
        status = take_tensors(file, header);
    json_decref(header);
    if (status == LK_OK && lk_safetensors_text(&file->public, LK_SAFETENSORS_SUM))
        status = lk_safetensors_check_sum(text, bytes);
    return status == LK_OK ? check_cover(file) : status;
}

enum lk_status lk_safetensors_open(const char *path, struct lk_safetensors **file)
{
    struct file *made = calloc(1, sizeof *made);
    char *text = NULL;
    size_t bytes = 0;
    if (!made)
        return lk_fail_memory("a file", sizeof *made);
    made->fd = -1;
    enum lk_status status = lk_file_open(path, &made->fd);
    if (status == LK_OK)
        status = lk_arena_text(&made->arena, path, &made->path);
    if (status == LK_OK) {
        status = read_header(made, &text, &bytes);
        if (status == LK_OK)
            status = parse(made, text, bytes);
        free(text);
        if (status != LK_OK)
            lk_fail_within(status, "'%s'", path);
    }
    if (status != LK_OK) {
        lk_safetensors_close(&made->public);
        return status;
    }
    *file = &made->public;
    return LK_OK;
}

void lk_safetensors_close(struct lk_safetensors *file)
{
    struct file *inner = (struct file *)file;
    if (!inner)
        return;
    if (inner->fd >= 0)
        close(inner->fd);
    lk_arena_clear(&inner->arena);
    free(inner);
}

const struct lk_safetensor *lk_safetensors_find(const struct lk_safetensors *file,
                                                const char *name)
{
    for (int i = 0; i < file->count; i++)
        if (strcmp(file->tensors[i].name, name) == 0)
            return &file->tensors[i];
    return NULL;
}

const char *lk_safetensors_text(const struct lk_safetensors *file, const char *key)
{
    for (int i = 0; i < file->texts; i++)
        if (strcmp(file->metadata[i].key, key) == 0)
            return file->metadata[i].value;
    return NULL;
}

enum lk_status lk_safetensors_read(const struct lk_safetensors *file,
                                   const struct lk_safetensor *tensor, void *to)
{
    const struct file *inner = (const struct file *)file;
    return read_at(inner, inner->start + tensor->offset, tensor->bytes, to);
}

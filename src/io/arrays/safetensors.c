/* Lists and reads the arrays of a safetensors file through the format's own reader. */
#include "io/arrays/safetensors.h"

#include "base/fail.h"

#include <string.h>

static enum lk_status read_array(const struct lk_arrays_file *file, int i, void *to)
{
    const struct lk_safetensors *inside = file->state;
    return lk_safetensors_read(inside, &inside->tensors[i], to);
}

static void close_file(struct lk_arrays_file *file)
{
    lk_safetensors_close(file->state);
}

static const struct lk_arrays_reader reader = {read_array, close_file};

enum lk_status lk_arrays_open_safetensors(const char *path, struct lk_arrays_file *file)
{
    struct lk_safetensors *inside;
    LK_TRY(lk_safetensors_open(path, &inside));
    file->state = inside;
    file->reader = &reader;
    file->public.format = LK_ARRAYS_SAFETENSORS;
    for (int i = 0; i < inside->count; i++) {
        const struct lk_safetensor *tensor = &inside->tensors[i];
        struct lk_array array = {
            .name = tensor->name, .type = tensor->type, .rank = tensor->rank};
        memcpy(array.shape, tensor->shape, sizeof array.shape);
        LK_TRY(lk_arrays_add(file, &array, &(struct lk_array_place){0}, tensor->bytes));
    }
    file->public.texts = inside->texts;
    file->public.metadata = inside->metadata;
    return LK_OK;
}

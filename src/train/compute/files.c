/* Runs a computation on .npy files: reads some samples of each input, computes, and appends
 * what came out to drafts, which become files when all is done. */
#include <lockstep/compute.h>

#include "base/fail.h"
#include "data/tables/array.h"
#include "graph/nodes/node.h"
#include "io/file.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SAMPLES_AT_ONCE = 64, PATH_BYTES = 1024 };
static const int64_t most_bytes_at_once = 64 << 20;

struct work {
    struct lk_computation *computation;
    struct lk_field inputs[LK_MOST_INPUTS];
    struct lk_array arrays[LK_MOST_INPUTS];
    struct lk_computation_array pieces[LK_MOST_INPUTS];
    void *samples[LK_MOST_INPUTS]; /* what the pieces point to */
    int input_count;
    struct lk_field values[LK_MOST_VALUES];
    float *results[LK_MOST_VALUES];
    struct lk_file_draft *drafts[LK_MOST_VALUES];
    int value_count;
    int64_t count, at_once; /* samples */
};

/* --- inputs ---------------------------------------------------------------------------- */

static const char *input_name(const void *work, int i)
{
    const struct work *w = work;
    return i < w->input_count ? w->inputs[i].name : NULL;
}

static enum lk_status find_input(const struct work *w, const char *name, int *index)
{
    if (!name && w->input_count > 1)
        return lk_fail(LK_E_ARGUMENT,
                       "the model has %d inputs, so each file needs the name of its own: "
                       "'%s=FILE'",
                       w->input_count, w->inputs[0].name);
    for (int i = 0; i < w->input_count; i++)
        if (!name || strcmp(w->inputs[i].name, name) == 0) {
            *index = i;
            return LK_OK;
        }
    const char *near = lk_nearest_name(name, input_name, w);
    return lk_fail(LK_E_ARGUMENT, "the model has no input '%.60s'; %s'%s'%s", name,
                   near ? "did you mean " : "its first is ", near ? near : w->inputs[0].name,
                   near ? "?" : "");
}

static void print_shape(const struct lk_shape *shape, char *text, size_t bytes)
{
    size_t used = (size_t)snprintf(text, bytes, "[n");
    for (int i = 0; i < shape->rank && used < bytes; i++)
        used += (size_t)snprintf(text + used, bytes - used, ", %lld", (long long)shape->dim[i]);
    if (used < bytes)
        snprintf(text + used, bytes - used, "]");
}

/* The axes behind the batch must be those of the input. */
static enum lk_status check_shape(const struct lk_field *input, const struct lk_array *array)
{
    const struct lk_npy *npy = &array->npy;
    char wanted[128], found[256] = "[";
    bool fits = npy->rank == input->shape.rank + 1;
    for (int i = 0; fits && i < input->shape.rank; i++)
        fits = npy->shape[i + 1] == input->shape.dim[i];
    if (fits)
        return LK_OK;
    size_t used = 1;
    for (int i = 0; i < npy->rank && used < sizeof found; i++)
        used += (size_t)snprintf(found + used, sizeof found - used, "%s%lld", i ? ", " : "",
                                 (long long)npy->shape[i]);
    print_shape(&input->shape, wanted, sizeof wanted);
    return lk_fail(LK_E_SHAPE, "'%s' is an array %s], input '%s' takes %s with n samples",
                   array->path, found, input->name, wanted);
}

static enum lk_status open_input(struct work *w, const struct lk_computation_file *file)
{
    int index = 0;
    LK_TRY(find_input(w, file->input, &index));
    const struct lk_field *input = &w->inputs[index];
    struct lk_array *array = &w->arrays[index];
    if (array->file >= 0)
        return lk_fail(LK_E_ARGUMENT, "input '%s' is given twice", input->name);
    if ((size_t)snprintf(array->path, sizeof array->path, "%s", file->path) >=
        sizeof array->path)
        return lk_fail(LK_E_ARGUMENT, "a path of %zu characters", strlen(file->path));
    LK_TRY(lk_array_open_input(array));
    LK_TRY(check_shape(input, array));
    if (input->dtype == LK_I32 && array->dtype == LK_F32)
        return lk_fail(LK_E_DATA, "'%s' has floats, input '%s' takes whole numbers",
                       array->path, input->name);
    if (w->count > 0 && array->npy.shape[0] != w->count)
        return lk_fail(LK_E_SHAPE, "'%s' has %lld samples, another input has %lld", array->path,
                       (long long)array->npy.shape[0], (long long)w->count);
    w->count = array->npy.shape[0];
    w->pieces[index].dtype = array->dtype;
    return LK_OK;
}

static enum lk_status open_inputs(struct work *w, const struct lk_computation_file *files,
                                  int count)
{
    while (w->input_count < LK_MOST_INPUTS &&
           lk_computation_input(w->computation, w->input_count, &w->inputs[w->input_count]))
        w->arrays[w->input_count++].file = -1;
    for (int i = 0; i < count; i++)
        LK_TRY(open_input(w, &files[i]));
    for (int i = 0; i < w->input_count; i++)
        if (w->arrays[i].file < 0)
            return lk_fail(LK_E_ARGUMENT, "input '%s' is missing: give it a .npy file",
                           w->inputs[i].name);
    return LK_OK;
}

static enum lk_status read_samples(struct work *w, int64_t first, int64_t count)
{
    for (int i = 0; i < w->input_count; i++) {
        const struct lk_array *array = &w->arrays[i];
        const size_t bytes =
            (size_t)array->elements * (array->dtype == LK_U8 ? 1 : sizeof(float));
        for (int64_t n = 0; n < count; n++)
            LK_TRY(lk_array_read(array, first + n, (char *)w->samples[i] + (size_t)n * bytes));
    }
    return LK_OK;
}

/* --- values ---------------------------------------------------------------------------- */

/* Outputs have names of the model's author, who may be anyone: no way out of the folder. */
static enum lk_status check_name(const char *name)
{
    const size_t length = strlen(name);
    bool is_fine = length > 0 && length < 128 && name[0] != '/' && name[length - 1] != '/';
    for (size_t i = 0; i < length; i++)
        is_fine &= isalnum((unsigned char)name[i]) || strchr("_-/", name[i]);
    return is_fine ? LK_OK
                   : lk_fail(LK_E_MODEL,
                             "output '%.60s': its name can be no file's; letters, digits, "
                             "'_', '-' and '/' can",
                             name);
}

static enum lk_status begin_value(struct work *w, int v, const char *folder, bool may_replace)
{
    const struct lk_field *value = &w->values[v];
    char path[PATH_BYTES];
    uint8_t header[LK_NPY_WRITTEN_HEADER];
    int64_t shape[LK_MOST_AXES + 1] = {w->count};
    LK_TRY(check_name(value->name));
    if ((size_t)snprintf(path, sizeof path, "%s/%s.npy", folder, value->name) >= sizeof path)
        return lk_fail(LK_E_ARGUMENT, "a path of %zu characters", strlen(folder));
    char *slash = strrchr(path, '/');
    *slash = '\0';
    LK_TRY(lk_folder_make(path));
    *slash = '/';
    if (!may_replace && lk_file_exists(path))
        return lk_fail(LK_E_IO, "'%s' is there already; --force replaces it", path);
    LK_TRY(lk_file_draft_open(path, &w->drafts[v]));
    memcpy(shape + 1, value->shape.dim, (size_t)value->shape.rank * sizeof *shape);
    const size_t bytes = lk_npy_write_header(shape, value->shape.rank + 1, header);
    (void)!fwrite(header, 1, bytes, lk_file_draft_stream(w->drafts[v]));
    return LK_OK;
}

/* So few samples at once that all arrays of them stay small. */
static int64_t choose_count(const struct work *w)
{
    int64_t bytes = 0;
    for (int i = 0; i < w->input_count; i++)
        bytes += w->arrays[i].elements * (int64_t)sizeof(float);
    for (int v = 0; v < w->value_count; v++)
        bytes += lk_shape_count(&w->values[v].shape) * (int64_t)sizeof(float);
    const int64_t fitting = most_bytes_at_once / bytes;
    const int64_t least = fitting < 1 ? 1 : fitting;
    const int64_t most = least < SAMPLES_AT_ONCE ? least : SAMPLES_AT_ONCE;
    return most < w->count ? most : w->count;
}

static enum lk_status take_memory(struct work *w)
{
    w->at_once = choose_count(w);
    for (int i = 0; i < w->input_count; i++) {
        const size_t bytes = (size_t)(w->at_once * w->arrays[i].elements) * sizeof(float);
        w->pieces[i].data = w->samples[i] = malloc(bytes);
        if (!w->samples[i])
            return lk_fail_memory("samples", bytes);
    }
    for (int v = 0; v < w->value_count; v++) {
        const size_t bytes =
            (size_t)(w->at_once * lk_shape_count(&w->values[v].shape)) * sizeof(float);
        w->results[v] = malloc(bytes);
        if (!w->results[v])
            return lk_fail_memory("values", bytes);
    }
    return LK_OK;
}

static enum lk_status begin_values(struct work *w, const char *folder, bool may_replace)
{
    while (w->value_count < LK_MOST_VALUES &&
           lk_computation_value(w->computation, w->value_count, &w->values[w->value_count]))
        w->value_count++;
    for (int v = 0; v < w->value_count; v++)
        LK_TRY(begin_value(w, v, folder, may_replace));
    return take_memory(w);
}

/* --- all of it ------------------------------------------------------------------------- */

static enum lk_status write_values(struct work *w, int64_t samples)
{
    for (int v = 0; v < w->value_count; v++) {
        const size_t count = (size_t)(samples * lk_shape_count(&w->values[v].shape));
        if (fwrite(w->results[v], sizeof(float), count, lk_file_draft_stream(w->drafts[v])) !=
            count)
            return lk_file_fail("write the value", w->values[v].name);
    }
    return LK_OK;
}

static enum lk_status compute(struct work *w)
{
    for (int64_t i = 0; i < w->count; i += w->at_once) {
        const int64_t n = lk_least(w->at_once, w->count - i);
        if (lk_computation_is_stopped(w->computation))
            return lk_fail(LK_E_INTERRUPTED, "interrupted, nothing is written");
        LK_TRY(read_samples(w, i, n));
        LK_TRY(lk_computation_run(w->computation, n, w->pieces, w->results));
        LK_TRY(write_values(w, n));
    }
    for (int v = 0; v < w->value_count; v++) {
        struct lk_file_draft *draft = w->drafts[v];
        w->drafts[v] = NULL;
        LK_TRY(lk_file_draft_commit(draft));
    }
    return LK_OK;
}

/* Removes what is empty of a folder that was made for values that were then not written. */
static void remove_empty(const struct work *w, const char *folder)
{
    for (int v = 0; v < w->value_count; v++) {
        char path[PATH_BYTES];
        const size_t length = strlen(folder);
        snprintf(path, sizeof path, "%s/%s", folder, w->values[v].name);
        for (char *slash = strrchr(path, '/'); slash && (size_t)(slash - path) >= length;
             slash = strrchr(path, '/')) {
            *slash = '\0';
            (void)rmdir(path);
        }
    }
}

static void clear(struct work *w)
{
    for (int i = 0; i < w->input_count; i++) {
        lk_array_close(&w->arrays[i]);
        free(w->samples[i]);
    }
    for (int v = 0; v < LK_MOST_VALUES; v++) {
        free(w->results[v]);
    }
    free(w);
}

enum lk_status lk_computation_run_files(struct lk_computation *computation,
                                        const struct lk_computation_file *files, int count,
                                        const char *folder, bool may_replace, int64_t *samples)
{
    struct work *w = calloc(1, sizeof *w);
    enum lk_status status;
    if (!w)
        return lk_fail_memory("a computation", sizeof *w);
    w->computation = computation;
    const bool was_there = lk_folder_exists(folder);
    LK_TRY_OUT(open_inputs(w, files, count));
    LK_TRY_OUT(begin_values(w, folder, may_replace));
    LK_TRY_OUT(compute(w));
    *samples = w->count;
out:
    for (int v = 0; v < w->value_count; v++) {
        lk_file_draft_discard(w->drafts[v]);
        w->drafts[v] = NULL;
    }
    if (status != LK_OK && !was_there)
        remove_empty(w, folder);
    clear(w);
    return status;
}

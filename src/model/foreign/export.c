/* Writes a run's weights for other programs: with their names, in their order of axes. */
#include <lockstep/weights.h>

#include "base/fail.h"
#include "io/arrays/arrays.h"
#include "model/checkpoint/checkpoint.h"
#include "model/foreign/names.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is being written. */
struct export
{
    char path[1024]; /* of the checkpoint */
    struct lk_model *model;
    struct lk_namings namings;
    const struct lk_naming *naming;
    struct lk_arrays *file;
    struct lk_safetensor *tensors; /* [count], with data of their own */
    int count;
};

static enum lk_status find_naming(struct export *e, const char *names)
{
    char known[256] = "";
    size_t used = 0;
    e->naming = lk_namings_find(&e->namings, names);
    if (e->naming)
        return LK_OK;
    for (int i = 0; i < e->namings.count && used < sizeof known; i++)
        if (lk_namings_find(&e->namings, e->namings.list[i].title) == &e->namings.list[i])
            used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "",
                                     e->namings.list[i].title);
    return lk_fail(LK_E_ARGUMENT, "model '%s' has no names '%s': there are %s",
                   lk_model_name(e->model), names, known);
}

static enum lk_status open_run(struct export *e, const char *run)
{
    struct lk_checkpoint_file *file = NULL;
    LK_TRY(lk_checkpoint_find(run, e->path, sizeof e->path));
    LK_TRY(lk_checkpoint_open(e->path, &file)); /* compares all sums */
    const struct lk_checkpoint *about = lk_checkpoint_metadata(file);
    enum lk_status status =
        lk_model_read(about->model_text, strlen(about->model_text), about->model, &e->model);
    lk_checkpoint_close(file);
    if (status == LK_OK)
        status = lk_arrays_open(e->path, &e->file);
    return status == LK_OK ? lk_namings_make(e->model, &e->namings) : status;
}

/* Lays out parameter p as the naming's program does. */
static enum lk_status convert(struct export *e, int p, struct lk_safetensor *tensor)
{
    struct lk_layout layout;
    const struct lk_foreign_param *param = &e->namings.param[p];
    const struct lk_array *array = lk_arrays_find(e->file, param->name);
    LK_TRY(lk_layout_describe(param->node, param->index, e->naming->layout, &e->namings.arena,
                              &layout));
    if (!array || array->count != lk_shape_count(&layout.own) ||
        (array->type != LK_SAFETENSOR_F32 && array->type != LK_SAFETENSOR_F64))
        return lk_fail(LK_E_DATA, "%s: no array '%s' as the model has it", e->path,
                       param->name);
    const size_t each = array->type == LK_SAFETENSOR_F64 ? 8 : 4;
    const size_t bytes = (size_t)array->count * each;
    void *ours = malloc(bytes + 1), *theirs = malloc(bytes + 1);
    *tensor = (struct lk_safetensor){
        .name = e->naming->names[p][0], .type = array->type, .rank = layout.rank};
    memcpy(tensor->shape, layout.shape, sizeof layout.shape);
    tensor->data = theirs;
    e->count++;
    enum lk_status status = ours && theirs ? lk_arrays_read(e->file, array, array->type, ours)
                                           : lk_fail_memory(param->name, bytes);
    if (status == LK_OK)
        lk_layout_give(&layout, each, ours, theirs);
    free(ours);
    return status;
}

static enum lk_status convert_all(struct export *e)
{
    const size_t bytes = ((size_t)e->namings.params + 1) * sizeof *e->tensors;
    e->tensors = calloc(1, bytes);
    if (!e->tensors)
        return lk_fail_memory("weights", bytes);
    for (int i = 0; i < e->namings.params; i++)
        LK_TRY(convert(e, e->naming->order[i], &e->tensors[i]));
    return LK_OK;
}

/* "format" says whose layout it is, as readers of safetensors expect: pt, tf. */
static enum lk_status write_safetensors(const struct export *e, const char *path)
{
    static const char *const formats[] = {"lockstep-weights-1", "tf", "pt"};
    const struct lk_safetensors_text texts[] = {{"format", formats[e->naming->layout]},
                                                {"model", lk_model_name(e->model)}};
    return lk_safetensors_write(path, e->tensors, e->count, texts, LK_COUNT(texts));
}

static void clear(struct export *e)
{
    for (int i = 0; i < e->count; i++)
        free((void *)(uintptr_t)e->tensors[i].data);
    free(e->tensors);
    lk_namings_clear(&e->namings);
    lk_arrays_close(e->file);
    lk_model_destroy(e->model);
}

enum lk_status lk_weights_export(const char *run, const char *path, enum lk_weights_kind kind,
                                 const char *names)
{
    struct export e = {0};
    enum lk_status status;
    LK_TRY_OUT(open_run(&e, run));
    LK_TRY_OUT(find_naming(&e, names ? names : "lockstep"));
    LK_TRY_OUT(convert_all(&e));
    status = kind == LK_WEIGHTS_SAFETENSORS
                 ? write_safetensors(&e, path)
                 : lk_fail(LK_E_UNSUPPORTED, "HDF5 is not written yet");
out:
    clear(&e);
    return status;
}

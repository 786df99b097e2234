/* Writes a run's weights for other programs: with their names, in their order of axes. */
#include <lockstep/weights.h>

#include "base/fail.h"
#include "base/text.h"
#include "io/arrays/hdf5_write.h"
#include "io/file.h"
#include "model/foreign/stored.h"
#include "model/naming/names.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is being written. */
struct export
{
    struct lk_stored stored;
    struct lk_namings namings;
    const struct lk_naming *naming;
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
                   lk_model_name(e->stored.model), names, known);
}

/* The array that is written under that name, for a parameter of this layout, with data that are
 * 0; one that is there already holds another parameter as well. */
static enum lk_status find_tensor(struct export *e, const char *name,
                                  enum lk_safetensor_type type, const struct lk_layout *layout,
                                  struct lk_safetensor **tensor)
{
    const size_t count = (size_t)lk_layout_count(layout);
    for (int i = 0; i < e->count && layout->first > 0; i++)
        if (strcmp(e->tensors[i].name, name) == 0) {
            *tensor = &e->tensors[i];
            return LK_OK;
        }
    *tensor = &e->tensors[e->count];
    **tensor = (struct lk_safetensor){.name = name, .type = type, .rank = layout->rank};
    memcpy((*tensor)->shape, layout->shape, sizeof layout->shape);
    (*tensor)->data = calloc(count + 1, type == LK_SAFETENSOR_F64 ? 8 : 4);
    if (!(*tensor)->data)
        return lk_fail_memory(name, count);
    e->count++;
    return LK_OK;
}

/* Lays out parameter p as the naming's program does. */
static enum lk_status convert(struct export *e, int p)
{
    struct lk_layout layout;
    struct lk_safetensor *tensor;
    const struct lk_foreign_param *param = &e->namings.param[p];
    const struct lk_array *array = lk_stored_find(&e->stored, param->name);
    LK_TRY(lk_layout_describe(param->node, param->index, e->naming->layout, &e->namings.arena,
                              &layout));
    if (layout.refused)
        return lk_fail(LK_E_ARGUMENT, "'%s' has no name of '%s': %s", param->name,
                       e->naming->title, layout.refused);
    if (!array && !param->is_needed)
        return LK_OK;
    if (!array || array->count != lk_shape_count(&layout.own) ||
        (array->type != LK_SAFETENSOR_F32 && array->type != LK_SAFETENSOR_F64))
        return lk_fail(LK_E_DATA, "%s: no array '%s' as the model has it", e->stored.path,
                       param->name);
    const size_t each = array->type == LK_SAFETENSOR_F64 ? 8 : 4;
    const size_t bytes = (size_t)array->count * each;
    LK_TRY(find_tensor(e, e->naming->names[p][0], array->type, &layout, &tensor));
    void *theirs = (void *)(uintptr_t)tensor->data, *ours = malloc(bytes + 1);
    enum lk_status status = ours ? lk_arrays_read(e->stored.file, array, array->type, ours)
                                 : lk_fail_memory(param->name, bytes);
    if (status == LK_OK)
        lk_layout_give(&layout, each, ours, theirs);
    free(ours);
    if (status == LK_OK && e->naming->added[p][0])
        status = find_tensor(e, e->naming->added[p][0], array->type, &layout, &tensor);
    return status;
}

/* A parameter that the other program's layers do not have must be as it was initialized, or
 * they would compute something else. */
static enum lk_status check_initial(const struct export *e, int p)
{
    const struct lk_foreign_param *param = &e->namings.param[p];
    const struct lk_param_spec *spec = &param->node->shapes.param[param->index];
    const struct lk_array *array = lk_stored_find(&e->stored, param->name);
    bool is_initial = true;
    if (!array && !param->is_needed)
        return LK_OK;
    if (!array || array->count != lk_shape_count(&spec->shape))
        return lk_fail(LK_E_DATA, "%s: no array '%s' as the model has it", e->stored.path,
                       param->name);
    double *values = malloc((size_t)array->count * sizeof *values + 1);
    if (!values)
        return lk_fail_memory(param->name, (size_t)array->count * sizeof *values);
    const enum lk_status status =
        lk_arrays_read(e->stored.file, array, LK_SAFETENSOR_F64, values);
    for (int64_t i = 0; status == LK_OK && i < array->count; i++)
        is_initial &= values[i] == (spec->init == LK_INIT_ONES);
    free(values);
    if (status == LK_OK && !is_initial)
        return lk_fail(LK_E_DATA,
                       "'%s' has been trained, but layers of the network that the names '%s' "
                       "are for have no %s",
                       param->name, e->naming->title, spec->name);
    return status;
}

static enum lk_status convert_all(struct export *e)
{
    const size_t bytes = (2 * (size_t)e->namings.params + 1) * sizeof *e->tensors;
    e->tensors = calloc(1, bytes);
    if (!e->tensors)
        return lk_fail_memory("weights", bytes);
    for (int i = 0; i < e->namings.params; i++) {
        const int p = e->naming->order[i];
        LK_TRY(e->naming->names[p][0] ? convert(e, p) : check_initial(e, p));
    }
    return LK_OK;
}

/* "format" says whose layout it is, as readers of safetensors expect: pt, tf. */
static enum lk_status write_safetensors(const struct export *e, const char *path)
{
    static const char *const formats[] = {"lockstep-weights-1", "tf", "pt"};
    const struct lk_safetensors_text texts[] = {{"format", formats[e->naming->layout]},
                                                {"model", lk_model_name(e->stored.model)}};
    return lk_safetensors_write(path, e->tensors, e->count, texts, LK_COUNT(texts));
}

/* --- HDF5 --------------------------------------------------------------------------------- */

/* The attributes by which Keras 2 finds layers and their arrays, in its order. */
struct layers {
    struct lk_arena arena;
    const char **names, **weights; /* [count]: of layers; [arrays]: "conv1/kernel:0" */
    struct lk_hdf5_texts *texts;   /* of the file, then of each layer */
    int count, lists;
};

static enum lk_status take(struct layers *l, size_t count, size_t bytes, void *to)
{
    void *memory;
    LK_TRY(lk_arena_allocate(&l->arena, count * bytes, &memory));
    memcpy(to, &memory, sizeof memory);
    return LK_OK;
}

/* Puts array `index` into its layer, which most often is that of the one before: an array
 * "conv1/kernel" lies at conv1/conv1/kernel:0. */
static enum lk_status place_array(struct export *e, struct layers *l, int index)
{
    char layer[256], place[512];
    struct lk_safetensor *array = &e->tensors[index];
    const char *slash = strrchr(array->name, '/');
    if (strstr(array->name, "_cell/")) /* what stands behind the layer is in it */
        slash = strchr(array->name, '/');
    snprintf(layer, sizeof layer, "%.*s", (int)(slash ? slash - array->name : 0), array->name);
    if (l->count == 0 || strcmp(l->names[l->count - 1], layer) != 0) {
        LK_TRY(lk_arena_text(&l->arena, layer, &l->names[l->count++]));
        l->texts[l->lists++] = (struct lk_hdf5_texts){l->names[l->count - 1], "weight_names", 0,
                                                      &l->weights[index]};
    }
    snprintf(place, sizeof place, "%s:0", array->name);
    LK_TRY(lk_arena_text(&l->arena, place, &l->weights[index]));
    snprintf(place, sizeof place, "%s/%s:0", layer, array->name);
    l->texts[l->lists - 1].count++;
    return lk_arena_text(&l->arena, place, &array->name);
}

static enum lk_status write_keras_2(struct export *e, const char *path, struct layers *l)
{
    static const char *const version[] = {"2.15.0"}, *const backend[] = {"tensorflow"};
    const size_t most = (size_t)e->count + 4;
    LK_TRY(take(l, most, sizeof *l->names, &l->names));
    LK_TRY(take(l, most, sizeof *l->weights, &l->weights));
    LK_TRY(take(l, most, sizeof *l->texts, &l->texts));
    l->texts[0] = (struct lk_hdf5_texts){"", "layer_names", 0, l->names};
    l->texts[1] = (struct lk_hdf5_texts){"", "backend", -1, backend};
    l->texts[2] = (struct lk_hdf5_texts){"", "keras_version", -1, version};
    l->lists = 3;
    for (int i = 0; i < e->count; i++)
        LK_TRY(place_array(e, l, i));
    l->texts[0].count = l->count;
    return lk_hdf5_write(path, e->tensors, e->count, NULL, l->texts, l->lists);
}

static enum lk_status write_hdf5(struct export *e, const char *path)
{
    static const char *const groups[] = {"layers", "vars", NULL};
    struct layers layers = {0};
    if (e->naming->style == LK_NAMING_KERAS_3)
        return lk_hdf5_write(path, e->tensors, e->count, groups, NULL, 0);
    const enum lk_status status = write_keras_2(e, path, &layers);
    lk_arena_clear(&layers.arena);
    return status;
}

/* HDF5 has Keras's names: those that the end of the file's name is for, unless they are named.
 */
static enum lk_status choose_names(struct export *e, const char *path,
                                   enum lk_weights_kind kind, const char *names)
{
    if (kind == LK_WEIGHTS_KERAS_H5 && (!names || strcmp(names, "keras") == 0))
        names = lk_text_ends(path, ".weights.h5") ? "keras-3" : "keras";
    LK_TRY(find_naming(e, names ? names : "lockstep"));
    if (kind == LK_WEIGHTS_KERAS_H5 && e->naming->layout != LK_LAYOUT_KERAS)
        return lk_fail(LK_E_ARGUMENT, "HDF5 files are Keras's: they have no names of %s",
                       names);
    return LK_OK;
}

/* --- the vocabulary ----------------------------------------------------------------------- */

/* Whether that file has to be written; one with the same vocabulary may stay. */
static enum lk_status check_vocabulary(const struct export *e,
                                       const struct lk_weights_export_options *options,
                                       bool *writes)
{
    const size_t bytes = strlen(e->stored.vocabulary);
    void *there = NULL;
    size_t found = 0;
    *writes = options->vocabulary && bytes > 0;
    if (!*writes || options->may_replace || !lk_file_exists(options->vocabulary))
        return LK_OK;
    const enum lk_status status = lk_file_read(options->vocabulary, bytes, &there, &found);
    if (status != LK_OK && status != LK_E_DATA) /* which a larger file is */
        return status;
    *writes = found != bytes || memcmp(there, e->stored.vocabulary, bytes) != 0;
    free(there);
    lk_error_clear();
    return *writes ? lk_fail(LK_E_ARGUMENT,
                             "'%s' is there already and is not this run's vocabulary",
                             options->vocabulary)
                   : LK_OK;
}

static void clear(struct export *e)
{
    for (int i = 0; i < e->count; i++)
        free((void *)(uintptr_t)e->tensors[i].data);
    free(e->tensors);
    lk_namings_clear(&e->namings);
    lk_stored_close(&e->stored);
}

enum lk_status lk_weights_export_with(const char *run, const char *path,
                                      const struct lk_weights_export_options *options,
                                      bool *has_vocabulary)
{
    struct export e = {0};
    bool writes_vocabulary = false;
    enum lk_status status;
    LK_TRY_OUT(lk_stored_open(run, &e.stored));
    LK_TRY_OUT(lk_namings_make(e.stored.model, &e.namings));
    LK_TRY_OUT(choose_names(&e, path, options->kind, options->names));
    LK_TRY_OUT(convert_all(&e));
    LK_TRY_OUT(check_vocabulary(&e, options, &writes_vocabulary));
    LK_TRY_OUT(options->kind == LK_WEIGHTS_SAFETENSORS ? write_safetensors(&e, path)
                                                       : write_hdf5(&e, path));
    if (writes_vocabulary)
        LK_TRY_OUT(lk_file_write(options->vocabulary, e.stored.vocabulary,
                                 strlen(e.stored.vocabulary)));
    *has_vocabulary = *e.stored.vocabulary != '\0';
out:
    clear(&e);
    return status;
}

enum lk_status lk_weights_export(const char *run, const char *path, enum lk_weights_kind kind,
                                 const char *names)
{
    bool has_vocabulary;
    const struct lk_weights_export_options options = {.kind = kind, .names = names};
    return lk_weights_export_with(run, path, &options, &has_vocabulary);
}

/* The weights of an imported model: each array of Keras's file under our name and in our
 * layout. */
#include "model/keras/keras.h"

#include "base/fail.h"
#include "io/arrays/arrays.h"
#include "model/import/import.h"
#include "model/naming/layout.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 768 };

/* What is taken, in the order of the model's nodes. */
struct writing {
    const struct lk_keras_draft *draft;
    const struct lk_arrays *file;
    struct lk_imported *made;
};

static const struct lk_keras_array *find_pair(const struct lk_keras_draft *draft,
                                              const struct lk_node *node, const char *param)
{
    const struct lk_keras_array *array = draft->arrays;
    while (array && (strcmp(array->entry, node->name) != 0 || strcmp(array->param, param) != 0))
        array = array->next;
    return array;
}

/* Files of Keras 2 have the name of a recurrent layer's cell, and of a direction's layer, in
 * those of arrays: "lstm/lstm_cell_1/kernel:0", "both/forward_lstm/lstm_cell/bias:0". */
static const struct lk_array *find_in_cell(const struct lk_arrays *file,
                                           const struct lk_keras_array *pair)
{
    static const char *const ways[] = {"forward", "backward"};
    char place[NAME_BYTES], end[64];
    const size_t path = strlen(pair->path);
    if (path < 5 || strcmp(pair->path + path - 5, "/cell") != 0)
        return NULL;
    snprintf(place, sizeof place, "%s/", pair->layer);
    for (int w = 0; w < 2; w++)
        if (strstr(pair->path, w ? "/backward_layer/" : "/forward_layer/"))
            snprintf(place, sizeof place, "%s/%s_", pair->layer, ways[w]);
    snprintf(end, sizeof end, "/%s", pair->word);
    for (int i = 0; i < file->count; i++) {
        const char *name = file->arrays[i].name, *word = strrchr(name, '/');
        if (word && strncmp(name, place, strlen(place)) == 0 &&
            strncmp(word, end, strlen(end)) == 0 &&
            (word[strlen(end)] == '\0' || word[strlen(end)] == ':'))
            return &file->arrays[i];
    }
    return NULL;
}

/* Whether an array's name is of that layer and word, whatever model within a model has it. */
static bool ends_with(const char *name, const char *layer, const char *word)
{
    char end[NAME_BYTES];
    const size_t length = strlen(name);
    const size_t colon = length > 2 && strcmp(name + length - 2, ":0") == 0 ? 2 : 0;
    const size_t wanted = (size_t)snprintf(end, sizeof end, "/%s/%s", layer, word);
    return wanted < sizeof end && length - colon >= wanted &&
           strncmp(name + length - colon - wanted, end, wanted) == 0;
}

/* The arrays of a model within a model have its name in front. Where no two of them end alike
 * nothing else stands between: "tower/kernel"; else all names of models and layers do. */
static const struct lk_array *find_nested(const struct lk_arrays *file,
                                          const struct lk_keras_array *pair, const char *word)
{
    const struct lk_array *found = NULL;
    char name[NAME_BYTES];
    int count = 0;
    if (!pair->outer)
        return NULL;
    for (int e = 0; e < 2 && !found; e++) {
        snprintf(name, sizeof name, "%s/%s%s", pair->outer, word, e ? ":0" : "");
        found = lk_arrays_find(file, name);
    }
    if (found)
        return found;
    snprintf(name, sizeof name, "%s/", pair->outer);
    for (int i = 0; i < file->count; i++)
        if (strncmp(file->arrays[i].name, name, strlen(name)) == 0 &&
            ends_with(file->arrays[i].name, pair->layer, word)) {
            found = &file->arrays[i];
            count++;
        }
    return count == 1 ? found : NULL;
}

/* Keras 3 numbers a layer's arrays, files of Keras 2 name them, with ":0" or without. A kernel
 * of every channel by itself has two names. */
static const struct lk_array *find_array(const struct lk_arrays *file,
                                         const struct lk_keras_array *pair)
{
    static const char *const endings[] = {"", ":0"};
    const char *const words[] = {
        pair->word, strcmp(pair->word, "depthwise_kernel") == 0 ? "kernel" : pair->word};
    const struct lk_array *found = NULL;
    char name[NAME_BYTES];
    snprintf(name, sizeof name, "%s/vars/%d", pair->path, pair->number);
    found = lk_arrays_find(file, name);
    for (int w = 0; w < 2; w++)
        for (int e = 0; e < 2 && !found; e++) {
            snprintf(name, sizeof name, "%s%s%s/%s%s", pair->outer ? pair->outer : "",
                     pair->outer ? "/" : "", pair->layer, words[w], endings[e]);
            found = lk_arrays_find(file, name);
        }
    for (int w = 0; w < 2 && !found; w++)
        found = find_nested(file, pair, words[w]);
    return found ? found : find_in_cell(file, pair);
}

static void print_shape(int rank, const int64_t *shape, char *text, size_t bytes)
{
    size_t used = (size_t)snprintf(text, bytes, "[");
    for (int i = 0; i < rank && used < bytes; i++)
        used += (size_t)snprintf(text + used, bytes - used, "%s%lld", i ? ", " : "",
                                 (long long)shape[i]);
    if (used < bytes)
        snprintf(text + used, bytes - used, "]");
}

static enum lk_status read_array(struct writing *w, const struct lk_node *node, int index,
                                 const struct lk_keras_array *pair, float *ours)
{
    struct lk_layout layout;
    char wanted[96], found[256];
    const struct lk_array *array = find_array(w->file, pair);
    if (!array)
        return lk_fail(LK_E_DATA, "%s: layer '%.80s' has no array '%s' in the file",
                       w->draft->where, pair->layer, pair->word);
    LK_TRY(lk_layout_describe(node, index, LK_LAYOUT_KERAS, &w->made->arena, &layout));
    if (!lk_layout_fits(&layout, array->rank, array->shape)) {
        print_shape(layout.rank, layout.shape, wanted, sizeof wanted);
        print_shape(array->rank, array->shape, found, sizeof found);
        return lk_fail(LK_E_DATA, "%s: array '%.80s' is %s, the model expects %s",
                       w->draft->where, array->name, found, wanted);
    }
    void *theirs = malloc((size_t)array->count * sizeof(float));
    if (!theirs)
        return lk_fail_memory(array->name, (size_t)array->count * sizeof(float));
    const enum lk_status status = lk_arrays_read(w->file, array, LK_SAFETENSOR_F32, theirs);
    if (status == LK_OK)
        lk_layout_take(&layout, sizeof(float), theirs, ours);
    free(theirs);
    return status;
}

/* The numbers of the configuration, in Keras's order. */
static enum lk_status take_values(struct writing *w, const struct lk_node *node, int index,
                                  const struct lk_keras_array *pair, float *ours)
{
    struct lk_layout layout;
    const size_t count = json_array_size(pair->values);
    LK_TRY(lk_layout_describe(node, index, LK_LAYOUT_KERAS, &w->made->arena, &layout));
    float *theirs = malloc((count + 1) * sizeof *theirs);
    if (!theirs)
        return lk_fail_memory(pair->layer, (count + 1) * sizeof *theirs);
    for (size_t i = 0; i < count; i++)
        theirs[i] = (float)json_number_value(json_array_get(pair->values, i));
    lk_layout_take(&layout, sizeof *theirs, theirs, ours);
    free(theirs);
    return LK_OK;
}

static enum lk_status add_param(struct writing *w, const struct lk_node *node, int index)
{
    const struct lk_param_spec *param = &node->shapes.param[index];
    const struct lk_keras_array *pair = find_pair(w->draft, node, param->name);
    const int64_t count = lk_shape_count(&param->shape);
    struct lk_safetensor *tensor = &w->made->tensors[w->made->tensor_count];
    char name[NAME_BYTES];
    void *memory = NULL;
    if (!pair)
        return lk_fail(LK_E_MODEL, "%s: no array is known for '%s.%s'", w->draft->where,
                       node->name, param->name);
    *tensor = (struct lk_safetensor){.type = LK_SAFETENSOR_F32, .rank = param->shape.rank};
    snprintf(name, sizeof name, "%s.%s", node->name, param->name);
    LK_TRY(lk_arena_text(&w->made->arena, name, &tensor->name));
    memcpy(tensor->shape, param->shape.dim, sizeof param->shape.dim);
    LK_TRY(lk_arena_allocate(&w->made->arena, (size_t)count * sizeof(float), &memory));
    tensor->data = memory;
    w->made->tensor_count++;
    float *ours = memory;
    if (pair->word)
        LK_TRY(read_array(w, node, index, pair, ours));
    else if (pair->values)
        LK_TRY(take_values(w, node, index, pair, ours));
    else
        for (int64_t i = 0; i < count; i++)
            ours[i] = (float)pair->value;
    for (int64_t i = 0; i < count && pair->least > 0; i++)
        ours[i] = (float)(fmax(ours[i], pair->least) - pair->epsilon);
    return LK_OK;
}

enum lk_status lk_keras_take_weights(const struct lk_keras_draft *draft,
                                     const struct lk_arrays *file, struct lk_imported *made)
{
    const struct lk_graph *graph = made->model->graph;
    struct writing w = {.draft = draft, .file = file, .made = made};
    size_t most = 1;
    void *memory = NULL;
    for (int i = 0; i < graph->count; i++)
        most += (size_t)graph->nodes[i]->shapes.params;
    LK_TRY(lk_arena_allocate(&made->arena, most * sizeof *made->tensors, &memory));
    made->tensors = memory;
    for (int i = 0; i < graph->count; i++)
        for (int j = 0; !graph->nodes[i]->weights_of && j < graph->nodes[i]->shapes.params; j++)
            LK_TRY(add_param(&w, graph->nodes[i], j));
    return LK_OK;
}

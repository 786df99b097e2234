/* Reads weights of other programs or runs, as our parameters, and writes them into replicas. */
#include "model/foreign/weights.h"

#include "base/fail.h"
#include "graph/place/group.h"
#include "io/file.h"
#include "model/checkpoint/checkpoint.h"
#include "model/foreign/judge.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A parameter as the replica will have it. */
struct value {
    const char *name;
    void *data;
    int64_t count;
    bool is_one; /* as initialized; else it is 0 */
};

/* Where weights are. */
struct place {
    char path[1024];
    enum lk_pair_by by;
    char *pipeline; /* that a run of ours is evaluated with; NULL: no run */
    char *classes;  /* its names of classes; NULL: none is known */
    bool averaged;  /* a run of ours is evaluated with averages of its weights */
};

struct lk_foreign_weights {
    struct lk_namings namings;
    enum lk_dtype real;
    struct value *values; /* of those that the file has */
    int count;
    struct lk_foreign_images images; /* its preset is in the arena of the namings */
    char *pipeline, *classes;        /* as in struct place */
    bool averaged;
};

/* --- where they are ------------------------------------------------------------------------
 */

/* Takes ",by=order" off the end of a path; a file that is named so stays as it is. */
static enum lk_status parse(const char *weights, struct place *place)
{
    if ((size_t)snprintf(place->path, sizeof place->path, "%s", weights) >= sizeof place->path)
        return lk_fail(LK_E_ARGUMENT, "a path of %zu characters", strlen(weights));
    char *option = strrchr(place->path, ',');
    if (!option || !strchr(option, '=') || lk_file_exists(place->path))
        return LK_OK;
    if (strcmp(option, ",by=order") == 0)
        place->by = LK_PAIR_BY_ORDER;
    else if (strcmp(option, ",by=name") == 0)
        place->by = LK_PAIR_BY_NAME;
    else
        return lk_fail(LK_E_ARGUMENT,
                       "weights '%s': behind a file's name ',by=name' or ',by=order' is "
                       "expected, found '%s'",
                       weights, option);
    *option = '\0';
    return LK_OK;
}

/* The checkpoint to begin with, whose sums are compared. */
static enum lk_status find_run(const char *path, struct place *place)
{
    struct lk_checkpoint_file *file = NULL;
    LK_TRY(lk_checkpoint_find(path, place->path, sizeof place->path));
    LK_TRY(lk_checkpoint_open(place->path, &file));
    const struct lk_checkpoint *there = lk_checkpoint_metadata(file);
    place->averaged = lk_checkpoint_takes_average(file);
    place->by = LK_PAIR_BY_NAME;
    place->pipeline = there->eval_pipeline ? strdup(there->eval_pipeline) : NULL;
    place->classes = there->classes ? strdup(there->classes) : NULL;
    const bool is_short =
        (there->eval_pipeline && !place->pipeline) || (there->classes && !place->classes);
    lk_checkpoint_close(file);
    return is_short ? lk_fail_memory("what a run says of itself", 0) : LK_OK;
}

/* --- reading -------------------------------------------------------------------------------
 */

static void fill(double number, enum lk_dtype real, struct value *value)
{
    for (int64_t i = 0; i < value->count; i++)
        if (real == LK_F64)
            ((double *)value->data)[i] = number;
        else
            ((float *)value->data)[i] = (float)number;
}

/* What a run is evaluated with: a parameter's average, where there is one. */
static const struct lk_array *find_array(const struct lk_arrays *file,
                                         const struct lk_pair *pair, bool averaged)
{
    char name[LK_AVERAGE_NAME];
    const struct lk_array *array = &file->arrays[pair->array], *average = NULL;
    if (averaged) {
        lk_checkpoint_name_average(array->name, name);
        average = lk_arrays_find(file, name);
    }
    return average && average->count == array->count ? average : array;
}

/* Adds what another array of the file has of the parameter; 0 changes no bit. room: of two
 * arrays. */
static enum lk_status add_array(const struct lk_foreign_weights *w,
                                const struct lk_arrays *file, const struct lk_pair *pair,
                                struct value *value, void *room)
{
    const size_t bytes = lk_dtype_bytes(w->real);
    void *ours = (char *)room + (size_t)lk_layout_count(&pair->layout) * bytes;
    LK_TRY(lk_arrays_read(file, &file->arrays[pair->added],
                          w->real == LK_F64 ? LK_SAFETENSOR_F64 : LK_SAFETENSOR_F32, room));
    lk_layout_take(&pair->layout, bytes, room, ours);
    for (int64_t i = 0; i < value->count; i++)
        if (w->real == LK_F64 && ((double *)ours)[i] != 0)
            ((double *)value->data)[i] += ((double *)ours)[i];
        else if (w->real != LK_F64 && ((float *)ours)[i] != 0)
            ((float *)value->data)[i] += ((float *)ours)[i];
    return LK_OK;
}

static enum lk_status read_value(const struct lk_foreign_weights *w,
                                 const struct lk_arrays *file, const struct lk_pair *pair,
                                 struct value *value, void *room)
{
    const size_t bytes = lk_dtype_bytes(w->real);
    const enum lk_safetensor_type type =
        w->real == LK_F64 ? LK_SAFETENSOR_F64 : LK_SAFETENSOR_F32;
    value->data = malloc((size_t)value->count * bytes + 1);
    if (!value->data)
        return lk_fail_memory(value->name, (size_t)value->count * bytes);
    if (pair->is_initial) {
        fill(value->is_one, w->real, value);
        return LK_OK;
    }
    LK_TRY(lk_arrays_read(file, find_array(file, pair, w->averaged), type, room));
    lk_layout_take(&pair->layout, bytes, room, value->data);
    return pair->added >= 0 ? add_array(w, file, pair, value, room) : LK_OK;
}

static enum lk_status read_values(const struct lk_arrays *file,
                                  const struct lk_pairing *pairing,
                                  struct lk_foreign_weights *w)
{
    int64_t most = 1;
    enum lk_status status = LK_OK;
    w->values = calloc((size_t)w->namings.params + 1, sizeof *w->values);
    if (!w->values)
        return lk_fail_memory("weights", (size_t)w->namings.params * sizeof *w->values);
    for (int p = 0; p < w->namings.params; p++)
        if (lk_layout_count(&pairing->pair[p].layout) > most)
            most = lk_layout_count(&pairing->pair[p].layout);
    const size_t bytes = 2 * (size_t)most * lk_dtype_bytes(w->real); /* theirs, and ours */
    void *room = malloc(bytes);
    if (!room)
        return lk_fail_memory("weights", bytes);
    for (int p = 0; p < w->namings.params && status == LK_OK; p++) {
        const struct lk_foreign_param *param = &w->namings.param[p];
        if (!pairing->pair[p].fits && !pairing->pair[p].is_initial)
            continue;
        struct value *value = &w->values[w->count++];
        *value = (struct value){.name = param->name,
                                .count = lk_shape_count(&pairing->pair[p].layout.own),
                                .is_one = param->node->shapes.param[param->index].init ==
                                          LK_INIT_ONES};
        status = read_value(w, file, &pairing->pair[p], value, room);
    }
    free(room);
    return status;
}

static enum lk_status open_file(const struct lk_model *model,
                                const struct lk_foreign_options *options,
                                const struct place *place, struct lk_foreign_weights *w)
{
    struct lk_arrays *file = NULL;
    struct lk_pairing pairing;
    enum lk_status status;
    LK_TRY_OUT(lk_arrays_open(place->path, &file));
    LK_TRY_OUT(lk_namings_make(model, &w->namings));
    LK_TRY_OUT(lk_pair(file, &w->namings, place->by, &pairing));
    const struct lk_judgement judgement = {.path = place->path,
                                           .model = lk_model_name(model),
                                           .file = file,
                                           .namings = &w->namings,
                                           .pairing = &pairing,
                                           .skips_mismatch = options->skips_mismatch,
                                           .may_lack_head = options->may_lack_head};
    LK_TRY_OUT(lk_judge(&judgement));
    w->images =
        (struct lk_foreign_images){pairing.naming ? pairing.naming->images : NULL, w->pipeline};
    status = read_values(file, &pairing, w);
out:
    lk_arrays_close(file);
    return status;
}

enum lk_status lk_foreign_open(const struct lk_model *model,
                               const struct lk_foreign_options *options,
                               struct lk_foreign_weights **weights)
{
    struct place place = {0};
    struct lk_foreign_weights *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("weights", sizeof *made);
    enum lk_status status = options->init_from ? find_run(options->init_from, &place)
                                               : parse(options->weights, &place);
    made->real = options->real;
    made->pipeline = place.pipeline;
    made->classes = place.classes;
    made->averaged = place.averaged;
    if (status == LK_OK)
        status = open_file(model, options, &place, made);
    if (status != LK_OK) {
        lk_foreign_close(made);
        return status;
    }
    *weights = made;
    return LK_OK;
}

struct lk_foreign_images lk_foreign_images(const struct lk_foreign_weights *weights)
{
    return weights->images;
}

const char *lk_foreign_classes(const struct lk_foreign_weights *weights)
{
    return weights->classes ? weights->classes : "";
}

void lk_foreign_close(struct lk_foreign_weights *weights)
{
    if (!weights)
        return;
    for (int i = 0; i < weights->count; i++)
        free(weights->values[i].data);
    free(weights->values);
    free(weights->pipeline);
    free(weights->classes);
    lk_namings_clear(&weights->namings);
    free(weights);
}

/* --- writing -------------------------------------------------------------------------------
 */

enum lk_status lk_foreign_put(const struct lk_foreign_weights *weights,
                              struct lk_replica *replica)
{
    const struct lk_param *param;
    for (int i = 0; (param = lk_replica_param(replica, i)) != NULL; i++)
        for (int v = 0; v < weights->count; v++)
            if (strcmp(weights->values[v].name, param->name) == 0)
                LK_TRY(lk_replica_write_param(
                    lk_group_member(replica, lk_group_place_of_param(replica, i)), i,
                    weights->values[v].data));
    return LK_OK;
}

enum lk_status lk_foreign_load(const struct lk_model *model,
                               const struct lk_foreign_options *options,
                               struct lk_replica *replica)
{
    struct lk_foreign_weights *weights = NULL;
    LK_TRY(lk_foreign_open(model, options, &weights));
    const enum lk_status status = lk_foreign_put(weights, replica);
    lk_foreign_close(weights);
    return status;
}

/* Finds the weights of Keras models in HDF5 files: Keras 2 lists layers and their weights in
 * attributes, Keras 3 has a path for each variable. A .keras archive has such a file within. */
#include "io/arrays/keras.h"

#include "base/fail.h"
#include "io/hdf5/hdf5.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 512, MOST_JSON = 16 << 20, MOST_METADATA = 1 << 16 };

static const char weights_name[] = "model.weights.h5";

struct keras {
    struct lk_hdf5 *file;
    struct lk_zip *zip;
};

static enum lk_status read_array(const struct lk_arrays_file *file, int i, void *to)
{
    const struct keras *keras = file->state;
    return lk_hdf5_read(keras->file, file->places[i].inside, to);
}

static void close_file(struct lk_arrays_file *file)
{
    struct keras *keras = file->state;
    if (!keras)
        return;
    lk_hdf5_close(keras->file);
    lk_zip_close(keras->zip);
    free(keras);
}

static const struct lk_arrays_reader reader = {read_array, close_file};

static struct lk_hdf5 *hdf5_of(const struct lk_arrays_file *file)
{
    return ((struct keras *)file->state)->file;
}

/* Whether Keras has noted that an array's elements are of this type. */
static enum lk_status is_noted(struct lk_arrays_file *file, const struct lk_hdf5_object *object,
                               const char *type, bool *noted)
{
    const char *const *texts = NULL;
    const struct lk_hdf5_attribute *note = lk_hdf5_attribute(object, "dtype");
    *noted = false;
    if (!note || note->count != 1)
        return LK_OK;
    LK_TRY(lk_hdf5_texts(hdf5_of(file), note, &texts));
    *noted = strcmp(texts[0], type) == 0;
    return LK_OK;
}

static enum lk_status add_array(struct lk_arrays_file *file, const char *name,
                                const char *label, const struct lk_hdf5_object *object)
{
    struct lk_array array = {.name = name, .label = label, .rank = object->rank};
    const struct lk_array_place place = {.inside = object};
    bool brain = false;
    if (object->problem)
        return lk_fail(LK_E_UNSUPPORTED,
                       "'%.200s' %s, which is not read. Keras and h5py write plain arrays "
                       "unless told otherwise; h5repack -l CONTI -f NONE makes them so",
                       name, object->problem);
    if (object->type.bytes == 2) /* HDF5 has no such type: only a note says so */
        LK_TRY(is_noted(file, object, "bfloat16", &brain));
    if (object->type.class != LK_HDF5_NUMBER && !brain)
        return lk_fail(LK_E_UNSUPPORTED, "'%.200s' has elements that are no numbers", name);
    array.type = brain ? LK_SAFETENSOR_BF16 : object->type.number;
    memcpy(array.shape, object->shape, sizeof array.shape);
    return lk_arrays_add(file, &array, &place, object->bytes);
}

/* Adds an attribute of the object that is one text, where it is there. */
static enum lk_status add_text(struct lk_arrays_file *file, const struct lk_hdf5_object *object,
                               const char *key)
{
    const char *const *texts = NULL;
    const struct lk_hdf5_attribute *attribute = lk_hdf5_attribute(object, key);
    if (!attribute || attribute->count != 1 || lk_arrays_text(&file->public, key))
        return LK_OK;
    LK_TRY(lk_hdf5_texts(hdf5_of(file), attribute, &texts));
    return lk_arrays_add_text(file, key, texts[0]);
}

/* A list of names in an attribute, or in parts: NAME0, NAME1, ... where it is long. */
struct names {
    struct lk_arrays_file *file;
    const struct lk_hdf5_object *object;
    const char *key;
    int part; /* 0: the attribute without a number */
    int64_t at, count;
    const char *const *texts;
};

/* The next name of the list; NULL at its end. */
static enum lk_status next_name(struct names *names, const char **name)
{
    while (names->at == names->count) {
        char key[64];
        snprintf(key, sizeof key, names->part ? "%s%d" : "%s", names->key, names->part - 1);
        const struct lk_hdf5_attribute *part = lk_hdf5_attribute(names->object, key);
        names->part++;
        *name = NULL;
        if (!part && names->part > 1)
            return LK_OK;
        if (!part)
            continue;
        LK_TRY(lk_hdf5_texts(hdf5_of(names->file), part, &names->texts));
        names->count = part->count;
        names->at = 0;
    }
    *name = names->texts[names->at++];
    return LK_OK;
}

static bool has_names(const struct lk_hdf5_object *object, const char *key)
{
    char first[64];
    snprintf(first, sizeof first, "%s0", key);
    return lk_hdf5_attribute(object, key) || lk_hdf5_attribute(object, first);
}

/* The name without the folder that it begins with, or without all of its folders. */
static const char *shorten(const char *name, const char *folder, bool all)
{
    const size_t length = strlen(folder);
    const char *last = strrchr(name, '/');
    if (all)
        return last ? last + 1 : name;
    return strncmp(name, folder, length) == 0 && name[length] == '/' ? name + length + 1 : name;
}

/* Adds the weights of a layer as LAYER/LAST, or where two of them would have the same name, as
 * in layers that contain others, as LAYER/ALL/BUT/LAYER. */
static enum lk_status add_layer(struct lk_arrays_file *file, const struct lk_hdf5_object *group,
                                const char *layer, bool all)
{
    char path[NAME_BYTES], label[NAME_BYTES];
    const char *name = NULL;
    struct names names = {.file = file, .object = group, .key = "weight_names"};
    for (;;) {
        LK_TRY(next_name(&names, &name));
        if (!name)
            return LK_OK;
        const struct lk_hdf5_object *object = lk_hdf5_find(group, name);
        if (!object || object->group)
            return lk_fail(LK_E_DATA, "layer '%.100s' has no array '%.200s'", layer, name);
        snprintf(path, sizeof path, "%s/%s", layer, shorten(name, layer, all));
        if (snprintf(label, sizeof label, "%s/%s", layer, shorten(name, layer, false)) >=
            NAME_BYTES)
            return lk_fail(LK_E_DATA, "the name '%.100s...' is longer than %d bytes", label,
                           NAME_BYTES - 1);
        LK_TRY(add_array(file, path, label, object));
    }
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Whether the arrays from `first` on have different names. */
static enum lk_status are_different(const struct lk_arrays_file *file, int first,
                                    bool *different)
{
    const size_t count = (size_t)(file->public.count - first);
    const char **names = malloc((count + 1) * sizeof *names);
    if (!names)
        return lk_fail_memory("a table of names", (count + 1) * sizeof *names);
    for (size_t i = 0; i < count; i++)
        names[i] = file->arrays[first + (int)i].name;
    qsort(names, count, sizeof *names, compare_texts);
    *different = true;
    for (size_t i = 1; i < count; i++)
        *different &= strcmp(names[i - 1], names[i]) != 0;
    free(names);
    return LK_OK;
}

static enum lk_status add_named_layer(struct lk_arrays_file *file,
                                      const struct lk_hdf5_object *weights, const char *layer)
{
    bool different = true;
    const int first = file->public.count;
    const struct lk_hdf5_object *group = lk_hdf5_find(weights, layer);
    if (!group || !group->group)
        return lk_fail(LK_E_DATA, "layer '%.200s' is named but has no group", layer);
    if (group->problem)
        return lk_fail(LK_E_UNSUPPORTED, "layer '%.200s' %s, which is not read", layer,
                       group->problem);
    LK_TRY(add_layer(file, group, layer, true));
    LK_TRY(are_different(file, first, &different));
    if (different)
        return LK_OK;
    file->public.count = first;
    return add_layer(file, group, layer, false);
}

/* Keras 2, and Keras 3 where it was asked for a .h5 file. Weights that belong to no layer have
 * a group of their own, which is not among the layers. */
static enum lk_status add_layers(struct lk_arrays_file *file,
                                 const struct lk_hdf5_object *weights)
{
    static const char loose[] = "top_level_model_weights";
    const char *layer = NULL;
    struct names names = {.file = file, .object = weights, .key = "layer_names"};
    for (;;) {
        LK_TRY(next_name(&names, &layer));
        if (!layer)
            break;
        LK_TRY(add_named_layer(file, weights, layer));
    }
    return lk_hdf5_find(weights, loose) ? add_named_layer(file, weights, loose) : LK_OK;
}

/* By text, except that runs of digits are compared as numbers: conv_2 before conv_10. */
static int compare_counted(const char *a, const char *b)
{
    while (*a && *b) {
        const size_t x = strspn(a, "0123456789"), y = strspn(b, "0123456789");
        if (x != y && x > 0 && y > 0)
            return x < y ? -1 : 1;
        const size_t step = x > 0 && y > 0 ? x : 1;
        const int order = strncmp(a, b, step);
        if (order)
            return order;
        a += step;
        b += step;
    }
    return (*a != '\0') - (*b != '\0');
}

static int compare_objects(const void *a, const void *b)
{
    return compare_counted((*(const struct lk_hdf5_object *const *)a)->name,
                           (*(const struct lk_hdf5_object *const *)b)->name);
}

/* Where the arrays of a Keras 3 file are read, as the file has it and in the layers' own
 * names. */
struct where {
    char path[NAME_BYTES], label[NAME_BYTES];
    bool is_in_layers, has_label;
};

/* The name that a layer has beside its arrays; NULL: it has none there. */
static enum lk_status find_layer_name(struct lk_arrays_file *file,
                                      const struct lk_hdf5_object *layer, const char **name)
{
    const char *const *texts = NULL;
    const struct lk_hdf5_object *vars = lk_hdf5_find(layer, "vars");
    const struct lk_hdf5_attribute *own = vars ? lk_hdf5_attribute(vars, "name") : NULL;
    *name = NULL;
    if (!own || own->count != 1 ||
        (own->type.class != LK_HDF5_TEXT && own->type.class != LK_HDF5_LONG_TEXT))
        return LK_OK;
    LK_TRY(lk_hdf5_texts(hdf5_of(file), own, &texts));
    *name = *texts[0] ? texts[0] : NULL;
    return LK_OK;
}

static bool append_step(char path[NAME_BYTES], const char *step)
{
    const size_t used = strlen(path);
    const int more = snprintf(path + used, NAME_BYTES - used, used ? "/%s" : "%s", step);
    return more >= 0 && (size_t)more < NAME_BYTES - used;
}

/* A step down to an object of the group where we are. */
static enum lk_status go_down(struct lk_arrays_file *file, const struct lk_hdf5_object *object,
                              struct where *where)
{
    const bool is_list = object->group && strcmp(object->name, "layers") == 0;
    const char *step = object->name;
    if (!append_step(where->path, object->name))
        return lk_fail(LK_E_DATA, "the name '%.100s...' is longer than %d bytes", where->path,
                       NAME_BYTES - 1);
    if (where->is_in_layers && object->group)
        LK_TRY(find_layer_name(file, object, &step));
    where->has_label &= is_list || (step && append_step(where->label, step));
    where->is_in_layers = is_list;
    return LK_OK;
}

/* Keras 3: every array of the group and of those below it. */
static enum lk_status add_group(struct lk_arrays_file *file, const struct lk_hdf5_object *group,
                                const struct where *where)
{
    const size_t count = (size_t)group->count;
    const struct lk_hdf5_object **sorted = malloc((count + 1) * sizeof *sorted);
    enum lk_status status = LK_OK;
    if (!sorted)
        return lk_fail_memory("a table of objects", (count + 1) * sizeof *sorted);
    for (size_t i = 0; i < count; i++)
        sorted[i] = &group->objects[i];
    qsort(sorted, count, sizeof *sorted, compare_objects);
    for (size_t i = 0; i < count && status == LK_OK; i++) {
        struct where below = *where;
        status = go_down(file, sorted[i], &below);
        if (status == LK_OK)
            status = sorted[i]->group && !sorted[i]->problem
                         ? add_group(file, sorted[i], &below)
                         : add_array(file, below.path, below.has_label ? below.label : NULL,
                                     sorted[i]);
    }
    free(sorted);
    return status;
}

/* Reads the HDF5 file in `bytes`; zip: the archive that it is in, NULL: none. */
static enum lk_status open_weights(struct lk_arrays_file *file, const struct lk_bytes *bytes)
{
    static const char *const keys[] = {"model_config", "training_config", "keras_version",
                                       "backend"};
    const struct where top = {.has_label = true};
    struct keras *keras = file->state;
    LK_TRY(lk_hdf5_open(bytes, &keras->file));
    const struct lk_hdf5_object *root = &keras->file->root;
    const struct lk_hdf5_object *within = lk_hdf5_find(root, "model_weights");
    const struct lk_hdf5_object *weights =
        within && within->group && !has_names(root, "layer_names") ? within : root;
    for (int i = 0; i < LK_COUNT(keys); i++)
        LK_TRY(add_text(file, root, keys[i]));
    if (has_names(weights, "layer_names")) {
        file->public.format = LK_ARRAYS_KERAS_2;
        for (int i = 0; i < LK_COUNT(keys); i++)
            LK_TRY(add_text(file, weights, keys[i]));
        return add_layers(file, weights);
    }
    file->public.format = LK_ARRAYS_KERAS_3;
    return add_group(file, root, &top);
}

/* The file takes over the archive. */
static enum lk_status make_state(struct lk_arrays_file *file, struct lk_zip *zip)
{
    struct keras *keras = calloc(1, sizeof *keras);
    if (!keras) {
        lk_zip_close(zip);
        return lk_fail_memory("a file of weights", sizeof *keras);
    }
    keras->zip = zip;
    file->state = keras;
    file->reader = &reader;
    return LK_OK;
}

enum lk_status lk_keras_open(struct lk_arrays_file *file)
{
    LK_TRY(make_state(file, NULL));
    return open_weights(file, &file->bytes);
}

bool lk_keras_is_archive(const struct lk_zip *zip)
{
    return lk_zip_find(zip, weights_name) >= 0;
}

static enum lk_status add_version(struct lk_arrays_file *file, const char *json, size_t bytes)
{
    json_error_t error;
    json_t *metadata = json_loadb(json, bytes, 0, &error);
    if (!metadata)
        return lk_fail(LK_E_DATA, "'metadata.json' of the archive, byte %d: %s", error.position,
                       error.text);
    const char *version = json_string_value(json_object_get(metadata, "keras_version"));
    const enum lk_status status =
        version ? lk_arrays_add_text(file, "keras_version", version) : LK_OK;
    json_decref(metadata);
    return status;
}

/* Adds what an entry of the archive says, where it is there. */
static enum lk_status add_entry(struct lk_arrays_file *file, struct lk_zip *zip,
                                const char *name)
{
    char *text = NULL;
    size_t bytes = 0;
    const bool config = strcmp(name, "config.json") == 0;
    const int entry = lk_zip_find(zip, name);
    if (entry < 0)
        return LK_OK;
    LK_TRY(lk_zip_read(zip, entry, config ? MOST_JSON : MOST_METADATA, &text, &bytes));
    enum lk_status status;
    if (strlen(text) != bytes)
        status = lk_fail(LK_E_DATA, "'%s' of the archive has a byte 0 in it", name);
    else if (config)
        status = lk_arrays_add_text(file, "model_config", text);
    else
        status = add_version(file, text, bytes);
    free(text);
    return status;
}

enum lk_status lk_keras_open_archive(struct lk_arrays_file *file, struct lk_zip *zip)
{
    struct lk_bytes bytes = {0};
    LK_TRY(make_state(file, zip));
    LK_TRY(add_entry(file, zip, "config.json"));
    LK_TRY(add_entry(file, zip, "metadata.json"));
    LK_TRY(lk_zip_stored(zip, lk_zip_find(zip, weights_name), &bytes));
    const enum lk_status status = open_weights(file, &bytes);
    return status == LK_OK ? status : lk_fail_within(status, "'%s'", weights_name);
}

/* npy:X.npy,Y.npy: samples and labels of numpy.save(), an array a field. npy:DIR: x_train.npy,
 * y_train.npy, x_test.npy, y_test.npy there; fields=a,NAME:b and label=c name others. A field
 * "tokens.length" tells how many of each sample's "tokens" there are. */
#include "base/fail.h"
#include "base/option.h"
#include "data/sources/field.h"
#include "data/sources/source.h"
#include "data/tables/array.h"
#include "data/tables/groups.h"
#include "io/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Options of a SPEC. */
struct options {
    char fields[1024], label[1024], classes[512];
    char max_bad[16];
};

#define TEXT(field)                                                                            \
    .name = #field, .kind = LK_OPTION_TEXT, .offset = offsetof(struct options, field),         \
    .count = sizeof((struct options *)0)->field

static const struct lk_option options[] = {
    {TEXT(fields), .standard = "", .help = "of a folder the inputs: a is a_train.npy; NAME:a"},
    {TEXT(label), .standard = "y", .help = "of a folder the labels: y is y_train.npy"},
    {TEXT(classes), .standard = "",
     .help = "a file of names, one a line in the order of labels"},
    {TEXT(max_bad), .standard = "", .help = "samples that may be broken"},
    {0},
};

struct arrays {
    struct lk_array items[LK_MOST_FIELDS];
    struct lk_field fields[LK_MOST_FIELDS];
    int count;
    struct lk_groups groups;
    struct lk_names classes;
    enum lk_data_part part;
    char name[64];
};

static void npy_close(void *state)
{
    struct arrays *arrays = state;
    for (int i = 0; i < LK_MOST_FIELDS; i++)
        lk_array_close(&arrays->items[i]);
    lk_groups_clear(&arrays->groups);
    lk_names_clear(&arrays->classes);
    free(arrays);
}

static struct arrays *create(void)
{
    struct arrays *arrays = calloc(1, sizeof *arrays);
    for (int i = 0; arrays && i < LK_MOST_FIELDS; i++)
        arrays->items[i].file = -1;
    return arrays;
}

/* --- files ----------------------------------------------------------------------------- */

/* Adds the array of a file, which is not opened yet. */
static enum lk_status add_array(struct arrays *arrays, const char *name,
                                enum lk_field_role role, const char *path)
{
    if (arrays->count == LK_MOST_FIELDS)
        return lk_fail(LK_E_ARGUMENT, "npy: more than %d arrays", LK_MOST_FIELDS);
    struct lk_array *array = &arrays->items[arrays->count];
    if (snprintf(array->path, sizeof array->path, "%s", path) >= (int)sizeof array->path)
        return lk_fail(LK_E_ARGUMENT, "npy: a path of more than %d bytes",
                       LK_ARRAY_MOST_PATH - 1);
    arrays->fields[arrays->count++] =
        (struct lk_field){.name = name, .role = role, .length = -1};
    return LK_OK;
}

/* The arrays of a group, "DIR/STEM_train.npy" each. One without a name of its own is called as
 * its type is where it is alone, else as its stem. */
static enum lk_status add_group(struct arrays *arrays, const struct lk_group *group,
                                const char *folder, const char *part)
{
    if (group->is_named && group->count > 1)
        return lk_fail(LK_E_ARGUMENT, "npy: the field '%s' is of %d arrays; expected one",
                       group->name, group->count);
    for (int k = 0; k < group->count; k++) {
        char path[LK_ARRAY_MOST_PATH];
        const char *stem = arrays->groups.members.items[group->first + k];
        const char *name = group->is_named                 ? group->name
                           : group->count > 1              ? stem
                           : group->role == LK_FIELD_LABEL ? "label"
                                                           : NULL;
        if (strchr(stem, '/') || (name && !lk_field_name_fits(name)))
            return lk_fail(LK_E_ARGUMENT, "npy: '%s' cannot name an array", stem);
        snprintf(path, sizeof path, "%.3500s/%.500s_%s.npy", folder, stem, part);
        LK_TRY(add_array(arrays, name, group->role, path));
    }
    return LK_OK;
}

/* "train", or the name of the part among whose files the first array is. */
static const char *find_part(const struct lk_groups *groups, const char *folder,
                             enum lk_data_part part)
{
    if (part == LK_DATA_TRAIN)
        return "train";
    for (const char *const *name = lk_source_part_names(part); *name; name++) {
        char path[LK_ARRAY_MOST_PATH];
        snprintf(path, sizeof path, "%.3500s/%.500s_%s.npy", folder, groups->members.items[0],
                 *name);
        if (lk_file_exists(path))
            return *name;
    }
    return "test"; /* whose files are then missed by name */
}

static enum lk_status add_folder(struct arrays *arrays, const char *folder,
                                 enum lk_data_part part, const struct options *given)
{
    LK_TRY(
        lk_groups_add(&arrays->groups, LK_FIELD_INPUT, *given->fields ? given->fields : "x"));
    if (*given->label)
        LK_TRY(lk_groups_add(&arrays->groups, LK_FIELD_LABEL, given->label));
    const char *name = find_part(&arrays->groups, folder, part);
    arrays->part = part == LK_DATA_TRAIN ? part : lk_source_part_named(name);
    for (int i = 0; i < arrays->groups.count; i++)
        LK_TRY(add_group(arrays, &arrays->groups.items[i], folder, name));
    return LK_OK;
}

/* The files of a part. */
static enum lk_status find_files(struct arrays *arrays, const char *text,
                                 enum lk_data_part part, const struct options *given)
{
    const char *comma = strchr(text, ',');
    char path[LK_ARRAY_MOST_PATH];
    if (lk_folder_exists(text))
        return add_folder(arrays, text, part, given);
    if (!comma || strchr(comma + 1, ',') || *given->fields)
        return lk_fail(LK_E_ARGUMENT,
                       "npy:%s: expected npy:X.npy,Y.npy (samples, labels), or a folder with "
                       "x_train.npy and y_train.npy",
                       text);
    if (!lk_source_takes_all(part))
        return lk_source_fail_no_test("npy", text);
    if (snprintf(path, sizeof path, "%.*s", (int)(comma - text), text) >= (int)sizeof path)
        return lk_fail(LK_E_ARGUMENT, "npy: a path of more than %zu bytes", sizeof path - 1);
    LK_TRY(add_array(arrays, NULL, LK_FIELD_INPUT, path));
    return add_array(arrays, "label", LK_FIELD_LABEL, comma + 1);
}

/* --- fields ---------------------------------------------------------------------------- */

static const char *type_name(enum lk_dtype dtype)
{
    return dtype == LK_U8 ? "image" : dtype == LK_I32 ? "tokens" : "numbers";
}

/* How many classes an input has: its whole numbers may be classes, as tokens are. */
static int64_t input_classes(const struct lk_array *array)
{
    const bool fits =
        array->dtype == LK_I32 && array->least >= 0 && array->most < LK_MOST_CLASSES;
    return fits ? array->most + 1 : 0;
}

static enum lk_status open_array(struct arrays *arrays, int i)
{
    struct lk_array *array = &arrays->items[i], *first = &arrays->items[0];
    struct lk_field *field = &arrays->fields[i];
    LK_TRY(field->role == LK_FIELD_INPUT ? lk_array_open_input(array)
                                         : lk_array_open_label(array));
    if (array->npy.shape[0] != first->npy.shape[0])
        return lk_fail(LK_E_DATA,
                       "'%s' has %lld samples, '%s' has %lld; as many of each are expected",
                       first->path, (long long)first->npy.shape[0], array->path,
                       (long long)array->npy.shape[0]);
    field->name = field->name ? field->name : type_name(array->dtype);
    field->dtype = array->dtype;
    field->shape = array->shape;
    field->classes = field->role == LK_FIELD_INPUT ? input_classes(array) : array->most + 1;
    field->classes = field->dtype == LK_I32 ? field->classes : 0;
    if (lk_field_find(arrays->fields, i, field->name) >= 0)
        return lk_fail(LK_E_ARGUMENT, "npy: the field '%s' is there twice", field->name);
    return LK_OK;
}

/* The classes are those of the training labels for both parts: a test set may lack some. */
static enum lk_status take_training_classes(struct arrays *arrays, const char *folder,
                                            const struct options *given)
{
    struct arrays *train = create();
    if (!train)
        return lk_fail_memory("a data set", sizeof *train);
    enum lk_status status = add_folder(train, folder, LK_DATA_TRAIN, given);
    for (int i = 0; i < arrays->count && status == LK_OK; i++) {
        struct lk_field *field = &arrays->fields[i];
        struct lk_array *labels = &train->items[i];
        if (field->role != LK_FIELD_LABEL || field->dtype != LK_I32)
            continue;
        status = lk_array_open_label(labels);
        if (status == LK_OK && labels->dtype != LK_I32)
            status = lk_fail(LK_E_DATA, "'%s' has whole numbers, '%s' has none",
                             arrays->items[i].path, labels->path);
        field->classes = labels->most + 1;
    }
    npy_close(train);
    return status;
}

static enum lk_status find_classes(struct arrays *arrays, const char *text,
                                   enum lk_data_part part, const struct options *given)
{
    if (*given->classes)
        LK_TRY(lk_names_read(&arrays->classes, given->classes));
    else if (lk_folder_exists(text) && part != LK_DATA_TRAIN)
        LK_TRY(take_training_classes(arrays, text, given));
    for (int i = 0; i < arrays->count; i++) {
        struct lk_field *field = &arrays->fields[i];
        if (field->role != LK_FIELD_LABEL || field->dtype != LK_I32)
            continue;
        if (arrays->classes.count > 0) {
            field->classes = arrays->classes.count;
            field->class_names = arrays->classes.items;
        }
        if (arrays->items[i].most >= field->classes)
            return lk_fail(LK_E_DATA, "'%s': labels of 0..%lld are expected, found %lld",
                           arrays->items[i].path, (long long)field->classes - 1,
                           (long long)arrays->items[i].most);
    }
    return LK_OK;
}

/* The field whose length this one tells, by its name; -1: none. */
static int find_measured(const struct arrays *arrays, int length)
{
    static const char ending[] = ".length";
    const struct lk_field *field = &arrays->fields[length];
    const size_t end = sizeof ending - 1, bytes = strlen(field->name);
    for (int i = 0; i < arrays->count; i++) {
        const char *name = arrays->fields[i].name;
        if (field->role == LK_FIELD_INPUT && arrays->fields[i].role == LK_FIELD_INPUT &&
            bytes == strlen(name) + end && strncmp(field->name, name, bytes - end) == 0 &&
            strcmp(field->name + bytes - end, ending) == 0)
            return i;
    }
    return -1;
}

static enum lk_status connect_lengths(struct arrays *arrays)
{
    for (int i = 0; i < arrays->count; i++) {
        const struct lk_array *lengths = &arrays->items[i];
        const int measured = find_measured(arrays, i);
        if (measured < 0)
            continue;
        if (lengths->dtype != LK_I32 || lengths->elements != 1)
            return lk_fail(LK_E_DATA, "'%s': a length is one whole number a sample",
                           lengths->path);
        arrays->fields[i].shape.rank = 0;
        arrays->fields[i].classes = 0;
        arrays->fields[measured].length = i;
    }
    return LK_OK;
}

static enum lk_status read_files(struct arrays *arrays, struct lk_data_request *request,
                                 char *text)
{
    struct options given;
    LK_TRY(lk_source_parse_options(options, text, &given));
    LK_TRY(find_files(arrays, text, request->part, &given));
    for (int i = 0; i < arrays->count; i++)
        LK_TRY(open_array(arrays, i));
    LK_TRY(connect_lengths(arrays));
    LK_TRY(find_classes(arrays, text, request->part, &given));
    snprintf(request->max_bad, sizeof request->max_bad, "%s", given.max_bad);
    text[strcspn(text, ",")] = '\0';
    lk_source_name(text, arrays->name);
    return LK_OK;
}

static enum lk_status npy_open(struct lk_data_request *request, struct lk_data_info *info,
                               void **state)
{
    struct arrays *arrays = create();
    char *text = strdup(request->text);
    enum lk_status status =
        arrays && text ? LK_OK : lk_fail_memory("a data set", sizeof *arrays);
    if (status == LK_OK)
        status = read_files(arrays, request, text);
    free(text);
    if (status != LK_OK) {
        if (arrays)
            npy_close(arrays);
        return status;
    }
    info->name = arrays->name;
    info->count = arrays->items[0].npy.shape[0];
    info->fields = arrays->fields;
    info->field_count = arrays->count;
    info->part = arrays->part;
    *state = arrays;
    return LK_OK;
}

/* How many numbers of field i a sample has. */
static enum lk_status read_length(const struct arrays *arrays, int i, int64_t index,
                                  int32_t *length)
{
    const struct lk_array *lengths = &arrays->items[arrays->fields[i].length];
    const int64_t most = arrays->fields[i].shape.dim[0];
    LK_TRY(lk_array_read(lengths, index, length));
    if (*length >= 0 && *length <= most)
        return LK_OK;
    return lk_fail(LK_E_DATA, "'%s': the length of sample %lld is %d, '%s' has %lld a sample",
                   lengths->path, (long long)index, *length, arrays->fields[i].name,
                   (long long)most);
}

/* What lies behind a sample's length is 0, whatever the file has there. */
static enum lk_status npy_read(const void *state, int64_t index, void *const to[])
{
    const struct arrays *arrays = state;
    for (int i = 0; i < arrays->count; i++) {
        const struct lk_field *field = &arrays->fields[i];
        int32_t length;
        if (field->length >= 0)
            LK_TRY(read_length(arrays, i, index, &length));
        if (!to[i])
            continue;
        LK_TRY(lk_array_read(&arrays->items[i], index, to[i]));
        if (field->length < 0)
            continue;
        const size_t each = lk_field_bytes(field) / (size_t)field->shape.dim[0];
        memset((uint8_t *)to[i] + (size_t)length * each, 0,
               (size_t)(field->shape.dim[0] - length) * each);
    }
    return LK_OK;
}

const struct lk_source lk_source_npy = {.kind = "npy",
                                        .usage = "npy:X.npy,Y.npy",
                                        .open = npy_open,
                                        .close = npy_close,
                                        .can_break = true,
                                        .read = npy_read};

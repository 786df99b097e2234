/* Opening a data set by its SPEC, and reading its samples. */
#include "data/data.h"

#include "base/fail.h"
#include "base/option.h"
#include "data/sources/field.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct lk_source *const sources[] = {
    &lk_source_idx, &lk_source_folder, &lk_source_csv,       &lk_source_tfrecord,
    &lk_source_npy, &lk_source_text,   &lk_source_synthetic, NULL};

/* The kinds, then the known names: what a SPEC may begin with. */
static const char *beginning(const void *context, int i)
{
    (void)context;
    for (int k = 0; sources[k]; k++, i--)
        if (i == 0)
            return sources[k]->kind;
    return lk_named_sets[i].name;
}

static enum lk_status refuse_spec(const char *spec, const char *word)
{
    char known[512] = "";
    size_t used = 0;
    for (int i = 0; sources[i]; i++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s, ", sources[i]->usage);
    for (const struct lk_named_set *row = lk_named_sets; row->name; row++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", row->name,
                                 row[1].name ? ", " : "");
    const char *near = lk_nearest_name(word, beginning, NULL);
    return lk_fail(LK_E_ARGUMENT, "unknown data '%s'%s%s%s known are %s", spec,
                   near ? "; did you mean '" : "", near ? near : "", near ? "'?" : ";", known);
}

static enum lk_status open_images(struct lk_data *data, const char *text,
                                  enum lk_data_part part, const struct lk_data_options *wanted)
{
    struct lk_image_options options;
    char *path = strdup(text);
    if (!path)
        return lk_fail_memory("a SPEC", strlen(text));
    struct lk_data_request request = {
        .text = path, .part = part, .options = &options, .wanted = wanted};
    enum lk_status status = lk_source_parse_options(data->source->options, path, &options);
    if (status == LK_OK)
        status = data->source->open(&request, &data->info, &data->state);
    if (status == LK_OK) {
        status = lk_images_create(data->source, data->state, &request, wanted, &data->info,
                                  &data->images);
        if (status == LK_OK)
            data->broken = lk_images_broken(data->images);
        else
            data->source->close(data->state);
    }
    free(path);
    return status;
}

static enum lk_status read_nothing(void *context, int64_t index)
{
    const struct lk_data *data = context;
    static void *const nowhere[LK_MOST_FIELDS];
    return data->source->read(data->state, index, nowhere);
}

/* Broken samples of a source that has fields; where they are known they are told at once. */
static enum lk_status open_broken(struct lk_data *data, const struct lk_data_request *request)
{
    const char *wanted = request->wanted->max_bad;
    const struct lk_broken_config config = {.name = data->info.name,
                                            .count = data->info.count,
                                            .max_bad = *request->max_bad ? request->max_bad
                                                       : wanted          ? wanted
                                                                         : "1%",
                                            .lost = request->lost};
    LK_TRY(lk_broken_create(&config, &data->broken));
    for (int64_t i = 0; data->source->knows_broken && i < config.count; i++)
        LK_TRY(lk_broken_read(data->broken, i, read_nothing, data));
    return LK_OK;
}

static enum lk_status open_fields(struct lk_data *data, struct lk_data_request *request)
{
    LK_TRY(data->source->open(request, &data->info, &data->state));
    if (!data->source->can_break)
        return LK_OK;
    const enum lk_status status = open_broken(data, request);
    if (status != LK_OK) {
        lk_broken_destroy(data->broken);
        data->source->close(data->state);
        return lk_fail_within(status, "%s:%s", data->source->kind, request->text);
    }
    return LK_OK;
}

static enum lk_status open_source(struct lk_data *data, const char *text,
                                  enum lk_data_part part, const struct lk_data_options *wanted)
{
    struct lk_data_request request = {.text = text, .part = part, .wanted = wanted};
    if (data->source->of_fields && lk_source_has_option(text, "fields"))
        data->source = data->source->of_fields;
    if (data->source->fetch)
        return open_images(data, text, part, wanted);
    if (wanted->part_height)
        return lk_fail(LK_E_ARGUMENT, "%s:%s: only image files are cropped before resize",
                       data->source->kind, text);
    return open_fields(data, &request);
}

static enum lk_status open_known(const struct lk_named_set *known, enum lk_data_part part,
                                 const struct lk_data_options *wanted, struct lk_data *data)
{
    char *folder = NULL;
    LK_TRY(lk_named_set_folder(known, &folder));
    data->source = known->source;
    data->info.name = known->name;
    data->info.class_names = known->class_names;
    const enum lk_status status = open_source(data, folder, part, wanted);
    free(folder);
    return status;
}

static enum lk_status open_spec(const char *spec, enum lk_data_part part,
                                const struct lk_data_options *wanted, struct lk_data *data)
{
    char word[64];
    const size_t length = strcspn(spec, ":");
    snprintf(word, sizeof word, "%.*s", (int)(length < sizeof word ? length : 0), spec);
    for (int i = 0; spec[length] == ':' && sources[i]; i++)
        if (strcmp(word, sources[i]->kind) == 0) {
            data->source = sources[i];
            return open_source(data, spec + length + 1, part, wanted);
        }
    for (const struct lk_named_set *row = lk_named_sets; row->name; row++)
        if (strcmp(spec, row->name) == 0)
            return open_known(row, part, wanted, data);
    return refuse_spec(spec, word);
}

/* What most sources have: an image, and its class. */
static void make_standard_fields(struct lk_data *data)
{
    struct lk_data_info *info = &data->info;
    data->standard[LK_FIELD_IMAGE] =
        (struct lk_field){.name = "image",
                          .dtype = LK_U8,
                          .shape = {3, {info->height, info->width, info->channels}},
                          .role = LK_FIELD_INPUT,
                          .length = -1};
    data->standard[LK_FIELD_CLASS] = (struct lk_field){.name = "label",
                                                       .dtype = LK_I32,
                                                       .role = LK_FIELD_LABEL,
                                                       .length = -1,
                                                       .classes = info->classes,
                                                       .class_names = info->class_names};
    info->fields = data->standard;
    info->field_count = LK_COUNT(data->standard);
}

/* What the info says of images and classes, of a source that has fields. */
static void describe_by_fields(struct lk_data_info *info)
{
    info->height = info->width = info->channels = info->classes = 0;
    info->class_names = NULL;
    for (int i = info->field_count - 1; i >= 0; i--) {
        const struct lk_field *field = &info->fields[i];
        if (lk_field_is_image(field)) {
            info->height = (int)field->shape.dim[0];
            info->width = (int)field->shape.dim[1];
            info->channels = (int)field->shape.dim[2];
        }
        if (field->role == LK_FIELD_LABEL && field->classes > 0) {
            info->classes = (int)field->classes;
            info->class_names = field->class_names;
        }
    }
}

static void describe_fields(struct lk_data *data)
{
    const struct lk_data_info *info = &data->info;
    data->image = data->label = -1;
    if (info->fields)
        describe_by_fields(&data->info);
    else
        make_standard_fields(data);
    for (int i = info->field_count - 1; i >= 0; i--) {
        data->field_bytes[i] = lk_field_bytes(&info->fields[i]);
        if (lk_field_is_image(&info->fields[i]))
            data->image = i;
        if (lk_field_is_class(&info->fields[i]))
            data->label = i;
    }
    data->sample_bytes = data->image < 0 ? 0 : data->field_bytes[data->image];
}

enum lk_status lk_data_open_as(const char *spec, enum lk_data_part part,
                               const struct lk_data_options *options, struct lk_data **data)
{
    static const struct lk_data_options standard;
    if (part != LK_DATA_TRAIN && part != LK_DATA_TEST && part != LK_DATA_TEST_OR_ALL)
        return lk_fail(LK_E_ARGUMENT, "data '%s': part %d is neither train nor test", spec,
                       (int)part);
    struct lk_data *opened = calloc(1, sizeof *opened);
    if (!opened)
        return lk_fail_memory("a data set", sizeof *opened);
    const enum lk_status status = open_spec(spec, part, options ? options : &standard, opened);
    if (status != LK_OK) {
        free(opened);
        return status;
    }
    describe_fields(opened);
    *data = opened;
    return LK_OK;
}

enum lk_status lk_data_open(const char *spec, enum lk_data_part part, struct lk_data **data)
{
    return lk_data_open_as(spec, part, NULL, data);
}

void lk_data_close(struct lk_data *data)
{
    if (data) {
        if (!data->images)
            lk_broken_destroy(data->broken);
        lk_images_destroy(data->images);
        data->source->close(data->state);
    }
    free(data);
}

int64_t lk_data_bad(const struct lk_data *data)
{
    return data->broken ? lk_broken_count(data->broken) : 0;
}

const struct lk_data_info *lk_data_info(const struct lk_data *data)
{
    return &data->info;
}

static enum lk_status check_index(const struct lk_data *data, int64_t index)
{
    if (index >= 0 && index < data->info.count)
        return LK_OK;
    return lk_fail(LK_E_ARGUMENT, "%s: sample %lld is not in 0..%lld", data->info.name,
                   (long long)index, (long long)data->info.count - 1);
}

enum lk_status lk_data_read_crop(const struct lk_data *data, int64_t index,
                                 const struct lk_image_crop *part, uint8_t *sample,
                                 int32_t *label)
{
    LK_TRY(check_index(data, index));
    return lk_images_read(data->images, index, part, sample, label);
}

enum lk_status lk_data_check_image(const struct lk_data *data)
{
    char names[512] = "";
    size_t used = 0;
    if (data->image >= 0 && data->label >= 0)
        return LK_OK;
    for (int i = 0; i < data->info.field_count && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s'%s'", i ? ", " : "",
                                 data->info.fields[i].name);
    return lk_fail(LK_E_ARGUMENT, "%s: the data has no %s; its fields are %s", data->info.name,
                   data->image < 0 ? "image" : "label that is one class", names);
}

struct reading {
    const struct lk_data *data;
    void *const *to;
};

static enum lk_status read_sample(void *context, int64_t index)
{
    const struct reading *reading = context;
    const struct lk_data *data = reading->data;
    return data->source->read(data->state, index, reading->to);
}

static enum lk_status read_one(const struct lk_data *data, int64_t index, void *const to[])
{
    struct reading reading = {data, to};
    if (data->images)
        return lk_images_read(data->images, index, NULL, to[LK_FIELD_IMAGE],
                              to[LK_FIELD_CLASS]);
    return data->broken ? lk_broken_read(data->broken, index, read_sample, &reading)
                        : read_sample(&reading, index);
}

enum lk_status lk_data_read_fields(const struct lk_data *data, const int64_t *indices,
                                   int count, void *const to[LK_MOST_FIELDS])
{
    for (int i = 0; i < count; i++)
        LK_TRY(check_index(data, indices[i]));
    for (int i = 0; i < count; i++) {
        void *sample[LK_MOST_FIELDS] = {NULL};
        for (int f = 0; f < data->info.field_count; f++)
            sample[f] = to[f] ? (uint8_t *)to[f] + (size_t)i * data->field_bytes[f] : NULL;
        LK_TRY(read_one(data, indices[i], sample));
    }
    return LK_OK;
}

enum lk_status lk_data_read(const struct lk_data *data, const int64_t *indices, int count,
                            uint8_t *samples, int32_t *labels)
{
    void *to[LK_MOST_FIELDS] = {NULL};
    LK_TRY(lk_data_check_image(data));
    to[data->image] = samples;
    to[data->label] = labels;
    return lk_data_read_fields(data, indices, count, to);
}

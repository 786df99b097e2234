/* Opening a data set by its SPEC, and reading its samples. */
#include "data/data.h"

#include "base/fail.h"
#include "base/option.h"

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
    return lk_known_data[i].name;
}

static enum lk_status refuse_spec(const char *spec, const char *word)
{
    char known[512] = "";
    size_t used = 0;
    for (int i = 0; sources[i]; i++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s, ", sources[i]->usage);
    for (const struct lk_known *row = lk_known_data; row->name; row++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", row->name,
                                 row[1].name ? ", " : "");
    const char *near = lk_nearest_name(word, beginning, NULL);
    return lk_fail(LK_E_ARGUMENT, "unknown data '%s'%s%s%s; known are %s", spec,
                   near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "", known);
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
        if (status != LK_OK)
            data->source->close(data->state);
    }
    free(path);
    return status;
}

static enum lk_status open_source(struct lk_data *data, const char *text,
                                  enum lk_data_part part, const struct lk_data_options *wanted)
{
    struct lk_data_request request = {.text = text, .part = part, .wanted = wanted};
    if (data->source->fetch)
        return open_images(data, text, part, wanted);
    if (wanted->part_height)
        return lk_fail(LK_E_ARGUMENT, "%s:%s: only image files are cropped before resize",
                       data->source->kind, text);
    return data->source->open(&request, &data->info, &data->state);
}

static enum lk_status open_known(const struct lk_known *known, enum lk_data_part part,
                                 const struct lk_data_options *wanted, struct lk_data *data)
{
    char *folder = NULL;
    LK_TRY(lk_known_folder(known, &folder));
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
    for (const struct lk_known *row = lk_known_data; row->name; row++)
        if (strcmp(spec, row->name) == 0)
            return open_known(row, part, wanted, data);
    return refuse_spec(spec, word);
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
    const struct lk_data_info *info = &opened->info;
    opened->sample_bytes = (size_t)info->height * (size_t)info->width * (size_t)info->channels;
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
        lk_images_destroy(data->images);
        data->source->close(data->state);
    }
    free(data);
}

int64_t lk_data_bad(const struct lk_data *data)
{
    return data->images ? lk_images_bad(data->images) : 0;
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

enum lk_status lk_data_read_part(const struct lk_data *data, int64_t index,
                                 const struct lk_image_part *part, uint8_t *sample,
                                 int32_t *label)
{
    LK_TRY(check_index(data, index));
    return lk_images_read(data->images, index, part, sample, label);
}

enum lk_status lk_data_read(const struct lk_data *data, const int64_t *indices, int count,
                            uint8_t *samples, int32_t *labels)
{
    for (int i = 0; i < count; i++)
        LK_TRY(check_index(data, indices[i]));
    for (int i = 0; i < count; i++) {
        uint8_t *sample = samples + (size_t)i * data->sample_bytes;
        LK_TRY(data->images ? lk_images_read(data->images, indices[i], NULL, sample, labels + i)
                            : data->source->read(data->state, indices[i], sample, labels + i));
    }
    return LK_OK;
}

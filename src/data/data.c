#include "base/fail.h"
#include "base/option.h"
#include "data/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct lk_source *const sources[] = {&lk_source_idx, &lk_source_synthetic, NULL};

struct lk_data {
    const struct lk_source *source;
    void *state;
    struct lk_data_info info;
    size_t sample_bytes;
};

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

static enum lk_status open_known(const struct lk_known *known, enum lk_data_part part,
                                 struct lk_data *data)
{
    char *folder = NULL;
    LK_TRY(lk_known_folder(known, &folder));
    data->source = known->source;
    data->info.name = known->name;
    data->info.class_names = known->class_names;
    enum lk_status status = known->source->open(folder, part, &data->info, &data->state);
    free(folder);
    return status;
}

static enum lk_status open_spec(const char *spec, enum lk_data_part part, struct lk_data *data)
{
    char word[64];
    const size_t length = strcspn(spec, ":");
    snprintf(word, sizeof word, "%.*s", (int)(length < sizeof word ? length : 0), spec);
    for (int i = 0; spec[length] == ':' && sources[i]; i++)
        if (strcmp(word, sources[i]->kind) == 0) {
            data->source = sources[i];
            return sources[i]->open(spec + length + 1, part, &data->info, &data->state);
        }
    for (const struct lk_known *row = lk_known_data; row->name; row++)
        if (strcmp(spec, row->name) == 0)
            return open_known(row, part, data);
    return refuse_spec(spec, word);
}

enum lk_status lk_data_open(const char *spec, enum lk_data_part part, struct lk_data **data)
{
    if (part != LK_DATA_TRAIN && part != LK_DATA_TEST)
        return lk_fail(LK_E_ARGUMENT, "data '%s': part %d is neither train nor test", spec,
                       (int)part);
    struct lk_data *opened = calloc(1, sizeof *opened);
    if (!opened)
        return lk_fail_memory("a data set", sizeof *opened);
    const enum lk_status status = open_spec(spec, part, opened);
    if (status != LK_OK) {
        free(opened);
        return status;
    }
    const struct lk_data_info *info = &opened->info;
    opened->sample_bytes = (size_t)info->height * (size_t)info->width * (size_t)info->channels;
    *data = opened;
    return LK_OK;
}

void lk_data_close(struct lk_data *data)
{
    if (data)
        data->source->close(data->state);
    free(data);
}

const struct lk_data_info *lk_data_info(const struct lk_data *data)
{
    return &data->info;
}

enum lk_status lk_data_read(const struct lk_data *data, const int64_t *indices, int count,
                            uint8_t *samples, int32_t *labels)
{
    for (int i = 0; i < count; i++)
        if (indices[i] < 0 || indices[i] >= data->info.count)
            return lk_fail(LK_E_ARGUMENT, "%s: sample %lld is not in 0..%lld", data->info.name,
                           (long long)indices[i], (long long)data->info.count - 1);
    for (int i = 0; i < count; i++)
        LK_TRY(data->source->read(data->state, indices[i],
                                  samples + (size_t)i * data->sample_bytes, labels + i));
    return LK_OK;
}

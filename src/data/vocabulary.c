/* The vocabulary of a data set of texts: learned when it is opened, from the training part. */
#include "data/vocabulary.h"

#include "base/fail.h"
#include "data/text/file.h"
#include "data/text/pieces.h"
#include "data/text/texts.h"
#include "io/file.h"
#include <stdlib.h>
#include <string.h>

/* Whether the training part is one long text, of which there are no lines with labels: its
 * bytes are tokens whose next one is to be predicted. What cannot be read is refused by whoever
 * opens it. */
static bool is_long_text(const char *text)
{
    char path[LK_SOURCE_PATH], *spec = strdup(text);
    enum lk_data_part part;
    void *data = NULL;
    size_t bytes;
    if (spec)
        *lk_source_find_options(spec) = '\0';
    bool is_long =
        spec &&
        lk_source_find_file("text", spec, ".txt", LK_DATA_TRAIN, path, &part) == LK_OK &&
        lk_file_read(path, (size_t)4 << 30, &data, &bytes) == LK_OK;
    is_long = is_long && !lk_text_has_labels(data, bytes);
    lk_error_clear();
    free(data);
    free(spec);
    return is_long;
}

/* Whether tokens of a vocabulary are asked for, and not just the bytes of lines. */
bool lk_data_wants_tokens(const char *text, const struct lk_data_options *wanted)
{
    static const char *const options[] = {"standardize", "vocabulary", "min_count", "truncate",
                                          "pad",         "labels",     "max_bad"};
    char unit[16] = "byte";
    bool wants = wanted->vocabulary && *wanted->vocabulary;
    const bool has_unit = lk_source_has_option(text, "unit");
    if (has_unit && !lk_source_find_option(text, "unit", unit, sizeof unit))
        return true; /* its value is too long to be one */
    wants = wants || (wanted->words && !has_unit);
    for (int i = 0; i < LK_COUNT(options); i++)
        wants = wants || lk_source_has_option(text, options[i]);
    return wants || strcmp(unit, "byte") != 0 || (has_unit && is_long_text(text));
}

/* Learns from all samples, of which none are held out. */
static enum lk_status learn_from_all(const struct lk_open_source *opened)
{
    const int64_t count = opened->info->count;
    int64_t *indices = malloc((size_t)count * sizeof *indices);
    if (!indices)
        return lk_fail_memory("a list of samples", (size_t)count * sizeof *indices);
    for (int64_t i = 0; i < count; i++)
        indices[i] = i;
    const enum lk_status status = opened->source->learn(opened->state, indices, count);
    free(indices);
    return status;
}

/* Gives the texts of another part the vocabulary that the training part has. */
static enum lk_status take_training_vocabulary(const struct lk_data *data,
                                               const struct lk_data_request *request,
                                               struct lk_texts *texts)
{
    struct lk_data_info info = {0};
    struct lk_data_request again = *request;
    struct lk_open_source train = {.source = data->source, .info = &info};
    again.part = LK_DATA_TRAIN;
    LK_TRY(train.source->open(&again, &info, &train.state));
    struct lk_texts *learned = train.source->texts(train.state);
    const enum lk_status status = data->training_share > 0
                                      ? lk_held_out_take(&train, data->training_share, false)
                                      : learn_from_all(&train);
    if (status == LK_OK) {
        lk_vocabulary_clear(&texts->vocabulary);
        texts->vocabulary = learned->vocabulary;
        learned->vocabulary = (struct lk_vocabulary){0};
    }
    train.source->close(train.state);
    return status;
}

/* Of texts that are held out, and of those that are left, the vocabulary is learned when they
 * are taken apart. */
enum lk_status lk_data_learn(struct lk_data *data, const struct lk_data_request *request,
                             struct lk_open_source *opened)
{
    struct lk_texts *texts =
        opened->source->texts ? opened->source->texts(opened->state) : NULL;
    enum lk_status status = LK_OK;
    if (texts && opened->info->part != LK_DATA_TRAIN && !texts->vocabulary.is_there)
        status = take_training_vocabulary(data, request, texts);
    if (status == LK_OK && data->share > 0)
        status = lk_held_out_take(opened, data->share, data->is_held_out);
    else if (status == LK_OK && texts)
        status = learn_from_all(opened);
    if (status == LK_OK && texts)
        status = lk_vocabulary_print(&texts->vocabulary, &data->vocabulary);
    return status;
}

const char *lk_data_vocabulary(const struct lk_data *data)
{
    return data->vocabulary;
}

enum lk_status lk_data_measure_text(const struct lk_data *data, int64_t index,
                                    struct lk_text_size *size)
{
    if (!data->vocabulary || !data->source->measure)
        return lk_fail(LK_E_ARGUMENT, "%s: no texts with a vocabulary", data->info.name);
    if (index < 0 || index >= data->info.count)
        return lk_fail(LK_E_ARGUMENT, "%s: sample %lld is not in 0..%lld", data->info.name,
                       (long long)index, (long long)data->info.count - 1);
    return data->source->measure(data->state, index, size);
}

/* Reads how long the sequences of all samples are, once, without anything else of them. */
#include "data/batches/lengths.h"

#include "base/fail.h"

#include <stdlib.h>

/* Points `to` at a value for each field that is the length of an input. */
static int find_lengths(const struct lk_data_info *info, int32_t values[LK_MOST_FIELDS],
                        void *to[LK_MOST_FIELDS])
{
    int found = 0;
    for (int i = 0; i < info->field_count; i++) {
        const struct lk_field *field = &info->fields[i];
        if (field->role != LK_FIELD_INPUT || field->length < 0 || to[field->length])
            continue;
        to[field->length] = &values[field->length];
        found++;
    }
    return found;
}

enum lk_status lk_lengths_read(const struct lk_data *data, int64_t **lengths)
{
    const struct lk_data_info *info = lk_data_info(data);
    int32_t values[LK_MOST_FIELDS] = {0};
    void *to[LK_MOST_FIELDS] = {NULL};
    if (find_lengths(info, values, to) == 0)
        return lk_fail(LK_E_ARGUMENT,
                       "bucket: the samples of '%s' have no length; batches of similar length "
                       "are made of texts and other sequences that have one",
                       info->name);
    int64_t *found = calloc((size_t)info->count, sizeof *found);
    if (!found)
        return lk_fail_memory("the lengths of samples", (size_t)info->count * sizeof *found);
    for (int64_t i = 0; i < info->count; i++) {
        const enum lk_status status = lk_data_read_fields(data, &i, 1, to);
        if (status != LK_OK) {
            free(found);
            return status;
        }
        for (int f = 0; f < info->field_count; f++)
            found[i] += to[f] ? values[f] : 0;
    }
    *lengths = found;
    return LK_OK;
}

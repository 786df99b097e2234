/* Reads the first samples of a data set, field by field, and holds them to what the fields
 * promise. */
#ifndef TESTS_FUZZ_FIELDS_H
#define TESTS_FUZZ_FIELDS_H

#include <lockstep/data.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static inline void fuzz_check_field(const struct lk_field *field, const void *values)
{
    const int64_t count = (int64_t)lk_field_bytes(field) / (field->dtype == LK_U8 ? 1 : 4);
    for (int64_t i = 0; i < count; i++) {
        if (field->dtype == LK_I32 && field->classes > 0 &&
            (((const int32_t *)values)[i] < 0 ||
             ((const int32_t *)values)[i] >= field->classes))
            abort();
        if (field->dtype == LK_F32 && !isfinite(((const float *)values)[i]))
            abort();
    }
}

/* What cannot be read may only be broken data. */
static inline void fuzz_read_fields(const struct lk_data *set)
{
    const struct lk_data_info *info = lk_data_info(set);
    void *to[LK_MOST_FIELDS] = {NULL};
    if (info->count < 1 || info->field_count < 1 || info->field_count > LK_MOST_FIELDS)
        abort();
    for (int f = 0; f < info->field_count; f++) {
        if (lk_field_find(info->fields, info->field_count, info->fields[f].name) != f)
            abort();
        to[f] = malloc(lk_field_bytes(&info->fields[f]));
        if (!to[f])
            abort();
    }
    for (int64_t i = 0; i < info->count && i < 20; i++) {
        const enum lk_status status = lk_data_read_fields(set, &i, 1, to);
        if (status != LK_OK && status != LK_E_DATA)
            abort();
        for (int f = 0; f < info->field_count && status == LK_OK; f++)
            fuzz_check_field(&info->fields[f], to[f]);
        lk_error_clear();
    }
    for (int f = 0; f < info->field_count; f++)
        free(to[f]);
}

#endif

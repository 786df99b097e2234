/* What tests of tables share: writing files, opening sets, reading fields. Knows cmocka. */
#ifndef TESTS_DATA_TABLES_H
#define TESTS_DATA_TABLES_H

#include "scratch.h"
#include <lockstep/data.h>

static inline void put_text(const char *name, const char *text)
{
    scratch_put(scratch_path(name), text, strlen(text));
}

/* "KIND:PATH" and options. */
static inline const char *spec_of(const char *kind, const char *name, const char *more)
{
    static char text[2048];
    snprintf(text, sizeof text, "%s:%s%s", kind, scratch_path(name), more);
    return text;
}

static inline struct lk_data *open_part(const char *spec, enum lk_data_part part)
{
    struct lk_data *data = NULL;
    if (lk_data_open_as(spec, part, NULL, &data) != LK_OK)
        fail_msg("%s", lk_error_text());
    return data;
}

static inline void refused(const char *spec, enum lk_data_part part, int code, const char *said)
{
    struct lk_data *data = NULL;
    assert_refused(lk_data_open_as(spec, part, NULL, &data), code, lk_error_text(), said);
    lk_error_clear();
}

static inline void expect_field(const struct lk_data *data, int i, const char *name,
                                enum lk_dtype dtype, const char *shape)
{
    const struct lk_data_info *info = lk_data_info(data);
    char found[64] = "";
    size_t used = 0;
    assert_true(i < info->field_count);
    const struct lk_field *field = &info->fields[i];
    for (int k = 0; k < field->shape.rank; k++)
        used += (size_t)snprintf(found + used, sizeof found - used, "%s%d", k ? "," : "",
                                 (int)field->shape.dim[k]);
    assert_string_equal(field->name, name);
    assert_int_equal(field->dtype, dtype);
    assert_string_equal(found, shape);
    assert_int_equal(lk_field_find(info->fields, info->field_count, name), i);
}

static inline void expect_floats(const struct lk_data *data, int field, int64_t index,
                                 const float *wanted, int count)
{
    float found[64];
    void *to[LK_MOST_FIELDS] = {NULL};
    to[field] = found;
    assert_int_equal(lk_field_bytes(&lk_data_info(data)->fields[field]), 4 * count);
    if (lk_data_read_fields(data, &index, 1, to) != LK_OK)
        fail_msg("%s", lk_error_text());
    assert_memory_equal(found, wanted, (size_t)count * sizeof *found);
}

static inline void expect_ints(const struct lk_data *data, int field, int64_t index,
                               const int32_t *wanted, int count)
{
    int32_t found[64];
    void *to[LK_MOST_FIELDS] = {NULL};
    to[field] = found;
    assert_int_equal(lk_field_bytes(&lk_data_info(data)->fields[field]), 4 * count);
    if (lk_data_read_fields(data, &index, 1, to) != LK_OK)
        fail_msg("%s", lk_error_text());
    assert_memory_equal(found, wanted, (size_t)count * sizeof *found);
}

#endif

/* Fields of samples: their sizes, kinds and names. */
#include "data/sources/field.h"

#include <string.h>

int64_t lk_field_count(const struct lk_field *field)
{
    int64_t count = 1;
    for (int i = 0; i < field->shape.rank; i++)
        count *= field->shape.dim[i];
    return count;
}

size_t lk_field_bytes(const struct lk_field *field)
{
    return (size_t)lk_field_count(field) * (field->dtype == LK_U8 ? 1 : 4);
}

int lk_field_find(const struct lk_field *fields, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(fields[i].name, name) == 0)
            return i;
    return -1;
}

bool lk_field_is_image(const struct lk_field *field)
{
    return field->role == LK_FIELD_INPUT && field->dtype == LK_U8 && field->shape.rank == 3;
}

bool lk_field_is_class(const struct lk_field *field)
{
    return field->role == LK_FIELD_LABEL && field->dtype == LK_I32 && field->shape.rank == 0 &&
           field->classes > 0;
}

bool lk_field_is_numbers(const struct lk_field *field)
{
    return field->role == LK_FIELD_INPUT && field->dtype == LK_F32;
}

bool lk_field_name_fits(const char *name)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-/";
    const size_t length = strlen(name);
    return length > 0 && length < 128 && strspn(name, letters) == length;
}

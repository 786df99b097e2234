/* What kinds of fields there are, and making lists of them. Floor 4. Knows no source. */
#ifndef LK_DATA_SOURCES_FIELD_H
#define LK_DATA_SOURCES_FIELD_H

#include <lockstep/data.h>
#include <stdbool.h>

/* u8 [h, w, c], an input. */
bool lk_field_is_image(const struct lk_field *field);

/* i32 [], a label with classes. */
bool lk_field_is_class(const struct lk_field *field);

/* f32, an input. */
bool lk_field_is_numbers(const struct lk_field *field);

/* Numbers in one sample of it. */
int64_t lk_field_count(const struct lk_field *field);

/* Whether a field may be called so: letters, digits and any of "_.-/", at most 127 of them;
 * such a name stands in a SPEC or a pipeline without quotes. */
bool lk_field_name_fits(const char *name);

#endif

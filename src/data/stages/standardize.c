/* Reads, writes and carries out the stage "standardize". */
#include "data/stages/standardize.h"

#include "base/fail.h"
#include "base/number.h"
#include "data/sources/field.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* "1.5/2": a mean and a deviation. */
static enum lk_status read_pair(struct lk_standardize *s, const char **at)
{
    struct lk_standardize_field *field = &s->fields[s->field_count];
    const int pair = field->first + field->count;
    char *end, *last;
    if (pair == LK_STANDARDIZE_MOST)
        return lk_fail(LK_E_ARGUMENT, "more than %d means", LK_STANDARDIZE_MOST);
    const double mean = lk_number_read(*at, &end);
    if (end == *at || *end != '/')
        return lk_fail(LK_E_ARGUMENT, "'%.40s': expected MEAN/DEVIATION", *at);
    const double deviation = lk_number_read(end + 1, &last);
    if (last == end + 1 || !isfinite(mean) || !(deviation > 0 && isfinite(deviation)))
        return lk_fail(LK_E_ARGUMENT, "'%.40s': expected a finite mean and a deviation above 0",
                       *at);
    s->mean[pair] = mean;
    s->deviation[pair] = deviation;
    field->count++;
    *at = last;
    return LK_OK;
}

/* "[1/2, 3/4]" or "1/2". */
static enum lk_status read_pairs(struct lk_standardize *s, const char **at)
{
    if (**at != '[')
        return read_pair(s, at);
    do {
        *at += 1;
        *at += strspn(*at, " ");
        LK_TRY(read_pair(s, at));
        *at += strspn(*at, " ");
    } while (**at == ',');
    if (**at != ']')
        return lk_fail(LK_E_ARGUMENT, "'%.40s': expected ',' or ']'", *at);
    *at += 1;
    return LK_OK;
}

/* "numbers=[1/2, 3/4]" */
static enum lk_status read_field(struct lk_standardize *s, const char **at)
{
    const size_t length = strcspn(*at, "= ");
    if (s->field_count == LK_MOST_FIELDS)
        return lk_fail(LK_E_ARGUMENT, "more than %d fields", LK_MOST_FIELDS);
    struct lk_standardize_field *field = &s->fields[s->field_count];
    if ((*at)[length] != '=' || length >= sizeof field->name)
        return lk_fail(LK_E_ARGUMENT,
                       "'%.40s': expected by=field, or NAME=[MEAN/DEVIATION, ...]", *at);
    const struct lk_standardize_field *before = field - 1;
    *field = (struct lk_standardize_field){
        .first = s->field_count ? before->first + before->count : 0};
    memcpy(field->name, *at, length);
    for (int i = 0; i < s->field_count; i++)
        if (strcmp(s->fields[i].name, field->name) == 0)
            return lk_fail(LK_E_ARGUMENT, "field '%s' is there twice", field->name);
    *at += length + 1;
    LK_TRY(read_pairs(s, at));
    if (**at && **at != ' ')
        return lk_fail(LK_E_ARGUMENT, "'%.40s' behind the numbers of field '%s'", *at,
                       field->name);
    s->field_count++;
    return LK_OK;
}

enum lk_status lk_standardize_parse(const char *text, struct lk_standardize *standardize)
{
    const char *at = text + strspn(text, " ");
    *standardize = (struct lk_standardize){0};
    standardize->by_field = strcmp(at, "by=field") == 0;
    if (!*at || standardize->by_field || strcmp(at, "by=element") == 0)
        return LK_OK;
    standardize->is_measured = true;
    while (*at) {
        LK_TRY(read_field(standardize, &at));
        at += strspn(at, " ");
    }
    return LK_OK;
}

static bool append(char *text, size_t bytes, size_t *used, const char *more)
{
    const size_t length = strlen(more);
    if (length >= bytes - *used)
        return false;
    memcpy(text + *used, more, length + 1);
    *used += length;
    return true;
}

bool lk_standardize_print(const struct lk_standardize *s, char *text, size_t bytes)
{
    size_t used = 0;
    bool fits = true;
    text[0] = '\0';
    if (!s->is_measured)
        return append(text, bytes, &used, s->by_field ? "by=field" : "");
    for (int i = 0; i < s->field_count; i++) {
        const struct lk_standardize_field *field = &s->fields[i];
        fits = fits && append(text, bytes, &used, i ? " " : "") &&
               append(text, bytes, &used, field->name) && append(text, bytes, &used, "=[");
        for (int k = field->first; k < field->first + field->count; k++) {
            char mean[40], deviation[40];
            lk_number_print(s->mean[k], mean, sizeof mean);
            lk_number_print(s->deviation[k], deviation, sizeof deviation);
            fits = fits && append(text, bytes, &used, k > field->first ? ", " : "") &&
                   append(text, bytes, &used, mean) && append(text, bytes, &used, "/") &&
                   append(text, bytes, &used, deviation);
        }
        fits = fits && append(text, bytes, &used, "]");
    }
    return fits;
}

enum lk_status lk_standardize_open(const char *text, struct lk_field *inputs, int count,
                                   struct lk_standardize *standardize)
{
    LK_TRY(lk_standardize_parse(text, standardize));
    if (count == 1 && standardize->field_count == 1)
        inputs[0].name = standardize->fields[0].name;
    return lk_standardize_bind(standardize, inputs, count);
}

enum lk_status lk_standardize_bind(struct lk_standardize *s, const struct lk_field *fields,
                                   int count)
{
    if (!s->is_measured)
        return lk_fail(LK_E_ARGUMENT, "stage 'standardize': it has no numbers yet; a training "
                                      "part is measured for them");
    for (int i = 0; i < s->field_count; i++) {
        struct lk_standardize_field *one = &s->fields[i];
        one->field = lk_field_find(fields, count, one->name);
        if (one->field < 0 || !lk_field_is_numbers(&fields[one->field]))
            return lk_fail(LK_E_ARGUMENT,
                           "stage 'standardize': the data has no input '%s' of "
                           "floats",
                           one->name);
        one->elements = lk_field_count(&fields[one->field]);
        if (one->count != 1 && one->count != one->elements)
            return lk_fail(LK_E_ARGUMENT,
                           "stage 'standardize': %d means for the field '%s' of %lld numbers",
                           one->count, one->name, (long long)one->elements);
    }
    return LK_OK;
}

void lk_standardize_apply(const struct lk_standardize *s, int64_t count, void *const to[])
{
    for (int i = 0; i < s->field_count; i++) {
        const struct lk_standardize_field *one = &s->fields[i];
        const double *mean = s->mean + one->first, *deviation = s->deviation + one->first;
        float *x = to[one->field];
        for (int64_t n = 0; x && n < count; n++, x += one->elements)
            for (int64_t e = 0; e < one->elements; e++) {
                const int64_t k = one->count == 1 ? 0 : e;
                x[e] = (float)((x[e] - mean[k]) / deviation[k]);
            }
    }
}

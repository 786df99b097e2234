/* Measures mean and deviation for the stage "standardize" over a data set. */
#include "data/batches/measure.h"

#include "base/fail.h"
#include "base/log.h"
#include "base/text.h"
#include "data/sources/field.h"
#include "data/stages/moments.h"
#include "data/stages/pipeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AT_ONCE = 64 };

/* Lists the fields to be measured: all inputs of floats. */
static enum lk_status choose_fields(struct lk_standardize *s, const struct lk_data_info *info)
{
    int used = 0;
    for (int f = 0; f < info->field_count; f++) {
        const struct lk_field *field = &info->fields[f];
        const int64_t elements = lk_field_count(field);
        if (!lk_field_is_numbers(field))
            continue;
        struct lk_standardize_field *one = &s->fields[s->field_count++];
        if (!s->by_field && elements > LK_STANDARDIZE_MOST - used)
            return lk_fail(LK_E_ARGUMENT,
                           "stage 'standardize': with field '%s' there are more than %d "
                           "numbers; 'standardize by=field' has one mean for each field",
                           field->name, LK_STANDARDIZE_MOST);
        snprintf(one->name, sizeof one->name, "%s", field->name);
        one->first = used;
        one->count = s->by_field ? 1 : (int)elements;
        one->field = f;
        one->elements = elements;
        used += one->count;
    }
    return s->field_count > 0
               ? LK_OK
               : lk_fail(LK_E_ARGUMENT, "stage 'standardize': %s has no input of floats",
                         info->name);
}

static void add_samples(const struct lk_standardize *s, struct lk_moments *moments, int count,
                        void *const to[])
{
    for (int i = 0; i < s->field_count; i++) {
        const struct lk_standardize_field *one = &s->fields[i];
        const float *x = to[one->field];
        for (int64_t k = 0; k < count * one->elements; k++)
            lk_moments_add(&moments[one->first + (one->count == 1 ? 0 : k % one->elements)],
                           x[k]);
    }
}

static enum lk_status read_all(const struct lk_data *data, const struct lk_standardize *s,
                               struct lk_moments *moments, void *const to[])
{
    const int64_t count = lk_data_info(data)->count;
    for (int64_t at = 0; at < count; at += AT_ONCE) {
        int64_t indices[AT_ONCE];
        const int now = count - at < AT_ONCE ? (int)(count - at) : AT_ONCE;
        for (int i = 0; i < now; i++)
            indices[i] = at + i;
        LK_TRY(lk_data_read_fields(data, indices, now, to));
        add_samples(s, moments, now, to);
    }
    return LK_OK;
}

/* A number that is the same in all samples becomes 0: its deviation is taken as 1. */
static void take_moments(struct lk_standardize *s, const struct lk_moments *moments)
{
    for (int i = 0; i < s->field_count; i++) {
        const struct lk_standardize_field *one = &s->fields[i];
        for (int k = 0; k < one->count; k++) {
            const struct lk_moments *m = &moments[one->first + k];
            const double deviation = lk_moments_deviation(m);
            if (!(deviation > 0))
                lk_log(LK_LOG_WARNING,
                       "standardize: number %d of '%s' is %g in all samples, and becomes 0", k,
                       one->name, m->mean);
            s->mean[one->first + k] = m->mean;
            s->deviation[one->first + k] = deviation > 0 ? deviation : 1;
        }
    }
    s->is_measured = true;
}

static enum lk_status measure(const struct lk_data *data, struct lk_standardize *s)
{
    struct lk_moments *moments = calloc(LK_STANDARDIZE_MOST, sizeof *moments);
    void *to[LK_MOST_FIELDS] = {NULL};
    enum lk_status status = choose_fields(s, lk_data_info(data));
    if (status == LK_OK && !moments)
        status = lk_fail_memory("means", LK_STANDARDIZE_MOST * sizeof *moments);
    for (int i = 0; i < s->field_count && status == LK_OK; i++) {
        const int f = s->fields[i].field;
        const size_t bytes = AT_ONCE * lk_field_bytes(&lk_data_info(data)->fields[f]);
        if (!(to[f] = malloc(bytes)))
            status = lk_fail_memory("samples", bytes);
    }
    if (status == LK_OK)
        status = read_all(data, s, moments, to);
    if (status == LK_OK)
        take_moments(s, moments);
    for (int f = 0; f < LK_MOST_FIELDS; f++)
        free(to[f]);
    free(moments);
    return status;
}

/* The text of a stage without blanks around it. */
static const char *trim(const char *text, size_t *length)
{
    while (*length > 0 && *text == ' ') {
        text++;
        --*length;
    }
    while (*length > 0 && text[*length - 1] == ' ')
        --*length;
    return text;
}

/* Replaces the stage "standardize" of a pipeline's text by the measured one; others stay as
 * they are. */
static enum lk_status replace(const char *text, const char *measured, char **resolved)
{
    static const char name[] = "standardize";
    struct lk_text made = {0};
    for (const char *at = text; *at;) {
        size_t length = strcspn(at, "|");
        const char *next = at + length + (at[length] == '|');
        const char *stage = trim(at, &length);
        const bool is_it = strncmp(stage, name, strlen(name)) == 0 &&
                           (length == strlen(name) || stage[strlen(name)] == ' ');
        lk_text_append(&made, "%s", made.used ? " | " : "");
        if (is_it)
            lk_text_append(&made, "%s %s", name, measured);
        else
            lk_text_append(&made, "%.*s", (int)length, stage);
        at = next;
    }
    if (made.failed) {
        free(made.bytes);
        return lk_fail_memory("a pipeline", made.used);
    }
    *resolved = made.bytes;
    return LK_OK;
}

enum lk_status lk_pipeline_resolve_again(const struct lk_data *data, const char *text,
                                         struct lk_standardize *known, char **resolved)
{
    struct lk_pipeline pipeline;
    struct lk_standardize s;
    char measured[LK_STANDARDIZE_TEXT];
    LK_TRY(lk_pipeline_parse(text, true, &pipeline));
    if (pipeline.standardizes)
        LK_TRY(lk_standardize_parse(pipeline.standardize, &s));
    if (!pipeline.standardizes || s.is_measured) {
        *resolved = strdup(text);
        return *resolved ? LK_OK : lk_fail_memory("a pipeline", strlen(text));
    }
    if (!known->is_measured || known->by_field != s.by_field) {
        LK_TRY(measure(data, &s));
        *known = s;
    }
    if (!lk_standardize_print(known, measured, sizeof measured))
        return lk_fail(LK_E_ARGUMENT,
                       "stage 'standardize': its numbers take more than %d bytes",
                       LK_STANDARDIZE_TEXT);
    return replace(text, measured, resolved);
}

enum lk_status lk_pipeline_resolve(const struct lk_data *data, const char *text,
                                   char **resolved)
{
    struct lk_standardize known = {0};
    return lk_pipeline_resolve_again(data, text, &known, resolved);
}

/* Reads, checks and prints options according to a table of struct lk_option. */
#include "base/option.h"

#include "base/fail.h"
#include "base/number.h"
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NUMBERS = 8 }; /* of an option */

static void *field(const struct lk_option *row, void *options)
{
    return (char *)options + row->offset;
}

static const void *const_field(const struct lk_option *row, const void *options)
{
    return (const char *)options + row->offset;
}

const struct lk_option *lk_option_find(const struct lk_option *table, const char *name)
{
    for (const struct lk_option *row = table; row->kind != LK_OPTION_END; row++)
        if (strcmp(row->name, name) == 0)
            return row;
    return NULL;
}

static const char *row_name(const void *table, int i)
{
    return ((const struct lk_option *)table)[i].name;
}

static void print_limit(const struct lk_option *row, double limit, char text[32])
{
    if (row->kind == LK_OPTION_INT)
        snprintf(text, 32, "%.0f", limit);
    else
        lk_number_print(limit, text, 32);
}

static enum lk_status out_of_range(const struct lk_option *row, const char *value)
{
    char min[32], max[32];
    print_limit(row, row->min, min);
    print_limit(row, row->max, max);
    return lk_fail(LK_E_ARGUMENT, "option '%s': %s is not in %s..%s", row->name, value, min,
                   max);
}

static bool in_range(const struct lk_option *row, double number)
{
    return (row->min == 0 && row->max == 0) || (number >= row->min && number <= row->max);
}

static const char *skip(const char *p, const char *what)
{
    while (*p && strchr(what, *p))
        p++;
    return p;
}

static enum lk_status set_ints(const struct lk_option *row, void *options, const char *value)
{
    int64_t numbers[MOST_NUMBERS];
    const int most = row->count > 1 ? row->count : 1;
    int count = 0;
    const char *p = skip(value, " [(");
    while (count < most) {
        char *end;
        errno = 0;
        const long long number = strtoll(p, &end, 10);
        if (end == p || errno)
            break;
        if (!in_range(row, (double)number))
            return out_of_range(row, value);
        numbers[count++] = number;
        p = skip(end, " ,");
    }
    p = skip(p, " ])");
    if (*p || (count != 1 && count != most))
        return lk_fail(LK_E_ARGUMENT, "option '%s': '%s' is not %s", row->name, value,
                       most == 1 ? "a whole number" : "one whole number for each axis");
    int64_t *to = field(row, options);
    for (int i = 0; i < most; i++)
        to[i] = numbers[count == 1 ? 0 : i];
    return LK_OK;
}

static enum lk_status set_reals(const struct lk_option *row, void *options, const char *value)
{
    double numbers[MOST_NUMBERS];
    const int most = row->count > 1 ? row->count : 1;
    int count = 0;
    const char *p = most > 1 ? skip(value, " [(") : value;
    while (count < most) {
        char *end;
        const double number = lk_number_read(p, &end);
        if (end == p || !isfinite(number))
            break;
        if (!in_range(row, number))
            return out_of_range(row, value);
        numbers[count++] = number;
        p = skip(end, most > 1 ? " ," : " ");
    }
    p = most > 1 ? skip(p, " ])") : p;
    if (*p || (count != 1 && count != most))
        return lk_fail(LK_E_ARGUMENT, "option '%s': '%s' is not %s", row->name, value,
                       most == 1 ? "a number" : "one number, or one for each");
    double *to = field(row, options);
    for (int i = 0; i < most; i++)
        to[i] = numbers[count == 1 ? 0 : i];
    return LK_OK;
}

static enum lk_status set_bool(const struct lk_option *row, void *options, const char *value)
{
    static const char *const words[] = {"false", "true", "no", "yes", "0", "1", "off", "on"};
    for (int i = 0; i < LK_COUNT(words); i++)
        if (strcmp(value, words[i]) == 0) {
            *(bool *)field(row, options) = i % 2;
            return LK_OK;
        }
    return lk_fail(LK_E_ARGUMENT, "option '%s': '%s' is neither true nor false", row->name,
                   value);
}

static const char *choice_name(const void *choices, int i)
{
    return ((const char *const *)choices)[i];
}

static enum lk_status set_choice(const struct lk_option *row, void *options, const char *value)
{
    char known[512] = "";
    size_t used = 0;
    for (int i = 0; row->choices[i]; i++) {
        if (strcmp(value, row->choices[i]) == 0) {
            *(int *)field(row, options) = i;
            return LK_OK;
        }
        if (used < sizeof known)
            used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "",
                                     row->choices[i]);
    }
    const char *near = lk_nearest_name(value, choice_name, row->choices);
    return lk_fail(LK_E_ARGUMENT, "option '%s': '%s' is none of %s%s%s%s", row->name, value,
                   known, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static enum lk_status set_text(const struct lk_option *row, void *options, const char *value)
{
    const size_t length = strlen(value);
    if (length >= (size_t)row->count)
        return lk_fail(LK_E_ARGUMENT, "option '%s': %zu characters, at most %d", row->name,
                       length, row->count - 1);
    memcpy(field(row, options), value, length + 1);
    return LK_OK;
}

static enum lk_status set_row(const struct lk_option *row, void *options, const char *value)
{
    switch (row->kind) {
    case LK_OPTION_INT:
        return set_ints(row, options, value);
    case LK_OPTION_REAL:
        return set_reals(row, options, value);
    case LK_OPTION_BOOL:
        return set_bool(row, options, value);
    case LK_OPTION_CHOICE:
        return set_choice(row, options, value);
    case LK_OPTION_TEXT:
        return set_text(row, options, value);
    case LK_OPTION_END:
        break;
    }
    return lk_fail(LK_E_ARGUMENT, "option '%s' has no kind", row->name);
}

void lk_options_default(const struct lk_option *table, void *options)
{
    for (const struct lk_option *row = table; row->kind != LK_OPTION_END; row++)
        if (row->standard)
            (void)!set_row(row, options, row->standard);
}

enum lk_status lk_option_set(const struct lk_option *table, void *options, const char *name,
                             const char *value)
{
    const struct lk_option *row = lk_option_find(table, name);
    if (row)
        return set_row(row, options, value);
    const char *near = lk_nearest_name(name, row_name, table);
    return lk_fail(LK_E_ARGUMENT, "unknown option '%s'%s%s%s", name,
                   near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

/* Reads the next "name=value" of *text and moves *text behind it; a value may stand in [] or
 * "". Returns false at the end of the text and, with *malformed set, for anything else. */
static bool next_pair(const char **text, char name[64], char value[1024], bool *malformed)
{
    const char *p = skip(*text, " \t\n");
    if (!*p)
        return false;
    const size_t name_length = strcspn(p, "= \t\n");
    *malformed = name_length == 0 || name_length >= 64 || p[name_length] != '=';
    if (*malformed)
        return false;
    memcpy(name, p, name_length);
    name[name_length] = '\0';
    p += name_length + 1;
    const char open = *p, close = open == '[' ? ']' : '"';
    const bool quoted = open == '[' || open == '"';
    const char *end = quoted ? strchr(p + 1, close) : p + strcspn(p, " \t\n");
    *malformed = !end || end - p >= 1024;
    if (*malformed)
        return false;
    const char *from = open == '"' ? p + 1 : p;
    const size_t length = (size_t)(end - from) + (open == '[');
    memcpy(value, from, length);
    value[length] = '\0';
    *text = end + quoted;
    return true;
}

enum lk_status lk_options_parse(const struct lk_option *table, void *options, const char *text)
{
    char name[64], value[1024];
    bool malformed = false;
    uint64_t seen = 0;
    const char *p = text ? text : "";
    lk_options_default(table, options);
    while (next_pair(&p, name, value, &malformed)) {
        LK_TRY(lk_option_set(table, options, name, value));
        seen |= UINT64_C(1) << (lk_option_find(table, name) - table);
    }
    if (malformed)
        return lk_fail(LK_E_ARGUMENT, "expected name=value, found '%.40s'", skip(p, " \t\n"));
    for (int i = 0; table[i].kind != LK_OPTION_END; i++)
        if (!table[i].standard && !(seen >> i & 1))
            return lk_fail(LK_E_ARGUMENT, "option '%s' is missing", table[i].name);
    return LK_OK;
}

void lk_option_print(const struct lk_option *row, const void *options, char *text, size_t bytes)
{
    const void *at = const_field(row, options);
    size_t used = 0;
    switch (row->kind) {
    case LK_OPTION_INT:
        for (int i = 0; i < (row->count > 1 ? row->count : 1) && used < bytes; i++)
            used += (size_t)snprintf(text + used, bytes - used, "%s%lld", i ? "," : "",
                                     (long long)((const int64_t *)at)[i]);
        break;
    case LK_OPTION_REAL:
        for (int i = 0; i < (row->count > 1 ? row->count : 1) && used < bytes; i++) {
            char number[32];
            lk_number_print(((const double *)at)[i], number, sizeof number);
            used += (size_t)snprintf(text + used, bytes - used, "%s%s", i ? "," : "", number);
        }
        break;
    case LK_OPTION_BOOL:
        snprintf(text, bytes, "%s", *(const bool *)at ? "true" : "false");
        break;
    case LK_OPTION_CHOICE:
        snprintf(text, bytes, "%s", row->choices[*(const int *)at]);
        break;
    case LK_OPTION_TEXT:
        snprintf(text, bytes, "%s", (const char *)at);
        break;
    case LK_OPTION_END:
        break;
    }
}

bool lk_option_is(const struct lk_option *table, const void *options, const char *name,
                  const char *value)
{
    char text[1024];
    const struct lk_option *row = lk_option_find(table, name);
    if (!row)
        return false;
    lk_option_print(row, options, text, sizeof text);
    return strcmp(text, value) == 0;
}

/* Whether the option has its default: its text is that of the default read in. */
static bool is_default(const struct lk_option *row, const void *options)
{
    char now[1024], standard[1024];
    int64_t memory[256] = {0};
    struct lk_option alone = *row;
    if (!row->standard || (row->kind == LK_OPTION_TEXT && row->count > (int)sizeof memory))
        return false;
    alone.offset = 0;
    (void)!set_row(&alone, memory, row->standard);
    lk_option_print(&alone, memory, standard, sizeof standard);
    lk_option_print(row, options, now, sizeof now);
    return strcmp(now, standard) == 0;
}

bool lk_options_print(const struct lk_option *table, const void *options, bool all, char *text,
                      size_t bytes)
{
    size_t used = 0;
    if (bytes)
        text[0] = '\0';
    for (const struct lk_option *row = table; row->kind != LK_OPTION_END; row++) {
        char value[1024];
        if (!all && is_default(row, options))
            continue;
        lk_option_print(row, options, value, sizeof value);
        const bool quote = row->kind == LK_OPTION_TEXT;
        const int n = snprintf(text + used, bytes - used, "%s%s=%s%s%s", used ? " " : "",
                               row->name, quote ? "\"" : "", value, quote ? "\"" : "");
        if (n < 0 || (size_t)n >= bytes - used)
            return false;
        used += (size_t)n;
    }
    return true;
}

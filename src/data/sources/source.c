/* What all sources do with the text of a SPEC: options behind commas, short names, error
 * messages. */
#include "data/sources/source.h"

#include "base/fail.h"
#include "io/file.h"

#include <stdio.h>
#include <string.h>

void lk_source_name(const char *path, char name[64])
{
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/')
        end--;
    size_t begin = end;
    while (begin > 0 && path[begin - 1] != '/')
        begin--;
    snprintf(name, 64, "%.*s", (int)(end - begin), path + begin);
}

const char *const *lk_source_part_names(enum lk_data_part part)
{
    static const char *const tests[] = {"test", "val", "valid", "validation", NULL};
    static const char *const validations[] = {"val", "valid", "validation", "test", NULL};
    return part == LK_DATA_VALIDATION || part == LK_DATA_VALIDATION_OR_ALL ? validations
                                                                           : tests;
}

enum lk_data_part lk_source_part_named(const char *name)
{
    return strcmp(name, "test") == 0 ? LK_DATA_TEST : LK_DATA_VALIDATION;
}

bool lk_source_takes_all(enum lk_data_part part)
{
    return part != LK_DATA_TEST && part != LK_DATA_VALIDATION;
}

enum lk_status lk_source_fail_no_test(const char *kind, const char *text)
{
    return lk_fail(LK_E_IO,
                   "'%s:%s' has no test part; --val SPEC names one, and val=0.2 behind a comma "
                   "holds out a fifth of the samples",
                   kind, text);
}

enum lk_status lk_source_find_file(const char *kind, const char *spec, const char *ending,
                                   enum lk_data_part part, char path[LK_SOURCE_PATH],
                                   enum lk_data_part *found)
{
    const bool is_folder = lk_folder_exists(spec);
    *found = LK_DATA_TRAIN;
    if (strlen(spec) > LK_SOURCE_PATH - 16)
        return lk_fail(LK_E_ARGUMENT, "%s: a path of %zu bytes", kind, strlen(spec));
    if (!is_folder && !lk_source_takes_all(part))
        return lk_source_fail_no_test(kind, spec);
    if (is_folder)
        snprintf(path, LK_SOURCE_PATH, "%.4000s/train%s", spec, ending);
    else
        snprintf(path, LK_SOURCE_PATH, "%s", spec);
    if (part == LK_DATA_TRAIN || !is_folder)
        return LK_OK;
    for (const char *const *name = lk_source_part_names(part); *name; name++) {
        snprintf(path, LK_SOURCE_PATH, "%.4000s/%s%s", spec, *name, ending);
        *found = lk_source_part_named(*name);
        if (lk_file_exists(path))
            return LK_OK;
    }
    return lk_source_fail_no_test(kind, spec);
}

static const char *find_options(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz_";
    for (const char *c = text; (c = strchr(c, ',')); c++) {
        const size_t length = strspn(c + 1, letters);
        if (length > 0 && c[1 + length] == '=')
            return c;
    }
    return text + strlen(text);
}

char *lk_source_find_options(char *text)
{
    return text + (find_options(text) - text);
}

bool lk_source_find_option(const char *text, const char *name, char *value, size_t bytes)
{
    const size_t length = strlen(name);
    for (const char *at = find_options(text), *next; *at; at = next) {
        next = find_options(at + 1);
        const char *from = at + 2 + length; /* behind ",name=" */
        if (strncmp(at + 1, name, length) == 0 && at[1 + length] == '=' &&
            (size_t)(next - from) < bytes) {
            memcpy(value, from, (size_t)(next - from));
            value[next - from] = '\0';
            return true;
        }
    }
    return false;
}

char *lk_source_find_value(char *spec, const char *name, char **end)
{
    const size_t length = strlen(name);
    for (char *at = spec; (at = strchr(at, ',')) != NULL; at++)
        if (strncmp(at + 1, name, length) == 0 && at[1 + length] == '=') {
            char *value = at + length + 2;
            *end = value + strcspn(value, ",");
            return value;
        }
    return NULL;
}

void lk_source_cut_value(const char *name, char *value, const char *end)
{
    memmove(value - strlen(name) - 2, end, strlen(end) + 1);
}

bool lk_source_has_option(const char *text, const char *name)
{
    const size_t length = strlen(name);
    for (const char *c = text; (c = strchr(c, ',')); c++)
        if (strncmp(c + 1, name, length) == 0 && c[1 + length] == '=')
            return true;
    return false;
}

enum lk_status lk_source_parse_options(const struct lk_option *table, char *text, void *options)
{
    char *next = lk_source_find_options(text);
    lk_options_default(table, options);
    while (*next) {
        char *name = next + 1, *value = strchr(name, '=');
        *next = *value++ = '\0'; /* where options begin, a name and '=' stand */
        next = lk_source_find_options(value);
        const char end = *next;
        *next = '\0';
        LK_TRY(lk_option_set(table, options, name, value));
        *next = end;
    }
    return LK_OK;
}

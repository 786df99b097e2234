/* Questions about the values of a YAML document that was read. */
#include "model/yaml/yaml.h"

#include "base/fail.h"
#include "base/option.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const struct lk_yaml *lk_yaml_find(const struct lk_yaml *map, const char *key)
{
    for (const struct lk_yaml *entry = map->first; entry; entry = entry->next)
        if (entry->key && strcmp(entry->key, key) == 0)
            return entry;
    return NULL;
}

const struct lk_yaml *lk_yaml_item(const struct lk_yaml *list, int index)
{
    const struct lk_yaml *entry = index < 0 ? NULL : list->first;
    while (entry && index-- > 0)
        entry = entry->next;
    return entry;
}

const char *lk_yaml_found(const struct lk_yaml *value, char *text, size_t bytes)
{
    if (value->kind == LK_YAML_LIST)
        return "a list";
    if (value->kind == LK_YAML_MAP)
        return "a map";
    if (value->is_null)
        return "nothing";
    snprintf(text, bytes, "'%.60s'", value->text);
    return text;
}

static const char *known_key(const void *known, int i)
{
    return ((const char *const *)known)[i];
}

enum lk_status lk_yaml_check_keys(const struct lk_yaml *map, const char *const *known)
{
    char text[80];
    if (map->kind != LK_YAML_MAP)
        return lk_yaml_fail(map, "expected a map, found %s",
                            lk_yaml_found(map, text, sizeof text));
    for (const struct lk_yaml *entry = map->first; entry; entry = entry->next) {
        int i = 0;
        while (known[i] && strcmp(known[i], entry->key) != 0)
            i++;
        if (known[i])
            continue;
        const char *near = lk_nearest_name(entry->key, known_key, known);
        return lk_yaml_fail(entry, "unknown key '%.60s'%s%s%s", entry->key,
                            near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    }
    return LK_OK;
}

enum lk_status lk_yaml_fail(const struct lk_yaml *value, const char *format, ...)
{
    char text[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return lk_fail(LK_E_MODEL, "%s:%d: %s", value->where, value->line, text);
}

enum lk_status lk_yaml_at(const struct lk_yaml *value, enum lk_status status)
{
    if (status == LK_OK)
        return LK_OK;
    return lk_fail_within(status == LK_E_MEMORY ? status : LK_E_MODEL, "%s:%d", value->where,
                          value->line);
}

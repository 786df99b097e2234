/* Reads the options fields= and label= of a SPEC. */
#include "data/tables/groups.h"

#include "base/fail.h"
#include "data/sources/field.h"

#include <stdlib.h>
#include <string.h>

static enum lk_status add_group(struct lk_groups *groups, enum lk_field_role role,
                                const char *name)
{
    struct lk_group group = {.is_named = name, .role = role, .first = groups->members.count};
    if (!name)
        name = role == LK_FIELD_INPUT ? "numbers" : "label";
    if (!lk_field_name_fits(name))
        return lk_fail(
            LK_E_ARGUMENT,
            "'%.150s' cannot name a field: up to 127 letters, digits and _ . - / can", name);
    for (int i = 0; i < groups->count; i++)
        if (strcmp(groups->items[i].name, name) == 0)
            return lk_fail(LK_E_ARGUMENT, "the field '%s' is there twice", name);
    if (groups->count == LK_MOST_FIELDS)
        return lk_fail(LK_E_ARGUMENT, "more than %d fields", LK_MOST_FIELDS);
    LK_TRY(lk_arena_text(&groups->arena, name, &group.name));
    groups->items[groups->count++] = group;
    return LK_OK;
}

/* "a+b": members of the last group. */
static enum lk_status add_members(struct lk_groups *groups, const char *text, size_t length)
{
    for (const char *at = text; at <= text + length;) {
        const char *plus = memchr(at, '+', (size_t)(text + length - at));
        const char *end = plus ? plus : text + length;
        char name[256];
        if (end == at || (size_t)(end - at) >= sizeof name)
            return lk_fail(LK_E_ARGUMENT, "a column with %s name",
                           end == at ? "an empty" : "too long a");
        memcpy(name, at, (size_t)(end - at));
        name[end - at] = '\0';
        LK_TRY(lk_names_add(&groups->members, name));
        groups->items[groups->count - 1].count++;
        at = end + 1;
    }
    return LK_OK;
}

/* The items that have a name; or those that have none, all in one group. */
static enum lk_status add_items(struct lk_groups *groups, enum lk_field_role role,
                                const char *text, bool are_named)
{
    bool has_group = false;
    for (const char *at = text; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        const size_t length = strcspn(at, ","), name = strcspn(at, ":,");
        if ((name < length) != are_named)
            continue;
        if (are_named) {
            char *copy = strndup(at, name);
            const enum lk_status status =
                copy ? add_group(groups, role, copy) : lk_fail_memory("a name", name);
            free(copy);
            LK_TRY(status);
            LK_TRY(add_members(groups, at + name + 1, length - name - 1));
            continue;
        }
        if (!has_group)
            LK_TRY(add_group(groups, role, NULL));
        has_group = true;
        LK_TRY(add_members(groups, at, length));
    }
    return LK_OK;
}

enum lk_status lk_groups_add(struct lk_groups *groups, enum lk_field_role role,
                             const char *text)
{
    enum lk_status status = add_items(groups, role, text, false);
    if (status == LK_OK)
        status = add_items(groups, role, text, true);
    return status == LK_OK ? LK_OK
                           : lk_fail_within(status, "%s=%.200s",
                                            role == LK_FIELD_INPUT ? "fields" : "label", text);
}

void lk_groups_clear(struct lk_groups *groups)
{
    lk_arena_clear(&groups->arena);
    lk_names_clear(&groups->members);
    *groups = (struct lk_groups){0};
}

/* Lists of devices as users write them. */
#include "device/open/list.h"

#include "base/fail.h"
#include "base/variables.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_class(cl_device_id id, bool cpu)
{
    cl_device_type type = 0;
    clGetDeviceInfo(id, CL_DEVICE_TYPE, sizeof type, &type, NULL);
    return ((type & CL_DEVICE_TYPE_CPU) != 0) == cpu;
}

static enum lk_status add_entry(struct lk_device_list *list, struct lk_device_entry entry)
{
    if (list->count == LK_MOST_DEVICES)
        return lk_fail(LK_E_ARGUMENT, "more than %d devices", LK_MOST_DEVICES);
    list->entries[list->count++] = entry;
    return LK_OK;
}

/* Refuses a device that an earlier word of the list names: it would get work for each of them.
 */
static enum lk_status check_new(const struct lk_device_list *list, int index)
{
    for (int i = 0; i < list->count; i++)
        if (list->entries[i].index == index)
            return lk_fail(LK_E_ARGUMENT,
                           "device %d is named twice; '%d*2' makes two replicas on it, '%d/2' "
                           "cuts it in two",
                           index, index, index);
    return LK_OK;
}

static enum lk_status add_word(struct lk_device_list *list, const char *word)
{
    char *end;
    const bool all = strcmp(word, "all") == 0, cpu = strcmp(word, "cpu") == 0;
    if (all || cpu || strcmp(word, "gpu") == 0) {
        const int before = list->count;
        for (int i = 0; i < list->known; i++)
            if (all || is_class(list->ids[i], cpu)) {
                LK_TRY(check_new(list, i));
                LK_TRY(add_entry(list, (struct lk_device_entry){i, 0, 1}));
            }
        if (list->count == before)
            return lk_fail(LK_E_NO_DEVICE, "device list '%s': there is no %s among %d device%s",
                           word, word, list->known, list->known == 1 ? "" : "s");
        return LK_OK;
    }
    const long index = strtol(word, &end, 10);
    if (!*word)
        return lk_fail(LK_E_ARGUMENT, "a list of devices has an empty place: expected '0,1'");
    if (end == word)
        return lk_fail(
            LK_E_ARGUMENT,
            "device '%s' is not a number, 'N/PARTS', 'N*COPIES', all, gpu or cpu, or some of "
            "these with '+' between them",
            word);
    if (index < 0 || index >= list->known)
        return lk_fail(LK_E_NO_DEVICE, "device %ld is not there: there %s %d, numbered from 0",
                       index, list->known == 1 ? "is" : "are", list->known);
    LK_TRY(check_new(list, (int)index));
    if (!*end)
        return add_entry(list, (struct lk_device_entry){(int)index, 0, 1});
    const bool cut = *end == '/', copied = *end == '*';
    const long parts = strtol(end + 1, &end, 10);
    if ((!cut && !copied) || *end || parts < 1 || parts > LK_MOST_DEVICES)
        return lk_fail(LK_E_ARGUMENT,
                       "device '%s': expected N, N/PARTS or N*COPIES, at most %d of them", word,
                       LK_MOST_DEVICES);
    for (int i = 0; i < (int)parts; i++)
        LK_TRY(add_entry(
            list, (struct lk_device_entry){(int)index, cut ? i : 0, cut ? (int)parts : 1}));
    return LK_OK;
}

/* What stands between two commas: a word, or the words of a group. All groups are equal, as
 * each computes the same parts of a model. */
static enum lk_status add_group(struct lk_device_list *list, char *text)
{
    const int before = list->count;
    const bool is_group = strchr(text, '+') != NULL;
    char *rest = text;
    while (rest) {
        char *word = rest;
        rest = strchr(rest, '+');
        if (rest)
            *rest++ = '\0';
        LK_TRY(add_word(list, word));
    }
    const int added = list->count - before;
    if (is_group ? before > 0 && added != list->each : list->each > 0)
        return lk_fail(LK_E_ARGUMENT,
                       "a list of devices has groups of %d and of %d: expected groups of one "
                       "size, '0+1,2+3'",
                       list->each > 0 ? list->each : 1, added);
    list->each = is_group ? added : 0;
    return LK_OK;
}

enum lk_status lk_device_list_parse(const char *spec, struct lk_device_list *list)
{
    char text[512], *rest = text;
    list->count = list->each = 0;
    LK_TRY(lk_variables_check());
    LK_TRY(lk_opencl_list(list->ids, &list->known));
    if (!spec || !*spec)
        spec = getenv("LOCKSTEP_DEVICE");
    if (!spec || !*spec) {
        for (int i = 0; i < list->known; i++)
            if (is_class(list->ids[i], false))
                return add_entry(list, (struct lk_device_entry){i, 0, 1});
        return add_entry(list, (struct lk_device_entry){0, 0, 1});
    }
    if (strlen(spec) >= sizeof text)
        return lk_fail(LK_E_ARGUMENT, "device list of %zu characters", strlen(spec));
    snprintf(text, sizeof text, "%s", spec);
    while (rest) {
        char *word = rest;
        rest = strchr(rest, ',');
        if (rest)
            *rest++ = '\0';
        LK_TRY(add_group(list, word));
    }
    return LK_OK;
}

enum lk_status lk_device_count(int *count)
{
    cl_device_id ids[LK_MOST_DEVICES];
    LK_TRY(lk_variables_check());
    return lk_opencl_list(ids, count);
}

enum lk_status lk_device_query(int index, struct lk_device_info *info)
{
    cl_device_id ids[LK_MOST_DEVICES];
    int count;
    LK_TRY(lk_opencl_list(ids, &count));
    if (index < 0 || index >= count)
        return lk_fail(LK_E_NO_DEVICE, "device %d is not there: there are %d", index, count);
    return lk_opencl_describe(ids[index], index, info);
}

enum lk_status lk_device_list_count(const char *spec, int *count)
{
    struct lk_device_list list;
    LK_TRY(lk_device_list_parse(spec, &list));
    *count = list.count;
    return LK_OK;
}

enum lk_status lk_device_list_groups(const char *spec, int *each)
{
    struct lk_device_list list;
    LK_TRY(lk_device_list_parse(spec, &list));
    *each = list.each;
    return LK_OK;
}

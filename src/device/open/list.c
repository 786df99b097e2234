/* Lists of devices as users write them. */
#include "device/open/list.h"

#include "base/fail.h"
#include "base/variables.h"
#include "device/device.h"
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
 * Two parts of one are two. */
static enum lk_status check_new(const struct lk_device_list *list, int index, int sub)
{
    for (int i = 0; i < list->count; i++)
        if (list->entries[i].index == index &&
            (sub < 0 || list->entries[i].subs == 1 || list->entries[i].sub == sub))
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
                LK_TRY(check_new(list, i, -1));
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
    const bool cut = *end == '/', copied = *end == '*';
    const long parts = *end ? strtol(end + 1, &end, 10) : 1;
    const bool is_part = cut && *end == '.';
    const long part = is_part ? strtol(end + 1, &end, 10) : -1;
    if (*end || parts < 1 || parts > LK_MOST_DEVICES ||
        (is_part && (part < 0 || part >= parts)))
        return lk_fail(LK_E_ARGUMENT,
                       "device '%s': expected N, N/PARTS, N/PARTS.PART or N*COPIES, at most %d "
                       "of them",
                       word, LK_MOST_DEVICES);
    LK_TRY(check_new(list, (int)index, (int)part));
    if (!cut && !copied)
        return add_entry(list, (struct lk_device_entry){(int)index, 0, 1});
    if (is_part)
        return add_entry(list, (struct lk_device_entry){(int)index, (int)part, (int)parts});
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

/* Whether it still takes and gives back numbers. */
static bool works(const char *spec, int position)
{
    struct lk_device *device = NULL;
    struct lk_buffer *buffer = NULL;
    const uint32_t sent[] = {0x12345678, 0x9abcdef0};
    uint32_t found[LK_COUNT(sent)] = {0};
    enum lk_status status = lk_device_open(spec, position, &device);
    if (status == LK_OK)
        status = lk_buffer_create(device, sizeof sent, &buffer);
    if (status == LK_OK)
        status = lk_buffer_write(buffer, 0, sizeof sent, sent);
    if (status == LK_OK)
        status = lk_buffer_read(buffer, 0, sizeof found, found);
    lk_buffer_destroy(buffer);
    lk_device_close(device);
    lk_error_clear();
    return status == LK_OK && memcmp(sent, found, sizeof sent) == 0;
}

/* "2", "0*3", "0/4.1" */
static void print_entry(const struct lk_device_entry *entry, int copies, char *text,
                        size_t bytes)
{
    const size_t used = strlen(text);
    const char *comma = used ? "," : "";
    if (entry->subs > 1)
        snprintf(text + used, bytes - used, "%s%d/%d.%d", comma, entry->index, entry->subs,
                 entry->sub);
    else if (copies > 1)
        snprintf(text + used, bytes - used, "%s%d*%d", comma, entry->index, copies);
    else
        snprintf(text + used, bytes - used, "%s%d", comma, entry->index);
}

enum lk_status lk_device_list_left(const char *spec, const bool *is_lost, char *left,
                                   size_t bytes, int *count)
{
    struct lk_device_list list;
    bool is_there[LK_MOST_DEVICES];
    LK_TRY(lk_device_list_parse(spec, &list));
    *count = 0;
    *left = '\0';
    for (int i = 0; i < list.count; i++) {
        is_there[i] = !is_lost[i] && works(spec, i);
        *count += is_there[i];
    }
    for (int i = 0; i < list.count; i++) {
        int copies = 0;
        for (int j = i; is_there[i] && j < list.count; j++)
            if (is_there[j] && list.entries[j].index == list.entries[i].index &&
                list.entries[j].subs == 1 && list.entries[i].subs == 1) {
                copies++;
                is_there[j] = j == i;
            }
        if (is_there[i])
            print_entry(&list.entries[i], copies, left, bytes);
    }
    return LK_OK;
}

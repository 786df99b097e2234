/* Labels of records, and the classes they stand for. */
#include "data/sources/tfrecord.h"

#include "base/fail.h"
#include "io/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Fails for a list of numbers where something else is wanted, and says how such lists are
 * read. */
static enum lk_status fail_numbers(const char *what, const char *key,
                                   const struct lk_example_list *list)
{
    const bool is_floats = list->kind == LK_EXAMPLE_FLOATS;
    const int64_t count =
        is_floats ? lk_example_floats(list, NULL, 0) : lk_example_ints(list, NULL, 0);
    return lk_fail(LK_E_DATA,
                   "the key '%s' holds %lld %s, no %s; the option fields=%s reads them as "
                   "numbers",
                   key, (long long)count, is_floats ? "floats" : "whole numbers", what, key);
}

enum lk_status lk_records_fail_key(const char *what, const char *key,
                                   struct lk_example_bytes record)
{
    char keys[512];
    struct lk_example_list list;
    LK_TRY(lk_example_find(record, key, &list));
    if (strcmp(what, "image") == 0 &&
        (list.kind == LK_EXAMPLE_FLOATS || list.kind == LK_EXAMPLE_INTS))
        return fail_numbers(what, key, &list);
    lk_example_print_keys(record, keys, sizeof keys);
    return lk_fail(LK_E_DATA, "no %s under the key '%s'; there are %s (option %s=KEY)", what,
                   key, *keys ? keys : "no keys",
                   strcmp(what, "numbers") == 0 ? "fields" : what);
}

enum lk_status lk_records_label(const struct lk_records *records,
                                struct lk_example_bytes record, int64_t *label)
{
    const char *key = records->options.label;
    struct lk_example_list list;
    struct lk_example_bytes name;
    int64_t found = 0;
    LK_TRY(lk_example_find(record, key, &list));
    if (lk_example_int_at(&list, 0, &found)) {
        if (__builtin_add_overflow(found, records->options.offset, label))
            return lk_fail(LK_E_DATA, "label %lld is none", (long long)found);
        return LK_OK;
    }
    if (!lk_example_bytes_at(&list, 0, &name))
        return lk_records_fail_key("label", key, record);
    for (int i = 0; i < records->classes.count; i++)
        if (strlen(records->classes.items[i]) == name.bytes &&
            memcmp(records->classes.items[i], name.data, name.bytes) == 0) {
            *label = i;
            return LK_OK;
        }
    return lk_fail(LK_E_DATA, "label '%.*s' is no number%s",
                   (int)(name.bytes < 64 ? name.bytes : 64), (const char *)name.data,
                   records->classes.count ? " and none of the classes"
                                          : "; classes=FILE says what it stands for");
}

enum lk_status lk_records_text(struct lk_example_bytes record, const char *key, char *text,
                               size_t room)
{
    struct lk_example_list list;
    struct lk_example_bytes found;
    LK_TRY(lk_example_find(record, key, &list));
    if (lk_example_bytes_at(&list, 0, &found) && found.bytes < room)
        snprintf(text, room, "%.*s", (int)found.bytes, (const char *)found.data);
    return LK_OK;
}

/* What reading all records finds. */
struct seen {
    const struct lk_records *records;
    int64_t largest;
    const char **names; /* [room]: names of classes, as the first record of each calls it */
    int64_t room;
    bool has_names; /* every record so far has had a name */
    struct lk_arena arena;
};

/* Keeps the name of a record's class. false: it has none, or there is no memory. */
static bool keep_name(struct seen *seen, struct lk_example_bytes record, int64_t label)
{
    char text[256] = "";
    void *kept;
    if (label >= seen->room) {
        const int64_t room = 2 * label + 16;
        const char **names = realloc(seen->names, (size_t)room * sizeof *names);
        if (!names)
            return false;
        memset(names + seen->room, 0, (size_t)(room - seen->room) * sizeof *names);
        seen->names = names;
        seen->room = room;
    }
    if (seen->names[label])
        return true;
    if (lk_records_text(record, "image/class/text", text, sizeof text) != LK_OK || !*text ||
        lk_arena_allocate(&seen->arena, strlen(text) + 1, &kept) != LK_OK)
        return false;
    memcpy(kept, text, strlen(text) + 1);
    seen->names[label] = kept;
    return true;
}

static void see_label(void *context, const void *data, size_t bytes)
{
    struct seen *seen = context;
    const struct lk_example_bytes record = {data, bytes};
    int64_t label = 0;
    const enum lk_status status = lk_records_label(seen->records, record, &label);
    if (status == LK_OK && label >= 0 && label < LK_MOST_CLASSES) {
        seen->largest = label > seen->largest ? label : seen->largest;
        seen->has_names = seen->has_names && keep_name(seen, record, label);
    }
    lk_error_clear(); /* the record will count as broken when it is read */
}

/* Takes the names of classes in the order of labels, if every class has a name of its own. */
static enum lk_status take_names(const struct seen *seen, struct lk_names *classes)
{
    struct lk_names sorted = {0};
    enum lk_status status = LK_OK;
    bool fits = seen->has_names && seen->largest < seen->room;
    for (int64_t i = 0; fits && i <= seen->largest && status == LK_OK; i++) {
        fits = seen->names[i];
        if (fits)
            status = lk_names_add(&sorted, seen->names[i]);
    }
    if (fits)
        lk_names_sort(&sorted);
    for (int i = 1; fits && i < sorted.count; i++)
        fits = strcmp(sorted.items[i - 1], sorted.items[i]) != 0;
    for (int64_t i = 0; fits && i <= seen->largest && status == LK_OK; i++)
        status = lk_names_add(classes, seen->names[i]);
    lk_names_clear(&sorted);
    return status;
}

/* Reads all records to find the classes: 0 to the largest label, with the names that records
 * have for them. */
static enum lk_status look_for_classes(struct lk_records *records, int *classes)
{
    struct seen seen = {.records = records, .has_names = true};
    enum lk_status status = LK_OK;
    for (int i = 0; i < records->file_count && status == LK_OK; i++)
        status = lk_tfrecord_each(records->files[i], see_label, &seen);
    if (status == LK_OK)
        status = take_names(&seen, &records->classes);
    free(seen.names);
    lk_arena_clear(&seen.arena);
    *classes = (int)seen.largest + 1;
    return status;
}

/* Whether a list of names calls the first record's class as the record itself does. */
static bool agrees(const struct lk_records *records)
{
    struct lk_sample_metadata about = {0};
    void *data = NULL;
    size_t bytes = 0;
    bool is_same = false;
    if (lk_tfrecord_count(records->files[0]) > 0 &&
        lk_tfrecord_read(records->files[0], 0, &data, &bytes) == LK_OK) {
        const struct lk_example_bytes record = {data, bytes};
        is_same = lk_records_label(records, record, &about.label) == LK_OK &&
                  about.label >= 0 && about.label < records->classes.count &&
                  lk_records_text(record, "image/class/text", about.class_name,
                                  sizeof about.class_name) == LK_OK &&
                  strcmp(records->classes.items[about.label], about.class_name) == 0;
        free(data);
    }
    lk_error_clear();
    return is_same;
}

/* Takes the classes from a folder's labels.txt, if there is one that fits. */
static void read_classes(struct lk_records *records, const char *folder)
{
    char path[4096];
    if (snprintf(path, sizeof path, "%s/labels.txt", folder) >= (int)sizeof path ||
        !lk_file_exists(path))
        return;
    if (lk_names_read(&records->classes, path) != LK_OK || !agrees(records))
        lk_names_clear(&records->classes);
    lk_error_clear();
}

enum lk_status lk_records_find_classes(struct lk_records *records, const char *text,
                                       struct lk_data_info *info)
{
    const char *given = records->options.classes;
    char *end;
    const long number = strtol(given, &end, 10);
    if (*given && !*end && number >= 1 && number <= LK_MOST_CLASSES) {
        info->classes = (int)number;
    } else if (*given) {
        LK_TRY(lk_names_read(&records->classes, given));
    } else {
        read_classes(records, text);
        if (records->classes.count == 0)
            LK_TRY(look_for_classes(records, &info->classes));
    }
    if (records->classes.count > 0) {
        info->classes = records->classes.count;
        info->class_names = records->classes.items;
    }
    return LK_OK;
}

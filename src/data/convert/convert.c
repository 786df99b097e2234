/* Runs a conversion, from reading its options to its report. */
#include "data/convert/convert.h"

#include "base/fail.h"
#include "base/log.h"
#include "data/sources/names.h"
#include "io/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SHARD_SAMPLES = 1024, MOST_SHARDS = 99999, MOST_SIDE = 4096 };

static enum lk_status check_options(const struct lk_conversion_options *o)
{
    if (o->shards < 0 || o->shards > MOST_SHARDS)
        return lk_fail(LK_E_ARGUMENT, "%d shards: expected 1..%d", o->shards, MOST_SHARDS);
    if ((o->height == 0) != (o->width == 0) || o->height < 0 || o->width < 0 ||
        o->height > MOST_SIDE || o->width > MOST_SIDE)
        return lk_fail(LK_E_ARGUMENT, "images of %dx%d: expected sides of 1..%d", o->height,
                       o->width, MOST_SIDE);
    return LK_OK;
}

static const struct lk_option key_options[] = {
    {LK_IMAGE_TEXT(image), .standard = "image/encoded"},
    {LK_IMAGE_TEXT(label), .standard = "image/class/label"},
    {LK_IMAGE_OPTION(offset), .kind = LK_OPTION_INT, .count = 1, .min = -1e6, .max = 1e6,
     .standard = "0"},
    {0},
};

/* Reads the keys for images and labels of the target; they must not be those that every record
 * has. */
static enum lk_status parse_keys(struct lk_conversion *c, const char *options)
{
    static const char *const taken[] = {"image/filename", "image/format", "image/height",
                                        "image/width", "image/class/text"};
    char text[1024], *next = text;
    lk_options_default(key_options, &c->keys);
    if (snprintf(text, sizeof text, "%s", options) >= (int)sizeof text)
        return lk_fail(LK_E_ARGUMENT, "options of more than %zu bytes", sizeof text);
    while (*next) {
        char *name = next + 1, *value = strchr(name, '=');
        *value++ = '\0'; /* lk_source_find_options() has found a name and '=' */
        next = lk_source_find_options(value);
        const char end = *next;
        *next = '\0';
        LK_TRY(lk_option_set(key_options, &c->keys, name, value));
        *next = end;
    }
    for (int i = 0; i < LK_COUNT(taken); i++)
        if (strcmp(c->keys.image, taken[i]) == 0 || strcmp(c->keys.label, taken[i]) == 0)
            return lk_fail(LK_E_ARGUMENT, "the key '%s' is taken", taken[i]);
    if (strcmp(c->keys.image, c->keys.label) == 0 || !*c->keys.image || !*c->keys.label)
        return lk_fail(LK_E_ARGUMENT,
                       "image and label need keys of their own, found '%s' and "
                       "'%s'",
                       c->keys.image, c->keys.label);
    return LK_OK;
}

/* Unless the target says what it is, a folder becomes TFRecords, and anything else a folder of
 * files. */
static enum lk_status find_target(struct lk_conversion *c, const char *target)
{
    const bool is_folder = strncmp(target, "folder:", 7) == 0;
    const bool is_shards = strncmp(target, "tfrecord:", 9) == 0;
    c->kind = is_folder                                 ? LK_CONVERT_FOLDER
              : is_shards                               ? LK_CONVERT_SHARDS
              : strncmp(c->source, "tfrecord:", 9) == 0 ? LK_CONVERT_FOLDER
                                                        : LK_CONVERT_SHARDS;
    const char *kind = c->kind == LK_CONVERT_FOLDER ? "folder:" : "tfrecord:";
    const size_t bytes = strlen(target) + 16;
    c->target = malloc(bytes);
    if (!c->target)
        return lk_fail_memory("a SPEC", bytes);
    snprintf(c->target, bytes, "%s%s", is_folder || is_shards ? "" : kind, target);
    char *folder = c->target + strlen(kind), *options = lk_source_find_options(folder);
    c->folder = folder;
    if (*options && c->kind == LK_CONVERT_FOLDER)
        return lk_fail(LK_E_ARGUMENT, "a folder as a target has no options, found '%s'",
                       options + 1);
    LK_TRY(parse_keys(c, options));
    *options = '\0';
    return *folder ? LK_OK : lk_fail(LK_E_ARGUMENT, "'%s' names no folder", target);
}

static void choose_shards(struct lk_conversion *c)
{
    for (int i = 0; i < c->part_count; i++) {
        struct lk_convert_part *part = &c->parts[i];
        int64_t shards = c->options.shards;
        if (shards == 0)
            shards = (part->count + SHARD_SAMPLES - 1) / SHARD_SAMPLES;
        shards = shards > part->count ? part->count : shards;
        shards = shards > MOST_SHARDS ? MOST_SHARDS : shards;
        part->shards = c->kind == LK_CONVERT_SHARDS ? (int)shards : 0;
        part->report = &c->reports[i];
    }
}

/* Classes become folders. Classes without a name are called by their number, with zeros in
 * front so that folders sort by it; characters that paths cannot have are replaced. */
static enum lk_status name_folders(struct lk_conversion *c)
{
    char name[256];
    const int digits = snprintf(name, sizeof name, "%d", c->class_count - 1);
    for (int i = 0; i < c->class_count; i++) {
        if (c->classes[i])
            snprintf(name, sizeof name, "%s", c->classes[i]);
        else
            snprintf(name, sizeof name, "%0*d", digits, i);
        for (char *p = name; *p; p++)
            if (*p == '/' || (p == name && *p == '.'))
                *p = '_';
        LK_TRY(lk_arena_text(&c->arena, name, &c->classes[i]));
    }
    return LK_OK;
}

static enum lk_status check_classes(const struct lk_conversion *c)
{
    bool is_sorted = true;
    for (int i = 0; i < c->class_count; i++)
        for (int k = 0; k < i; k++) {
            const char *a = c->classes[k], *b = c->classes[i];
            if (a && b && strcmp(a, b) == 0)
                return lk_fail(LK_E_DATA, "the classes %d and %d are both called '%s'", k, i,
                               a);
            is_sorted = is_sorted && !(a && b && strcmp(a, b) > 0);
        }
    if (c->kind == LK_CONVERT_FOLDER && !is_sorted)
        lk_log(LK_LOG_INFO,
               "the order of classes is not that of their names: "
               "%s,classes=%s/labels.txt reads them with the labels they have",
               c->target, c->folder);
    return LK_OK;
}

static enum lk_status prepare(struct lk_conversion *c, const char *source, const char *target)
{
    LK_TRY(check_options(&c->options));
    c->source = strdup(source);
    if (!c->source)
        return lk_fail_memory("a SPEC", strlen(source));
    LK_TRY(lk_convert_find_parts(c));
    LK_TRY(find_target(c, target));
    LK_TRY(lk_convert_check_apart(c));
    choose_shards(c);
    LK_TRY(lk_convert_list(c));
    if (c->kind == LK_CONVERT_FOLDER)
        LK_TRY(name_folders(c));
    return check_classes(c);
}

enum lk_status lk_conversion_create(const char *source, const char *target,
                                    const struct lk_conversion_options *options,
                                    struct lk_conversion **conversion)
{
    struct lk_conversion *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("a conversion", sizeof *made);
    if (options)
        made->options = *options;
    made->lock = -1;
    made->threads = lk_parallel_threads(made->options.threads);
    atomic_init(&made->stop, false);
    const enum lk_status status = prepare(made, source, target);
    if (status != LK_OK) {
        lk_conversion_destroy(made);
        return status;
    }
    *conversion = made;
    return LK_OK;
}

void lk_conversion_destroy(struct lk_conversion *conversion)
{
    if (!conversion)
        return;
    for (int i = 0; i < LK_CONVERT_PARTS; i++) {
        lk_data_close(conversion->parts[i].data);
        free(conversion->parts[i].samples);
        free(conversion->parts[i].counts);
    }
    if (conversion->lock >= 0)
        close(conversion->lock);
    lk_arena_clear(&conversion->arena);
    free(conversion->classes);
    free(conversion->skipped.bytes);
    free(conversion->source);
    free(conversion->target);
    free(conversion);
}

static void make_report(struct lk_conversion *c)
{
    for (int i = 0; i < c->part_count; i++) {
        struct lk_conversion_part *report = &c->reports[i];
        report->name = c->parts[i].name;
        report->skipped = c->parts[i].bad;
        report->shards = c->parts[i].shards;
        report->counts = c->parts[i].counts;
    }
    c->report = (struct lk_conversion_report){.target = c->target,
                                              .classes = c->class_count,
                                              .class_names = c->classes,
                                              .part_count = c->part_count,
                                              .parts = c->reports,
                                              .bytes = c->bytes};
}

enum lk_status lk_conversion_run(struct lk_conversion *conversion)
{
    LK_TRY(lk_convert_begin(conversion));
    LK_TRY(conversion->kind == LK_CONVERT_SHARDS ? lk_convert_write_shards(conversion)
                                                 : lk_convert_write_files(conversion));
    LK_TRY(lk_convert_finish(conversion));
    make_report(conversion);
    return LK_OK;
}

void lk_conversion_stop(struct lk_conversion *conversion)
{
    atomic_store(&conversion->stop, true);
}

const struct lk_conversion_report *lk_conversion_report(const struct lk_conversion *conversion)
{
    return &conversion->report;
}

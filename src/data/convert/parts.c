/* Finds what is to be converted: the parts of a SPEC or of a path. */
#include "base/fail.h"
#include "base/log.h"
#include "data/convert/convert.h"
#include "data/data.h"
#include "data/sources/named_sets.h"
#include "data/sources/names.h"
#include "io/file.h"

#include <dirent.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool contains(const char *text, const char *part)
{
    return strstr(text, part) != NULL;
}

/* What lies in a folder, which tells of what kind it is. */
struct signs {
    int folders, shards, idx;
};

static struct signs look_into(const char *path)
{
    struct signs signs = {0};
    DIR *folder = opendir(path);
    for (const struct dirent *entry; folder && (entry = readdir(folder));) {
        char inner[LK_CONVERT_PATH];
        const char *name = entry->d_name;
        if (name[0] == '.' ||
            snprintf(inner, sizeof inner, "%s/%s", path, name) >= (int)sizeof inner)
            continue;
        signs.folders += lk_folder_exists(inner);
        signs.shards += contains(name, ".tfrecord") || contains(name, "-of-");
        signs.idx += contains(name, "-idx3-ubyte") || contains(name, ".idx3-ubyte");
    }
    if (folder)
        closedir(folder);
    return signs;
}

const char *lk_convert_guess(const char *path)
{
    if (lk_folder_exists(path)) {
        const struct signs found = look_into(path);
        const int kinds = (found.folders > 0) + (found.shards > 0) + (found.idx > 0);
        return kinds != 1 ? NULL : found.shards ? "tfrecord" : found.idx ? "idx" : "folder";
    }
    const size_t length = strlen(path);
    if (contains(path, ".tfrecord") || strpbrk(path, "*?"))
        return "tfrecord";
    return length > 4 && strcasecmp(path + length - 4, ".csv") == 0 ? "csv" : NULL;
}

/* Makes a SPEC of a path. What begins with a kind, or is a known name, is one already. */
static enum lk_status complete(struct lk_conversion *c)
{
    const char *source = c->source, *kind;
    const size_t length = strcspn(source, ":/");
    bool is_spec = source[length] == ':';
    for (const struct lk_named_set *row = lk_named_sets; row->name; row++)
        is_spec = is_spec || strcmp(row->name, source) == 0;
    if (is_spec)
        return LK_OK;
    kind = lk_convert_guess(source);
    if (!kind && (lk_folder_exists(source) || lk_file_exists(source)))
        return lk_fail(LK_E_ARGUMENT,
                       "'%s' can be read in no way or in several; say which: folder:%s, "
                       "tfrecord:%s, idx:%s or csv:%s",
                       source, source, source, source, source);
    if (!kind)
        return strchr(source, '/') ? lk_fail(LK_E_IO, "there is no '%s'", source) : LK_OK;
    struct lk_text text = {0};
    lk_text_append(&text, "%s:%s", kind, source);
    if (text.failed)
        return lk_fail_memory("a SPEC", strlen(source));
    free(c->source);
    c->source = text.bytes;
    return LK_OK;
}

/* Checks that samples are an image and its class: records and folders of images have nothing
 * else. */
static enum lk_status check_fields(const struct lk_data *data)
{
    for (int i = 0; i < data->info.field_count; i++)
        if (i != data->image && i != data->label)
            return lk_fail(LK_E_UNSUPPORTED,
                           "%s: the field '%s' cannot be converted: only images with a class "
                           "each can",
                           data->info.name, data->info.fields[i].name);
    return lk_data_check_image(data);
}

static enum lk_status add_part(struct lk_conversion *c, const char *name, const char *spec,
                               enum lk_data_part which)
{
    /* a fixed size, so that no image is decoded to find one */
    const struct lk_data_options wanted = {
        .height = 1, .width = 1, .channels = 3, .max_bad = c->options.max_bad};
    struct lk_convert_part *part = &c->parts[c->part_count];
    LK_TRY(lk_data_open_as(spec, which, &wanted, &part->data));
    c->part_count++;
    snprintf(part->name, sizeof part->name, "%s", name);
    LK_TRY(check_fields(part->data));
    part->count = lk_data_info(part->data)->count;
    part->bad = lk_data_bad(part->data);
    part->most_bad = part->data->broken ? lk_broken_most(part->data->broken, part->count) : 0;
    return LK_OK;
}

static bool has_part(const char *kind, const char *path, const char *name)
{
    char inner[LK_CONVERT_PATH];
    glob_t found = {0};
    snprintf(inner, sizeof inner, "%s/%s%s", path, name, *kind == 't' ? "*" : "");
    if (*kind == 'f')
        return lk_folder_exists(inner);
    const int code = glob(inner, 0, NULL, &found);
    globfree(&found);
    return code == 0;
}

/* Adds the parts that lie side by side in a folder. options: ",name=value" or "" */
static enum lk_status add_named(struct lk_conversion *c, const char *kind, const char *path,
                                const char *options)
{
    static const char *const names[] = {"train", "test", "val", "valid", "validation"};
    enum lk_status status = LK_OK;
    for (int i = 0; i < LK_COUNT(names) && status == LK_OK; i++) {
        struct lk_text spec = {0};
        if (!has_part(kind, path, names[i]) || (*kind == 't' && i > 2))
            continue; /* val* has the others */
        lk_text_append(&spec, "%s:%s%s,part=%s", kind, path, options, names[i]);
        status = spec.failed ? lk_fail_memory("a SPEC", spec.used)
                             : add_part(c, names[i], spec.bytes, LK_DATA_TRAIN);
        free(spec.bytes);
    }
    return status;
}

/* Removes the part that was added last. */
static void drop_part(struct lk_conversion *c)
{
    lk_data_close(c->parts[--c->part_count].data);
    c->parts[c->part_count] = (struct lk_convert_part){0};
}

/* Adds the parts of a set that is one file or list for each part. All but the training part may
 * be missing, and one may be found in place of the other. */
static enum lk_status add_pair(struct lk_conversion *c)
{
    static const enum lk_data_part parts[] = {LK_DATA_VALIDATION, LK_DATA_TEST};
    static const char *const names[] = {"val", "test"};
    LK_TRY(add_part(c, "train", c->source, LK_DATA_TRAIN));
    for (int i = 0; i < LK_COUNT(parts); i++) {
        const enum lk_status status = add_part(c, names[i], c->source, parts[i]);
        if (status == LK_OK && lk_data_info(c->parts[c->part_count - 1].data)->part != parts[i])
            drop_part(c);
        if (status == LK_OK)
            continue;
        if (status != LK_E_IO)
            return status;
        lk_log(LK_LOG_INFO, "there is no %s part: %s", names[i], lk_error_text());
        lk_error_clear();
    }
    return LK_OK;
}

/* Refuses options that say how pixels are wanted: they are for whoever reads the result. */
static enum lk_status refuse_options(const char *options)
{
    static const char *const refused[] = {",size=", ",channels=", ",cache=", ",val="};
    for (int i = 0; i < LK_COUNT(refused); i++)
        if (strstr(options, refused[i]))
            return lk_fail(LK_E_ARGUMENT, "option '%.*s' does not belong to a conversion%s",
                           (int)strlen(refused[i]) - 2, refused[i] + 1,
                           i == 0 ? "; --resize HxW does" : "");
    return LK_OK;
}

static enum lk_status add_parts(struct lk_conversion *c, const char *kind, char *path)
{
    char *at = lk_source_find_options(path);
    const char *named = strstr(at, ",part=");
    char options[1024], inner[LK_CONVERT_PATH];
    const bool is_folder = strcmp(kind, "folder") == 0;
    LK_TRY(refuse_options(at));
    if (snprintf(options, sizeof options, "%s", at) >= (int)sizeof options)
        return lk_fail(LK_E_ARGUMENT, "options of more than %zu bytes", sizeof options);
    *at = '\0';
    if (named) {
        char name[32] = "";
        snprintf(name, sizeof name, "%.*s", (int)strcspn(options + (named - at) + 6, ",/"),
                 options + (named - at) + 6);
        return add_part(c, name, c->source, LK_DATA_TRAIN);
    }
    if (snprintf(inner, sizeof inner, "%s/train", path) >= (int)sizeof inner)
        return lk_fail(LK_E_ARGUMENT, "'%.100s...': too long a path", path);
    if (is_folder ? lk_folder_exists(inner)
                  : strcmp(kind, "tfrecord") == 0 && lk_folder_exists(path))
        LK_TRY(add_named(c, kind, path, options));
    else
        return add_part(c, "train", c->source, LK_DATA_TRAIN);
    return c->part_count > 0 ? LK_OK : lk_fail(LK_E_IO, "there is no file '%s/train*'", path);
}

enum lk_status lk_convert_find_parts(struct lk_conversion *c)
{
    LK_TRY(complete(c));
    const size_t length = strcspn(c->source, ":");
    char kind[32];
    snprintf(kind, sizeof kind, "%.*s", (int)length, c->source);
    if (strcmp(kind, "folder") != 0 && strcmp(kind, "tfrecord") != 0 &&
        strcmp(kind, "csv") != 0)
        return add_pair(c);
    char *path = strdup(c->source + length + 1);
    if (!path)
        return lk_fail_memory("a SPEC", strlen(c->source));
    const enum lk_status status = add_parts(c, kind, path);
    free(path);
    return status;
}

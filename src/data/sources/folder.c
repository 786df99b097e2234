/* folder:DIR: a class a folder, images at any depth below it. Where DIR has a folder `train`,
 * its parts lie in folders of their own. Everything is in the order of its bytes. */
#include "base/fail.h"
#include "base/log.h"
#include "data/sources/files.h"
#include "io/file.h"

#include <dirent.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* More levels than people make; it ends a link to a folder above itself. */
enum { MOST_DEPTH = 32, MOST_PATH = 4096 };

struct listing {
    struct lk_files *files;
    enum lk_data_part part; /* that was found */
    int64_t others;         /* files that are no images */
    char other[256];
};

/* Lists the names in a folder, sorted, without hidden ones. The caller clears them, after a
 * failure too. */
static enum lk_status list_names(const char *path, struct lk_names *names)
{
    enum lk_status status = LK_OK;
    DIR *folder = opendir(path);
    if (!folder)
        return lk_file_fail("open the folder", path);
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(folder);
        if (!entry && errno)
            status = lk_file_fail("read the folder", path);
        if (!entry || status != LK_OK)
            break;
        if (entry->d_name[0] != '.')
            status = lk_names_add(names, entry->d_name);
    }
    closedir(folder);
    lk_names_sort(names);
    return status;
}

static enum lk_status join(const char *folder, const char *name, char path[MOST_PATH])
{
    if (snprintf(path, MOST_PATH, "%s/%s", folder, name) >= MOST_PATH)
        return lk_fail(LK_E_DATA, "'%.100s.../%.100s': a path of more than %d bytes", folder,
                       name, MOST_PATH - 1);
    return LK_OK;
}

static enum lk_status add_tree(struct listing *listing, const char *path, int32_t label,
                               int depth);

static enum lk_status add_entry(struct listing *listing, const char *folder, const char *name,
                                int32_t label, int depth)
{
    char path[MOST_PATH];
    if (lk_files_is_image(name))
        return lk_files_add(listing->files, folder, name, label);
    LK_TRY(join(folder, name, path));
    if (lk_folder_exists(path))
        return add_tree(listing, path, label, depth + 1);
    if (listing->others++ == 0)
        snprintf(listing->other, sizeof listing->other, "%.200s", path);
    return LK_OK;
}

/* Adds the images below `path`. */
static enum lk_status add_tree(struct listing *listing, const char *path, int32_t label,
                               int depth)
{
    struct lk_names names = {0};
    if (depth > MOST_DEPTH)
        return lk_fail(LK_E_DATA, "'%.200s...': more than %d folders in one another", path,
                       MOST_DEPTH);
    enum lk_status status = list_names(path, &names);
    for (int i = 0; i < names.count && status == LK_OK; i++)
        status = add_entry(listing, path, names.items[i], label, depth);
    lk_names_clear(&names);
    return status;
}

/* The folders in `path`, sorted. */
static enum lk_status list_folders(const char *path, struct lk_names *folders)
{
    struct lk_names names = {0};
    enum lk_status status = list_names(path, &names);
    for (int i = 0; i < names.count && status == LK_OK; i++) {
        char inner[MOST_PATH];
        status = join(path, names.items[i], inner);
        if (status == LK_OK && lk_folder_exists(inner))
            status = lk_names_add(folders, names.items[i]);
    }
    lk_names_clear(&names);
    return status;
}

/* Finds a folder beside train/ for the request's part. */
static enum lk_status find_other_part(const struct lk_data_request *request,
                                      char part[MOST_PATH], enum lk_data_part *found)
{
    for (const char *const *name = lk_source_part_names(request->part); *name; name++) {
        LK_TRY(join(request->text, *name, part));
        *found = lk_source_part_named(*name);
        if (lk_folder_exists(part))
            return LK_OK;
    }
    return lk_source_fail_no_test("folder", request->text);
}

/* Finds the folder of the request's part: the one whose subfolders are the classes. */
static enum lk_status find_part(const struct lk_data_request *request, char part[MOST_PATH],
                                char classes[MOST_PATH], enum lk_data_part *found)
{
    const char *named = request->options->part;
    *found = LK_DATA_TRAIN;
    if (!lk_folder_exists(request->text))
        return lk_fail(LK_E_IO, "there is no folder '%s'", request->text);
    LK_TRY(join(request->text, "train", classes));
    const bool has_parts = lk_folder_exists(classes);
    if (*named || has_parts)
        LK_TRY(join(request->text, *named ? named : "train", part));
    else
        snprintf(part, MOST_PATH, "%s", request->text);
    if (!has_parts)
        snprintf(classes, MOST_PATH, "%s", part);
    if (*named)
        return lk_folder_exists(part) ? LK_OK
                                      : lk_fail(LK_E_IO, "there is no folder '%s'", part);
    if (request->part == LK_DATA_TRAIN || (!has_parts && lk_source_takes_all(request->part)))
        return LK_OK;
    return has_parts ? find_other_part(request, part, found)
                     : lk_source_fail_no_test("folder", request->text);
}

static enum lk_status add_class(struct listing *listing, const char *part, const char *name)
{
    char path[MOST_PATH];
    const struct lk_names *classes = &listing->files->classes;
    const int label = lk_names_find(classes, name);
    if (label < 0)
        return lk_fail(LK_E_DATA, "'%s/%s' is none of the %d classes ('%s' is the first)", part,
                       name, classes->count, classes->items[0]);
    const int64_t before = listing->files->count;
    LK_TRY(join(part, name, path));
    LK_TRY(add_tree(listing, path, label, 1));
    if (listing->files->count == before)
        lk_log(LK_LOG_WARNING, "'%s' has no image", path);
    return LK_OK;
}

/* Says which files are no images; once, though training opens a folder several times. */
static void tell_others(const struct listing *listing, const char *part)
{
    static atomic_uint_least64_t told;
    uint_least64_t sum = (uint_least64_t)listing->others;
    for (const char *p = part; *p; p++)
        sum = sum * 1099511628211u + (unsigned char)*p;
    if (listing->others > 0 && atomic_exchange(&told, sum) != sum)
        lk_log(LK_LOG_INFO,
               "%lld files below '%s' are no images and are passed over, '%s' is the first",
               (long long)listing->others, part, listing->other);
}

static enum lk_status list_part(const struct lk_data_request *request, struct listing *listing)
{
    char part[MOST_PATH], named[MOST_PATH];
    struct lk_names folders = {0}, *classes = &listing->files->classes;
    LK_TRY(find_part(request, part, named, &listing->part));
    LK_TRY(*request->options->classes ? lk_names_read(classes, request->options->classes)
                                      : list_folders(named, classes));
    if (classes->count == 0)
        return lk_fail(LK_E_DATA, "'%s' has no folders; expected one of images for each class",
                       named);
    listing->files->root = strlen(part) + 1;
    enum lk_status status = list_folders(part, &folders);
    for (int i = 0; i < folders.count && status == LK_OK; i++)
        status = add_class(listing, part, folders.items[i]);
    lk_names_clear(&folders);
    LK_TRY(status);
    tell_others(listing, part);
    if (listing->files->count == 0)
        return lk_fail(LK_E_DATA, "there is no .jpg, .jpeg or .png file below '%s'", part);
    return LK_OK;
}

static enum lk_status folder_open(struct lk_data_request *request, struct lk_data_info *info,
                                  void **state)
{
    struct lk_files *files = calloc(1, sizeof *files);
    if (!files)
        return lk_fail_memory("a data set", sizeof *files);
    struct listing listing = {.files = files};
    const enum lk_status status = list_part(request, &listing);
    if (status != LK_OK) {
        lk_files_close(files);
        return status;
    }
    lk_source_name(request->text, files->name);
    lk_files_describe(files, info);
    info->part = listing.part;
    *state = files;
    return LK_OK;
}

static const struct lk_option options[] = {
    LK_IMAGE_OPTIONS,
    {LK_IMAGE_TEXT(part), .standard = "", .help = "the folder to read: train, val, test"},
    {0},
};

const struct lk_source lk_source_folder = {.kind = "folder",
                                           .usage = "folder:DIR",
                                           .options = options,
                                           .open = folder_open,
                                           .close = lk_files_close,
                                           .fetch = lk_files_fetch,
                                           .label = lk_files_label,
                                           .about = lk_files_about,
                                           .identify = lk_files_identify};

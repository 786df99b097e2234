/* Whether the target is apart from the source, whose files must stay as they are. */
#include "base/fail.h"
#include "data/convert/convert.h"
#include "data/sources/source.h"
#include "io/file.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* The folder that a source is read from. False: there is none, or its reader will miss it. */
static bool find_source(const char *source, struct stat *folder)
{
    char path[LK_CONVERT_PATH];
    const char *colon = strchr(source, ':');
    if (!colon) /* a known name */
        return false;
    snprintf(path, sizeof path, "%s%s", colon[1] == '/' ? "" : "./", colon + 1);
    *lk_source_find_options(path) = '\0';
    if (!lk_folder_exists(path)) {
        if (!lk_file_exists(path) && !strpbrk(path, "*?["))
            return false;
        *(strrchr(path, '/') + 1) = '\0';
    }
    return stat(path, folder) == 0;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Shortens the path of a folder that need not be there to the nearest one above it that is. */
static bool find_above(char *path, struct stat *folder)
{
    while (stat(path, folder) != 0) {
        char *slash = strrchr(path, '/');
        if (!slash)
            return false;
        *slash = '\0';
    }
    return true;
}

/* Whether a folder that is there is another one, or lies in it. */
static bool is_within(char path[LK_CONVERT_PATH], const struct stat *other)
{
    struct stat here, above;
    if (stat(path, &here) != 0)
        return false;
    while (!is_same(&here, other)) {
        const size_t length = strlen(path);
        snprintf(path + length, LK_CONVERT_PATH - length, "/..");
        if (strlen(path) != length + 3 || stat(path, &above) != 0 || is_same(&above, &here))
            return false; /* the root */
        here = above;
    }
    return true;
}

enum lk_status lk_convert_check_apart(const struct lk_conversion *c)
{
    char path[LK_CONVERT_PATH];
    struct stat source, target;
    const bool is_folder = strncmp(c->source, "folder:", 7) == 0;
    if (!find_source(c->source, &source))
        return LK_OK;
    if (stat(c->folder, &target) == 0 && is_same(&source, &target))
        return lk_fail(LK_E_ARGUMENT, "'%s' is the source: name a folder beside it", c->folder);
    snprintf(path, sizeof path, "%s%s", *c->folder == '/' ? "" : "./", c->folder);
    if (is_folder && find_above(path, &target) && is_within(path, &source))
        return lk_fail(LK_E_ARGUMENT, "'%s' would lie in the source: name a folder beside it",
                       c->folder);
    return LK_OK;
}

/* Whether a callback's file or folder is its alone. */
#include "base/fail.h"
#include "train/callbacks/kinds.h"
#include <string.h>
#include <unistd.h>

enum { MOST_PATH = 4 * LK_LOG_PATH };

/* Adds the parts of a path to one that ends without "/": "." and "//" change nothing, ".." goes
 * up. Where it would leave a folder that is a link, the path of the file is another one; then
 * lk_log_file_open() sees that two are one file. */
static void add_parts(const char *path, char normal[MOST_PATH])
{
    for (size_t length; *path; path += length) {
        path += strspn(path, "/");
        length = strcspn(path, "/");
        const size_t used = strlen(normal);
        char *last = strrchr(normal, '/');
        if (length == 2 && memcmp(path, "..", 2) == 0) {
            if (last)
                *last = '\0';
        } else if (length > 0 && !(length == 1 && *path == '.') &&
                   used + length + 2 < MOST_PATH) {
            normal[used] = '/';
            memcpy(normal + used + 1, path, length);
            normal[used + 1 + length] = '\0';
        }
    }
}

/* The whole path of the run directory, or of a file that is named as callbacks do. */
static void normalize(const char *run, const char *name, char normal[MOST_PATH])
{
    char here[LK_LOG_PATH];
    normal[0] = '\0';
    if (*run != '/' && *name != '/' && getcwd(here, sizeof here))
        add_parts(here, normal);
    if (*name != '/')
        add_parts(run, normal);
    add_parts(name, normal);
}

/* Whether a whole path is the run directory or one of its own files, or in one of its own
 * folders. */
static bool is_of_run(const char *run, const char *path)
{
    static const char *const own[] = {"checkpoints", "env.json", "metrics.jsonl"};
    char folder[MOST_PATH];
    normalize(run, "", folder);
    const size_t above = strlen(folder);
    if (strncmp(path, folder, above) != 0 || (path[above] && path[above] != '/'))
        return false;
    const char *name = path + above + strspn(path + above, "/");
    const size_t length = strcspn(name, "/");
    for (int i = 0; i < LK_COUNT(own); i++)
        if (strlen(own[i]) == length && memcmp(name, own[i], length) == 0)
            return true;
    return length == 0 || strncmp(name, "config.", 7) == 0;
}

/* NULL: it names no file. */
static const char *path_of(const struct lk_called *called)
{
    const struct lk_option *option = called->kind->options;
    if (!called->kind->path)
        return NULL;
    while (strcmp(option->name, called->kind->path) != 0)
        option++;
    return (const char *)called->options + option->offset;
}

enum lk_status lk_called_check_path(const struct lk_called *called,
                                    const struct lk_called *before, int count)
{
    const char *option = called->kind->path, *path = path_of(called);
    const char *run = called->site->run;
    char normal[MOST_PATH], other[MOST_PATH];
    if (!path)
        return LK_OK;
    normalize(run, path, normal);
    if (is_of_run(run, normal))
        return lk_fail(LK_E_ARGUMENT,
                       "option '%s': '%s' is of the run itself; another name is expected",
                       option, path);
    for (int i = 0; i < count; i++) {
        if (!path_of(&before[i]))
            continue;
        normalize(run, path_of(&before[i]), other);
        if (strcmp(other, normal) == 0)
            return lk_fail(LK_E_ARGUMENT,
                           "option '%s': '%s' is that of callback '%s' too; another name is "
                           "expected",
                           option, path, before[i].kind->name);
    }
    return LK_OK;
}

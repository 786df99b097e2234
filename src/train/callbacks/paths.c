/* Whether a callback's file or folder is its alone. */
#include "base/fail.h"
#include "train/callbacks/kinds.h"
#include <string.h>

/* Behind "./", which changes nothing. */
static const char *plain(const char *path)
{
    while (strncmp(path, "./", 2) == 0)
        path += 2;
    return path;
}

static bool is_of_run(const char *name)
{
    static const char *const own[] = {"", "checkpoints", "env.json", "metrics.jsonl"};
    const size_t length = strcspn(name, "/");
    for (int i = 0; i < LK_COUNT(own); i++)
        if (strlen(own[i]) == length && memcmp(name, own[i], length) == 0)
            return true;
    return strncmp(name, "config.", 7) == 0;
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
    if (path && *path != '/' && is_of_run(plain(path)))
        return lk_fail(LK_E_ARGUMENT,
                       "option '%s': '%s' is of the run itself; another name is expected",
                       option, path);
    for (int i = 0; i < count && path; i++) {
        const char *other = path_of(&before[i]);
        if (other && strcmp(plain(other), plain(path)) == 0)
            return lk_fail(LK_E_ARGUMENT,
                           "option '%s': '%s' is that of callback '%s' too; another name is "
                           "expected",
                           option, path, before[i].kind->name);
    }
    return LK_OK;
}

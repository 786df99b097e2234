/* Makes folders, and tells where the cache folder is. */
#include "base/folder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* mkdir() of an existing folder gives EROFS or EACCES on some file systems, not EEXIST: so the
 * folder is looked for after any failure. */
static bool make_one(const char *path)
{
    struct stat about;
    if (mkdir(path, 0777) == 0)
        return true;
    const int cause = errno;
    const bool is_there = stat(path, &about) == 0 && S_ISDIR(about.st_mode);
    errno = cause;
    return is_there;
}

bool lk_folder_create(const char *path)
{
    char *name = strdup(path);
    bool made = name != NULL;
    for (char *end = name; made; end++) {
        const char stop = *end;
        if (stop != '\0' && (stop != '/' || end == name))
            continue;
        *end = '\0';
        made = make_one(name);
        *end = stop;
        if (stop == '\0')
            break;
        if (!made && errno == EEXIST)
            errno = ENOTDIR; /* a file where a folder above is wanted */
    }
    const int cause = errno;
    free(name);
    errno = cause;
    return made;
}

bool lk_cache_folder(const char *part, char *path, size_t bytes)
{
    const char *cache = getenv("LOCKSTEP_CACHE"), *home = getenv("HOME");
    int n = 0;
    if (cache && *cache)
        n = snprintf(path, bytes, "%s/%s", cache, part);
    else if (home && *home)
        n = snprintf(path, bytes, "%s/.cache/lockstep/%s", home, part);
    return n > 0 && (size_t)n < bytes;
}

/* Drafts of files whose writer was killed: finding and deleting them. */
#include "io/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* Whether a file is called "NAME.PID-N.tmp", as drafts are, and this host has no such process.
 */
static bool is_of_nobody(const char *file, const char *name)
{
    const size_t length = strlen(name);
    long process = 0;
    unsigned number;
    int end = 0;
    return strncmp(file, name, length) == 0 &&
           sscanf(file + length, ".%ld-%u.tmp%n", &process, &number, &end) == 2 && end > 0 &&
           file[length + (size_t)end] == '\0' && process > 0 && kill((pid_t)process, 0) != 0 &&
           errno == ESRCH;
}

/* A draft is locked while it is written, by a process of another host too. */
static bool is_locked(const char *path)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    const bool is_free = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
    if (fd >= 0)
        close(fd);
    return !is_free;
}

void lk_file_remove_left_overs(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    const int folder = (int)(name - path);
    char other[4096];
    snprintf(other, sizeof other, "%.*s", folder > 0 ? folder : 1, folder > 0 ? path : ".");
    DIR *dir = opendir(other);
    for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;) {
        if (!is_of_nobody(entry->d_name, name))
            continue;
        const int used = snprintf(other, sizeof other, "%.*s%s", folder, path, entry->d_name);
        if (used < (int)sizeof other && !is_locked(other))
            (void)unlink(other);
    }
    if (dir)
        closedir(dir);
}

/* Numbers that an ONNX model keeps in files of its folder. */
#define _XOPEN_SOURCE 700 /* realpath() */
#include "io/onnx/memory.h"

#include "base/fail.h"
#include "io/file.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };

/* "a/../b", "..", but not "a..b" */
static bool climbs(const char *location)
{
    for (const char *at = location; at;) {
        if (strncmp(at, "..", 2) == 0 && (at[2] == '/' || at[2] == '\0'))
            return true;
        at = strchr(at, '/');
        at = at ? at + 1 : NULL;
    }
    return false;
}

/* The folder of the model, as the system names it once all links are followed. */
static enum lk_status find_folder(struct lk_onnx_memory *memory)
{
    char path[PATH_BYTES];
    const char *slash = strrchr(memory->path, '/');
    const int bytes = slash ? (int)(slash - memory->path) + 1 : 1;
    if (memory->folder)
        return LK_OK;
    if (bytes >= PATH_BYTES)
        return lk_fail(LK_E_IO, "a path of %d characters", bytes);
    snprintf(path, sizeof path, "%.*s", bytes, slash ? memory->path : ".");
    memory->folder = realpath(path, NULL);
    return memory->folder ? LK_OK : lk_file_fail("find", path);
}

static bool is_below(const char *path, const char *folder)
{
    const size_t length = strlen(folder);
    return strncmp(path, folder, length) == 0 &&
           (path[length] == '/' || strcmp(folder, "/") == 0);
}

static enum lk_status read_at(int fd, const char *path, int64_t offset, size_t bytes, void *to)
{
    for (size_t got = 0; got < bytes;) {
        const ssize_t more = pread(fd, (char *)to + got, bytes - got, (off_t)(offset + got));
        if (more < 0)
            return lk_file_fail("read", path);
        if (more == 0)
            return lk_fail(LK_E_IO, "'%s' became shorter while it was read", path);
        got += (size_t)more;
    }
    return LK_OK;
}

static enum lk_status read_open(struct lk_onnx_memory *memory, int fd, const char *path,
                                int64_t offset, size_t bytes, const void **data)
{
    struct stat about;
    void *to;
    if (fstat(fd, &about) != 0)
        return lk_file_fail("examine", path);
    if (offset > (int64_t)about.st_size || bytes > (size_t)about.st_size - (size_t)offset)
        return lk_fail(LK_E_DATA,
                       "%s: data are expected in '%s' at bytes %lld to %lld; it has %lld",
                       memory->path, path, (long long)offset, (long long)(offset + bytes),
                       (long long)about.st_size);
    LK_TRY(lk_arena_allocate(&memory->arena, bytes + 1, &to));
    *data = to;
    return read_at(fd, path, offset, bytes, to);
}

enum lk_status lk_onnx_read_outside(struct lk_onnx_memory *memory, const char *location,
                                    int64_t offset, size_t bytes, const void **data)
{
    char path[PATH_BYTES];
    int fd;
    LK_TRY(find_folder(memory));
    const char *way = location[0] == '/' ? "it begins at the root"
                      : climbs(location) ? "it leads up by '..'"
                                         : NULL;
    if (way)
        return lk_fail(LK_E_DATA,
                       "%s: data in '%.200s': %s; a file in the model's folder is expected",
                       memory->path, location, way);
    if (snprintf(path, sizeof path, "%s/%s", memory->folder, location) >= PATH_BYTES)
        return lk_fail(LK_E_DATA, "%s: the name of a file with data is too long", memory->path);
    char *found = realpath(path, NULL);
    if (!found)
        return lk_file_fail("find", path);
    const bool inside = is_below(found, memory->folder);
    free(found);
    if (!inside)
        return lk_fail(LK_E_DATA, "%s: data in '%.200s', which leads out of the model's folder",
                       memory->path, location);
    LK_TRY(lk_file_open(path, &fd));
    const enum lk_status status = read_open(memory, fd, path, offset, bytes, data);
    close(fd);
    return status;
}

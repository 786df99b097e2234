/* Reads whole files, and writes them so that the old or the new file is there after a crash. */
#include "io/file.h"

#include "base/fail.h"
#include "base/folder.h"
#include "base/parallel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum lk_status lk_file_fail(const char *what, const char *path)
{
    char text[128];
    const int code = errno;
    if (strerror_r(code, text, sizeof text))
        snprintf(text, sizeof text, "error %d", code);
    return lk_fail(LK_E_IO, "cannot %s '%s': %s", what, path, text);
}

/* What kind of thing a path names that is no regular file, for messages. */
static const char *kind_of(const struct stat *about)
{
    return S_ISDIR(about->st_mode) ? "a folder" : "a device or a pipe";
}

enum lk_status lk_file_open(const char *path, int *fd)
{
    struct stat about;
    /* O_NONBLOCK: opening a pipe that nobody writes to must not hang; it is refused below. */
    const int opened = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (opened < 0)
        return lk_file_fail("open", path);
    enum lk_status status = LK_OK;
    if (fstat(opened, &about) != 0)
        status = lk_file_fail("examine", path);
    else if (!S_ISREG(about.st_mode))
        status =
            lk_fail(LK_E_IO, "cannot read '%s': it is %s, not a file", path, kind_of(&about));
    if (status == LK_OK)
        *fd = opened;
    else
        close(opened);
    return status;
}

static enum lk_status read_open_file(int fd, const char *path, size_t limit, void **data,
                                     size_t *bytes)
{
    struct stat about;
    if (fstat(fd, &about))
        return lk_file_fail("examine", path);
    if (about.st_size < 0 || (unsigned long long)about.st_size > limit)
        return lk_fail(LK_E_DATA, "'%s' has %lld bytes; at most %zu are expected", path,
                       (long long)about.st_size, limit);
    const size_t size = (size_t)about.st_size;
    char *memory = size < SIZE_MAX ? malloc(size + 1) : NULL;
    if (!memory)
        return lk_fail_memory(path, size);
    for (size_t done = 0; done < size;) {
        const ssize_t got = read(fd, memory + done, size - done);
        if (got > 0) {
            done += (size_t)got;
            continue;
        }
        if (got < 0 && errno == EINTR)
            continue;
        const enum lk_status status =
            got < 0
                ? lk_file_fail("read", path)
                : lk_fail(LK_E_IO, "'%s' became shorter while it was read: %zu of %zu bytes",
                          path, done, size);
        free(memory);
        return status;
    }
    memory[size] = '\0';
    *data = memory;
    *bytes = size;
    return LK_OK;
}

enum lk_status lk_file_read(const char *path, size_t limit, void **data, size_t *bytes)
{
    int fd;
    LK_TRY(lk_file_open(path, &fd));
    const enum lk_status status = read_open_file(fd, path, limit, data, bytes);
    close(fd);
    return status;
}

/* The folder part of a path, "." where there is none. The caller frees; NULL: no memory. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return strdup(".");
    return strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

static enum lk_status sync_folder_of(const char *path)
{
    char *folder = folder_of(path);
    if (!folder)
        return lk_fail_memory("a file name", strlen(path));
    enum lk_status status = LK_OK;
    const int fd = open(folder, O_RDONLY | O_CLOEXEC | O_DIRECTORY);
    /* EINVAL: this file system cannot sync folders and does not need it. */
    if (fd < 0 || (fsync(fd) && errno != EINVAL))
        status = lk_file_fail("sync the folder", folder);
    if (fd >= 0)
        close(fd);
    free(folder);
    return status;
}

enum lk_status lk_file_move(const char *from, const char *to)
{
    if (rename(from, to))
        return lk_file_fail("move a finished file to", to);
    return sync_folder_of(to);
}

/* Opens a new file in the folder of `path` and writes its unused name to `name`. */
static int open_beside(const char *path, char *name, size_t bytes)
{
    static atomic_uint next;
    for (int attempt = 0; attempt < 1000; attempt++) {
        snprintf(name, bytes, "%s.%ld-%u.tmp", path, (long)getpid(),
                 atomic_fetch_add(&next, 1));
        const int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

static bool write_all(int fd, const char *data, size_t bytes)
{
    enum { AT_ONCE = 1 << 13 }; /* some 3 us, where the file is in memory */
    while (bytes > 0) {
        const ssize_t wrote = write(fd, data, bytes < AT_ONCE ? bytes : AT_ONCE);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0)
            return false;
        data += wrote;
        bytes -= (size_t)wrote;
        lk_thread_let_others_on();
    }
    return true;
}

/* Writes the pieces, syncs and closes the file; false: errno tells why. */
static bool fill(int fd, const struct lk_file_piece *parts, int count)
{
    bool whole = true;
    for (int i = 0; i < count && whole; i++)
        whole = write_all(fd, parts[i].data, parts[i].bytes);
    whole = whole && fsync(fd) == 0;
    const int cause = errno;
    if (close(fd) && whole)
        return false;
    errno = cause;
    return whole;
}

/* Refuses paths that a file must not replace, such as /dev/null, and an empty name. */
static enum lk_status check_target(const char *path)
{
    struct stat about;
    if (!*path)
        return lk_fail(LK_E_IO, "cannot write a file whose name is empty");
    if (stat(path, &about) == 0 && !S_ISREG(about.st_mode))
        return lk_fail(LK_E_IO, "cannot write '%s': it is %s, not a file", path,
                       kind_of(&about));
    return LK_OK;
}

enum lk_status lk_file_write_pieces(const char *path, const struct lk_file_piece *parts,
                                    int count)
{
    const size_t bytes = strlen(path) + 48;
    LK_TRY(check_target(path));
    char *name = malloc(bytes);
    if (!name)
        return lk_fail_memory("a file name", bytes);
    enum lk_status status;
    const int fd = open_beside(path, name, bytes);
    if (fd < 0) {
        status = lk_file_fail("create", path);
    } else if (!fill(fd, parts, count)) {
        status = lk_file_fail("write", path);
        unlink(name);
    } else {
        status = lk_file_move(name, path);
        if (status != LK_OK)
            unlink(name);
    }
    free(name);
    return status;
}

enum lk_status lk_file_write(const char *path, const void *data, size_t bytes)
{
    return lk_file_write_pieces(path, &(struct lk_file_piece){data, bytes}, 1);
}

struct lk_file_draft {
    char *path, *name; /* name: the path of the draft itself */
    FILE *stream;
};

static enum lk_status begin_draft(struct lk_file_draft *draft, const char *path)
{
    const size_t bytes = strlen(path) + 48;
    LK_TRY(check_target(path));
    draft->path = strdup(path);
    draft->name = calloc(1, bytes);
    if (!draft->path || !draft->name)
        return lk_fail_memory("a file name", bytes);
    const int fd = open_beside(path, draft->name, bytes);
    if (fd >= 0) /* as long as its writer lives; see left_overs.c */
        (void)flock(fd, LOCK_EX | LOCK_NB);
    draft->stream = fd < 0 ? NULL : fdopen(fd, "w");
    if (draft->stream)
        return LK_OK;
    const enum lk_status status = lk_file_fail("create", path);
    if (fd >= 0) {
        close(fd);
        unlink(draft->name);
    }
    return status;
}

static void free_draft(struct lk_file_draft *draft)
{
    free(draft->path);
    free(draft->name);
    free(draft);
}

enum lk_status lk_file_draft_open(const char *path, struct lk_file_draft **draft)
{
    struct lk_file_draft *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory(path, sizeof *made);
    const enum lk_status status = begin_draft(made, path);
    if (status != LK_OK) {
        free_draft(made);
        return status;
    }
    *draft = made;
    return LK_OK;
}

FILE *lk_file_draft_stream(struct lk_file_draft *draft)
{
    return draft->stream;
}

enum lk_status lk_file_draft_commit(struct lk_file_draft *draft)
{
    FILE *stream = draft->stream;
    errno = EIO; /* for a write that failed earlier, whose errno is lost */
    const bool has_failed = ferror(stream);
    if (has_failed) /* one byte more, which most likely fails for the same reason */
        (void)fputc('\n', stream);
    const bool whole = fflush(stream) == 0 && !has_failed && fsync(fileno(stream)) == 0;
    enum lk_status status = whole ? LK_OK : lk_file_fail("write", draft->path);
    if (fclose(stream) != 0 && status == LK_OK)
        status = lk_file_fail("write", draft->path);
    if (status == LK_OK)
        status = lk_file_move(draft->name, draft->path);
    if (status != LK_OK)
        unlink(draft->name);
    free_draft(draft);
    return status;
}

void lk_file_draft_discard(struct lk_file_draft *draft)
{
    if (!draft)
        return;
    fclose(draft->stream);
    unlink(draft->name);
    free_draft(draft);
}

enum lk_status lk_file_check(const char *path)
{
    struct lk_file_draft *draft;
    LK_TRY(lk_file_draft_open(path, &draft));
    lk_file_draft_discard(draft);
    return LK_OK;
}

enum lk_status lk_folder_make(const char *path)
{
    return lk_folder_create(path) ? LK_OK : lk_file_fail("make the folder", path);
}

enum lk_status lk_file_append(const char *path, FILE **stream)
{
    struct stat about;
    /* O_NONBLOCK: as for reading; a pipe without a reader is no file either. */
    const int fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
    if (fd < 0 && errno != ENXIO)
        return lk_file_fail("append to", path);
    const bool is_file = fd >= 0 && fstat(fd, &about) == 0 && S_ISREG(about.st_mode);
    FILE *opened = is_file ? fdopen(fd, "a+") : NULL;
    if (opened) {
        *stream = opened;
        return LK_OK;
    }
    if (fd >= 0)
        close(fd);
    return is_file ? lk_fail_memory(path, 0)
                   : lk_fail(LK_E_IO, "cannot append to '%s': it is no file", path);
}

bool lk_file_exists(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISREG(about.st_mode);
}

bool lk_folder_exists(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

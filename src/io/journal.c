/* Files that grow: entries are gathered in memory and written at the place where the last whole
 * entry ended, so that what was torn by a full disk is written over. */
#include "io/journal.h"

#include "base/fail.h"
#include "base/log.h"
#include "io/file.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_WAITING = 1 << 26 };

struct lk_journal {
    char *path;
    FILE *file;    /* for its descriptor alone */
    int64_t bytes; /* of whole entries in the file */
    FILE *stream;  /* to `waiting` */
    char *waiting; /* what is to be written */
    size_t count;  /* of it, once the stream is flushed */
    enum lk_journal_entries entries;
    bool has_warned, is_replaced;
};

static enum lk_status open_stream(struct lk_journal *journal)
{
    free(journal->waiting);
    journal->waiting = NULL;
    journal->count = 0;
    journal->stream = open_memstream(&journal->waiting, &journal->count);
    return journal->stream ? LK_OK : lk_fail_memory(journal->path, 0);
}

/* --- where whole entries end -------------------------------------------------------------- */

static int64_t end_of_lines(int fd, int64_t bytes)
{
    char block[4096];
    while (bytes > 0) {
        const int64_t count = bytes < (int64_t)sizeof block ? bytes : (int64_t)sizeof block;
        if (pread(fd, block, (size_t)count, bytes - count) != count)
            return 0;
        for (int64_t i = count; i > 0; i--)
            if (block[i - 1] == '\n')
                return bytes - count + i;
        bytes -= count;
    }
    return 0;
}

static int64_t end_of_records(int fd, int64_t bytes)
{
    enum { HEAD = 12, TAIL = 4 };
    unsigned char head[HEAD];
    int64_t end = 0;
    while (bytes - end >= HEAD + TAIL && pread(fd, head, HEAD, end) == HEAD) {
        uint64_t length = 0;
        for (int i = 8; i > 0; i--)
            length = length << 8 | head[i - 1];
        if (length > (uint64_t)(bytes - end - HEAD - TAIL))
            break;
        end += HEAD + (int64_t)length + TAIL;
    }
    return end;
}

static int64_t whole_bytes(const struct lk_journal *journal, int64_t bytes)
{
    const int fd = fileno(journal->file);
    return journal->entries == LK_JOURNAL_LINES ? end_of_lines(fd, bytes)
                                                : end_of_records(fd, bytes);
}

static enum lk_status cut(struct lk_journal *journal, int64_t bytes)
{
    struct stat about;
    const int fd = fileno(journal->file);
    if (fstat(fd, &about) != 0)
        return lk_file_fail("examine", journal->path);
    journal->bytes =
        bytes < 0 || about.st_size < bytes ? whole_bytes(journal, about.st_size) : bytes;
    return about.st_size == journal->bytes || ftruncate(fd, (off_t)journal->bytes) == 0
               ? LK_OK
               : lk_file_fail("cut", journal->path);
}

static enum lk_status begin(struct lk_journal *journal, const char *path, int64_t bytes)
{
    journal->path = strdup(path);
    if (!journal->path)
        return lk_fail_memory(path, strlen(path));
    LK_TRY(lk_file_append(path, &journal->file));
    LK_TRY(cut(journal, bytes));
    return open_stream(journal);
}

enum lk_status lk_journal_open(const char *path, int64_t bytes, enum lk_journal_entries entries,
                               struct lk_journal **journal)
{
    struct lk_journal *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory(path, sizeof *made);
    made->entries = entries;
    const enum lk_status status = begin(made, path, bytes);
    if (status != LK_OK) {
        lk_journal_close(made);
        return status;
    }
    *journal = made;
    return LK_OK;
}

FILE *lk_journal_stream(struct lk_journal *journal)
{
    return journal->stream;
}

int64_t lk_journal_bytes(const struct lk_journal *journal)
{
    return journal->bytes + (int64_t)ftello(journal->stream);
}

/* Writes behind the last whole entry; the file is open for appending, so what was torn there
 * goes first. */
static bool append(struct lk_journal *journal)
{
    const int fd = fileno(journal->file);
    struct stat about;
    if (fstat(fd, &about) != 0 ||
        (about.st_size > journal->bytes && ftruncate(fd, (off_t)journal->bytes) != 0))
        return false;
    for (size_t done = 0; done < journal->count;) {
        const ssize_t wrote = write(fd, journal->waiting + done, journal->count - done);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0) {
            const int cause = errno;
            (void)!ftruncate(fd, (off_t)journal->bytes);
            errno = cause;
            return false;
        }
        done += (size_t)wrote;
    }
    return true;
}

enum lk_status lk_journal_write(struct lk_journal *journal)
{
    if (fflush(journal->stream) != 0)
        return lk_fail_memory(journal->path, journal->count);
    if (journal->count > 0) {
        lk_journal_find_end(journal);
        if (!append(journal))
            return lk_file_fail("append to", journal->path);
        journal->bytes += (int64_t)journal->count;
        fclose(journal->stream);
        journal->stream = NULL;
        LK_TRY(open_stream(journal));
    }
    journal->has_warned = false;
    return LK_OK;
}

enum lk_status lk_journal_try(struct lk_journal *journal)
{
    const enum lk_status status = lk_journal_write(journal);
    if (status != LK_E_IO || journal->count > MOST_WAITING)
        return status;
    if (!journal->has_warned)
        lk_log(LK_LOG_WARNING, "%s; it will be tried again", lk_error_text());
    journal->has_warned = true;
    lk_error_clear();
    return LK_OK;
}

static bool copy(int from, int to, int64_t bytes)
{
    char block[1 << 16];
    for (int64_t at = 0; at < bytes;) {
        const int64_t left = bytes - at;
        const ssize_t count =
            pread(from, block, left < (int64_t)sizeof block ? (size_t)left : sizeof block, at);
        if (count <= 0 || write(to, block, (size_t)count) != count)
            return false;
        at += count;
    }
    return true;
}

/* Makes the folder of a path, and the file there. fails: -1 */
static int make_again(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash && slash > path ? strndup(path, (size_t)(slash - path)) : NULL;
    if (folder && lk_folder_make(folder) != LK_OK)
        lk_error_clear();
    free(folder);
    return open(path, O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
}

/* The descriptor keeps its number: another thread may bring the file to disk meanwhile. */
static void write_again(struct lk_journal *journal, const char *path)
{
    const int fd = fileno(journal->file), again = make_again(path);
    if (again < 0)
        return;
    if (copy(fd, again, journal->bytes) && dup2(again, fd) >= 0 &&
        fcntl(fd, F_SETFD, FD_CLOEXEC) == 0)
        lk_log(LK_LOG_WARNING, "'%s' was removed: it is written again", path);
    else
        unlink(path);
    close(again);
}

void lk_journal_find(struct lk_journal *journal, const char *path)
{
    struct stat held, there;
    lk_journal_find_end(journal);
    if (fstat(fileno(journal->file), &held) != 0)
        return;
    if (stat(path, &there) != 0) {
        write_again(journal, path);
        return;
    }
    const bool is_same = held.st_dev == there.st_dev && held.st_ino == there.st_ino;
    if (!is_same && !journal->is_replaced)
        lk_log(LK_LOG_WARNING,
               "'%s' was removed, and another file is there now: it is left as it is", path);
    journal->is_replaced |= !is_same;
}

void lk_journal_find_end(struct lk_journal *journal)
{
    struct stat held;
    if (fstat(fileno(journal->file), &held) != 0 || held.st_size >= journal->bytes)
        return;
    lk_log(LK_LOG_WARNING, "'%s' was cut to %lld of its %lld bytes: the others are lost",
           journal->path, (long long)held.st_size, (long long)journal->bytes);
    journal->bytes = whole_bytes(journal, held.st_size);
}

enum lk_status lk_journal_sync(const struct lk_journal *journal)
{
    return fsync(fileno(journal->file)) == 0 ? LK_OK : lk_file_fail("sync", journal->path);
}

void lk_journal_close(struct lk_journal *journal)
{
    if (!journal)
        return;
    if (journal->stream && fflush(journal->stream) == 0 && journal->count > 0)
        (void)append(journal);
    if (journal->stream)
        fclose(journal->stream);
    if (journal->file)
        fclose(journal->file);
    free(journal->waiting);
    free(journal->path);
    free(journal);
}

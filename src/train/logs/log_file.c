/* Opens, writes and finds again the files of a run that grow. */
#include "train/logs/log_file.h"

#include "base/fail.h"
#include "base/log.h"
#include "io/file.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_BEGINNING = 64 };

enum lk_status lk_log_path(const char *run, const char *name, char path[LK_LOG_PATH])
{
    const bool is_below = *name != '/' && *run;
    const int length =
        snprintf(path, LK_LOG_PATH, "%s%s%s", is_below ? run : "", is_below ? "/" : "", name);
    if (length >= LK_LOG_PATH)
        return lk_fail(LK_E_ARGUMENT, "the name of file '%s' is too long", name);
    return LK_OK;
}

/* Whether the file, if it is there, begins with that, or with as much of it as it has.
 * fails: LK_E_IO */
static enum lk_status look(const char *path, const char *beginning, bool *is_known)
{
    char found[MOST_BEGINNING];
    const size_t length = strlen(beginning);
    int fd;
    *is_known = true;
    if (access(path, F_OK) != 0 && errno == ENOENT)
        return LK_OK;
    LK_TRY(lk_file_open(path, &fd));
    const ssize_t bytes = read(fd, found, length < sizeof found ? length : sizeof found);
    close(fd);
    if (bytes < 0)
        return lk_file_fail("read", path);
    *is_known = memcmp(found, beginning, (size_t)bytes) == 0;
    return LK_OK;
}

/* Whether two paths, by whatever links, lead to one file. */
static bool is_same(const char *a, const char *b)
{
    struct stat one, other;
    return stat(a, &one) == 0 && stat(b, &other) == 0 && one.st_dev == other.st_dev &&
           one.st_ino == other.st_ino;
}

/* Refuses a file that the run, or another callback, writes. */
static enum lk_status check_owner(const struct lk_logs *logs, const char *path)
{
    static const char *const own[] = {"config.yaml", "env.json", "metrics.jsonl"};
    for (int i = 0; i < LK_COUNT(own) && *logs->run; i++) {
        char other[LK_LOG_PATH];
        snprintf(other, sizeof other, "%s/%s", logs->run, own[i]);
        if (is_same(path, other))
            return lk_fail(LK_E_ARGUMENT,
                           "file '%s' is of the run itself; another name is expected", path);
    }
    for (const struct lk_log_file *log = logs->first; log; log = log->next)
        if (is_same(path, log->path))
            return lk_fail(LK_E_ARGUMENT,
                           "file '%s' is '%s' too, which another callback writes; another name "
                           "is expected",
                           path, log->path);
    return LK_OK;
}

enum lk_status lk_log_file_open(struct lk_logs *logs, struct lk_log_file *log, const char *name,
                                int64_t bytes, enum lk_journal_entries entries,
                                const char *beginning)
{
    bool is_known = true;
    LK_TRY(lk_log_path(logs->run, name, log->path));
    snprintf(log->name, sizeof log->name, "%s", name);
    LK_TRY(check_owner(logs, log->path));
    if (beginning)
        LK_TRY(look(log->path, beginning, &is_known));
    if (!is_known)
        return lk_fail(LK_E_ARGUMENT, "file '%s' is there and not of a run: it is not replaced",
                       log->path);
    LK_TRY(lk_journal_open(log->path, bytes, entries, &log->journal));
    log->logs = logs;
    log->next = logs->first;
    logs->first = log;
    log->begun = lk_journal_bytes(log->journal);
    if (log->begun < bytes)
        lk_log(LK_LOG_WARNING, "'%s' has %lld of the %lld bytes that the run has written to it",
               log->path, (long long)log->begun, (long long)bytes);
    return LK_OK;
}

enum lk_status lk_log_file_flush(struct lk_log_file *log, bool is_last, int64_t *bytes)
{
    if (!log->journal)
        return LK_OK;
    const enum lk_status status =
        is_last ? lk_journal_write(log->journal) : lk_journal_try(log->journal);
    *bytes = lk_journal_bytes(log->journal);
    return status;
}

enum lk_status lk_log_file_sync(const struct lk_log_file *log)
{
    return log->journal ? lk_journal_sync(log->journal) : LK_OK;
}

void lk_log_file_close(struct lk_log_file *log)
{
    struct lk_log_file **at = log->logs ? &log->logs->first : NULL;
    while (at && *at && *at != log)
        at = &(*at)->next;
    if (at && *at)
        *at = log->next;
    lk_journal_close(log->journal);
    log->journal = NULL;
    log->logs = NULL;
}

void lk_logs_find(struct lk_logs *logs)
{
    for (struct lk_log_file *log = logs->first; log; log = log->next)
        if (lk_log_path(logs->run, log->name, log->path) == LK_OK)
            lk_journal_find(log->journal, log->path);
        else
            lk_error_clear();
}

/* Files of a run that grow while it trains, and are cut where it goes on from a checkpoint. */
#include "base/fail.h"
#include "base/log.h"
#include "io/file.h"
#include "train/callbacks/kinds.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { MOST_BEGINNING = 64 };

/* Whether the file, if it is there, begins with that. fails: LK_E_IO */
static enum lk_status look(const char *path, const char *beginning, bool *is_known)
{
    char found[MOST_BEGINNING] = "";
    const size_t length = strlen(beginning);
    FILE *file = fopen(path, "rb");
    *is_known = true;
    if (!file)
        return errno == ENOENT ? LK_OK : lk_file_fail("open", path);
    const size_t read = fread(found, 1, length < sizeof found ? length : sizeof found, file);
    fclose(file);
    *is_known = read == 0 || (read == length && memcmp(found, beginning, length) == 0);
    return LK_OK;
}

enum lk_status lk_called_path(const char *run, const char *path, char full[LK_CALLED_PATH])
{
    const bool is_below = *path != '/' && *run;
    const int length = snprintf(full, LK_CALLED_PATH, "%s%s%s", is_below ? run : "",
                                is_below ? "/" : "", path);
    if (length >= LK_CALLED_PATH)
        return lk_fail(LK_E_ARGUMENT, "the name of file '%s' is too long", path);
    return LK_OK;
}

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

enum lk_status lk_log_file_open(struct lk_log_file *log, const char *run, const char *path,
                                int64_t bytes, const char *beginning)
{
    bool is_known = true;
    LK_TRY(lk_called_path(run, path, log->path));
    if (bytes == 0 && beginning)
        LK_TRY(look(log->path, beginning, &is_known));
    if (!is_known)
        return lk_fail(LK_E_ARGUMENT, "file '%s' is there and not of a run: it is not replaced",
                       log->path);
    LK_TRY(lk_journal_open(log->path, bytes, &log->journal));
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
    lk_journal_find(log->journal);
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
    lk_journal_close(log->journal);
    log->journal = NULL;
}

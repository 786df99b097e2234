/* Files of a run that grow while it trains, and are cut where it goes on from a checkpoint. */
#include "base/fail.h"
#include "base/log.h"
#include "io/file.h"
#include "train/callbacks/kinds.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_BEGINNING = 64 };

/* Whether the file, if it is there, begins with that. */
static bool is_known(const char *path, const char *beginning)
{
    char found[MOST_BEGINNING] = "";
    const size_t length = strlen(beginning);
    FILE *file = fopen(path, "rb");
    if (!file)
        return true;
    const size_t read = fread(found, 1, length < sizeof found ? length : sizeof found, file);
    fclose(file);
    return read == 0 || (read == length && memcmp(found, beginning, length) == 0);
}

static enum lk_status cut(struct lk_log_file *log, int64_t bytes)
{
    struct stat about;
    if (fstat(fileno(log->file), &about) != 0)
        return lk_file_fail("read", log->path);
    if (about.st_size < bytes)
        lk_log(LK_LOG_WARNING, "'%s' has %lld of the %lld bytes that the run has written to it",
               log->path, (long long)about.st_size, (long long)bytes);
    log->begun = about.st_size < bytes ? about.st_size : bytes;
    if (ftruncate(fileno(log->file), (off_t)log->begun) != 0 ||
        fseeko(log->file, 0, SEEK_END) != 0)
        return lk_file_fail("cut", log->path);
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

enum lk_status lk_log_file_open(struct lk_log_file *log, const char *run, const char *path,
                                int64_t bytes, const char *beginning)
{
    LK_TRY(lk_called_path(run, path, log->path));
    if (bytes == 0 && beginning && !is_known(log->path, beginning))
        return lk_fail(LK_E_ARGUMENT, "file '%s' is there and not of a run: it is not replaced",
                       log->path);
    LK_TRY(lk_file_append(log->path, &log->file));
    return cut(log, bytes);
}

enum lk_status lk_log_file_flush(struct lk_log_file *log, bool is_durable, int64_t *bytes)
{
    if (!log->file)
        return LK_OK;
    if (ferror(log->file) || fflush(log->file) != 0 ||
        (is_durable && fsync(fileno(log->file)) != 0))
        return lk_file_fail("append to", log->path);
    const off_t at = ftello(log->file);
    if (at < 0)
        return lk_file_fail("append to", log->path);
    *bytes = at;
    return LK_OK;
}

void lk_log_file_close(struct lk_log_file *log)
{
    if (log->file)
        fclose(log->file);
    log->file = NULL;
}

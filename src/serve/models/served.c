/* A model and its versions: which is current, and what replaces it. */
#include "serve/models/served.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/log.h"
#include "io/file.h"
#include "model/checkpoint/bundle.h"
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SECONDS_BETWEEN = 5 }; /* tries to replace a device that hangs */

/* "12" is 12; -1: no version. */
static int64_t version_of(const char *name)
{
    char *end;
    if (*name < '1' || *name > '9' || strlen(name) > 18)
        return -1;
    errno = 0;
    const long long number = strtoll(name, &end, 10);
    return *end == '\0' && errno == 0 ? number : -1;
}

/* What is still being written is none yet. */
static bool can_be_opened(const char *path)
{
    char checkpoints[LK_SERVED_PATH];
    return lk_bundle_is_there(path) ||
           ((size_t)snprintf(checkpoints, sizeof checkpoints, "%s/checkpoints", path) <
                sizeof checkpoints &&
            lk_folder_exists(checkpoints));
}

static bool has_failed(const struct lk_served *served, int64_t number)
{
    for (int i = 0; i < served->failed_count; i++)
        if (served->failed[i] == number)
            return true;
    return false;
}

/* The highest version in a folder that has not failed, and its path; 0: it has none. */
static int64_t find_highest(const struct lk_served *served, char path[LK_SERVED_PATH])
{
    const char *folder = served->path;
    int64_t highest = 0;
    DIR *dir = can_be_opened(folder) ? NULL : opendir(folder);
    for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;) {
        char there[LK_SERVED_PATH];
        const int64_t number = version_of(entry->d_name);
        if (number <= highest || has_failed(served, number) ||
            (size_t)snprintf(there, sizeof there, "%s/%s", folder, entry->d_name) >=
                sizeof there ||
            !can_be_opened(there))
            continue;
        highest = number;
        memcpy(path, there, sizeof there);
    }
    if (dir)
        closedir(dir);
    return highest;
}

enum lk_status lk_served_open(struct lk_served *served, const struct lk_serve_options *options,
                              int index)
{
    char path[LK_SERVED_PATH];
    served->options = options;
    served->index = index;
    const int64_t highest = find_highest(served, path);
    return lk_version_open(served, highest ? highest : 1, highest ? path : served->path,
                           &served->current);
}

/* Those that nobody uses any more. The mutex is not held while they end. */
static void end_replaced(struct lk_served *served, bool all)
{
    struct lk_version *unused = NULL;
    pthread_mutex_lock(&served->mutex);
    for (struct lk_version **at = &served->replaced; *at;) {
        struct lk_version *v = *at;
        if (v->users > 0 && !all) {
            at = &v->behind;
            continue;
        }
        *at = v->behind;
        v->behind = unused;
        unused = v;
    }
    pthread_mutex_unlock(&served->mutex);
    while (unused) {
        struct lk_version *v = unused;
        unused = v->behind;
        lk_version_close(v);
    }
}

void lk_served_close(struct lk_served *served)
{
    end_replaced(served, true);
    lk_version_close(served->current);
    served->current = NULL;
}

static void note_failure(struct lk_served *served, int64_t number)
{
    pthread_mutex_lock(&served->mutex);
    if (served->failed_count == LK_MOST_FAILED)
        memmove(served->failed, served->failed + 1,
                (size_t)--served->failed_count * sizeof *served->failed);
    served->failed[served->failed_count++] = number;
    snprintf(served->failure, sizeof served->failure, "%s", lk_error_text());
    pthread_mutex_unlock(&served->mutex);
    lk_log(LK_LOG_WARNING, "version %lld is not served: %s", (long long)number,
           lk_error_text());
    lk_error_clear();
}

/* One that was removed may come again, and be whole then. */
static void forget_failures(struct lk_served *served)
{
    char path[LK_SERVED_PATH];
    int kept = 0;
    pthread_mutex_lock(&served->mutex);
    for (int i = 0; i < served->failed_count; i++) {
        snprintf(path, sizeof path, "%.900s/%lld", served->path, (long long)served->failed[i]);
        if (can_be_opened(path))
            served->failed[kept++] = served->failed[i];
    }
    served->failed_count = kept;
    pthread_mutex_unlock(&served->mutex);
}

static void replace(struct lk_served *served, struct lk_version *opened)
{
    pthread_mutex_lock(&served->mutex);
    served->current->behind = served->replaced;
    served->replaced = served->current;
    served->current = opened;
    pthread_mutex_unlock(&served->mutex);
    end_replaced(served, false);
}

/* Its device hangs: the same version on what is left. */
static void open_elsewhere(struct lk_served *served)
{
    struct lk_version *opened = NULL;
    if (lk_seconds() < served->tried + SECONDS_BETWEEN)
        return;
    served->tried = lk_seconds();
    const struct lk_version *v = served->current;
    if (lk_version_open(served, v->number, v->path, &opened) == LK_OK) {
        lk_counts_add_reopened(&served->counts);
        replace(served, opened);
    } else {
        lk_log(LK_LOG_WARNING, "%s", lk_error_text());
        lk_error_clear();
    }
}

void lk_served_renew(struct lk_served *served)
{
    char path[LK_SERVED_PATH];
    struct lk_version *opened = NULL;
    for (struct lk_version *v = served->replaced; v; v = v->behind)
        (void)lk_version_check(v);
    if (!lk_version_check(served->current))
        open_elsewhere(served);
    end_replaced(served, false);
    forget_failures(served);
    const int64_t highest = find_highest(served, path);
    if (highest == 0 || highest == served->current->number)
        return;
    if (lk_version_open(served, highest, path, &opened) != LK_OK) {
        note_failure(served, highest);
        return;
    }
    replace(served, opened);
    lk_log(LK_LOG_INFO, "model '%s': version %lld is served", served->name, (long long)highest);
}

struct lk_version *lk_served_acquire(struct lk_served *served, int64_t number)
{
    pthread_mutex_lock(&served->mutex);
    struct lk_version *v = served->current;
    v = v && (number == 0 || v->number == number) ? v : NULL;
    if (v)
        v->users++;
    pthread_mutex_unlock(&served->mutex);
    return v;
}

void lk_served_release(struct lk_version *version)
{
    struct lk_served *served = version->served;
    pthread_mutex_lock(&served->mutex);
    version->users--;
    pthread_mutex_unlock(&served->mutex);
}

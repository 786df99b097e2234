/* A model and its versions: which are served, and what replaces them. */
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
#include <sys/stat.h>

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

static bool has(const char *path, const char *name, bool (*exists)(const char *))
{
    char inside[LK_SERVED_PATH];
    return (size_t)snprintf(inside, sizeof inside, "%s/%s", path, name) < sizeof inside &&
           exists(inside);
}

/* What is still being written is none yet. */
static bool can_be_opened(const char *path)
{
    return lk_bundle_is_there(path) || has(path, "checkpoints", lk_folder_exists) ||
           has(path, "model.onnx", lk_file_exists);
}

/* Changes where a file in the folder does, or one comes or goes; of a copy that is on its way
 * it is never the same for long. */
static uint64_t stamp_of(const char *path)
{
    char inside[2 * LK_SERVED_PATH];
    struct stat about;
    uint64_t sum = 0;
    DIR *dir = opendir(path);
    for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;) {
        snprintf(inside, sizeof inside, "%s/%s", path, entry->d_name);
        if (stat(inside, &about) == 0) /* a sum, since files come in any order */
            sum += ((uint64_t)about.st_size * 31 + (uint64_t)about.st_mtim.tv_sec) *
                       UINT64_C(0x9E3779B97F4A7C15) +
                   (uint64_t)about.st_mtim.tv_nsec + 1;
    }
    if (dir)
        closedir(dir);
    return sum;
}

static bool has_failed(const struct lk_served *served, int64_t number)
{
    for (int i = 0; i < served->failed_count; i++)
        if (served->failed[i].number == number)
            return true;
    return false;
}

static bool is_wanted(const struct lk_served *served, int64_t number)
{
    const struct lk_serve_model *m = served->model;
    for (int i = 0; i < m->version_count; i++)
        if (m->versions[i] == number)
            return true;
    return m->version_count == 0;
}

static int most_versions(const struct lk_served *served)
{
    const struct lk_serve_model *m = served->model;
    const int most = m->version_count > 0 ? LK_SERVE_VERSIONS : m->newest;
    return most < 1 ? 1 : most > LK_SERVE_VERSIONS ? LK_SERVE_VERSIONS : most;
}

/* Where a version of the folder lies; false: nowhere, or it is not whole yet. */
static bool find_path(const struct lk_served *served, int64_t number, char path[LK_SERVED_PATH])
{
    return (size_t)snprintf(path, LK_SERVED_PATH, "%s/%lld", served->path, (long long)number) <
               LK_SERVED_PATH &&
           can_be_opened(path);
}

/* Puts a number into a list that descends, of which the last falls out where it is full. */
static void insert(int64_t *numbers, int *count, int most, int64_t number)
{
    int at = 0;
    while (at < *count && numbers[at] > number)
        at++;
    if (at == most)
        return;
    *count += *count < most;
    memmove(numbers + at + 1, numbers + at, (size_t)(*count - at - 1) * sizeof *numbers);
    numbers[at] = number;
}

/* The versions of a folder that are to be served and have not failed, the highest first; how
 * many. 0: it has none, or is itself what is to be served. */
static int list_wanted(const struct lk_served *served, int64_t numbers[LK_SERVE_VERSIONS])
{
    char path[LK_SERVED_PATH];
    int count = 0;
    DIR *dir = can_be_opened(served->path) ? NULL : opendir(served->path);
    for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;) {
        const int64_t number = version_of(entry->d_name);
        if (number > 0 && is_wanted(served, number) && !has_failed(served, number) &&
            find_path(served, number, path))
            insert(numbers, &count, most_versions(served), number);
    }
    if (dir)
        closedir(dir);
    return count;
}

/* Adds a version to those that are served. */
static void add(struct lk_served *served, struct lk_version *opened)
{
    pthread_mutex_lock(&served->mutex);
    struct lk_version **at = &served->open;
    while (*at && (*at)->number > opened->number)
        at = &(*at)->behind;
    opened->behind = *at;
    *at = opened;
    pthread_mutex_unlock(&served->mutex);
}

static enum lk_status open_version(struct lk_served *served, int64_t number)
{
    char path[LK_SERVED_PATH];
    struct lk_version *opened = NULL;
    if (!find_path(served, number, path))
        return lk_fail(LK_E_IO, "model '%s': '%s' has no version %lld", served->name,
                       served->path, (long long)number);
    served->opening = stamp_of(path);
    LK_TRY(lk_version_open(served, number, path, &opened));
    add(served, opened);
    return LK_OK;
}

static enum lk_status open_alone(struct lk_served *served)
{
    struct lk_version *opened = NULL;
    LK_TRY(lk_version_open(served, 1, served->path, &opened));
    add(served, opened);
    return LK_OK;
}

static bool is_open(const struct lk_served *served, int64_t number)
{
    const struct lk_version *v = served->open;
    while (v && v->number != number)
        v = v->behind;
    return v != NULL;
}

static enum lk_status check_labels(const struct lk_served *served)
{
    const struct lk_serve_model *m = served->model;
    for (int i = 0; i < m->label_count; i++)
        if (!is_open(served, m->labels[i].version))
            return lk_fail(LK_E_DATA,
                           "model '%s': label '%s' is of version %lld, which is not served",
                           served->name, m->labels[i].name, (long long)m->labels[i].version);
    return LK_OK;
}

static void note_failure(struct lk_served *served, int64_t number)
{
    pthread_mutex_lock(&served->mutex);
    if (served->failed_count == LK_MOST_FAILED)
        memmove(served->failed, served->failed + 1,
                (size_t)--served->failed_count * sizeof *served->failed);
    served->failed[served->failed_count++] =
        (struct lk_failed_version){.number = number, .stamp = served->opening};
    snprintf(served->failure, sizeof served->failure, "%s", lk_error_text());
    pthread_mutex_unlock(&served->mutex);
    lk_log(LK_LOG_WARNING, "version %lld is not served: %s", (long long)number,
           lk_error_text());
    lk_error_clear();
}

/* Opens those that are not open yet. fails: as opening *failed did */
static enum lk_status open_missing(struct lk_served *served, const int64_t *numbers, int count,
                                   bool is_said, int64_t *failed)
{
    for (int i = 0; i < count; i++) {
        *failed = numbers[i];
        if (is_open(served, numbers[i]))
            continue;
        LK_TRY(open_version(served, numbers[i]));
        if (is_said)
            lk_log(LK_LOG_INFO, "model '%s': version %lld is served", served->name,
                   (long long)numbers[i]);
    }
    return LK_OK;
}

/* Opens what is to be served. In place of a version that cannot be opened the next lower one
 * is, unless the command line names it. */
static enum lk_status open_first(struct lk_served *served)
{
    int64_t numbers[LK_SERVE_VERSIONS], failed;
    for (int count; (count = list_wanted(served, numbers)) > 0;) {
        const enum lk_status status = open_missing(served, numbers, count, false, &failed);
        if (status == LK_OK || served->model->version_count > 0)
            return status;
        note_failure(served, failed);
    }
    return served->failed_count > 0 ? open_version(served, served->failed[0].number)
                                    : open_alone(served);
}

enum lk_status lk_served_open(struct lk_served *served, const struct lk_serve_model *model,
                              const struct lk_serve_options *options, int index)
{
    char path[LK_SERVED_PATH];
    served->name = model->name;
    served->path = model->path;
    served->model = model;
    served->options = options;
    served->index = index;
    for (int i = 0; i < model->version_count; i++)
        if (!find_path(served, model->versions[i], path))
            return lk_fail(LK_E_IO, "model '%s': '%s' has no version %lld", served->name,
                           served->path, (long long)model->versions[i]);
    LK_TRY(open_first(served));
    return check_labels(served);
}

int64_t lk_served_find_label(const struct lk_served *served, const char *label, size_t length)
{
    const struct lk_serve_model *m = served->model;
    for (int i = 0; i < m->label_count; i++)
        if (strlen(m->labels[i].name) == length &&
            memcmp(m->labels[i].name, label, length) == 0)
            return m->labels[i].version;
    return length == 6 && memcmp(label, "latest", 6) == 0 ? 0 : -1;
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
    while (served->open) {
        struct lk_version *v = served->open;
        served->open = v->behind;
        lk_version_close(v);
    }
}

/* Whether a version that failed is to be tried again: it was removed and may come anew, or has
 * changed and then rested since the last look. */
static bool has_recovered(const struct lk_served *served, struct lk_failed_version *failed)
{
    char path[LK_SERVED_PATH];
    if (!find_path(served, failed->number, path))
        return true;
    const uint64_t before = failed->seen, now = stamp_of(path);
    failed->seen = now;
    return now != failed->stamp && now == before;
}

static void forget_failures(struct lk_served *served)
{
    int kept = 0;
    pthread_mutex_lock(&served->mutex);
    for (int i = 0; i < served->failed_count; i++)
        if (!has_recovered(served, &served->failed[i]))
            served->failed[kept++] = served->failed[i];
    served->failed_count = kept;
    pthread_mutex_unlock(&served->mutex);
}

/* Takes a version from those that are served. */
static void retire(struct lk_served *served, struct lk_version *version)
{
    pthread_mutex_lock(&served->mutex);
    struct lk_version **at = &served->open;
    while (*at != version)
        at = &(*at)->behind;
    *at = version->behind;
    version->behind = served->replaced;
    served->replaced = version;
    pthread_mutex_unlock(&served->mutex);
}

/* Its device hangs: the same version on what is left. */
static void open_elsewhere(struct lk_served *served, struct lk_version *version)
{
    struct lk_version *opened = NULL;
    if (lk_seconds() < served->tried + SECONDS_BETWEEN)
        return;
    served->tried = lk_seconds();
    if (lk_version_open(served, version->number, version->path, &opened) == LK_OK) {
        lk_counts_add_reopened(&served->counts);
        add(served, opened);
        retire(served, version);
    } else {
        lk_log(LK_LOG_WARNING, "%s", lk_error_text());
        lk_error_clear();
    }
}

static void check_devices(struct lk_served *served)
{
    for (struct lk_version *v = served->replaced; v; v = v->behind)
        (void)lk_version_check(v);
    for (struct lk_version *v = served->open, *behind; v; v = behind) {
        behind = v->behind;
        if (!lk_version_check(v))
            open_elsewhere(served, v);
    }
}

/* Opens what is to be served; false: one could not be opened, and others may take its place. */
static bool open_wanted(struct lk_served *served, const int64_t *numbers, int count)
{
    int64_t failed;
    if (open_missing(served, numbers, count, true, &failed) == LK_OK)
        return true;
    note_failure(served, failed);
    return false;
}

static void retire_others(struct lk_served *served, const int64_t *numbers, int count)
{
    for (struct lk_version *v = served->open, *behind; v; v = behind) {
        bool stays = false;
        behind = v->behind;
        for (int i = 0; i < count; i++)
            stays |= numbers[i] == v->number;
        if (!stays)
            retire(served, v);
    }
}

void lk_served_renew(struct lk_served *served)
{
    int64_t numbers[LK_SERVE_VERSIONS];
    check_devices(served);
    forget_failures(served);
    const int count = list_wanted(served, numbers);
    if (count > 0 && open_wanted(served, numbers, count))
        retire_others(served, numbers, count);
    end_replaced(served, false);
}

struct lk_version *lk_served_acquire(struct lk_served *served, int64_t number)
{
    pthread_mutex_lock(&served->mutex);
    struct lk_version *v = served->open;
    while (v && number != 0 && v->number != number)
        v = v->behind;
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

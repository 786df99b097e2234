/* A folder of checkpoints: finds the newest, removes those that are not kept. */
#include "base/fail.h"
#include "base/log.h"
#include "io/file.h"
#include "model/checkpoint/bundle.h"
#include "model/checkpoint/checkpoint.h"
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum lk_status lk_checkpoint_path(const char *folder, int64_t step, char *path, size_t bytes)
{
    const int used =
        snprintf(path, bytes, "%s/step-%08lld.safetensors", folder, (long long)step);
    if (used < 0 || (size_t)used >= bytes)
        return lk_fail(LK_E_ARGUMENT, "the path of a checkpoint in '%s' is too long", folder);
    return LK_OK;
}

/* The step of a file's name as lk_checkpoint_path() makes it; -1: none. */
static int64_t step_of(const char *name)
{
    char again[64];
    const char *digits = name + 5;
    char *end = NULL;
    if (strncmp(name, "step-", 5) != 0 || !isdigit((unsigned char)*digits))
        return -1;
    errno = 0;
    const long long step = strtoll(digits, &end, 10);
    snprintf(again, sizeof again, "step-%08lld.safetensors", step);
    return errno == 0 && strcmp(name, again) == 0 ? step : -1;
}

static int descending(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

/* The steps of all checkpoints in the folder, the most first. The caller frees the list. */
static enum lk_status list_steps(const char *folder, int64_t **steps, int *count)
{
    int64_t *list = NULL;
    int used = 0, room = 0;
    DIR *dir = opendir(folder);
    if (!dir)
        return lk_file_fail("list", folder);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        const int64_t step = step_of(entry->d_name);
        if (step < 0)
            continue;
        if (used == room) {
            room = room ? 2 * room : 16;
            int64_t *longer = realloc(list, (size_t)room * sizeof *list);
            if (!longer) {
                free(list);
                closedir(dir);
                return lk_fail_memory("a list of checkpoints", (size_t)room * sizeof *list);
            }
            list = longer;
        }
        list[used++] = step;
    }
    closedir(dir);
    if (used > 0)
        qsort(list, (size_t)used, sizeof *list, descending);
    *steps = list;
    *count = used;
    return LK_OK;
}

bool lk_checkpoint_is_there(const char *folder)
{
    int64_t *steps = NULL;
    int count = 0;
    if (!lk_folder_exists(folder) || list_steps(folder, &steps, &count) != LK_OK) {
        lk_error_clear();
        return false;
    }
    free(steps);
    return count > 0;
}

static enum lk_status find_whole(const char *folder, const int64_t *steps, int count,
                                 char *path, size_t bytes)
{
    for (int i = 0; i < count; i++) {
        struct lk_checkpoint_file *file = NULL;
        LK_TRY(lk_checkpoint_path(folder, steps[i], path, bytes));
        const enum lk_status status = lk_checkpoint_open(path, &file);
        lk_checkpoint_close(file);
        if (status == LK_OK || status == LK_E_MEMORY)
            return status;
        lk_log(LK_LOG_WARNING, "checkpoint passed over: %s", lk_error_text());
        lk_error_clear();
    }
    return lk_fail(LK_E_DATA,
                   "'%s': none of its %d checkpoints can be read; --fresh starts over", folder,
                   count);
}

enum lk_status lk_checkpoint_newest(const char *folder, char *path, size_t bytes)
{
    char found[1024] = "";
    int64_t *steps = NULL;
    int count = 0;
    LK_TRY(list_steps(folder, &steps, &count));
    const enum lk_status status =
        count ? find_whole(folder, steps, count, found, sizeof found) : LK_OK;
    free(steps);
    LK_TRY(status);
    if (strlen(found) >= bytes)
        return lk_fail(LK_E_ARGUMENT, "the path '%s' is too long", found);
    memcpy(path, found, strlen(found) + 1);
    return LK_OK;
}

enum lk_status lk_checkpoint_find(const char *path, char *found, size_t bytes)
{
    char folder[1024];
    if (!lk_folder_exists(path)) {
        if ((size_t)snprintf(found, bytes, "%s", path) >= bytes)
            return lk_fail(LK_E_ARGUMENT, "a path of %zu characters", strlen(path));
        return LK_OK;
    }
    if (lk_bundle_is_there(path))
        return lk_bundle_check(path, found, bytes);
    if ((size_t)snprintf(folder, sizeof folder, "%s/checkpoints", path) >= sizeof folder)
        return lk_fail(LK_E_ARGUMENT, "a path of %zu characters", strlen(path));
    if (lk_folder_exists(folder))
        LK_TRY(lk_checkpoint_newest(folder, found, bytes));
    else
        found[0] = '\0';
    if (!*found)
        return lk_fail(LK_E_IO, "'%s' has no checkpoint: train into it first", path);
    return LK_OK;
}

/* Whether a file was left by a writer that was killed:
 * "step-00000123.safetensors.PID-N.tmp". */
static bool is_left_over(const char *name)
{
    long process;
    unsigned number;
    int end = 0;
    const char *at = strstr(name, ".tmp");
    if (!at || at[4])
        return false;
    while (at > name && (isdigit((unsigned char)at[-1]) || at[-1] == '-'))
        at--;
    return at > name && at[-1] == '.' &&
           sscanf(at, "%ld-%u.tmp%n", &process, &number, &end) == 2 && end > 0 && !at[end];
}

static enum lk_status remove_left_overs(const char *folder)
{
    char path[1024];
    enum lk_status status = LK_OK;
    DIR *dir = opendir(folder);
    if (!dir)
        return lk_file_fail("list", folder);
    for (struct dirent *entry; status == LK_OK && (entry = readdir(dir)) != NULL;) {
        if (!is_left_over(entry->d_name))
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (unlink(path) != 0 && errno != ENOENT)
            status = lk_file_fail("remove", path);
    }
    closedir(dir);
    return status;
}

static bool is_among(int64_t step, const int64_t *steps, int count)
{
    for (int i = 0; i < count; i++)
        if (steps[i] == step)
            return true;
    return false;
}

enum lk_status lk_checkpoint_prune(const char *folder, int keep, const int64_t *spared,
                                   int spared_count)
{
    char path[1024];
    int64_t *steps = NULL;
    int count = 0;
    LK_TRY(remove_left_overs(folder));
    LK_TRY(list_steps(folder, &steps, &count));
    enum lk_status status = LK_OK;
    for (int i = keep; status == LK_OK && i < count; i++) {
        if (is_among(steps[i], spared, spared_count))
            continue;
        status = lk_checkpoint_path(folder, steps[i], path, sizeof path);
        if (status == LK_OK && unlink(path) != 0 && errno != ENOENT)
            status = lk_file_fail("remove", path);
    }
    free(steps);
    return status;
}

enum lk_status lk_checkpoint_set_aside(const char *folder, int64_t step)
{
    char path[1024], aside[1040];
    int64_t *steps = NULL;
    int count = 0;
    LK_TRY(list_steps(folder, &steps, &count));
    enum lk_status status = LK_OK;
    for (int i = 0; status == LK_OK && i < count && steps[i] > step; i++) {
        status = lk_checkpoint_path(folder, steps[i], path, sizeof path);
        snprintf(aside, sizeof aside, "%s.damaged", path);
        if (status == LK_OK && rename(path, aside) != 0)
            status = lk_file_fail("rename", path);
    }
    free(steps);
    return status;
}

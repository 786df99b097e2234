/* config.yaml of a run directory: the newest settings; config.1.yaml, config.2.yaml and so on
 * keep those that the run had before. */
#include "base/fail.h"
#include "io/file.h"
#include "train/run/folder.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_VERSIONS = 100000, PATH_BYTES = 640 };

static enum lk_status write_config(const char *path, const struct lk_settings *settings)
{
    char *text = NULL;
    LK_TRY(lk_settings_print(settings, &text));
    const enum lk_status status = lk_file_write(path, text, strlen(text));
    free(text);
    return status;
}

/* Copies the file to the first name that is free. */
static enum lk_status keep(const char *folder, const char *path, char kept[32])
{
    void *text = NULL;
    size_t bytes = 0;
    char version[PATH_BYTES];
    for (int i = 1; i < MOST_VERSIONS; i++) {
        snprintf(kept, 32, "config.%d.yaml", i);
        snprintf(version, sizeof version, "%s/%s", folder, kept);
        if (lk_file_exists(version))
            continue;
        LK_TRY(lk_file_read(path, 1 << 24, &text, &bytes));
        const enum lk_status status = lk_file_write(version, text, bytes);
        free(text);
        return status;
    }
    return lk_fail(LK_E_IO, "'%s' has %d versions of config.yaml", folder, MOST_VERSIONS);
}

/* What differs; a file that cannot be read is kept all the same. */
static enum lk_status compare(const char *path, const struct lk_settings *settings,
                              struct lk_setting_changes *changes)
{
    struct lk_settings *there = NULL;
    LK_TRY(lk_settings_create(&there));
    enum lk_status status = lk_settings_read(there, path);
    if (status == LK_OK) {
        status = lk_settings_compare(there, settings, changes);
    } else if (status != LK_E_MEMORY) {
        changes->is_unreadable = true;
        lk_error_clear();
        status = LK_OK;
    }
    lk_settings_destroy(there);
    return status;
}

enum lk_status lk_run_config_write(const char *folder, const struct lk_settings *settings,
                                   enum lk_run_progress progress,
                                   struct lk_setting_changes *changes)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/config.yaml", folder);
    if (progress == LK_RUN_BEGINS || !lk_file_exists(path))
        return write_config(path, settings);
    LK_TRY(compare(path, settings, changes));
    if (progress == LK_RUN_IS_FINISHED || (changes->count == 0 && !changes->is_unreadable))
        return LK_OK;
    LK_TRY(keep(folder, path, changes->kept));
    return write_config(path, settings);
}

enum lk_status lk_run_config_forget(const char *folder)
{
    char path[PATH_BYTES];
    for (int i = 1; i < MOST_VERSIONS; i++) {
        snprintf(path, sizeof path, "%s/config.%d.yaml", folder, i);
        if (!lk_file_exists(path))
            break;
        if (unlink(path) != 0)
            return lk_file_fail("remove", path);
    }
    return LK_OK;
}

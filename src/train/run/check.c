/* Whether a folder may be a run directory: what stands in it is a run's, or nobody's. */
#include "train/run/folder.h"

#include "base/fail.h"
#include "io/file.h"
#include "model/checkpoint/checkpoint.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_ENVIRONMENT_BYTES = 1 << 24 };

/* A run writes env.json before all others. */
static bool has_begun(const char *path)
{
    void *data = NULL;
    size_t bytes = 0;
    if (lk_file_read(path, MOST_ENVIRONMENT_BYTES, &data, &bytes) != LK_OK) {
        lk_error_clear();
        return false;
    }
    const bool is_ours = strstr(data, "\"lockstep\": \"") != NULL;
    free(data);
    return is_ours;
}

enum lk_status lk_run_folder_check(const char *folder)
{
    static const char *const names[] = {"env.json", "config.yaml", "metrics.jsonl"};
    char path[1024];
    snprintf(path, sizeof path, "%s/checkpoints", folder);
    bool is_run = lk_checkpoint_is_there(path);
    for (int i = 0; i < LK_COUNT(names); i++) {
        struct stat about;
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        if (stat(path, &about) != 0)
            continue;
        if (!S_ISREG(about.st_mode))
            return lk_fail(LK_E_IO, "its %s is not a file", names[i]);
        is_run = is_run || (i == 0 && has_begun(path));
        if (!is_run)
            return lk_fail(LK_E_ARGUMENT,
                           "its %s was not written by a run and would be lost: name another "
                           "directory, or move that file",
                           names[i]);
    }
    return LK_OK;
}

/* The list of image files that the sources folder and csv share. */
#include "data/sources/files.h"

#include "base/fail.h"
#include "io/crc32c.h"
#include "io/file.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum { MOST_FILE_BYTES = 256 << 20 };

static enum lk_status grow(struct lk_files *files)
{
    const int64_t room = files->room ? 2 * files->room : 1024;
    const char **paths = realloc(files->paths, (size_t)room * sizeof *paths);
    if (paths)
        files->paths = paths;
    int32_t *labels = realloc(files->labels, (size_t)room * sizeof *labels);
    if (labels)
        files->labels = labels;
    if (!paths || !labels)
        return lk_fail_memory("a list of files", (size_t)room * sizeof *paths);
    files->room = room;
    return LK_OK;
}

enum lk_status lk_files_add(struct lk_files *files, const char *folder, const char *name,
                            int32_t label)
{
    if (files->count == files->room)
        LK_TRY(grow(files));
    void *path = NULL;
    const size_t bytes = strlen(folder) + strlen(name) + 2;
    LK_TRY(lk_arena_allocate(&files->arena, bytes, &path));
    snprintf(path, bytes, "%s%s%s", folder, *folder ? "/" : "", name);
    files->paths[files->count] = path;
    files->labels[files->count] = label;
    files->count++;
    return LK_OK;
}

void lk_files_describe(const struct lk_files *files, struct lk_data_info *info)
{
    info->name = files->name;
    info->count = files->count;
    info->classes = files->classes.count;
    info->class_names = files->classes.items;
}

enum lk_status lk_files_fetch(const void *state, int64_t index, struct lk_encoded *encoded)
{
    const struct lk_files *files = state;
    encoded->label = files->labels[index];
    snprintf(encoded->where, sizeof encoded->where, "%s", files->paths[index]);
    return lk_file_read(files->paths[index], MOST_FILE_BYTES, &encoded->data, &encoded->bytes);
}

int64_t lk_files_label(const void *state, int64_t index)
{
    return ((const struct lk_files *)state)->labels[index];
}

/* The stamp is a checksum of the file's length and time. A file that is gone has none; reading
 * it then fails with a message. */
enum lk_status lk_files_about(const void *state, int64_t index,
                              struct lk_sample_metadata *about)
{
    const struct lk_files *files = state;
    const char *path = files->paths[index], *slash = strrchr(path, '/');
    const char *name = files->root ? strchr(path + files->root, '/') : slash;
    struct stat found;
    about->label = files->labels[index];
    name = name ? name + 1 : path;
    snprintf(about->name, sizeof about->name, "%s",
             strlen(name) < sizeof about->name ? name : "");
    if (about->label < files->classes.count)
        snprintf(about->class_name, sizeof about->class_name, "%s",
                 files->classes.items[about->label]);
    if (stat(path, &found) == 0) {
        const int64_t parts[] = {found.st_size, found.st_mtim.tv_sec, found.st_mtim.tv_nsec};
        about->stamp = lk_crc32c(parts, sizeof parts);
    }
    return LK_OK;
}

/* The folder of the data set is left out: it may be called by another path next time. */
void lk_files_identify(const void *state, struct lk_sha256 *sum)
{
    const struct lk_files *files = state;
    for (int64_t i = 0; i < files->count; i++) {
        const char *path = files->paths[i] + files->root;
        struct stat found;
        int64_t parts[4] = {files->labels[i]};
        if (stat(files->paths[i], &found) == 0) {
            parts[1] = found.st_size;
            parts[2] = found.st_mtim.tv_sec;
            parts[3] = found.st_mtim.tv_nsec;
        }
        lk_sha256_add(sum, path, strlen(path) + 1);
        lk_sha256_add(sum, parts, sizeof parts);
    }
}

void lk_files_close(void *state)
{
    struct lk_files *files = state;
    lk_names_clear(&files->classes);
    lk_arena_clear(&files->arena);
    free(files->paths);
    free(files->labels);
    free(files);
}

bool lk_files_is_image(const char *name)
{
    static const char *const endings[] = {".jpg", ".jpeg", ".png"};
    const char *dot = strrchr(name, '.');
    for (int i = 0; dot && i < LK_COUNT(endings); i++)
        if (strcasecmp(dot, endings[i]) == 0)
            return true;
    return false;
}

/* Finds the image files that words of a command line name: files, folders, patterns. */
#include "files.h"
#include "command.h"
#include "terminal/terminal.h"
#include <dirent.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

/* Deeper than people nest; a link to a folder above itself ends here. */
enum { MOST_DEPTH = 32, MOST_PATH = 4096 };

bool file_is_there(const char *path)
{
    struct stat found;
    return stat(path, &found) == 0;
}

static bool is_folder(const char *path)
{
    struct stat found;
    return stat(path, &found) == 0 && S_ISDIR(found.st_mode);
}

static bool is_image(const char *name)
{
    static const char *const endings[] = {".png", ".jpg", ".jpeg"};
    const size_t length = strlen(name);
    for (int i = 0; i < 3; i++) {
        const size_t end = strlen(endings[i]);
        if (length > end && strcasecmp(name + length - end, endings[i]) == 0)
            return true;
    }
    return false;
}

static int out_of_memory(void)
{
    say("out of memory");
    return FAILED;
}

static int add(struct files *files, const char *path)
{
    if (files->count == files->room) {
        const int room = files->room ? 2 * files->room : 16;
        char **paths = realloc(files->paths, (size_t)room * sizeof *paths);
        if (!paths)
            return out_of_memory();
        files->paths = paths;
        files->room = room;
    }
    files->paths[files->count] = strdup(path);
    return files->paths[files->count++] ? DONE : out_of_memory();
}

static int visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* In the order of their bytes, whatever the language is. */
static int by_bytes(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int add_folder(struct files *files, const char *folder, int depth);

static int add_entry(struct files *files, const char *folder, const char *name, int depth)
{
    char path[MOST_PATH];
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path) {
        say("'%.100s...': a path of more than %d bytes", folder, MOST_PATH - 1);
        return BAD_INPUT;
    }
    if (is_folder(path))
        return add_folder(files, path, depth + 1);
    return is_image(name) ? add(files, path) : DONE;
}

static int add_folder(struct files *files, const char *folder, int depth)
{
    struct dirent **entries = NULL;
    int result = DONE;
    if (depth > MOST_DEPTH) {
        say("'%.200s...': more than %d folders in one another", folder, MOST_DEPTH);
        return BAD_INPUT;
    }
    const int count = scandir(folder, &entries, visible, by_bytes);
    if (count < 0) {
        say("cannot read the folder '%s'", folder);
        return BAD_INPUT;
    }
    for (int i = 0; i < count; i++) {
        if (result == DONE)
            result = add_entry(files, folder, entries[i]->d_name, depth);
        free(entries[i]);
    }
    free(entries);
    return result;
}

static int add_pattern(struct files *files, const char *pattern)
{
    glob_t found = {0};
    int result = DONE;
    if (glob(pattern, 0, NULL, &found) != 0) {
        say("no file matches '%s'", pattern);
        result = BAD_INPUT;
    }
    for (size_t i = 0; result == DONE && i < found.gl_pathc; i++)
        if (!is_folder(found.gl_pathv[i]))
            result = add(files, found.gl_pathv[i]);
    globfree(&found);
    return result;
}

int files_add(struct files *files, const char *word)
{
    const int before = files->count;
    const bool is_there = file_is_there(word);
    if (is_there && is_folder(word)) {
        const int result = add_folder(files, word, 0);
        if (result == DONE && files->count == before) {
            say("there is no .png, .jpg or .jpeg file below '%s'", word);
            return BAD_INPUT;
        }
        return result;
    }
    return !is_there && strpbrk(word, "*?[") ? add_pattern(files, word) : add(files, word);
}

void files_clear(struct files *files)
{
    for (int i = 0; i < files->count; i++)
        free(files->paths[i]);
    free(files->paths);
    *files = (struct files){0};
}

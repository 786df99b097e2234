/* Lists of names, in memory and in files. */
#include "data/sources/names.h"

#include "base/fail.h"
#include "io/file.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum lk_status lk_names_add(struct lk_names *names, const char *name)
{
    if (names->count == names->room) {
        const int room = names->room ? 2 * names->room : 16;
        const char **items = realloc(names->items, (size_t)room * sizeof *items);
        if (!items)
            return lk_fail_memory("names", (size_t)room * sizeof *items);
        names->items = items;
        names->room = room;
    }
    LK_TRY(lk_arena_text(&names->arena, name, &names->items[names->count]));
    names->count++;
    return LK_OK;
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void lk_names_sort(struct lk_names *names)
{
    if (names->count > 0)
        qsort(names->items, (size_t)names->count, sizeof *names->items, compare);
}

int lk_names_find(const struct lk_names *names, const char *name)
{
    for (int i = 0; i < names->count; i++)
        if (strcmp(names->items[i], name) == 0)
            return i;
    return -1;
}

static enum lk_status read_line(struct lk_names *names, char *line, const char *path)
{
    char *end;
    const long number = strtol(line, &end, 10);
    const bool is_numbered = end != line && *end == ':';
    const char *name = is_numbered ? end + 1 : line;
    if (is_numbered && number != names->count)
        return lk_fail(LK_E_DATA, "'%s': line %d is numbered %ld; numbers count from 0", path,
                       names->count + 1, number);
    if (!*name)
        return lk_fail(LK_E_DATA, "'%s': line %d is empty, expected the name of a class", path,
                       names->count + 1);
    if (lk_names_find(names, name) >= 0)
        return lk_fail(LK_E_DATA, "'%s': class '%s' is there twice", path, name);
    return lk_names_add(names, name);
}

enum lk_status lk_names_read(struct lk_names *names, const char *path)
{
    enum { MOST_BYTES = 16 << 20 };
    void *text = NULL;
    size_t bytes = 0;
    LK_TRY(lk_file_read(path, MOST_BYTES, &text, &bytes));
    enum lk_status status = LK_OK;
    char *rest = text;
    while (status == LK_OK && *rest) {
        char *line = rest;
        rest += strcspn(rest, "\r\n");
        if (*rest) {
            const bool is_pair = rest[0] == '\r' && rest[1] == '\n';
            *rest = '\0';
            rest += is_pair ? 2 : 1;
        }
        status = read_line(names, line, path);
    }
    free(text);
    if (status == LK_OK && names->count == 0)
        return lk_fail(LK_E_DATA, "'%s' has no name of a class", path);
    return status;
}

void lk_names_clear(struct lk_names *names)
{
    lk_arena_clear(&names->arena);
    free(names->items);
    *names = (struct lk_names){0};
}

/* Lists of names: of classes, by label, and of what a folder holds. Floor 4. */
#ifndef LK_DATA_SOURCES_NAMES_H
#define LK_DATA_SOURCES_NAMES_H

#include "base/arena.h"
#include <lockstep/status.h>

/* {0} is empty. */
struct lk_names {
    struct lk_arena arena;
    const char **items; /* [count] */
    int count, room;
};

/* Appends a name. fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_names_add(struct lk_names *names, const char *name);

/* Puts them in the order of their bytes. */
void lk_names_sort(struct lk_names *names);

/* The place of a name; -1: none. */
int lk_names_find(const struct lk_names *names, const char *name);

/* Appends the classes in a file, one a line; "3:cat" in the fourth line is "cat".
 * fails: LK_E_IO; LK_E_DATA no name, one twice, numbers that do not count from 0 */
LK_MUST_CHECK enum lk_status lk_names_read(struct lk_names *names, const char *path);

void lk_names_clear(struct lk_names *names);

#endif

/* Files that are part of the library: kernels, zoo models, the digits. Floor 0. */
#ifndef LK_BASE_EMBEDDED_H
#define LK_BASE_EMBEDDED_H

#include <stddef.h>

/* One file of a table made by tools/embed.py; the last row of a table has no name. text[bytes]
 * is '\0'. */
struct lk_embedded {
    const char *name;
    const char *text;
    size_t bytes;
    /* Of a kernel file: the names that it declares and defines as macros, separated by blanks;
     * device/program/unity.c renames them. */
    const char *declared, *macros;
};

/* The row named `name`; NULL: absent. */
const struct lk_embedded *lk_embedded_find(const struct lk_embedded *table, const char *name);

#endif

/* Finds a file that was compiled into the library by its name. */
#include "base/embedded.h"

#include <string.h>

const struct lk_embedded *lk_embedded_find(const struct lk_embedded *table, const char *name)
{
    for (; table->name; table++)
        if (strcmp(table->name, name) == 0)
            return table;
    return NULL;
}

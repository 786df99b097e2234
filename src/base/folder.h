/* Making folders, and the path of the cache folder, whose files may be deleted at any time.
 * Floor 0. */
#ifndef LK_BASE_FOLDER_H
#define LK_BASE_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

/* Makes the folder and those above it; one that exists is fine. False: errno tells why. */
bool lk_folder_create(const char *path);

/* Writes the path $LOCKSTEP_CACHE/PART, or $HOME/.cache/lockstep/PART without that variable;
 * the folder need not exist. False: neither variable is set, or `path` is too small. */
bool lk_cache_folder(const char *part, char *path, size_t bytes);

#endif

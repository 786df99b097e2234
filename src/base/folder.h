/* Folders: made, and the one for what may be deleted at any time. Floor 0. */
#ifndef LK_BASE_FOLDER_H
#define LK_BASE_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

/* Makes the folder and those above it; one that exists is fine. False: errno tells why. */
bool lk_folder_create(const char *path);

/* Writes $LOCKSTEP_CACHE/PART, else $HOME/.cache/lockstep/PART, which need not be there. False
 * where neither variable is set, or for want of room. */
bool lk_cache_folder(const char *part, char *path, size_t bytes);

#endif

/* Whole files: read, replaced safely. Floor 1. Knows bytes and names only. */
#ifndef LOCKSTEP_FILE_H
#define LOCKSTEP_FILE_H

#include <lockstep/status.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Reads a regular file of at most `limit` bytes. The caller frees `data`; a '\0' stands behind
 * its last byte (not counted), so that text can be used as it is.
 * fails: LK_E_IO cannot be read; LK_E_DATA larger than `limit`; LK_E_MEMORY */
LK_API LK_MUST_CHECK enum lk_status lk_file_read(const char *path, size_t limit, void **data,
                                                 size_t *bytes);

/* Replaces or creates a file. Readers see the old file or the whole new one, after a crash too:
 * a new file beside it is written and synced, renamed over it, and the folder is synced. Any
 * thread; the last of several writers wins. fails: LK_E_IO (a full disk): the old file is
 * untouched and nothing is left beside it, except where only the sync of the folder failed:
 * then the new file is in place. */
LK_API LK_MUST_CHECK enum lk_status lk_file_write(const char *path, const void *data,
                                                  size_t bytes);

/* Asks whether lk_file_write() could begin there, before the work whose result it will write.
 * What is there stays as it is, and nothing is left beside it. fails: LK_E_IO, as it would */
LK_API LK_MUST_CHECK enum lk_status lk_file_check(const char *path);

#ifdef __cplusplus
}
#endif
#endif

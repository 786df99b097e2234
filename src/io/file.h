/* Whole files and folders: read, replace safely, make, ask. Floor 1. Knows bytes and names
 * only; what is in a file is its reader's affair. */
#ifndef LK_IO_FILE_H
#define LK_IO_FILE_H

#include <lockstep/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Reads a regular file of at most `limit` bytes. The caller frees `data`; a '\0' stands behind
 * its last byte (not counted), so that text can be used as it is.
 * fails: LK_E_IO cannot be read; LK_E_DATA larger than `limit`; LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_file_read(const char *path, size_t limit, void **data,
                                          size_t *bytes);

struct lk_file_part {
    const void *data;
    size_t bytes;
};

/* Replaces or creates the file `path` with the parts, one after the other. Readers see the old
 * file or the whole new one, after a crash too: a new file beside it is written and synced,
 * renamed over it, and the folder is synced. Any thread; the last of several writers wins.
 * fails: LK_E_IO (a full disk): the old file is untouched and nothing is left beside it, except
 * where only the sync of the folder failed: then the new file is in place. */
LK_MUST_CHECK enum lk_status lk_file_write_parts(const char *path,
                                                 const struct lk_file_part *parts, int count);

/* As lk_file_write_parts() with one part. */
LK_MUST_CHECK enum lk_status lk_file_write(const char *path, const void *data, size_t bytes);

/* A file that is written piece by piece beside the one whose place it takes when it is whole.
 */
struct lk_file_draft;

/* Begins one for `path`, which stays as it is meanwhile. fails: LK_E_IO where it cannot be
 * created, and where `path` is something but no file */
LK_MUST_CHECK enum lk_status lk_file_draft_open(const char *path, struct lk_file_draft **draft);

/* Where its bytes go; lk_file_draft_keep() tells whether they got there. */
FILE *lk_file_draft_stream(struct lk_file_draft *draft);

/* Puts the file in place, as lk_file_write_parts() does, and frees the draft in any case. */
LK_MUST_CHECK enum lk_status lk_file_draft_keep(struct lk_file_draft *draft);

/* Removes what was written. NULL is fine. */
void lk_file_draft_drop(struct lk_file_draft *draft);

/* Renames `from` to `to` (same file system) and syncs the folder of `to`. `from` must already
 * be synced if it has to survive a crash. fails: LK_E_IO */
LK_MUST_CHECK enum lk_status lk_file_move(const char *from, const char *to);

/* Makes the folder and those above it; one that exists is fine. fails: LK_E_IO */
LK_MUST_CHECK enum lk_status lk_folder_make(const char *path);

/* A regular file / a folder of that name is there (links are followed). */
bool lk_file_exists(const char *path);
bool lk_folder_exists(const char *path);

/* Returns lk_fail(LK_E_IO, "cannot WHAT 'PATH': ...") with the text of errno. */
enum lk_status lk_file_fail(const char *what, const char *path);

#endif

/* Whole files and folders: read, replace safely, make, ask. Floor 1. Knows bytes and names
 * only; what is in a file is its reader's affair. */
#ifndef LK_IO_FILE_H
#define LK_IO_FILE_H

#include <lockstep/file.h>
#include <stdbool.h>
#include <stdio.h>

struct lk_file_part {
    const void *data;
    size_t bytes;
};

/* As lk_file_write() with the parts, one after the other. */
LK_MUST_CHECK enum lk_status lk_file_write_parts(const char *path,
                                                 const struct lk_file_part *parts, int count);

/* A file that is written piece by piece beside the one whose place it takes when it is whole.
 */
struct lk_file_draft;

/* Begins one for `path`, which stays as it is meanwhile. fails: LK_E_IO where it cannot be
 * created, and where `path` is something but no file */
LK_MUST_CHECK enum lk_status lk_file_draft_open(const char *path, struct lk_file_draft **draft);

/* Where its bytes go; lk_file_draft_keep() tells whether they got there. */
FILE *lk_file_draft_stream(struct lk_file_draft *draft);

/* Puts the file in place, as lk_file_write() does, and frees the draft in any case. */
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

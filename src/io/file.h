/* Reads whole files, replaces them safely, makes folders and asks what exists. Floor 1. Knows
 * bytes and names only, no file format. */
#ifndef LK_IO_FILE_H
#define LK_IO_FILE_H

#include <lockstep/file.h>
#include <stdbool.h>
#include <stdio.h>

struct lk_file_piece {
    const void *data;
    size_t bytes;
};

/* As lk_file_write() for contents in several pieces, one after the other. */
LK_MUST_CHECK enum lk_status lk_file_write_pieces(const char *path,
                                                  const struct lk_file_piece *parts, int count);

/* A new version of a file, written under another name beside it; when complete it replaces the
 * file in one step, so that nobody ever sees half of it. */
struct lk_file_draft;

/* Deletes drafts for `path` that a writer on this host left when it was killed. */
void lk_file_remove_left_overs(const char *path);

/* Begins a draft for `path`, which stays as it is meanwhile. fails: LK_E_IO where it cannot be
 * created, or where `path` is there but no regular file */
LK_MUST_CHECK enum lk_status lk_file_draft_open(const char *path, struct lk_file_draft **draft);

/* The stream to write to; write errors are found by lk_file_draft_commit(). */
FILE *lk_file_draft_stream(struct lk_file_draft *draft);

/* Syncs the draft and moves it into place, as lk_file_write() does. Frees the draft in any
 * case. */
LK_MUST_CHECK enum lk_status lk_file_draft_commit(struct lk_file_draft *draft);

/* Deletes the draft and frees it. NULL is fine. */
void lk_file_draft_discard(struct lk_file_draft *draft);

/* Opens a file to read it from any place. Does not wait, whatever it is.
 * fails: LK_E_IO, also for a pipe, a device or a folder */
LK_MUST_CHECK enum lk_status lk_file_open(const char *path, int *fd);

/* Opens a file, or a new one, to read it and to add lines to it. fails: as lk_file_open() */
LK_MUST_CHECK enum lk_status lk_file_append(const char *path, FILE **stream);

/* Renames `from` to `to` (same file system) and syncs the folder of `to`. `from` must already
 * be synced if it has to survive a crash. fails: LK_E_IO */
LK_MUST_CHECK enum lk_status lk_file_move(const char *from, const char *to);

/* Makes the folder and those above it; one that exists is fine. fails: LK_E_IO */
LK_MUST_CHECK enum lk_status lk_folder_make(const char *path);

/* Whether a regular file, or a folder, of that name exists (links are followed). */
bool lk_file_exists(const char *path);
bool lk_folder_exists(const char *path);

/* Returns lk_fail(LK_E_IO, "cannot WHAT 'PATH': ...") with the text of errno. */
enum lk_status lk_file_fail(const char *what, const char *path);

#endif

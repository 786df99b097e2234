/* Files that grow while a program runs, whole entries at a time, and survive that a disk is
 * full for a while: what could not be written waits in memory. Floor 1. */
#ifndef LK_IO_JOURNAL_H
#define LK_IO_JOURNAL_H

#include <lockstep/status.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct lk_journal;

/* What is never left torn: lines, or the records of TFRecord and TensorBoard files (8 bytes of
 * length, 4 of checksum, the content, 4 of checksum). */
enum lk_journal_entries { LK_JOURNAL_LINES, LK_JOURNAL_RECORDS };

/* Opens a file, or a new one, behind its first `bytes` bytes (-1, or where it is shorter:
 * behind its last whole entry); those behind are removed. fails: LK_E_IO, also for a pipe, a
 * device or a folder; LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_journal_open(const char *path, int64_t bytes,
                                             enum lk_journal_entries entries,
                                             struct lk_journal **journal);

/* Writes what waits as far as that goes. NULL is fine. */
void lk_journal_close(struct lk_journal *journal);

/* What is added, in memory; good until the next call of a function below. */
FILE *lk_journal_stream(struct lk_journal *journal);

/* How long the file is with all that waits. */
int64_t lk_journal_bytes(const struct lk_journal *journal);

/* Writes all that waits. Where that fails the file has whole entries as before, or will have
 * once a later try succeeds. fails: LK_E_IO; LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_journal_write(struct lk_journal *journal);

/* Likewise, but a disk that takes nothing is no failure: it is said once, and what waits is
 * written with the next call. fails: LK_E_IO where too much waits; LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_journal_try(struct lk_journal *journal);

/* Where somebody has removed or renamed the file, which is to be at `path`, it is written there
 * again, which is said; where another one is in its place, that is said once. A disk that takes
 * nothing is tried again with the next call. */
void lk_journal_find(struct lk_journal *journal, const char *path);

/* Where somebody has cut the file, it grows from its last whole entry, which is said. */
void lk_journal_find_end(struct lk_journal *journal);

/* Brings what was written to disk; on any thread, until it is closed. fails: LK_E_IO */
LK_MUST_CHECK enum lk_status lk_journal_sync(const struct lk_journal *journal);

#endif

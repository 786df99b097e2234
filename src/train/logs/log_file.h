/* Files of a run that grow while it trains, and are cut where it goes on from a checkpoint.
 * Floor 8. */
#ifndef LK_TRAIN_LOGS_LOG_FILE_H
#define LK_TRAIN_LOGS_LOG_FILE_H

#include "io/journal.h"

enum { LK_LOG_PATH = 1024 };

/* All that are open. run: the run directory as it is called now, which others may change; "":
 * none. */
struct lk_logs {
    const char *run;
    struct lk_log_file *first;
};

/* {0} is none. */
struct lk_log_file {
    struct lk_logs *logs;
    char name[LK_LOG_PATH]; /* as it was given */
    char path[LK_LOG_PATH];
    struct lk_journal *journal;
    int64_t begun; /* bytes that were there */
    struct lk_log_file *next;
};

/* A path as it was given: a relative one is below the run directory, where there is one.
 * fails: LK_E_ARGUMENT, too long */
LK_MUST_CHECK enum lk_status lk_log_path(const char *run, const char *name,
                                         char path[LK_LOG_PATH]);

/* Opens it behind its first `bytes` bytes, or its last whole entry; those behind are removed.
 * fails: LK_E_IO; LK_E_ARGUMENT: it is a file of the run itself, or another one of `logs`, or
 * what is there does not begin with `beginning` (NULL: may begin with anything) */
LK_MUST_CHECK enum lk_status lk_log_file_open(struct lk_logs *logs, struct lk_log_file *log,
                                              const char *name, int64_t bytes,
                                              enum lk_journal_entries entries,
                                              const char *beginning);

/* Writes what was added and tells how long the file is, with what a disk that takes nothing
 * keeps waiting; is_last: nothing may wait. fails: LK_E_IO */
LK_MUST_CHECK enum lk_status lk_log_file_flush(struct lk_log_file *log, bool is_last,
                                               int64_t *bytes);
LK_MUST_CHECK enum lk_status lk_log_file_sync(const struct lk_log_file *log);
void lk_log_file_close(struct lk_log_file *log);

/* Writes those again that somebody has removed, see lk_journal_find(). The run directory must
 * be the run's own. */
void lk_logs_find(struct lk_logs *logs);

#endif

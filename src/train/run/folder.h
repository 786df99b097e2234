/* A run directory: config.yaml, env.json, metrics.jsonl, checkpoints. Floor 8. */
#ifndef LK_TRAIN_RUN_FOLDER_H
#define LK_TRAIN_RUN_FOLDER_H

#include "team/stepper/stepper.h"
#include "train/settings/settings.h"

struct lk_run_folder;

/* Makes the directory and those in it; nothing there is changed. An empty path keeps no files:
 * all functions below then do nothing. Waits some seconds for another process that trains there
 * to end. fails: LK_E_IO (unwritable, no directory, another process trains there);
 * LK_E_ARGUMENT: it has files that a run would replace */
LK_MUST_CHECK enum lk_status lk_run_folder_open(const char *path,
                                                struct lk_run_folder **folder);
void lk_run_folder_close(struct lk_run_folder *folder);

/* Whether a run may replace the files that stand in a folder, which need not exist.
 * fails: LK_E_IO: one is no file; LK_E_ARGUMENT: one is somebody else's */
LK_MUST_CHECK enum lk_status lk_run_folder_check(const char *folder);

/* "" for no directory. */
const char *lk_run_folder_path(const struct lk_run_folder *folder);
const char *lk_run_folder_checkpoints(const struct lk_run_folder *folder);

/* Finds the directory where somebody has moved it, or makes what was removed again, which is
 * said. is_bare: lk_run_folder_describe() has to write its files. fails: LK_E_IO: another one
 * is in its place, or it cannot be made */
LK_MUST_CHECK enum lk_status lk_run_folder_find(struct lk_run_folder *folder, bool *is_bare);

/* Removes checkpoints, metrics and older settings of an earlier run: --fresh. */
LK_MUST_CHECK enum lk_status lk_run_folder_start_over(struct lk_run_folder *folder);

/* What env.json tells: this rank's devices (a list that ends with NULL), the number of ranks,
 * the algorithms. */
struct lk_environment {
    const struct lk_device_info *const *devices;
    int ranks;
    bool planes; /* plane tiles in training */
    struct lk_choices *choices;
};

/* How far a run is when it begins or goes on. */
enum lk_run_progress { LK_RUN_BEGINS, LK_RUN_GOES_ON, LK_RUN_IS_FINISHED };

/* Writes env.json and config.yaml, see lk_run_config_write(). */
LK_MUST_CHECK enum lk_status lk_run_folder_describe(struct lk_run_folder *folder,
                                                    const struct lk_settings *settings,
                                                    const struct lk_environment *environment,
                                                    enum lk_run_progress progress,
                                                    struct lk_setting_changes *changes);

/* Opens metrics.jsonl behind the lines of steps up to `step`; later ones were never saved and
 * are dropped, and the evaluation of `step` where the run repeats it. */
LK_MUST_CHECK enum lk_status lk_run_folder_begin(struct lk_run_folder *folder, int64_t step,
                                                 bool repeats);

/* Writes config.yaml. Of a run that goes on with other settings the old file is kept under
 * another name; that of a run that is finished stays as it is. `changes`, which is empty, tells
 * what is another setting than before. */
LK_MUST_CHECK enum lk_status lk_run_config_write(const char *folder,
                                                 const struct lk_settings *settings,
                                                 enum lk_run_progress progress,
                                                 struct lk_setting_changes *changes);

/* Removes config.1.yaml and so on, which keep settings that a run had before. */
LK_MUST_CHECK enum lk_status lk_run_config_forget(const char *folder);

/* An event as its line of metrics.jsonl, without the newline; the caller frees it.
 * fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_event_print(const struct lk_event *event, char **line);

/* Appends a line to metrics.jsonl, where others read it at once; a disk that takes none keeps
 * it waiting. fails: LK_E_IO where too much waits; LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_run_folder_log(struct lk_run_folder *folder, const char *line);

/* Writes all lines, as far as the disk takes them; is_last: there is no later try. sync brings
 * them to disk, on any thread. fails: LK_E_IO */
LK_MUST_CHECK enum lk_status lk_run_folder_flush(struct lk_run_folder *folder, bool is_last);
LK_MUST_CHECK enum lk_status lk_run_folder_sync(const struct lk_run_folder *folder);

#endif

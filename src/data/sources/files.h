/* Labelled image files by path: what the sources folder and csv have in common. Floor 4. Knows
 * no image: files are bytes. */
#ifndef LK_DATA_SOURCES_FILES_H
#define LK_DATA_SOURCES_FILES_H

#include "data/sources/names.h"
#include "data/sources/source.h"

struct lk_files {
    struct lk_names classes;
    struct lk_arena arena;
    const char **paths; /* [count] */
    int32_t *labels;    /* [count] */
    int64_t count, room;
    size_t root; /* how many bytes of each path come before the folder of its class; 0: there is
                  * none */
    char name[64];
};

/* Appends a file; its path is "FOLDER/NAME", or NAME where folder is "".
 * fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_files_add(struct lk_files *files, const char *folder,
                                          const char *name, int32_t label);

/* Fills the number of samples and the names of classes of a data set's info. */
void lk_files_describe(const struct lk_files *files, struct lk_data_info *info);

/* The verbs of a source whose state is a struct lk_files of its own. */
enum lk_status lk_files_fetch(const void *state, int64_t index, struct lk_encoded *encoded);
int64_t lk_files_label(const void *state, int64_t index);
enum lk_status lk_files_about(const void *state, int64_t index,
                              struct lk_sample_metadata *about);
void lk_files_identify(const void *state, struct lk_sha256 *sum);
void lk_files_close(void *state);

/* Whether a name ends in .jpg, .jpeg or .png, in small or capital letters. */
bool lk_files_is_image(const char *name);

#endif

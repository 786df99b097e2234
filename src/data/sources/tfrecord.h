/* The inside of the source tfrecord, for the files that make it up. Floor 4. */
#ifndef LK_DATA_SOURCES_TFRECORD_H
#define LK_DATA_SOURCES_TFRECORD_H

#include "data/sources/names.h"
#include "data/sources/source.h"
#include "io/records/example.h"
#include "io/records/tfrecord.h"

struct lk_records {
    struct lk_tfrecord **files;
    int64_t *ends; /* [file_count]: records up to and with this file */
    int file_count;
    int64_t count;
    struct lk_image_options options;
    struct lk_names classes;
    char name[64];
};

/* Closes the files. */
void lk_records_clear(struct lk_records *records);

/* The file that record `index` of all is in; `index` becomes its number there. */
const struct lk_tfrecord *lk_records_find_file(const struct lk_records *records,
                                               int64_t *index);

/* The pattern of the request's part, and which part that is. fails: LK_E_IO where there is
 * none */
LK_MUST_CHECK enum lk_status lk_records_find_part(const struct lk_data_request *request,
                                                  char *pattern, size_t room,
                                                  enum lk_data_part *found_part);

/* Opens all files of a pattern; `lost` counts records that end one and are cut short. */
LK_MUST_CHECK enum lk_status lk_records_open_files(struct lk_records *records,
                                                   const char *pattern, int64_t *lost);

/* Whether the files that are there are all of a set. fails: LK_E_DATA */
LK_MUST_CHECK enum lk_status lk_records_check_files(const struct lk_records *records,
                                                    const char *folder);

/* Fills the classes in `info`: of the option, of a list of names, else of the records. */
LK_MUST_CHECK enum lk_status lk_records_find_classes(struct lk_records *records,
                                                     const char *text,
                                                     struct lk_data_info *info);

/* A whole number, or with classes that have names one of these. fails: LK_E_DATA */
LK_MUST_CHECK enum lk_status lk_records_label(const struct lk_records *records,
                                              struct lk_example_bytes record, int64_t *label);

/* The text under a key; "" where there is none, or one that is too long. */
LK_MUST_CHECK enum lk_status lk_records_text(struct lk_example_bytes record, const char *key,
                                             char *text, size_t room);

/* LK_E_DATA: there is no such key, but others; or it holds what is not wanted, which is said.
 */
enum lk_status lk_records_fail_key(const char *what, const char *key,
                                   struct lk_example_bytes record);

#endif

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

/* Finds the file with record `index` of all; `index` becomes the record's number in it. */
const struct lk_tfrecord *lk_records_find_file(const struct lk_records *records,
                                               int64_t *index);

/* The pattern of the request's part, and which part that is. fails: LK_E_IO where there is
 * none */
LK_MUST_CHECK enum lk_status lk_records_find_part(const struct lk_data_request *request,
                                                  char *pattern, size_t room,
                                                  enum lk_data_part *found_part);

/* Opens all files of a pattern; `lost` counts records that are cut short at the end of a
 * file. */
LK_MUST_CHECK enum lk_status lk_records_open_files(struct lk_records *records,
                                                   const char *pattern, int64_t *lost);

/* Whether the files that are there are all of a set. fails: LK_E_DATA */
LK_MUST_CHECK enum lk_status lk_records_check_files(const struct lk_records *records,
                                                    const char *folder);

/* Reads the image file under a key of record `index`, and the record's label if it has one.
 * fails: LK_E_DATA */
LK_MUST_CHECK enum lk_status lk_records_fetch(const struct lk_records *records, const char *key,
                                              bool has_label, int64_t index,
                                              struct lk_encoded *encoded);

/* Adds names, lengths and times of the files to a hash. */
void lk_records_identify(const struct lk_records *records, struct lk_sha256 *sum);

/* Fills the classes in `info`: from the option, from a list of names, or from the records. */
LK_MUST_CHECK enum lk_status lk_records_find_classes(struct lk_records *records,
                                                     const char *text,
                                                     struct lk_data_info *info);

/* Reads a label: a whole number or, where classes have names, one of these. fails: LK_E_DATA */
LK_MUST_CHECK enum lk_status lk_records_label(const struct lk_records *records,
                                              struct lk_example_bytes record, int64_t *label);

/* The text under a key; "" where there is none, or one that is too long. */
LK_MUST_CHECK enum lk_status lk_records_text(struct lk_example_bytes record, const char *key,
                                             char *text, size_t room);

/* Fails with LK_E_DATA: the key is not there, and these others are; or it holds something else,
 * and what. */
enum lk_status lk_records_fail_key(const char *what, const char *key,
                                   struct lk_example_bytes record);

#endif

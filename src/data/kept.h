/* A data set of records that the caller has computed of the samples of another one, kept in
 * memory or in a file. Floor 4. Knows no model: a record is bytes, cut into fields. */
#ifndef LK_DATA_KEPT_H
#define LK_DATA_KEPT_H

#include "io/sha256.h"
#include <lockstep/data.h>

struct lk_kept;

struct lk_kept_config {
    const char *name; /* for messages; outlives it, as do names of fields */
    const char *path; /* of the file; NULL: in memory */
    int64_t count;    /* records */
    int field_count;
    struct lk_field fields[LK_MOST_FIELDS]; /* as readers get them */
    bool is_half[LK_MOST_FIELDS];           /* of LK_F32: records have halves for it */
    char sum[LK_SHA256_TEXT]; /* of all that decides the records: a file with another one is
                               * made anew */
};

/* Bytes of a field within a record. */
size_t lk_kept_field_bytes(const struct lk_kept_config *config, int field);

/* Takes memory for all records, or opens the file. `is_there`: it has all of them; else
 * lk_kept_put() fills it in. fails: LK_E_DATA a file that is none of such records; LK_E_IO;
 * LK_E_MEMORY, also where there is less memory, or room on the disk, than it will take */
LK_MUST_CHECK enum lk_status lk_kept_open(const struct lk_kept_config *config,
                                          struct lk_kept **kept, bool *is_there);
void lk_kept_close(struct lk_kept *kept);

/* Bytes that can be kept on the disk of a file, or in memory (path NULL) without swapping;
 * SIZE_MAX: the system does not tell. */
size_t lk_kept_room(const char *path);

/* Bytes of a record, in which fields lie one behind the other without gaps. */
size_t lk_kept_record_bytes(const struct lk_kept *kept);

/* Keeps record `index`. Any thread. fails: LK_E_IO, from the first record that could not be
 * written on */
LK_MUST_CHECK enum lk_status lk_kept_put(struct lk_kept *kept, int64_t index,
                                         const uint8_t *record);

/* To be called when all records were put. fails: LK_E_IO */
LK_MUST_CHECK enum lk_status lk_kept_finish(struct lk_kept *kept);

/* The data set of all records, which is to be closed before them. */
LK_MUST_CHECK enum lk_status lk_kept_data(struct lk_kept *kept, struct lk_data **data);

#endif

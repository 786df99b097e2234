/* Zip archives: small entries as texts, stored ones as bytes that are read from any place.
 * Floor 1. Private to this room; libzip is known to zip.c alone.
 * source: APPNOTE.TXT of PKWARE */
#ifndef LK_IO_ARRAYS_ZIP_H
#define LK_IO_ARRAYS_ZIP_H

#include "io/bytes.h"
#include <stdbool.h>

struct lk_zip;

/* Reads the directory of the archive that a file is.
 * fails: LK_E_DATA malformed; LK_E_UNSUPPORTED built without libzip; LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_zip_open(const struct lk_bytes *file, struct lk_zip **zip);
void lk_zip_close(struct lk_zip *zip);

/* The number of entries; the name of one, never NULL; the entry of a name, -1: absent. */
int lk_zip_count(const struct lk_zip *zip);
const char *lk_zip_name(const struct lk_zip *zip, int entry);
int lk_zip_find(const struct lk_zip *zip, const char *name);

/* An entry of at most `most` bytes, compressed or not, behind which a '\0' stands; the caller
 * frees `data`. fails: LK_E_DATA larger, damaged; LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_zip_read(struct lk_zip *zip, int entry, size_t most,
                                         char **data, size_t *bytes);

/* An entry that is stored as it is, as bytes; they need no closing. When all of it is read at
 * once its checksum is compared. fails: LK_E_UNSUPPORTED it is compressed; LK_E_DATA */
LK_MUST_CHECK enum lk_status lk_zip_stored(struct lk_zip *zip, int entry,
                                           struct lk_bytes *bytes);

#endif

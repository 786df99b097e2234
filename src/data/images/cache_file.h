/* A cache's file: a header, the samples, then a table of their labels and checksums. Numbers
 * have this machine's byte order; a file with another one is made anew. Floor 4. Private to
 * cache.c and cache_file.c. */
#ifndef LK_DATA_IMAGES_CACHE_FILE_H
#define LK_DATA_IMAGES_CACHE_FILE_H

#include "data/images/cache.h"

/* The eight bytes that a file of such samples begins with. */
const char *lk_cache_magic(const struct lk_cache_samples *samples);

struct lk_cache_header {
    char magic[8];
    uint32_t order, version;
    char sum[LK_SHA256_TEXT + 7]; /* padded to a multiple of 8 bytes */
    int64_t count, bytes;
    uint32_t crc, unused; /* crc: of all before it */
};

struct lk_cache_entry {
    int32_t label;
    uint32_t crc; /* of the sample */
    uint32_t is_bad, crc_of_entry;
};

uint32_t lk_cache_entry_checksum(const struct lk_cache_entry *entry);

/* What the file of these samples begins with. */
struct lk_cache_header lk_cache_header_make(const struct lk_cache_samples *samples);

/* Reads all samples and writes the file, which is whole or not there; fills `entries`.
 * fails: LK_E_IO, LK_E_MEMORY; as samples->read */
LK_MUST_CHECK enum lk_status lk_cache_file_make(const char *path,
                                                const struct lk_cache_samples *samples,
                                                struct lk_cache_entry *entries);

#endif

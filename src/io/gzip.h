/* Gzip files and zlib streams in memory. Floor 1. zlib is known to gzip.c alone.
 * source: RFC 1950, RFC 1952 */
#ifndef LK_IO_GZIP_H
#define LK_IO_GZIP_H

#include <lockstep/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Inflates a gzip file held in memory, of one or more members, to at most `limit` bytes. The
 * caller frees `data`.
 * fails: LK_E_DATA corrupt, cut short, followed by junk, or larger than `limit`; LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_gzip_inflate(const void *packed, size_t packed_bytes,
                                             size_t limit, void **data, size_t *bytes);

/* As lk_gzip_inflate() for a zlib stream, which has no members. */
LK_MUST_CHECK enum lk_status lk_zlib_inflate(const void *packed, size_t packed_bytes,
                                             size_t limit, void **data, size_t *bytes);

/* What comes of data of either kind; {0} before. */
struct lk_inflated {
    void *data;
    size_t bytes;
    bool is_larger; /* than the limit, and fails for that alone */
};

/* As both, for who has to tell what is too large from what is broken. */
LK_MUST_CHECK enum lk_status lk_inflate(bool is_gzip, const void *packed, size_t packed_bytes,
                                        size_t limit, struct lk_inflated *inflated);

/* Deflates to a zlib stream. The caller frees `packed`. fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_zlib_deflate(const void *data, size_t bytes, void **packed,
                                             size_t *packed_bytes);

/* The checksum of gzip and PNG files. */
uint32_t lk_crc32(const void *data, size_t bytes);

/* As lk_gzip_inflate() for a file. fails: LK_E_IO too; messages name the file */
LK_MUST_CHECK enum lk_status lk_gzip_read(const char *path, size_t limit, void **data,
                                          size_t *bytes);

#endif

/* SHA-256 sums as 64 lower-case hexadecimal digits. Floor 1. source: FIPS 180-4 */
#ifndef LK_IO_SHA256_H
#define LK_IO_SHA256_H

#include <lockstep/status.h>
#include <stddef.h>

enum { LK_SHA256_TEXT = 65 }; /* char[] for a sum and its '\0' */

struct lk_sha256 {
    struct evp_md_ctx_st *context;
};

/* Begins a sum, to be released by lk_sha256_clear(). fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_sha256_init(struct lk_sha256 *sum);

/* Adds bytes to the sum. */
void lk_sha256_add(struct lk_sha256 *sum, const void *data, size_t bytes);

/* Writes the sum of all that was added; nothing may be added afterwards. */
void lk_sha256_finish(struct lk_sha256 *sum, char text[LK_SHA256_TEXT]);

/* Releases the sum, finished or not. {0} is fine. */
void lk_sha256_clear(struct lk_sha256 *sum);

/* The sum of a buffer. fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_sha256_of(const void *data, size_t bytes,
                                          char text[LK_SHA256_TEXT]);

/* The sum of a file of any size. fails: LK_E_IO, LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_sha256_of_file(const char *path, char text[LK_SHA256_TEXT]);

#endif

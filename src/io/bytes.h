/* Bytes that are read from any place: of a file, or of a file within an archive. Floor 1. */
#ifndef LK_IO_BYTES_H
#define LK_IO_BYTES_H

#include <lockstep/status.h>
#include <stddef.h>
#include <stdint.h>

struct lk_bytes {
    uint64_t size;
    int fd;        /* of a file */
    void *archive; /* or of an archive: the handle of the entry's reader */
    int entry;
    enum lk_status (*read)(const struct lk_bytes *bytes, uint64_t offset, size_t count,
                           void *to);
};

/* Opens a regular file, which lk_bytes_close() closes. fails: LK_E_IO */
LK_MUST_CHECK enum lk_status lk_bytes_open(const char *path, struct lk_bytes *bytes);

/* Does nothing where fd is below 0. */
void lk_bytes_close(struct lk_bytes *bytes);

/* Reads exactly `count` bytes from `offset` on. Any thread.
 * fails: LK_E_DATA the place is not within the bytes: `what` should be there; LK_E_IO */
LK_MUST_CHECK enum lk_status lk_bytes_read(const struct lk_bytes *bytes, uint64_t offset,
                                           size_t count, const char *what, void *to);

#endif

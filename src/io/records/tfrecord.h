/* Reads records of TFRecord files by their number. Floor 1. A record is bytes, whatever they
 * mean. source: tensorflow/core/lib/io/record_writer.h */
#ifndef LK_IO_TFRECORD_H
#define LK_IO_TFRECORD_H

#include <lockstep/status.h>
#include <stddef.h>
#include <stdint.h>

struct lk_tfrecord;

/* Finds where the file's records begin, reading little more than their lengths. A GZIP or ZLIB
 * file, which cannot be read from the middle, is inflated into at most `limit` bytes of memory.
 * fails: LK_E_IO; LK_E_DATA no TFRecord file, a length whose checksum is wrong, more than
 * `limit` bytes inflated; LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_tfrecord_open(const char *path, size_t limit,
                                              struct lk_tfrecord **file);
void lk_tfrecord_close(struct lk_tfrecord *file);

const char *lk_tfrecord_path(const struct lk_tfrecord *file);
int64_t lk_tfrecord_count(const struct lk_tfrecord *file);

/* Bytes of memory that hold the inflated file; 0: the file is not compressed. */
size_t lk_tfrecord_memory(const struct lk_tfrecord *file);

/* Bytes behind the last complete record, of one that was cut short; 0: none. */
int64_t lk_tfrecord_tail(const struct lk_tfrecord *file);

/* Reads record number `index`, which must exist. The caller frees `data`. Any thread.
 * fails: LK_E_IO; LK_E_DATA a wrong checksum, or the length has changed since the opening */
LK_MUST_CHECK enum lk_status lk_tfrecord_read(const struct lk_tfrecord *file, int64_t index,
                                              void **data, size_t *bytes);

/* Calls `see` with every record whose checksum is right, in order; reads the file in large
 * pieces. fails: LK_E_IO, LK_E_MEMORY */
LK_MUST_CHECK enum lk_status
lk_tfrecord_each(const struct lk_tfrecord *file,
                 void (*see)(void *context, const void *data, size_t bytes), void *context);

#endif

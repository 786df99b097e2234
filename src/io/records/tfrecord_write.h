/* TFRecord files: what stands round a record. Floor 1. Knows bytes only.
 * source: tensorflow/core/lib/io/record_writer.h */
#ifndef LK_IO_TFRECORD_WRITE_H
#define LK_IO_TFRECORD_WRITE_H

#include <lockstep/status.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* A record ready to be written: its length and that's checksum, its bytes, their checksum. The
 * checksums are made here, so that threads can make them. */
struct lk_tfrecord_seal {
    uint8_t header[12], footer[4];
};

void lk_tfrecord_seal(const void *data, size_t bytes, struct lk_tfrecord_seal *seal);

/* Appends the record to a file that `path` names in messages. fails: LK_E_IO */
LK_MUST_CHECK enum lk_status lk_tfrecord_write(FILE *file, const char *path, const void *data,
                                               size_t bytes,
                                               const struct lk_tfrecord_seal *seal);

#endif

/* Writes TFRecord files: a record with its header and footer. Floor 1. Knows bytes only.
 * source: tensorflow/core/lib/io/record_writer.h */
#ifndef LK_IO_TFRECORD_WRITE_H
#define LK_IO_TFRECORD_WRITE_H

#include <lockstep/status.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* What frames a record in the file: header (its length and the length's checksum) and footer
 * (the checksum of its bytes). Computed apart from writing, so that several threads can do it.
 */
struct lk_tfrecord_frame {
    uint8_t header[12], footer[4];
};

void lk_tfrecord_frame(const void *data, size_t bytes, struct lk_tfrecord_frame *seal);

/* Appends the record to a file that `path` names in messages. fails: LK_E_IO */
LK_MUST_CHECK enum lk_status lk_tfrecord_write(FILE *file, const char *path, const void *data,
                                               size_t bytes,
                                               const struct lk_tfrecord_frame *seal);

#endif

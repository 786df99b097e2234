/* Writes tf.train.Example records. Floor 1. Knows bytes only.
 * source: tensorflow/core/example/{example,feature}.proto; protobuf.dev, Encoding */
#ifndef LK_IO_EXAMPLE_WRITE_H
#define LK_IO_EXAMPLE_WRITE_H

#include "io/records/example.h"

/* A list of one item. */
struct lk_example_feature {
    const char *key;
    enum lk_example_kind kind;     /* LK_EXAMPLE_BYTES or LK_EXAMPLE_INTS */
    struct lk_example_bytes bytes; /* of LK_EXAMPLE_BYTES */
    int64_t number;                /* of LK_EXAMPLE_INTS */
};

/* Encodes the features in the order given, as protobuf's own writers do. The caller frees
 * `record`.
 * fails: LK_E_MEMORY; LK_E_ARGUMENT more than 2 GiB, which no reader takes */
LK_MUST_CHECK enum lk_status lk_example_write(const struct lk_example_feature *features,
                                              int count, uint8_t **record, size_t *bytes);

#endif

/* Reads tf.train.Example: named lists of bytes, floats or whole numbers, encoded as protocol
 * buffers. Floor 1. Copies and allocates nothing: results point into the record.
 * source: tensorflow/core/example/{example,feature}.proto; protobuf.dev, Encoding */
#ifndef LK_IO_EXAMPLE_H
#define LK_IO_EXAMPLE_H

#include <lockstep/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lk_example_bytes {
    const uint8_t *data;
    size_t bytes;
};

enum lk_example_kind {
    LK_EXAMPLE_NONE, /* the key is there without a list, or is not there */
    LK_EXAMPLE_BYTES,
    LK_EXAMPLE_FLOATS,
    LK_EXAMPLE_INTS,
};

struct lk_example_list {
    enum lk_example_kind kind;
    struct lk_example_bytes body; /* as it is encoded */
};

/* Finds the list with that key; where several have it, the last one.
 * fails: LK_E_DATA the record is no Example */
LK_MUST_CHECK enum lk_status lk_example_find(struct lk_example_bytes record, const char *key,
                                             struct lk_example_list *list);

/* Item number `index` of a list of that kind. False: there is none, or it is malformed. */
bool lk_example_bytes_at(const struct lk_example_list *list, int64_t index,
                         struct lk_example_bytes *value);
bool lk_example_int_at(const struct lk_example_list *list, int64_t index, int64_t *value);
bool lk_example_float_at(const struct lk_example_list *list, int64_t index, float *value);

/* Reads all items of a list of that kind, the first `most` of them into `values`, and returns
 * how many there are. -1: it is malformed, or of another kind. */
int64_t lk_example_ints(const struct lk_example_list *list, int64_t *values, int64_t most);
int64_t lk_example_floats(const struct lk_example_list *list, float *values, int64_t most);

/* Writes the keys for a message: "'image', 'label'", cut with dots where there is no room. */
void lk_example_print_keys(struct lk_example_bytes record, char *text, size_t room);

#endif

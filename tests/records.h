/* Writes tf.train.Example records and TFRecord files, without the code under test but for its
 * checksum. Knows cmocka. */
#ifndef TESTS_RECORDS_H
#define TESTS_RECORDS_H

#include "io/crc32c.h"
#include "scratch.h"

struct bytes {
    uint8_t data[1 << 16];
    size_t used;
};

static inline void put(struct bytes *to, const void *data, size_t bytes)
{
    assert_true(to->used + bytes <= sizeof to->data);
    memcpy(to->data + to->used, data, bytes);
    to->used += bytes;
}

static inline void put_varint(struct bytes *to, uint64_t value)
{
    for (; value >= 128; value >>= 7)
        put(to, &(uint8_t){(uint8_t)(value | 128)}, 1);
    put(to, &(uint8_t){(uint8_t)value}, 1);
}

/* Field `number`: bytes or a message. */
static inline void put_field(struct bytes *to, int number, const void *data, size_t bytes)
{
    put_varint(to, (uint64_t)number << 3 | 2);
    put_varint(to, bytes);
    put(to, data, bytes);
}

/* An entry of Example.features.feature: key -> Feature whose field `kind` holds `list`. */
static inline void put_feature(struct bytes *example, const char *key, int kind,
                               const struct bytes *list)
{
    static struct bytes feature, entry, features;
    feature.used = entry.used = features.used = 0;
    put_field(&feature, kind, list->data, list->used);
    put_field(&entry, 1, key, strlen(key));
    put_field(&entry, 2, feature.data, feature.used);
    put_field(&features, 1, entry.data, entry.used);
    put_field(example, 1, features.data, features.used);
}

static inline void put_bytes_feature(struct bytes *example, const char *key, const void *data,
                                     size_t bytes)
{
    static struct bytes list;
    list.used = 0;
    put_field(&list, 1, data, bytes);
    put_feature(example, key, 1, &list);
}

static inline void put_int_feature(struct bytes *example, const char *key, int64_t value)
{
    static struct bytes list, packed;
    list.used = packed.used = 0;
    put_varint(&packed, (uint64_t)value);
    put_field(&list, 1, packed.data, packed.used);
    put_feature(example, key, 3, &list);
}

static inline void put_little(struct bytes *to, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++, value >>= 8)
        put(to, &(uint8_t){(uint8_t)value}, 1);
}

/* A TFRecord around the bytes. */
static inline void put_record(struct bytes *file, const void *data, size_t bytes)
{
    const size_t header = file->used;
    put_little(file, bytes, 8);
    put_little(file, lk_crc32c_masked(file->data + header, 8), 4);
    put(file, data, bytes);
    put_little(file, lk_crc32c_masked(data, bytes), 4);
}

#endif

/* Encodes tf.train.Example records. */
#include "io/records/example_write.h"

#include "base/fail.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = INT32_MAX };

static size_t varint_bytes(uint64_t value)
{
    size_t bytes = 1;
    for (; value >= 128; value >>= 7)
        bytes++;
    return bytes;
}

static uint8_t *put_varint(uint8_t *to, uint64_t value)
{
    for (; value >= 128; value >>= 7)
        *to++ = (uint8_t)(value | 128);
    *to++ = (uint8_t)value;
    return to;
}

/* The encoded size of a field of bytes or of a message: tag, length, and `body` bytes. */
static size_t field_bytes(size_t body)
{
    return 1 + varint_bytes(body) + body;
}

static uint8_t *put_tag(uint8_t *to, int number, size_t body)
{
    *to++ = (uint8_t)(number << 3 | 2);
    return put_varint(to, body);
}

/* Encoded lengths of the nested messages of one feature, from the inside to the outside. */
struct lengths {
    size_t list;    /* BytesList or Int64List */
    size_t feature; /* Feature */
    size_t entry;   /* of the map: key and Feature */
};

static struct lengths measure(const struct lk_example_feature *f)
{
    struct lengths n;
    n.list = field_bytes(f->kind == LK_EXAMPLE_INTS ? varint_bytes((uint64_t)f->number)
                                                    : f->bytes.bytes);
    n.feature = field_bytes(n.list);
    n.entry = field_bytes(strlen(f->key)) + field_bytes(n.feature);
    return n;
}

static uint8_t *put_feature(uint8_t *to, const struct lk_example_feature *f)
{
    const struct lengths n = measure(f);
    to = put_tag(to, 1, n.entry);
    to = put_tag(to, 1, strlen(f->key));
    memcpy(to, f->key, strlen(f->key));
    to = put_tag(to + strlen(f->key), 2, n.feature);
    to = put_tag(to, (int)f->kind, n.list);
    if (f->kind == LK_EXAMPLE_INTS)
        return put_varint(put_tag(to, 1, varint_bytes((uint64_t)f->number)),
                          (uint64_t)f->number);
    to = put_tag(to, 1, f->bytes.bytes);
    if (f->bytes.bytes)
        memcpy(to, f->bytes.data, f->bytes.bytes);
    return to + f->bytes.bytes;
}

enum lk_status lk_example_write(const struct lk_example_feature *features, int count,
                                uint8_t **record, size_t *bytes)
{
    size_t body = 0;
    for (int i = 0; i < count; i++) {
        if (features[i].bytes.bytes > MOST_BYTES / 2 || body > MOST_BYTES / 2)
            return lk_fail(LK_E_ARGUMENT, "'%s' of %zu bytes is too large for a record",
                           features[i].key, features[i].bytes.bytes);
        body += field_bytes(measure(&features[i]).entry);
    }
    uint8_t *made = malloc(field_bytes(body));
    if (!made)
        return lk_fail_memory("a record", field_bytes(body));
    uint8_t *to = put_tag(made, 1, body);
    for (int i = 0; i < count; i++)
        to = put_feature(to, &features[i]);
    *record = made;
    *bytes = (size_t)(to - made);
    return LK_OK;
}

/* Finds lists by key in tf.train.Example records, without copying them. */
#include "io/records/example.h"

#include "base/fail.h"
#include <stdio.h>
#include <string.h>

enum wire { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

struct field {
    uint64_t number;
    enum wire wire;
    uint64_t value;               /* VARINT */
    struct lk_example_bytes body; /* BYTES, FIXED32, FIXED64 */
};

/* Takes a varint, 7 bits a byte, lowest first, from the front of `left`. */
static bool take_varint(struct lk_example_bytes *left, uint64_t *value)
{
    uint64_t found = 0;
    for (int shift = 0; shift < 64 && left->bytes > 0; shift += 7) {
        const uint8_t byte = *left->data++;
        left->bytes--;
        found |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) {
            *value = found;
            return true;
        }
    }
    return false;
}

static bool take_bytes(struct lk_example_bytes *left, uint64_t bytes,
                       struct lk_example_bytes *taken)
{
    if (bytes > left->bytes)
        return false;
    *taken = (struct lk_example_bytes){left->data, (size_t)bytes};
    left->data += bytes;
    left->bytes -= (size_t)bytes;
    return true;
}

/* Takes the next field; false: it is malformed, or of a kind that no Example has. */
static bool take_field(struct lk_example_bytes *left, struct field *field)
{
    uint64_t tag, bytes;
    if (!take_varint(left, &tag))
        return false;
    *field = (struct field){.number = tag >> 3, .wire = (enum wire)(tag & 7)};
    switch (field->wire) {
    case VARINT:
        return take_varint(left, &field->value);
    case FIXED64:
        return take_bytes(left, 8, &field->body);
    case FIXED32:
        return take_bytes(left, 4, &field->body);
    case BYTES:
        return take_varint(left, &bytes) && take_bytes(left, bytes, &field->body);
    }
    return false;
}

static bool is_message(const struct field *field, uint64_t number)
{
    return field->wire == BYTES && field->number == number;
}

/* Reads key and value of an entry of the feature map: fields 1 and 2. */
static bool read_entry(struct lk_example_bytes entry, struct lk_example_bytes *key,
                       struct lk_example_bytes *value)
{
    struct field field;
    *key = *value = (struct lk_example_bytes){entry.data, 0};
    while (entry.bytes > 0) {
        if (!take_field(&entry, &field))
            return false;
        if (is_message(&field, 1))
            *key = field.body;
        else if (is_message(&field, 2))
            *value = field.body;
    }
    return true;
}

/* Reads a Feature: a BytesList, FloatList or Int64List in field 1, 2 or 3. */
static bool read_feature(struct lk_example_bytes feature, struct lk_example_list *list)
{
    struct field field;
    *list = (struct lk_example_list){0};
    while (feature.bytes > 0) {
        if (!take_field(&feature, &field))
            return false;
        if (field.wire == BYTES && field.number >= 1 && field.number <= 3)
            *list = (struct lk_example_list){(enum lk_example_kind)field.number, field.body};
    }
    return true;
}

/* Calls `see` with each entry of Example.features.feature; false: the record is malformed, or
 * `see` returned false. */
static bool see_entries(struct lk_example_bytes record,
                        bool (*see)(void *context, struct lk_example_bytes key,
                                    struct lk_example_bytes value),
                        void *context)
{
    struct field features, entry;
    while (record.bytes > 0) {
        if (!take_field(&record, &features))
            return false;
        while (is_message(&features, 1) && features.body.bytes > 0) {
            struct lk_example_bytes key, value;
            if (!take_field(&features.body, &entry))
                return false;
            if (is_message(&entry, 1) &&
                (!read_entry(entry.body, &key, &value) || !see(context, key, value)))
                return false;
        }
    }
    return true;
}

struct search {
    const char *key;
    struct lk_example_list list;
};

static bool match(void *context, struct lk_example_bytes key, struct lk_example_bytes value)
{
    struct search *search = context;
    if (key.bytes != strlen(search->key) || memcmp(key.data, search->key, key.bytes) != 0)
        return true;
    return read_feature(value, &search->list);
}

enum lk_status lk_example_find(struct lk_example_bytes record, const char *key,
                               struct lk_example_list *list)
{
    struct search search = {.key = key};
    if (!see_entries(record, match, &search))
        return lk_fail(LK_E_DATA, "a record of %zu bytes is no tf.train.Example", record.bytes);
    *list = search.list;
    return LK_OK;
}

bool lk_example_bytes_at(const struct lk_example_list *list, int64_t index,
                         struct lk_example_bytes *value)
{
    struct lk_example_bytes left = list->body;
    struct field field;
    while (list->kind == LK_EXAMPLE_BYTES && left.bytes > 0 && take_field(&left, &field))
        if (is_message(&field, 1) && index-- == 0) {
            *value = field.body;
            return true;
        }
    return false;
}

/* Item number `index`. Numbers are encoded as a field each or, packed, as many in one field. */
bool lk_example_int_at(const struct lk_example_list *list, int64_t index, int64_t *value)
{
    struct lk_example_bytes left = list->body;
    struct field field;
    while (list->kind == LK_EXAMPLE_INTS && left.bytes > 0 && take_field(&left, &field)) {
        uint64_t found = field.value;
        if (field.number == 1 && field.wire == VARINT && index-- == 0) {
            *value = (int64_t)found;
            return true;
        }
        while (is_message(&field, 1) && field.body.bytes > 0) {
            if (!take_varint(&field.body, &found))
                return false;
            if (index-- == 0) {
                *value = (int64_t)found;
                return true;
            }
        }
    }
    return false;
}

/* Four bytes, the lowest first. */
static float float_at(const uint8_t *b)
{
    float value;
    const uint32_t bits =
        (uint32_t)b[3] << 24 | (uint32_t)b[2] << 16 | (uint32_t)b[1] << 8 | b[0];
    memcpy(&value, &bits, sizeof bits);
    return value;
}

bool lk_example_float_at(const struct lk_example_list *list, int64_t index, float *value)
{
    struct lk_example_bytes left = list->body;
    struct field field;
    while (list->kind == LK_EXAMPLE_FLOATS && left.bytes > 0 && take_field(&left, &field)) {
        if (field.number != 1 || (field.wire != BYTES && field.wire != FIXED32))
            continue;
        const int64_t count = (int64_t)(field.body.bytes / 4);
        if (index >= 0 && index < count) {
            *value = float_at(field.body.data + 4 * index);
            return true;
        }
        index -= count;
    }
    return false;
}

int64_t lk_example_ints(const struct lk_example_list *list, int64_t *values, int64_t most)
{
    struct lk_example_bytes left = list->body;
    struct field field;
    int64_t count = 0;
    if (list->kind != LK_EXAMPLE_INTS)
        return -1;
    while (left.bytes > 0) {
        if (!take_field(&left, &field))
            return -1;
        if (field.number == 1 && field.wire == VARINT && count++ < most)
            values[count - 1] = (int64_t)field.value;
        while (is_message(&field, 1) && field.body.bytes > 0) {
            uint64_t found;
            if (!take_varint(&field.body, &found))
                return -1;
            if (count++ < most)
                values[count - 1] = (int64_t)found;
        }
    }
    return count;
}

int64_t lk_example_floats(const struct lk_example_list *list, float *values, int64_t most)
{
    struct lk_example_bytes left = list->body;
    struct field field;
    int64_t count = 0;
    if (list->kind != LK_EXAMPLE_FLOATS)
        return -1;
    while (left.bytes > 0) {
        if (!take_field(&left, &field))
            return -1;
        if (field.number != 1 || (field.wire != BYTES && field.wire != FIXED32))
            continue;
        if (field.body.bytes % 4)
            return -1;
        for (size_t i = 0; i < field.body.bytes; i += 4)
            if (count++ < most)
                values[count - 1] = float_at(field.body.data + i);
    }
    return count;
}

struct line {
    char *text;
    size_t used, room;
};

static bool print_key(void *context, struct lk_example_bytes key, struct lk_example_bytes value)
{
    struct line *line = context;
    (void)value;
    if (line->used + key.bytes + 8 > line->room) {
        snprintf(line->text + line->used, line->room - line->used, "...");
        return false;
    }
    line->used +=
        (size_t)snprintf(line->text + line->used, line->room - line->used, "%s'%.*s'",
                         line->used ? ", " : "", (int)key.bytes, (const char *)key.data);
    return true;
}

void lk_example_print_keys(struct lk_example_bytes record, char *text, size_t room)
{
    struct line line = {text, 0, room};
    *text = '\0';
    (void)see_entries(record, print_key, &line);
}

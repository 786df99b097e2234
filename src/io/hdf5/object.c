/* Reads object headers of HDF5: the messages that say what a group or an array is. */
#include "io/hdf5/span.h"

#include <string.h>

enum {
    MOST_DEPTH = 32,          /* of groups within groups */
    MOST_OBJECTS = 1 << 15,   /* of a file, counted each time that one is met */
    MOST_PIECES = 64,         /* of one header */
    MOST_ATTRIBUTES = 1 << 15 /* of a file */
};

/* Kinds of messages. */
enum {
    NOTHING = 0x00,
    SPACE = 0x01,
    NEW_LINKS = 0x02,
    TYPE = 0x03,
    LINK = 0x06,
    OTHER_FILES = 0x07,
    LAYOUT = 0x08,
    FILTERS = 0x0b,
    ATTRIBUTE = 0x0c,
    CONTINUATION = 0x10,
    SYMBOL_TABLE = 0x11
};

/* A header while it is read: pieces[done..count) still are to be read. */
struct header {
    struct lk_hdf5_file *file;
    struct lk_hdf5_object *object;
    struct piece {
        uint64_t place, bytes;
    } pieces[MOST_PIECES];
    int done, count, room; /* room: of attributes */
    bool typed, spaced, placed;
    int64_t elements;
    uint64_t tree, heap; /* of a group */
};

static enum lk_status fail_twice(const struct lk_hdf5_span *span, const char *what)
{
    return lk_fail(LK_E_DATA, "HDF5, byte %llu: %s a second time",
                   (unsigned long long)span->place, what);
}

static enum lk_status add_piece(struct header *header, struct lk_hdf5_span span)
{
    struct lk_hdf5_span where;
    LK_TRY(lk_hdf5_take(&span, 16, "the place of more messages", &where));
    if (header->count == MOST_PIECES)
        return lk_fail(LK_E_DATA, "HDF5, byte %llu: a header in more than %d pieces",
                       (unsigned long long)where.place, MOST_PIECES);
    header->pieces[header->count++] =
        (struct piece){lk_hdf5_number(where.at, 8), lk_hdf5_number(where.at + 8, 8)};
    return LK_OK;
}

static enum lk_status set_layout(struct header *header, struct lk_hdf5_span span)
{
    struct lk_hdf5_object *object = header->object;
    struct lk_hdf5_span head, where;
    if (header->placed)
        return fail_twice(&span, "a layout");
    header->placed = true;
    LK_TRY(lk_hdf5_take(&span, 2, "a layout", &head));
    if (head.at[0] != 3 && head.at[0] != 4) {
        object->problem = "has a layout of another version";
        return LK_OK;
    }
    if (head.at[1] > 1) {
        if (!object->problem) /* chunks that are compressed as well */
            object->problem =
                head.at[1] == 2 ? "is stored in chunks" : "is put together from other files";
        return LK_OK;
    }
    if (head.at[1] == 0) { /* compact: the elements follow */
        LK_TRY(lk_hdf5_take(&span, 2, "the length of a compact array", &where));
        object->bytes = lk_hdf5_number(where.at, 2);
        object->offset = span.place;
        return lk_hdf5_take(&span, (size_t)object->bytes, "a compact array", &where);
    }
    LK_TRY(lk_hdf5_take(&span, 16, "the place of an array", &where));
    object->offset = lk_hdf5_number(where.at, 8);
    object->bytes = lk_hdf5_number(where.at + 8, 8);
    return LK_OK;
}

/* Takes one of the three parts of an attribute, which version 1 fills up to 8 bytes each. */
static enum lk_status take_part(struct lk_hdf5_span *span, int version, uint64_t bytes,
                                const char *what, struct lk_hdf5_span *part)
{
    const size_t filled = version == 1 ? (size_t)(bytes + 7) / 8 * 8 : (size_t)bytes;
    LK_TRY(lk_hdf5_take(span, filled, what, part));
    part->left = (size_t)bytes;
    return LK_OK;
}

static enum lk_status make_room(struct header *header)
{
    void *memory = NULL;
    struct lk_hdf5_object *object = header->object;
    if (++header->file->attributes > MOST_ATTRIBUTES)
        return lk_fail(LK_E_DATA, "HDF5: more than %d attributes", MOST_ATTRIBUTES);
    if (object->attribute_count < header->room)
        return LK_OK;
    const int room = header->room ? header->room * 2 : 4;
    if (room > MOST_ATTRIBUTES)
        return lk_fail(LK_E_DATA, "HDF5: an object with more than %d attributes", header->room);
    LK_TRY(lk_arena_allocate(&header->file->arena, (size_t)room * sizeof *object->attributes,
                             &memory));
    if (object->attribute_count)
        memcpy(memory, object->attributes,
               (size_t)object->attribute_count * sizeof *object->attributes);
    object->attributes = memory;
    header->room = room;
    return LK_OK;
}

/* Attributes that are not read are left out: a reader asks for those that it needs. */
static enum lk_status add_attribute(struct header *header, struct lk_hdf5_span span)
{
    struct lk_hdf5_attribute made = {0};
    struct lk_hdf5_span head, name, type, space, data;
    const char *problem = NULL;
    int64_t shape[LK_SAFETENSOR_AXES];
    int rank;
    LK_TRY(lk_hdf5_take(&span, 8, "an attribute", &head));
    const int version = head.at[0];
    if (version < 1 || version > 3)
        return lk_fail(LK_E_DATA, "HDF5, byte %llu: an attribute of version %d",
                       (unsigned long long)head.place, version);
    if (version > 1 && head.at[1] != 0) /* shared type or axes */
        return LK_OK;
    if (version == 3)
        LK_TRY(lk_hdf5_take(&span, 1, "the characters of a name", &name));
    LK_TRY(take_part(&span, version, lk_hdf5_number(head.at + 2, 2), "a name", &name));
    LK_TRY(take_part(&span, version, lk_hdf5_number(head.at + 4, 2), "a type", &type));
    LK_TRY(take_part(&span, version, lk_hdf5_number(head.at + 6, 2), "axes", &space));
    if (!memchr(name.at, '\0', name.left))
        return lk_fail(LK_E_DATA, "HDF5, byte %llu: an attribute's name without its end",
                       (unsigned long long)name.place);
    LK_TRY(lk_hdf5_get_type(type, &made.type, &problem));
    LK_TRY(lk_hdf5_get_space(space, &rank, shape, &made.count, &problem));
    if (problem)
        return LK_OK;
    if (made.count > (int64_t)(span.left / made.type.bytes))
        return lk_fail(LK_E_DATA,
                       "HDF5, byte %llu: attribute '%.100s' of %lld elements has %zu bytes",
                       (unsigned long long)head.place, (const char *)name.at,
                       (long long)made.count, span.left);
    LK_TRY(lk_hdf5_take(&span, (size_t)made.count * made.type.bytes, "elements", &data));
    made.name = (const char *)name.at;
    made.data = data.at;
    LK_TRY(make_room(header));
    header->object->attributes[header->object->attribute_count++] = made;
    return LK_OK;
}

static enum lk_status set_group(struct header *header, struct lk_hdf5_span span)
{
    struct lk_hdf5_span where;
    if (header->object->group)
        return fail_twice(&span, "a symbol table");
    LK_TRY(lk_hdf5_take(&span, 16, "a symbol table", &where));
    header->object->group = true;
    header->tree = lk_hdf5_number(where.at, 8);
    header->heap = lk_hdf5_number(where.at + 8, 8);
    return LK_OK;
}

static enum lk_status read_message(struct header *header, int kind, int flags,
                                   struct lk_hdf5_span span)
{
    struct lk_hdf5_object *object = header->object;
    if ((flags & 2) && kind != NOTHING && kind != ATTRIBUTE) {
        object->problem = "shares parts of its header with other objects";
        return LK_OK;
    }
    switch (kind) {
    case SPACE:
        if (header->spaced)
            return fail_twice(&span, "axes");
        header->spaced = true;
        return lk_hdf5_get_space(span, &object->rank, object->shape, &header->elements,
                                 &object->problem);
    case TYPE:
        if (header->typed)
            return fail_twice(&span, "a type");
        header->typed = true;
        return lk_hdf5_get_type(span, &object->type, &object->problem);
    case LAYOUT:
        return set_layout(header, span);
    case NEW_LINKS:
    case LINK:
        object->group = true;
        object->problem = "is a group of the newer format (of libver='latest' or track_order)";
        return LK_OK;
    case OTHER_FILES:
        object->problem = "has its elements in other files";
        return LK_OK;
    case FILTERS:
        object->problem = "is compressed";
        return LK_OK;
    case ATTRIBUTE:
        return flags & 2 ? LK_OK : add_attribute(header, span);
    case CONTINUATION:
        return add_piece(header, span);
    case SYMBOL_TABLE:
        return set_group(header, span);
    default: /* times, comments, values of elements that were never written */
        return LK_OK;
    }
}

static enum lk_status read_piece(struct header *header, const struct piece *piece)
{
    struct lk_hdf5_span span, head, data;
    LK_TRY(lk_hdf5_load(header->file, piece->place, piece->bytes, "a header", &span));
    while (span.left >= 8) {
        LK_TRY(lk_hdf5_take(&span, 8, "a message", &head));
        LK_TRY(lk_hdf5_take(&span, (size_t)lk_hdf5_number(head.at + 2, 2), "a message", &data));
        LK_TRY(read_message(header, (int)lk_hdf5_number(head.at, 2), head.at[4], data));
    }
    return LK_OK;
}

/* Whether the elements are all there, in the bytes that the layout says. */
static enum lk_status check_array(const struct header *header, uint64_t place)
{
    struct lk_hdf5_object *object = header->object;
    uint64_t expected;
    if (object->problem)
        return LK_OK;
    if (!header->typed || !header->spaced || !header->placed)
        return lk_fail(LK_E_DATA,
                       "HDF5, byte %llu: expected a group, or an array with type, axes, layout",
                       (unsigned long long)place);
    if (__builtin_mul_overflow((uint64_t)header->elements, object->type.bytes, &expected) ||
        expected > INT64_MAX)
        return lk_fail(LK_E_DATA, "HDF5, byte %llu: an array of %lld elements",
                       (unsigned long long)place, (long long)header->elements);
    if (expected == 0) {
        object->bytes = 0;
        return LK_OK;
    }
    if (object->offset == LK_HDF5_NOWHERE) {
        object->problem = "was made but never written";
        return LK_OK;
    }
    if (object->bytes != expected)
        return lk_fail(LK_E_DATA,
                       "HDF5, byte %llu: an array of %llu bytes; type and axes give %llu",
                       (unsigned long long)place, (unsigned long long)object->bytes,
                       (unsigned long long)expected);
    if (object->offset > header->file->bytes.size ||
        expected > header->file->bytes.size - object->offset)
        return lk_fail(
            LK_E_DATA,
            "HDF5, byte %llu: expected an array of %llu bytes; the file ends at %llu",
            (unsigned long long)object->offset, (unsigned long long)expected,
            (unsigned long long)header->file->bytes.size);
    return LK_OK;
}

enum lk_status lk_hdf5_read_object(struct lk_hdf5_file *file, uint64_t place, int depth,
                                   struct lk_hdf5_object *object)
{
    struct header header = {.file = file, .object = object};
    struct lk_hdf5_span span;
    if (depth > MOST_DEPTH || ++file->objects > MOST_OBJECTS)
        return lk_fail(LK_E_DATA,
                       "HDF5, byte %llu: more than %d objects or groups within %d groups: are "
                       "they within themselves?",
                       (unsigned long long)place, MOST_OBJECTS, MOST_DEPTH);
    LK_TRY(lk_hdf5_load(file, place, 16, "an object", &span));
    if (memcmp(span.at, "OHDR", 4) == 0) {
        object->problem = "is of the newer format (of libver='latest' or track_order)";
        return LK_OK;
    }
    if (span.at[0] != 1)
        return lk_fail(LK_E_DATA, "HDF5, byte %llu: expected an object header of version 1",
                       (unsigned long long)place);
    header.pieces[0] = (struct piece){place + 16, lk_hdf5_number(span.at + 8, 4)};
    for (header.count = 1; header.done < header.count; header.done++)
        LK_TRY(read_piece(&header, &header.pieces[header.done]));
    if (!object->group)
        return check_array(&header, place);
    return object->problem ? LK_OK
                           : lk_hdf5_read_group(file, header.tree, header.heap, depth, object);
}

/* Opens HDF5 files, finds what is in them and reads texts and elements. */
#include "io/hdf5/hdf5.h"

#include "io/hdf5/span.h"

#include <stdlib.h>
#include <string.h>

enum {
    SUPERBLOCK_BYTES = 96,
    MOST_STEPS = 1 << 22 /* from text to text */
};

/* The superblock of version 0: sizes of addresses and lengths, of nodes, the end, the root. */
static enum lk_status read_superblock(struct lk_hdf5_file *file, uint64_t *root)
{
    struct lk_hdf5_span block;
    LK_TRY(lk_hdf5_load(file, 0, SUPERBLOCK_BYTES, "a superblock", &block));
    const unsigned char *at = block.at;
    const uint64_t end = lk_hdf5_number(at + 40, 8);
    if (memcmp(at, "\x89HDF\r\n\x1a\n", 8) != 0)
        return lk_fail(LK_E_DATA, "not an HDF5 file");
    if (at[8] != 0)
        return lk_fail(LK_E_UNSUPPORTED,
                       "HDF5 with a superblock of version %d; 0 is read, which h5py and Keras "
                       "write unless told otherwise (libver)",
                       at[8]);
    if (at[13] != 8 || at[14] != 8 || lk_hdf5_number(at + 24, 8) != 0)
        return lk_fail(LK_E_UNSUPPORTED, "HDF5 with addresses that are not of 8 bytes from 0");
    if (end > file->bytes.size)
        return lk_fail(LK_E_DATA, "HDF5: a file of %llu bytes is cut at %llu",
                       (unsigned long long)end, (unsigned long long)file->bytes.size);
    if (lk_hdf5_number(at + 48, 8) != LK_HDF5_NOWHERE)
        return lk_fail(LK_E_UNSUPPORTED, "HDF5 that is spread over several files");
    file->leaf_k = (int)lk_hdf5_number(at + 16, 2);
    file->internal_k = (int)lk_hdf5_number(at + 18, 2);
    file->bytes.size = end;
    *root = lk_hdf5_number(at + 64, 8);
    return LK_OK;
}

enum lk_status lk_hdf5_open(const struct lk_bytes *bytes, struct lk_hdf5 **file)
{
    uint64_t root = 0;
    struct lk_hdf5_file *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("an HDF5 file", sizeof *made);
    made->bytes = *bytes;
    enum lk_status status = read_superblock(made, &root);
    if (status == LK_OK)
        status = lk_hdf5_read_object(made, root, 0, &made->public.root);
    if (status == LK_OK && (!made->public.root.group || made->public.root.problem))
        status = lk_fail(LK_E_UNSUPPORTED, "HDF5: what holds all objects %s",
                         made->public.root.problem ? made->public.root.problem : "is no group");
    if (status != LK_OK) {
        lk_hdf5_close(&made->public);
        return status;
    }
    made->public.root.name = "";
    *file = &made->public;
    return LK_OK;
}

void lk_hdf5_close(struct lk_hdf5 *file)
{
    struct lk_hdf5_file *inner = (struct lk_hdf5_file *)file;
    if (!inner)
        return;
    lk_arena_clear(&inner->arena);
    free(inner);
}

/* The member whose name is path[length]; members are sorted by their names. */
static const struct lk_hdf5_object *find_member(const struct lk_hdf5_object *group,
                                                const char *path, size_t length)
{
    for (int first = 0, end = group->count; first < end;) {
        const int middle = first + (end - first) / 2;
        const char *name = group->objects[middle].name;
        int order = strncmp(path, name, length);
        if (order == 0 && name[length] != '\0')
            order = -1;
        if (order == 0)
            return &group->objects[middle];
        if (order < 0)
            end = middle;
        else
            first = middle + 1;
    }
    return NULL;
}

const struct lk_hdf5_object *lk_hdf5_find(const struct lk_hdf5_object *group, const char *path)
{
    size_t length = strcspn(path, "/");
    while (group && path[length] == '/') {
        group = find_member(group, path, length);
        path += length + 1;
        length = strcspn(path, "/");
    }
    return group ? find_member(group, path, length) : NULL;
}

const struct lk_hdf5_attribute *lk_hdf5_attribute(const struct lk_hdf5_object *object,
                                                  const char *name)
{
    for (int i = 0; i < object->attribute_count; i++)
        if (strcmp(object->attributes[i].name, name) == 0)
            return &object->attributes[i];
    return NULL;
}

static enum lk_status copy_text(struct lk_hdf5_file *file, const unsigned char *from,
                                uint64_t bytes, const char **text)
{
    void *memory = NULL;
    LK_TRY(lk_hdf5_count(file, 0, bytes + 1, "a text"));
    LK_TRY(lk_arena_allocate(&file->arena, (size_t)bytes + 1, &memory));
    memcpy(memory, from, (size_t)bytes);
    *text = memory;
    return LK_OK;
}

/* The collection of texts at a place, which may be the one that was read last. */
static enum lk_status load_collection(struct lk_hdf5_file *file, uint64_t place,
                                      struct lk_hdf5_span *texts)
{
    struct lk_hdf5_span head;
    if (!file->texts.at || file->texts.place != place) {
        LK_TRY(lk_hdf5_load(file, place, 16, "a collection of texts", &head));
        if (memcmp(head.at, "GCOL", 4) != 0 || head.at[4] != 1)
            return lk_fail(LK_E_DATA, "HDF5, byte %llu: expected a collection of texts",
                           (unsigned long long)place);
        LK_TRY(
            lk_hdf5_load(file, place, lk_hdf5_number(head.at + 8, 8), "texts", &file->texts));
    }
    *texts = file->texts;
    return lk_hdf5_take(texts, 16, "a collection of texts", &head);
}

/* The text that a reference names: its length, the place of a collection, the number there. */
static enum lk_status load_text(struct lk_hdf5_file *file, const unsigned char *reference,
                                const char **text)
{
    struct lk_hdf5_span texts, head, data;
    const uint64_t length = lk_hdf5_number(reference, 4);
    const uint64_t place = lk_hdf5_number(reference + 4, 8);
    const uint64_t index = lk_hdf5_number(reference + 12, 4);
    *text = "";
    if (length == 0)
        return LK_OK;
    LK_TRY(load_collection(file, place, &texts));
    while (texts.left >= 16 && ++file->steps < MOST_STEPS) {
        LK_TRY(lk_hdf5_take(&texts, 16, "a text's head", &head));
        const uint64_t found = lk_hdf5_number(head.at, 2),
                       size = lk_hdf5_number(head.at + 8, 8);
        if (found == 0 || size > texts.left) /* the rest is free */
            break;
        if (found == index && length <= size)
            return copy_text(file, texts.at, length, text);
        LK_TRY(lk_hdf5_take(&texts, (size_t)(size + 7) / 8 * 8, "a text", &data));
    }
    return lk_fail(LK_E_DATA, "HDF5, byte %llu: expected text %llu, of %llu bytes",
                   (unsigned long long)place, (unsigned long long)index,
                   (unsigned long long)length);
}

enum lk_status lk_hdf5_texts(struct lk_hdf5 *file, const struct lk_hdf5_attribute *attribute,
                             const char *const **texts)
{
    struct lk_hdf5_file *inner = (struct lk_hdf5_file *)file;
    void *memory = NULL;
    const size_t size = attribute->type.bytes;
    if (attribute->count > 0 && attribute->type.class != LK_HDF5_TEXT &&
        attribute->type.class != LK_HDF5_LONG_TEXT)
        return lk_fail(LK_E_DATA, "HDF5: attribute '%.100s' is no text", attribute->name);
    LK_TRY(lk_arena_allocate(&inner->arena, ((size_t)attribute->count + 1) * sizeof **texts,
                             &memory));
    const char **made = memory;
    for (int64_t i = 0; i < attribute->count; i++) {
        const unsigned char *at = attribute->data + (size_t)i * size;
        LK_TRY(attribute->type.class == LK_HDF5_TEXT ? copy_text(inner, at, size, &made[i])
                                                     : load_text(inner, at, &made[i]));
    }
    *texts = made;
    return LK_OK;
}

/* Turns elements of `size` bytes round. */
static void swap(char *at, size_t bytes, size_t size)
{
    for (char *end = at + bytes; at < end; at += size)
        for (size_t i = 0; i < size / 2; i++) {
            const char kept = at[i];
            at[i] = at[size - 1 - i];
            at[size - 1 - i] = kept;
        }
}

enum lk_status lk_hdf5_read(const struct lk_hdf5 *file, const struct lk_hdf5_object *object,
                            void *to)
{
    const struct lk_hdf5_file *inner = (const struct lk_hdf5_file *)file;
    LK_TRY(lk_bytes_read(&inner->bytes, object->offset, (size_t)object->bytes, "elements", to));
    if (object->type.big_endian)
        swap(to, (size_t)object->bytes, object->type.bytes);
    return LK_OK;
}

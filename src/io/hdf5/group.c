/* Reads the members of an HDF5 group: a B-tree whose leaves point at nodes of symbols, and a
 * heap with their names. */
#include "io/hdf5/span.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_LEVELS = 8, SYMBOL_BYTES = 40, NODE_HEAD = 24 };

struct reader {
    struct lk_hdf5_file *file;
    struct lk_hdf5_object *group;
    struct lk_hdf5_span names;
    int depth, room;
};

static enum lk_status load_names(struct lk_hdf5_file *file, uint64_t place,
                                 struct lk_hdf5_span *names)
{
    struct lk_hdf5_span heap;
    LK_TRY(lk_hdf5_load(file, place, 32, "a heap of names", &heap));
    if (memcmp(heap.at, "HEAP", 4) != 0 || heap.at[4] != 0)
        return lk_fail(LK_E_DATA, "HDF5, byte %llu: expected a heap of names",
                       (unsigned long long)place);
    return lk_hdf5_load(file, lk_hdf5_number(heap.at + 24, 8), lk_hdf5_number(heap.at + 8, 8),
                        "names", names);
}

/* Names are single steps of a path: not empty, no slash, no way up. */
static enum lk_status get_name(const struct lk_hdf5_span *names, uint64_t offset,
                               const char **name)
{
    if (offset >= names->left ||
        !memchr(names->at + offset, '\0', names->left - (size_t)offset))
        return lk_fail(LK_E_DATA, "HDF5, byte %llu: a name at %llu of a heap of %zu bytes",
                       (unsigned long long)names->place, (unsigned long long)offset,
                       names->left);
    *name = (const char *)(names->at + offset);
    if (**name == '\0' || strchr(*name, '/') || strcmp(*name, ".") == 0 ||
        strcmp(*name, "..") == 0)
        return lk_fail(LK_E_DATA, "HDF5, byte %llu: '%.100s' is no name of an object",
                       (unsigned long long)(names->place + offset), *name);
    return LK_OK;
}

static enum lk_status make_room(struct reader *reader)
{
    void *memory = NULL;
    struct lk_hdf5_object *group = reader->group;
    if (group->count < reader->room)
        return LK_OK;
    const int room = reader->room ? reader->room * 2 : 8;
    LK_TRY(lk_arena_allocate(&reader->file->arena, (size_t)room * sizeof *group->objects,
                             &memory));
    if (group->count)
        memcpy(memory, group->objects, (size_t)group->count * sizeof *group->objects);
    group->objects = memory;
    reader->room = room;
    return LK_OK;
}

static enum lk_status add_symbol(struct reader *reader, const unsigned char *symbol)
{
    struct lk_hdf5_object made = {0};
    LK_TRY(get_name(&reader->names, lk_hdf5_number(symbol, 8), &made.name));
    if (lk_hdf5_number(symbol + 16, 4) == 2)
        made.problem = "is a link to a name";
    else
        LK_TRY(lk_hdf5_read_object(reader->file, lk_hdf5_number(symbol + 8, 8),
                                   reader->depth + 1, &made));
    LK_TRY(make_room(reader));
    reader->group->objects[reader->group->count++] = made;
    return LK_OK;
}

static enum lk_status read_symbols(struct reader *reader, uint64_t place)
{
    struct lk_hdf5_span node;
    const size_t most = 2 * (size_t)reader->file->leaf_k;
    LK_TRY(lk_hdf5_load(reader->file, place, 8 + most * SYMBOL_BYTES, "symbols", &node));
    const size_t count = (size_t)lk_hdf5_number(node.at + 6, 2);
    if (memcmp(node.at, "SNOD", 4) != 0 || node.at[4] != 1 || count > most)
        return lk_fail(LK_E_DATA, "HDF5, byte %llu: expected a node of at most %zu symbols",
                       (unsigned long long)place, most);
    for (size_t i = 0; i < count; i++)
        LK_TRY(add_symbol(reader, node.at + 8 + i * SYMBOL_BYTES));
    return LK_OK;
}

/* level: which the node must have; -1: any, it is the uppermost. */
static enum lk_status read_node(struct reader *reader, uint64_t place, int level)
{
    struct lk_hdf5_span node;
    const size_t most = 2 * (size_t)reader->file->internal_k;
    LK_TRY(
        lk_hdf5_load(reader->file, place, NODE_HEAD + 16 * most + 8, "a tree's node", &node));
    const int found = node.at[5];
    const size_t count = (size_t)lk_hdf5_number(node.at + 6, 2);
    if (memcmp(node.at, "TREE", 4) != 0 || node.at[4] != 0 || count > most ||
        found > MOST_LEVELS || (level >= 0 && found != level))
        return lk_fail(LK_E_DATA,
                       "HDF5, byte %llu: expected a tree's node of at most %zu entries",
                       (unsigned long long)place, most);
    for (size_t i = 0; i < count; i++) {
        const uint64_t child = lk_hdf5_number(node.at + NODE_HEAD + 8 + 16 * i, 8);
        LK_TRY(found ? read_node(reader, child, found - 1) : read_symbols(reader, child));
    }
    return LK_OK;
}

static int compare(const void *a, const void *b)
{
    const struct lk_hdf5_object *x = a, *y = b;
    return strcmp(x->name, y->name);
}

enum lk_status lk_hdf5_read_group(struct lk_hdf5_file *file, uint64_t tree, uint64_t heap,
                                  int depth, struct lk_hdf5_object *group)
{
    struct reader reader = {.file = file, .group = group, .depth = depth};
    LK_TRY(load_names(file, heap, &reader.names));
    LK_TRY(read_node(&reader, tree, -1));
    if (group->count == 0)
        return LK_OK;
    qsort(group->objects, (size_t)group->count, sizeof *group->objects, compare);
    for (int i = 1; i < group->count; i++)
        if (strcmp(group->objects[i - 1].name, group->objects[i].name) == 0)
            return lk_fail(LK_E_DATA, "HDF5, byte %llu: two objects have the name '%.100s'",
                           (unsigned long long)tree, group->objects[i].name);
    return LK_OK;
}

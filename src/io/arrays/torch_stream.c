/* Opens PyTorch files of the older format: pickles one behind the other (a magic number, the
 * version, the system, the values, the storages' keys), then each storage's length and numbers.
 */
#include "io/arrays/torch.h"

#include "base/fail.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_PICKLE_BYTES = 8 << 20 };

/* The magic number as a LONG1 with the STOP behind it: how the first pickle ends. */
static const unsigned char magic[] = {0x8a, 0x0a, 0x6c, 0xfc, 0x9c, 0x46, 0xf9,
                                      0x20, 0x6a, 0xa8, 0x50, 0x19, 0x2e};

bool lk_torch_is_stream(const unsigned char *begin)
{
    return begin[0] == 0x80 && begin[1] >= 2 && begin[1] <= 5;
}

static enum lk_status check_version(const unsigned char *data, size_t bytes, size_t *at,
                                    struct lk_pickle *pickle)
{
    LK_TRY(lk_pickle_read(data, bytes, at, pickle));
    if (*at < sizeof magic || memcmp(data + *at - sizeof magic, magic, sizeof magic) != 0)
        return lk_fail(LK_E_UNSUPPORTED, "a pickle, but without the number that PyTorch's "
                                         "files begin with");
    LK_TRY(lk_pickle_read(data, bytes, at, pickle));
    if (pickle->root->kind != LK_PICKLE_INTEGER || pickle->root->integer != 1001)
        return lk_fail(LK_E_UNSUPPORTED, "expected version 1001 of PyTorch's older format");
    LK_TRY(lk_pickle_read(data, bytes, at, pickle));
    const struct lk_pickle_value *system = pickle->root;
    if (system->kind != LK_PICKLE_DICT)
        return lk_fail(LK_E_DATA, "expected a dictionary that describes the system");
    for (uint32_t i = 0; i + 1 < system->count; i += 2)
        if (lk_pickle_is_text(system->items[i], "little_endian") &&
            (system->items[i + 1]->kind != LK_PICKLE_TRUTH || !system->items[i + 1]->integer))
            return lk_fail(LK_E_UNSUPPORTED, "its numbers are big-endian");
    return LK_OK;
}

/* Finds where each storage of the list of keys lies, from byte `at` of the file on. */
static enum lk_status place_storages(const struct lk_bytes *bytes,
                                     const struct lk_pickle_value *keys, uint64_t at,
                                     struct lk_torch_storages *storages)
{
    if (keys->kind != LK_PICKLE_LIST)
        return lk_fail(LK_E_DATA, "expected the list of the storages' keys");
    for (uint32_t i = 0; i < keys->count; i++) {
        int64_t elements;
        struct lk_torch_storage *storage = lk_torch_find(storages, keys->items[i]);
        if (!storage || storage->part >= 0)
            return lk_fail(LK_E_DATA, "key %u of the list of storages is %s", i,
                           storage ? "there twice" : "of no tensor");
        LK_TRY(lk_bytes_read(bytes, at, sizeof elements, "a storage's length", &elements));
        const int64_t expected =
            (int64_t)storage->bytes / lk_array_element_bytes(storage->type);
        if (elements != expected)
            return lk_fail(LK_E_DATA, "byte %llu: a storage of %lld elements; expected %lld",
                           (unsigned long long)at, (long long)elements, (long long)expected);
        at += sizeof elements;
        if (storage->bytes > bytes->size - at)
            return lk_fail(LK_E_DATA,
                           "byte %llu: expected %llu bytes of a storage; the file ends at %llu",
                           (unsigned long long)at, (unsigned long long)storage->bytes,
                           (unsigned long long)bytes->size);
        storage->part = 0;
        storage->offset = at;
        at += storage->bytes;
    }
    return LK_OK;
}

static enum lk_status read_array(const struct lk_arrays_file *file, int i, void *to)
{
    return lk_torch_read(file, i, &file->bytes, to);
}

static void close_file(struct lk_arrays_file *file)
{
    (void)file;
}

static const struct lk_arrays_reader reader = {read_array, close_file};

static enum lk_status read_stream(struct lk_arrays_file *file, const unsigned char *data,
                                  size_t bytes, struct lk_pickle *pickle,
                                  struct lk_torch_storages *storages)
{
    size_t at = 0;
    LK_TRY(check_version(data, bytes, &at, pickle));
    LK_TRY(lk_pickle_read(data, bytes, &at, pickle));
    struct lk_pickle_value *root = pickle->root;
    LK_TRY(lk_torch_list(pickle, storages));
    LK_TRY(lk_pickle_read(data, bytes, &at, pickle));
    LK_TRY(place_storages(&file->bytes, pickle->root, at, storages));
    file->reader = &reader;
    return lk_torch_add(file, root, storages);
}

enum lk_status lk_torch_open_stream(struct lk_arrays_file *file)
{
    struct lk_pickle pickle = {0};
    struct lk_torch_storages storages = {0};
    const size_t bytes = file->bytes.size < MOST_PICKLE_BYTES ? (size_t)file->bytes.size
                                                              : (size_t)MOST_PICKLE_BYTES;
    unsigned char *data = malloc(bytes + 1);
    if (!data)
        return lk_fail_memory("a file's pickles", bytes + 1);
    enum lk_status status = lk_bytes_read(&file->bytes, 0, bytes, "pickles", data);
    if (status == LK_OK)
        status = read_stream(file, data, bytes, &pickle, &storages);
    lk_pickle_clear(&pickle);
    free(storages.at);
    free(data);
    return status;
}

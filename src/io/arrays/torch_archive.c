/* Opens PyTorch files of the newer format: a zip archive with the values' pickle in data.pkl
 * and each storage as an entry of its own, data/KEY beside it. */
#include "io/arrays/torch.h"

#include "base/fail.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PICKLE_BYTES = 8 << 20 };

static const char pickle_name[] = "data.pkl";

int lk_torch_find_pickle(const struct lk_zip *zip)
{
    for (int i = 0; i < lk_zip_count(zip); i++) {
        const char *name = lk_zip_name(zip, i), *slash = strchr(name, '/');
        if (strcmp(slash ? slash + 1 : name, pickle_name) == 0)
            return i;
    }
    return -1;
}

/* The entry NAME beside the pickle, in the archive's only folder; -1: absent or too long. */
static int find_beside(const struct lk_zip *zip, int pickle, const char *name)
{
    char path[512];
    const char *beside = lk_zip_name(zip, pickle);
    const size_t folder = strlen(beside) - strlen(pickle_name);
    if (folder + strlen(name) >= sizeof path)
        return -1;
    snprintf(path, sizeof path, "%.*s%s", (int)folder, beside, name);
    return lk_zip_find(zip, path);
}

static enum lk_status check_order(struct lk_zip *zip, int pickle)
{
    const int entry = find_beside(zip, pickle, "byteorder");
    char *order;
    size_t bytes;
    if (entry < 0) /* written before there was a choice */
        return LK_OK;
    LK_TRY(lk_zip_read(zip, entry, 16, &order, &bytes));
    const bool known = strcmp(order, "little") == 0;
    free(order);
    return known ? LK_OK
                 : lk_fail(LK_E_UNSUPPORTED, "its numbers are not little-endian, 'byteorder' "
                                             "says");
}

static enum lk_status place_storage(struct lk_zip *zip, int pickle,
                                    struct lk_torch_storage *storage)
{
    char name[256];
    struct lk_bytes bytes;
    snprintf(name, sizeof name, "data/%.*s",
             storage->key_bytes < 200 ? (int)storage->key_bytes : 200, storage->key);
    const int entry = find_beside(zip, pickle, name);
    if (entry < 0)
        return lk_fail(LK_E_DATA, "expected '%s' in the archive, a storage of %llu bytes", name,
                       (unsigned long long)storage->bytes);
    LK_TRY(lk_zip_stored(zip, entry, &bytes));
    if (bytes.size != storage->bytes)
        return lk_fail(LK_E_DATA, "'%s' of the archive has %llu bytes; expected %llu", name,
                       (unsigned long long)bytes.size, (unsigned long long)storage->bytes);
    storage->part = entry;
    return LK_OK;
}

static enum lk_status read_array(const struct lk_arrays_file *file, int i, void *to)
{
    struct lk_bytes bytes;
    LK_TRY(lk_zip_stored(file->state, file->places[i].part, &bytes));
    return lk_torch_read(file, i, &bytes, to);
}

static void close_file(struct lk_arrays_file *file)
{
    lk_zip_close(file->state);
}

static const struct lk_arrays_reader reader = {read_array, close_file};

static enum lk_status read_values(struct lk_arrays_file *file, int entry, const char *data,
                                  size_t bytes, struct lk_pickle *pickle)
{
    struct lk_torch_storages storages = {0};
    size_t at = 0;
    LK_TRY(lk_pickle_read(data, bytes, &at, pickle));
    enum lk_status status = lk_torch_list(pickle, &storages);
    for (int i = 0; i < storages.count && status == LK_OK; i++)
        status = place_storage(file->state, entry, &storages.at[i]);
    if (status == LK_OK)
        status = lk_torch_add(file, pickle->root, &storages);
    free(storages.at);
    return status;
}

enum lk_status lk_torch_open_archive(struct lk_arrays_file *file, struct lk_zip *zip)
{
    struct lk_pickle pickle = {0};
    char *data = NULL;
    size_t bytes = 0;
    const int entry = lk_torch_find_pickle(zip);
    file->state = zip;
    file->reader = &reader;
    LK_TRY(check_order(zip, entry));
    LK_TRY(lk_zip_read(zip, entry, MOST_PICKLE_BYTES, &data, &bytes));
    const enum lk_status status = read_values(file, entry, data, bytes, &pickle);
    lk_pickle_clear(&pickle);
    free(data);
    return status;
}

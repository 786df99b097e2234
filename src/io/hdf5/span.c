/* Loads pieces of an HDF5 file within the file's end and a limit of memory. */
#include "io/hdf5/span.h"

enum {
    MOST_BYTES = 32 << 20, /* of all headers, names, attributes of a file */
    LEAST_BYTES = 128      /* that anything counts as, however small it is */
};

enum lk_status lk_hdf5_count(struct lk_hdf5_file *file, uint64_t place, uint64_t bytes,
                             const char *what)
{
    const uint64_t counted = bytes > LEAST_BYTES ? bytes : LEAST_BYTES;
    if (counted > MOST_BYTES - file->used)
        return lk_fail(
            LK_E_DATA,
            "HDF5, byte %llu: %s of %llu bytes; at most %d MB of headers are allowed",
            (unsigned long long)place, what, (unsigned long long)bytes, MOST_BYTES >> 20);
    file->used += counted;
    return LK_OK;
}

enum lk_status lk_hdf5_load(struct lk_hdf5_file *file, uint64_t place, uint64_t count,
                            const char *what, struct lk_hdf5_span *span)
{
    void *memory = NULL;
    if (place > file->bytes.size || count > file->bytes.size - place)
        return lk_fail(LK_E_DATA,
                       "HDF5, byte %llu: expected %s of %llu bytes; the file ends at %llu",
                       (unsigned long long)place, what, (unsigned long long)count,
                       (unsigned long long)file->bytes.size);
    LK_TRY(lk_hdf5_count(file, place, count, what));
    LK_TRY(lk_arena_allocate(&file->arena, (size_t)count, &memory));
    LK_TRY(lk_bytes_read(&file->bytes, place, (size_t)count, what, memory));
    *span = (struct lk_hdf5_span){.at = memory, .left = (size_t)count, .place = place};
    return LK_OK;
}

enum lk_status lk_hdf5_take(struct lk_hdf5_span *span, size_t count, const char *what,
                            struct lk_hdf5_span *taken)
{
    if (count > span->left)
        return lk_fail(LK_E_DATA, "HDF5, byte %llu: expected %s of %zu bytes; %zu are left",
                       (unsigned long long)span->place, what, count, span->left);
    *taken = (struct lk_hdf5_span){.at = span->at, .left = count, .place = span->place};
    span->at += count;
    span->left -= count;
    span->place += count;
    return LK_OK;
}

uint64_t lk_hdf5_number(const unsigned char *at, int bytes)
{
    uint64_t number = 0;
    for (int i = bytes; i > 0; i--)
        number = number << 8 | at[i - 1];
    return number;
}

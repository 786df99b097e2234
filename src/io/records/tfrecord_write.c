/* Frames and writes records of TFRecord files. */
#include "io/records/tfrecord_write.h"

#include "io/crc32c.h"
#include "io/file.h"
#include <stdbool.h>

static void put_little_endian(uint8_t *to, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        to[i] = (uint8_t)(value >> 8 * i);
}

void lk_tfrecord_frame(const void *data, size_t bytes, struct lk_tfrecord_frame *seal)
{
    put_little_endian(seal->header, bytes, 8);
    put_little_endian(seal->header + 8, lk_crc32c_masked(seal->header, 8), 4);
    put_little_endian(seal->footer, lk_crc32c_masked(data, bytes), 4);
}

static bool write_all(FILE *file, const void *data, size_t bytes)
{
    return bytes == 0 || fwrite(data, 1, bytes, file) == bytes;
}

enum lk_status lk_tfrecord_write(FILE *file, const char *path, const void *data, size_t bytes,
                                 const struct lk_tfrecord_frame *seal)
{
    if (!write_all(file, seal->header, sizeof seal->header) || !write_all(file, data, bytes) ||
        !write_all(file, seal->footer, sizeof seal->footer))
        return lk_file_fail("write", path);
    return LK_OK;
}

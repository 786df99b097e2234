/* Reading and writing single image files, for programs. */
#include "io/file.h"
#include "base/fail.h"
#include "io/image/image.h"
#include "io/image/png_write.h"
#include <limits.h>
#include <lockstep/data.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_FILE_BYTES = 256 << 20 };

enum lk_status lk_image_read(const char *path, const int64_t shape[3], uint8_t *pixels)
{
    void *data = NULL;
    size_t bytes = 0;
    struct lk_image image = {0};
    LK_TRY(lk_file_read(path, MOST_FILE_BYTES, &data, &bytes));
    enum lk_status status = lk_image_decode(data, bytes, (int)shape[2], path, &image);
    free(data);
    if (status == LK_OK && (image.height != shape[0] || image.width != shape[1]))
        status = lk_fail(LK_E_SHAPE, "'%s': expected %lld x %lld pixels, found %d x %d", path,
                         (long long)shape[1], (long long)shape[0], image.width, image.height);
    if (status == LK_OK)
        memcpy(pixels, image.pixels, (size_t)(shape[0] * shape[1] * shape[2]));
    lk_image_clear(&image);
    return status;
}

enum lk_status lk_image_write(const char *path, const int64_t shape[3], const uint8_t *pixels)
{
    void *data = NULL;
    size_t bytes = 0;
    for (int i = 0; i < 3; i++)
        if (shape[i] < 1 || shape[i] > INT_MAX)
            return lk_fail(LK_E_ARGUMENT, "'%s': no image has %lld rows, columns or channels",
                           path, (long long)shape[i]);
    const struct lk_image image = {(int)shape[0], (int)shape[1], (int)shape[2],
                                   (uint8_t *)pixels /* which are only read */};
    LK_TRY(lk_png_write(&image, &data, &bytes));
    const enum lk_status status = lk_file_write(path, data, bytes);
    free(data);
    return status;
}

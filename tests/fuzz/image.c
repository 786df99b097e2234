/* PNG and JPEG files: decoded in every way, and scaled. */
#include "io/image/image.h"
#include "fuzz.h"
#include <stdlib.h>

/* Larger images are as the others, but slow. */
enum { MOST_PIXELS = 1 << 14 };

static void try_image(const uint8_t *data, size_t bytes, int channels, const int least[2])
{
    static uint8_t scaled[24 * 17 * 4];
    struct lk_image image;
    if (lk_image_decode_least(data, bytes, channels, least, "input", &image) == LK_OK) {
        if (image.channels != channels || image.height < 1 || image.width < 1)
            abort();
        for (size_t i = (size_t)image.height * (size_t)image.width * (size_t)channels; i > 0;)
            scaled[0] ^= image.pixels[--i]; /* all of them are there */
        if (lk_image_resize(&image, NULL, 17, 24, scaled) != LK_OK)
            abort();
        lk_image_clear(&image);
    }
    lk_error_clear();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    int shape[3];
    const enum lk_status status = lk_image_measure(data, bytes, "input", shape);
    lk_error_clear();
    if (status == LK_OK && shape[0] * (long long)shape[1] > MOST_PIXELS)
        return 0;
    try_image(data, bytes, 3, (int[]){1 << 14, 1 << 14});
    try_image(data, bytes, 1, (int[]){9, 9});
    try_image(data, bytes, 4, (int[]){1, 1});
    return 0;
}

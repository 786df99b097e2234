#include "io/image.h"

#include "base/fail.h"
#include <limits.h>

/* The decoder sees memory only, and two formats. */
#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_JPEG
#define STBI_ONLY_PNG
#define STBI_NO_STDIO
#define STBI_MAX_DIMENSIONS 16384
#pragma GCC diagnostic ignored "-Wunused-function" /* declared, but switched off above */
#include <stb_image.h>

enum { MOST_PIXELS = 64 << 20 };

enum lk_status lk_image_decode(const void *data, size_t bytes, int channels, const char *where,
                               struct lk_image *image)
{
    int width = 0, height = 0, found = 0;
    if (channels != 1 && channels != 3 && channels != 4)
        return lk_fail(LK_E_ARGUMENT, "images have 1, 3 or 4 channels, not %d", channels);
    if (bytes > INT_MAX || !stbi_info_from_memory(data, (int)bytes, &width, &height, &found))
        return lk_fail(LK_E_DATA, "'%s': expected a PNG or JPEG image: %s", where,
                       bytes > INT_MAX ? "too large" : stbi_failure_reason());
    if (width < 1 || height < 1 || width > STBI_MAX_DIMENSIONS ||
        height > STBI_MAX_DIMENSIONS || (int64_t)width * height > MOST_PIXELS)
        return lk_fail(LK_E_DATA, "'%s': an image of %d x %d pixels; at most %d a side, %d",
                       where, width, height, STBI_MAX_DIMENSIONS, MOST_PIXELS);
    uint8_t *pixels =
        stbi_load_from_memory(data, (int)bytes, &width, &height, &found, channels);
    if (!pixels)
        return lk_fail(LK_E_DATA, "'%s': broken image: %s", where, stbi_failure_reason());
    *image = (struct lk_image){height, width, channels, pixels};
    return LK_OK;
}

void lk_image_clear(struct lk_image *image)
{
    stbi_image_free(image->pixels);
    *image = (struct lk_image){0};
}

/* Recognizes, measures and decodes PNG and JPEG files. */
#include "io/image/image.h"

#include "base/fail.h"
#include "io/image/check.h"
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* stb_image is compiled in here, without file access and with these two formats alone. */
#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_JPEG
#define STBI_ONLY_PNG
#define STBI_NO_STDIO
#define STBI_MAX_DIMENSIONS 16384
/* Works round a fault of stb_image 2.27: where a marker ends a scan too early, it goes on with
 * fewer bits than it has asked for, and later shifts by more than the width of a word. This
 * macro replaces its calls of stbi__grow_buffer_unsafe(j) by two calls; the second one gives
 * zeros. In the function's own definition the argument begins with a type, which gives another
 * name. */
#define stbi__grow_buffer_unsafe(j) GROW_##j)
#define GROW_stbi__jpeg grow_buffer(stbi__jpeg
#define GROW_j grow_buffer(j), j->code_bits > 24 ? (void)0 : grow_buffer(j
#define GROW_z grow_buffer(z /* looks for a restart only */
#pragma GCC diagnostic ignored "-Wunused-function" /* declared, but switched off above */
#include <stb_image.h>

enum { MOST_PIXELS = 64 << 20 };

/* Formats that are often met under the name of another one. */
static const struct {
    const char *name, *mark;
    size_t at, bytes;
} others[] = {
    {"GIF", "GIF8", 0, 4},       {"WebP", "WEBP", 8, 4},        {"BMP", "BM", 0, 2},
    {"TIFF", "II*\0", 0, 4},     {"TIFF", "MM\0*", 0, 4},       {"HEIF or AVIF", "ftyp", 4, 4},
    {"JPEG 2000", "jP  ", 4, 4}, {"JPEG XL", "\xff\x0a", 0, 2}, {"SVG", "<svg", 0, 4},
    {"HTML", "<!DOCTYPE", 0, 9}, {"HTML", "<html", 0, 5}};

static bool starts_with(const void *data, size_t bytes, const char *mark, size_t length)
{
    return bytes >= length && memcmp(data, mark, length) == 0;
}

static bool is_jpeg(const void *data, size_t bytes)
{
    return starts_with(data, bytes, "\xff\xd8\xff", 3);
}

static bool is_png(const void *data, size_t bytes)
{
    return starts_with(data, bytes, "\x89PNG\r\n\x1a\n", 8);
}

const char *lk_image_format(const void *data, size_t bytes)
{
    return is_jpeg(data, bytes) ? "JPEG" : is_png(data, bytes) ? "PNG" : NULL;
}

static enum lk_status refuse_format(const uint8_t *data, size_t bytes, const char *where)
{
    if (bytes == 0)
        return lk_fail(LK_E_DATA, "'%s': expected a PNG or JPEG image, found nothing", where);
    for (int i = 0; i < LK_COUNT(others); i++)
        if (bytes >= others[i].at && starts_with(data + others[i].at, bytes - others[i].at,
                                                 others[i].mark, others[i].bytes))
            return lk_fail(LK_E_DATA, "'%s': expected a PNG or JPEG image, found %s", where,
                           others[i].name);
    return lk_fail(LK_E_DATA, "'%s': expected a PNG or JPEG image, found neither", where);
}

static enum lk_status check_size(int64_t height, int64_t width, const char *where)
{
    if (width < 1 || height < 1)
        return lk_fail(LK_E_DATA, "'%s': broken image: no size is in it", where);
    if (width > STBI_MAX_DIMENSIONS || height > STBI_MAX_DIMENSIONS ||
        width * height > MOST_PIXELS)
        return lk_fail(LK_E_DATA,
                       "'%s': an image of %lld x %lld pixels; at most %d a side and %d in all "
                       "are read",
                       where, (long long)width, (long long)height, STBI_MAX_DIMENSIONS,
                       MOST_PIXELS);
    return LK_OK;
}

enum lk_status lk_image_measure(const void *data, size_t bytes, const char *where, int shape[3])
{
    int width = 0, height = 0, channels = 0;
    if (!is_jpeg(data, bytes) && !is_png(data, bytes))
        return refuse_format(data, bytes, where);
    LK_TRY((is_png(data, bytes) ? lk_png_check : lk_jpeg_check)(data, bytes, where));
    int64_t size[2];
    if (is_png(data, bytes)) { /* stb_image reports a PNG that is too large as no PNG */
        LK_TRY(lk_png_size(data, bytes, where, size));
        LK_TRY(check_size(size[0], size[1], where));
    }
    if (bytes > INT_MAX || !stbi_info_from_memory(data, (int)bytes, &width, &height, &channels))
        return lk_fail(LK_E_DATA, "'%s': broken image: %s", where,
                       bytes > INT_MAX ? "too large" : stbi_failure_reason());
    LK_TRY(check_size(height, width, where));
    shape[0] = height;
    shape[1] = width;
    shape[2] = channels;
    return LK_OK;
}

static enum lk_status decode_stb(const void *data, size_t bytes, int channels,
                                 const char *where, struct lk_image *image)
{
    int shape[3], found;
    LK_TRY(lk_image_measure(data, bytes, where, shape));
    uint8_t *pixels =
        stbi_load_from_memory(data, (int)bytes, &shape[1], &shape[0], &found, channels);
    if (!pixels)
        return lk_fail(LK_E_DATA, "'%s': broken image: %s", where, stbi_failure_reason());
    *image = (struct lk_image){shape[0], shape[1], channels, pixels};
    return LK_OK;
}

#ifdef LK_TURBOJPEG
#include <turbojpeg.h>

/* The smallest scale, in eighths, that leaves at least `least` pixels of `size`. Only scales at
 * which TurboJPEG is fast: 5/8 takes longer than full size, and 3/8 longer than a half. */
static int eighths(int size, int least)
{
    int n = 1;
    while (n < 8 && (size * n + 7) / 8 < least)
        n *= 2;
    return n;
}

/* Whether a warning means that pixels are missing in the file. All do but that of extra bytes
 * between two segments, which are common and harmless. */
static bool is_broken(tjhandle jpeg)
{
    return tjGetErrorCode(jpeg) == TJERR_FATAL ||
           !strstr(tjGetErrorStr2(jpeg), "extraneous bytes");
}

/* a b / 255, rounded, of bytes. */
static uint8_t multiply(int a, int b)
{
    const int product = a * b + 128;
    return (uint8_t)((product + (product >> 8)) >> 8);
}

/* Turns inks, 255 for none as Adobe's programs write them, into `channels` for each pixel where
 * they lie; the same numbers as Pillow's. Files without Adobe's mark are read alike. */
static void mix_inks(uint8_t *pixels, int64_t count, int channels)
{
    for (int64_t i = 0; i < count; i++) {
        const uint8_t *inks = pixels + 4 * i, black = inks[3];
        uint8_t mixed[4] = {[3] = 255}, *to = pixels + channels * i;
        for (int c = 0; c < 3; c++)
            mixed[c] = (uint8_t)(black - multiply(255 - inks[c], black));
        if (channels == 1) /* as stb_image does */
            mixed[0] = (uint8_t)((77 * mixed[0] + 150 * mixed[1] + 29 * mixed[2]) >> 8);
        memcpy(to, mixed, (size_t)channels);
    }
}

static enum lk_status decode_turbo(tjhandle jpeg, const void *data, size_t bytes,
                                   const int least[2], const char *where,
                                   struct lk_image *image)
{
    static const int formats[] = {[1] = TJPF_GRAY, [3] = TJPF_RGB, [4] = TJPF_RGBA};
    int width = 0, height = 0, subsampling = 0, colours = 0;
    if (tjDecompressHeader3(jpeg, data, bytes, &width, &height, &subsampling, &colours))
        return lk_fail(LK_E_DATA, "'%s': broken image: %s", where, tjGetErrorStr2(jpeg));
    LK_TRY(check_size(height, width, where));
    const bool has_inks = colours == TJCS_CMYK || colours == TJCS_YCCK;
    const int down = eighths(height, least[0]), across = eighths(width, least[1]);
    const int n = down > across ? down : across;
    height = (height * n + 7) / 8;
    width = (width * n + 7) / 8;
    const size_t count = (size_t)height * (size_t)width;
    uint8_t *pixels = malloc(count * (has_inks ? 4 : (size_t)image->channels));
    if (!pixels)
        return lk_fail_memory(where, count);
    if (tjDecompress2(jpeg, data, bytes, pixels, width, 0, height,
                      has_inks ? TJPF_CMYK : formats[image->channels], TJFLAG_LIMITSCANS) &&
        is_broken(jpeg)) {
        free(pixels);
        return lk_fail(LK_E_DATA, "'%s': broken image: %s", where, tjGetErrorStr2(jpeg));
    }
    if (has_inks)
        mix_inks(pixels, (int64_t)count, image->channels);
    *image = (struct lk_image){height, width, image->channels, pixels};
    return LK_OK;
}

const char *lk_image_decoder(void)
{
    return "TurboJPEG";
}

static enum lk_status decode_jpeg(const void *data, size_t bytes, const int least[2],
                                  const char *where, struct lk_image *image)
{
    tjhandle jpeg = tjInitDecompress();
    if (!jpeg)
        return lk_fail_memory("a JPEG decoder", 0);
    const enum lk_status status = decode_turbo(jpeg, data, bytes, least, where, image);
    tjDestroy(jpeg);
    return status;
}
#else
const char *lk_image_decoder(void)
{
    return "stb_image";
}

static enum lk_status decode_jpeg(const void *data, size_t bytes, const int least[2],
                                  const char *where, struct lk_image *image)
{
    (void)least;
    return decode_stb(data, bytes, image->channels, where, image);
}
#endif

enum lk_status lk_image_decode_least(const void *data, size_t bytes, int channels,
                                     const int least[2], const char *where,
                                     struct lk_image *image)
{
    if (channels != 1 && channels != 3 && channels != 4)
        return lk_fail(LK_E_ARGUMENT, "images have 1, 3 or 4 channels, not %d", channels);
    if (!is_jpeg(data, bytes))
        return decode_stb(data, bytes, channels, where, image);
    struct lk_image decoded = {.channels = channels};
    LK_TRY(decode_jpeg(data, bytes, least, where, &decoded));
    *image = decoded;
    return LK_OK;
}

enum lk_status lk_image_decode(const void *data, size_t bytes, int channels, const char *where,
                               struct lk_image *image)
{
    static const int all[] = {STBI_MAX_DIMENSIONS, STBI_MAX_DIMENSIONS};
    return lk_image_decode_least(data, bytes, channels, all, where, image);
}

void lk_image_clear(struct lk_image *image)
{
    free(image->pixels); /* as stbi_image_free() does */
    *image = (struct lk_image){0};
}

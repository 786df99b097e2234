/* A sample's image for the target: the file as it is, or scaled and written as PNG. */
#include "io/image/image.h"
#include "base/fail.h"
#include "data/convert/convert.h"
#include "data/data.h"
#include "data/sources/files.h"
#include "io/image/png_write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Files without a name are called by number, all with as many digits as the largest needs, so
 * that they sort by number; with at least so many. */
enum { LEAST_DIGITS = 5 };

static enum lk_status encode(const struct lk_image *image, struct lk_convert_image *made)
{
    LK_TRY(lk_png_write(image, &made->data, &made->bytes));
    made->height = image->height;
    made->width = image->width;
    made->format = "png";
    return LK_OK;
}

/* Scales an image as training would: to grey or colours, without transparency. */
static enum lk_status scale(const struct lk_conversion *c, const struct lk_encoded *file,
                            struct lk_convert_image *made)
{
    const int size[2] = {c->options.height, c->options.width};
    int shape[3] = {0, 0, 3}; /* TurboJPEG may know a file that stb_image does not: then in
                               * colours */
    struct lk_image image, scaled = {.height = size[0], .width = size[1]};
    if (lk_image_measure(file->data, file->bytes, file->where, shape) != LK_OK)
        lk_error_clear();
    scaled.channels = shape[2] < 3 ? 1 : 3;
    LK_TRY(lk_image_decode_least(file->data, file->bytes, scaled.channels, size, file->where,
                                 &image));
    const size_t bytes = (size_t)size[0] * (size_t)size[1] * (size_t)scaled.channels;
    scaled.pixels = malloc(bytes);
    enum lk_status status = scaled.pixels ? LK_OK : lk_fail_memory("an image", bytes);
    if (status == LK_OK)
        status = lk_image_resize(&image, NULL, size[0], size[1], scaled.pixels);
    if (status == LK_OK)
        status = encode(&scaled, made);
    free(scaled.pixels);
    lk_image_clear(&image);
    return status;
}

/* Checks a file whose own bytes go into the target: decoding shows whether it is whole. */
static enum lk_status check(const struct lk_encoded *file, struct lk_convert_image *made)
{
    struct lk_image image;
    LK_TRY(lk_image_decode(file->data, file->bytes, 3, file->where, &image));
    made->height = image.height;
    made->width = image.width;
    made->format = *(const uint8_t *)file->data == 0xff ? "jpeg" : "png";
    lk_image_clear(&image);
    return LK_OK;
}

static enum lk_status read_file(const struct lk_conversion *c,
                                const struct lk_convert_part *part, int64_t index,
                                struct lk_convert_image *made)
{
    struct lk_encoded file;
    LK_TRY(part->data->source->fetch(part->data->state, index, &file));
    snprintf(made->where, sizeof made->where, "%s", file.where);
    const enum lk_status status =
        c->options.height ? scale(c, &file, made) : check(&file, made);
    if (status == LK_OK && !c->options.height) {
        made->data = file.data;
        made->bytes = file.bytes;
        return LK_OK;
    }
    free(file.data);
    return status;
}

static enum lk_status read_pixels(const struct lk_conversion *c,
                                  const struct lk_convert_part *part, int64_t index,
                                  struct lk_convert_image *made)
{
    const struct lk_data_info *info = lk_data_info(part->data);
    struct lk_image image = {info->height, info->width, info->channels, NULL};
    const int height = c->options.height ? c->options.height : image.height;
    const int width = c->options.height ? c->options.width : image.width;
    const size_t bytes = (size_t)image.height * (size_t)image.width * (size_t)image.channels;
    struct lk_image scaled = {height, width, image.channels, NULL};
    int32_t label;
    image.pixels = malloc(bytes);
    scaled.pixels = malloc((size_t)height * (size_t)width * (size_t)image.channels);
    enum lk_status status =
        image.pixels && scaled.pixels ? LK_OK : lk_fail_memory("a sample", bytes);
    if (status == LK_OK)
        status = lk_data_read(part->data, &index, 1, image.pixels, &label);
    if (status == LK_OK)
        status = lk_image_resize(&image, NULL, height, width, scaled.pixels);
    if (status == LK_OK)
        status = encode(&scaled, made);
    free(image.pixels);
    free(scaled.pixels);
    return status;
}

enum lk_status lk_convert_read(const struct lk_conversion *c,
                               const struct lk_convert_part *part, int64_t index,
                               struct lk_convert_image *image)
{
    struct lk_convert_image made = {0};
    LK_TRY(lk_data_info(part->data)->decodes ? read_file(c, part, index, &made)
                                             : read_pixels(c, part, index, &made));
    *image = made;
    return LK_OK;
}

static int digits(int64_t number)
{
    int count = 1;
    for (; number >= 10; number /= 10)
        count++;
    return count < LEAST_DIGITS ? LEAST_DIGITS : count;
}

/* The file name: a scaled image ends in .png whatever it was; a name without a known ending
 * gets the one of its format. */
void lk_convert_name(const struct lk_conversion *c, const struct lk_convert_part *part,
                     int64_t index, const char *format, char name[LK_CONVERT_PATH])
{
    const char *given = part->samples[index].name, *ending = format[0] == 'j' ? "jpg" : "png";
    int stem = (int)strlen(given);
    if (stem == 0) {
        snprintf(name, LK_CONVERT_PATH, "%0*lld.%s", digits(part->count - 1), (long long)index,
                 ending);
        return;
    }
    const bool is_named = lk_files_is_image(given);
    const char *dot = strrchr(given, '.');
    const bool is_png = is_named && (dot[1] == 'p' || dot[1] == 'P');
    if (is_named && (!c->options.height || is_png)) {
        snprintf(name, LK_CONVERT_PATH, "%s", given);
        return;
    }
    if (is_named)
        stem = (int)(dot - given);
    snprintf(name, LK_CONVERT_PATH, "%.*s.%s", stem, given, ending);
}

/* Reads one image file as an evaluation reads the images of a data set. */
#include "data/photo.h"

#include "base/fail.h"
#include "data/images/images.h"
#include "data/stages/augment.h"
#include "io/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_FILE_BYTES = 256 << 20 };

/* How the SPEC or, where it says nothing, the pipeline has images decoded. */
static enum lk_status find_decoding(const char *spec, const struct lk_pipeline *pipeline,
                                    const int shape[3], struct lk_decoding *decoding)
{
    const int *resize = pipeline->resize;
    int size[2] = {resize[0] ? resize[0] : shape[0], resize[0] ? resize[1] : shape[1]};
    char text[32] = "", decode[16] = "";
    (void)lk_source_find_option(spec, "size", text, sizeof text);
    (void)lk_source_find_option(spec, "decode", decode, sizeof decode);
    LK_TRY(lk_images_parse_size(text, size));
    const bool is_full = strcmp(decode, lk_image_decodings[LK_DECODE_FULL]) == 0;
    *decoding =
        (struct lk_decoding){size[0], size[1], shape[2], is_full || pipeline->decodes_full};
    return LK_OK;
}

static enum lk_status read_sample(const struct lk_encoded *encoded,
                                  const struct lk_decoding *decoding,
                                  const struct lk_pipeline *pipeline, const int shape[3],
                                  uint8_t *pixels)
{
    const struct lk_image_crop crop = {
        .size = {pipeline->first_crop[0], pipeline->first_crop[1]}, .is_middle = true};
    const struct lk_augment middle = {.from_height = decoding->height,
                                      .from_width = decoding->width,
                                      .height = shape[0],
                                      .width = shape[1],
                                      .channels = shape[2]};
    const size_t bytes =
        (size_t)decoding->height * (size_t)decoding->width * (size_t)decoding->channels;
    LK_TRY(lk_augment_check(&middle));
    uint8_t *whole = malloc(bytes);
    if (!whole)
        return lk_fail_memory("an image", bytes);
    const enum lk_status status = lk_decode_sample(decoding, encoded, &crop, whole);
    if (status == LK_OK)
        lk_augment_apply(&middle, 0, 0, whole, pixels);
    free(whole);
    return status;
}

static enum lk_status decode(struct lk_encoded *encoded, const char *spec,
                             const struct lk_pipeline *pipeline, const int shape[3],
                             uint8_t *pixels)
{
    struct lk_decoding decoding;
    LK_TRY(find_decoding(spec, pipeline, shape, &decoding));
    return read_sample(encoded, &decoding, pipeline, shape, pixels);
}

enum lk_status lk_photo_read(const char *path, const char *spec,
                             const struct lk_pipeline *pipeline, const int shape[3],
                             uint8_t *pixels)
{
    struct lk_encoded encoded = {0};
    snprintf(encoded.where, sizeof encoded.where, "%s", path);
    LK_TRY(lk_file_read(path, MOST_FILE_BYTES, &encoded.data, &encoded.bytes));
    const enum lk_status status = decode(&encoded, spec, pipeline, shape, pixels);
    free(encoded.data);
    return status;
}

enum lk_status lk_photo_decode(const void *data, size_t bytes, const char *spec,
                               const struct lk_pipeline *pipeline, const int shape[3],
                               uint8_t *pixels)
{
    struct lk_encoded encoded = {
        .data = (void *)(uintptr_t)data, .bytes = bytes, .where = "the image"};
    return decode(&encoded, spec, pipeline, shape, pixels);
}

/* Decoding an image file into a sample of the size that is wanted. */
#include "data/images/decode.h"

#include "base/fail.h"
#include "io/image/image.h"

#include <limits.h>
#include <math.h>
#include <string.h>

void lk_decode_least(const struct lk_decoding *decoding, int least[2])
{
    least[0] = decoding->is_full ? INT_MAX : decoding->height;
    least[1] = decoding->is_full ? INT_MAX : decoding->width;
}

/* Where the crop begins and ends along one axis, in pixels of the decoded image, in which
 * `side` pixels have become `decoded`. */
static void place(const struct lk_image_crop *crop, int axis, int side, int decoded,
                  int ends[2])
{
    const int size = crop->size[axis] < side ? crop->size[axis] : side, left = side - size;
    const double scale = (double)decoded / side;
    const int first = crop->is_middle ? left / 2 : (int)(crop->at[axis] * (left + 1));
    ends[0] = (int)lrint((first < left ? first : left) * scale);
    ends[1] = (int)lrint(((first < left ? first : left) + size) * scale);
    if (ends[1] == ends[0]) /* a pixel at least */
        ends[ends[1] < decoded] += ends[1] < decoded ? 1 : -1;
}

/* Cuts the image to its crop, in the same memory. */
static void cut(struct lk_image *image, const int rows[2], const int columns[2])
{
    const size_t channels = (size_t)image->channels;
    const int height = rows[1] - rows[0], width = columns[1] - columns[0];
    for (int y = 0; y < height; y++)
        memmove(image->pixels + (size_t)y * (size_t)width * channels,
                image->pixels +
                    ((size_t)(rows[0] + y) * (size_t)image->width + (size_t)columns[0]) *
                        channels,
                (size_t)width * channels);
    image->height = height;
    image->width = width;
}

/* Decodes an image, large enough that its crop, before it is scaled, has at least the sample's
 * size. */
static enum lk_status decode_crop(const struct lk_decoding *decoding,
                                  const struct lk_encoded *encoded,
                                  const struct lk_image_crop *crop, struct lk_image *image)
{
    int shape[3], least[2], ends[2][2];
    lk_decode_least(decoding, least);
    LK_TRY(lk_image_measure(encoded->data, encoded->bytes, encoded->where, shape));
    for (int i = 0; i < 2 && least[i] < INT_MAX; i++)
        if (crop->size[i] < shape[i]) {
            const int64_t all = (int64_t)least[i] * shape[i];
            const int64_t most = (all + crop->size[i] - 1) / crop->size[i];
            least[i] = most < INT_MAX ? (int)most : INT_MAX;
        }
    LK_TRY(lk_image_decode_least(encoded->data, encoded->bytes, decoding->channels, least,
                                 encoded->where, image));
    place(crop, 0, shape[0], image->height, ends[0]);
    place(crop, 1, shape[1], image->width, ends[1]);
    cut(image, ends[0], ends[1]);
    return LK_OK;
}

enum lk_status lk_decode_sample(const struct lk_decoding *decoding,
                                const struct lk_encoded *encoded,
                                const struct lk_image_crop *crop, uint8_t *sample)
{
    struct lk_image image;
    int least[2];
    lk_decode_least(decoding, least);
    if (crop->size[0])
        LK_TRY(decode_crop(decoding, encoded, crop, &image));
    else
        LK_TRY(lk_image_decode_least(encoded->data, encoded->bytes, decoding->channels, least,
                                     encoded->where, &image));
    const enum lk_status status =
        lk_image_resize(&image, NULL, decoding->height, decoding->width, sample);
    lk_image_clear(&image);
    return status;
}

/* Does on the host what a device does to the colours of samples, so that one can look at it. */
#include "data/stages/transform.h"

#include <math.h>
#include <stddef.h>

static void swap_pixels(uint8_t *a, uint8_t *b, int channels)
{
    for (int c = 0; c < channels; c++) {
        const uint8_t kept = a[c];
        a[c] = b[c];
        b[c] = kept;
    }
}

static void mirror(const struct lk_transform_params *draw, int height, int width, int channels,
                   uint8_t *sample)
{
    const size_t row = (size_t)width * (size_t)channels;
    const int which = (int)draw->mirror;
    for (int y = 0; (which & LK_FLIP_UP_DOWN) && y < height / 2; y++)
        swap_pixels(sample + (size_t)y * row, sample + (size_t)(height - 1 - y) * row,
                    (int)row);
    for (int y = 0; (which & LK_FLIP_LEFT_RIGHT) && y < height; y++)
        for (int x = 0; x < width / 2; x++)
            swap_pixels(sample + (size_t)y * row + (size_t)x * (size_t)channels,
                        sample + (size_t)y * row + (size_t)(width - 1 - x) * (size_t)channels,
                        channels);
}

static double grey(const uint8_t *p, int channels)
{
    return channels == 3 ? 0.2989 * p[0] + 0.587 * p[1] + 0.114 * p[2] : p[0];
}

static double mean_grey(const uint8_t *sample, size_t pixels, int channels)
{
    double sum = 0;
    for (size_t i = 0; i < pixels; i++)
        sum += grey(sample + i * (size_t)channels, channels);
    return sum / (double)pixels;
}

void lk_transform_apply(const struct lk_transform *transform,
                        const struct lk_transform_params *draw, int height, int width,
                        uint8_t *sample)
{
    const size_t pixels = (size_t)height * (size_t)width;
    const int channels = transform->channels;
    if (transform->flips)
        mirror(draw, height, width, channels, sample);
    for (int s = 0; s < LK_COLOUR_STAGES && transform->stages[s] != LK_COLOUR_NONE; s++) {
        const double f = draw->factors[s];
        double to = transform->stages[s] == LK_COLOUR_CONTRAST
                        ? mean_grey(sample, pixels, channels)
                        : 0;
        for (size_t i = 0; i < pixels; i++) {
            uint8_t *p = sample + i * (size_t)channels;
            if (transform->stages[s] == LK_COLOUR_SATURATION)
                to = grey(p, channels);
            const double part = transform->stages[s] == LK_COLOUR_BRIGHTNESS ? 0 : (1 - f) * to;
            for (int c = 0; c < channels; c++)
                p[c] = (uint8_t)lrint(fmin(fmax(f * p[c] + part, 0), 255));
        }
    }
}

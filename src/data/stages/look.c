/* What a device does to the colours of samples, done on the host to be looked at. */
#include "data/stages/look.h"

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

static void mirror(const struct lk_look_draw *draw, int height, int width, int channels,
                   uint8_t *sample)
{
    const size_t row = (size_t)width * (size_t)channels;
    const int which = (int)draw->mirror;
    for (int y = 0; (which & LK_MIRROR_COLUMNS) && y < height / 2; y++)
        swap_pixels(sample + (size_t)y * row, sample + (size_t)(height - 1 - y) * row,
                    (int)row);
    for (int y = 0; (which & LK_MIRROR_ROWS) && y < height; y++)
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

void lk_look_apply(const struct lk_look *look, const struct lk_look_draw *draw, int height,
                   int width, uint8_t *sample)
{
    const size_t pixels = (size_t)height * (size_t)width;
    const int channels = look->channels;
    if (look->mirrors)
        mirror(draw, height, width, channels, sample);
    for (int s = 0; s < LK_LOOK_STAGES && look->stages[s] != LK_LOOK_NONE; s++) {
        const double f = draw->factors[s];
        double to =
            look->stages[s] == LK_LOOK_CONTRAST ? mean_grey(sample, pixels, channels) : 0;
        for (size_t i = 0; i < pixels; i++) {
            uint8_t *p = sample + i * (size_t)channels;
            if (look->stages[s] == LK_LOOK_SATURATION)
                to = grey(p, channels);
            const double part = look->stages[s] == LK_LOOK_BRIGHTNESS ? 0 : (1 - f) * to;
            for (int c = 0; c < channels; c++)
                p[c] = (uint8_t)lrint(fmin(fmax(f * p[c] + part, 0), 255));
        }
    }
}

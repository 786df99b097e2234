/* Rotation and crops of samples, on the host. */
#include "data/stages/augment.h"

#include "base/fail.h"
#include "base/random.h"

#include <math.h>
#include <string.h>

/* Positions between pixels are in units of 1/2^16; weights of pixels in units of 1/2^8. */
enum { ONE = 1 << 16, PART_BITS = 8, PARTS = 1 << PART_BITS };

static const double pi = 3.14159265358979323846;

enum lk_status lk_augment_check(const struct lk_augment *a)
{
    if (a->height > a->from_height || a->width > a->from_width)
        return lk_fail(LK_E_ARGUMENT, "%dx%d cannot be cropped from samples of %dx%d",
                       a->height, a->width, a->from_height, a->from_width);
    return LK_OK;
}

bool lk_augment_is_any(const struct lk_augment *a)
{
    return a->height != a->from_height || a->width != a->from_width || a->rotate > 0 ||
           a->padding > 0;
}

/* Where a pixel of the new sample comes from: turn(x + left, y + top). */
struct move {
    int left, top;
    int64_t cosine, sine; /* of the rotation, in units of 1/ONE; sine 0: there is none */
};

static int clamp(int64_t x, int most)
{
    return x < 0 ? 0 : x > most ? most : (int)x;
}

/* A random whole number from 0 to `most`, from 32 random bits. */
static int choose(uint32_t bits, int64_t most)
{
    return (int)((uint64_t)bits * (uint64_t)(most + 1) >> 32);
}

static struct move draw(const struct lk_augment *a, int64_t epoch, int64_t sample)
{
    const int down = a->from_height - a->height, right = a->from_width - a->width;
    struct move move = {.left = right / 2, .top = down / 2, .cosine = ONE};
    const struct lk_random4 r =
        lk_random(a->seed, LK_RANDOM_AUGMENT, (uint32_t)epoch, (uint64_t)sample);
    if (a->crops_by_chance) {
        move.left = choose(r.v[0], right + 2 * a->padding) - a->padding;
        move.top = choose(r.v[1], down + 2 * a->padding) - a->padding;
    }
    const double angle = a->rotate * (2 * lk_random_unit(r.v[3]) - 1) * pi / 180;
    move.cosine = lrint(ONE * cos(angle));
    move.sine = lrint(ONE * sin(angle));
    return move;
}

/* Without a rotation pixels are copied, never mixed. */
static void shift(const struct lk_augment *a, const struct move *move, const uint8_t *from,
                  uint8_t *to)
{
    const size_t channels = (size_t)a->channels;
    for (int y = 0; y < a->height; y++) {
        const int y0 = clamp(y + move->top, a->from_height - 1);
        const uint8_t *row = from + (size_t)y0 * (size_t)a->from_width * channels;
        for (int x = 0; x < a->width; x++, to += channels) {
            const int x0 = clamp(x + move->left, a->from_width - 1);
            memcpy(to, row + (size_t)x0 * channels, channels);
        }
    }
}

/* The value at (x, y), in units of 1/ONE of a pixel: bilinear interpolation of its four
 * neighbours. */
static void mix(const struct lk_augment *a, const uint8_t *from, int64_t x, int64_t y,
                uint8_t *to)
{
    const int64_t column = x >> 16, row = y >> 16; /* rounds down, for negative numbers too */
    const int right = (int)((x & (ONE - 1)) >> (16 - PART_BITS));
    const int down = (int)((y & (ONE - 1)) >> (16 - PART_BITS));
    const int x0 = clamp(column, a->from_width - 1), x1 = clamp(column + 1, a->from_width - 1);
    const int y0 = clamp(row, a->from_height - 1), y1 = clamp(row + 1, a->from_height - 1);
    const uint8_t *upper = from + (size_t)y0 * (size_t)a->from_width * (size_t)a->channels;
    const uint8_t *lower = from + (size_t)y1 * (size_t)a->from_width * (size_t)a->channels;
    for (int c = 0; c < a->channels; c++) {
        const int left_of = x0 * a->channels + c, right_of = x1 * a->channels + c;
        const int above = upper[left_of] * (PARTS - right) + upper[right_of] * right;
        const int below = lower[left_of] * (PARTS - right) + lower[right_of] * right;
        to[c] = (uint8_t)((above * (PARTS - down) + below * down + PARTS * PARTS / 2) >>
                          (2 * PART_BITS));
    }
}

/* Rotates about the middle of the old sample. Distances are doubled to stay whole, since the
 * middle may lie between two pixels. */
static void turn(const struct lk_augment *a, const struct move *move, const uint8_t *from,
                 uint8_t *to)
{
    for (int y = 0; y < a->height; y++)
        for (int x = 0; x < a->width; x++, to += a->channels) {
            const int64_t dx = 2 * ((int64_t)x + move->left) - (a->from_width - 1);
            const int64_t dy = 2 * ((int64_t)y + move->top) - (a->from_height - 1);
            mix(a, from,
                (move->cosine * dx - move->sine * dy + (int64_t)ONE * (a->from_width - 1)) / 2,
                (move->sine * dx + move->cosine * dy + (int64_t)ONE * (a->from_height - 1)) / 2,
                to);
        }
}

void lk_augment_apply(const struct lk_augment *a, int64_t epoch, int64_t sample,
                      const uint8_t *from, uint8_t *to)
{
    const struct move move = draw(a, epoch, sample);
    (move.sine == 0 ? shift : turn)(a, &move, from, to);
}

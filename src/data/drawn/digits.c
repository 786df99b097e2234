/* synthetic:digits: 28 x 28 grey digits. */
#include "base/fail.h"
#include "data/drawn/draw.h"

#include <string.h>

enum {
    SIDE = 28,
    UNIT = 64, /* lengths are in 1/64 of a pixel */
    SHAPES = 2,
    STEP = 5,
    NUMBERS = 256, /* blocks of four random numbers a sample may use */
};

struct point {
    int x, y;
};

/* Two strings a digit. Two letters a point, x then y (downwards), from 'a' for -50 in steps of
 * STEP; a blank lifts the pen. */
static const char *const shapes[10][SHAPES] = {
    {"kaobqgqkqootkugteoekeggbka", "mapdpqmuiufqgeianb"},
    {"helalu", "gelalu gupu"},
    {"efgbkaobqfojeuqu", "fdjaocogipfthqksqt"},
    {"fckaocpgnjjkolqpotkufs", "fapakiokqoosjufs"},
    {"nunaeoqo", "gaflpl obnu"},
    {"pagafikhojqnoskufs", "gagimipmorkuft gaqb"},
    {"oaieflfqitluospoolkjgmfq", "kaggfngslupromkmgp"},
    {"eaqalkiu", "faqallju hkpk"},
    {"kkgifehbkanbpeoikkomqqotkugteqgmkk", "ockagchhnmprkugrimnhoc"},
    {"gumqpjpembjagcfggjkloipe", "pdkagdgilkogpcou"},
};

static int clamp(int x, int least, int most)
{
    return x < least ? least : x > most ? most : x;
}

static int64_t squared_distance(struct point p, struct point a, struct point b)
{
    const int64_t dx = b.x - a.x, dy = b.y - a.y, px = p.x - a.x, py = p.y - a.y;
    const int64_t along = px * dx + py * dy, length = dx * dx + dy * dy;
    if (along <= 0)
        return px * px + py * py;
    if (along >= length)
        return (px - dx) * (px - dx) + (py - dy) * (py - dy);
    const int64_t across = px * dy - py * dx;
    return across * across / length;
}

/* Draws a line: full ink within `radius`, fading out over one more pixel. */
static void draw_line(uint8_t *image, struct point a, struct point b, int radius, int ink)
{
    const int reach = radius + UNIT;
    const int64_t outer = (int64_t)reach * reach, inner = (int64_t)radius * radius;
    const int left = clamp(((a.x < b.x ? a.x : b.x) - reach) / UNIT, 0, SIDE);
    const int right = clamp(((a.x < b.x ? b.x : a.x) + reach) / UNIT + 1, 0, SIDE);
    const int top = clamp(((a.y < b.y ? a.y : b.y) - reach) / UNIT, 0, SIDE);
    const int bottom = clamp(((a.y < b.y ? b.y : a.y) + reach) / UNIT + 1, 0, SIDE);
    for (int y = top; y < bottom; y++)
        for (int x = left; x < right; x++) {
            const struct point centre = {x * UNIT + UNIT / 2, y * UNIT + UNIT / 2};
            const int64_t fade = outer - squared_distance(centre, a, b);
            if (fade <= 0)
                continue;
            const int full = fade >= outer - inner;
            const int value = full ? ink : (int)(ink * fade / (outer - inner));
            uint8_t *pixel = image + y * SIDE + x;
            *pixel = (uint8_t)(value > *pixel ? value : *pixel);
        }
}

static void draw_digit(struct lk_draw *d, uint8_t *image, int label)
{
    const char *shape = shapes[label][lk_draw_between(d, 0, SHAPES - 1)];
    /* in 256ths of a length for one step of the box: 13 to 22 pixels high, stretched,
     * slanted */
    const int high = lk_draw_between(d, 2100, 3600),
              wide = high * lk_draw_between(d, 70, 130) / 100;
    const int slant = high * lk_draw_between(d, -35, 35) / 100,
              tilt = wide * lk_draw_between(d, -20, 20) / 100;
    const int middle_x = SIDE * UNIT / 2 + lk_draw_between(d, -3 * UNIT, 3 * UNIT);
    const int middle_y = SIDE * UNIT / 2 + lk_draw_between(d, -3 * UNIT, 3 * UNIT);
    const int radius = lk_draw_between(d, 30, 100), ink = lk_draw_between(d, 110, 255);
    struct point last = {0, 0};
    bool down = false;
    for (const char *p = shape; *p; p++) {
        if (*p == ' ') {
            down = false;
            continue;
        }
        const int x = STEP * (p[0] - 'k') + lk_draw_between(d, -STEP, STEP);
        const int y = STEP * (p[1] - 'k') + lk_draw_between(d, -STEP, STEP);
        p++;
        const struct point here = {middle_x + (x * wide - y * slant) / 256,
                                   middle_y + (y * high + x * tilt) / 256};
        if (down)
            draw_line(image, last, here, radius, ink);
        last = here;
        down = true;
    }
}

static void draw_scratches(struct lk_draw *d, uint8_t *image)
{
    for (int left = lk_draw_between(d, 0, 2); left > 0; left--) {
        const int x = lk_draw_between(d, 0, SIDE * UNIT),
                  y = lk_draw_between(d, 0, SIDE * UNIT);
        const int dx = lk_draw_between(d, -6 * UNIT, 6 * UNIT),
                  dy = lk_draw_between(d, -6 * UNIT, 6 * UNIT);
        const int radius = lk_draw_between(d, 10, 50), ink = lk_draw_between(d, 60, 160);
        draw_line(image, (struct point){x, y}, (struct point){x + dx, y + dy}, radius, ink);
    }
}

static void add_noise(struct lk_draw *d, uint8_t *image)
{
    const int most = lk_draw_between(d, 0, 90);
    for (int i = 0; i < SIDE * SIDE; i += 4) {
        const uint32_t bits = lk_draw_bits(d);
        for (int k = 0; k < 4; k++) {
            const int noise = (int)(bits >> 8 * k & 255) * most / 255;
            image[i + k] = (uint8_t)clamp(image[i + k] + noise, 0, 255);
        }
    }
}

static void draw_sample(const struct lk_drawn *drawn, int64_t index, void *const to[])
{
    struct lk_draw d = {.seed = (uint64_t)drawn->options.seed,
                        .block = (uint64_t)index * NUMBERS,
                        .stream = (uint32_t)drawn->part};
    const int digit = lk_draw_between(&d, 0, 9);
    uint8_t *sample = to[LK_FIELD_IMAGE];
    if (to[LK_FIELD_CLASS])
        *(int32_t *)to[LK_FIELD_CLASS] = digit;
    if (!sample)
        return;
    memset(sample, 0, (size_t)SIDE * SIDE);
    draw_digit(&d, sample, digit);
    draw_scratches(&d, sample);
    add_noise(&d, sample);
}

static void describe(struct lk_drawn *drawn, struct lk_data_info *info)
{
    static const char *const names[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
    (void)drawn;
    info->height = info->width = SIDE;
    info->channels = 1;
    info->classes = LK_COUNT(names);
    info->class_names = names;
}

static const struct lk_option options[] = {LK_DRAWN_OPTIONS, {0}};

const struct lk_drawn_set lk_drawn_digits = {
    .name = "digits", .options = options, .describe = describe, .draw = draw_sample};

/* synthetic:digits: 28 x 28 grey digits, drawn when they are read, so that tests, lessons and
 * `selftest` need no file. Whole numbers only: every machine draws the same bytes. */
#include "base/fail.h"
#include "base/option.h"
#include "base/random.h"
#include "data/sources/source.h"

#include <stdio.h>
#include <stdlib.h>
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

struct digits {
    uint64_t seed;
    uint32_t part;
};

/* The random numbers of one sample, in the order they are asked for. */
struct draw {
    const struct digits *digits;
    uint64_t block;
    struct lk_random4 numbers;
    int used;
};

static uint32_t next_bits(struct draw *d)
{
    if (d->used == 4) {
        d->numbers = lk_random(d->digits->seed, LK_RANDOM_DATA, d->digits->part, d->block++);
        d->used = 0;
    }
    return d->numbers.v[d->used++];
}

static int between(struct draw *d, int least, int most)
{
    const uint64_t choices = (uint64_t)(most - least + 1);
    return least + (int)(next_bits(d) * choices >> 32);
}

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

static void draw_digit(struct draw *d, uint8_t *image, int label)
{
    const char *shape = shapes[label][between(d, 0, SHAPES - 1)];
    /* in 256ths of a length for one step of the box: 13 to 22 pixels high, stretched,
     * slanted */
    const int high = between(d, 2100, 3600), wide = high * between(d, 70, 130) / 100;
    const int slant = high * between(d, -35, 35) / 100, tilt = wide * between(d, -20, 20) / 100;
    const int middle_x = SIDE * UNIT / 2 + between(d, -3 * UNIT, 3 * UNIT);
    const int middle_y = SIDE * UNIT / 2 + between(d, -3 * UNIT, 3 * UNIT);
    const int radius = between(d, 30, 100), ink = between(d, 110, 255);
    struct point last = {0, 0};
    bool down = false;
    for (const char *p = shape; *p; p++) {
        if (*p == ' ') {
            down = false;
            continue;
        }
        const int x = STEP * (p[0] - 'k') + between(d, -STEP, STEP);
        const int y = STEP * (p[1] - 'k') + between(d, -STEP, STEP);
        p++;
        const struct point here = {middle_x + (x * wide - y * slant) / 256,
                                   middle_y + (y * high + x * tilt) / 256};
        if (down)
            draw_line(image, last, here, radius, ink);
        last = here;
        down = true;
    }
}

static void draw_scratches(struct draw *d, uint8_t *image)
{
    for (int left = between(d, 0, 2); left > 0; left--) {
        const int x = between(d, 0, SIDE * UNIT), y = between(d, 0, SIDE * UNIT);
        const int dx = between(d, -6 * UNIT, 6 * UNIT), dy = between(d, -6 * UNIT, 6 * UNIT);
        const int radius = between(d, 10, 50), ink = between(d, 60, 160);
        draw_line(image, (struct point){x, y}, (struct point){x + dx, y + dy}, radius, ink);
    }
}

static void add_noise(struct draw *d, uint8_t *image)
{
    const int most = between(d, 0, 90);
    for (int i = 0; i < SIDE * SIDE; i += 4) {
        const uint32_t bits = next_bits(d);
        for (int k = 0; k < 4; k++) {
            const int noise = (int)(bits >> 8 * k & 255) * most / 255;
            image[i + k] = (uint8_t)clamp(image[i + k] + noise, 0, 255);
        }
    }
}

static enum lk_status digits_read(const void *state, int64_t index, void *const to[])
{
    struct draw d = {.digits = state, .block = (uint64_t)index * NUMBERS, .used = 4};
    const int digit = between(&d, 0, 9);
    uint8_t *sample = to[LK_FIELD_IMAGE];
    if (to[LK_FIELD_CLASS])
        *(int32_t *)to[LK_FIELD_CLASS] = digit;
    if (!sample)
        return LK_OK;
    memset(sample, 0, (size_t)SIDE * SIDE);
    draw_digit(&d, sample, digit);
    draw_scratches(&d, sample);
    add_noise(&d, sample);
    return LK_OK;
}

struct settings {
    int64_t count, seed;
};

static const struct lk_option table[] = {
    {.name = "count",
     .kind = LK_OPTION_INT,
     .offset = offsetof(struct settings, count),
     .count = 1,
     .min = 1,
     .max = 1e9,
     .standard = "12000",
     .help = "training samples; the test part has a sixth of them"},
    {.name = "seed",
     .kind = LK_OPTION_INT,
     .offset = offsetof(struct settings, seed),
     .count = 1,
     .standard = "1",
     .help = "which digits are drawn"},
    {0},
};

/* Reads "digits,count=3,seed=4": what follows the name; commas have become blanks. */
static enum lk_status parse(const char *text, struct settings *settings)
{
    char rest[256];
    const size_t length = strcspn(text, ",");
    if (length != 6 || strncmp(text, "digits", 6) != 0)
        return lk_fail(LK_E_ARGUMENT, "unknown data 'synthetic:%s'; known is synthetic:digits",
                       text);
    if ((size_t)snprintf(rest, sizeof rest, "%s", text + length) >= sizeof rest)
        return lk_fail(LK_E_ARGUMENT, "'synthetic:%.40s...' is too long", text);
    for (char *c = rest; *c; c++)
        *c = *c == ',' ? ' ' : *c;
    const enum lk_status status = lk_options_parse(table, settings, rest);
    return status == LK_OK ? LK_OK : lk_fail_within(status, "synthetic:%s", text);
}

static enum lk_status digits_open(struct lk_data_request *request, struct lk_data_info *info,
                                  void **state)
{
    const enum lk_data_part part =
        request->part == LK_DATA_TRAIN ? LK_DATA_TRAIN : LK_DATA_TEST;
    static const char *const names[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
    struct settings settings;
    LK_TRY(parse(request->text, &settings));
    struct digits *digits = malloc(sizeof *digits);
    if (!digits)
        return lk_fail_memory("a data set", sizeof *digits);
    *digits = (struct digits){(uint64_t)settings.seed, (uint32_t)part};
    *info = (struct lk_data_info){.name = "digits",
                                  .count = part == LK_DATA_TRAIN ? settings.count
                                                                 : (settings.count + 5) / 6,
                                  .classes = 10,
                                  .height = SIDE,
                                  .width = SIDE,
                                  .channels = 1,
                                  .class_names = names,
                                  .part = part};
    *state = digits;
    return LK_OK;
}

const struct lk_source lk_source_synthetic = {.kind = "synthetic",
                                              .usage = "synthetic:digits[,count=N][,seed=N]",
                                              .open = digits_open,
                                              .close = free,
                                              .read = digits_read};

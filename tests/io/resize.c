/* Scaled images are Pillow's, to the bit: the table is printed by resize.py. */
#include "io/image/image.h"

#include "scratch.h"
#include <zlib.h>

struct scaling {
    int height, width, channels;
    struct lk_image_box box;
    int to_height, to_width;
    uint32_t sum; /* CRC-32 of the pixels */
};

static const struct scaling scalings[] = {
    {1, 1, 1, {0, 0, 1, 1}, 5, 7, 0xc3a3c822},
    {2, 3, 1, {0, 0, 3, 2}, 1, 1, 0xcb6ed9fc},
    {9, 13, 1, {0, 0, 13, 9}, 4, 6, 0xaa32644b},
    {9, 13, 3, {0, 0, 13, 9}, 4, 6, 0xf2639328},
    {9, 13, 4, {0, 0, 13, 9}, 20, 31, 0x025d2661},
    {150, 150, 3, {0, 0, 150, 150}, 96, 96, 0x727d66ba},
    {150, 150, 3, {0, 0, 150, 150}, 150, 96, 0xb0431b43},
    {150, 150, 3, {0, 0, 150, 150}, 96, 150, 0x40cf5325},
    {496, 512, 1, {0, 0, 512, 496}, 224, 224, 0xdb45bbc3},
    {496, 768, 1, {0, 0, 768, 496}, 64, 64, 0x7eea12e4},
    {375, 500, 3, {0, 0, 500, 375}, 224, 224, 0x43834909},
    {33, 65, 3, {0, 0, 65, 33}, 128, 129, 0xa9b894f9},
    {64, 64, 3, {8, 4, 40, 36}, 32, 32, 0x41fa7c83},
    {64, 64, 3, {0.5, 3.25, 60.75, 63}, 24, 17, 0x1576eca8},
    {64, 64, 1, {10, 10, 11, 11}, 8, 8, 0x1df77c22},
    {300, 7, 3, {0, 0, 7, 300}, 3, 70, 0xdc274336},
    {1000, 1000, 1, {0, 0, 1000, 1000}, 3, 2, 0x3466d988},
};

/* The image of resize.py. */
static struct lk_image noise(int height, int width, int channels)
{
    const size_t bytes = (size_t)height * (size_t)width * (size_t)channels;
    struct lk_image image = {height, width, channels, malloc(bytes)};
    uint32_t state = 1;
    for (size_t i = 0; i < bytes; i++) {
        state = state * 1103515245 + 12345;
        image.pixels[i] = (uint8_t)(state >> 24);
    }
    return image;
}

static void scales_as_pillow_does(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof scalings / sizeof scalings[0]; i++) {
        const struct scaling *s = &scalings[i];
        struct lk_image image = noise(s->height, s->width, s->channels);
        const size_t bytes = (size_t)s->to_height * (size_t)s->to_width * (size_t)s->channels;
        uint8_t *to = malloc(bytes + 1);
        to[bytes] = 77;
        assert_int_equal(lk_image_resize(&image, &s->box, s->to_height, s->to_width, to),
                         LK_OK);
        if (crc32(0, to, (uInt)bytes) != s->sum)
            fail_msg("case %zu: not Pillow's pixels", i);
        assert_int_equal(to[bytes], 77);
        if (s->box.left == 0 && s->box.right == s->width && s->box.bottom == s->height) {
            memset(to, 0, bytes);
            assert_int_equal(lk_image_resize(&image, NULL, s->to_height, s->to_width, to),
                             LK_OK);
            assert_int_equal(crc32(0, to, (uInt)bytes), s->sum);
        }
        free(to);
        lk_image_clear(&image);
    }
}

static void keeps_what_has_the_size(void **state)
{
    (void)state;
    struct lk_image image = noise(13, 17, 3);
    uint8_t to[13 * 17 * 3] = {0};
    assert_int_equal(lk_image_resize(&image, NULL, 13, 17, to), LK_OK);
    assert_memory_equal(to, image.pixels, sizeof to);
    memset(to, 0, sizeof to);
    assert_int_equal(lk_image_resize(&image, &(struct lk_image_box){0, 0, 17, 13}, 13, 17, to),
                     LK_OK);
    assert_memory_equal(to, image.pixels, sizeof to);
    lk_image_clear(&image);
}

static void refuses_boxes_outside(void **state)
{
    (void)state;
    struct lk_image image = noise(8, 8, 1);
    uint8_t to[64];
    static const struct lk_image_box boxes[] = {
        {-1, 0, 8, 8}, {0, 0, 8.5, 8}, {4, 0, 4, 8}, {0, 5, 8, 4}, {0, 0, 8, 1e300}};
    for (int i = 0; i < 5; i++) {
        assert_refused(lk_image_resize(&image, &boxes[i], 4, 4, to), LK_E_ARGUMENT,
                       lk_error_text(), "cannot be made of");
        lk_error_clear();
    }
    assert_refused(lk_image_resize(&image, NULL, 0, 4, to), LK_E_ARGUMENT, lk_error_text(),
                   "4 x 0");
    lk_error_clear();
    lk_image_clear(&image);
}

/* The processor's own code, and code for any: the same pixels. */
static int in_plain_code(void **state)
{
    (void)state;
    return setenv("LOCKSTEP_WIDE", "0", 1);
}

static int in_wide_code(void **state)
{
    (void)state;
    return unsetenv("LOCKSTEP_WIDE");
}

#define IN_BOTH(test)                                                                          \
    {#test " plain", test, in_plain_code, in_wide_code, NULL},                                 \
    {                                                                                          \
#test " wide", test, in_wide_code, NULL, NULL                                          \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_BOTH(scales_as_pillow_does),
        IN_BOTH(keeps_what_has_the_size),
        IN_BOTH(refuses_boxes_outside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

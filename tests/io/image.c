/* PNG images decode to known pixels; broken and oversized ones are refused, not followed. */
#include "io/image.h"

#include "scratch.h"
#include <lockstep/data.h>

/* 3 x 2 RGB: red, green, blue / white, black, (10, 20, 30). Written with Python's zlib. */
static const uint8_t png[] = {
    137, 80,  78,  71,  13,  10,  26,  10,  0, 0,   0,   13,  73,  72,  68,  82, 0,  0,  0,  3,
    0,   0,   0,   2,   8,   2,   0,   0,   0, 18,  22,  241, 77,  0,   0,   0,  21, 73, 68, 65,
    84,  120, 156, 99,  248, 207, 192, 192, 0, 193, 255, 255, 131, 104, 46,  17, 57, 0,  69, 51,
    6,   55,  99,  226, 205, 59,  0,   0,   0, 0,   73,  69,  78,  68,  174, 66, 96, 130};
static const uint8_t pixels[] = {255, 0,   0,   0, 255, 0, 0,  0,  255,
                                 255, 255, 255, 0, 0,   0, 10, 20, 30};

static void decodes_a_png(void **state)
{
    struct lk_image image;
    (void)state;
    assert_int_equal(lk_image_decode(png, sizeof png, 3, "a", &image), LK_OK);
    assert_int_equal(image.width, 3);
    assert_int_equal(image.height, 2);
    assert_memory_equal(image.pixels, pixels, sizeof pixels);
    lk_image_clear(&image);
}

static void converts_channels(void **state)
{
    struct lk_image image;
    (void)state;
    assert_int_equal(lk_image_decode(png, sizeof png, 1, "a", &image), LK_OK);
    assert_int_equal(image.pixels[3], 255);
    assert_int_equal(image.pixels[4], 0);
    assert_in_range(image.pixels[5], 17, 20); /* 0.30 r + 0.59 g + 0.11 b = 18.1 */
    lk_image_clear(&image);
    assert_int_equal(lk_image_decode(png, sizeof png, 4, "a", &image), LK_OK);
    assert_int_equal(image.pixels[3], 255); /* opaque */
    lk_image_clear(&image);
    assert_refused(lk_image_decode(png, sizeof png, 2, "a", &image), LK_E_ARGUMENT,
                   lk_error_text(), "not 2");
    lk_error_clear();
}

/* The copy ends where the allocation ends, so that sanitizers see a read past it. */
static void refuses_what_is_cut_off(void **state)
{
    struct lk_image image;
    (void)state;
    for (size_t bytes = 0; bytes < sizeof png - 16; bytes++) { /* 16: the empty last chunk */
        uint8_t *copy = malloc(bytes ? bytes : 1);
        memcpy(copy, png, bytes);
        assert_refused(lk_image_decode(copy, bytes, 3, "cut.png", &image), LK_E_DATA,
                       lk_error_text(), "cut.png");
        lk_error_clear();
        free(copy);
    }
}

static void refuses_huge_sizes(void **state)
{
    struct lk_image image;
    uint8_t huge[sizeof png];
    (void)state;
    memcpy(huge, png, sizeof png);
    huge[18] = huge[22] = 0x40; /* 16384 + 3 wide, 16384 + 2 high */
    assert_refused(lk_image_decode(huge, sizeof huge, 3, "huge.png", &image), LK_E_DATA,
                   lk_error_text(), "huge.png");
    lk_error_clear();
    huge[18] = huge[22] = 0x3f; /* each side may be, both together may not */
    assert_refused(lk_image_decode(huge, sizeof huge, 3, "huge.png", &image), LK_E_DATA,
                   lk_error_text(), "16131 x 16130");
    lk_error_clear();
}

static void reads_files_of_the_right_size_only(void **state)
{
    uint8_t found[sizeof pixels];
    (void)state;
    scratch_put(scratch_path("a.png"), png, sizeof png);
    assert_int_equal(lk_image_read(scratch_path("a.png"), (int64_t[]){2, 3, 3}, found), LK_OK);
    assert_memory_equal(found, pixels, sizeof pixels);
    assert_refused(lk_image_read(scratch_path("a.png"), (int64_t[]){3, 2, 3}, found),
                   LK_E_SHAPE, lk_error_text(), "expected 2 x 3 pixels, found 3 x 2");
    lk_error_clear();
    assert_refused(lk_image_read(scratch_path("b.png"), (int64_t[]){2, 3, 3}, found), LK_E_IO,
                   lk_error_text(), "b.png");
    lk_error_clear();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decodes_a_png),
        cmocka_unit_test(converts_channels),
        cmocka_unit_test(refuses_what_is_cut_off),
        cmocka_unit_test(refuses_huge_sizes),
        cmocka_unit_test(reads_files_of_the_right_size_only),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}

/* PNG and JPEG images decode to known pixels; broken and oversized ones are refused, not
 * followed. */
#include "io/image/image.h"

#include "scratch.h"
#include <lockstep/data.h>
#include <zlib.h>

/* 3 x 2 RGB: red, green, blue / white, black, (10, 20, 30). Written with Python's zlib. */
static const uint8_t png[] = {
    137, 80,  78,  71,  13,  10,  26,  10,  0, 0,   0,   13,  73,  72,  68,  82, 0,  0,  0,  3,
    0,   0,   0,   2,   8,   2,   0,   0,   0, 18,  22,  241, 77,  0,   0,   0,  21, 73, 68, 65,
    84,  120, 156, 99,  248, 207, 192, 192, 0, 193, 255, 255, 131, 104, 46,  17, 57, 0,  69, 51,
    6,   55,  99,  226, 205, 59,  0,   0,   0, 0,   73,  69,  78,  68,  174, 66, 96, 130};
static const uint8_t pixels[] = {255, 0,   0,   0, 255, 0, 0,  0,  255,
                                 255, 255, 255, 0, 0,   0, 10, 20, 30};

/* 24 x 16 RGB in stripes of 8 columns: (200, 30, 40), (20, 180, 60), (30, 40, 220). Written by
 * Pillow, in colours and in those of printing. */
static const uint8_t jpeg[] = {
    255, 216, 255, 224, 0,  16,  74,  70,  73, 70,  0,   1,   1,   0,   0,   1,   0,   1,   0,
    0,   255, 219, 0,   67, 0,   13,  9,   10, 11,  10,  8,   13,  11,  10,  11,  14,  14,  13,
    15,  19,  32,  21,  19, 18,  18,  19,  39, 28,  30,  23,  32,  46,  41,  49,  48,  46,  41,
    45,  44,  51,  58,  74, 62,  51,  54,  70, 55,  44,  45,  64,  87,  65,  70,  76,  78,  82,
    83,  82,  50,  62,  90, 97,  90,  80,  96, 74,  81,  82,  79,  255, 219, 0,   67,  1,   14,
    14,  14,  19,  17,  19, 38,  21,  21,  38, 79,  53,  45,  53,  79,  79,  79,  79,  79,  79,
    79,  79,  79,  79,  79, 79,  79,  79,  79, 79,  79,  79,  79,  79,  79,  79,  79,  79,  79,
    79,  79,  79,  79,  79, 79,  79,  79,  79, 79,  79,  79,  79,  79,  79,  79,  79,  79,  79,
    79,  79,  79,  79,  79, 79,  255, 192, 0,  17,  8,   0,   16,  0,   24,  3,   1,   17,  0,
    2,   17,  1,   3,   17, 1,   255, 196, 0,  22,  0,   1,   1,   1,   0,   0,   0,   0,   0,
    0,   0,   0,   0,   0,  0,   0,   0,   5,  6,   4,   255, 196, 0,   20,  16,  1,   0,   0,
    0,   0,   0,   0,   0,  0,   0,   0,   0,  0,   0,   0,   0,   0,   255, 196, 0,   24,  1,
    1,   0,   3,   1,   0,  0,   0,   0,   0,  0,   0,   0,   0,   0,   0,   0,   7,   3,   5,
    6,   4,   255, 196, 0,  20,  17,  1,   0,  0,   0,   0,   0,   0,   0,   0,   0,   0,   0,
    0,   0,   0,   0,   0,  255, 218, 0,   12, 3,   1,   0,   2,   17,  3,   17,  0,   63,  0,
    13,  194, 216, 22,  68, 39,  77,  18,  23, 173, 227, 198, 236, 178, 33,  58,  104, 144, 189,
    127, 255, 217};
static const uint8_t jpeg_cmyk[] = {
    255, 216, 255, 238, 0,   14,  65,  100, 111, 98,  101, 0,   100, 0,   0,   0,   0,   0,
    255, 219, 0,   67,  0,   27,  18,  20,  23,  20,  17,  27,  23,  22,  23,  30,  28,  27,
    32,  40,  66,  43,  40,  37,  37,  40,  81,  58,  61,  48,  66,  96,  85,  101, 100, 95,
    85,  93,  91,  106, 120, 153, 129, 106, 113, 144, 115, 91,  93,  133, 181, 134, 144, 158,
    163, 171, 173, 171, 103, 128, 188, 201, 186, 166, 199, 153, 168, 171, 164, 255, 192, 0,
    20,  8,   0,   16,  0,   24,  4,   67,  17,  0,   77,  17,  0,   89,  17,  0,   75,  17,
    0,   255, 196, 0,   24,  0,   1,   0,   3,   1,   0,   0,   0,   0,   0,   0,   0,   0,
    0,   0,   0,   0,   6,   0,   2,   5,   3,   255, 196, 0,   20,  16,  1,   0,   0,   0,
    0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   255, 218, 0,   14,  4,
    67,  0,   77,  0,   89,  0,   75,  0,   0,   63,  0,   213, 97,  49,  73,  130, 139, 29,
    145, 113, 98,  244, 50,  80,  41,  2,   139, 29,  145, 113, 98,  244, 127, 255, 217};

static void expect_stripes(const struct lk_image *image, int near)
{
    static const uint8_t colours[3][3] = {{200, 30, 40}, {20, 180, 60}, {30, 40, 220}};
    for (int y = 0; y < image->height; y++)
        for (int x = 0; x < image->width; x++)
            for (int c = 0; c < 3; c++) {
                const int found = image->pixels[(y * image->width + x) * 3 + c];
                const int want = colours[3 * x / image->width][c];
                if (found < want - near || found > want + near)
                    fail_msg("pixel (%d, %d) channel %d: %d, expected %d", x, y, c, found,
                             want);
            }
}

static void decodes_a_jpeg(void **state)
{
    struct lk_image image;
    (void)state;
    assert_int_equal(lk_image_decode(jpeg, sizeof jpeg, 3, "a", &image), LK_OK);
    assert_int_equal(image.width, 24);
    assert_int_equal(image.height, 16);
    expect_stripes(&image, 5);
    lk_image_clear(&image);
    assert_int_equal(lk_image_decode(jpeg_cmyk, sizeof jpeg_cmyk, 3, "a", &image), LK_OK);
    assert_int_equal(image.width, 24);
    expect_stripes(&image, 20);
    lk_image_clear(&image);
    assert_int_equal(lk_image_decode(jpeg, sizeof jpeg, 1, "a", &image), LK_OK);
    assert_in_range(image.pixels[0], 80, 84); /* 0.299 r + 0.587 g + 0.114 b = 82 */
    lk_image_clear(&image);
}

#ifdef LK_TURBOJPEG
/* Inks without the mark of Adobe's programs are as they have them. */
static void decodes_inks_without_a_mark(void **state)
{
    struct lk_image marked, bare;
    uint8_t copy[sizeof jpeg_cmyk];
    size_t at = 2;
    (void)state;
    while (jpeg_cmyk[at + 1] != 0xee)
        at += 2 + (size_t)(jpeg_cmyk[at + 2] << 8 | jpeg_cmyk[at + 3]);
    const size_t behind = at + 2 + (size_t)(jpeg_cmyk[at + 2] << 8 | jpeg_cmyk[at + 3]);
    memcpy(copy, jpeg_cmyk, at);
    memcpy(copy + at, jpeg_cmyk + behind, sizeof jpeg_cmyk - behind);
    const size_t bytes = sizeof jpeg_cmyk - (behind - at);
    for (int channels = 1; channels <= 4; channels += channels == 1 ? 2 : 1) {
        assert_int_equal(lk_image_decode(jpeg_cmyk, sizeof jpeg_cmyk, channels, "a", &marked),
                         LK_OK);
        assert_int_equal(lk_image_decode(copy, bytes, channels, "a", &bare), LK_OK);
        assert_memory_equal(marked.pixels, bare.pixels,
                            (size_t)(marked.height * marked.width * channels));
        if (channels == 4)
            assert_int_equal(bare.pixels[3], 255);
        lk_image_clear(&marked);
        lk_image_clear(&bare);
    }
}
#endif

/* Smaller where that is less work, never smaller than asked for. */
static void decodes_a_jpeg_to_what_is_needed(void **state)
{
    (void)state;
    static const int leasts[][4] = {{16, 24, 16, 24}, {1, 1, 2, 3},    {8, 12, 8, 12},
                                    {8, 13, 16, 24},  {99, 1, 16, 24}, {3, 1, 4, 6}};
    for (int i = 0; i < 6; i++) {
        struct lk_image image;
        assert_int_equal(lk_image_decode_least(jpeg, sizeof jpeg, 3, leasts[i], "a", &image),
                         LK_OK);
#ifdef LK_TURBOJPEG
        assert_int_equal(image.height, leasts[i][2]);
        assert_int_equal(image.width, leasts[i][3]);
#else
        assert_int_equal(image.height, 16);
        assert_int_equal(image.width, 24);
#endif
        expect_stripes(&image, 8);
        lk_image_clear(&image);
    }
}

static void refuses_other_formats_by_name(void **state)
{
    (void)state;
    struct lk_image image;
    int shape[3];
    static const char gif[] = "GIF89a\1\0\1\0", webp[] = "RIFF\20\0\0\0WEBPVP8 ";
    assert_refused(lk_image_decode(gif, sizeof gif, 3, "a.jpg", &image), LK_E_DATA,
                   lk_error_text(), "'a.jpg': expected a PNG or JPEG image, found GIF");
    lk_error_clear();
    assert_refused(lk_image_measure(webp, sizeof webp, "b.png", shape), LK_E_DATA,
                   lk_error_text(), "found WebP");
    lk_error_clear();
    assert_refused(lk_image_decode("", 0, 3, "c.png", &image), LK_E_DATA, lk_error_text(),
                   "found nothing");
    lk_error_clear();
}

static void measures(void **state)
{
    (void)state;
    int shape[3];
    assert_int_equal(lk_image_measure(png, sizeof png, "a", shape), LK_OK);
    assert_memory_equal(shape, ((int[]){2, 3, 3}), sizeof shape);
    assert_int_equal(lk_image_measure(jpeg, sizeof jpeg, "a", shape), LK_OK);
    assert_memory_equal(shape, ((int[]){16, 24, 3}), sizeof shape);
}

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
    for (size_t bytes = 0; bytes < sizeof png; bytes++) {
        uint8_t *copy = malloc(bytes ? bytes : 1);
        memcpy(copy, png, bytes);
        assert_refused(lk_image_decode(copy, bytes, 3, "cut.png", &image), LK_E_DATA,
                       lk_error_text(), "cut.png");
        lk_error_clear();
        free(copy);
    }
    for (size_t bytes = 0; bytes < sizeof jpeg - 2; bytes++) { /* 2: the mark of the end */
        uint8_t *copy = malloc(bytes ? bytes : 1);
        memcpy(copy, jpeg, bytes);
        assert_refused(lk_image_decode(copy, bytes, 3, "cut.jpg", &image), LK_E_DATA,
                       lk_error_text(), "cut.jpg");
        lk_error_clear();
        free(copy);
    }
}

static void refuses_changed_bytes(void **state)
{
    struct lk_image image;
    uint8_t copy[sizeof png];
    (void)state;
    for (size_t i = 8; i < sizeof png - 12; i++) {
        memcpy(copy, png, sizeof png);
        copy[i] ^= 4;
        assert_refused(lk_image_decode(copy, sizeof copy, 3, "b.png", &image), LK_E_DATA,
                       lk_error_text(), "b.png");
        lk_error_clear();
    }
}

/* A file that begins with no pixels makes stb_image copy to memory that it does not have, which
 * a sanitizer sees; one in which an empty chunk follows others is read. */
static void refuses_an_empty_beginning(void **state)
{
    static const uint8_t empty[] = {0, 0, 0, 0, 'I', 'D', 'A', 'T', 0x35, 0xaf, 0x06, 0x1e};
    enum { HEAD = 8 + 25, END = 12 };
    struct lk_image image;
    uint8_t copy[sizeof png + sizeof empty];
    (void)state;
    memcpy(copy, png, HEAD);
    memcpy(copy + HEAD, empty, sizeof empty);
    memcpy(copy + HEAD + sizeof empty, png + HEAD, sizeof png - HEAD);
    assert_refused(lk_image_decode(copy, sizeof copy, 3, "empty.png", &image), LK_E_DATA,
                   lk_error_text(), "empty.png': broken image: no pixels at byte 33");
    lk_error_clear();
    memcpy(copy, png, sizeof png - END);
    memcpy(copy + sizeof png - END, empty, sizeof empty);
    memcpy(copy + sizeof copy - END, png + sizeof png - END, END);
    assert_int_equal(lk_image_decode(copy, sizeof copy, 3, "whole.png", &image), LK_OK);
    lk_image_clear(&image);
}

static void put_header_sum(uint8_t *copy)
{
    const uint32_t sum = (uint32_t)crc32(0, copy + 12, 17);
    for (int i = 0; i < 4; i++)
        copy[29 + i] = (uint8_t)(sum >> (24 - 8 * i));
}

static void refuses_huge_sizes(void **state)
{
    struct lk_image image;
    uint8_t huge[sizeof png];
    (void)state;
    memcpy(huge, png, sizeof png);
    huge[18] = huge[22] = 0x40; /* 16384 + 3 wide, 16384 + 2 high */
    put_header_sum(huge);
    assert_refused(lk_image_decode(huge, sizeof huge, 3, "huge.png", &image), LK_E_DATA,
                   lk_error_text(),
                   "huge.png': an image of 16387 x 16386 pixels; at most 16384");
    lk_error_clear();
    huge[16] = huge[20] = 0xff; /* beyond what an int holds */
    put_header_sum(huge);
    assert_refused(lk_image_decode(huge, sizeof huge, 3, "huge.png", &image), LK_E_DATA,
                   lk_error_text(), "an image of 4278206467 x 4278206466 pixels");
    lk_error_clear();
    huge[16] = huge[20] = 0;
    huge[18] = huge[22] = 0x3f; /* each side may be, both together may not */
    put_header_sum(huge);
    assert_refused(lk_image_decode(huge, sizeof huge, 3, "huge.png", &image), LK_E_DATA,
                   lk_error_text(), "16131 x 16130");
    lk_error_clear();
}

/* Cut off behind its mark, and an empty one. */
static void refuses_images_without_a_size(void **state)
{
    struct lk_image image;
    uint8_t empty[sizeof png];
    (void)state;
    assert_refused(lk_image_decode(jpeg, 20, 3, "cut.jpg", &image), LK_E_DATA, lk_error_text(),
                   "'cut.jpg': broken image: ");
    lk_error_clear();
    memcpy(empty, png, sizeof png);
    empty[19] = 0;
    put_header_sum(empty);
    assert_refused(lk_image_decode(empty, sizeof empty, 3, "empty.png", &image), LK_E_DATA,
                   lk_error_text(), "'empty.png': broken image: no size is in it");
    lk_error_clear();
    memcpy(empty + 12, "tEXt", 4);
    put_header_sum(empty);
    assert_refused(lk_image_decode(empty, sizeof empty, 3, "headless.png", &image), LK_E_DATA,
                   lk_error_text(), "'headless.png': broken image: no header");
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
        cmocka_unit_test(decodes_a_jpeg),
#ifdef LK_TURBOJPEG
        cmocka_unit_test(decodes_inks_without_a_mark),
#endif
        cmocka_unit_test(decodes_a_jpeg_to_what_is_needed),
        cmocka_unit_test(refuses_other_formats_by_name),
        cmocka_unit_test(measures),
        cmocka_unit_test(converts_channels),
        cmocka_unit_test(refuses_what_is_cut_off),
        cmocka_unit_test(refuses_changed_bytes),
        cmocka_unit_test(refuses_an_empty_beginning),
        cmocka_unit_test(refuses_huge_sizes),
        cmocka_unit_test(refuses_images_without_a_size),
        cmocka_unit_test(reads_files_of_the_right_size_only),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}

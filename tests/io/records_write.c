/* Records and PNG files as they are written: byte for byte what other writers write, and read
 * back. */
#include "io/crc32c.h"
#include "io/image/png_write.h"
#include "io/records/example_write.h"
#include "io/records/tfrecord.h"
#include "io/records/tfrecord_write.h"

#include "scratch.h"
#include "skip.h"
#include <lockstep/status.h>

static struct lk_example_bytes text(const char *bytes)
{
    return (struct lk_example_bytes){(const uint8_t *)bytes, strlen(bytes)};
}

/* What tf.train.Example gives for the keys a = [b"xyz"], b = [300], c = [-1]. */
static void writes_as_protobuf_does(void **state)
{
    (void)state;
    static const char wanted[] =
        "\x0a\x30\x0a\x0c\x0a\x01\x61\x12\x07\x0a\x05\x0a\x03xyz\x0a\x0b\x0a\x01\x62\x12\x06"
        "\x1a\x04\x0a\x02\xac\x02\x0a\x13\x0a\x01\x63\x12\x0e\x1a\x0c\x0a\x0a\xff\xff\xff\xff"
        "\xff\xff\xff\xff\xff\x01";
    const struct lk_example_feature features[] = {
        {.key = "a", .kind = LK_EXAMPLE_BYTES, .bytes = text("xyz")},
        {.key = "b", .kind = LK_EXAMPLE_INTS, .number = 300},
        {.key = "c", .kind = LK_EXAMPLE_INTS, .number = -1},
    };
    uint8_t *record = NULL;
    size_t bytes = 0;
    assert_int_equal(lk_example_write(features, 3, &record, &bytes), LK_OK);
    assert_int_equal(bytes, sizeof wanted - 1);
    assert_memory_equal(record, wanted, bytes);
    free(record);
}

/* Around the sizes where a length takes a byte more, empty ones too. */
static void reads_what_it_writes(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 100, 110, 127, 128, 16383, 16384, 3000000};
    uint8_t *data = malloc(3000000);
    for (size_t i = 0; i < 3000000; i++)
        data[i] = (uint8_t)(i * 7);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct lk_example_feature features[] = {
            {.key = "data", .kind = LK_EXAMPLE_BYTES, .bytes = {data, sizes[i]}},
            {.key = "size", .kind = LK_EXAMPLE_INTS, .number = (int64_t)sizes[i] - 100}};
        uint8_t *record = NULL;
        struct lk_example_list list;
        struct lk_example_bytes found;
        size_t bytes = 0;
        int64_t number = 0;
        assert_int_equal(lk_example_write(features, 2, &record, &bytes), LK_OK);
        const struct lk_example_bytes whole = {record, bytes};
        assert_int_equal(lk_example_find(whole, "data", &list), LK_OK);
        assert_true(lk_example_bytes_at(&list, 0, &found));
        assert_int_equal(found.bytes, sizes[i]);
        assert_memory_equal(found.data, data, sizes[i]);
        assert_int_equal(lk_example_find(whole, "size", &list), LK_OK);
        assert_true(lk_example_int_at(&list, 0, &number));
        assert_int_equal(number, (int64_t)sizes[i] - 100);
        free(record);
    }
    struct lk_example_feature large = {
        .key = "x", .kind = LK_EXAMPLE_BYTES, .bytes = {data, (size_t)1 << 31}};
    uint8_t *record = NULL;
    size_t bytes = 0;
    assert_refused(lk_example_write(&large, 1, &record, &bytes), LK_E_ARGUMENT, lk_error_text(),
                   "too large");
    lk_error_clear();
    free(data);
}

static void writes_records(void **state)
{
    (void)state;
    static const char *const bodies[] = {"", "a", "one more record"};
    const char *path = scratch_path("w.tfrecord");
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    for (int i = 0; i < 3; i++) {
        struct lk_tfrecord_frame seal;
        lk_tfrecord_frame(bodies[i], strlen(bodies[i]), &seal);
        assert_int_equal(lk_tfrecord_write(file, path, bodies[i], strlen(bodies[i]), &seal),
                         LK_OK);
    }
    assert_int_equal(fclose(file), 0);
    struct lk_tfrecord *opened = NULL;
    assert_int_equal(lk_tfrecord_open(path, 0, &opened), LK_OK);
    assert_int_equal(lk_tfrecord_count(opened), 3);
    assert_int_equal(lk_tfrecord_tail(opened), 0);
    for (int i = 0; i < 3; i++) {
        void *data = NULL;
        size_t bytes = 0;
        assert_int_equal(lk_tfrecord_read(opened, i, &data, &bytes), LK_OK);
        assert_int_equal(bytes, strlen(bodies[i]));
        assert_memory_equal(data, bodies[i], bytes);
        free(data);
    }
    lk_tfrecord_close(opened);
}

/* A device that is always full. */
static void says_that_the_disk_is_full(void **state)
{
    (void)state;
    static char body[100000];
    FILE *file = fopen("/dev/full", "wb");
    struct lk_tfrecord_frame seal;
    if (!file)
        SKIP_TEST("no device that is always full");
    lk_tfrecord_frame(body, sizeof body, &seal);
    assert_refused(lk_tfrecord_write(file, "full", body, sizeof body, &seal), LK_E_IO,
                   lk_error_text(), "cannot write 'full': No space left");
    lk_error_clear();
    fclose(file);
}

/* Smooth, noisy and constant pixels of all kinds, narrow and wide. */
static void writes_images_without_loss(void **state)
{
    (void)state;
    static const int sizes[][2] = {{1, 1}, {1, 300}, {300, 1}, {17, 23}, {150, 150}};
    static const int channels[] = {1, 3, 4};
    static uint8_t pixels[150 * 150 * 4];
    uint32_t noise = 1;
    for (int trial = 0; trial < 5 * 3 * 3; trial++) {
        const int *size = sizes[trial % 5], c = channels[trial / 5 % 3];
        const size_t bytes = (size_t)size[0] * (size_t)size[1] * (size_t)c;
        for (size_t i = 0; i < bytes; i++) {
            noise = noise * 1664525 + 1013904223;
            pixels[i] = (uint8_t)(trial / 15 == 0   ? noise >> 24
                                  : trial / 15 == 1 ? i / 5 + (noise >> 30)
                                                    : 77);
        }
        const struct lk_image image = {size[0], size[1], c, pixels};
        struct lk_image found;
        int shape[3];
        void *file = NULL;
        size_t file_bytes = 0;
        assert_int_equal(lk_png_write(&image, &file, &file_bytes), LK_OK);
        assert_int_equal(lk_image_measure(file, file_bytes, "written", shape), LK_OK);
        assert_int_equal(shape[2], c);
        assert_int_equal(lk_image_decode(file, file_bytes, c, "written", &found), LK_OK);
        assert_int_equal(found.height, size[0]);
        assert_int_equal(found.width, size[1]);
        assert_memory_equal(found.pixels, pixels, bytes);
        if (trial / 15 == 2)
            assert_true(file_bytes < 80 + bytes / 50);
        lk_image_clear(&found);
        free(file);
    }
}

static void refuses_other_images(void **state)
{
    (void)state;
    uint8_t pixels[4] = {0};
    void *file = NULL;
    size_t bytes = 0;
    static const struct lk_image images[] = {
        {1, 1, 2, NULL}, {0, 1, 1, NULL}, {1, 1 << 20, 1, NULL}};
    for (int i = 0; i < 3; i++) {
        struct lk_image image = images[i];
        image.pixels = pixels;
        assert_refused(lk_png_write(&image, &file, &bytes), LK_E_ARGUMENT, lk_error_text(),
                       "no PNG");
        lk_error_clear();
    }
    assert_null(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_as_protobuf_does),
        cmocka_unit_test(reads_what_it_writes),
        cmocka_unit_test(writes_records),
        cmocka_unit_test(says_that_the_disk_is_full),
        cmocka_unit_test(writes_images_without_loss),
        cmocka_unit_test(refuses_other_images),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}

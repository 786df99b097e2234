/* Parts of images before they are scaled: which pixels, where by chance, and where not. */
#include "data/images/decode.h"

#include "png.h"
#include <lockstep/data.h>

enum { H = 20, W = 30 };

/* Each pixel tells where it is. */
static void put_image(const char *name)
{
    static uint8_t pixels[H][W][3];
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++)
            memcpy(pixels[y][x], (uint8_t[]){(uint8_t)(10 * y), (uint8_t)(8 * x), 7}, 3);
    png_put(name, 1, 1, pixels[0][0]); /* with the folders above it */
    assert_int_equal(lk_image_write(scratch_path(name), (int64_t[]){H, W, 3}, &pixels[0][0][0]),
                     LK_OK);
}

static void expect_window(const uint8_t *sample, int top, int left, int height, int width)
{
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++, sample += 3) {
            assert_int_equal(sample[0], 10 * (top + y));
            assert_int_equal(sample[1], 8 * (left + x));
            assert_int_equal(sample[2], 7);
        }
}

static struct lk_data *open_wanting(struct lk_data_options wanted)
{
    char spec[600];
    struct lk_data *data = NULL;
    snprintf(spec, sizeof spec, "folder:%s", scratch_path("set"));
    if (lk_data_open_as(spec, LK_DATA_TRAIN, &wanted, &data) != LK_OK)
        fail_msg("%s", lk_error_text());
    return data;
}

static void takes_the_middle(void **state)
{
    (void)state;
    static uint8_t sample[H * W * 3];
    static const int sizes[][4] = {/* height, width: of the part, and where it lies */
                                   {8, 10, 6, 10},
                                   {20, 30, 0, 0},
                                   {1, 1, 9, 14}};
    const int64_t first = 0;
    int32_t label;
    for (int i = 0; i < 3; i++) {
        const int *s = sizes[i];
        struct lk_data *data = open_wanting((struct lk_data_options){.height = s[0],
                                                                     .width = s[1],
                                                                     .channels = 3,
                                                                     .part_height = s[0],
                                                                     .part_width = s[1]});
        assert_int_equal(lk_data_read(data, &first, 1, sample, &label), LK_OK);
        expect_window(sample, s[2], s[3], s[0], s[1]);
        lk_data_close(data);
    }
    /* There is less than is wanted: all of its height, and the middle of its width. */
    struct lk_data *data = open_wanting((struct lk_data_options){
        .height = H, .width = 6, .channels = 3, .part_height = 999, .part_width = 6});
    assert_int_equal(lk_data_read(data, &first, 1, sample, &label), LK_OK);
    expect_window(sample, 0, 12, H, 6);
    lk_data_close(data);
}

/* Batches may want another part than the data set was opened with. */
static void takes_the_middle_of_batches(void **state)
{
    (void)state;
    static uint8_t sample[8 * 10 * 3];
    static const struct lk_data_options wanted[] = {
        {.height = 8, .width = 10, .channels = 3, .cache = "memory"},
        {.height = 8, .width = 10, .channels = 3, .part_height = 8, .part_width = 10}};
    const struct lk_batches_options options = {.size = 1,
                                               .pipeline = "center_crop 8x10 | resize 8x10"};
    for (int i = 0; i < 2; i++) {
        struct lk_data *data = open_wanting(wanted[i]);
        struct lk_batches *batches;
        int32_t label;
        assert_int_equal(lk_batches_create(data, &options, &batches), LK_OK);
        assert_int_equal(lk_batches_read(batches, 0, 0, 1, sample, &label), LK_OK);
        expect_window(sample, 6, 10, 8, 10);
        lk_batches_destroy(batches);
        lk_data_close(data);
    }
}

/* Every place in turn, the same one for the same (seed, epoch, sample). */
static void takes_crops_by_chance(void **state)
{
    (void)state;
    enum { CROP_H = 17, CROP_W = 26, EPOCHS = 400 };
    static uint8_t sample[CROP_H * CROP_W * 3], again[sizeof sample];
    static int often[H - CROP_H + 1][W - CROP_W + 1];
    const struct lk_batches_options options = {
        .size = 1, .seed = 3, .pipeline = "crop 17x26 | resize 17x26"};
    struct lk_data *data = open_wanting(
        (struct lk_data_options){.height = CROP_H, .width = CROP_W, .channels = 3});
    struct lk_batches *batches[2];
    int32_t label;
    for (int i = 0; i < 2; i++)
        assert_int_equal(lk_batches_create(data, &options, &batches[i]), LK_OK);
    for (int64_t epoch = 0; epoch < EPOCHS; epoch++) {
        assert_int_equal(lk_batches_read(batches[0], epoch, 0, 1, sample, &label), LK_OK);
        assert_int_equal(lk_batches_read(batches[1], epoch, 0, 1, again, &label), LK_OK);
        assert_memory_equal(sample, again, sizeof sample);
        const int top = sample[0] / 10, left = sample[1] / 8;
        expect_window(sample, top, left, CROP_H, CROP_W);
        often[top][left]++;
    }
    for (int i = 0; i < 4 * 5; i++) /* 20 each: below 4 or above 45 but once in 10,000 */
        assert_in_range((&often[0][0])[i], 4, 45);
    for (int i = 0; i < 2; i++)
        lk_batches_destroy(batches[i]);
    lk_data_close(data);
}

static void keeps_no_chance(void **state)
{
    (void)state;
    struct lk_data *data;
    struct lk_batches *batches;
    char spec[600];
    const struct lk_data_options wanted = {.cache = "memory", .parts_by_chance = true};
    const struct lk_batches_options options = {.size = 1, .pipeline = "crop 8x8 | resize"};
    snprintf(spec, sizeof spec, "folder:%s", scratch_path("set"));
    assert_int_equal(lk_data_open_as(spec, LK_DATA_TRAIN, &wanted, &data), LK_E_ARGUMENT);
    assert_non_null(strstr(lk_error_text(), "others each time"));
    lk_error_clear();
    data = open_wanting((struct lk_data_options){.cache = "memory"});
    assert_int_equal(lk_batches_create(data, &options, &batches), LK_E_ARGUMENT);
    assert_non_null(strstr(lk_error_text(), "keeps samples"));
    lk_error_clear();
    lk_data_close(data);
    assert_int_equal(lk_data_open("synthetic:digits,count=9", LK_DATA_TRAIN, &data), LK_OK);
    assert_int_equal(lk_batches_create(data, &options, &batches), LK_E_ARGUMENT);
    assert_non_null(strstr(lk_error_text(), "only image files"));
    lk_error_clear();
    lk_data_close(data);
}

static int prepare(void **state)
{
    if (scratch_make(state) != 0)
        return -1;
    put_image("set/only/1.png");
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_the_middle),
        cmocka_unit_test(takes_the_middle_of_batches),
        cmocka_unit_test(takes_crops_by_chance),
        cmocka_unit_test(keeps_no_chance),
    };
    return cmocka_run_group_tests(tests, prepare, scratch_remove);
}

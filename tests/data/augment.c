/* Crops and turns: pixels come from where they should, and chance repeats. */
#include "data/stages/augment.h"

#include "scratch.h"
#include <lockstep/data.h>
#include <math.h>

enum { H = 9, W = 12 };

static uint8_t from[H * W * 3];

static int prepare(void **state)
{
    (void)state;
    for (int i = 0; i < H * W * 3; i++)
        from[i] = (uint8_t)i;
    return 0;
}

static struct lk_augment make(int height, int width, bool by_chance, int padding)
{
    const struct lk_augment a = {.crops_by_chance = by_chance,
                                 .padding = padding,
                                 .seed = 5,
                                 .from_height = H,
                                 .from_width = W,
                                 .height = height,
                                 .width = width,
                                 .channels = 3};
    assert_int_equal(lk_augment_check(&a), LK_OK);
    return a;
}

/* The pixel of the edge where (x, y) lies outside. */
static const uint8_t *pixel(int x, int y)
{
    x = x < 0 ? 0 : x >= W ? W - 1 : x;
    y = y < 0 ? 0 : y >= H ? H - 1 : y;
    return from + 3 * (y * W + x);
}

static bool is_moved(const struct lk_augment *a, const uint8_t *to, int left, int top)
{
    for (int y = 0; y < a->height; y++)
        for (int x = 0; x < a->width; x++)
            if (memcmp(to + 3 * (y * a->width + x), pixel(x + left, y + top), 3) != 0)
                return false;
    return true;
}

static void cuts_out_the_middle(void **state)
{
    (void)state;
    uint8_t to[H * W * 3];
    struct lk_augment a = make(4, 7, false, 0);
    assert_true(lk_augment_is_any(&a));
    for (int i = 0; i < 5; i++) {
        lk_augment_apply(&a, i, 3 * i, from, to);
        assert_true(is_moved(&a, to, 2, 2));
    }
    a = make(H, W, true, 0);
    assert_false(lk_augment_is_any(&a));
    a = make(H, W, true, 1);
    assert_true(lk_augment_is_any(&a));
}

/* Every place occurs about equally often, and no other. */
static void moves_by_chance(void **state)
{
    (void)state;
    enum { DRAWS = 2000, PADDING = 1 };
    static int often[H - 7 + 2 * PADDING + 1][W - 10 + 2 * PADDING + 1];
    uint8_t to[7 * 10 * 3], again[7 * 10 * 3];
    const struct lk_augment a = make(7, 10, true, PADDING);
    for (int i = 0; i < DRAWS; i++) {
        int found = 0;
        lk_augment_apply(&a, i / 100, i % 100, from, to);
        lk_augment_apply(&a, i / 100, i % 100, from, again);
        assert_memory_equal(to, again, sizeof to);
        for (int top = -1; top <= 3 && !found; top++)
            for (int left = -1; left <= 3 && !found; left++)
                if (is_moved(&a, to, left, top)) {
                    often[top + 1][left + 1]++;
                    found = 1;
                }
        assert_int_equal(found, 1);
    }
    for (int i = 0; i < 5 * 5; i++) /* 80 each: off by 40 but once in 100,000 */
        assert_in_range((&often[0][0])[i], 40, 120);
}

static void differs_by_seed_epoch_and_sample(void **state)
{
    (void)state;
    int same[3] = {0};
    uint8_t to[H * W * 3], other[H * W * 3];
    struct lk_augment a = make(H, W, true, 4);
    struct lk_augment b = a;
    b.seed++;
    for (int i = 0; i < 100; i++) {
        lk_augment_apply(&a, 1, i, from, to);
        lk_augment_apply(&b, 1, i, from, other);
        same[0] += memcmp(to, other, sizeof to) == 0;
        lk_augment_apply(&a, 2, i, from, other);
        same[1] += memcmp(to, other, sizeof to) == 0;
        lk_augment_apply(&a, 1, i + 1, from, other);
        same[2] += memcmp(to, other, sizeof to) == 0;
    }
    for (int i = 0; i < 3; i++) /* 1 in 81 by chance */
        assert_in_range(same[i], 0, 8);
}

/* A plane of slope (3, 2) stays one, turned about its middle, up to the rounding of pixels. */
static void turns_about_the_middle(void **state)
{
    (void)state;
    enum { SIDE = 31 };
    static uint8_t plane[SIDE * SIDE], to[SIDE * SIDE];
    struct lk_augment a = {.rotate = 30,
                           .seed = 1,
                           .from_height = SIDE,
                           .from_width = SIDE,
                           .height = SIDE,
                           .width = SIDE,
                           .channels = 1};
    for (int i = 0; i < SIDE * SIDE; i++)
        plane[i] = (uint8_t)(128 + 3 * (i % SIDE - SIDE / 2) + 2 * (i / SIDE - SIDE / 2));
    double least = 0, most = 0;
    for (int n = 0; n < 200; n++) {
        lk_augment_apply(&a, 0, n, plane, to);
        const int middle = SIDE * SIDE / 2;
        assert_in_range(to[middle], 127, 129);
        /* 5 pixels right and 5 down of the middle: slopes of the turned plane */
        const double gx = (to[middle + 5] - to[middle]) / 5.0;
        const double gy = (to[middle + 5 * SIDE] - to[middle]) / 5.0;
        const double angle = atan2(2, 3) - atan2(gy, gx);
        assert_true(fabs(hypot(gx, gy) - hypot(3, 2)) < 0.35);
        assert_true(fabs(angle) < 0.6);
        least = angle < least ? angle : least;
        most = angle > most ? angle : most;
        for (int k = 0; k < 2; k++) { /* and so are pixels elsewhere */
            const int x = k ? -6 : 4, y = k ? 3 : -7;
            const int value = to[middle + y * SIDE + x];
            assert_true(fabs(128 + gx * x + gy * y - value) < 4);
        }
    }
    assert_true(least < -0.45 && most > 0.45); /* 30 degrees are 0.52 */
}

static void refuses(void **state)
{
    (void)state;
    struct lk_augment a = {.from_height = 4, .from_width = 4, .height = 5, .width = 4};
    assert_refused(lk_augment_check(&a), LK_E_ARGUMENT, lk_error_text(),
                   "5x4 cannot be cropped from samples of 4x4");
    lk_error_clear();
}

/* Batches: what threads read ahead is what is read at once, cropped and changed. */
static void batches_are_augmented(void **state)
{
    (void)state;
    static uint8_t samples[50 * 24 * 26], ahead[50 * 24 * 26], plain[28 * 28];
    int32_t labels[50], labels_ahead[50], label;
    int64_t order[50];
    struct lk_data *data;
    struct lk_batches *batches[2];
    struct lk_batches_options options = {.size = 50,
                                         .seed = 3,
                                         .shuffle = true,
                                         .height = 24,
                                         .width = 26,
                                         .pipeline = "padding=2 flip=horizontal rotate=5"};
    assert_int_equal(lk_data_open("synthetic:digits,count=50", LK_DATA_TRAIN, &data), LK_OK);
    for (int i = 0; i < 2; i++) {
        options.threads = 3 * i;
        assert_int_equal(lk_batches_create(data, &options, &batches[i]), LK_OK);
    }
    struct lk_augment a = {.rotate = 5,
                           .crops_by_chance = true,
                           .padding = 2,
                           .seed = 3,
                           .from_height = 28,
                           .from_width = 28,
                           .height = 24,
                           .width = 26,
                           .channels = 1};
    for (int64_t epoch = 0; epoch < 3; epoch++) {
        assert_int_equal(lk_batches_read(batches[0], epoch, 0, 50, samples, labels), LK_OK);
        assert_int_equal(lk_batches_read(batches[1], epoch, 0, 50, ahead, labels_ahead), LK_OK);
        assert_memory_equal(samples, ahead, sizeof samples);
        assert_memory_equal(labels, labels_ahead, sizeof labels);
        lk_data_order(3, epoch, 50, order);
        for (int i = 0; i < 50; i++) {
            assert_int_equal(lk_data_read(data, order + i, 1, plain, &label), LK_OK);
            lk_augment_apply(&a, epoch, order[i], plain, ahead);
            assert_memory_equal(samples + i * 24 * 26, ahead, 24 * 26);
            assert_int_equal(labels[i], label);
        }
    }
    lk_batches_destroy(batches[0]);
    lk_batches_destroy(batches[1]);
    options.height = 29;
    assert_refused(lk_batches_create(data, &options, batches), LK_E_ARGUMENT, lk_error_text(),
                   "cannot be cropped");
    lk_error_clear();
    lk_data_close(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cuts_out_the_middle),
        cmocka_unit_test(moves_by_chance),
        cmocka_unit_test(differs_by_seed_epoch_and_sample),
        cmocka_unit_test(turns_about_the_middle),
        cmocka_unit_test(refuses),
        cmocka_unit_test(batches_are_augmented),
    };
    return cmocka_run_group_tests(tests, prepare, NULL);
}

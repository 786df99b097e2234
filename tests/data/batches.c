/* Orders and batches: permutations that repeat, every sample once, exact resume. */
#include "scratch.h"

#include <lockstep/data.h>

enum { COUNT = 50, SAMPLE = 28 * 28 };

static void refused(int status, int code, const char *said)
{
    assert_refused(status, code, lk_error_text(), said);
    lk_error_clear();
}

static struct lk_data *open_digits(void)
{
    struct lk_data *data = NULL;
    assert_int_equal(lk_data_open("synthetic:digits,count=50", LK_DATA_TRAIN, &data), LK_OK);
    return data;
}

static struct lk_batches *create(const struct lk_data *data, int size, bool shuffle, bool drop)
{
    struct lk_batches *batches = NULL;
    const struct lk_batches_options options = {
        .size = size, .seed = 9, .shuffle = shuffle, .drop_remainder = drop};
    if (lk_batches_create(data, &options, &batches) != LK_OK)
        fail_msg("%s", lk_error_text());
    return batches;
}

static void expect_permutation(const int64_t *order, int64_t count)
{
    bool *seen = calloc((size_t)count, 1);
    for (int64_t i = 0; i < count; i++) {
        assert_in_range(order[i], 0, count - 1);
        assert_false(seen[order[i]]);
        seen[order[i]] = true;
    }
    free(seen);
}

static void orders_are_permutations(void **state)
{
    (void)state;
    static const int64_t counts[] = {1, 2, 127, 128, 129, 60000};
    static int64_t order[60000], again[60000], other[60000];
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        const int64_t n = counts[i];
        lk_data_order(3, 2, n, order);
        lk_data_order(3, 2, n, again);
        expect_permutation(order, n);
        assert_memory_equal(order, again, (size_t)n * sizeof *order);
        if (n < 100)
            continue;
        lk_data_order(3, 1, n, other);
        assert_memory_not_equal(order, other, (size_t)n * sizeof *order);
        lk_data_order(4, 2, n, other);
        assert_memory_not_equal(order, other, (size_t)n * sizeof *order);
    }
    lk_data_order(1, 1, 0, order);
}

/* Old runs are resumed by new versions: an order never changes. The answers are those of
 * another Philox and another Fisher-Yates, written in Python with whole numbers of any size. */
static void orders_are_known(void **state)
{
    (void)state;
    int64_t order[10];
    static const int64_t known[2][10] = {{0, 4, 9, 2, 1, 6, 3, 5, 8, 7},
                                         {6, 5, 1, 9, 3, 0, 7, 8, 2, 4}};
    lk_data_order(1, 0, 10, order);
    assert_memory_equal(order, known[0], sizeof order);
    lk_data_order(0x123456789abcdef0, 7, 10, order);
    assert_memory_equal(order, known[1], sizeof order);
    static int64_t many[100000];
    lk_data_order(1, 0, 100000, many);
    assert_int_equal(many[99990], 19652);
    assert_int_equal(many[99999], 672);
}

/* Each of the 120 orders of 5 about equally often: chi-squared with 119 degrees of freedom is
 * below 190 but for one seed in 30,000, and the seeds are fixed. */
static void orders_are_fair(void **state)
{
    (void)state;
    enum { DRAWS = 24000 };
    int often[3125] = {0};
    for (int i = 0; i < DRAWS; i++) {
        int64_t order[5];
        lk_data_order((uint64_t)i / 100, i % 100, 5, order);
        often[(((order[0] * 5 + order[1]) * 5 + order[2]) * 5 + order[3]) * 5 + order[4]]++;
    }
    double chi = 0;
    for (int i = 0; i < 3125; i++)
        if (often[i] > 0)
            chi += (often[i] - DRAWS / 120.0) * (often[i] - DRAWS / 120.0) / (DRAWS / 120.0);
    assert_true(chi > 60 && chi < 190);
}

static void batches_cover_an_epoch(void **state)
{
    (void)state;
    static const int sizes[] = {1, 7, 25, 49, 50, 51, 1000};
    static uint8_t samples[1000 * SAMPLE], want[SAMPLE];
    int32_t labels[1000], label = 0;
    struct lk_data *data = open_digits();
    for (int k = 0; k < 7; k++)
        for (int epoch = 0; epoch < 2; epoch++) {
            struct lk_batches *batches = create(data, sizes[k], true, false);
            int64_t order[COUNT], seen = 0;
            assert_int_equal(lk_batches_seek(batches, (struct lk_batches_position){epoch, 0}),
                             LK_OK);
            lk_data_order(9, epoch, COUNT, order);
            for (int count = 1; count > 0; seen += count) {
                assert_int_equal(lk_batches_next(batches, samples, labels, &count), LK_OK);
                assert_int_equal(count, COUNT - seen < sizes[k] ? COUNT - seen : sizes[k]);
                for (int i = 0; i < count; i++) {
                    assert_int_equal(lk_data_read(data, order + seen + i, 1, want, &label),
                                     LK_OK);
                    assert_int_equal(labels[i], label);
                    assert_memory_equal(samples + i * SAMPLE, want, SAMPLE);
                }
            }
            assert_int_equal(seen, COUNT);
            assert_int_equal(lk_batches_position(batches).epoch, epoch + 1);
            assert_int_equal(lk_batches_position(batches).index, 0);
            lk_batches_destroy(batches);
        }
    lk_data_close(data);
}

static void drops_a_remainder(void **state)
{
    (void)state;
    static uint8_t samples[20 * SAMPLE];
    int32_t labels[20];
    struct lk_data *data = open_digits();
    struct lk_batches *batches = create(data, 20, true, true);
    static const int counts[] = {20, 20, 0, 20, 20, 0};
    for (int i = 0; i < 6; i++) {
        int count = -1;
        assert_int_equal(lk_batches_next(batches, samples, labels, &count), LK_OK);
        assert_int_equal(count, counts[i]);
    }
    assert_int_equal(lk_batches_position(batches).epoch, 2);
    lk_batches_destroy(batches);
    lk_data_close(data);
}

static void keeps_index_order_without_shuffling(void **state)
{
    (void)state;
    static uint8_t samples[COUNT * SAMPLE], want[COUNT * SAMPLE];
    int32_t labels[COUNT];
    int64_t order[COUNT];
    int count = 0;
    struct lk_data *data = open_digits();
    struct lk_batches *batches = create(data, COUNT, false, false);
    for (int i = 0; i < COUNT; i++)
        order[i] = i;
    assert_int_equal(lk_data_read(data, order, COUNT, want, labels), LK_OK);
    for (int epoch = 0; epoch < 2; epoch++) {
        assert_int_equal(lk_batches_next(batches, samples, labels, &count), LK_OK);
        assert_int_equal(count, COUNT);
        assert_memory_equal(samples, want, sizeof want);
        assert_int_equal(lk_batches_next(batches, samples, labels, &count), LK_OK);
        assert_int_equal(count, 0);
    }
    lk_batches_destroy(batches);
    lk_data_close(data);
}

/* From any position of three epochs on, another iterator gives the same batches. */
static void resumes_exactly(void **state)
{
    (void)state;
    enum { CALLS = 15 };
    static uint8_t first[CALLS][12 * SAMPLE], again[12 * SAMPLE];
    int counts[CALLS];
    int32_t labels[CALLS][12], label[12];
    struct lk_batches_position positions[CALLS];
    struct lk_data *data = open_digits();
    struct lk_batches *batches = create(data, 12, true, false);
    for (int i = 0; i < CALLS; i++) {
        positions[i] = lk_batches_position(batches);
        assert_int_equal(lk_batches_next(batches, first[i], labels[i], &counts[i]), LK_OK);
    }
    for (int from = 0; from < CALLS; from++) {
        struct lk_batches *resumed = create(data, 12, true, false);
        assert_int_equal(lk_batches_seek(resumed, positions[from]), LK_OK);
        for (int i = from; i < CALLS; i++) {
            int count = -1;
            assert_int_equal(lk_batches_next(resumed, again, label, &count), LK_OK);
            assert_int_equal(count, counts[i]);
            assert_memory_equal(again, first[i], (size_t)count * SAMPLE);
            assert_memory_equal(label, labels[i], (size_t)count * sizeof *label);
        }
        lk_batches_destroy(resumed);
    }
    lk_batches_destroy(batches);
    lk_data_close(data);
}

static void refuses(void **state)
{
    (void)state;
    struct lk_data *data = open_digits();
    struct lk_batches *batches = NULL;
    struct lk_batches_options options = {.size = 0};
    refused(lk_batches_create(data, &options, &batches), LK_E_ARGUMENT, "a batch of 0");
    options = (struct lk_batches_options){.size = 51, .drop_remainder = true};
    refused(lk_batches_create(data, &options, &batches), LK_E_ARGUMENT, "expected 1..50");
    assert_null(batches);
    batches = create(data, 20, true, true);
    static const struct lk_batches_position positions[] = {
        {-1, 0}, {0, -1}, {0, 41}, {(int64_t)1 << 32, 0}};
    for (int i = 0; i < 4; i++)
        refused(lk_batches_seek(batches, positions[i]), LK_E_ARGUMENT, "expected an epoch");
    assert_int_equal(lk_batches_position(batches).epoch, 0);
    lk_batches_destroy(batches);
    lk_batches_destroy(NULL);
    lk_data_close(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(orders_are_permutations),
        cmocka_unit_test(orders_are_known),
        cmocka_unit_test(orders_are_fair),
        cmocka_unit_test(batches_cover_an_epoch),
        cmocka_unit_test(drops_a_remainder),
        cmocka_unit_test(keeps_index_order_without_shuffling),
        cmocka_unit_test(resumes_exactly),
        cmocka_unit_test(refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

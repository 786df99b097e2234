/* Orders and batches: permutations that repeat, every sample once, the same whoever reads. */
#include "scratch.h"

#include <lockstep/data.h>
#include <pthread.h>

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

static int loader_threads; /* of the batches that create() makes */

static struct lk_batches *create(const struct lk_data *data, int size, bool shuffle, bool drop)
{
    struct lk_batches *batches = NULL;
    const struct lk_batches_options options = {.size = size,
                                               .seed = 9,
                                               .shuffle = shuffle,
                                               .drop_remainder = drop,
                                               .threads = loader_threads};
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

static void read_all(struct lk_batches *batches, int64_t batch, uint8_t *samples,
                     int32_t *labels)
{
    const int64_t count = lk_batches_size(batches, batch);
    if (lk_batches_read(batches, batch, 0, count, samples, labels) != LK_OK)
        fail_msg("%s", lk_error_text());
}

static void batches_cover_an_epoch(void **state)
{
    (void)state;
    static const int sizes[] = {1, 7, 25, 49, 50, 51, 1000};
    static uint8_t samples[1000 * SAMPLE], want[SAMPLE];
    int32_t labels[1000], label = 0;
    struct lk_data *data = open_digits();
    for (int k = 0; k < 7; k++) {
        struct lk_batches *batches = create(data, sizes[k], true, false);
        const int64_t per_epoch = lk_batches_per_epoch(batches);
        assert_int_equal(per_epoch, (COUNT + sizes[k] - 1) / sizes[k]);
        for (int64_t batch = 0, seen = 0; batch < 3 * per_epoch; batch++) {
            const int64_t count = lk_batches_size(batches, batch), epoch = batch / per_epoch;
            int64_t order[COUNT];
            seen = batch % per_epoch == 0 ? 0 : seen;
            assert_int_equal(count, COUNT - seen < sizes[k] ? COUNT - seen : sizes[k]);
            assert_int_equal(lk_batches_position(batches, batch).epoch, epoch);
            assert_int_equal(lk_batches_position(batches, batch).index, seen);
            lk_data_order(9, epoch, COUNT, order);
            read_all(batches, batch, samples, labels);
            for (int i = 0; i < count; i++) {
                assert_int_equal(lk_data_read(data, order + seen + i, 1, want, &label), LK_OK);
                assert_int_equal(labels[i], label);
                assert_memory_equal(samples + i * SAMPLE, want, SAMPLE);
            }
            seen += count;
            assert_int_equal(seen == COUNT, batch % per_epoch == per_epoch - 1);
        }
        lk_batches_destroy(batches);
    }
    lk_data_close(data);
}

static void drops_a_remainder(void **state)
{
    (void)state;
    struct lk_data *data = open_digits();
    struct lk_batches *batches = create(data, 20, true, true);
    assert_int_equal(lk_batches_per_epoch(batches), 2);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(lk_batches_size(batches, i), 20);
        assert_int_equal(lk_batches_position(batches, i).epoch, i / 2);
        assert_int_equal(lk_batches_position(batches, i).index, i % 2 * 20);
    }
    lk_batches_destroy(batches);
    lk_data_close(data);
}

static void keeps_index_order_without_shuffling(void **state)
{
    (void)state;
    static uint8_t samples[COUNT * SAMPLE], want[COUNT * SAMPLE];
    int32_t labels[COUNT];
    int64_t order[COUNT];
    struct lk_data *data = open_digits();
    struct lk_batches *batches = create(data, COUNT, false, false);
    for (int i = 0; i < COUNT; i++)
        order[i] = i;
    assert_int_equal(lk_data_read(data, order, COUNT, want, labels), LK_OK);
    for (int64_t batch = 0; batch < 7; batch++) {
        memset(samples, 0, sizeof samples);
        assert_int_equal(lk_batches_size(batches, batch), COUNT);
        read_all(batches, batch, samples, labels);
        assert_memory_equal(samples, want, sizeof want);
    }
    lk_batches_destroy(batches);
    lk_data_close(data);
}

/* What the threads of read_from_many_threads() know: batches to read part by part. */
struct reading {
    struct lk_batches *batches;
    uint8_t (*samples)[12 * SAMPLE];
    int32_t (*labels)[12];
    int64_t first_batch, step;
    int wrong;
};

enum { BATCHES = 20 };

/* Every batch in parts of 1, 2, 3... samples, in an order of its own. */
static void *read_parts(void *argument)
{
    struct reading *r = argument;
    static const int64_t parts[] = {1, 2, 3, 6};
    for (int64_t n = 0; n < 20 * BATCHES; n++) {
        const int64_t batch = (r->first_batch + n * r->step) % BATCHES;
        const int64_t part = parts[n % 4], size = lk_batches_size(r->batches, batch);
        uint8_t samples[12 * SAMPLE];
        int32_t labels[12];
        for (int64_t i = 0; i < size; i += part) {
            const int64_t count = size - i < part ? size - i : part;
            r->wrong += lk_batches_read(r->batches, batch, i, count, samples + i * SAMPLE,
                                        labels + i) != LK_OK;
        }
        r->wrong += memcmp(samples, r->samples[batch], (size_t)size * SAMPLE) != 0;
        r->wrong += memcmp(labels, r->labels[batch], (size_t)size * sizeof *labels) != 0;
    }
    return NULL;
}

/* 5 batches an epoch: 4 epochs are read at once, more than the orders that are kept. */
static void reads_the_same_from_many_threads(void **state)
{
    (void)state;
    enum { THREADS = 6 };
    static uint8_t samples[BATCHES][12 * SAMPLE];
    static int32_t labels[BATCHES][12];
    struct lk_data *data = open_digits();
    struct lk_batches *batches = create(data, 12, true, false);
    pthread_t threads[THREADS];
    struct reading readings[THREADS];
    for (int i = 0; i < BATCHES; i++) {
        struct lk_batches *other = create(data, 12, true, false);
        read_all(other, i, samples[i], labels[i]);
        lk_batches_destroy(other);
    }
    for (int i = 0; i < THREADS; i++) {
        readings[i] = (struct reading){batches, samples, labels, 4 * i, 2 * i + 1, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, read_parts, &readings[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(readings[i].wrong, 0);
    }
    lk_batches_destroy(batches);
    lk_data_close(data);
}

static void finds_positions(void **state)
{
    (void)state;
    struct lk_data *data = open_digits();
    struct lk_batches *batches = create(data, 12, true, false);
    int64_t found = -1;
    for (int64_t i = 0; i < 12; i++) {
        assert_int_equal(lk_batches_find(batches, lk_batches_position(batches, i), &found),
                         LK_OK);
        assert_int_equal(found, i);
    }
    const struct lk_batches_position end = {1, COUNT}; /* as older versions write it */
    assert_int_equal(lk_batches_find(batches, end, &found), LK_OK);
    assert_int_equal(found, 10);
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
    options = (struct lk_batches_options){.size = 1, .threads = -2};
    refused(lk_batches_create(data, &options, &batches), LK_E_ARGUMENT, "-2 threads");
    assert_null(batches);
    batches = create(data, 20, true, true);
    static const struct lk_batches_position positions[] = {
        {-1, 0}, {0, -20}, {0, 5}, {0, 41}, {0, 60}, {(int64_t)1 << 32, 0}};
    int64_t found = -1;
    for (int i = 0; i < 6; i++)
        refused(lk_batches_find(batches, positions[i], &found), LK_E_ARGUMENT,
                "expected an epoch");
    assert_int_equal(found, -1);
    static const int64_t parts[][3] = {{-1, 0, 1},
                                       {0, -1, 1},
                                       {0, 0, -1},
                                       {0, 0, 21},
                                       {0, 20, 1},
                                       {0, 21, 0},
                                       {(int64_t)1 << 40, 0, 1},
                                       {0, 1, INT64_MAX}};
    for (int i = 0; i < 8; i++)
        refused(lk_batches_read(batches, parts[i][0], parts[i][1], parts[i][2], NULL, NULL),
                LK_E_ARGUMENT, " has no ");
    assert_int_equal(lk_batches_read(batches, 0, 20, 0, NULL, NULL), LK_OK);
    lk_batches_destroy(batches);
    lk_batches_destroy(NULL);
    lk_data_close(data);
}

/* The tests of reading once more, with threads that read ahead. */
static void reads_the_same_ahead(void **state)
{
    for (loader_threads = 1; loader_threads <= 4; loader_threads += 3) {
        batches_cover_an_epoch(state);
        keeps_index_order_without_shuffling(state);
        reads_the_same_from_many_threads(state);
        finds_positions(state);
    }
    loader_threads = 0;
}

/* Back and forth, over the end, and away while threads are still reading. */
static void jumps_about(void **state)
{
    (void)state;
    static const int64_t jumps[] = {0, 7, 8, 6, 5, 100, 101, 102, 3, 99, 103, 1000, 1000};
    static uint8_t samples[12 * SAMPLE], want[12 * SAMPLE];
    int32_t labels[12], want_labels[12];
    struct lk_data *data = open_digits();
    struct lk_batches *direct = create(data, 12, true, false);
    for (int round = 0; round < 50; round++) {
        struct lk_batches *ahead = NULL;
        const struct lk_batches_options options = {
            .size = 12, .seed = 9, .shuffle = true, .threads = 3, .end = 102};
        assert_int_equal(lk_batches_create(data, &options, &ahead), LK_OK);
        for (int i = 0; i < round % 14; i++) {
            const int64_t count = lk_batches_size(ahead, jumps[i]);
            read_all(ahead, jumps[i], samples, labels);
            read_all(direct, jumps[i], want, want_labels);
            assert_memory_equal(samples, want, (size_t)count * SAMPLE);
            assert_memory_equal(labels, want_labels, (size_t)count * sizeof *labels);
        }
        lk_batches_destroy(ahead);
    }
    lk_batches_destroy(direct);
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
        cmocka_unit_test(reads_the_same_from_many_threads),
        cmocka_unit_test(finds_positions),
        cmocka_unit_test(reads_the_same_ahead),
        cmocka_unit_test(jumps_about),
        cmocka_unit_test(refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

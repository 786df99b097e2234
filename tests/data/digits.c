/* synthetic:digits: the same bytes on every machine, in any order, on any thread. */
#include "io/sha256.h"
#include "scratch.h"

#include <lockstep/data.h>
#include <pthread.h>

enum { SAMPLE = 28 * 28, TRAIN = 12000, TEST = 2000 };
static uint8_t train[TRAIN * SAMPLE], test[TEST * SAMPLE];
static int32_t train_labels[TRAIN], test_labels[TEST];

static void refused(int status, int code, const char *said)
{
    assert_refused(status, code, lk_error_text(), said);
    lk_error_clear();
}

static struct lk_data *open_part(const char *spec, enum lk_data_part part, int64_t count)
{
    struct lk_data *data = NULL;
    if (lk_data_open(spec, part, &data) != LK_OK)
        fail_msg("%s", lk_error_text());
    assert_int_equal(lk_data_info(data)->count, count);
    return data;
}

static void read_first(const char *spec, enum lk_data_part part, int count, uint8_t *samples,
                       int32_t *labels)
{
    struct lk_data *data = NULL;
    if (lk_data_open(spec, part, &data) != LK_OK)
        fail_msg("%s", lk_error_text());
    for (int64_t i = 0; i < count; i++)
        assert_int_equal(lk_data_read(data, &i, 1, samples + i * SAMPLE, labels + i), LK_OK);
    lk_data_close(data);
}

static int prepare(void **state)
{
    (void)state;
    read_first("synthetic:digits", LK_DATA_TRAIN, TRAIN, train, train_labels);
    read_first("synthetic:digits", LK_DATA_TEST, TEST, test, test_labels);
    return 0;
}

static void says_what_it_is(void **state)
{
    (void)state;
    struct lk_data *data = open_part("synthetic:digits", LK_DATA_TRAIN, TRAIN);
    const struct lk_data_info *info = lk_data_info(data);
    assert_string_equal(info->name, "digits");
    assert_int_equal(info->classes, 10);
    assert_int_equal(info->height, 28);
    assert_int_equal(info->width, 28);
    assert_int_equal(info->channels, 1);
    assert_string_equal(info->class_names[9], "9");
    lk_data_close(data);
    lk_data_close(open_part("synthetic:digits", LK_DATA_TEST, TEST));
    lk_data_close(open_part("synthetic:digits,count=600,seed=5", LK_DATA_TRAIN, 600));
    lk_data_close(open_part("synthetic:digits,seed=5,count=600", LK_DATA_TEST, 100));
    lk_data_close(open_part("synthetic:digits,count=1", LK_DATA_TEST, 1));
}

/* Recorded losses and lessons depend on these bytes. */
static void draws_known_bytes(void **state)
{
    (void)state;
    char sum[LK_SHA256_TEXT];
    assert_int_equal(lk_sha256_of(train, 1000 * SAMPLE, sum), LK_OK);
    assert_string_equal(sum,
                        "550d97242a17309e5f9cbe53f7d7d235cc4564371c7b216a148e4f4fe07ced77");
    assert_int_equal(lk_sha256_of(test, 1000 * SAMPLE, sum), LK_OK);
    assert_string_equal(sum,
                        "8164d65a79585232947164334b65dcca1abf753288137e57d1dd3a2247f61481");
}

static void depends_on_seed_and_part_only(void **state)
{
    (void)state;
    static uint8_t other[100 * SAMPLE];
    int32_t labels[100];
    read_first("synthetic:digits,count=100,seed=1", LK_DATA_TRAIN, 100, other, labels);
    assert_memory_equal(other, train, sizeof other);
    assert_memory_equal(labels, train_labels, sizeof labels);
    read_first("synthetic:digits,seed=2", LK_DATA_TRAIN, 100, other, labels);
    assert_memory_not_equal(other, train, sizeof other);
    for (int i = 0; i < 100; i++)
        for (int k = 0; k < TEST; k++)
            assert_memory_not_equal(train + i * SAMPLE, test + k * SAMPLE, SAMPLE);
}

struct job {
    const struct lk_data *data;
    int64_t begin;
    bool same;
};

static void *read_backwards(void *context)
{
    struct job *job = context;
    uint8_t sample[SAMPLE];
    int32_t label;
    job->same = true;
    for (int64_t i = job->begin + 999; i >= job->begin; i--)
        if (lk_data_read(job->data, &i, 1, sample, &label) != LK_OK ||
            label != train_labels[i] || memcmp(sample, train + i * SAMPLE, SAMPLE) != 0)
            job->same = false;
    return NULL;
}

static void reads_on_several_threads(void **state)
{
    (void)state;
    struct lk_data *data = open_part("synthetic:digits", LK_DATA_TRAIN, TRAIN);
    struct job jobs[4];
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        jobs[i] = (struct job){.data = data, .begin = 500 * i};
        assert_int_equal(pthread_create(&threads[i], NULL, read_backwards, &jobs[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_true(jobs[i].same);
    }
    lk_data_close(data);
}

/* All classes about equally often; the mean picture of a class recognizes some of it, so that
 * there is something to learn, but far from all, so that a network is needed. */
static void is_neither_trivial_nor_hopeless(void **state)
{
    (void)state;
    static double mean[10][SAMPLE];
    int often[10] = {0}, right = 0;
    for (int i = 0; i < TRAIN; i++) {
        assert_in_range(train_labels[i], 0, 9);
        often[train_labels[i]]++;
        for (int p = 0; p < SAMPLE; p++)
            mean[train_labels[i]][p] += train[i * SAMPLE + p];
    }
    for (int k = 0; k < 10; k++) {
        assert_in_range(often[k], TRAIN / 10 - 150, TRAIN / 10 + 150);
        for (int p = 0; p < SAMPLE; p++)
            mean[k][p] /= often[k];
    }
    for (int i = 0; i < TEST; i++) {
        int best = 0;
        double least = 1e30;
        for (int k = 0; k < 10; k++) {
            double distance = 0;
            for (int p = 0; p < SAMPLE; p++)
                distance +=
                    (mean[k][p] - test[i * SAMPLE + p]) * (mean[k][p] - test[i * SAMPLE + p]);
            best = distance < least ? k : best;
            least = distance < least ? distance : least;
        }
        right += best == test_labels[i];
    }
    assert_in_range(right, TEST * 40 / 100, TEST * 75 / 100);
}

static void refuses(void **state)
{
    (void)state;
    static const struct {
        const char *spec, *said;
    } cases[] = {
        {"synthetic:", "known are synthetic:digits and synthetic:pairs"},
        {"synthetic:digit", "known are synthetic:digits and synthetic:pairs"},
        {"synthetic:digitss", "known are synthetic:digits and synthetic:pairs"},
        {"synthetic:digits,count=0", "not in 1.."},
        {"synthetic:digits,count=1e3", "not a whole number"},
        {"synthetic:digits,cuont=3", "did you mean 'count'?"},
        {"synthetic:digits,count", "expected name=value"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct lk_data *data = NULL;
        refused(lk_data_open(cases[i].spec, LK_DATA_TRAIN, &data), LK_E_ARGUMENT,
                cases[i].said);
        assert_null(data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_what_it_is),
        cmocka_unit_test(draws_known_bytes),
        cmocka_unit_test(depends_on_seed_and_part_only),
        cmocka_unit_test(reads_on_several_threads),
        cmocka_unit_test(is_neither_trivial_nor_hopeless),
        cmocka_unit_test(refuses),
    };
    return cmocka_run_group_tests(tests, prepare, NULL);
}

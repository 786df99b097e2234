/* Threads that read ahead: what they hold, what they leave alone, and what they cannot read. */
#include "data/batches/prefetch.h"

#include "scratch.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

enum { SIZE = 100, BATCHES = 40 };

/* A data set whose sample k of batch b is (b, k); counts how often each is read. */
struct set {
    atomic_int reads[BATCHES][SIZE];
    int broken_batch, broken_sample;
};

static int64_t count_samples(void *context, int64_t batch)
{
    (void)context;
    return batch % 5 == 4 ? 30 : SIZE; /* the last of an epoch is short */
}

static enum lk_status read_samples(void *context, int64_t batch, int64_t first, int64_t count,
                                   void *const to[])
{
    struct set *set = context;
    uint8_t *samples = to[0];
    int32_t *labels = to[1];
    for (int64_t i = first; i < first + count; i++) {
        atomic_fetch_add(&set->reads[batch][i], 1);
        if (batch == set->broken_batch && i == set->broken_sample)
            return LK_E_DATA;
        if (samples)
            samples[2 * (i - first)] = (uint8_t)batch;
        if (samples)
            samples[2 * (i - first) + 1] = (uint8_t)i;
        if (labels)
            labels[i - first] = (int32_t)(batch * SIZE + i);
    }
    return LK_OK;
}

static struct lk_prefetch *create(struct set *set, int threads, int64_t end)
{
    struct lk_prefetch *prefetch = NULL;
    const struct lk_prefetch_config config = {.threads = threads,
                                              .batches = 4,
                                              .most_batches = 8,
                                              .size = SIZE,
                                              .field_count = 2,
                                              .field_bytes = {2, 4},
                                              .end = end,
                                              .count = count_samples,
                                              .read = read_samples,
                                              .context = set};
    assert_int_equal(lk_prefetch_create(&config, &prefetch), LK_OK);
    return prefetch;
}

static void expect(struct lk_prefetch *prefetch, int64_t batch, int64_t first, int64_t count)
{
    uint8_t samples[2 * SIZE];
    int32_t labels[SIZE];
    assert_int_equal(
        lk_prefetch_read(prefetch, batch, first, count, (void *[]){samples, labels}), LK_OK);
    for (int64_t i = 0; i < count; i++) {
        assert_int_equal(samples[2 * i], batch);
        assert_int_equal(samples[2 * i + 1], first + i);
        assert_int_equal(labels[i], batch * SIZE + first + i);
    }
}

/* Waits up to 20 seconds until samples first..end-1 of a batch have been read once. */
static bool is_read(struct set *set, int64_t batch, int64_t first, int64_t end)
{
    for (int tries = 0; tries < 20000; tries++) {
        int64_t i = first;
        while (i < end && atomic_load(&set->reads[batch][i]) == 1)
            i++;
        if (i == end)
            return true;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return false;
}

static int sum_reads(struct set *set, int64_t batch, int64_t first, int64_t end)
{
    int sum = 0;
    for (int64_t i = first; i < end; i++)
        sum += atomic_load(&set->reads[batch][i]);
    return sum;
}

static void reads_each_sample_once(void **state)
{
    (void)state;
    static struct set set = {.broken_batch = -1};
    struct lk_prefetch *prefetch = create(&set, 3, BATCHES);
    for (int64_t batch = 0; batch < BATCHES; batch++) {
        const int64_t count = count_samples(NULL, batch);
        expect(prefetch, batch, count / 2, count - count / 2);
        expect(prefetch, batch, 0, count / 2);
    }
    lk_prefetch_destroy(prefetch);
    for (int64_t batch = 0; batch < BATCHES; batch++)
        for (int64_t i = 0; i < count_samples(NULL, batch); i++)
            assert_int_equal(set.reads[batch][i], 1);
}

/* Four batches with the one before the current one, and none from the end on. */
static void reads_so_far_ahead(void **state)
{
    (void)state;
    static struct set set = {.broken_batch = -1};
    struct lk_prefetch *prefetch = create(&set, 3, 12);
    expect(prefetch, 0, 0, SIZE);
    assert_true(is_read(&set, 3, 0, SIZE));
    assert_int_equal(sum_reads(&set, 4, 0, 30), 0);
    expect(prefetch, 10, 0, SIZE); /* a run goes on elsewhere */
    assert_true(is_read(&set, 11, 0, SIZE));
    expect(prefetch, 11, 5, 10);
    expect(prefetch, 12, 0, SIZE); /* read at once */
    lk_prefetch_destroy(prefetch);
    assert_int_equal(sum_reads(&set, 12, 0, SIZE), SIZE);
    assert_int_equal(sum_reads(&set, 13, 0, SIZE), 0);
}

/* A set whose samples of every fifth batch take long. */
static enum lk_status read_in_bursts(void *context, int64_t batch, int64_t first, int64_t count,
                                     void *const to[])
{
    if (batch % 5 == 0)
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    return read_samples(context, batch, first, count, to);
}

static int held_after(struct lk_prefetch_config config, int64_t reader_ns)
{
    struct lk_prefetch *prefetch = NULL;
    assert_int_equal(lk_prefetch_create(&config, &prefetch), LK_OK);
    for (int64_t batch = 0; batch < BATCHES; batch++) {
        expect(prefetch, batch, 0, count_samples(NULL, batch));
        nanosleep(&(struct timespec){.tv_nsec = reader_ns}, NULL);
    }
    const int held = lk_prefetch_held(prefetch);
    lk_prefetch_destroy(prefetch);
    return held;
}

/* More is held where that helps, but not more than may be. */
static void holds_more_where_that_helps(void **state)
{
    (void)state;
    static struct set set = {.broken_batch = -1};
    struct lk_prefetch_config config = {.threads = 1,
                                        .batches = 3,
                                        .most_batches = 6,
                                        .size = SIZE,
                                        .field_count = 2,
                                        .field_bytes = {2, 4},
                                        .end = BATCHES,
                                        .count = count_samples,
                                        .read = read_in_bursts,
                                        .context = &set};
    const int burst = held_after(config, 8000000);
    assert_in_range(burst, 4, 6);
    config.most_batches = 0;
    assert_int_equal(held_after(config, 8000000), 3);
}

/* One thread that has begun a batch has put away all of the one before it: who asks for that
 * one never waits. */
static void holds_no_more_where_nobody_waits(void **state)
{
    (void)state;
    static struct set set = {.broken_batch = -1};
    struct lk_prefetch *prefetch = create(&set, 1, BATCHES);
    for (int64_t batch = 0; batch < BATCHES - 1; batch++) {
        assert_true(batch == 0 || is_read(&set, batch + 1, 0, 1));
        expect(prefetch, batch, 0, count_samples(NULL, batch));
    }
    assert_int_equal(lk_prefetch_held(prefetch), 4);
    lk_prefetch_destroy(prefetch);
}

/* Threads read 8 samples at a time: of 64..99 nothing below 64, but after a short batch. */
static void leaves_alone_what_others_read(void **state)
{
    (void)state;
    static struct set set = {.broken_batch = -1};
    struct lk_prefetch *prefetch = create(&set, 3, BATCHES);
    for (int64_t batch = 0; batch < 4; batch++)
        expect(prefetch, batch, 64, 36);
    assert_true(is_read(&set, 5, 64, SIZE));
    for (int64_t batch = 0; batch < 6; batch++)
        if (batch != 4)
            assert_int_equal(sum_reads(&set, batch, 0, 64), 0);
    expect(prefetch, 4, 24, 6);
    expect(prefetch, 5, 64, 36);
    expect(prefetch, 6, 64, 36);
    assert_int_equal(sum_reads(&set, 6, 0, 24), 0);
    assert_int_equal(sum_reads(&set, 6, 64, SIZE), 36);
    lk_prefetch_destroy(prefetch);
}

static void leaves_failures_to_the_reader(void **state)
{
    (void)state;
    static struct set set = {.broken_batch = 2, .broken_sample = 50};
    uint8_t samples[2 * SIZE];
    int32_t labels[SIZE];
    struct lk_prefetch *prefetch = create(&set, 3, BATCHES);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(lk_prefetch_read(prefetch, 2, 0, SIZE, (void *[]){samples, labels}),
                         LK_E_DATA);
        expect(prefetch, 2, 0, 48);
        expect(prefetch, 2, 56, 44);
    }
    expect(prefetch, 3, 0, SIZE);
    lk_prefetch_destroy(prefetch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_each_sample_once),
        cmocka_unit_test(reads_so_far_ahead),
        cmocka_unit_test(holds_more_where_that_helps),
        cmocka_unit_test(holds_no_more_where_nobody_waits),
        cmocka_unit_test(leaves_alone_what_others_read),
        cmocka_unit_test(leaves_failures_to_the_reader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

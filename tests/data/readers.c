/* Threads that read together: every sample is read once, to its place; what cannot be read;
 * readers at once. */
#include "data/batches/readers.h"

#include "base/fail.h"
#include "scratch.h"
#include <pthread.h>
#include <stdatomic.h>

enum { SIZE = 1500, NUMBERS = 1000, THREADS = 3, READERS = 4, ROUNDS = 8 };

/* Sample k of batch b has NUMBERS times 10000 b + k. */
struct set {
    atomic_int reads[SIZE];
    int broken; /* the sample that cannot be read */
    pthread_t reader;
    atomic_int elsewhere; /* reads on other threads than `reader` */
};

static enum lk_status read_samples(void *context, int64_t batch, int64_t first, int64_t count,
                                   void *const to[])
{
    struct set *set = context;
    int32_t *numbers = to[0];
    uint8_t *labels = to[1];
    atomic_fetch_add(&set->elsewhere, !pthread_equal(pthread_self(), set->reader));
    for (int64_t i = first; i < first + count; i++) {
        atomic_fetch_add(&set->reads[i], 1);
        if (i == set->broken)
            return lk_fail(LK_E_DATA, "sample %lld is broken", (long long)i);
        for (int k = 0; k < NUMBERS && numbers; k++)
            numbers[(i - first) * NUMBERS + k] = (int32_t)(10000 * batch + i);
        if (labels)
            labels[i - first] = (uint8_t)i;
    }
    return LK_OK;
}

static struct lk_readers *create(struct set *set)
{
    struct lk_readers *readers = NULL;
    const struct lk_readers_config config = {.threads = THREADS,
                                             .field_count = 2,
                                             .field_bytes = {4 * NUMBERS, 1},
                                             .read = read_samples,
                                             .context = set};
    set->reader = pthread_self();
    assert_int_equal(lk_readers_create(&config, &readers), LK_OK);
    return readers;
}

static void expect(struct lk_readers *readers, int64_t batch, int64_t first, int64_t count)
{
    int32_t *numbers = calloc((size_t)count * NUMBERS, sizeof *numbers);
    uint8_t labels[SIZE] = {0};
    assert_non_null(numbers);
    assert_int_equal(lk_readers_read(readers, batch, first, count, (void *[]){numbers, labels}),
                     LK_OK);
    for (int64_t i = 0; i < count; i++) {
        assert_int_equal(labels[i], (uint8_t)(first + i));
        for (int k = 0; k < NUMBERS; k++)
            assert_int_equal(numbers[i * NUMBERS + k], 10000 * batch + first + i);
    }
    free(numbers);
}

static void reads_each_sample_once(void **state)
{
    (void)state;
    static struct set set = {.broken = -1};
    struct lk_readers *readers = create(&set);
    expect(readers, 3, 0, SIZE);
    for (int i = 0; i < SIZE; i++)
        assert_int_equal(atomic_load(&set.reads[i]), 1);
    assert_int_equal(atomic_load(&set.elsewhere), THREADS);
    expect(readers, 4, 100, SIZE - 101); /* not a multiple of the threads */
    assert_int_equal(atomic_load(&set.elsewhere), 2 * THREADS);
    expect(readers, 5, 7, 20); /* so few that nobody is woken */
    assert_int_equal(atomic_load(&set.elsewhere), 2 * THREADS);
    lk_readers_destroy(readers);
}

static void reads_only_fields_that_are_asked_for(void **state)
{
    (void)state;
    static struct set set = {.broken = -1};
    struct lk_readers *readers = create(&set);
    uint8_t labels[SIZE] = {0};
    assert_int_equal(lk_readers_read(readers, 0, 0, SIZE, (void *[]){NULL, labels}), LK_OK);
    assert_int_equal(atomic_load(&set.elsewhere), 0); /* few bytes */
    assert_int_equal(labels[SIZE - 1], (uint8_t)(SIZE - 1));
    lk_readers_destroy(readers);
}

static void reports_what_cannot_be_read(void **state)
{
    (void)state;
    static struct set set = {.broken = SIZE - 2};
    static int32_t numbers[SIZE * NUMBERS];
    struct lk_readers *readers = create(&set);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(lk_readers_read(readers, 0, 0, SIZE, (void *[]){numbers, NULL}),
                         LK_E_DATA);
        assert_string_equal(lk_error_text(), "sample 1498 is broken");
        lk_error_clear();
    }
    expect(readers, 1, 0, SIZE - 2);
    lk_readers_destroy(readers);
}

static void *read_often(void *argument)
{
    for (int i = 0; i < ROUNDS; i++)
        expect(argument, i, i, SIZE - 2 * i);
    return NULL;
}

static void serves_readers_at_once(void **state)
{
    (void)state;
    static struct set set = {.broken = -1};
    struct lk_readers *readers = create(&set);
    pthread_t callers[READERS];
    for (int i = 0; i < READERS; i++)
        assert_int_equal(pthread_create(&callers[i], NULL, read_often, readers), 0);
    for (int i = 0; i < READERS; i++)
        pthread_join(callers[i], NULL);
    lk_readers_destroy(readers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_each_sample_once),
        cmocka_unit_test(reads_only_fields_that_are_asked_for),
        cmocka_unit_test(reports_what_cannot_be_read),
        cmocka_unit_test(serves_readers_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

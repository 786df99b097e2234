/* Batches of samples of similar length: which samples each one has, every sample once in an
 * epoch, the same whoever reads, and never another order than the first version's. */
#include "tables.h"

enum { COUNT = 103, BATCH = 8, FULL = COUNT / BATCH, LABEL = 0, LENGTH = 2 };

/* Sample i has the class i and a length of its own choice. */
static int length_of(int64_t i)
{
    return (int)(i * 37 % 23) + 1;
}

static struct lk_data *open_texts(void)
{
    static char text[COUNT * 64];
    size_t used = 0;
    struct lk_data *data = NULL;
    for (int i = 0; i < COUNT; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%03d\t", i);
        for (int word = 0; word < length_of(i); word++)
            used += (size_t)snprintf(text + used, sizeof text - used, "a ");
        used += (size_t)snprintf(text + used, sizeof text - used, "\n");
    }
    put_text("bucket.txt", text);
    const char *spec = spec_of("text", "bucket.txt", ",unit=word,length=30");
    if (lk_data_open(spec, LK_DATA_TRAIN, &data) != LK_OK)
        fail_msg("%s", lk_error_text());
    assert_int_equal(lk_data_info(data)->count, COUNT);
    return data;
}

static struct lk_batches *create(const struct lk_data *data, struct lk_batches_options options)
{
    struct lk_batches *batches = NULL;
    options.size = BATCH;
    options.seed = 9;
    if (lk_batches_create(data, &options, &batches) != LK_OK)
        fail_msg("%s", lk_error_text());
    return batches;
}

/* Which samples an epoch has, in its order; returns how many. */
static int64_t read_epoch(struct lk_batches *batches, int64_t epoch, int64_t *samples)
{
    int64_t used = 0;
    const int64_t each = lk_batches_per_epoch(batches);
    for (int64_t b = epoch * each; b < (epoch + 1) * each; b++) {
        int32_t labels[BATCH], lengths[BATCH];
        void *to[LK_MOST_FIELDS] = {[LABEL] = labels, [LENGTH] = lengths};
        const int64_t count = lk_batches_size(batches, b);
        if (lk_batches_read_fields(batches, b, 0, count, to) != LK_OK)
            fail_msg("%s", lk_error_text());
        for (int64_t i = 0; i < count; i++) {
            assert_int_equal(lengths[i], length_of(labels[i]));
            samples[used++] = labels[i];
        }
    }
    return used;
}

/* Sorts by insertion, which keeps the order of samples of one length. */
static void sort(int64_t *samples, int64_t count)
{
    for (int64_t i = 1; i < count; i++)
        for (int64_t k = i; k > 0 && length_of(samples[k - 1]) > length_of(samples[k]); k--) {
            const int64_t kept = samples[k];
            samples[k] = samples[k - 1];
            samples[k - 1] = kept;
        }
}

/* Finds each batch of `wanted` once among the full ones of `found`; returns how many are at
 * their old place. */
static int expect_batches(const int64_t *wanted, const int64_t *found)
{
    bool taken[FULL] = {false};
    int same = 0;
    for (int w = 0; w < FULL; w++) {
        int f = 0;
        while (f < FULL &&
               (taken[f] || memcmp(wanted + (ptrdiff_t)w * BATCH, found + (ptrdiff_t)f * BATCH,
                                   BATCH * sizeof *wanted) != 0))
            f++;
        assert_true(f < FULL);
        taken[f] = true;
        same += f == w;
    }
    assert_memory_equal(wanted + FULL * BATCH, found + FULL * BATCH,
                        (COUNT - FULL * BATCH) * sizeof *wanted);
    return same;
}

/* The shuffled order, sorted bucket by bucket, but what does not fill a batch. */
static void buckets_are_sorted(void **state)
{
    (void)state;
    static const int buckets[] = {1, 2, 5, FULL, FULL + 1, 1 << 20};
    struct lk_data *data = open_texts();
    for (int i = 0; i < (int)(sizeof buckets / sizeof *buckets); i++)
        for (int64_t epoch = 0; epoch < 2; epoch++) {
            int64_t order[COUNT], found[COUNT];
            struct lk_batches *batches = create(
                data, (struct lk_batches_options){.shuffle = true, .bucket = buckets[i]});
            const int64_t each =
                buckets[i] < FULL ? (int64_t)buckets[i] * BATCH : (int64_t)FULL * BATCH;
            lk_data_order(9, epoch, COUNT, order);
            for (int64_t at = 0; at < (int64_t)FULL * BATCH; at += each)
                sort(order + at, at + each < FULL * BATCH ? each : FULL * BATCH - at);
            sort(order + FULL * BATCH, COUNT - FULL * BATCH);
            assert_int_equal(read_epoch(batches, epoch, found), COUNT);
            assert_true(expect_batches(order, found) < FULL / 2);
            lk_batches_destroy(batches);
        }
    lk_data_close(data);
}

/* Old runs are resumed by new versions. Recorded from the first one. */
static void buckets_are_known(void **state)
{
    (void)state;
    static const int64_t known[BATCH] = {97, 33, 56, 89, 43, 71, 25, 94};
    int64_t found[COUNT], next[COUNT];
    struct lk_data *data = open_texts();
    struct lk_batches *batches =
        create(data, (struct lk_batches_options){.shuffle = true, .bucket = 4});
    read_epoch(batches, 0, found);
    read_epoch(batches, 1, next);
    assert_memory_equal(found, known, sizeof known);
    assert_memory_not_equal(found, next, sizeof found);
    lk_batches_destroy(batches);
    lk_data_close(data);
}

static void order_does_not_depend_on_threads(void **state)
{
    (void)state;
    int64_t wanted[COUNT], found[COUNT];
    struct lk_data *data = open_texts();
    struct lk_batches *one =
        create(data, (struct lk_batches_options){.shuffle = true, .bucket = 3});
    struct lk_batches *ahead =
        create(data, (struct lk_batches_options){.shuffle = true, .bucket = 3, .threads = 3});
    for (int64_t epoch = 4; epoch >= 0; epoch--) { /* so that none follows from another one */
        read_epoch(one, epoch, wanted);
        read_epoch(ahead, epoch, found);
        assert_memory_equal(wanted, found, sizeof found);
    }
    lk_batches_destroy(one);
    lk_batches_destroy(ahead);
    lk_data_close(data);
}

/* The longest samples must not be the ones that are always left out. */
static void drops_what_chance_says(void **state)
{
    (void)state;
    int64_t order[COUNT], found[COUNT];
    bool dropped[COUNT] = {false};
    struct lk_data *data = open_texts();
    struct lk_batches *batches = create(
        data,
        (struct lk_batches_options){.shuffle = true, .bucket = 1000, .drop_remainder = true});
    assert_int_equal(read_epoch(batches, 3, found), FULL * BATCH);
    lk_data_order(9, 3, COUNT, order);
    for (int i = FULL * BATCH; i < COUNT; i++)
        dropped[order[i]] = true;
    for (int i = 0; i < FULL * BATCH; i++)
        assert_false(dropped[found[i]]);
    lk_batches_destroy(batches);
    lk_data_close(data);
}

/* Without shuffling nothing is by chance. */
static void keeps_batches_in_place_without_shuffling(void **state)
{
    (void)state;
    int64_t wanted[COUNT], found[COUNT];
    struct lk_data *data = open_texts();
    struct lk_batches *batches = create(data, (struct lk_batches_options){.bucket = FULL});
    for (int i = 0; i < COUNT; i++)
        wanted[i] = i;
    sort(wanted, FULL * BATCH);
    sort(wanted + FULL * BATCH, COUNT - FULL * BATCH);
    for (int64_t epoch = 0; epoch < 2; epoch++) {
        read_epoch(batches, epoch, found);
        assert_memory_equal(wanted, found, sizeof found);
    }
    lk_batches_destroy(batches);
    lk_data_close(data);
}

/* Samples in versions, as of features, are sorted by the lengths of another data set. */
static void takes_lengths_of_another_set(void **state)
{
    (void)state;
    int64_t wanted[COUNT], found[COUNT];
    struct lk_data *data = open_texts(), *other = open_texts();
    struct lk_batches *own =
        create(data, (struct lk_batches_options){.shuffle = true, .bucket = 3});
    struct lk_batches *given = create(
        data, (struct lk_batches_options){.shuffle = true, .bucket = 3, .lengths = other});
    read_epoch(own, 1, wanted);
    read_epoch(given, 1, found);
    assert_memory_equal(wanted, found, sizeof found);
    lk_batches_destroy(own);
    lk_batches_destroy(given);
    lk_data_close(data);
    lk_data_close(other);
}

static void not_made(const struct lk_data *data, struct lk_batches_options options,
                     const char *said)
{
    struct lk_batches *batches = NULL;
    options.size = BATCH;
    assert_refused(lk_batches_create(data, &options, &batches), LK_E_ARGUMENT, lk_error_text(),
                   said);
    assert_null(batches);
    lk_error_clear();
}

static void refuses(void **state)
{
    (void)state;
    struct lk_data *data = NULL, *texts = open_texts();
    assert_int_equal(lk_data_open("synthetic:digits,count=50", LK_DATA_TRAIN, &data), LK_OK);
    not_made(data, (struct lk_batches_options){.bucket = 2}, "have no length");
    not_made(texts, (struct lk_batches_options){.bucket = -1}, "a bucket of -1 batches");
    not_made(data, (struct lk_batches_options){.bucket = 2, .lengths = texts},
             "lengths of 103 samples are given for 50");
    lk_data_close(data);
    lk_data_close(texts);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(buckets_are_sorted),
        cmocka_unit_test(buckets_are_known),
        cmocka_unit_test(order_does_not_depend_on_threads),
        cmocka_unit_test(drops_what_chance_says),
        cmocka_unit_test(keeps_batches_in_place_without_shuffling),
        cmocka_unit_test(takes_lengths_of_another_set),
        cmocka_unit_test(refuses),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}

/* A crew takes results in order whatever its size; a conversion by the library, stopped from
 * its own progress and gone on with. */
#include "base/parallel.h"

#include "base/fail.h"
#include "io/file.h"
#include "png.h"
#include <lockstep/convert.h>
#include <lockstep/data.h>

enum { COUNT = 500, WINDOW = 13 };

struct sum {
    int64_t worked[WINDOW], next; /* what came of a piece; the piece to be taken next */
    int64_t fails, stops;         /* the piece that does; -1: none */
    atomic_bool *stop;
};

static enum lk_status work(void *context, int64_t i)
{
    struct sum *sum = context;
    if (i == sum->fails || i == sum->fails + 1)
        return lk_fail(LK_E_DATA, "piece %d is broken", (int)i);
    sum->worked[i % WINDOW] = i * i;
    return LK_OK;
}

static enum lk_status take(void *context, int64_t i)
{
    struct sum *sum = context;
    assert_int_equal(i, sum->next++);
    assert_int_equal(sum->worked[i % WINDOW], i * i);
    atomic_store(sum->stop, i == sum->stops);
    return LK_OK;
}

static enum lk_status run(int threads, int64_t fails, int64_t stops, struct sum *sum)
{
    atomic_bool stop = false;
    *sum = (struct sum){.fails = fails, .stops = stops, .stop = &stop};
    const struct lk_parallel crew = {.threads = threads,
                                     .count = COUNT,
                                     .window = WINDOW,
                                     .stop = &stop,
                                     .context = sum,
                                     .work = work,
                                     .take = take};
    return lk_parallel_run(&crew);
}

static void takes_in_order(void **state)
{
    (void)state;
    static const int threads[] = {1, 2, WINDOW, 20};
    struct sum sum;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(run(threads[i], -9, -9, &sum), LK_OK);
        assert_int_equal(sum.next, COUNT);
        assert_refused(run(threads[i], 77, -9, &sum), LK_E_DATA, lk_error_text(),
                       "piece 77 is broken");
        assert_int_equal(sum.next, 77);
        lk_error_clear();
        assert_refused(run(threads[i], -9, 40, &sum), LK_E_INTERRUPTED, lk_error_text(),
                       "interrupted");
        assert_int_equal(sum.next, 41);
        lk_error_clear();
    }
}

/* Three classes of four images each, in two parts. */
static void make_set(void)
{
    for (int i = 0; i < 24; i++) {
        char name[64];
        snprintf(name, sizeof name, "set/%s/%c/%d.png", i % 2 ? "train" : "test",
                 'a' + i / 2 % 3, i);
        png_put(name, 8, 9, (const uint8_t[]){(uint8_t)(10 * i), 5, (uint8_t)i});
    }
}

struct watch {
    struct lk_conversion *conversion;
    int64_t told, stops;
    int shards; /* 0: four */
};

static void see(void *context, const struct lk_conversion_progress *progress)
{
    struct watch *watch = context;
    assert_in_range(progress->done, 1, progress->total);
    watch->told += strcmp(progress->what, "converting") == 0;
    if (watch->told == watch->stops)
        lk_conversion_stop(watch->conversion);
}

static enum lk_status convert(const char *from, const char *to, struct watch *watch)
{
    char source[600];
    const struct lk_conversion_options o = {.shards = watch->shards ? watch->shards : 4,
                                            .threads = 2,
                                            .progress = see,
                                            .context = watch};
    snprintf(source, sizeof source, "folder:%s", scratch_path(from));
    assert_int_equal(lk_conversion_create(source, scratch_path(to), &o, &watch->conversion),
                     LK_OK);
    return lk_conversion_run(watch->conversion);
}

static void goes_on(void **state)
{
    (void)state;
    struct watch watch = {.stops = 5};
    make_set();
    assert_refused(convert("set", "out", &watch), LK_E_INTERRUPTED, lk_error_text(),
                   "interrupted");
    lk_error_clear();
    lk_conversion_destroy(watch.conversion);
    assert_int_equal(watch.told, 5);
    watch = (struct watch){.stops = -1};
    assert_int_equal(convert("set", "out", &watch), LK_OK);
    const struct lk_conversion_report *report = lk_conversion_report(watch.conversion);
    assert_int_equal(watch.told,
                     24 - 3); /* of a shard of three samples only the list is read */
    assert_int_equal(report->part_count, 2);
    assert_int_equal(report->classes, 3);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(report->parts[i].samples, 12);
        assert_int_equal(report->parts[i].skipped, 0);
        assert_int_equal(report->parts[i].kept, i == 0);
        for (int k = 0; k < 3; k++)
            assert_int_equal(report->parts[i].counts[k], 4);
    }
    assert_string_equal(report->class_names[2], "c");
    lk_conversion_destroy(watch.conversion);
    assert_int_equal(scratch_entries(scratch_path("out")), 8 + 1 + 1); /* names, the plan */
    watch = (struct watch){.stops = -1}; /* once more: all is there */
    assert_int_equal(convert("set", "out", &watch), LK_OK);
    report = lk_conversion_report(watch.conversion);
    for (int i = 0; i < 2; i++)
        assert_int_equal(report->parts[i].kept, 4);
    assert_int_equal(report->bytes, 0);
    lk_conversion_destroy(watch.conversion);
    watch = (struct watch){.stops = -1, .shards = 3}; /* another plan */
    assert_refused(convert("set", "out", &watch), LK_E_ARGUMENT, lk_error_text(), "force");
    lk_error_clear();
    lk_conversion_destroy(watch.conversion);
}

/* Sample by sample the converted set is the one it was made of. */
static void keeps_the_order(void **state)
{
    (void)state;
    struct watch watch = {.stops = -1};
    static const enum lk_data_part parts[] = {LK_DATA_TRAIN, LK_DATA_TEST};
    make_set();
    assert_int_equal(convert("set", "same", &watch), LK_OK);
    lk_conversion_destroy(watch.conversion);
    for (int part = 0; part < 2; part++) {
        struct lk_data *data[2];
        char spec[600];
        snprintf(spec, sizeof spec, "folder:%s", scratch_path("set"));
        assert_int_equal(lk_data_open(spec, parts[part], &data[0]), LK_OK);
        snprintf(spec, sizeof spec, "tfrecord:%s", scratch_path("same"));
        assert_int_equal(lk_data_open(spec, parts[part], &data[1]), LK_OK);
        assert_int_equal(lk_data_info(data[1])->count, 12);
        for (int64_t i = 0; i < 12; i++) {
            uint8_t pixels[2][8 * 9 * 3];
            int32_t labels[2];
            for (int k = 0; k < 2; k++)
                assert_int_equal(lk_data_read(data[k], &i, 1, pixels[k], &labels[k]), LK_OK);
            assert_int_equal(labels[0], labels[1]);
            assert_memory_equal(pixels[0], pixels[1], sizeof pixels[0]);
        }
        lk_data_close(data[0]);
        lk_data_close(data[1]);
    }
}

/* What has no image, or more than one and its class, is no set of images. */
static void refuses_fields(void **state)
{
    (void)state;
    char spec[700];
    struct lk_conversion *conversion = NULL;
    scratch_put(scratch_path("n.csv"), "a,c\n1,x\n", 8);
    scratch_put(scratch_path("t.txt"), "x\tab\n", 5);
    for (int i = 0; i < 2; i++) {
        snprintf(spec, sizeof spec, i ? "text:%s" : "csv:%s,fields=size:a,label=c",
                 scratch_path(i ? "t.txt" : "n.csv"));
        const enum lk_status status =
            lk_conversion_create(spec, scratch_path("target"), NULL, &conversion);
        assert_refused(status, LK_E_UNSUPPORTED, lk_error_text(),
                       i ? "the field 'tokens' cannot be converted"
                         : "the field 'size' cannot be converted");
        lk_error_clear();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_in_order),
        cmocka_unit_test(goes_on),
        cmocka_unit_test(keeps_the_order),
        cmocka_unit_test(refuses_fields),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}

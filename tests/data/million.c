/* A million records: listed and put in order in no time, without being read into memory. */
#include "png.h"
#include "records.h"
#include <lockstep/data.h>
#include <sys/resource.h>
#include <time.h>

/* A sanitizer keeps memory that was freed. */
#ifdef __SANITIZE_ADDRESS__
enum { KEEPS_KB = 1 << 20 };
#else
enum { KEEPS_KB = 0 };
#endif

enum { COUNT = 1000000, CLASSES = 10, MOST_GROWTH_KB = KEEPS_KB + (64 << 10) };

static double cpu_seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static long peak_kb(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

/* Record i has label i % CLASSES and an image of that red. */
static void write_records(const char *path)
{
    static struct bytes record, example;
    struct bytes *records = calloc(CLASSES, sizeof *records);
    FILE *file = fopen(path, "wb");
    assert_non_null(records);
    assert_non_null(file);
    for (int label = 0; label < CLASSES; label++) {
        uint8_t png[4096];
        const size_t bytes = png_make(png, 2, 2, (uint8_t[]){(uint8_t)label, 1, 2});
        example.used = record.used = 0;
        put_int_feature(&example, "image/class/label", label);
        put_bytes_feature(&example, "image/encoded", png, bytes);
        put_record(&record, example.data, example.used);
        records[label] = record;
    }
    for (int i = 0; i < COUNT; i++) {
        const struct bytes *one = &records[i % CLASSES];
        assert_int_equal(fwrite(one->data, 1, one->used, file), one->used);
    }
    assert_int_equal(fclose(file), 0);
    free(records);
}

static void indexes_a_million_records(void **state)
{
    (void)state;
    struct lk_data *data = NULL;
    struct lk_batches *batches;
    char spec[600];
    const char *path = scratch_path("a.tfrecord");
    write_records(path);
    snprintf(spec, sizeof spec, "tfrecord:%s", path);
    const long before_kb = peak_kb();
    const double before = cpu_seconds();
    if (lk_data_open_as(spec, LK_DATA_TRAIN, NULL, &data) != LK_OK)
        fail_msg("%s", lk_error_text());
    const struct lk_batches_options options = {.size = 1000, .seed = 1, .shuffle = true};
    assert_int_equal(lk_batches_create(data, &options, &batches), LK_OK);
    static uint8_t pixels[1000 * 2 * 2 * 3];
    static int32_t labels[1000];
    assert_int_equal(lk_batches_read(batches, 0, 0, 1000, pixels, labels), LK_OK);
    assert_true(cpu_seconds() - before < 2);
    assert_true(peak_kb() - before_kb < MOST_GROWTH_KB);
    assert_int_equal(lk_data_info(data)->count, COUNT);
    assert_int_equal(lk_data_info(data)->classes, CLASSES);
    int often[CLASSES] = {0};
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(pixels[12 * i], labels[i]);
        often[labels[i]]++;
    }
    for (int label = 0; label < CLASSES; label++) /* from the whole set, not its beginning */
        assert_in_range(often[label], 50, 150);
    lk_batches_destroy(batches);
    lk_data_close(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(indexes_a_million_records)};
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}

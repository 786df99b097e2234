/* What a survey counts is what was written: labels, sizes, values, and what is broken, the same
 * on any number of threads. Images that are written read back the same. */
#include "png.h"
#include "records.h"
#include <lockstep/survey.h>
#include <math.h>

static int warnings;

static void count_warning(void *context, enum lk_log_level level, const char *text)
{
    (void)context;
    (void)text;
    warnings += level == LK_LOG_WARNING;
}

static struct lk_data *open_data(const char *format, const char *name)
{
    char spec[600];
    struct lk_data *data = NULL;
    snprintf(spec, sizeof spec, format, scratch_path(name));
    if (lk_data_open(spec, LK_DATA_TRAIN, &data) != LK_OK)
        fail_msg("%s", lk_error_text());
    return data;
}

static struct lk_survey *look(const struct lk_data *data, int64_t samples, int threads)
{
    struct lk_survey *survey = NULL;
    const struct lk_survey_options options = {.samples = samples, .threads = threads};
    if (lk_survey_create(data, &options, &survey) != LK_OK)
        fail_msg("%s", lk_error_text());
    return survey;
}

static void assert_near(double found, double expected)
{
    if (fabs(found - expected) > 1e-9 * (1 + fabs(expected)))
        fail_msg("expected %.15g, found %.15g", expected, found);
}

static void assert_size(struct lk_survey_size size, int height, int width)
{
    assert_int_equal(size.height, height);
    assert_int_equal(size.width, width);
}

static void assert_note(const struct lk_survey_notes *notes, int64_t i, int64_t index,
                        const char *said)
{
    assert_true(i < notes->count);
    assert_int_equal(notes->items[i].index, index);
    if (!strstr(notes->items[i].text, said))
        fail_msg("expected '%s' in '%s'", said, notes->items[i].text);
}

static void put_file(const char *name, const char *data)
{
    scratch_put(scratch_path(name), data, strlen(data));
}

/* Sizes 2x2 (twice), 4x4, 4x8 and 16x2: all are scaled to 4x4 of one colour each. */
static void counts_what_was_written(void **state)
{
    (void)state;
    png_put("five/a/1.png", 2, 2, (uint8_t[]){10, 0, 255});
    png_put("five/a/\xc3\xa9t\xc3\xa9.png", 4, 8, (uint8_t[]){20, 0, 255});
    png_put("five/a/3.png", 2, 2, (uint8_t[]){30, 0, 255});
    png_put("five/c/4.png", 16, 2, (uint8_t[]){60, 1, 255});
    png_put("five/c/5.jpg", 4, 4, (uint8_t[]){90, 2, 255}); /* no JPEG */
    mkdir(scratch_path("five/b"), 0777);
    struct lk_data *data = open_data("folder:%s,size=4x4", "five");
    for (int threads = 0; threads < 8; threads += 3) {
        struct lk_survey *s = look(data, 0, threads);
        assert_int_equal(s->samples, 5);
        assert_int_equal(s->good, 5);
        assert_memory_equal(s->class_counts, ((int64_t[]){3, 0, 2}), 3 * sizeof(int64_t));
        assert_int_equal(s->unlabelled, 0);
        assert_int_equal(s->bad.count, 0);
        assert_int_equal(s->misnamed.count, 1);
        assert_note(&s->misnamed, 0, 4, "five/c/5.jpg' is a PNG file");
        assert_size(s->smallest, 2, 2);
        assert_size(s->median, 4, 4);
        assert_size(s->largest, 16, 2); /* as many pixels as 4x8, but higher */
        assert_int_equal(s->pngs, 5);
        assert_int_equal(s->jpegs, 0);
        assert_memory_equal(s->channels, ((int64_t[]){0, 0, 0, 5, 0}), 5 * sizeof(int64_t));
        assert_near(s->mean[0], 42); /* (10 + 20 + 30 + 60 + 90) / 5 */
        assert_near(s->deviation[0],
                    sqrt((32 * 32 + 22 * 22 + 12 * 12 + 18 * 18 + 48 * 48) / 5.0));
        assert_near(s->mean[1], 0.6);
        assert_near(s->deviation[1], sqrt((3 * 0.36 + 0.16 + 1.96) / 5));
        assert_near(s->mean[2], 255);
        assert_near(s->deviation[2], 0);
        for (int stage = 0; stage < LK_SURVEY_STAGES; stage++)
            assert_true(s->samples_per_s[stage] > 0);
        lk_survey_destroy(s);
    }
    lk_data_close(data);
}

/* 20 files of which 5 are broken in different ways. */
static struct lk_data *open_broken(const char *spec)
{
    char name[64];
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "broken/%c/%02d.png", i < 10 ? 'x' : 'y', i);
        png_put(name, 6, 6, (uint8_t[]){(uint8_t)(10 * i), 0, 0});
    }
    put_file("broken/x/02.png", "");
    put_file("broken/x/03.png", "GIF89a and so on");
    assert_int_equal(truncate(scratch_path("broken/x/09.png"), 50), 0);
    png_put("broken/y/11.png", 6, 6, (uint8_t[]){0, 0, 0});
    FILE *file = fopen(scratch_path("broken/y/11.png"), "r+b"); /* 16384x4097 pixels */
    assert_int_equal(fseek(file, 16, SEEK_SET), 0);
    uint8_t header[17 + 4] = {0, 0, 0x40, 0, 0, 0, 0x10, 1, 8, 2};
    uint8_t chunk[4 + 13] = "IHDR";
    memcpy(chunk + 4, header, 13);
    const uint32_t sum = (uint32_t)crc32(0, chunk, sizeof chunk);
    for (int i = 0; i < 4; i++)
        header[13 + i] = (uint8_t)(sum >> (24 - 8 * i));
    assert_int_equal(fwrite(header, 1, 17, file), 17);
    fclose(file);
    struct lk_data *data = open_data(spec, "broken");
    remove(scratch_path("broken/y/15.png")); /* it vanishes after it was listed */
    return data;
}

static void names_what_is_broken(void **state)
{
    (void)state;
    struct lk_data *data = open_broken("folder:%s,max_bad=25%%");
    for (int threads = 1; threads < 4; threads++) {
        struct lk_survey *s = look(data, 0, threads);
        assert_int_equal(s->samples, 20);
        assert_int_equal(s->good, 15);
        assert_int_equal(s->bad.count, 5);
        assert_int_equal(s->most_bad, 5);
        assert_int_equal(s->lost, 0);
        assert_note(&s->bad, 0, 2, "broken/x/02.png': expected a PNG or JPEG image");
        assert_note(&s->bad, 1, 3, "broken/x/03.png': expected a PNG or JPEG image, found GIF");
        assert_note(&s->bad, 2, 9, "broken/x/09.png'");
        assert_note(&s->bad, 3, 11, "16384 x 4097 pixels; at most");
        assert_note(&s->bad, 4, 15, "broken/y/15.png': No such file");
        assert_memory_equal(s->class_counts, ((int64_t[]){10, 10}), 2 * sizeof(int64_t));
        assert_int_equal(s->pngs, 15);
        assert_size(s->smallest, 6, 6);
        assert_near(s->mean[0], 10 * (190 - 2 - 3 - 9 - 11 - 15) / 15.0);
        lk_survey_destroy(s);
    }
    lk_data_close(data);
}

/* What a survey found is left out without a word, even where more are broken than may be. */
static void leaves_out_what_it_found(void **state)
{
    (void)state;
    uint8_t pixels[6 * 6 * 3];
    int32_t label;
    struct lk_data *data = open_broken("folder:%s,max_bad=2");
    struct lk_survey *s = look(data, 0, 2);
    assert_int_equal(s->bad.count, 5);
    assert_int_equal(s->most_bad, 2);
    assert_int_equal(lk_data_bad(data), 5);
    warnings = 0;
    for (int64_t i = 0; i < 20; i++) {
        assert_int_equal(lk_data_read(data, &i, 1, pixels, &label), LK_OK);
        const int64_t shown = i == 2 || i == 3 ? 4 : i == 9 ? 10 : i + (i == 11 || i == 15);
        assert_int_equal(pixels[0], 10 * shown);
        assert_int_equal(label, shown >= 10);
    }
    assert_int_equal(warnings, 0);
    lk_survey_destroy(s);
    lk_data_close(data);
}

struct calls {
    int64_t last, total;
    int count;
};

static void note_progress(void *context, int64_t done, int64_t total)
{
    struct calls *calls = context;
    assert_true(done <= total && (done > calls->last || total != calls->total));
    *calls = (struct calls){done, total, calls->count + 1};
}

/* Four of twenty: 0, 5, 10 and 15, which has vanished. All labels are counted all the same. */
static void looks_at_some(void **state)
{
    (void)state;
    struct calls calls = {0};
    struct lk_data *data = open_broken("folder:%s,max_bad=25%%");
    struct lk_survey *s = NULL;
    const struct lk_survey_options options = {
        .samples = 4, .threads = 1, .progress = note_progress, .context = &calls};
    for (int i = 0; i < 20; i++) {
        char name[64];
        snprintf(name, sizeof name, "broken/%c/%02d.png", i < 10 ? 'x' : 'y', i);
        if (i % 5 != 0)
            remove(scratch_path(name)); /* nobody opens it */
    }
    assert_int_equal(lk_survey_create(data, &options, &s), LK_OK);
    assert_int_equal(s->samples, 4);
    assert_int_equal(s->good, 3);
    assert_int_equal(s->bad.count, 1);
    assert_note(&s->bad, 0, 15, "broken/y/15.png");
    assert_int_equal(s->most_bad, 1); /* 25 % of those looked at */
    assert_memory_equal(s->class_counts, ((int64_t[]){10, 10}), 2 * sizeof(int64_t));
    assert_near(s->mean[0], 50);
    assert_int_equal(calls.last, 4);
    assert_int_equal(calls.total, 4);
    assert_int_equal(calls.count, 20 + 4);
    lk_survey_destroy(s);
    lk_data_close(data);
}

static void put_sample(struct bytes *file, const char *image_key, uint8_t red, int64_t label)
{
    static struct bytes example;
    uint8_t png[4096];
    const size_t bytes = png_make(png, 8, 12, (uint8_t[]){red, 1, 2});
    example.used = 0;
    put_int_feature(&example, "image/class/label", label);
    put_bytes_feature(&example, image_key, png, bytes);
    put_record(file, example.data, example.used);
}

/* A wrong checksum, a record without an image, a label that is no class, a cut tail. */
static void looks_at_records(void **state)
{
    (void)state;
    static struct bytes file;
    file.used = 0;
    put_sample(&file, "image/encoded", 1, 0);
    const size_t at = file.used;
    put_sample(&file, "image/encoded", 2, 1);
    file.data[at + 40] ^= 1;
    put_sample(&file, "other", 4, 1);
    put_sample(&file, "image/encoded", 7, 5);
    put_sample(&file, "image/encoded", 8, 1);
    put_sample(&file, "image/encoded", 9, 1);
    scratch_put(scratch_path("bad.tfrecord"), file.data, file.used - 9);
    struct lk_data *data = open_data("tfrecord:%s,classes=2,max_bad=4", "bad.tfrecord");
    for (int64_t samples = 0; samples < 6; samples += 3) { /* three: records 0, 1 and 3 */
        struct lk_survey *s = look(data, samples, 2);
        assert_memory_equal(s->class_counts, ((int64_t[]){1, 2}), 2 * sizeof(int64_t));
        assert_int_equal(s->unlabelled, 2);
        assert_int_equal(s->lost, 1);
        assert_int_equal(s->most_bad, 4);
        assert_int_equal(s->bad.count, samples ? 2 : 3);
        assert_note(&s->bad, 0, 1, "record 1 has another checksum");
        assert_note(&s->bad, samples ? 1 : 2, 3, "record '3': label 5 is not in 0..1");
        assert_near(s->mean[0], samples ? 1 : 4.5);
        assert_size(s->median, 8, 12);
        assert_int_equal(s->misnamed.count, 0);
        lk_survey_destroy(s);
    }
    lk_data_close(data);
}

/* Samples that are no files, against the same figures from all samples in memory. */
static void looks_at_pixels(void **state)
{
    (void)state;
    enum { COUNT = 300, PIXELS = 28 * 28 };
    struct lk_data *data = NULL;
    static uint8_t pixels[COUNT * PIXELS];
    static int32_t labels[COUNT];
    static int64_t indices[COUNT], counts[10];
    double sum = 0, squares = 0;
    assert_int_equal(lk_data_open("synthetic:digits,count=300", LK_DATA_TRAIN, &data), LK_OK);
    for (int i = 0; i < COUNT; i++)
        indices[i] = i;
    assert_int_equal(lk_data_read(data, indices, COUNT, pixels, labels), LK_OK);
    for (int i = 0; i < COUNT; i++)
        counts[labels[i]]++;
    for (int i = 0; i < COUNT * PIXELS; i++)
        sum += pixels[i];
    const double mean = sum / (COUNT * PIXELS);
    for (int i = 0; i < COUNT * PIXELS; i++)
        squares += (pixels[i] - mean) * (pixels[i] - mean);
    struct lk_survey *s = look(data, 0, 3);
    assert_memory_equal(s->class_counts, counts, sizeof counts);
    assert_near(s->mean[0], mean);
    assert_near(s->deviation[0], sqrt(squares / (COUNT * PIXELS)));
    assert_int_equal(s->good, COUNT);
    assert_int_equal(s->most_bad, 0);
    assert_size(s->largest, 28, 28);
    assert_true(s->samples_per_s[LK_SURVEY_READ] > 0);
    assert_true(s->samples_per_s[LK_SURVEY_DECODE] == 0);
    lk_survey_destroy(s);
    s = look(data, 7, 3);
    assert_memory_equal(s->class_counts, counts, sizeof counts);
    assert_int_equal(s->good, 7);
    lk_survey_destroy(s);
    lk_data_close(data);
}

static void refuses_options(void **state)
{
    (void)state;
    struct lk_data *data = NULL;
    struct lk_survey *s = NULL;
    assert_int_equal(lk_data_open("synthetic:digits,count=3", LK_DATA_TRAIN, &data), LK_OK);
    for (int i = 0; i < 2; i++) {
        const struct lk_survey_options options = {.samples = -i, .threads = i - 1};
        assert_refused(lk_survey_create(data, &options, &s), LK_E_ARGUMENT, lk_error_text(),
                       i ? "-1 samples on 0 threads" : "0 samples on -1 threads");
        assert_null(s);
        lk_error_clear();
    }
    lk_data_close(data);
}

static void writes_images(void **state)
{
    (void)state;
    uint8_t pixels[5 * 7 * 4], found[5 * 7 * 4];
    const char *path = scratch_path("written.png");
    for (int i = 0; i < (int)sizeof pixels; i++)
        pixels[i] = (uint8_t)(i * 73);
    for (int64_t c = 1; c <= 4; c++) {
        const int64_t shape[] = {5, 7, c};
        if (c == 2) {
            assert_refused(lk_image_write(path, shape, pixels), LK_E_ARGUMENT, lk_error_text(),
                           "2 channels");
            lk_error_clear();
            continue;
        }
        assert_int_equal(lk_image_write(path, shape, pixels), LK_OK);
        assert_int_equal(lk_image_read(path, shape, found), LK_OK);
        assert_memory_equal(found, pixels, (size_t)(5 * 7 * c));
    }
    assert_refused(lk_image_write(path, (int64_t[]){5, (int64_t)1 << 32, 1}, pixels),
                   LK_E_ARGUMENT, lk_error_text(), "4294967296");
    lk_error_clear();
    assert_refused(lk_image_write(scratch_path("no/such.png"), (int64_t[]){5, 7, 1}, pixels),
                   LK_E_IO, lk_error_text(), "no/such.png");
    lk_error_clear();
}

static int prepare(void **state)
{
    lk_log_set(count_warning, NULL);
    return scratch_make(state);
}

/* Numbers beside exact ones, whatever the threads; broken lines are left out. */
static void describes_numbers(void **state)
{
    (void)state;
    char spec[700];
    struct lk_data *data = NULL;
    put_file("n.csv", "a,b,c\n1,2,x\n2,4,y\n,8,x\n6,-6,x\n");
    snprintf(spec, sizeof spec, "csv:%s,fields=a,b,label=c,max_bad=1", scratch_path("n.csv"));
    assert_int_equal(lk_data_open(spec, LK_DATA_TRAIN, &data), LK_OK);
    for (int threads = 1; threads <= 4; threads += 3) {
        struct lk_survey *survey = look(data, 0, threads);
        assert_int_equal(survey->samples, 4);
        assert_int_equal(survey->good, 3);
        assert_int_equal(survey->class_counts[0], 2);
        assert_int_equal(survey->class_counts[1], 1);
        assert_int_equal(survey->unlabelled, 1);
        assert_note(&survey->bad, 0, 2, "line 4: column 'a': there is nothing");
        assert_int_equal(survey->most_bad, 1);
        assert_int_equal(survey->number_count, 2);
        const struct lk_survey_numbers *n = survey->numbers;
        assert_true(n[0].field == 0 && n[0].element == 0 && n[1].element == 1);
        assert_true(n[0].count == 3 && n[0].smallest == 1 && n[0].largest == 6);
        assert_true(n[1].smallest == -6 && n[1].largest == 4);
        assert_near(n[0].mean, 3);
        assert_near(n[0].deviation, sqrt(14.0 / 3));
        assert_near(n[1].mean, 0);
        assert_near(n[1].deviation, sqrt(56.0 / 3));
        lk_survey_destroy(survey);
        survey = look(data, 2, threads); /* samples 0 and 2, which is broken */
        assert_int_equal(survey->good, 1);
        assert_int_equal(survey->numbers[0].count, 1);
        assert_int_equal(survey->class_counts[0], 2);
        lk_survey_destroy(survey);
    }
    lk_data_close(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_what_was_written),
        cmocka_unit_test(names_what_is_broken),
        cmocka_unit_test(leaves_out_what_it_found),
        cmocka_unit_test(looks_at_some),
        cmocka_unit_test(looks_at_records),
        cmocka_unit_test(looks_at_pixels),
        cmocka_unit_test(describes_numbers),
        cmocka_unit_test(refuses_options),
        cmocka_unit_test(writes_images),
    };
    return cmocka_run_group_tests(tests, prepare, scratch_remove);
}

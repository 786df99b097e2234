/* Sources of image files: folders, csv files and TFRecords give the right pixels with the right
 * labels; what is broken is named, replaced, and at some point too much. */
#include "png.h"
#include "records.h"
#include <lockstep/data.h>

static int warnings;
static char warned[4096]; /* the last warning */

static void keep_warning(void *context, enum lk_log_level level, const char *text)
{
    (void)context;
    if (level != LK_LOG_WARNING)
        return;
    warnings++;
    snprintf(warned, sizeof warned, "%s", text);
}

static const char *spec(const char *format, const char *name, const char *more)
{
    static char text[2048];
    char path[512];
    snprintf(path, sizeof path, "%s", scratch_path(name));
    snprintf(text, sizeof text, format, path, more);
    return text;
}

static struct lk_data *open_part(const char *text, enum lk_data_part part)
{
    struct lk_data *data = NULL;
    if (lk_data_open_as(text, part, NULL, &data) != LK_OK)
        fail_msg("%s", lk_error_text());
    return data;
}

static void refused(const char *text, enum lk_data_part part, int code, const char *said)
{
    struct lk_data *data = NULL;
    assert_refused(lk_data_open_as(text, part, NULL, &data), code, lk_error_text(), said);
    assert_null(data);
    lk_error_clear();
}

/* Sample i has label labels[i], and red is reds[i] throughout: as the file was written. */
static void expect_samples(const struct lk_data *data, int count, const int *labels,
                           const int *reds)
{
    const struct lk_data_info *info = lk_data_info(data);
    assert_int_equal(info->count, count);
    assert_int_equal(info->channels, 3);
    for (int64_t i = 0; i < count; i++) {
        static uint8_t pixels[64 * 64 * 3];
        int32_t label = -1;
        if (lk_data_read(data, &i, 1, pixels, &label) != LK_OK)
            fail_msg("%s", lk_error_text());
        assert_int_equal(label, labels[i]);
        for (int k = 0; k < info->height * info->width; k++)
            assert_int_equal(pixels[3 * k], reds[i]);
    }
}

static void put_red(const char *name, uint8_t red)
{
    png_put(name, 8, 12, (uint8_t[]){red, 100, 50});
}

static void reads_nested_folders_in_order(void **state)
{
    (void)state;
    put_red("flat/b dog/2.PNG", 21);
    put_red("flat/b dog/10.png", 20);
    put_red("flat/b dog/deep/er/x.jpeg", 22); /* a PNG all the same */
    put_red("flat/a, cat/\xc3\xa4.png", 10);
    put_red("flat/a, cat/.hidden.png", 99);
    scratch_put(scratch_path("flat/a, cat/notes.txt"), "no image", 8);
    scratch_put(scratch_path("flat/labels.txt"), "b dog\na, cat\n", 13);
    struct lk_data *data = open_part(spec("folder:%s", "flat", ""), LK_DATA_TRAIN);
    const struct lk_data_info *info = lk_data_info(data);
    assert_string_equal(info->name, "flat");
    assert_int_equal(info->classes, 2);
    assert_string_equal(info->class_names[0], "a, cat");
    assert_string_equal(info->class_names[1], "b dog");
    assert_int_equal(info->height, 8);
    assert_int_equal(info->width, 12);
    expect_samples(data, 4, (int[]){0, 1, 1, 1}, (int[]){10, 20, 21, 22});
    lk_data_close(data);
    char classes[600];
    snprintf(classes, sizeof classes, ",size=16x5,classes=%s", scratch_path("flat/labels.txt"));
    data = open_part(spec("folder:%s%s", "flat", classes), LK_DATA_TEST_OR_ALL);
    assert_string_equal(lk_data_info(data)->class_names[0], "b dog");
    assert_int_equal(lk_data_info(data)->height, 16);
    assert_int_equal(lk_data_info(data)->width, 5);
    expect_samples(data, 4, (int[]){1, 0, 0, 0}, (int[]){10, 20, 21, 22});
    lk_data_close(data);
    refused(spec("folder:%s", "flat", ""), LK_DATA_TEST, LK_E_IO, "has no test part");
}

static void finds_the_parts(void **state)
{
    (void)state;
    put_red("parts/train/a/1.png", 1);
    put_red("parts/train/b/2.png", 2);
    put_red("parts/train/c/3.png", 3);
    put_red("parts/val/c/4.png", 4);
    struct lk_data *data = open_part(spec("folder:%s/", "parts", ""), LK_DATA_TRAIN);
    assert_string_equal(lk_data_info(data)->name, "parts");
    expect_samples(data, 3, (int[]){0, 1, 2}, (int[]){1, 2, 3});
    lk_data_close(data);
    data = open_part(spec("folder:%s", "parts", ""), LK_DATA_TEST); /* no test: val */
    assert_int_equal(lk_data_info(data)->classes, 3);
    expect_samples(data, 1, (int[]){2}, (int[]){4});
    lk_data_close(data);
    put_red("parts/test/b/5.png", 5);
    for (int i = 0; i < 2; i++) {
        data =
            open_part(spec("folder:%s", "parts", ""), i ? LK_DATA_TEST : LK_DATA_TEST_OR_ALL);
        expect_samples(data, 1, (int[]){1}, (int[]){5});
        lk_data_close(data);
        data = open_part(spec("folder:%s,part=val", "parts", ""),
                         i ? LK_DATA_TEST_OR_ALL : LK_DATA_TRAIN);
        expect_samples(data, 1, (int[]){2}, (int[]){4});
        lk_data_close(data);
    }
    put_red("parts/test/d/6.png", 6);
    refused(spec("folder:%s", "parts", ""), LK_DATA_TEST, LK_E_DATA, "none of the 3 classes");
    refused(spec("folder:%s,part=dev", "parts", ""), LK_DATA_TEST, LK_E_IO, "parts/dev'");
    refused(spec("folder:%s", "nowhere", ""), LK_DATA_TRAIN, LK_E_IO, "nowhere'");
    refused(spec("folder:%s", "parts/val/c", ""), LK_DATA_TRAIN, LK_E_DATA, "has no folders");
}

static void scales_to_what_is_asked_for(void **state)
{
    (void)state;
    uint8_t pixels[40 * 30];
    int32_t label;
    int64_t first = 0;
    struct lk_data *data = NULL;
    put_red("one/x/1.png", 200);
    const struct lk_data_options wanted = {.height = 40, .width = 30, .channels = 1};
    assert_int_equal(
        lk_data_open_as(spec("folder:%s", "one", ""), LK_DATA_TRAIN, &wanted, &data), LK_OK);
    const struct lk_data_info *info = lk_data_info(data);
    assert_memory_equal(((int[]){info->height, info->width, info->channels}),
                        ((int[]){40, 30, 1}), 3 * sizeof(int));
    assert_int_equal(lk_data_read(data, &first, 1, pixels, &label), LK_OK);
    for (int i = 0; i < 40 * 30; i++)
        assert_in_range(pixels[i], 122, 126); /* 0.299 r + 0.587 g + 0.114 b = 124.2 */
    lk_data_close(data);
    assert_int_equal(lk_data_open_as(spec("folder:%s,size=3x2,channels=3", "one", ""),
                                     LK_DATA_TRAIN, &wanted, &data),
                     LK_OK);
    assert_int_equal(lk_data_info(data)->height, 3);
    expect_samples(data, 1, (int[]){0}, (int[]){200});
    lk_data_close(data);
    refused(spec("folder:%s,size=3", "one", ""), LK_DATA_TRAIN, LK_E_ARGUMENT, "size '3'");
    refused(spec("folder:%s,size=0x9", "one", ""), LK_DATA_TRAIN, LK_E_ARGUMENT, "size '0x9'");
    refused(spec("folder:%s,channels=2", "one", ""), LK_DATA_TRAIN, LK_E_ARGUMENT, "1, 3 or 4");
    refused(spec("folder:%s,label=x", "one", ""), LK_DATA_TRAIN, LK_E_ARGUMENT, "label");
    refused(spec("folder:%s,max_bad=1%%%%", "one", ""), LK_DATA_TRAIN, LK_E_ARGUMENT,
            "max_bad");
}

/* 10 files of which 4 are broken in different ways. */
static void make_broken(void)
{
    char name[64];
    for (int i = 0; i < 10; i++) {
        snprintf(name, sizeof name, "broken/x/%d.png", i);
        put_red(name, (uint8_t)(10 * i));
    }
    scratch_put(scratch_path("broken/x/2.png"), "", 0);
    scratch_put(scratch_path("broken/x/3.png"), "GIF89a and so on", 16);
    FILE *file = fopen(scratch_path("broken/x/9.png"), "r+b"); /* cut in the middle */
    assert_int_equal(ftruncate(fileno(file), 50), 0);
    fclose(file);
}

static void replaces_what_is_broken(void **state)
{
    (void)state;
    make_broken();
    warnings = 0;
    struct lk_data *data = open_part(spec("folder:%s,max_bad=4", "broken", ""), LK_DATA_TRAIN);
    remove(scratch_path("broken/x/5.png")); /* it vanishes after it was listed */
    const int labels[10] = {0};
    for (int i = 0; i < 3; i++)
        expect_samples(data, 10, labels, (int[]){0, 10, 40, 40, 40, 60, 60, 70, 80, 0});
    assert_int_equal(lk_data_bad(data), 4);
    assert_int_equal(warnings, 4);
    assert_non_null(strstr(warned, "broken/x/9.png"));
    lk_data_close(data);
    uint8_t pixels[8 * 12 * 3];
    int32_t label;
    int64_t index = 2;
    make_broken();
    data = open_part(spec("folder:%s,max_bad=20%%", "broken", ""), LK_DATA_TRAIN);
    assert_int_equal(lk_data_read(data, &index, 1, pixels, &label), LK_OK);
    remove(scratch_path("broken/x/5.png"));
    index = 5;
    assert_refused(
        lk_data_read(data, &index, 1, pixels, &label), LK_E_DATA, lk_error_text(),
        "3 of 10 samples are broken, max_bad=20% allows 2 (--max-bad, or ',max_bad=' "
        "behind the data, allows more); the last is ");
    lk_error_clear();
    lk_data_close(data);
    index = 3; /* none may be broken of so few */
    data = open_part(spec("folder:%s", "broken", ""), LK_DATA_TRAIN);
    assert_refused(lk_data_read(data, &index, 1, pixels, &label), LK_E_DATA, lk_error_text(),
                   "found GIF");
    lk_error_clear();
    lk_data_close(data);
    mkdir(scratch_path("junk"), 0777);
    mkdir(scratch_path("junk/x"), 0777);
    scratch_put(scratch_path("junk/x/1.jpg"), "junk", 4);
    refused(spec("folder:%s", "junk", ""), LK_DATA_TRAIN, LK_E_DATA, "junk/x/1.jpg");
    data = open_part(spec("folder:%s,max_bad=100%%,size=8x12,channels=3", "junk", ""),
                     LK_DATA_TRAIN);
    index = 0;
    assert_refused(lk_data_read(data, &index, 1, pixels, &label), LK_E_DATA, lk_error_text(),
                   "all 1 samples are broken");
    lk_error_clear();
    lk_data_close(data);
}

/* What threads cannot read fails for whoever asks for it, each time, and nothing else does. */
static void fails_for_the_reader(void **state)
{
    (void)state;
    make_broken();
    uint8_t pixels[8 * 12 * 3];
    int32_t label;
    struct lk_batches *batches;
    struct lk_data *data = open_part(spec("folder:%s,max_bad=0", "broken", ""), LK_DATA_TRAIN);
    const struct lk_batches_options options = {.size = 1, .threads = LK_BATCHES_AUTO};
    assert_true(lk_data_info(data)->decodes);
    assert_int_equal(lk_batches_create(data, &options, &batches), LK_OK);
    for (int64_t i = 0; i < 30; i++) {
        const int broken = i % 10 == 2 || i % 10 == 3 || i % 10 == 9;
        assert_int_equal(lk_batches_read(batches, i, 0, 1, pixels, &label),
                         broken ? LK_E_DATA : LK_OK);
        if (broken)
            assert_non_null(strstr(lk_error_text(), "1 of 10 samples are broken"));
        else
            assert_int_equal(pixels[0], 10 * (i % 10));
        lk_error_clear();
    }
    assert_int_equal(lk_data_bad(data), 0);
    lk_batches_destroy(batches);
    lk_data_close(data);
}

static void warns_of_an_empty_class(void **state)
{
    (void)state;
    put_red("sparse/a/1.png", 1);
    put_red("sparse/c/2.png", 2);
    mkdir(scratch_path("sparse/b"), 0777);
    warnings = 0;
    struct lk_data *data = open_part(spec("folder:%s", "sparse", ""), LK_DATA_TRAIN);
    assert_int_equal(warnings, 1);
    assert_non_null(strstr(warned, "sparse/b' has no image"));
    assert_int_equal(lk_data_info(data)->classes, 3);
    expect_samples(data, 2, (int[]){0, 2}, (int[]){1, 2});
    lk_data_close(data);
}

static void keeps_decoded_samples(void **state)
{
    (void)state;
    put_red("kept/a/1.png", 7);
    put_red("kept/b/2.png", 8);
    struct lk_data *data = open_part(spec("folder:%s,cache=memory", "kept", ""), LK_DATA_TRAIN);
    expect_samples(data, 2, (int[]){0, 1}, (int[]){7, 8});
    remove(scratch_path("kept/a/1.png"));
    remove(scratch_path("kept/b/2.png"));
    expect_samples(data, 2, (int[]){0, 1}, (int[]){7, 8});
    lk_data_close(data);
}

static void put_text(const char *name, const char *text)
{
    scratch_put(scratch_path(name), text, strlen(text));
}

static void reads_csv(void **state)
{
    (void)state;
    put_red("table/a, 1.png", 11);
    put_red("table/sub/b.png", 12);
    char text[900];
    snprintf(text, sizeof text, "file,class\r\n\"a, 1.png\",\"the \"\"cat\"\"\"\r\n%s,dog\n",
             scratch_path("table/sub/b.png"));
    put_text("table/names.csv", text);
    struct lk_data *data = open_part(spec("csv:%s", "table/names.csv", ""), LK_DATA_TRAIN);
    assert_string_equal(lk_data_info(data)->class_names[1], "the \"cat\"");
    expect_samples(data, 2, (int[]){1, 0}, (int[]){11, 12});
    lk_data_close(data);
    put_text("table/numbers.csv", "sub/b.png,7\n\n\"a, 1.png\",0");
    data = open_part(spec("csv:%s", "table/numbers.csv", ""), LK_DATA_TEST_OR_ALL);
    assert_int_equal(lk_data_info(data)->classes, 8);
    assert_null(lk_data_info(data)->class_names);
    expect_samples(data, 2, (int[]){7, 0}, (int[]){12, 11});
    lk_data_close(data);
    static const char *const bad[][2] = {
        {"sub/b.png", "line 1: expected a path"},
        {"x.png,1\n\"y.png,2\n", "line 2: a quote"},
        {"x.png,1\n,2\n", "line 2: expected"},
        {"path,label\n", "names no image"},
        {"", "names no image"},
    };
    for (int i = 0; i < 5; i++) {
        put_text("bad.csv", bad[i][0]);
        refused(spec("csv:%s", "bad.csv", ""), LK_DATA_TRAIN, LK_E_DATA, bad[i][1]);
    }
    put_text("given.txt", "0:dog\n1:cat\n");
    put_text("cow.csv", "x.png,dog\nx.png,cow\n");
    snprintf(text, sizeof text, ",classes=%s", scratch_path("given.txt"));
    refused(spec("csv:%s%s", "cow.csv", text), LK_DATA_TRAIN, LK_E_DATA, "'cow' is none");
}

static struct bytes file, example;

static void put_sample(const char *image_key, uint8_t red, const char *label_key, int64_t label)
{
    uint8_t png[4096];
    const size_t bytes = png_make(png, 8, 12, (uint8_t[]){red, 1, 2});
    example.used = 0;
    put_int_feature(&example, "image/height", 8);
    put_int_feature(&example, label_key, label);
    put_bytes_feature(&example, image_key, png, bytes);
    put_record(&file, example.data, example.used);
}

static void reads_tfrecords(void **state)
{
    (void)state;
    mkdir(scratch_path("tf"), 0777);
    for (int shard = 0; shard < 3; shard++) {
        char name[64];
        file.used = 0;
        for (int i = 0; i < shard + 1; i++)
            put_sample("image/encoded", (uint8_t)(10 * shard + i), "image/class/label",
                       3 * shard + i);
        snprintf(name, sizeof name, "tf/train-%05d-of-00003", shard);
        scratch_put(scratch_path(name), file.data, file.used);
    }
    struct lk_data *data = open_part(spec("tfrecord:%s", "tf/train-*", ""), LK_DATA_TRAIN);
    assert_int_equal(lk_data_info(data)->classes, 9);
    expect_samples(data, 6, (int[]){0, 3, 4, 6, 7, 8}, (int[]){0, 10, 11, 20, 21, 22});
    lk_data_close(data);
    data = open_part(spec("tfrecord:%s,classes=20,offset=5", "tf", ""), LK_DATA_TRAIN);
    assert_int_equal(lk_data_info(data)->classes, 20);
    expect_samples(data, 6, (int[]){5, 8, 9, 11, 12, 13}, (int[]){0, 10, 11, 20, 21, 22});
    lk_data_close(data);
    refused(spec("tfrecord:%s", "tf", ""), LK_DATA_TEST, LK_E_IO, "no test part");
    refused(spec("tfrecord:%s", "tf/train-*", ""), LK_DATA_TEST, LK_E_IO, "no test part");
    refused(spec("tfrecord:%s", "tf/none*", ""), LK_DATA_TRAIN, LK_E_IO, "tf/none*");
    file.used = 0;
    put_sample("jpeg", 77, "class", 2);
    scratch_put(scratch_path("tf/val.tfrecord"), file.data, file.used);
    refused(
        spec("tfrecord:%s", "tf", ""), LK_DATA_TEST_OR_ALL, LK_E_DATA,
        "no image under the key 'image/encoded'; there are 'image/height', 'class', 'jpeg'");
    refused(spec("tfrecord:%s,image=jpeg", "tf", ""), LK_DATA_TEST, LK_E_DATA, "(option label");
    data = open_part(spec("tfrecord:%s,image=jpeg,label=class", "tf", ""), LK_DATA_TEST);
    expect_samples(data, 1, (int[]){2}, (int[]){77});
    lk_data_close(data);
}

static void put_named(uint8_t red, int64_t label, const char *name)
{
    uint8_t png[4096];
    const size_t bytes = png_make(png, 8, 12, (uint8_t[]){red, 1, 2});
    example.used = 0;
    put_int_feature(&example, "image/class/label", label);
    put_bytes_feature(&example, "image/encoded", png, bytes);
    if (name)
        put_bytes_feature(&example, "image/class/text", (const uint8_t *)name, strlen(name));
    put_record(&file, example.data, example.used);
}

/* Classes are called what the records call them, if each has a name of its own. */
static void takes_names_of_records(void **state)
{
    static const char *const names[][3] = {
        {"cat", "dog", "emu"}, {"cat", "dog", NULL}, {"cat", "dog", "cat"}, {"cat", "", "emu"}};
    (void)state;
    for (int i = 0; i < 4; i++) {
        file.used = 0;
        put_named(1, 2, names[i][2]);
        put_named(2, 0, names[i][0]);
        put_named(3, 2, names[i][2]);
        put_named(4, 1, names[i][1]);
        scratch_put(scratch_path("named.tfrecord"), file.data, file.used);
        struct lk_data *data =
            open_part(spec("tfrecord:%s", "named.tfrecord", ""), LK_DATA_TRAIN);
        const struct lk_data_info *info = lk_data_info(data);
        assert_int_equal(info->classes, 3);
        assert_int_equal(info->class_names != NULL, i == 0);
        for (int k = 0; i == 0 && k < 3; k++)
            assert_string_equal(info->class_names[k], names[0][k]);
        expect_samples(data, 4, (int[]){2, 0, 2, 1}, (int[]){1, 2, 3, 4});
        lk_data_close(data);
    }
}

static void reads_tfrecords_with_names_for_labels(void **state)
{
    (void)state;
    uint8_t png[4096];
    char more[600];
    put_text("animals.txt", "cat\ndog\n");
    file.used = example.used = 0;
    put_bytes_feature(&example, "image/class/label", "dog", 3);
    put_bytes_feature(&example, "image/encoded", png,
                      png_make(png, 4, 4, (uint8_t[]){9, 9, 9}));
    put_record(&file, example.data, example.used);
    scratch_put(scratch_path("named.tfrecord"), file.data, file.used);
    refused(spec("tfrecord:%s", "named.tfrecord", ""), LK_DATA_TRAIN, LK_E_DATA,
            "label 'dog' is no number; classes=FILE");
    snprintf(more, sizeof more, ",classes=%s", scratch_path("animals.txt"));
    struct lk_data *data =
        open_part(spec("tfrecord:%s%s", "named.tfrecord", more), LK_DATA_TRAIN);
    expect_samples(data, 1, (int[]){1}, (int[]){9});
    assert_string_equal(lk_data_info(data)->class_names[1], "dog");
    lk_data_close(data);
}

/* A wrong checksum, a record without the keys, a label outside the classes, a cut tail. */
static void counts_broken_records(void **state)
{
    (void)state;
    file.used = 0;
    put_sample("image/encoded", 1, "image/class/label", 0);
    put_sample("image/encoded", 2, "image/class/label", 1);
    const size_t at = file.used;
    put_sample("image/encoded", 3, "image/class/label", 1);
    file.data[at + 40] ^= 1;
    put_sample("other", 4, "image/class/label", 1);
    put_sample("image/encoded", 5, "image/class/label", 2);
    put_sample("image/encoded", 6, "image/class/label", -1);
    put_sample("image/encoded", 7, "image/class/label", 1);
    put_sample("image/encoded", 8, "image/class/label", 1);
    scratch_put(scratch_path("bad.tfrecord"), file.data, file.used - 9);
    warnings = 0;
    struct lk_data *data =
        open_part(spec("tfrecord:%s,classes=2,max_bad=5", "bad.tfrecord", ""), LK_DATA_TRAIN);
    assert_int_equal(warnings, 1);
    assert_non_null(strstr(warned, "was cut short"));
    expect_samples(data, 7, (int[]){0, 1, 1, 1, 1, 1, 1}, (int[]){1, 2, 7, 7, 7, 7, 7});
    assert_int_equal(lk_data_bad(data), 5);
    assert_int_equal(warnings, 5);
    assert_non_null(strstr(warned, "record '5': label -1 is not in 0..1"));
    lk_data_close(data);
}

static int prepare(void **state)
{
    lk_log_set(keep_warning, NULL);
    return scratch_make(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_nested_folders_in_order),
        cmocka_unit_test(finds_the_parts),
        cmocka_unit_test(scales_to_what_is_asked_for),
        cmocka_unit_test(replaces_what_is_broken),
        cmocka_unit_test(fails_for_the_reader),
        cmocka_unit_test(warns_of_an_empty_class),
        cmocka_unit_test(keeps_decoded_samples),
        cmocka_unit_test(reads_csv),
        cmocka_unit_test(reads_tfrecords),
        cmocka_unit_test(takes_names_of_records),
        cmocka_unit_test(reads_tfrecords_with_names_for_labels),
        cmocka_unit_test(counts_broken_records),
    };
    return cmocka_run_group_tests(tests, prepare, scratch_remove);
}

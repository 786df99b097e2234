/* Parts of a data set: which one validates, which one tests, and samples that are held out of
 * the training part. */
#include "npy.h"
#include "png.h"
#include "records.h"
#include "tables.h"

/* Lines whose number is that of the sample and whose label its class. */
static void put_lines(const char *name, int count, const int *class_counts)
{
    char text[8192];
    size_t used = (size_t)snprintf(text, sizeof text, "a,c\n");
    int done = 0;
    for (int c = 0; c < count; c++)
        for (int i = 0; i < class_counts[c]; i++)
            used +=
                (size_t)snprintf(text + used, sizeof text - used, "%d,class%d\n", done++, c);
    put_text(name, text);
}

/* Counts of each class; marks which numbers were seen. */
static void look(struct lk_data *data, enum lk_data_part part, int counts[4], bool seen[100])
{
    const struct lk_data_info *info = lk_data_info(data);
    float last = -1;
    memset(counts, 0, 4 * sizeof *counts);
    assert_int_equal(info->part, part);
    for (int64_t i = 0; i < info->count; i++) {
        float number = -1;
        int32_t label = -1;
        void *to[LK_MOST_FIELDS] = {&number, &label};
        if (lk_data_read_fields(data, &i, 1, to) != LK_OK)
            fail_msg("%s", lk_error_text());
        assert_true(number > last); /* in the order of the whole set */
        last = number;
        assert_false(seen[(int)number]);
        seen[(int)number] = true;
        counts[label]++;
    }
    lk_data_close(data);
}

static void holds_out_of_each_class(void **state)
{
    (void)state;
    int counts[4];
    put_lines("held.csv", 4, (int[]){40, 20, 7, 1});
    const char *spec = spec_of("csv", "held.csv", ",fields=a,label=c,val=0.2");
    for (int again = 0; again < 2; again++) {
        bool seen[100] = {false};
        look(open_part(spec, LK_DATA_TRAIN), LK_DATA_TRAIN, counts, seen);
        assert_memory_equal(counts, ((int[]){32, 16, 6, 1}), sizeof counts);
        look(open_part(spec, LK_DATA_VALIDATION), LK_DATA_VALIDATION, counts, seen);
        assert_memory_equal(counts, ((int[]){8, 4, 1, 0}), sizeof counts);
        for (int i = 0; i < 68; i++)
            assert_true(seen[i]);
    }
    /* Not the first ones of a class, and the same ones with options in another order. */
    bool first[100] = {false}, second[100] = {false}, none[100] = {false};
    look(open_part(spec, LK_DATA_TEST_OR_ALL), LK_DATA_VALIDATION, counts, first);
    spec = spec_of("csv", "held.csv", ",val=20%,fields=a,label=c");
    look(open_part(spec, LK_DATA_TEST), LK_DATA_VALIDATION, counts, second);
    assert_memory_equal(first, second, sizeof first);
    for (int i = 0; i < 8; i++)
        none[i] = true;
    assert_memory_not_equal(first, none, 40 * sizeof *none);
}

/* Where no label is a class all samples are of one kind; broken ones are on either side. */
static void holds_out_without_classes(void **state)
{
    (void)state;
    char text[2048];
    size_t used = (size_t)snprintf(text, sizeof text, "a,m\n");
    for (int i = 0; i < 20; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%d,%s\n", i,
                                 i % 5 == 4 ? "?" : "0.5");
    put_text("masses.csv", text);
    static const enum lk_data_part parts[] = {LK_DATA_TRAIN, LK_DATA_VALIDATION};
    static const int counts[] = {15, 5};
    int64_t bad = 0;
    for (int i = 0; i < 2; i++) {
        struct lk_data *data =
            open_part(spec_of("csv", "masses.csv",
                              ",fields=a,label=m,label_type=number,val=25%,max_bad=4"),
                      parts[i]);
        assert_int_equal(lk_data_info(data)->count, counts[i]);
        bad += lk_data_bad(data);
        lk_data_close(data);
    }
    assert_int_equal(bad, 4);
}

static void holds_out_of_every_kind(void **state)
{
    (void)state;
    static struct bytes file, example;
    uint8_t png[4096];
    mkdir(scratch_path("tf"), 0777);
    for (int i = 0; i < 20; i++) {
        char name[64];
        const uint8_t rgb[3] = {(uint8_t)i, 2, 3};
        const size_t bytes = png_make(png, 8, 12, rgb);
        snprintf(name, sizeof name, "photos/%s/%02d.png", i < 10 ? "a" : "b", i);
        png_put(name, 8, 12, rgb);
        example.used = 0;
        put_int_feature(&example, "image/class/label", i / 10);
        put_bytes_feature(&example, "image/encoded", png, bytes);
        put_record(&file, example.data, example.used);
    }
    scratch_put(scratch_path("tf/train.tfrecord"), file.data, file.used);
    char cached[600], folder[2048];
    snprintf(cached, sizeof cached, ",val=0.3,cache=%s", scratch_path("kept"));
    snprintf(folder, sizeof folder, "%s", spec_of("folder", "photos", cached));
    const char *const specs[] = {folder, spec_of("tfrecord", "tf", ",val=0.3"),
                                 "synthetic:digits,count=20,val=0.3"};
    for (int s = 0; s < 3; s++)
        for (int again = 0; again < 2; again++) { /* from the cache's files */
            bool seen[20] = {false};
            for (int part = 0; part < 2; part++) {
                struct lk_data *data =
                    open_part(specs[s], part ? LK_DATA_VALIDATION_OR_ALL : LK_DATA_TRAIN);
                const int64_t count = lk_data_info(data)->count;
                assert_in_range(count, part ? 4 : 12, part ? 8 : 16);
                assert_int_equal(lk_data_info(data)->part,
                                 part ? LK_DATA_VALIDATION : LK_DATA_TRAIN);
                for (int64_t i = 0; i < count && s < 2; i++) {
                    uint8_t pixels[8 * 12 * 3];
                    int32_t label;
                    assert_int_equal(lk_data_read(data, &i, 1, pixels, &label), LK_OK);
                    assert_false(seen[pixels[0]]);
                    seen[pixels[0]] = true;
                    assert_int_equal(label, pixels[0] / 10);
                }
                lk_data_close(data);
            }
            for (int i = 0; i < 20 && s < 2; i++)
                assert_true(seen[i]);
        }
}

static void refuses_shares(void **state)
{
    (void)state;
    static const char *const shares[] = {"0", "1", "-0.5", "x", "0.5x", "120%", "nan", ""};
    char more[64];
    put_lines("one.csv", 3, (int[]){1, 1, 1});
    for (int i = 0; i < 8; i++) {
        snprintf(more, sizeof more, ",fields=a,label=c,val=%s", shares[i]);
        refused(spec_of("csv", "one.csv", more), LK_DATA_TRAIN, LK_E_ARGUMENT,
                "a share between 0 and 1 expected");
    }
    refused(spec_of("csv", "one.csv", ",fields=a,label=c,val=0.5"), LK_DATA_VALIDATION,
            LK_E_DATA, "no class has two samples");
    refused(spec_of("csv", "one.csv", ",label=c"), LK_DATA_TRAIN, LK_E_ARGUMENT,
            "fields=a,b or fields=* (all but the labels) is missing");
}

/* A part of one sample: opened as `part`, it is `found`, and there are so many in it. */
static void expect_part(const char *spec, enum lk_data_part part, enum lk_data_part found,
                        int count)
{
    struct lk_data *data = open_part(spec, part);
    assert_int_equal(lk_data_info(data)->part, found);
    assert_int_equal(lk_data_info(data)->count, count);
    lk_data_close(data);
}

static void expect_order(const char *spec)
{
    expect_part(spec, LK_DATA_TRAIN, LK_DATA_TRAIN, 3);
    expect_part(spec, LK_DATA_VALIDATION, LK_DATA_VALIDATION, 2);
    expect_part(spec, LK_DATA_VALIDATION_OR_ALL, LK_DATA_VALIDATION, 2);
    expect_part(spec, LK_DATA_TEST, LK_DATA_TEST, 1);
    expect_part(spec, LK_DATA_TEST_OR_ALL, LK_DATA_TEST, 1);
}

/* A NumPy file of `count` zeros as bytes. */
static void put_zeros(const char *name, int count, bool is_image)
{
    static const uint8_t zeros[64];
    char shape[32];
    snprintf(shape, sizeof shape, "(%d,%s)", count, is_image ? " 2, 2" : "");
    put_npy(name, "|u1", shape, zeros, (size_t)(is_image ? 4 : 1) * (size_t)count);
}

/* Of a set with all three parts val validates and test tests; one stands in for the other. */
static void finds_three_parts(void **state)
{
    (void)state;
    static const char *const names[] = {"test", "val", "train"};
    static struct bytes file, example;
    for (int part = 0; part < 3; part++) {
        char name[64], text[256] = "", lines[256] = "a,c\n";
        uint8_t png[4096];
        file.used = 0;
        for (int i = 0; i <= part; i++) {
            snprintf(name, sizeof name, "all/%s/x/%d.png", names[part], i);
            png_put(name, 8, 12, (uint8_t[]){1, 2, 3});
            strcat(text, "x\tone\n");
            strcat(lines, "1,x\n");
            example.used = 0;
            put_int_feature(&example, "image/class/label", 0);
            put_bytes_feature(&example, "image/encoded", png,
                              png_make(png, 8, 12, (uint8_t[]){1, 2, 3}));
            put_record(&file, example.data, example.used);
        }
        snprintf(name, sizeof name, "all/%s.txt", names[part]);
        put_text(name, text);
        snprintf(name, sizeof name, "all/%s.csv", names[part]);
        put_text(name, lines);
        snprintf(name, sizeof name, "all/%s.tfrecord", names[part]);
        scratch_put(scratch_path(name), file.data, file.used);
        snprintf(name, sizeof name, "all/x_%s.npy", names[part]);
        put_zeros(name, part + 1, true);
        snprintf(name, sizeof name, "all/y_%s.npy", names[part]);
        put_zeros(name, part + 1, false);
    }
    expect_order(spec_of("text", "all", ""));
    expect_order(spec_of("csv", "all", ",fields=a,label=c"));
    expect_order(spec_of("npy", "all", ""));
    /* Records and folders are listed without the files of other kinds. */
    mkdir(scratch_path("records"), 0777);
    for (int part = 0; part < 3; part++) {
        char from[64], to[64], path[512];
        snprintf(from, sizeof from, "all/%s.tfrecord", names[part]);
        snprintf(to, sizeof to, "records/%s.tfrecord", names[part]);
        snprintf(path, sizeof path, "%s", scratch_path(from));
        assert_int_equal(rename(path, scratch_path(to)), 0);
    }
    expect_order(spec_of("folder", "all", ""));
    expect_order(spec_of("tfrecord", "records", ""));
    assert_int_equal(unlink(scratch_path("records/val.tfrecord")), 0);
    expect_part(spec_of("tfrecord", "records", ""), LK_DATA_VALIDATION, LK_DATA_TEST, 1);
    assert_int_equal(unlink(scratch_path("all/test.txt")), 0);
    expect_part(spec_of("text", "all", ""), LK_DATA_TEST, LK_DATA_VALIDATION, 2);
    expect_part("synthetic:digits,count=12", LK_DATA_VALIDATION, LK_DATA_TEST, 2);
    expect_part(spec_of("folder", "all", ",part=val"), LK_DATA_TEST, LK_DATA_TRAIN, 2);
    /* The test part stays what it is where others are held out. */
    expect_part(spec_of("csv", "all", ",fields=a,label=c,val=0.3"), LK_DATA_TEST, LK_DATA_TEST,
                1);
    expect_part(spec_of("csv", "all", ",fields=a,label=c,val=0.3"), LK_DATA_VALIDATION,
                LK_DATA_VALIDATION, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(holds_out_of_each_class), cmocka_unit_test(holds_out_without_classes),
        cmocka_unit_test(holds_out_of_every_kind), cmocka_unit_test(refuses_shares),
        cmocka_unit_test(finds_three_parts),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}

/* Tables of numbers in csv and TFRecord files: fields, labels, and what is broken or refused.
 */
#include "tables.h"
#include "records.h"

static const char penguins[] = "\xef\xbb\xbfspecies,\"culmen, mm\",mass,sex,year\r\n"
                               "Adelie,18.5,3750,1,2007\r\n"
                               "\r\n"
                               "\"Gentoo \"\"G\"\"\",14.25, -5e3 ,0,2008\r\n"
                               "Adelie,17.5,.5,2,2009";

static void reads_columns(void **state)
{
    (void)state;
    put_text("p.csv", penguins);
    struct lk_data *data =
        open_part(spec_of("csv", "p.csv", ",label=species,fields=mass,size:mass+year,y:year"),
                  LK_DATA_TRAIN);
    const struct lk_data_info *info = lk_data_info(data);
    assert_int_equal(info->count, 3);
    assert_int_equal(info->field_count, 4);
    assert_int_equal(info->height + info->width + info->channels, 0);
    assert_int_equal(info->classes, 2);
    assert_string_equal(info->class_names[0], "Adelie");
    assert_string_equal(info->class_names[1], "Gentoo \"G\"");
    assert_string_equal(info->name, "p.csv");
    expect_field(data, 0, "numbers", LK_F32, "1");
    expect_field(data, 1, "size", LK_F32, "2");
    expect_field(data, 2, "y", LK_F32, "1");
    expect_field(data, 3, "label", LK_I32, "");
    assert_int_equal(info->fields[3].role, LK_FIELD_LABEL);
    assert_int_equal(info->fields[3].classes, 2);
    expect_floats(data, 1, 1, (float[]){-5000, 2008}, 2);
    expect_floats(data, 1, 2, (float[]){0.5F, 2009}, 2);
    expect_floats(data, 0, 0, (float[]){3750}, 1);
    expect_ints(data, 3, 1, (int32_t[]){1}, 1);
    expect_ints(data, 3, 2, (int32_t[]){0}, 1);
    lk_data_close(data);
}

static void reads_all_columns(void **state)
{
    (void)state;
    put_text("all.csv", "a,c,b\n1,2,3\n4,5,6\n");
    struct lk_data *data =
        open_part(spec_of("csv", "all.csv", ",fields=*,label=c"), LK_DATA_TEST_OR_ALL);
    expect_field(data, 0, "numbers", LK_F32, "2");
    expect_floats(data, 0, 1, (float[]){4, 6}, 2);
    assert_int_equal(lk_data_info(data)->classes, 6); /* whole numbers are classes */
    lk_data_close(data);
    data = open_part(spec_of("csv", "all.csv", ",fields=a"), LK_DATA_TRAIN);
    assert_int_equal(lk_data_info(data)->field_count, 1);
    assert_int_equal(lk_data_info(data)->classes, 0);
    lk_data_close(data);
}

static void reads_labels_of_all_kinds(void **state)
{
    (void)state;
    put_text("l.csv", "a,half,whole,word\n1,0.5,3,x\n2,7,1,y\n");
    struct lk_data *data =
        open_part(spec_of("csv", "l.csv", ",fields=a,label=half"), LK_DATA_TRAIN);
    expect_field(data, 1, "label", LK_F32, "");
    expect_floats(data, 1, 0, (float[]){0.5F}, 1);
    lk_data_close(data);
    data = open_part(spec_of("csv", "l.csv", ",fields=a,label=whole,label_type=number"),
                     LK_DATA_TRAIN);
    expect_field(data, 1, "label", LK_F32, "");
    lk_data_close(data);
    data = open_part(spec_of("csv", "l.csv", ",fields=a,label=half,label_type=class"),
                     LK_DATA_TRAIN);
    assert_string_equal(lk_data_info(data)->class_names[1], "7");
    lk_data_close(data);
    data = open_part(spec_of("csv", "l.csv", ",fields=a,label=whole+half"), LK_DATA_TRAIN);
    expect_field(data, 1, "label", LK_F32, "2");
    expect_floats(data, 1, 1, (float[]){1, 7}, 2);
    lk_data_close(data);
    data = open_part(spec_of("csv", "l.csv", ",fields=a,label=kind:word,much:half"),
                     LK_DATA_TRAIN);
    expect_field(data, 1, "kind", LK_I32, "");
    expect_field(data, 2, "much", LK_F32, "");
    assert_int_equal(lk_data_info(data)->classes, 2);
    lk_data_close(data);
    char more[700];
    put_text("names.txt", "y\nz\nx\n");
    snprintf(more, sizeof more, ",fields=a,label=word,classes=%s", scratch_path("names.txt"));
    data = open_part(spec_of("csv", "l.csv", more), LK_DATA_TRAIN);
    assert_int_equal(lk_data_info(data)->classes, 3);
    expect_ints(data, 1, 0, (int32_t[]){2}, 1);
    lk_data_close(data);
}

/* The test part has the classes of the training part, by its own order of columns. */
static void reads_parts(void **state)
{
    (void)state;
    mkdir(scratch_path("parts"), 0777);
    put_text("parts/train.csv", "a,b,c\n1,2,cat\n3,4,dog\n5,6,ant\n");
    put_text("parts/val.csv", "c,b,a\ndog,8,7\n");
    struct lk_data *data =
        open_part(spec_of("csv", "parts", ",fields=a,b,label=c"), LK_DATA_TEST);
    assert_int_equal(lk_data_info(data)->classes, 3);
    expect_floats(data, 0, 0, (float[]){7, 8}, 2);
    expect_ints(data, 1, 0, (int32_t[]){2}, 1);
    lk_data_close(data);
    put_text("parts/val.csv", "c,b,a\ndog,8,7\nemu,8,7\n");
    refused(spec_of("csv", "parts", ",fields=a,b,label=c"), LK_DATA_TEST, LK_E_DATA,
            "line 3: label 'emu' is none of the classes");
    refused(spec_of("csv", "p.csv", ",fields=mass"), LK_DATA_TEST, LK_E_IO, "no test part");
}

/* Broken lines are samples that others stand in for, all fields of one line. */
static void counts_broken_lines(void **state)
{
    (void)state;
    put_text("b.csv", "a,b,c\n1,2,x\n,4,x\n5,NA,y\n7,8\n9,10,z,1\n11,1e99,z\n\"1,2,x\n"
                      "13,14,\n15,nan,x\n17,18,w\n");
    struct lk_data *data =
        open_part(spec_of("csv", "b.csv", ",fields=a,b,label=c,max_bad=8"), LK_DATA_TRAIN);
    assert_int_equal(lk_data_info(data)->count, 10);
    assert_int_equal(lk_data_info(data)->classes, 2); /* those of whole lines */
    assert_int_equal(lk_data_bad(data), 8);
    for (int64_t i = 1; i < 9; i++) {
        expect_floats(data, 0, i, (float[]){17, 18}, 2);
        expect_ints(data, 1, i, (int32_t[]){0}, 1);
    }
    lk_data_close(data);
    refused(spec_of("csv", "b.csv", ",fields=a,b,label=c,max_bad=7"), LK_DATA_TRAIN, LK_E_DATA,
            "8 of 10 samples are broken, max_bad=7 allows 7 (--max-bad, or ',max_bad=' "
            "behind the data, allows more); the last is");
    static const char *const cases[][2] = {
        {"a,b,c\n1,2,x\n,4,x\n", "line 3: column 'a': there is nothing"},
        {"a,b,c\n1,2,x\n\n5,NA,y\n", "line 4: column 'b': 'NA' is no number"},
        {"a,b,c\n1,2,x\n7,8\n", "line 3: 2 columns, 3 are expected"},
        {"a,b,c\n1,2,x\n7,8,9,10\n", "line 3: more than 3 columns, 3 are expected"},
        {"a,b,c\n1,2,x\n\"7,8,9\n", "line 3: a quote that does not end"},
        {"a,b,c\n1,2,x\n\"7,8,9\n3,4,\"y\"\n", "line 3: a quote that does not end"},
        {"a,b,c\n1,2,\"x\n\ny\"\n7,8\n", "line 5: 2 columns, 3 are expected"},
        {"a,b,c\n1,2,x\n7,1e39,9\n", "column 'b': '1e39' is no number"},
        {"a,b,c\n1,2,x\n7,8,\n", "column 'c': there is nothing"},
        {"a,b,c\n1,2,\n", "no line can be read"},
        {"a,b,c\n", "no line behind the names"},
        {"a,b\n1,2\n", "has no column 'c'"},
        {"a,b,a,c\n1,2,3,4\n", "two columns 'a'"},
        {"\"a,b,c\n1,2,3\n", "line 1: a quote that does not end"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_text("one.csv", cases[i][0]);
        refused(spec_of("csv", "one.csv", ",fields=a,b,label=c"), LK_DATA_TRAIN, LK_E_DATA,
                cases[i][1]);
    }
    /* What has line breaks in its cells counts as one sample, and as all its lines. */
    put_text("q.csv",
             "a,\"b\r\nb\",c\r\n1,2,\"x\ny\"\r\n\"3\",4,\"\"\"\n,\n\"\"z\"\nNA,5,y\n6,7,y\n"
             "8,9,\"x\ny\"");
    data = open_part(spec_of("csv", "q.csv", ",fields=a,label=c,max_bad=1"), LK_DATA_TRAIN);
    assert_int_equal(lk_data_info(data)->count, 5);
    assert_int_equal(lk_data_bad(data), 1);
    assert_int_equal(lk_data_info(data)->classes, 3);
    assert_string_equal(lk_data_info(data)->class_names[0], "\"\n,\n\"z");
    assert_string_equal(lk_data_info(data)->class_names[1], "x\ny");
    expect_floats(data, 0, 1, (float[]){3}, 1);
    expect_floats(data, 0, 4, (float[]){8}, 1);
    lk_data_close(data);
    refused(spec_of("csv", "q.csv", ",fields=a,label=c,max_bad=0"), LK_DATA_TRAIN, LK_E_DATA,
            "line 8: column 'a': 'NA' is no number");
    scratch_put(scratch_path("one.csv"), "a,b\n1\0002\n", 8);
    refused(spec_of("csv", "one.csv", ",fields=a"), LK_DATA_TRAIN, LK_E_DATA, "that is zero");
}

static void refuses_wrong_options(void **state)
{
    (void)state;
    put_text("o.csv", "a,b,c\n1,2,3\n");
    static const char *const cases[][2] = {
        {",fields=a,,b", "empty name"},
        {",fields=a b:c", "cannot name a field"},
        {",fields=x:a,x:b", "the field 'x' is there twice"},
        {",fields=label:a,label=b", "the field 'label' is there twice"},
        {",fields=a,size=4x4", "size"},
        {",fields=a,label=b,label_type=words", "label_type"},
        {",fields=a,label=b+c,label_type=class", "2 columns is numbers"},
        {",fields=a,label=b,label_type=number,classes=x", "labels that are classes"},
        {",fields=a1:a,a2:a,a3:a,a4:a,a5:a,a6:a,a7:a,a8:a,a9:a,b1:a,b2:a,b3:a,b4:a,b5:a,b6:a,"
         "b7:a,b8:a",
         "more than 16 fields"},
        {",fields=a,max_bad=x", "max_bad 'x'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refused(spec_of("csv", "o.csv", cases[i][0]), LK_DATA_TRAIN, LK_E_ARGUMENT,
                cases[i][1]);
    struct lk_data *data =
        open_part(spec_of("csv", "o.csv", ",fields=a,label=b"), LK_DATA_TRAIN);
    uint8_t pixel;
    int32_t label;
    assert_refused(lk_data_read(data, (int64_t[]){0}, 1, &pixel, &label), LK_E_ARGUMENT,
                   lk_error_text(), "the data has no image; its fields are 'numbers', 'label'");
    lk_error_clear();
    lk_data_close(data);
}

/* --- TFRecord files -------------------------------------------------------------------- */

static void put_floats(struct bytes *example, const char *key, const float *values, int count,
                       bool is_packed)
{
    static struct bytes list, packed;
    list.used = packed.used = 0;
    for (int i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        if (!is_packed)
            put_varint(&list, 1 << 3 | 5);
        put_little(is_packed ? &packed : &list, bits, 4);
    }
    if (is_packed)
        put_field(&list, 1, packed.data, packed.used);
    put_feature(example, key, 2, &list);
}

static void put_ints(struct bytes *example, const char *key, const int64_t *values, int count,
                     bool is_packed)
{
    static struct bytes list, packed;
    list.used = packed.used = 0;
    for (int i = 0; i < count; i++) {
        if (!is_packed)
            put_varint(&list, 1 << 3);
        put_varint(is_packed ? &packed : &list, (uint64_t)values[i]);
    }
    if (is_packed)
        put_field(&list, 1, packed.data, packed.used);
    put_feature(example, key, 3, &list);
}

static struct bytes file, example;

/* A record of a penguin: culmen f32 [2], mass i64, tokens i64 [3], species, class. */
static void add_penguin(float depth, int64_t mass, int64_t token, const char *species,
                        int64_t class)
{
    const bool is_packed = class % 2 == 0;
    example.used = 0;
    put_floats(&example, "culmen", (float[]){depth, 2 * depth}, 2, is_packed);
    put_ints(&example, "mass", (int64_t[]){mass}, 1, is_packed);
    put_ints(&example, "tokens", (int64_t[]){token, token + 1, -token}, 3, is_packed);
    put_bytes_feature(&example, "species", species, strlen(species));
    put_ints(&example, "class", (int64_t[]){class}, 1, is_packed);
    put_ints(&example, "steps", (int64_t[]){class, class + 1}, 2, is_packed);
    put_record(&file, example.data, example.used);
}

static void put_penguins(const char *name)
{
    file.used = 0;
    add_penguin(1.5F, 100, 7, "Gentoo", 1);
    add_penguin(2.5F, 200, 8, "Adelie", 2);
    add_penguin(3.5F, 300, 9, "Gentoo", 3);
    scratch_put(scratch_path(name), file.data, file.used);
}

static void reads_features(void **state)
{
    (void)state;
    put_penguins("p.tfrecord");
    struct lk_data *data = open_part(
        spec_of("tfrecord", "p.tfrecord", ",fields=culmen,mass,tokens:tokens,label=species"),
        LK_DATA_TRAIN);
    assert_int_equal(lk_data_info(data)->count, 3);
    assert_string_equal(lk_data_info(data)->class_names[1], "Gentoo");
    expect_field(data, 0, "numbers", LK_F32, "3");
    const char *const *names = lk_data_info(data)->fields[0].element_names;
    assert_non_null(names);
    assert_string_equal(names[0], "culmen[0]");
    assert_string_equal(names[1], "culmen[1]");
    assert_string_equal(names[2], "mass");
    assert_null(lk_data_info(data)->fields[1].element_names);
    expect_field(data, 1, "tokens", LK_I32, "3");
    expect_field(data, 2, "label", LK_I32, "");
    expect_floats(data, 0, 2, (float[]){3.5F, 7, 300}, 3);
    expect_floats(data, 0, 1, (float[]){2.5F, 5, 200}, 3);
    expect_ints(data, 1, 1, (int32_t[]){8, 9, -8}, 3);
    expect_ints(data, 2, 1, (int32_t[]){0}, 1);
    expect_ints(data, 2, 0, (int32_t[]){1}, 1);
    lk_data_close(data);
    data = open_part(spec_of("tfrecord", "p.tfrecord", ",fields=tokens,label=steps,offset=-1"),
                     LK_DATA_TRAIN);
    expect_field(data, 0, "tokens", LK_I32, "3");
    expect_field(data, 1, "label", LK_I32, "2");
    assert_int_equal(lk_data_info(data)->classes, 4);
    expect_ints(data, 1, 2, (int32_t[]){2, 3}, 2);
    lk_data_close(data);
    data = open_part(
        spec_of("tfrecord", "p.tfrecord", ",fields=culmen,label=weight:mass,label_type=number"),
        LK_DATA_TRAIN);
    expect_field(data, 1, "weight", LK_F32, "");
    expect_floats(data, 1, 2, (float[]){300}, 1);
    lk_data_close(data);
}

static void refuses_features(void **state)
{
    (void)state;
    put_penguins("p.tfrecord");
    static const char *const cases[][2] = {
        {",fields=beak,label=class", "no numbers under the key 'beak'; there are 'culmen', "},
        {",fields=species,label=class", "the key 'species' holds bytes, no numbers"},
        {",fields=culmen,label=species,label_type=number", "holds bytes, no numbers"},
        {",fields=culmen,label=culmen,label_type=class", "no class"},
        {",fields=culmen,label=kind", "no label under the key 'kind'"},
        {",image=culmen,label=class",
         "the key 'culmen' holds 2 floats, no image; the option fields=culmen reads them as "
         "numbers"},
        {",image=tokens,label=class", "the key 'tokens' holds 3 whole numbers, no image"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refused(spec_of("tfrecord", "p.tfrecord", cases[i][0]), LK_DATA_TRAIN, LK_E_DATA,
                cases[i][1]);
}

/* Lists of another length, kind or value than those of the first record. */
static void counts_broken_records(void **state)
{
    (void)state;
    for (int kind = 0; kind < 6; kind++) {
        static const char *const said[] = {
            "record 1: the key 'culmen' holds 3 floats, expected are 2 floats",
            "the key 'culmen' holds 2 whole numbers, expected are 2 floats",
            "the key 'culmen' holds 0 nothing, expected are 2 floats",
            "number 1 of its list is not finite",
            "the key 'tokens': 2147483648, number 0 of its list, is no int32",
            "label -1 is not in 0.."};
        const float values[] = {1, kind == 3 ? (float)(1e300 * 1e10) : 2, 3};
        file.used = example.used = 0;
        add_penguin(1.5F, 100, 7, "Gentoo", 1);
        example.used = 0;
        if (kind == 1)
            put_ints(&example, "culmen", (int64_t[]){1, 2}, 2, true);
        else if (kind != 2)
            put_floats(&example, "culmen", values, kind == 0 ? 3 : 2, true);
        put_ints(&example, "tokens", (int64_t[]){kind == 4 ? (int64_t)1 << 31 : 1, 2, 3}, 3,
                 true);
        put_ints(&example, "class", (int64_t[]){kind == 5 ? -1 : 0}, 1, true);
        put_record(&file, example.data, example.used);
        scratch_put(scratch_path("b.tfrecord"), file.data, file.used);
        float numbers[2];
        int32_t label;
        const int64_t second = 1;
        const char *options = ",fields=numbers:culmen,tokens:tokens,label=class";
        struct lk_data *data =
            open_part(spec_of("tfrecord", "b.tfrecord", options), LK_DATA_TRAIN);
        void *to[LK_MOST_FIELDS] = {numbers, NULL, &label};
        assert_refused(lk_data_read_fields(data, &second, 1, to), LK_E_DATA, lk_error_text(),
                       said[kind]);
        lk_error_clear();
        lk_data_close(data);
        char more[200];
        snprintf(more, sizeof more, "%s,max_bad=1", options);
        data = open_part(spec_of("tfrecord", "b.tfrecord", more), LK_DATA_TRAIN);
        /* the field that is wanted is whole, its record is not */
        assert_int_equal(
            lk_data_read_fields(data, &second, 1, (void *[LK_MOST_FIELDS]){[2] = &label}),
            LK_OK);
        assert_int_equal(label, 1);
        assert_int_equal(lk_data_bad(data), 1);
        lk_data_close(data);
    }
}

static void reads_parts_of_records(void **state)
{
    (void)state;
    mkdir(scratch_path("records"), 0777);
    put_penguins("records/train-0");
    file.used = 0;
    add_penguin(9, 900, 1, "Gentoo", 0);
    scratch_put(scratch_path("records/test-0"), file.data, file.used);
    struct lk_data *data =
        open_part(spec_of("tfrecord", "records", ",fields=culmen,label=species"), LK_DATA_TEST);
    assert_int_equal(lk_data_info(data)->count, 1);
    assert_int_equal(lk_data_info(data)->classes, 2);
    expect_ints(data, 1, 0, (int32_t[]){1}, 1);
    lk_data_close(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_columns),
        cmocka_unit_test(reads_all_columns),
        cmocka_unit_test(reads_labels_of_all_kinds),
        cmocka_unit_test(reads_parts),
        cmocka_unit_test(counts_broken_lines),
        cmocka_unit_test(refuses_wrong_options),
        cmocka_unit_test(reads_features),
        cmocka_unit_test(refuses_features),
        cmocka_unit_test(counts_broken_records),
        cmocka_unit_test(reads_parts_of_records),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}

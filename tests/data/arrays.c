/* Samples of .npy files and of text: what is in the file with its label, or a refusal. */
#include "io/npy.h"
#include "npy.h"
#include <lockstep/data.h>

static const char *pair(const char *x, const char *y)
{
    static char spec[1100];
    snprintf(spec, sizeof spec, "npy:%s,%s", scratch_path(x), scratch_path(y));
    return spec;
}

static void refused(const char *spec, enum lk_data_part part, int code, const char *said)
{
    struct lk_data *data = NULL;
    assert_refused(lk_data_open_as(spec, part, NULL, &data), code, lk_error_text(), said);
    lk_error_clear();
}

static struct lk_data *open_part(const char *spec, enum lk_data_part part)
{
    struct lk_data *data = NULL;
    if (lk_data_open_as(spec, part, NULL, &data) != LK_OK)
        fail_msg("%s", lk_error_text());
    return data;
}

static void reads_arrays(void **state)
{
    (void)state;
    static const struct {
        const char *shape;
        int height, width, channels;
    } shapes[] = {{"(3, 2, 4)", 2, 4, 1}, {"(3, 2, 2, 2)", 2, 2, 2}, {"(3,8)", 1, 8, 1}};
    static const struct {
        const char *type;
        uint8_t bytes[24];
        size_t size;
    } labels[] = {{"<i8", {2, [8] = 0, [16] = 4}, 24},
                  {"|u1", {2, 0, 4}, 3},
                  {">i4", {0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 4}, 12},
                  {"<u2", {2, 0, 0, 0, 4, 0}, 6},
                  {"|i1", {2, 0, 4}, 3}};
    static const int wanted[] = {2, 0, 4};
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 5; j++) {
            put_npy("x.npy", "|u1", shapes[i].shape, NULL, 24);
            put_npy("y.npy", labels[j].type, "(3,)", labels[j].bytes, labels[j].size);
            struct lk_data *data = open_part(pair("x.npy", "y.npy"), LK_DATA_TEST_OR_ALL);
            const struct lk_data_info *info = lk_data_info(data);
            assert_int_equal(info->count, 3);
            assert_int_equal(info->classes, 5);
            assert_int_equal(info->height, shapes[i].height);
            assert_int_equal(info->width, shapes[i].width);
            assert_int_equal(info->channels, shapes[i].channels);
            assert_string_equal(info->name, "x.npy");
            for (int64_t n = 2; n >= 0; n--) {
                uint8_t sample[8];
                int32_t label;
                assert_int_equal(lk_data_read(data, &n, 1, sample, &label), LK_OK);
                assert_int_equal(label, wanted[n]);
                for (int k = 0; k < 8; k++)
                    assert_int_equal(sample[k], 8 * n + k);
            }
            lk_data_close(data);
        }
}

static void reads_a_folder_of_arrays(void **state)
{
    (void)state;
    char spec[600], classes[700];
    mkdir(scratch_path("arrays"), 0777);
    put_npy("arrays/x_train.npy", "|u1", "(3, 1, 2)", NULL, 6);
    put_npy("arrays/y_train.npy", "|u1", "(3,)", "\0\7\1", 3);
    put_npy("arrays/x_test.npy", "|u1", "(1, 1, 2)", NULL, 2);
    put_npy("arrays/y_test.npy", "|u1", "(1, 1)", "\3", 1);
    snprintf(spec, sizeof spec, "npy:%s", scratch_path("arrays"));
    struct lk_data *data = open_part(spec, LK_DATA_TEST);
    assert_int_equal(lk_data_info(data)->count, 1);
    assert_int_equal(lk_data_info(data)->classes, 8);
    lk_data_close(data);
    scratch_put(scratch_path("names.txt"), "a\nb\nc\nd\ne\nf\ng\nh\ni\n", 18);
    snprintf(classes, sizeof classes, "%s,classes=%s", spec, scratch_path("names.txt"));
    data = open_part(classes, LK_DATA_TRAIN);
    assert_int_equal(lk_data_info(data)->classes, 9);
    assert_string_equal(lk_data_info(data)->class_names[8], "i");
    lk_data_close(data);
    put_npy("arrays/y_test.npy", "|u1", "(1,)", "\11", 1);
    refused(spec, LK_DATA_TEST, LK_E_DATA, "labels of 0..7 are expected, found 9");
}

static void refuses_other_arrays(void **state)
{
    (void)state;
    put_npy("y.npy", "|u1", "(3,)", "\0\1\2", 3);
    static const struct {
        const char *type, *shape;
        size_t bytes;
        int code;
        const char *said;
    } cases[] = {
        {"<f2", "(3, 2)", 12, LK_E_UNSUPPORTED, "type f2; expected uint8"},
        {"|b1", "(3, 2)", 6, LK_E_UNSUPPORTED, "type b1; expected uint8"},
        {"<i3", "(3, 1)", 9, LK_E_UNSUPPORTED, "type i3; expected uint8"},
        {"<f4", "(3, 1, 1, 1, 1, 1)", 12, LK_E_SHAPE, "6 axes"},
        {"<f4", "(3, 0)", 0, LK_E_SHAPE, "axis 1 has 0"},
        {"|u1", "(3,)", 3, LK_E_SHAPE, "1 axes"},
        {"|u1", "(3, 1, 1, 1, 1)", 3, LK_E_SHAPE, "5 axes"},
        {"|u1", "(3, 2, 0)", 0, LK_E_SHAPE, "axis 2 has 0"},
        {"|u1", "(3, 99999)", 0, LK_E_DATA, "bytes are expected, found"},
        {"|u1", "(0, 2)", 0, LK_E_DATA, "no sample"},
        {"|u1", "(4, 2)", 8, LK_E_DATA, "4 samples, "},
        {"|u1", "(3, 2)", 7, LK_E_DATA, "bytes are expected, found"},
        {"|u1", "(3)", 3, LK_E_DATA, "broken header"},
        {"|u1", "(3 2)", 6, LK_E_DATA, "broken header"},
        {"|u1", "(3, -2)", 6, LK_E_DATA, "broken header"},
        {"|u1", "(9223372036854775807, 9)", 6, LK_E_DATA, "broken header"},
        {"|u1", "(4611686018427387904, 1)", 6, LK_E_DATA, "broken header"},
        {"|u1", "(99999999999999999999,)", 6, LK_E_DATA, "broken header"},
        {"u1", "(3, 2)", 6, LK_E_DATA, "broken header"},
        {"|u0", "(3, 2)", 6, LK_E_DATA, "broken header"},
    };
    for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
        put_npy("x.npy", cases[i].type, cases[i].shape, NULL, cases[i].bytes);
        refused(pair("x.npy", "y.npy"), LK_DATA_TRAIN, cases[i].code, cases[i].said);
    }
    put_npy("x.npy", "|u1", "(3, 2)", NULL, 6);
    refused(pair("x.npy", "y.npy"), LK_DATA_TEST, LK_E_IO, "no test part");
    put_npy("y.npy", "<c8", "(3,)", NULL, 24);
    refused(pair("x.npy", "y.npy"), LK_DATA_TRAIN, LK_E_UNSUPPORTED,
            "whole numbers, or floats");
    put_npy("y.npy", "|i1", "(3,)", "\0\377\2", 3);
    refused(pair("x.npy", "y.npy"), LK_DATA_TRAIN, LK_E_DATA, "label -1 of sample 1");
    put_npy("y.npy", "<u8", "(3,)", "\0\0\0\0\0\0\0\200\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 24);
    refused(pair("x.npy", "y.npy"), LK_DATA_TRAIN, LK_E_DATA, "label 9223372036854775807");
    scratch_put(scratch_path("y.npy"), "PK\3\4 an archive", 15);
    refused(pair("x.npy", "y.npy"), LK_DATA_TRAIN, LK_E_DATA, "does not begin with");
    refused("npy:one.npy", LK_DATA_TRAIN, LK_E_ARGUMENT, "expected npy:X.npy,Y.npy");
}

static void parses_headers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum lk_status status;
    } cases[] = {
        {"{'shape':(2,3),'fortran_order':False,'descr':'<i2'}", LK_OK},
        {"{\"descr\": \"<i2\", 'fortran_order': False, 'shape': (2, 3,), }  \n", LK_OK},
        {"{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3)}", LK_E_UNSUPPORTED},
        {"{'descr': [('a', '<i2')], 'fortran_order': False, 'shape': (2, 3)}",
         LK_E_UNSUPPORTED},
        {"{'descr': '<i2', 'fortran_order': False}", LK_E_DATA},
        {"{'descr': '<i2', 'descr': '<i2', 'fortran_order': False, 'shape': (2, 3)}",
         LK_E_DATA},
        {"{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3)} x", LK_E_DATA},
        {"{'descr': '<i2', 'fortran_order': 0, 'shape': (2, 3)}", LK_E_DATA},
        {"{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), 'more': 1}", LK_E_DATA},
        {"", LK_E_DATA},
    };
    for (int version = 1; version <= 3; version++)
        for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
            uint8_t file[512] = "\x93NUMPY";
            struct lk_npy npy = {0};
            const size_t length = strlen(cases[i].text), start = version == 1 ? 10 : 12;
            file[6] = (uint8_t)version;
            file[8] = (uint8_t)length;
            memcpy(file + start, cases[i].text, length);
            const enum lk_status status =
                lk_npy_parse(file, start + length, (int64_t)(start + length + 12), "a", &npy);
            assert_int_equal(status, cases[i].status);
            lk_error_clear();
            for (size_t cut = 0; cut < start + length; cut++) {
                assert_int_not_equal(lk_npy_parse(file, cut, (int64_t)cut, "a", &npy), LK_OK);
                lk_error_clear();
            }
            if (status == LK_OK) {
                assert_int_equal(npy.count, 6);
                assert_int_equal(npy.offset, start + length);
                assert_true(npy.kind == 'i' && npy.size == 2 && !npy.is_big_endian);
            }
        }
}

static void put_text(const char *name, const char *text)
{
    scratch_put(scratch_path(name), text, strlen(text));
}

static const char *text_spec(const char *name, const char *more)
{
    static char spec[700];
    snprintf(spec, sizeof spec, "text:%s%s", scratch_path(name), more);
    return spec;
}

static void expect_text(const struct lk_data *data, int64_t index, const char *text, int label)
{
    uint8_t sample[64], wanted[64] = {0};
    int32_t found = -1;
    const size_t length = (size_t)lk_data_info(data)->width;
    assert_int_equal(lk_data_read(data, &index, 1, sample, &found), LK_OK);
    memcpy(wanted, text, strlen(text) < length ? strlen(text) : length);
    assert_memory_equal(sample, wanted, length);
    assert_int_equal(found, label);
}

static void reads_text(void **state)
{
    (void)state;
    put_text("a.txt", "dog\tbarks loudly\r\n\ncat\tpurrs\tand \xe4\ndog\tx");
    struct lk_data *data = open_part(text_spec("a.txt", ",length=8"), LK_DATA_TRAIN);
    const struct lk_data_info *info = lk_data_info(data);
    assert_int_equal(info->count, 3);
    assert_int_equal(info->classes, 2);
    assert_string_equal(info->class_names[0], "cat");
    assert_true(info->height == 1 && info->width == 8 && info->channels == 1);
    expect_text(data, 0, "barks lo", 1);
    expect_text(data, 1, "purrs\tan", 0);
    expect_text(data, 2, "x", 1);
    lk_data_close(data);
    put_text("n.txt", "3\tthree\n0\tzero\n");
    const struct lk_data_options wanted = {.height = 1, .width = 6, .channels = 1};
    assert_int_equal(
        lk_data_open_as(text_spec("n.txt", ""), LK_DATA_TEST_OR_ALL, &wanted, &data), LK_OK);
    assert_int_equal(lk_data_info(data)->classes, 4);
    assert_null(lk_data_info(data)->class_names);
    expect_text(data, 0, "three", 3);
    lk_data_close(data);
    data = open_part(text_spec("n.txt", ""), LK_DATA_TRAIN);
    assert_int_equal(lk_data_info(data)->width, 128);
    lk_data_close(data);
}

static void reads_a_folder_of_text(void **state)
{
    (void)state;
    mkdir(scratch_path("texts"), 0777);
    put_text("texts/train.txt", "c\tone\na\ttwo\nb\tthree\n");
    put_text("texts/val.txt", "c\tfour\n");
    struct lk_data *data = open_part(text_spec("texts", ",length=5"), LK_DATA_TEST);
    assert_int_equal(lk_data_info(data)->classes, 3);
    expect_text(data, 0, "four", 2); /* as train.txt numbers them */
    lk_data_close(data);
    put_text("texts/val.txt", "d\tfour\n");
    refused(text_spec("texts", ""), LK_DATA_TEST, LK_E_DATA, "line 1: 'd' is none of");
    put_text("texts/train.txt", "0\tone\n1\ttwo\n");
    put_text("texts/val.txt", "2\tthree\n");
    refused(text_spec("texts", ""), LK_DATA_TEST, LK_E_DATA, "labels of 0..1 are expected");
}

static void refuses_other_text(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"", "has no line"},
        {"\n\n", "has no line"},
        {"a\tb\nno tab\n", "line 2: expected a label"},
        {"\ttext\n", "line 1: expected a label"},
        {"a\t\n", "line 1: expected a label"},
        {"a\nb\tc\n", "line 1: expected a label"},
    };
    for (int i = 0; i < 6; i++) {
        put_text("bad.txt", cases[i][0]);
        refused(text_spec("bad.txt", ""), LK_DATA_TRAIN, LK_E_DATA, cases[i][1]);
    }
    scratch_put(scratch_path("bad.txt"), "a\tb\0c\n", 6);
    refused(text_spec("bad.txt", ""), LK_DATA_TRAIN, LK_E_DATA, "a byte that is zero, at 3");
    put_text("bad.txt", "a\tb\n");
    refused(text_spec("bad.txt", ""), LK_DATA_TEST, LK_E_IO, "no test part");
    refused(text_spec("bad.txt", ",length=0x"), LK_DATA_TRAIN, LK_E_ARGUMENT, "length");
    refused(text_spec("bad.txt", ",size=9x9"), LK_DATA_TRAIN, LK_E_ARGUMENT, "size");
    refused("text:/nowhere/x.txt", LK_DATA_TRAIN, LK_E_IO, "nowhere");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_arrays),         cmocka_unit_test(reads_a_folder_of_arrays),
        cmocka_unit_test(refuses_other_arrays), cmocka_unit_test(parses_headers),
        cmocka_unit_test(reads_text),           cmocka_unit_test(reads_a_folder_of_text),
        cmocka_unit_test(refuses_other_text),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}

/* Files of named arrays by their one door: safetensors, every type of number, refusals. */
#include "io/arrays/arrays.h"

#include "scratch.h"

#include <math.h>

static void check(enum lk_status status)
{
    if (status != LK_OK)
        fail_msg("%s", lk_error_text());
}

static void refused(int status, int code, const char *said)
{
    assert_refused(status, code, lk_error_text(), said);
    lk_error_clear();
}

static const uint64_t huge = UINT64_MAX;
static const int64_t low[] = {INT64_MIN, 3};
static const uint32_t words[] = {UINT32_MAX, 5};
static const int32_t ints[] = {INT32_MIN, 5};
static const uint16_t shorts[] = {65535, 6};
static const int16_t signeds[] = {-32768, 6};
static const uint16_t halves[] = {0x3c00, 0xc000, 0x0001, 0x7bff, 0xfc00};
static const uint16_t brains[] = {0x3f80, 0xc049};
static const uint8_t small[] = {0, 1, 200};
static const float floats[] = {1.25f, -3e38f};
static const double doubles[] = {0.1, -1e-300};
/* F8: 1, -1.75, the least, the largest, and what is beyond it. */
static const uint8_t e4m3[] = {0x38, 0xbe, 0x01, 0x7e, 0x7f};
static const uint8_t e5m2[] = {0x3c, 0xbf, 0x01, 0x7b, 0x7c};

#define A(type_, count_, data_)                                                                \
    {                                                                                          \
        .name = #type_, .type = LK_SAFETENSOR_##type_, .rank = 1, .shape = {count_},           \
        .data = data_                                                                          \
    }

static const struct {
    struct lk_safetensor array;
    double values[5];
} types[] = {
    {A(U64, 1, &huge), {18446744073709551616.0}},
    {A(I64, 2, low), {-9223372036854775808.0, 3}},
    {A(F64, 2, doubles), {0.1, -1e-300}},
    {A(U32, 2, words), {4294967295.0, 5}},
    {A(I32, 2, ints), {-2147483648.0, 5}},
    {A(F32, 2, floats), {1.25, -3e38f}},
    {A(U16, 2, shorts), {65535, 6}},
    {A(I16, 2, signeds), {-32768, 6}},
    {A(F16, 5, halves), {1, -2, 0x1p-24, 65504, -INFINITY}},
    {A(BF16, 2, brains), {1, -3.140625}},
    {A(U8, 3, small), {0, 1, 200}},
    {A(I8, 3, small), {0, 1, -56}},
    {A(BOOL, 3, small), {0, 1, 1}},
    {A(F8_E4M3, 5, e4m3), {1, -1.75, 0x1p-9, 448, NAN}},
    {A(F8_E5M2, 5, e5m2), {1, -1.75, 0x1p-16, 57344, INFINITY}},
};
enum { TYPES = sizeof types / sizeof types[0] };

static void same(double found, double expected)
{
    if (found != expected && !(isnan(found) && isnan(expected)))
        fail_msg("found %a, expected %a", found, expected);
}

static void reads_every_type(void **state)
{
    (void)state;
    struct lk_arrays *file;
    struct lk_safetensor all[TYPES];
    for (int i = 0; i < TYPES; i++)
        all[i] = types[i].array;
    check(lk_safetensors_write(scratch_path("types"), all, TYPES,
                               &(struct lk_safetensors_text){"step", "12"}, 1));
    check(lk_arrays_open(scratch_path("types"), &file));
    assert_int_equal(file->format, LK_ARRAYS_SAFETENSORS);
    assert_int_equal(file->count, TYPES);
    assert_string_equal(lk_arrays_text(file, "step"), "12");
    assert_null(lk_arrays_text(file, "steps"));
    assert_null(lk_arrays_find(file, "F7"));
    for (int i = 0; i < TYPES; i++) {
        double wide[5];
        float narrow[5];
        const struct lk_array *array = lk_arrays_find(file, types[i].array.name);
        assert_ptr_equal(array, &file->arrays[i]);
        assert_int_equal(array->type, types[i].array.type);
        assert_int_equal(array->rank, 1);
        assert_int_equal(array->count, types[i].array.shape[0]);
        check(lk_arrays_read(file, array, LK_SAFETENSOR_F64, wide));
        check(lk_arrays_read(file, array, LK_SAFETENSOR_F32, narrow));
        for (int k = 0; k < array->count; k++) {
            same(wide[k], types[i].values[k]);
            same(narrow[k], (float)types[i].values[k]);
        }
        refused(lk_arrays_read(file, array, LK_SAFETENSOR_F16, wide), LK_E_ARGUMENT,
                "read as F32 or F64, not as F16");
    }
    lk_arrays_close(file);
    lk_arrays_close(NULL);
}

/* A header of 640 bytes is told by the bytes 80 02, with which pickles begin. */
static void opens_headers_of_any_length(void **state)
{
    (void)state;
    const struct lk_safetensor one = A(F32, 2, floats);
    char value[1024];
    int likened = 0;
    for (int length = 1; length < 1000; length += 7) {
        unsigned char begin[2] = {0};
        struct lk_arrays *file;
        memset(value, 'x', sizeof value);
        value[length] = '\0';
        check(lk_safetensors_write(scratch_path("long"), &one, 1,
                                   &(struct lk_safetensors_text){"text", value}, 1));
        FILE *stream = fopen(scratch_path("long"), "rb");
        assert_int_equal(fread(begin, 1, sizeof begin, stream), sizeof begin);
        fclose(stream);
        likened += begin[0] == 0x80 && begin[1] == 2;
        check(lk_arrays_open(scratch_path("long"), &file));
        lk_arrays_close(file);
    }
    assert_true(likened > 0);
}

static void refuses_other_files(void **state)
{
    (void)state;
    struct lk_arrays *file = NULL;
    refused(lk_arrays_open(scratch_path("absent"), &file), LK_E_IO, "No such file");
    refused(lk_arrays_open(scratch, &file), LK_E_IO, "not a file");
    scratch_put(scratch_path("page"), "<!DOCTYPE html>", 15);
    refused(lk_arrays_open(scratch_path("page"), &file), LK_E_DATA,
            "page': begins like no file of weights: expected safetensors, HDF5 (.h5), a zip");
    scratch_put(scratch_path("empty"), "", 0);
    refused(lk_arrays_open(scratch_path("empty"), &file), LK_E_DATA, "no file of weights");
    scratch_put(scratch_path("header"), "\20\0\0\0\0\0\0\0{", 9);
    refused(lk_arrays_open(scratch_path("header"), &file), LK_E_DATA, "header of 16 bytes");
    assert_null(file);
}

static void notices_a_file_cut_while_open(void **state)
{
    (void)state;
    struct lk_arrays *file;
    float data[2];
    const struct lk_safetensor one = A(F32, 2, floats);
    check(lk_safetensors_write(scratch_path("cut"), &one, 1, NULL, 0));
    check(lk_arrays_open(scratch_path("cut"), &file));
    assert_int_equal(truncate(scratch_path("cut"), 20), 0);
    refused(lk_arrays_read(file, &file->arrays[0], LK_SAFETENSOR_F32, data), LK_E_IO,
            "became shorter");
    lk_arrays_close(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_every_type),
        cmocka_unit_test(opens_headers_of_any_length),
        cmocka_unit_test(refuses_other_files),
        cmocka_unit_test(notices_a_file_cut_while_open),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}

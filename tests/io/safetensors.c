/* safetensors: round trip, exact bytes, refusals of malformed files, damage, Python's reader.
 */
#include "io/safetensors.h"

#include "base/random.h"
#include "scratch.h"

#include <lockstep/status.h>

static const double doubles[] = {1.5, -2};
static const float floats[] = {1, 2, 3};
static const uint8_t bytes[] = {7, 8, 9};
static const struct lk_safetensor arrays[] = {
    {.name = "a", .type = LK_SAFETENSOR_F64, .rank = 1, .shape = {2}, .data = doubles},
    {.name = "b", .type = LK_SAFETENSOR_F32, .rank = 2, .shape = {1, 3}, .data = floats},
    {.name = "c", .type = LK_SAFETENSOR_U8, .rank = 1, .shape = {3}, .data = bytes},
};
static const struct lk_safetensors_text metadata[] = {{"step", "12"}};

/* What safetensors 0.8.0 for Python writes for these arrays. */
static const char golden[] =
    "\xc8\0\0\0\0\0\0\0"
    "{\"__metadata__\":{\"step\":\"12\"},\"a\":{\"dtype\":\"F64\",\"shape\":[2],"
    "\"data_offsets\":[0,16]},\"b\":{\"dtype\":\"F32\",\"shape\":[1,3],\"data_offsets\":[16,28]"
    "},\"c\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[28,31]}}     "
    "\0\0\0\0\0\0\xf8\x3f\0\0\0\0\0\0\0\xc0"
    "\0\0\x80\x3f\0\0\0\x40\0\0\x40\x40"
    "\7\10\11";
enum { GOLDEN_BYTES = sizeof golden - 1 };

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

static void writes_the_reference_bytes(void **state)
{
    (void)state;
    char found[GOLDEN_BYTES + 1];
    check(lk_safetensors_write(scratch_path("golden"), arrays, 3, metadata, 1));
    FILE *file = fopen(scratch_path("golden"), "rb");
    assert_non_null(file);
    assert_int_equal(fread(found, 1, sizeof found, file), GOLDEN_BYTES);
    fclose(file);
    assert_memory_equal(found, golden, GOLDEN_BYTES);
}

static void reads_back(void **state)
{
    (void)state;
    struct lk_safetensors *file;
    static const float scalar = 0.25f;
    static const struct lk_safetensor more[] = {
        {.name = "empty", .type = LK_SAFETENSOR_I64, .rank = 2, .shape = {0, 5}},
        {.name = "name \"with\" \xc3\xa4 / and \n",
         .type = LK_SAFETENSOR_U8,
         .rank = 8,
         .shape = {1, 1, 3, 1, 1, 1, 1, 1},
         .data = bytes},
        {.name = "bits", .type = LK_SAFETENSOR_U8, .rank = 1, .shape = {1}, .data = bytes},
        {.name = "scalar", .type = LK_SAFETENSOR_F32, .data = &scalar},
    };
    static const struct lk_safetensors_text texts[] = {{"z", ""}, {"a", "model: \"x\"\n"}};
    check(lk_safetensors_write(scratch_path("more"), more, 4, texts, 2));
    check(lk_safetensors_open(scratch_path("more"), &file));
    assert_int_equal(file->count, 4);
    assert_int_equal(file->texts, 2);
    assert_string_equal(file->metadata[0].key, "z");
    assert_string_equal(lk_safetensors_text(file, "a"), texts[1].value);
    assert_null(lk_safetensors_text(file, "b"));
    for (int i = 0; i < 4; i++) {
        char data[8];
        const struct lk_safetensor *found = lk_safetensors_find(file, more[i].name);
        assert_ptr_equal(found, &file->tensors[i]);
        assert_int_equal(found->type, more[i].type);
        assert_int_equal(found->rank, more[i].rank);
        assert_memory_equal(found->shape, more[i].shape, sizeof found->shape);
        assert_int_equal(found->bytes, lk_safetensor_bytes(&more[i]));
        check(lk_safetensors_read(file, found, data));
        if (found->bytes)
            assert_memory_equal(data, more[i].data, found->bytes);
    }
    assert_null(lk_safetensors_find(file, "absent"));
    lk_safetensors_close(file);
    check(lk_safetensors_write(scratch_path("more"), NULL, 0, NULL, 0));
    check(lk_safetensors_open(scratch_path("more"), &file));
    assert_int_equal(file->count + file->texts, 0);
    lk_safetensors_close(file);
    lk_safetensors_close(NULL);
}

static void refuses_to_write(void **state)
{
    (void)state;
    static const struct {
        struct lk_safetensor second;
        const char *said;
    } cases[] = {
        {{.name = "a", .type = LK_SAFETENSOR_F64}, "'a' is taken"},
        {{.name = "__metadata__", .type = LK_SAFETENSOR_F64}, "'__metadata__' is taken"},
        {{.name = "\xff", .type = LK_SAFETENSOR_F64}, "not UTF-8"},
        {{.name = "b", .type = LK_SAFETENSOR_U8, .rank = 1, .shape = {-1}}, "cannot be"},
        {{.name = "b", .type = LK_SAFETENSOR_U8, .rank = 9}, "cannot be"},
        {{.name = "b", .type = LK_SAFETENSOR_U8, .rank = 2, .shape = {INT64_MAX, 3}},
         "cannot be"},
        {{.name = "b", .type = LK_SAFETENSOR_U8, .rank = 1, .shape = {INT64_MAX}}, "cannot be"},
    };
    const char *path = scratch_path("unwritten");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct lk_safetensor two[] = {arrays[0], cases[i].second};
        refused(lk_safetensors_write(path, two, 2, NULL, 0), LK_E_ARGUMENT, cases[i].said);
    }
    const struct lk_safetensor turned[] = {arrays[2], arrays[1]};
    refused(lk_safetensors_write(path, turned, 2, NULL, 0), LK_E_ARGUMENT,
            "'b' of F32 would lie at byte 3: larger elements go first");
    const struct lk_safetensors_text wrong = {"key", "\xff"};
    refused(lk_safetensors_write(path, arrays, 1, &wrong, 1), LK_E_ARGUMENT,
            "metadata 'key' is not UTF-8");
    struct stat about;
    assert_int_not_equal(stat(path, &about), 0);
    refused(lk_safetensors_write(scratch_path("nowhere/file"), arrays, 3, NULL, 0), LK_E_IO,
            "No such file");
}

/* A file of this header, its length counted, and `data` bytes behind it. */
static void put(const char *path, const char *header, size_t data)
{
    static char file[4096];
    const uint64_t length = strlen(header);
    memset(file, 0, sizeof file);
    memcpy(file, &length, sizeof length);
    memcpy(file + sizeof length, header, length);
    scratch_put(path, file, sizeof length + length + data);
}

#define ENTRY(type, shape, offsets)                                                            \
    "{\"dtype\":\"" type "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static void refuses_malformed_headers(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        size_t data;
        const char *said;
    } cases[] = {
        {"", 0, "does not begin with '{'"},
        {" {}", 0, "does not begin with '{'"},
        {"[]", 0, "does not begin with '{'"},
        {"{", 0, "'}' expected"},
        {"{} x", 0, "end of file expected"},
        {"{\"a\":1}", 0, "array 'a': expected dtype, shape and data_offsets"},
        {"{\"a\":" ENTRY("F32", "[1]", "[0,4]") ",\"a\":" ENTRY("F32", "[1]", "[0,4]") "}", 4,
         "duplicate object key"},
        {"{\"__metadata__\":{\"k\":\"v\",\"k\":\"v\"}}", 0, "duplicate object key"},
        {"{\"__metadata__\":[]}", 0, "__metadata__ is not an object"},
        {"{\"__metadata__\":{\"k\":1}}", 0, "__metadata__ 'k' is not a text"},
        {"{\"a\":{\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "dtype is missing"},
        {"{\"a\":" ENTRY("F33", "[1]", "[0,4]") "}", 4, "dtype 'F33' is not known"},
        {"{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, "shape is missing"},
        {"{\"a\":" ENTRY("F32", "[-1]", "[0,4]") "}", 4, "shape: number 0 is not a whole"},
        {"{\"a\":" ENTRY("F32", "[1,1.0]", "[0,4]") "}", 4, "shape: number 1 is not a whole"},
        {"{\"a\":" ENTRY("F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]") "}", 4, "at most 8"},
        {"{\"a\":" ENTRY("F32", "[99999999999999999999]", "[0,4]") "}", 4, "too big integer"},
        {"{\"a\":" ENTRY("F32", "[4611686018427387904,4]", "[0,0]") "}", 0,
         "product of the shape is too large"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "data_offsets is missing"},
        {"{\"a\":" ENTRY("F32", "[1]", "[4]") "}", 4, "data_offsets has 1 numbers"},
        {"{\"a\":" ENTRY("F32", "[1]", "[0,4,8]") "}", 4, "data_offsets has 3 numbers"},
        {"{\"a\":" ENTRY("F32", "[1]", "[4,0]") "}", 4, "data_offsets [4, 0] in 4 bytes"},
        {"{\"a\":" ENTRY("F32", "[2]", "[0,8]") "}", 7, "data_offsets [0, 8] in 7 bytes"},
        {"{\"a\":" ENTRY("F32", "[2]", "[0,9223372036854775807]") "}", 8, "in 8 bytes"},
        {"{\"a\":" ENTRY("F32", "[2]", "[0,4]") "}", 4, "4 bytes; shape and dtype give 8"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],\"x\":0}}", 1,
         "4 keys"},
        {"{\"a\":" ENTRY("U8", "[2]", "[0,2]") ",\"b\":" ENTRY("U8", "[2]", "[1,3]") "}", 3,
         "array 'b' begins at byte 1; the last one reaches beyond it"},
        {"{\"a\":" ENTRY("U8", "[2]", "[0,2]") ",\"b\":" ENTRY("U8", "[2]", "[0,2]") "}", 2,
         "the last one reaches beyond it"},
        {"{\"a\":" ENTRY("U8", "[2]", "[0,2]") ",\"b\":" ENTRY("U8", "[2]", "[3,5]") "}", 5,
         "array 'b' begins at byte 3; the last one ends before it"},
        {"{\"a\":" ENTRY("U8", "[2]", "[1,3]") "}", 3, "begins at byte 1"},
        {"{\"a\":" ENTRY("U8", "[2]", "[0,2]") "}", 3,
         "3 bytes of data, of which the arrays are 2"},
        {"{\"\xff\":" ENTRY("U8", "[2]", "[0,2]") "}", 2, "unable to decode byte 0xff"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct lk_safetensors *file = NULL;
        put(scratch_path("bad"), cases[i].header, cases[i].data);
        const enum lk_status status = lk_safetensors_open(scratch_path("bad"), &file);
        assert_non_null(strstr(lk_error_text(), scratch_path("bad")));
        refused(status, LK_E_DATA, cases[i].said);
        assert_null(file);
    }
}

/* Many small values in a header take far more memory than its text. */
static void refuses_a_header_of_many_values(void **state)
{
    (void)state;
    enum { BYTES = 1 << 20 };
    struct lk_safetensors *file = NULL;
    const uint64_t length = BYTES;
    char *bad = malloc(sizeof length + BYTES);
    assert_non_null(bad);
    memcpy(bad, &length, sizeof length);
    memcpy(bad + sizeof length, "{\"a,[\\\",[\":[", 12);
    for (int i = 12; i < BYTES; i++)
        bad[sizeof length + (size_t)i] = i % 2 ? ',' : '0';
    scratch_put(scratch_path("many"), bad, sizeof length + BYTES);
    free(bad);
    refused(lk_safetensors_open(scratch_path("many"), &file), LK_E_DATA,
            "header, byte 262153: more than 131072 values");
    assert_null(file);
}

static void refuses_other_files(void **state)
{
    (void)state;
    struct lk_safetensors *file = NULL;
    const char *path = scratch_path("other");
    refused(lk_safetensors_open(scratch_path("absent"), &file), LK_E_IO, "No such file");
    refused(lk_safetensors_open(scratch, &file), LK_E_IO, "not a file");
    scratch_put(path, golden, 7);
    refused(lk_safetensors_open(path, &file), LK_E_DATA, "7 bytes; a safetensors file begins");
    scratch_put(path, golden, 8 + 0xc7);
    refused(lk_safetensors_open(path, &file), LK_E_DATA,
            "header of 200 bytes in a file of 207");
    scratch_put(path, "\1\xe1\xf5\5\0\0\0\0{}", 10);
    refused(lk_safetensors_open(path, &file), LK_E_DATA, "at most 20971520");
    scratch_put(path, "\xff\xff\xff\xff\xff\xff\xff\xff{}", 10);
    refused(lk_safetensors_open(path, &file), LK_E_DATA, "at most 20971520");
    scratch_put(path, golden, GOLDEN_BYTES - 1);
    refused(lk_safetensors_open(path, &file), LK_E_DATA, "[28, 31] in 30 bytes");
    assert_null(file);
}

static void notices_a_file_cut_while_open(void **state)
{
    (void)state;
    struct lk_safetensors *file;
    uint8_t data[8];
    scratch_put(scratch_path("cut"), golden, GOLDEN_BYTES);
    check(lk_safetensors_open(scratch_path("cut"), &file));
    assert_int_equal(truncate(scratch_path("cut"), GOLDEN_BYTES - 1), 0);
    refused(lk_safetensors_read(file, &file->tensors[2], data), LK_E_IO, "became shorter");
    lk_safetensors_close(file);
}

/* A damaged file is refused as malformed or read within its own bytes. */
static void survives_damage(void **state)
{
    (void)state;
    int refusals = 0, opened = 0;
    for (uint64_t i = 0; i < 4000; i++) {
        char damaged[GOLDEN_BYTES];
        struct lk_safetensors *file;
        memcpy(damaged, golden, GOLDEN_BYTES);
        const struct lk_random4 r = lk_random(9, LK_RANDOM_DATA, 0, i);
        damaged[r.v[0] % GOLDEN_BYTES] ^= (char)(1 << r.v[1] % 8);
        if (i % 2)
            damaged[r.v[2] % GOLDEN_BYTES] = "09{}[],\":-e\\\0"[r.v[1] / 8 % 13];
        remove(scratch_path("damaged")); /* some file systems sync what is overwritten */
        scratch_put(scratch_path("damaged"), damaged,
                    i % 8 ? GOLDEN_BYTES : r.v[3] % GOLDEN_BYTES);
        const enum lk_status status = lk_safetensors_open(scratch_path("damaged"), &file);
        if (status != LK_OK) {
            refused(status, LK_E_DATA, "damaged");
            refusals++;
            continue;
        }
        for (int t = 0; t < file->count; t++) {
            assert_true(file->tensors[t].bytes <= GOLDEN_BYTES);
            char *data = malloc(file->tensors[t].bytes + 1);
            check(lk_safetensors_read(file, &file->tensors[t], data));
            free(data);
        }
        lk_safetensors_close(file);
        opened++;
    }
    assert_true(refusals > 1000);
    assert_true(opened > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_the_reference_bytes),
        cmocka_unit_test(reads_back),
        cmocka_unit_test(refuses_to_write),
        cmocka_unit_test(refuses_malformed_headers),
        cmocka_unit_test(refuses_a_header_of_many_values),
        cmocka_unit_test(refuses_other_files),
        cmocka_unit_test(notices_a_file_cut_while_open),
        cmocka_unit_test(survives_damage),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}

/* Fields on their way: through batches, threads that read ahead and caches, in the order in
 * which images come; wanted ones alone, arrays of all types. */
#include "data/batches/prefetch.h"
#include "npy.h"
#include "tables.h"
#include <stdatomic.h>

enum { ROWS = 203, LENGTH = 6 };

/* Texts whose bytes tell their number: label i % 3, text i in three letters and i % 7 more. */
static void put_texts(void)
{
    static char text[ROWS * 32];
    size_t used = 0;
    for (int i = 0; i < ROWS; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%d\t%03d%.*s\n", i % 3, i,
                                 i % 7, "abcdefg");
    put_text("texts.txt", text);
}

/* What field f of a text's sample is. */
static void expect_text(int64_t i, const uint8_t *image, int32_t label, const int32_t *tokens,
                        int32_t length)
{
    char text[16];
    snprintf(text, sizeof text, "%03d%.*s", (int)i, (int)(i % 7), "abcdefg");
    const int bytes = (int)strlen(text) < LENGTH ? (int)strlen(text) : LENGTH;
    assert_int_equal(label, i % 3);
    if (tokens)
        assert_int_equal(length, bytes);
    for (int k = 0; k < LENGTH; k++) {
        if (image)
            assert_int_equal(image[k], k < bytes ? text[k] : 0);
        if (tokens)
            assert_int_equal(tokens[k], k < bytes ? text[k] : 0);
    }
}

static void text_has_tokens(void **state)
{
    (void)state;
    put_texts();
    struct lk_data *data = open_part(spec_of("text", "texts.txt", ",length=6"), LK_DATA_TRAIN);
    expect_field(data, 0, "image", LK_U8, "1,6,1");
    expect_field(data, 1, "label", LK_I32, "");
    expect_field(data, 2, "tokens", LK_I32, "6");
    expect_field(data, 3, "tokens.length", LK_I32, "");
    const struct lk_field *fields = lk_data_info(data)->fields;
    assert_int_equal(fields[2].length, 3);
    assert_int_equal(fields[0].length, -1);
    assert_int_equal(fields[2].classes, 256);
    assert_int_equal(lk_data_info(data)->classes, 3);
    assert_int_equal(lk_data_info(data)->width, 6);
    lk_data_close(data);
}

/* All orders of batches, with and without threads: fields agree with what the same order of
 * lk_data_order() gives, and with lk_batches_read(). */
static void batches_carry_fields(void **state)
{
    (void)state;
    enum { SIZE = 20, EPOCHS = 3 };
    put_texts();
    struct lk_data *data = open_part(spec_of("text", "texts.txt", ",length=6"), LK_DATA_TRAIN);
    for (int threads = 0; threads <= 4; threads += 4) {
        const struct lk_batches_options options = {
            .size = SIZE, .seed = 5, .shuffle = true, .threads = threads};
        struct lk_batches *batches = NULL;
        int64_t order[ROWS];
        int count = 0;
        assert_int_equal(lk_batches_create(data, &options, &batches), LK_OK);
        const struct lk_field *fields = lk_batches_fields(batches, &count);
        assert_int_equal(count, 4);
        assert_int_equal(fields[0].shape.dim[1], LENGTH);
        const int64_t per_epoch = lk_batches_per_epoch(batches);
        for (int64_t batch = 0; batch < EPOCHS * per_epoch; batch++) {
            uint8_t image[SIZE * LENGTH], again[SIZE * LENGTH];
            int32_t label[SIZE], tokens[SIZE * LENGTH], length[SIZE];
            const int64_t size = lk_batches_size(batches, batch);
            lk_data_order(5, batch / per_epoch, ROWS, order);
            /* every third batch wants no image, every fourth no tokens */
            void *to[LK_MOST_FIELDS] = {batch % 3 ? image : NULL, label,
                                        batch % 4 ? tokens : NULL, batch % 4 ? length : NULL};
            assert_int_equal(lk_batches_read_fields(batches, batch, 0, size, to), LK_OK);
            for (int64_t i = 0; i < size; i++)
                expect_text(order[batch % per_epoch * SIZE + i],
                            to[0] ? image + i * LENGTH : NULL, label[i],
                            to[2] ? tokens + i * LENGTH : NULL, length[i]);
            assert_int_equal(lk_batches_read(batches, batch, 0, size, again, label), LK_OK);
            if (to[0])
                assert_memory_equal(image, again, (size_t)size * LENGTH);
        }
        lk_batches_destroy(batches);
    }
    lk_data_close(data);
}

/* --- threads read what is wanted, and no more ------------------------------------------ */

static atomic_int field_reads[3];

static int64_t count_ten(void *context, int64_t batch)
{
    (void)context;
    (void)batch;
    return 10;
}

static enum lk_status note_read(void *context, int64_t batch, int64_t first, int64_t count,
                                void *const to[])
{
    (void)context;
    for (int f = 0; f < 3; f++)
        if (to[f]) {
            field_reads[f] += (int)count;
            for (int64_t i = 0; i < count; i++)
                ((int32_t *)to[f])[i] = (int32_t)(1000 * f + 10 * batch + first + i);
        }
    return LK_OK;
}

static void expect_read(struct lk_prefetch *prefetch, int64_t batch, unsigned wanted)
{
    int32_t values[3][10];
    void *to[LK_MOST_FIELDS] = {NULL};
    for (int f = 0; f < 3; f++)
        to[f] = wanted >> f & 1 ? values[f] : NULL;
    assert_int_equal(lk_prefetch_read(prefetch, batch, 0, 10, to), LK_OK);
    for (int f = 0; f < 3; f++)
        for (int i = 0; i < 10 && to[f]; i++)
            assert_int_equal(values[f][i], 1000 * f + 10 * batch + i);
}

static void threads_read_wanted_fields(void **state)
{
    (void)state;
    const struct lk_prefetch_config config = {.threads = 3,
                                              .batches = 4,
                                              .size = 10,
                                              .field_count = 3,
                                              .field_bytes = {4, 4, 4},
                                              .end = 40,
                                              .count = count_ten,
                                              .read = note_read};
    struct lk_prefetch *prefetch = NULL;
    assert_int_equal(lk_prefetch_create(&config, &prefetch), LK_OK);
    for (int64_t batch = 0; batch < 20; batch++)
        expect_read(prefetch, batch, 5);
    assert_int_equal(field_reads[1], 0);
    assert_true(field_reads[0] >= 200 && field_reads[0] <= 240);
    for (int64_t batch = 20; batch < 40; batch++) {
        expect_read(prefetch, batch, batch % 2 ? 2 : 7); /* one more is wanted from here on */
        expect_read(prefetch, batch, 1);
    }
    lk_prefetch_destroy(prefetch);
    assert_true(field_reads[1] >= 200);
}

/* --- image files, kept and not --------------------------------------------------------- */

static void caches_keep_both_fields(void **state)
{
    (void)state;
    uint8_t pixels[2][4 * 4 * 3], kept[4 * 4 * 3];
    char more[700];
    mkdir(scratch_path("images"), 0777);
    mkdir(scratch_path("images/a"), 0777);
    mkdir(scratch_path("images/b"), 0777);
    for (int i = 0; i < 2; i++) {
        char path[64];
        memset(pixels[i], 50 + 100 * i, sizeof pixels[i]);
        snprintf(path, sizeof path, "images/%s/x.png", i ? "b" : "a");
        assert_int_equal(lk_image_write(scratch_path(path), (int64_t[]){4, 4, 3}, pixels[i]),
                         LK_OK);
    }
    for (int kind = 0; kind < 3; kind++) {
        snprintf(more, sizeof more, ",cache=%s",
                 kind == 0   ? "none"
                 : kind == 1 ? "memory"
                             : scratch_path("kept"));
        struct lk_data *data = open_part(spec_of("folder", "images", more), LK_DATA_TRAIN);
        expect_field(data, 0, "image", LK_U8, "4,4,3");
        expect_field(data, 1, "label", LK_I32, "");
        for (int round = 0; round < 2; round++)
            for (int64_t i = 0; i < 2; i++) {
                int32_t label = -1, alone = -1;
                void *only[LK_MOST_FIELDS] = {[1] = &alone};
                assert_int_equal(lk_data_read_fields(data, &i, 1, only), LK_OK);
                void *to[LK_MOST_FIELDS] = {kept, &label};
                assert_int_equal(lk_data_read_fields(data, &i, 1, to), LK_OK);
                assert_memory_equal(kept, pixels[i], sizeof kept);
                assert_int_equal(label, i);
                assert_int_equal(alone, i);
            }
        lk_data_close(data);
    }
}

/* --- arrays ---------------------------------------------------------------------------- */

static const char *pair(void)
{
    static char spec[1100];
    snprintf(spec, sizeof spec, "npy:%s,%s", scratch_path("x.npy"), scratch_path("y.npy"));
    return spec;
}

static void reads_arrays_of_numbers(void **state)
{
    (void)state;
    static const float floats[12] = {1, 2, 3, 4, 5, 6, -7.5F, 8, 9, 10, 11, 12};
    static const double doubles[12] = {1, 2, 3, 4, 5, 6, -7.5, 8, 9, 10, 11, 12};
    static const int64_t longs[6] = {2, 0, 1, 5, 1, 4};
    put_npy("x.npy", "<f4", "(3, 2, 2)", floats, sizeof floats);
    put_npy("y.npy", "<i8", "(3, 2)", longs, sizeof longs);
    struct lk_data *data = open_part(pair(), LK_DATA_TRAIN);
    expect_field(data, 0, "numbers", LK_F32, "2,2");
    expect_field(data, 1, "label", LK_I32, "2");
    assert_int_equal(lk_data_info(data)->classes, 6);
    expect_floats(data, 0, 1, floats + 4, 4);
    expect_ints(data, 1, 1, (int32_t[]){1, 5}, 2);
    lk_data_close(data);
    put_npy("x.npy", "<f8", "(6, 2)", doubles, sizeof doubles);
    put_npy("y.npy", "<f4", "(6, 2)", floats, sizeof floats);
    data = open_part(pair(), LK_DATA_TRAIN);
    expect_field(data, 0, "numbers", LK_F32, "2");
    expect_field(data, 1, "label", LK_F32, "2");
    expect_floats(data, 0, 3, floats + 6, 2);
    expect_floats(data, 1, 3, floats + 6, 2);
    lk_data_close(data);
    put_npy("x.npy", "<i8", "(3, 2)", longs, sizeof longs);
    put_npy("y.npy", "<f4", "(3,)", floats, 12);
    data = open_part(pair(), LK_DATA_TRAIN);
    expect_field(data, 0, "tokens", LK_I32, "2");
    expect_field(data, 1, "label", LK_F32, "");
    assert_int_equal(lk_data_info(data)->fields[0].classes, 6);
    expect_ints(data, 0, 2, (int32_t[]){1, 4}, 2);
    lk_data_close(data);
}

static void reads_named_arrays(void **state)
{
    (void)state;
    static const float floats[4] = {1, 2, 3, 4};
    static const int32_t ints[4] = {-4, 3, 2, 1};
    static const char *const parts[] = {"train", "test"};
    mkdir(scratch_path("arrays"), 0777);
    for (int i = 0; i < 2; i++) {
        char name[64];
        snprintf(name, sizeof name, "arrays/size_%s.npy", parts[i]);
        put_npy(name, "<f4", "(2, 2)", floats, sizeof floats);
        snprintf(name, sizeof name, "arrays/ids_%s.npy", parts[i]);
        put_npy(name, "<i4", "(2, 2)", ints, sizeof ints);
        snprintf(name, sizeof name, "arrays/photo_%s.npy", parts[i]);
        put_npy(name, "|u1", "(2, 4)", ints, 8);
        snprintf(name, sizeof name, "arrays/kind_%s.npy", parts[i]);
        put_npy(name, "|u1", "(2,)", i ? "\0\1" : "\0\4", 2);
    }
    struct lk_data *data = open_part(
        spec_of("npy", "arrays", ",fields=photo,size,tokens:ids,label=kind"), LK_DATA_TEST);
    expect_field(data, 0, "photo", LK_U8, "1,4,1");
    expect_field(data, 1, "size", LK_F32, "2");
    expect_field(data, 2, "tokens", LK_I32, "2");
    expect_field(data, 3, "label", LK_I32, "");
    assert_int_equal(lk_data_info(data)->classes, 5); /* of the training part */
    assert_int_equal(lk_data_info(data)->width, 4);
    assert_int_equal(lk_data_info(data)->fields[2].classes, 0);
    expect_ints(data, 2, 0, ints, 2);
    expect_ints(data, 3, 1, (int32_t[]){1}, 1);
    uint8_t image[4];
    int32_t label;
    assert_int_equal(lk_data_read(data, (int64_t[]){1}, 1, image, &label), LK_OK);
    assert_memory_equal(image, (const uint8_t *)ints + 4, 4);
    lk_data_close(data);
    refused(spec_of("npy", "arrays", ",fields=a:size+ids,label=kind"), LK_DATA_TRAIN,
            LK_E_ARGUMENT, "of 2 arrays");
    refused(spec_of("npy", "arrays", ",fields=../x,label=kind"), LK_DATA_TRAIN, LK_E_ARGUMENT,
            "cannot name an array");
    refused(spec_of("npy", "arrays", ",fields=other,label=kind"), LK_DATA_TRAIN, LK_E_IO,
            "other_train.npy");
}

/* A field that is called after another one tells how many of each sample's there are; what lies
 * behind is cleared, so that no one sees it. */
static void arrays_have_lengths(void **state)
{
    (void)state;
    static const int64_t ids[6] = {7, 8, 9, 4, 5, 6}, good[2] = {1, 3}, bad[2] = {1, 4};
    mkdir(scratch_path("lines"), 0777);
    put_npy("lines/ids_train.npy", "<i8", "(2, 3)", ids, sizeof ids);
    put_npy("lines/size_train.npy", "<i8", "(2,)", good, sizeof good);
    put_npy("lines/y_train.npy", "|u1", "(2,)", "\0\1", 2);
    const char *options = ",fields=tokens:ids,tokens.length:size";
    struct lk_data *data = open_part(spec_of("npy", "lines", options), LK_DATA_TRAIN);
    expect_field(data, 0, "tokens", LK_I32, "3");
    expect_field(data, 1, "tokens.length", LK_I32, "");
    assert_int_equal(lk_data_info(data)->fields[0].length, 1);
    assert_int_equal(lk_data_info(data)->fields[1].length, -1);
    expect_ints(data, 0, 0, (int32_t[]){7, 0, 0}, 3);
    expect_ints(data, 0, 1, (int32_t[]){4, 5, 6}, 3);
    expect_ints(data, 1, 1, (int32_t[]){3}, 1);
    lk_data_close(data);
    put_npy("lines/size_train.npy", "<i8", "(2,)", bad, sizeof bad);
    data = open_part(spec_of("npy", "lines", options), LK_DATA_TRAIN);
    int32_t tokens[3];
    void *to[LK_MOST_FIELDS] = {tokens};
    assert_refused(lk_data_read_fields(data, (int64_t[]){1}, 1, to), LK_E_DATA, lk_error_text(),
                   "1 of 2 samples are broken, max_bad=1% allows 0");
    assert_non_null(strstr(lk_error_text(), "the length of sample 1 is 4, 'tokens' has 3"));
    lk_data_close(data);
    data = open_part(spec_of("npy", "lines", ",fields=tokens:ids,tokens.length:size,max_bad=1"),
                     LK_DATA_TRAIN);
    expect_ints(data, 1, 1, (int32_t[]){1}, 1); /* the first stands in */
    lk_data_close(data);
    put_npy("lines/size_train.npy", "<i8", "(2, 2)", ids, 32);
    refused(spec_of("npy", "lines", options), LK_DATA_TRAIN, LK_E_DATA,
            "a length is one whole number a sample");
}

/* What does not fit a field is refused by the sample that has it. */
static void refuses_numbers_that_do_not_fit(void **state)
{
    (void)state;
    static const float floats[3] = {1, 2, 3};
    static const int64_t longs[3] = {1, -5, (int64_t)1 << 31};
    static const double wide[3] = {1, 1e300, 2};
    put_npy("x.npy", "<i8", "(3,)", longs, sizeof longs);
    put_npy("y.npy", "<f4", "(3,)", floats, sizeof floats);
    refused(pair(), LK_DATA_TRAIN, LK_E_DATA,
            "number 0 of sample 2, 2147483648, does not fit int32");
    put_npy("x.npy", "<f4", "(3,)", floats, sizeof floats);
    put_npy("y.npy", "<i8", "(3,)", longs, sizeof longs);
    refused(pair(), LK_DATA_TRAIN, LK_E_DATA, "label -5 of sample 1 is not in 0..");
    put_npy("y.npy", "<f8", "(3,)", wide, sizeof wide);
    refused(pair(), LK_DATA_TRAIN, LK_E_DATA, "number 0 of sample 1 is 1e+300");
    put_npy("x.npy", "<f8", "(3,)", wide, sizeof wide);
    put_npy("y.npy", "|u1", "(3,)", "\0\1\2", 3);
    struct lk_data *data = open_part(pair(), LK_DATA_TRAIN);
    float number = 0;
    void *to[LK_MOST_FIELDS] = {&number};
    assert_int_equal(lk_data_read_fields(data, (int64_t[]){0}, 1, to), LK_OK);
    assert_refused(lk_data_read_fields(data, (int64_t[]){1}, 1, to), LK_E_DATA, lk_error_text(),
                   "expected finite ones");
    lk_error_clear();
    lk_data_close(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_has_tokens),
        cmocka_unit_test(batches_carry_fields),
        cmocka_unit_test(threads_read_wanted_fields),
        cmocka_unit_test(caches_keep_both_fields),
        cmocka_unit_test(reads_arrays_of_numbers),
        cmocka_unit_test(reads_named_arrays),
        cmocka_unit_test(arrays_have_lengths),
        cmocka_unit_test(refuses_numbers_that_do_not_fit),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}

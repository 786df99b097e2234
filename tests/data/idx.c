/* idx:DIR: the usual file names, and everything that can be wrong with the files. */
#include "scratch.h"

#include <lockstep/data.h>
#include <zlib.h>

enum { TRAIN = 20, TEST = 6, HEIGHT = 5, WIDTH = 4, SAMPLE = HEIGHT * WIDTH };
static char spec[128];

static void refused(int status, int code, const char *said)
{
    assert_refused(status, code, lk_error_text(), said);
    lk_error_clear();
}

/* An IDX file in memory: header, then body. Its bytes. */
static size_t make(uint8_t *file, uint32_t magic, int rank, const uint32_t *sides,
                   const uint8_t *body, size_t body_bytes)
{
    uint32_t header[4] = {magic};
    memcpy(header + 1, sides, (size_t)rank * 4);
    for (int i = 0; i <= rank; i++)
        for (int b = 0; b < 4; b++)
            *file++ = (uint8_t)(header[i] >> (24 - 8 * b));
    memcpy(file, body, body_bytes);
    return 4 + 4 * (size_t)rank + body_bytes;
}

/* Writes a file below `scratch`, gzipped where its name says so. */
static void put(const char *name, const uint8_t *file, size_t bytes)
{
    if (!strstr(name, ".gz")) {
        scratch_put(scratch_path(name), file, bytes);
        return;
    }
    gzFile packed = gzopen(scratch_path(name), "wb");
    assert_non_null(packed);
    assert_int_equal(gzwrite(packed, file, (unsigned)bytes), bytes);
    assert_int_equal(gzclose(packed), Z_OK);
}

static size_t images(uint8_t *file, uint32_t count)
{
    uint8_t body[TRAIN * SAMPLE];
    for (int i = 0; i < TRAIN * SAMPLE; i++)
        body[i] = (uint8_t)(i * 37);
    return make(file, 0x803, 3, (uint32_t[]){count, HEIGHT, WIDTH}, body, count * SAMPLE);
}

/* Labels 0, 1, 2, 0, ...; the training labels have a 3 at their end. */
static size_t labels(uint8_t *file, uint32_t count)
{
    uint8_t body[TRAIN];
    for (int i = 0; i < TRAIN; i++)
        body[i] = (uint8_t)(i == TRAIN - 1 ? 3 : i % 3);
    return make(file, 0x801, 1, (uint32_t[]){count}, body, count);
}

static void remove_all(void)
{
    scratch_delete(scratch);
    assert_int_equal(mkdir(scratch, 0700), 0);
}

/* A good data set; dash: "-" or "."; gz: "" or ".gz". */
static void put_all(const char *dash, const char *gz)
{
    static const char *const parts[] = {"train", "t10k"};
    uint8_t file[TRAIN * SAMPLE + 16];
    char name[64];
    remove_all();
    for (int p = 0; p < 2; p++) {
        snprintf(name, sizeof name, "%s-images%sidx3-ubyte%s", parts[p], dash, gz);
        put(name, file, images(file, p ? TEST : TRAIN));
        snprintf(name, sizeof name, "%s-labels%sidx1-ubyte%s", parts[p], dash, gz);
        put(name, file, labels(file, p ? TEST : TRAIN));
    }
    snprintf(spec, sizeof spec, "idx:%s", scratch);
}

static void reads_every_spelling(void **state)
{
    (void)state;
    for (int k = 0; k < 4; k++) {
        put_all(k & 1 ? "." : "-", k & 2 ? ".gz" : "");
        for (int part = 0; part < 2; part++) {
            struct lk_data *data = NULL;
            if (lk_data_open(spec, (enum lk_data_part)part, &data) != LK_OK)
                fail_msg("%s", lk_error_text());
            const struct lk_data_info *info = lk_data_info(data);
            assert_string_equal(info->name, strrchr(scratch, '/') + 1);
            assert_int_equal(info->count, part ? TEST : TRAIN);
            assert_int_equal(info->classes, 4);
            assert_int_equal(info->height, HEIGHT);
            assert_int_equal(info->width, WIDTH);
            assert_int_equal(info->channels, 1);
            assert_null(info->class_names);
            uint8_t samples[3 * SAMPLE];
            int32_t got[3];
            const int64_t indices[] = {4, 0, 4};
            assert_int_equal(lk_data_read(data, indices, 3, samples, got), LK_OK);
            for (int i = 0; i < 3 * SAMPLE; i++)
                assert_int_equal(samples[i],
                                 (uint8_t)((indices[i / SAMPLE] * SAMPLE + i % SAMPLE) * 37));
            assert_int_equal(got[0], 1);
            assert_int_equal(got[1], 0);
            assert_int_equal(got[2], 1);
            lk_data_close(data);
        }
    }
}

static void refuses_indices(void **state)
{
    (void)state;
    put_all("-", "");
    struct lk_data *data = NULL;
    uint8_t samples[2 * SAMPLE];
    int32_t got[2];
    assert_int_equal(lk_data_open(spec, LK_DATA_TEST, &data), LK_OK);
    refused(lk_data_read(data, (int64_t[]){0, TEST}, 2, samples, got), LK_E_ARGUMENT,
            "sample 6 is not in 0..5");
    refused(lk_data_read(data, (int64_t[]){-1, 0}, 2, samples, got), LK_E_ARGUMENT,
            "sample -1");
    assert_int_equal(lk_data_read(data, NULL, 0, NULL, NULL), LK_OK);
    lk_data_close(data);
    lk_data_close(NULL);
}

static void refuses_files(void **state)
{
    (void)state;
    static const uint8_t zeros[600], sevens[] = {7, 7, 7, 7, 7, 7};
    static const struct {
        const char *name;
        uint32_t magic;
        int rank;
        uint32_t sides[3];
        const uint8_t *body;
        size_t bytes; /* of the body */
        const char *said;
    } cases[] = {
        {"images-idx3", 0x801, 3, {6, 5, 4}, zeros, 120, "0x00000803 (bytes in 3 dimensions)"},
        {"images-idx3", 0xd03, 3, {6, 5, 4}, zeros, 120, "found 0x00000d03"},
        {"images-idx3",
         0x803,
         3,
         {6, 5, 4},
         zeros,
         119,
         "make 120 bytes behind the header, fou"},
        {"images-idx3", 0x803, 3, {6, 5, 4}, zeros, 121, "header, found 121"},
        {"images-idx3",
         0x803,
         3,
         {6, 0, 4},
         zeros,
         0,
         "a side of 1..4096 is expected, found 0"},
        {"images-idx3", 0x803, 3, {6, 5, 4097}, zeros, 0, "found 4097"},
        {"images-idx3", 0x803, 3, {~0u, 4096, 4096}, zeros, 9, "4294967295 samples make"},
        {"images-idx3", 0x803, 3, {0, 5, 4}, zeros, 0, "at least 1 sample is expected"},
        {"images-idx3", 0x803, 3, {7, 5, 4}, zeros, 140, "has 7 images"},
        {"images-idx3", 0x803, 2, {6, 5}, zeros, 0, "a header of 16 bytes is expected, 12 are"},
        {"labels-idx1", 0x803, 1, {6}, zeros, 6, "0x00000801 (bytes in 1 dimensions)"},
        {"labels-idx1", 0x801, 1, {6}, zeros, 5, "6 samples make 6 bytes"},
        {"labels-idx1", 0x801, 1, {5}, zeros, 5, "has 6 images"},
        {"labels-idx1", 0x801, 1, {0}, zeros, 0, "at least 1 sample is expected"},
        {"labels-idx1", 0x801, 1, {6}, sevens, 6, "labels of 0..3 are expected, found 7"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int gz = 0; gz < 2; gz++) {
            uint8_t file[700];
            char name[64];
            put_all("-", gz ? ".gz" : "");
            snprintf(name, sizeof name, "t10k-%s-ubyte%s", cases[i].name, gz ? ".gz" : "");
            put(name, file,
                make(file, cases[i].magic, cases[i].rank, cases[i].sides, cases[i].body,
                     cases[i].bytes));
            struct lk_data *data = NULL;
            const enum lk_status status = lk_data_open(spec, LK_DATA_TEST, &data);
            assert_non_null(strstr(lk_error_text(), name));
            refused(status, LK_E_DATA, cases[i].said);
            assert_null(data);
        }
}

static void refuses_what_is_missing(void **state)
{
    (void)state;
    struct lk_data *data = NULL;
    put_all(".", "");
    unlink(scratch_path("t10k-images.idx3-ubyte"));
    refused(lk_data_open(spec, LK_DATA_TEST, &data), LK_E_IO,
            "there is no t10k-images-idx3-ubyte (nor t10k-images.idx3-ubyte, plain or .gz)");
    assert_int_equal(lk_data_open(spec, LK_DATA_TRAIN, &data), LK_OK);
    lk_data_close(data);
    data = NULL;
    unlink(scratch_path("train-labels.idx1-ubyte"));
    refused(lk_data_open(spec, LK_DATA_TEST, &data), LK_E_IO,
            "the classes are counted in the training labels: there is no train-labels");
    refused(lk_data_open("idx:/tmp/lockstep-absent", LK_DATA_TRAIN, &data), LK_E_IO,
            "there is no folder '/tmp/lockstep-absent'");
    refused(lk_data_open("idx:", LK_DATA_TRAIN, &data), LK_E_IO, "there is no folder ''");
    refused(lk_data_open(spec, (enum lk_data_part)5, &data), LK_E_ARGUMENT, "part 5");
    assert_null(data);
}

static void refuses_specs(void **state)
{
    (void)state;
    static const struct {
        const char *spec, *said;
    } cases[] = {
        {"idy:/tmp", "did you mean 'idx'? known are idx:DIR, folder:DIR"},
        {"idx", "unknown data 'idx'; did you mean 'idx:DIR'?"},
        {"synthetic", "unknown data 'synthetic'; did you mean 'synthetic:digits'?"},
        {"synthetc,count=3", "; did you mean 'synthetic:digits'?"},
        {"", "unknown data ''"},
        {"fashion-mnits", "did you mean 'fashion-mnist'?"},
        {"/tmp/some/folder", "fashion-mnist"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct lk_data *data = NULL;
        refused(lk_data_open(cases[i].spec, LK_DATA_TRAIN, &data), LK_E_ARGUMENT,
                cases[i].said);
    }
    char longest[3000];
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    struct lk_data *data = NULL;
    refused(lk_data_open(longest, LK_DATA_TRAIN, &data), LK_E_ARGUMENT, "unknown data 'xxx");
}

/* Opens both parts; what opens must also read whole, with labels in range. */
static void open_anyhow(void)
{
    for (int part = 0; part < 2; part++) {
        struct lk_data *data = NULL;
        if (lk_data_open(spec, (enum lk_data_part)part, &data) != LK_OK) {
            assert_string_not_equal(lk_error_text(), "");
            lk_error_clear();
            continue;
        }
        const struct lk_data_info *info = lk_data_info(data);
        uint8_t *sample = malloc((size_t)info->height * (size_t)info->width);
        for (int64_t i = 0; i < info->count; i++) {
            int32_t label = -1;
            assert_int_equal(lk_data_read(data, &i, 1, sample, &label), LK_OK);
            assert_in_range(label, 0, info->classes - 1);
        }
        free(sample);
        lk_data_close(data);
    }
}

static void survives_damage(void **state)
{
    (void)state;
    static const char *const names[] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                        "train-images-idx3-ubyte.gz",
                                        "train-labels-idx1-ubyte.gz"};
    for (int k = 0; k < 4; k++) {
        put_all("-", k < 2 ? "" : ".gz");
        uint8_t good[1000], bad[1000];
        FILE *file = fopen(scratch_path(names[k]), "rb");
        assert_non_null(file);
        const size_t bytes = fread(good, 1, sizeof good, file);
        fclose(file);
        for (size_t i = 0; i < bytes; i++) {
            scratch_put(scratch_path(names[k]), good, i);
            open_anyhow();
            for (unsigned flip = 1; flip < 256; flip <<= 1) {
                memcpy(bad, good, bytes);
                bad[i] ^= (uint8_t)flip;
                scratch_put(scratch_path(names[k]), bad, bytes);
                open_anyhow();
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_every_spelling), cmocka_unit_test(refuses_indices),
        cmocka_unit_test(refuses_files),        cmocka_unit_test(refuses_what_is_missing),
        cmocka_unit_test(refuses_specs),        cmocka_unit_test(survives_damage),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}

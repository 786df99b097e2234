/* The stage "standardize": measured numbers beside exact ones, the same bits whoever reads, and
 * refusals. Means, deviations and results were computed by Python with fractions.Fraction. */
#include "data/stages/standardize.h"
#include "data/stages/pipeline.h"
#include "tables.h"
#include <math.h>

static const char rows[] = "depth,mass,same,kind\n18.7,3750,4,a\n17.4,3800,4,b\n18.0,3250,4,a\n"
                           "19.3,3450,4,b\n20.6,3650,4,a\n17.8,3625,4,b\n19.6,4675,4,a\n";

enum { ROWS = 7 };

static const double exact[2][2] = {{18.771428516932897, 1.0511415124655794},
                                   {3742.8571428571427, 418.0555084713815}};
static const uint32_t wanted[2][ROWS] = {
    {0xbd8b2ab6, 0xbfa7008d, 0xbf3be09b, 0x3f00bb0a, 0x3fdeab67, 0xbf6c9625, 0x3f49cb59},
    {0x3c8bf7be, 0x3e0bf7be, 0xbf96e719, 0xbf33556b, 0xbe637295, 0xbe90577c, 0x400eb395}};
static const double exact_both[2] = {1880.814285687038, 1885.3618640645832};

static struct lk_data *open_rows(const char *options)
{
    put_text("rows.csv", rows);
    return open_part(spec_of("csv", "rows.csv", options), LK_DATA_TRAIN);
}

static int warnings;

static void count_warnings(void *context, enum lk_log_level level, const char *text)
{
    (void)context;
    (void)text;
    warnings += level == LK_LOG_WARNING;
}

/* The numbers that a text was resolved to. */
static struct lk_standardize resolve(const struct lk_data *data, const char *text,
                                     char resolved[2048])
{
    struct lk_pipeline pipeline;
    struct lk_standardize s;
    char *made = NULL;
    if (lk_pipeline_resolve(data, text, &made) != LK_OK)
        fail_msg("%s", lk_error_text());
    snprintf(resolved, 2048, "%s", made);
    free(made);
    assert_int_equal(lk_pipeline_parse(resolved, true, &pipeline), LK_OK);
    assert_true(pipeline.standardizes);
    assert_int_equal(lk_standardize_parse(pipeline.standardize, &s), LK_OK);
    assert_true(s.is_measured);
    return s;
}

static void expect_pair(const struct lk_standardize *s, int pair, const double numbers[2])
{
    assert_true(fabs(s->mean[pair] - numbers[0]) <= 1e-14 * fabs(numbers[0]));
    assert_true(fabs(s->deviation[pair] - numbers[1]) <= 1e-14 * numbers[1]);
}

static void measures_exactly(void **state)
{
    (void)state;
    char text[2048], again[2048];
    struct lk_data *data = open_rows(",fields=depth,c:same,mass,label=kind");
    warnings = 0;
    lk_log_set(count_warnings, NULL);
    struct lk_standardize s = resolve(data, " shuffle|standardize | batch size=2", text);
    lk_log_set(NULL, NULL);
    assert_int_equal(warnings, 1); /* the column that is the same throughout */
    assert_memory_equal(text, "shuffle | standardize numbers=[", 31);
    assert_non_null(strstr(text, "] c=[4/1] | batch size=2"));
    expect_pair(&s, 0, exact[0]);
    expect_pair(&s, 1, exact[1]);
    assert_true(s.mean[2] == 4 && s.deviation[2] == 1);
    const struct lk_standardize same = resolve(data, text, again);
    assert_string_equal(text, again); /* nothing is left to measure */
    for (int i = 0; i < 3; i++)
        assert_true(same.mean[i] == s.mean[i] && same.deviation[i] == s.deviation[i]);
    s = resolve(data, "standardize by=field", text);
    assert_int_equal(s.fields[0].count, 1);
    expect_pair(&s, 0, exact_both);
    lk_data_close(data);
}

static void applies_to_the_bit(void **state)
{
    (void)state;
    char text[256];
    struct lk_data *data = open_rows(",fields=depth,mass,label=mass,label_type=number");
    snprintf(text, sizeof text, "standardize numbers=[%.17g/%.17g,%.17g/%.17g]", exact[0][0],
             exact[0][1], exact[1][0], exact[1][1]);
    for (int kind = 0; kind < 4; kind++) {
        struct lk_batches *batches = NULL;
        const struct lk_batches_options options = {.size = 3,
                                                   .threads = kind % 2 * 3,
                                                   .pipeline = kind < 2 ? text : NULL,
                                                   .eval_pipeline = kind < 2 ? NULL : text};
        assert_int_equal(lk_batches_create(data, &options, &batches), LK_OK);
        for (int64_t i = 0; i < ROWS; i++) {
            float numbers[2], label;
            uint32_t bits[2];
            void *to[LK_MOST_FIELDS] = {numbers, &label};
            assert_int_equal(lk_batches_read_fields(batches, i / 3, i % 3, 1, to), LK_OK);
            memcpy(bits, numbers, sizeof bits);
            assert_int_equal(bits[0], wanted[0][i]);
            assert_int_equal(bits[1], wanted[1][i]);
            assert_true(label >= 3250); /* labels stay as they are */
        }
        lk_batches_destroy(batches);
    }
    lk_data_close(data);
}

static void prints_what_it_reads(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "standardize", "standardize by=field",
        "standardize a=[0.1/0.30000000000000004, -1e-300/1e+300] b.c/d=[5/2]"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (int is_training = 0; is_training < 2; is_training++) {
            struct lk_pipeline pipeline;
            char text[LK_PIPELINE_TEXT], few[8];
            assert_int_equal(lk_pipeline_parse(texts[i], is_training, &pipeline), LK_OK);
            assert_true(lk_pipeline_print(&pipeline, text, sizeof text));
            assert_string_equal(text, texts[i]);
            assert_false(lk_pipeline_print(&pipeline, few, sizeof few));
            const struct lk_pipeline evaluation = lk_pipeline_evaluation(&pipeline);
            assert_string_equal(evaluation.standardize, pipeline.standardize);
            assert_null(lk_pipeline_image_stage(&evaluation));
        }
}

static void refused_pipeline(const struct lk_data *data, const char *text, const char *said)
{
    struct lk_batches *batches = NULL;
    const struct lk_batches_options options = {.size = 1, .pipeline = text};
    assert_refused(lk_batches_create(data, &options, &batches), LK_E_ARGUMENT, lk_error_text(),
                   said);
    lk_error_clear();
}

static void refuses_what_does_not_fit(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"standardize", "it has no numbers yet"},
        {"standardize by=row", "expected MEAN/DEVIATION"},
        {"standardize numbers", "expected by=field"},
        {"standardize numbers=[1/2", "expected ',' or ']'"},
        {"standardize numbers=[1/2]x", "'x' behind the numbers"},
        {"standardize numbers=[1/0, 1/1]", "a deviation above 0"},
        {"standardize numbers=[1/-1, 1/1]", "a deviation above 0"},
        {"standardize numbers=[nan/1, 1/1]", "a finite mean"},
        {"standardize numbers=[1/inf, 1/1]", "a deviation above 0"},
        {"standardize numbers=[1/2, 1/1, 1/1]", "3 means for the field 'numbers' of 2"},
        {"standardize numbers=1/2 numbers=1/2", "'numbers' is there twice"},
        {"standardize label=1/2", "no input 'label' of floats"},
        {"standardize depth=1/2", "no input 'depth' of floats"},
        {"standardize numbers=1/2 | standardize numbers=1/2", "is there twice"},
        {"standardize numbers=1/2 | normalize", "cannot stand behind"},
        {"rotate 10", "stage 'rotate' is for images, 'rows.csv' has none"},
        {"flip horizontal", "stage 'flip' is for images"},
        {"crop 4x4", "stage 'crop' is for images"},
        {"resize 4x4", "stage 'resize' is for images"},
        {"contrast 0.1", "stage 'contrast' is for images"},
        {"normalize", "stage 'normalize' is for images"},
        {"decode full", "stage 'decode' is for images"},
    };
    struct lk_data *data = open_rows(",fields=depth,mass,label=kind");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refused_pipeline(data, cases[i][0], cases[i][1]);
    struct lk_batches *batches = NULL;
    const struct lk_batches_options sized = {.size = 1, .height = 4, .width = 4};
    assert_refused(lk_batches_create(data, &sized, &batches), LK_E_ARGUMENT, lk_error_text(),
                   "images of 4x4 are expected, 'rows.csv' has none");
    lk_error_clear();
    lk_data_close(data);
    char *resolved = NULL;
    assert_int_equal(lk_data_open("synthetic:digits,count=3", LK_DATA_TRAIN, &data), LK_OK);
    assert_refused(lk_pipeline_resolve(data, "standardize", &resolved), LK_E_ARGUMENT,
                   lk_error_text(), "digits has no input of floats");
    lk_error_clear();
    assert_int_equal(lk_pipeline_resolve(data, "flip horizontal", &resolved), LK_OK);
    assert_string_equal(resolved, "flip horizontal");
    free(resolved);
    lk_data_close(data);
}

/* A field of 300 numbers is standardized as a whole only. */
static void refuses_very_many_numbers(void **state)
{
    (void)state;
    static char text[4096];
    char resolved[2048], *none = NULL;
    size_t used = 0;
    for (int line = 0; line < 2; line++)
        for (int i = 0; i < 300; i++)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%d%s", line ? "" : "c",
                                     i, i == 299 ? "\n" : ",");
    put_text("many.csv", text);
    struct lk_data *data = open_part(spec_of("csv", "many.csv", ",fields=*"), LK_DATA_TRAIN);
    assert_refused(lk_pipeline_resolve(data, "standardize", &none), LK_E_ARGUMENT,
                   lk_error_text(), "'standardize by=field' has one mean for each field");
    lk_error_clear();
    const struct lk_standardize s = resolve(data, "standardize by=field", resolved);
    assert_true(s.mean[0] == 149.5);
    lk_data_close(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(measures_exactly),
        cmocka_unit_test(applies_to_the_bit),
        cmocka_unit_test(prints_what_it_reads),
        cmocka_unit_test(refuses_what_does_not_fit),
        cmocka_unit_test(refuses_very_many_numbers),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}

/* synthetic:pairs: the same bits on every machine, in any order; labels that can be learned
 * from both sequences of a sample. */
#include "io/sha256.h"
#include "tables.h"
#include <math.h>

enum { T = 140, W = 256, SEQUENCE = T * W, MANY = 400, A = 0, B = 1, LABEL = 2 };
static float sequences[2][SEQUENCE];

static void read_all(const struct lk_data *data, int64_t index, float *a, float *b,
                     int32_t *label)
{
    void *to[LK_MOST_FIELDS] = {a, b, label};
    assert_int_equal(lk_data_read_fields(data, &index, 1, to), LK_OK);
}

static void says_what_it_is(void **state)
{
    (void)state;
    struct lk_data *data = open_part("synthetic:pairs", LK_DATA_TRAIN);
    const struct lk_data_info *info = lk_data_info(data);
    assert_string_equal(info->name, "pairs");
    assert_int_equal(info->count, 12000);
    assert_int_equal(info->part, LK_DATA_TRAIN);
    assert_int_equal(info->field_count, 3);
    expect_field(data, A, "a", LK_F32, "140,256");
    expect_field(data, B, "b", LK_F32, "140,256");
    expect_field(data, LABEL, "label", LK_I32, "");
    assert_int_equal(info->fields[LABEL].role, LK_FIELD_LABEL);
    assert_int_equal(info->classes, 2);
    assert_string_equal(info->class_names[1], "same");
    lk_data_close(data);
    data = open_part("synthetic:pairs,count=50,timesteps=3,width=20", LK_DATA_VALIDATION);
    assert_int_equal(lk_data_info(data)->count, 9);
    assert_int_equal(lk_data_info(data)->part, LK_DATA_TEST);
    expect_field(data, B, "b", LK_F32, "3,20");
    lk_data_close(data);
}

/* Recorded losses and lessons depend on these bits. */
static void draws_known_bits(void **state)
{
    static const struct {
        const char *spec;
        enum lk_data_part part;
        const char *sum;
    } cases[] = {
        {"synthetic:pairs", LK_DATA_TRAIN,
         "b2c7f6b0d21c09aee534dc823d4f69d3c021236a7a401cdad770d0184c6967c8"},
        {"synthetic:pairs", LK_DATA_TEST,
         "0f8ec0ad306195d5a12f688c54a3c54bd5b0783f95f8cb6df1b3cfc571b82e73"},
        {"synthetic:pairs,seed=2", LK_DATA_TRAIN,
         "df343f22053df7a4f10ce8b7daa5c152f3c3a375f1c84f3c00654777509eba22"},
        {"synthetic:pairs,other=any", LK_DATA_TRAIN,
         "088128bbad18029dc6623231b6e0369df87d42021ee8a00d9d887e6c0744ac28"},
        {"synthetic:pairs,timesteps=7,width=21", LK_DATA_TRAIN,
         "3badaa4de015acc00a6453856f6b47bfaddfdf4603f1daf8c7fbe4c08f56bbf0"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lk_sha256 sum = {0};
        char text[LK_SHA256_TEXT];
        int32_t label;
        struct lk_data *data = open_part(cases[i].spec, cases[i].part);
        const size_t bytes = lk_field_bytes(&lk_data_info(data)->fields[A]);
        assert_int_equal(lk_sha256_init(&sum), LK_OK);
        for (int64_t k = 0; k < 20; k++) {
            read_all(data, k, sequences[A], sequences[B], &label);
            lk_sha256_add(&sum, sequences[A], bytes);
            lk_sha256_add(&sum, sequences[B], bytes);
            lk_sha256_add(&sum, &label, sizeof label);
        }
        lk_sha256_finish(&sum, text);
        lk_sha256_clear(&sum);
        assert_string_equal(text, cases[i].sum);
        lk_data_close(data);
    }
}

/* A sample is the same in a smaller set, whichever of its fields are read, in whatever order.
 */
static void depends_on_index_only(void **state)
{
    static float other[SEQUENCE];
    int32_t label, alone;
    (void)state;
    struct lk_data *data = open_part("synthetic:pairs", LK_DATA_TRAIN);
    struct lk_data *small = open_part("synthetic:pairs,count=10", LK_DATA_TRAIN);
    for (int64_t i = 9; i >= 0; i--) {
        read_all(data, i, sequences[A], sequences[B], &label);
        read_all(small, i, NULL, other, NULL);
        assert_memory_equal(other, sequences[B], sizeof other);
        read_all(small, i, other, NULL, NULL);
        assert_memory_equal(other, sequences[A], sizeof other);
        read_all(small, i, NULL, NULL, &alone);
        assert_int_equal(alone, label);
    }
    assert_memory_not_equal(sequences[A], sequences[B], sizeof other);
    lk_data_close(data);
    lk_data_close(small);
}

/* The squared distance of two sequences' means over time. */
static double distance(void)
{
    double sum = 0;
    for (int k = 0; k < W; k++) {
        double difference = 0;
        for (int t = 0; t < T; t++)
            difference += sequences[A][t * W + k] - sequences[B][t * W + k];
        sum += difference * difference / T / T;
    }
    return sum / W;
}

/* Sequences of one origin have about the same mean. */
static void labels_can_be_learned(void **state)
{
    static const char *const specs[] = {"synthetic:pairs", "synthetic:pairs,other=any"};
    (void)state;
    for (int s = 0; s < 2; s++) {
        double sum = 0, squares = 0, of_same[MANY], of_others[MANY];
        int same = 0, others = 0, right = 0;
        struct lk_data *data = open_part(specs[s], LK_DATA_TRAIN);
        for (int64_t i = 0; i < MANY; i++) {
            int32_t label;
            read_all(data, i, sequences[A], sequences[B], &label);
            assert_in_range(label, 0, 1);
            *(label ? &of_same[same++] : &of_others[others++]) = distance();
            for (int k = 0; k < SEQUENCE; k++) {
                sum += sequences[A][k];
                squares += sequences[A][k] * sequences[A][k];
            }
        }
        assert_in_range(same, MANY * 2 / 5, MANY * 3 / 5);
        assert_true(fabs(sum / MANY / SEQUENCE) < 0.1);
        assert_true(fabs(sqrt(squares / MANY / SEQUENCE) - 1.1) < 0.3);
        for (int i = 0; i < same; i++)
            right += of_same[i] < 0.15;
        for (int i = 0; i < others; i++)
            right += of_others[i] >= 0.15;
        assert_in_range(right, MANY * 85 / 100, MANY * 99 / 100);
        lk_data_close(data);
    }
}

static void refuses(void **state)
{
    static const struct {
        const char *spec, *said;
    } cases[] = {
        {"synthetic:pair", "known are synthetic:digits and synthetic:pairs"},
        {"synthetic:pairs,count=0", "not in 1.."},
        {"synthetic:pairs,timesteps=0", "not in 1.."},
        {"synthetic:pairs,timesteps=4097", "not in 1..4096"},
        {"synthetic:pairs,width=-1", "not in 1.."},
        {"synthetic:pairs,width=1.5", "not a whole number"},
        {"synthetic:pairs,other=lower", "higher"},
        {"synthetic:pairs,widht=3", "did you mean 'width'?"},
        {"synthetic:digits,width=3", "unknown option 'width'"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refused(cases[i].spec, LK_DATA_TRAIN, LK_E_ARGUMENT, cases[i].said);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_what_it_is),
        cmocka_unit_test(draws_known_bits),
        cmocka_unit_test(depends_on_index_only),
        cmocka_unit_test(labels_can_be_learned),
        cmocka_unit_test(refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

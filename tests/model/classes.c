/* Names of classes as text and back; names of other data found among them. */
#include "model/classes.h"

#include "ok.h"
#include "scratch.h"

static const char source[] = "name: two\n"
                             "input: [4]\n"
                             "layers:\n"
                             "  - {dense: {units: 3}, name: d}\n"
                             "  - {softmax: , name: kind_p}\n"
                             "  - {dense: {units: 1}, from: d}\n"
                             "  - {sigmoid: , name: side_p}\n"
                             "output: {kind: kind_p, side: side_p}\n"
                             "loss: {kind: cross_entropy, side: binary_cross_entropy}\n";

static struct lk_model *read_model(void)
{
    struct lk_model *model = NULL;
    ASSERT_OK(lk_model_read(source, strlen(source), "two.yaml", &model));
    return model;
}

static void print_and_read(void **state)
{
    (void)state;
    static const char *const kinds[] = {"cat \"tom\"", "d\xF6g", "K\xC3\xBC"};
    static const char *const sides[] = {"no", "yes"};
    struct lk_model *model = read_model(), *other = read_model();
    char *text = NULL, *again = NULL;
    ASSERT_OK(lk_model_print_classes(model, &text));
    assert_string_equal(text, "");
    free(text);
    assert_int_equal(lk_output_classes(&model->outputs[0]), 3);
    assert_int_equal(lk_output_classes(&model->outputs[1]), 2);
    ASSERT_OK(lk_output_name_classes(model, &model->outputs[0], kinds, 3));
    ASSERT_OK(lk_output_name_classes(model, &model->outputs[1], sides, 2));
    assert_string_equal(model->outputs[0].class_names[1], "d\\xf6g");
    ASSERT_OK(lk_model_print_classes(model, &text));
    ASSERT_OK(lk_model_read_classes(other, text));
    assert_int_equal(other->outputs[0].class_count, 3);
    assert_string_equal(other->outputs[0].class_names[0], kinds[0]);
    assert_string_equal(other->outputs[0].class_names[2], kinds[2]);
    assert_string_equal(other->outputs[1].class_names[1], "yes");
    ASSERT_OK(lk_model_print_classes(other, &again));
    assert_string_equal(text, again);
    free(text);
    free(again);
    lk_model_destroy(model);
    lk_model_destroy(other);
}

/* Checkpoints come from anywhere. */
static void refuse_other_texts(void **state)
{
    (void)state;
    static const struct {
        const char *text, *said;
    } cases[] = {
        {"{", "expected {\"OUTPUT\""},
        {"[\"a\"]", "expected {\"OUTPUT\""},
        {"{\"kin\": [\"a\"]}", "of 'kin': there is no such output"},
        {"{\"kind\": []}", "not as many as there are classes"},
        {"{\"kind\": \"abc\"}", "not as many as there are classes"},
        {"{\"kind\": [\"a\", \"b\", \"c\", \"d\"]}", "not as many as there are classes"},
        {"{\"side\": [\"a\", \"b\", \"c\"]}", "not as many as there are classes"},
        {"{\"kind\": [\"a\", 7]}", "expected texts"},
        {"{\"kind\": [\"a\\u0000b\"]}", "expected {\"OUTPUT\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lk_model *model = read_model();
        assert_refused(lk_model_read_classes(model, cases[i].text), LK_E_DATA, lk_error_text(),
                       cases[i].said);
        lk_error_clear();
        assert_int_equal(model->outputs[0].class_count, 0);
        lk_model_destroy(model);
    }
}

static void expect(const struct lk_model_output *output, const char *const *names, int count,
                   const int32_t *wanted)
{
    int32_t found[8] = {0};
    bool is_matched = false;
    ASSERT_OK(lk_output_find_classes(output, names, count, found, &is_matched));
    assert_int_equal(is_matched, wanted != NULL);
    if (wanted)
        assert_memory_equal(found, wanted, (size_t)count * sizeof *wanted);
}

static void find_names(void **state)
{
    (void)state;
    static const char *const kinds[] = {"cat", "d\xF6g", "bird"};
    static const char *const some[] = {"d\xF6g", "cat"}, *const foreign[] = {"cat", "cow"};
    static const char *const numbers[] = {"0", "1", "2"}, *const others[] = {"2", "0"};
    struct lk_model *model = read_model();
    struct lk_model_output *output = &model->outputs[0];
    int32_t found[8];
    bool is_matched;
    expect(output, some, 2, NULL); /* it has no names */
    ASSERT_OK(lk_output_name_classes(model, output, kinds, 3));
    assert_true(lk_output_has_words(output));
    expect(output, some, 2, (int32_t[]){1, 0});
    expect(output, numbers, 3, NULL);
    assert_refused(lk_output_find_classes(output, foreign, 2, found, &is_matched), LK_E_DATA,
                   lk_error_text(), "class 'cow' is none of the 3");
    lk_error_clear();
    ASSERT_OK(lk_output_name_classes(model, output, numbers, 3));
    assert_false(lk_output_has_words(output));
    expect(output, others, 2, (int32_t[]){2, 0});
    expect(output, foreign, 2, NULL); /* numbers mean nothing that others could miss */
    assert_string_equal(lk_error_text(), "");
    lk_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(print_and_read),
        cmocka_unit_test(refuse_other_texts),
        cmocka_unit_test(find_names),
    };
    return cmocka_run_group_tests_name("classes", tests, NULL, NULL);
}

/* YAML documents: the tree, what is refused, and cutting a part out. */
#include "model/yaml/yaml.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct lk_yaml_document *read_text(const char *text)
{
    struct lk_yaml_document *document = NULL;
    lk_error_clear();
    if (lk_yaml_read(text, strlen(text), "f", &document) != LK_OK)
        fail_msg("'%s' gave '%s'", text, lk_error_text());
    return document;
}

static void reads_a_tree(void **state)
{
    (void)state;
    struct lk_yaml_document *document = read_text("# comment\n"
                                                  "a: [1, \"two\", null]\n"
                                                  "b:\n"
                                                  "  - x: {y: z}\n"
                                                  "  - plain\n"
                                                  "c:\n");
    const struct lk_yaml *root = lk_yaml_root(document);
    assert_int_equal(root->kind, LK_YAML_MAP);
    assert_int_equal(root->count, 3);
    const struct lk_yaml *a = lk_yaml_find(root, "a"), *b = lk_yaml_find(root, "b");
    assert_int_equal(a->kind, LK_YAML_LIST);
    assert_int_equal(a->line, 2);
    assert_string_equal(lk_yaml_item(a, 1)->text, "two");
    assert_true(lk_yaml_item(a, 2)->is_null);
    assert_null(lk_yaml_item(a, 3));
    assert_null(lk_yaml_item(a, -1));
    assert_int_equal(b->line, 3);
    assert_int_equal(b->count, 2);
    const struct lk_yaml *x = lk_yaml_find(lk_yaml_item(b, 0), "x");
    assert_int_equal(x->line, 4);
    assert_string_equal(lk_yaml_find(x, "y")->text, "z");
    assert_null(lk_yaml_find(x, "q"));
    assert_int_equal(lk_yaml_item(b, 1)->line, 5);
    assert_true(lk_yaml_find(root, "c")->is_null);
    lk_yaml_destroy(document);
    lk_yaml_destroy(NULL);
}

static void check_refused(const char *text, size_t bytes, const char *said)
{
    struct lk_yaml_document *document = NULL;
    lk_error_clear();
    const enum lk_status status = lk_yaml_read(text, bytes, "f", &document);
    if (status != LK_E_MODEL || !strstr(lk_error_text(), said))
        fail_msg("'%.60s' gave %d '%s', expected '%s'", text, status, lk_error_text(), said);
    assert_null(document);
    lk_error_clear();
}

static void refuses(void **state)
{
    (void)state;
    static const struct {
        const char *text, *said;
    } cases[] = {
        {"", "f:1: the text is empty"},
        {"# nothing\n", "the text is empty"},
        {"a: 1\nb: &x 2\n", "f:2: anchors"},
        {"a: 1\nb: &x [2]\n", "f:2: anchors"},
        {"a: &x {b: 2}\n", "f:1: anchors"},
        {"a: 1\nb: *x\n", "f:2: aliases"},
        {"l:\n  - add\n    from: a\n",
         "f:3: mapping values are not allowed in this context; '- add' in line 2 has keys "
         "below it and must be '- add:'"},
        {"l:\n  - x: 1\n  - add # both\n\n    from: a",
         "; '- add' in line 3 has keys below it"},
        {"*x : 1\n", "f:1: aliases"},
        {"a: !!int 1\n", "f:1: tags"},
        {"a: 1\n---\nb: 1\n", "f:2: a second document"},
        {"a: 1\nb: 2\na: 3\n", "f:3: key 'a' stands here twice"},
        {"a: {b: 1, b: 2}\n", "f:1: key 'b' stands here twice"},
        {"[a]: 1\n", "f:1: a key must be one word"},
        {"a: [1, 2\nb: 3\n", "f:2:"},
        {"a: 1\n\tb: 2\n", "f:2:"},
        {"a: \"\\0\"\n", "f:1: a text with a zero byte"},
        {"a: 1\nb: \x01\n", "f:2: control characters are not allowed"},
        {"a: 1\nb: \xff\xfe\n", "f:2: invalid leading UTF-8 octet"},
        {"[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]\n", "f:1: nested deeper than 16"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_refused(cases[i].text, strlen(cases[i].text), cases[i].said);
    check_refused("a: 1\nb: \0\n", 10, "f:2:");
}

static void refuses_large_ones(void **state)
{
    (void)state;
    const size_t room = LK_YAML_MOST_BYTES + 2;
    char *text = malloc(room);
    assert_non_null(text);
    memset(text, ' ', room);
    check_refused(text, LK_YAML_MOST_BYTES + 1, "at most 1048576");
    text[0] = '[';
    for (size_t i = 1; i + 2 < 400002; i += 2)
        memcpy(text + i, "1,", 2);
    check_refused(text, 400001, "more than 100000 values");
    size_t used = 0;
    for (int i = 0; i <= LK_YAML_MOST_KEYS; i++)
        used += (size_t)snprintf(text + used, room - used, "k%d: 1\n", i);
    check_refused(text, used, "f:1001: more than 1000 keys");
    free(text);
}

static void names_unknown_keys(void **state)
{
    (void)state;
    static const char *const known[] = {"layers", "input", NULL};
    struct lk_yaml_document *document = read_text("input: 1\nlayer: 2\n");
    assert_int_equal(lk_yaml_check_keys(lk_yaml_root(document), known), LK_E_MODEL);
    assert_string_equal(lk_error_text(), "f:2: unknown key 'layer'; did you mean 'layers'?");
    lk_error_clear();
    lk_yaml_destroy(document);
    document = read_text("input: 1\n");
    assert_int_equal(lk_yaml_check_keys(lk_yaml_root(document), known), LK_OK);
    lk_yaml_destroy(document);
    document = read_text("- input\n");
    assert_int_equal(lk_yaml_check_keys(lk_yaml_root(document), known), LK_E_MODEL);
    lk_error_clear();
    lk_yaml_destroy(document);
}

/* The part that was cut out reads as the same tree, with the same line numbers. */
static void check_cut(const char *text, const char *expected, int line)
{
    struct lk_yaml_document *document = read_text(text);
    const struct lk_yaml *model = lk_yaml_find(lk_yaml_root(document), "m");
    char *cut = NULL;
    assert_int_equal(lk_yaml_cut(text, model, &cut), LK_OK);
    assert_string_equal(cut, expected);
    struct lk_yaml_document *again = read_text(cut);
    assert_int_equal(lk_yaml_root(again)->kind, model->kind);
    assert_int_equal(lk_yaml_root(again)->count, model->count);
    assert_int_equal(lk_yaml_root(again)->first->line, line);
    free(cut);
    lk_yaml_destroy(again);
    lk_yaml_destroy(document);
}

static void cuts_parts_out(void **state)
{
    (void)state;
    check_cut(
        "# \xc3\xa4\xe2\x82\xac\nx: 1\nm:\n    a: [1,\n       2]\n    b:\n      - c\ny: 2\n",
        "\n\n\na: [1,\n   2]\nb:\n  - c\n", 4);
    check_cut("m: {a: \xc3\xa4, b: 2} # c\nx: 1\n", "{a: \xc3\xa4, b: 2}\n", 1);
    check_cut("x: 1\nm:\n- 1\n- 2", "\n\n- 1\n- 2\n", 3);
    check_cut("\xef\xbb\xbfm:\r\n  a: 1\r\n  b: 2\r\nz: 1\r\n", "\na: 1\r\nb: 2\n", 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_a_tree),       cmocka_unit_test(refuses),
        cmocka_unit_test(refuses_large_ones), cmocka_unit_test(names_unknown_keys),
        cmocka_unit_test(cuts_parts_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

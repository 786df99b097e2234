/* Texts of any bytes become UTF-8 and come back. */
#include "base/escape.h"
#include "scratch.h"

static void escapes(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"", ""},
        {"folder:/a \"b\"\\c", "folder:/a \"b\"\\c"},
        {"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
         "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"},
        {"caf\xe9", "caf\\xe9"},
        {"\xff\xfe", "\\xff\\xfe"},
        {"\xe2\x82", "\\xe2\\x82"},          /* cut off */
        {"\xc0\x80", "\\xc0\\x80"},          /* too long */
        {"\xed\xa0\x80", "\\xed\\xa0\\x80"}, /* a surrogate */
        {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},
        {"a\\xe9", "a\\x5cxe9"}, /* looks like an escape, and is none */
        {"\\x5c", "\\x5cx5c"},
        {"\\", "\\"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char escaped[LK_ESCAPED_BYTES(64)];
        lk_escape(cases[i][0], escaped);
        assert_string_equal(escaped, cases[i][1]);
        assert_int_equal(lk_needs_escape(cases[i][0]), strcmp(cases[i][0], escaped) != 0);
        lk_unescape(escaped);
        assert_string_equal(escaped, cases[i][0]);
    }
}

static void comes_back(void **state)
{
    (void)state;
    static const char bytes[] = "\\\\\\xx5cce9\xe9\xc3\xa9\x80\xe2\x82\xac";
    uint32_t random = 1;
    for (int i = 0; i < 20000; i++) {
        char text[33] = "", escaped[LK_ESCAPED_BYTES(sizeof text)];
        for (size_t at = 0; at < sizeof text - 1; at++) {
            random = random * 1664525u + 1013904223u;
            text[at] = bytes[(random >> 16) % (sizeof bytes - 1)];
        }
        lk_escape(text, escaped);
        if (strcmp(text, escaped) != 0)
            assert_true(lk_needs_escape(text));
        lk_unescape(escaped);
        assert_string_equal(escaped, text);
    }
}

/* What was not escaped is left alone. */
static void leaves_other_words(void **state)
{
    (void)state;
    char text[] = "C:\\xavier \\x41 \\xE9 \\xe";
    lk_unescape(text);
    assert_string_equal(text, "C:\\xavier \\x41 \\xE9 \\xe");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(escapes),
        cmocka_unit_test(comes_back),
        cmocka_unit_test(leaves_other_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

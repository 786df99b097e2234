/* Numbers and options read and print the same under a locale with a decimal comma. */
#include "base/number.h"
#include "base/option.h"
#include "scratch.h"
#include "skip.h"

#include <locale.h>

/* Takes the system's German locale, or makes one; false: neither is to be had. */
static bool speak_german(void)
{
    static const char name[] = "de_DE.UTF-8";
    char command[1024];
    if (setlocale(LC_NUMERIC, name))
        return true;
    snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 '%s' >'%s' 2>&1",
             scratch_path(name), scratch_path("log"));
    if (system(command) < 0)
        return false;
    setenv("LOCPATH", scratch, 1);
    return setlocale(LC_NUMERIC, name) != NULL;
}

static void has_no_comma(void **state)
{
    (void)state;
    char text[64], *end;
    if (!speak_german())
        SKIP_TEST("needs de_DE.UTF-8, or localedef and its sources");
    snprintf(text, sizeof text, "%g", 0.5);
    assert_string_equal(text, "0,5"); /* so the locale works */
    lk_number_print(0.1, text, sizeof text);
    assert_string_equal(text, "0.1");
    lk_number_print(1.0 / 3, text, sizeof text);
    assert_true(lk_number_read(text, &end) == 1.0 / 3 && *end == '\0');
    assert_true(lk_number_read("2.5,", &end) == 2.5 && *end == ',');
    static const struct lk_option table[] = {
        {.name = "rate", .kind = LK_OPTION_REAL, .max = 1.5, .standard = "0.1"}, {0}};
    double rate = 0;
    assert_int_equal(lk_options_parse(table, &rate, "rate=0.75"), LK_OK);
    assert_true(rate == 0.75);
    assert_true(lk_options_print(table, &rate, true, text, sizeof text));
    assert_string_equal(text, "rate=0.75");
    assert_int_equal(lk_option_set(table, &rate, "rate", "1.75"), LK_E_ARGUMENT);
    assert_string_equal(lk_error_text(), "option 'rate': 1.75 is not in 0..1.5");
    lk_error_clear();
    snprintf(text, sizeof text, "%g", 0.5);
    assert_string_equal(text, "0,5"); /* the host's locale is left as it was */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(has_no_comma)};
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}

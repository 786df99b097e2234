/* Option tables: parse, refuse, print and read back. */
#include "base/option.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

struct options {
    int64_t filters;
    int64_t kernel[2];
    double rate;
    double scales[3];
    bool bias;
    int activation;
    char label[8];
};

static const char *const activations[] = {"none", "relu", "tanh", NULL};
static const struct lk_option table[] = {
    {.name = "filters",
     .kind = LK_OPTION_INT,
     .offset = offsetof(struct options, filters),
     .min = 1,
     .max = 1 << 24},
    {.name = "kernel",
     .kind = LK_OPTION_INT,
     .offset = offsetof(struct options, kernel),
     .count = 2,
     .min = 1,
     .max = 9,
     .standard = "3"},
    {.name = "rate",
     .kind = LK_OPTION_REAL,
     .offset = offsetof(struct options, rate),
     .max = 1,
     .standard = "0.1"},
    {.name = "scales",
     .kind = LK_OPTION_REAL,
     .offset = offsetof(struct options, scales),
     .count = 3,
     .min = -9,
     .max = 9,
     .standard = "1"},
    {.name = "bias",
     .kind = LK_OPTION_BOOL,
     .offset = offsetof(struct options, bias),
     .standard = "true"},
    {.name = "activation",
     .kind = LK_OPTION_CHOICE,
     .offset = offsetof(struct options, activation),
     .standard = "none",
     .choices = activations},
    {.name = "label",
     .kind = LK_OPTION_TEXT,
     .offset = offsetof(struct options, label),
     .count = 8,
     .standard = ""},
    {0},
};

static void parses_every_kind(void **state)
{
    (void)state;
    struct options o = {0};
    assert_int_equal(
        lk_options_parse(table, &o,
                         "filters=64 kernel=[3, 5] rate=2.5e-1 scales=[.5, -2,9] bias=false "
                         "activation=relu label=\"a b\""),
        LK_OK);
    assert_int_equal(o.filters, 64);
    assert_int_equal(o.kernel[0], 3);
    assert_int_equal(o.kernel[1], 5);
    assert_true(o.rate == 0.25);
    assert_true(o.scales[0] == 0.5 && o.scales[1] == -2 && o.scales[2] == 9);
    assert_false(o.bias);
    assert_int_equal(o.activation, 1);
    assert_string_equal(o.label, "a b");
}

static void refuses(void **state)
{
    (void)state;
    static const struct {
        const char *text, *said;
    } cases[] = {
        {"", "'filters' is missing"},
        {"filters=0", "0 is not in 1..16777216"},
        {"filters=x", "not a whole number"},
        {"filters=99999999999999999999", "not a whole number"},
        {"filters=1 kernel=1,2,3", "one whole number for each axis"},
        {"filters=1 kernal=3", "did you mean 'kernel'?"},
        {"filters=1 activation=rely", "did you mean 'relu'?"},
        {"filters=1 rate=nan", "not a number"},
        {"filters=1 rate=1,2", "not a number"},
        {"filters=1 scales=1,2", "one number, or one for each"},
        {"filters=1 scales=1,2,3,4", "one number, or one for each"},
        {"filters=1 scales=1,2,10", "not in -9..9"},
        {"filters=1 bias=maybe", "neither true nor false"},
        {"filters=1 label=12345678", "at most 7"},
        {"filters", "expected name=value"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct options o = {0};
        lk_error_clear();
        assert_int_equal(lk_options_parse(table, &o, cases[i].text), LK_E_ARGUMENT);
        if (!strstr(lk_error_text(), cases[i].said))
            fail_msg("'%s' gave '%s'", cases[i].text, lk_error_text());
    }
    lk_error_clear();
}

static void prints_and_reads_back(void **state)
{
    (void)state;
    struct options o = {0}, again = {0};
    char text[256], tiny[8];
    assert_int_equal(
        lk_options_parse(table, &o, "filters=7 rate=0.30000000000000004 scales=1,2,0.1"),
        LK_OK);
    assert_true(lk_options_print(table, &o, false, text, sizeof text));
    assert_string_equal(text, "filters=7 rate=0.30000000000000004 scales=1,2,0.1");
    assert_true(lk_options_print(table, &o, true, text, sizeof text));
    assert_int_equal(lk_options_parse(table, &again, text), LK_OK);
    assert_memory_equal(&o, &again, sizeof o);
    assert_false(lk_options_print(table, &o, true, tiny, sizeof tiny));
}

static void tells_a_value(void **state)
{
    (void)state;
    struct options o = {0};
    assert_int_equal(lk_options_parse(table, &o, "filters=7 bias=false"), LK_OK);
    assert_true(lk_option_is(table, &o, "bias", "false"));
    assert_false(lk_option_is(table, &o, "bias", "true"));
    assert_true(lk_option_is(table, &o, "activation", "none"));
    assert_true(lk_option_is(table, &o, "filters", "7"));
    assert_false(lk_option_is(table, &o, "no_such_option", "false"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parses_every_kind),
        cmocka_unit_test(refuses),
        cmocka_unit_test(prints_and_reads_back),
        cmocka_unit_test(tells_a_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

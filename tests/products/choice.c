/* Choices of algorithms: what is kept wins, then what is preferred, then what costs least. */
#include "products/kernel/choice.h"

#include "base/fail.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct lk_choice four = {.key = "a",
                                      .candidates = {{"direct", 10, LK_MATH_STRICT},
                                                     {"direct 4x6", 11, LK_MATH_STRICT},
                                                     {"wide", 4, LK_MATH_NORMAL},
                                                     {"coarse", 1, LK_MATH_FAST},
                                                     {"narrow", -1, LK_MATH_STRICT}},
                                      .count = 5};

static struct lk_choices *made(enum lk_math math)
{
    struct lk_choices *choices;
    assert_int_equal(lk_choices_create(math, &choices), LK_OK);
    return choices;
}

static const char *taken(struct lk_choices *choices, const char *key)
{
    struct lk_choice choice = four;
    int place = -1;
    strcpy(choice.key, key);
    assert_int_equal(lk_choices_make(choices, &choice, &place), LK_OK);
    return four.candidates[place].name;
}

static void math_bounds_the_rule(void **state)
{
    (void)state;
    assert_string_equal(taken(NULL, "a"), "direct");
    const char *const expected[] = {"direct", "wide", "coarse"};
    for (int math = LK_MATH_STRICT; math <= LK_MATH_FAST; math++) {
        struct lk_choices *choices = made((enum lk_math)math);
        char text[LK_CHOICE_TEXT_BYTES];
        assert_false(lk_choices_find(choices, "a", text));
        assert_string_equal(taken(choices, "a"), expected[math]);
        assert_true(lk_choices_find(choices, "a", text));
        assert_string_equal(text, expected[math]);
        lk_choices_destroy(choices);
    }
}

static void kept_wins_over_preferred(void **state)
{
    (void)state;
    struct lk_choices *choices = made(LK_MATH_NORMAL);
    assert_int_equal(lk_choices_set(choices, "a", "wide"), LK_OK);
    assert_int_equal(lk_choices_prefer(choices, "direct"), LK_OK);
    assert_string_equal(taken(choices, "a"), "wide");
    assert_string_equal(taken(choices, "b"), "direct");
    assert_int_equal(lk_choices_set(choices, "d", "direct 4x6"), LK_OK);
    assert_string_equal(taken(choices, "d"), "direct 4x6");
    assert_int_equal(lk_choices_set(choices, "d", "direct 5x5"), LK_OK); /* same bits */
    assert_string_equal(taken(choices, "d"), "direct");
    /* what is unknown, cannot or is not allowed is not taken, whoever asks for it */
    static const char *const wrong[] = {"unheard", "narrow", "coarse"};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(lk_choices_set(choices, "c", wrong[i]), LK_OK);
        assert_string_equal(taken(choices, "c"), "direct");
        assert_int_equal(lk_choices_prefer(choices, NULL), LK_OK);
        assert_int_equal(lk_choices_set(choices, "c", wrong[i]), LK_OK);
        assert_string_equal(taken(choices, "c"), "wide");
        assert_int_equal(lk_choices_prefer(choices, "direct"), LK_OK);
    }
    lk_choices_destroy(choices);
}

static void names_are_compared_by_words(void **state)
{
    (void)state;
    assert_string_equal(lk_candidate_blocking("direct gather 8x3"), "8x3");
    assert_string_equal(lk_candidate_blocking("direct 8x3"), "8x3");
    assert_string_equal(lk_candidate_blocking("winograd4 fused"), "");
    assert_true(lk_candidate_is_same("direct gather 8x3", "direct gather"));
    assert_false(lk_candidate_is_same("direct gather", "direct gatherer"));
    assert_false(lk_candidate_is_same("direct", "direct gather"));
    assert_true(lk_candidate_is_kin("direct", "direct gather 8x3"));
    assert_false(lk_candidate_is_kin("gemm", "gemm-tf32"));
    assert_true(lk_candidate_answers("direct gather 8x3", "direct"));
    assert_true(lk_candidate_answers("direct gather 8x3", "direct 8x3"));
    assert_false(lk_candidate_answers("direct gather 8x3", "direct 4x6"));
    assert_false(lk_candidate_answers("direct gather", "direct pointwise"));
    assert_false(lk_candidate_answers("direct", "direct gather"));
}

/* What an older run has kept names a family: the kernel of today and the blocking stay. */
static void families_stand_for_their_kernels(void **state)
{
    struct lk_choice choice = {.key = "a",
                               .candidates = {{"direct gather", 10, LK_MATH_STRICT},
                                              {"direct gather 4x6", 11, LK_MATH_STRICT},
                                              {"winograd4 fused", 4, LK_MATH_NORMAL}},
                               .count = 3};
    static const char *const cases[][2] = {
        {"direct", "direct gather"},      {"direct 4x6", "direct gather 4x6"},
        {"direct 2x9", "direct gather"},  {"direct pointwise 4x6", "direct gather 4x6"},
        {"winograd4", "winograd4 fused"}, {"winograd4 rounds", "winograd4 fused"},
        {"winograd2", "winograd4 fused"}};
    (void)state;
    for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
        struct lk_choices *choices = made(LK_MATH_NORMAL);
        int place = -1;
        assert_int_equal(lk_choices_set(choices, "a", cases[i][0]), LK_OK);
        assert_int_equal(lk_choices_make(choices, &choice, &place), LK_OK);
        assert_string_equal(choice.candidates[place].name, cases[i][1]);
        lk_choices_destroy(choices);
    }
}

static void what_is_known_is_taken(void **state)
{
    (void)state;
    char text[LK_CHOICE_TEXT_BYTES];
    struct lk_choices *known = made(LK_MATH_NORMAL), *blockings = made(LK_MATH_NORMAL);
    struct lk_choices *choices = made(LK_MATH_NORMAL), *strict = made(LK_MATH_STRICT);
    lk_choices_set_fallbacks(choices, known, blockings);
    lk_choices_set_fallbacks(strict, NULL, blockings);
    assert_int_equal(lk_choices_set(known, "a", "direct"), LK_OK);
    assert_int_equal(lk_choices_set(blockings, "b", "direct 4x6"), LK_OK);
    assert_true(lk_choices_find(choices, "a", text));
    assert_false(lk_choices_find(choices, "b", text));
    assert_string_equal(taken(choices, "a"), "direct");
    assert_string_equal(taken(choices, "b"), "wide"); /* other bits: the rule stays */
    assert_string_equal(taken(strict, "b"), "direct 4x6");
    lk_choices_destroy(choices);
    lk_choices_destroy(strict);
    lk_choices_destroy(known);
    lk_choices_destroy(blockings);
}

static void note(void *context, const char *key, const char *text)
{
    char *all = context;
    snprintf(all + strlen(all), 256 - strlen(all), "%s=%s ", key, text);
}

static void a_list_is_in_order_of_keys(void **state)
{
    (void)state;
    char all[256] = "";
    struct lk_choices *choices = made(LK_MATH_NORMAL);
    for (int i = 0; i < 26; i++) {
        const char key[] = {(char)('a' + i * 7 % 26), '\0'};
        assert_int_equal(lk_choices_set(choices, key, key), LK_OK);
    }
    assert_int_equal(lk_choices_set(choices, "a", "z"), LK_OK);
    lk_choices_each(choices, note, all);
    assert_int_equal(strlen(all), 26 * 4);
    assert_memory_equal(all, "a=z b=b c=c ", 12);
    assert_memory_equal(all + 25 * 4, "z=z ", 4);
    lk_choices_destroy(choices);
}

static void long_texts_are_refused(void **state)
{
    (void)state;
    char text[LK_CHOICE_KEY_BYTES + 1];
    memset(text, 'k', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    struct lk_choices *choices = made(LK_MATH_NORMAL);
    assert_int_equal(lk_choices_set(choices, text, "direct"), LK_E_ARGUMENT);
    assert_int_equal(lk_choices_set(choices, "a", text), LK_E_ARGUMENT);
    assert_int_equal(lk_choices_prefer(choices, text), LK_E_ARGUMENT);
    lk_choices_destroy(choices);
}

static void too_many_are_refused(void **state)
{
    (void)state;
    char key[16];
    int kept = 0;
    struct lk_choices *choices = made(LK_MATH_NORMAL);
    for (int i = 0; i < 10000; i++) {
        snprintf(key, sizeof key, "%05d", i);
        kept += lk_choices_set(choices, key, "direct") == LK_OK;
    }
    assert_int_equal(kept, 8192);
    assert_int_equal(lk_choices_set(choices, "10000", "direct"), LK_E_DATA);
    assert_int_equal(lk_choices_set(choices, "00000", "wide"), LK_OK); /* it is there */
    lk_error_clear();
    lk_choices_destroy(choices);
}

static void nothing_that_can_is_an_error(void **state)
{
    (void)state;
    int place = -7;
    lk_error_clear();
    struct lk_choice choice = four;
    for (int i = 0; i < 2; i++)
        choice.candidates[i].cost = -1;
    assert_int_equal(lk_choices_make(NULL, &choice, &place), LK_E_UNSUPPORTED);
    assert_int_equal(place, -7);
    assert_string_equal(lk_error_text(), "no algorithm does a");
}

static void a_list_is_read_as_it_was_printed(void **state)
{
    (void)state;
    char *text = NULL, *again = NULL;
    struct lk_choices *choices = made(LK_MATH_FAST), *read = NULL;
    assert_int_equal(lk_choices_set(choices, "conv2d wgrad on a, b", "direct"), LK_OK);
    assert_int_equal(lk_choices_set(choices, "conv2d dgrad on a, b", "winograd4"), LK_OK);
    assert_int_equal(lk_choices_print(choices, &text), LK_OK);
    assert_string_equal(text, "math fast\nconv2d dgrad on a, b\twinograd4\n"
                              "conv2d wgrad on a, b\tdirect\n");
    assert_int_equal(lk_choices_open(text, "here", &read), LK_OK);
    assert_int_equal(lk_choices_print(read, &again), LK_OK);
    assert_string_equal(text, again);
    free(text);
    free(again);
    lk_choices_destroy(choices);
    lk_choices_destroy(read);
}

static void what_is_no_list_is_refused(void **state)
{
    (void)state;
    char longest[1024] = "math normal\n";
    memset(longest + 12, 'k', sizeof longest - 13);
    const struct {
        const char *text, *said;
    } cases[] = {
        {"", "here, line 1: expected math and its name, found ''"},
        {"math", "here, line 1: expected math and its name, found 'math'"},
        {"math normally\n", "here, line 1: expected math and its name, found 'math normally'"},
        {"math strict\n", "here: made with math strict, asked for is normal"},
        {"math normal\na\tb\nc\n",
         "here, line 3: expected a key, a tab and an algorithm, found 'c'"},
        {"math normal\n\tb",
         "here, line 2: expected a key, a tab and an algorithm, found '\tb'"},
        {"math normal\na\t",
         "here, line 2: expected a key, a tab and an algorithm, found 'a\t'"},
        {"math normal\na\tb\tc",
         "here, line 2: expected a key, a tab and an algorithm, found 'a\tb\tc'"},
        {longest, "here, line 2: 1011 characters are too many"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lk_choices *choices = made(LK_MATH_NORMAL);
        lk_error_clear();
        assert_int_equal(lk_choices_read(choices, cases[i].text, "here"), LK_E_DATA);
        assert_string_equal(lk_error_text(), cases[i].said);
        lk_choices_destroy(choices);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(math_bounds_the_rule),
        cmocka_unit_test(kept_wins_over_preferred),
        cmocka_unit_test(names_are_compared_by_words),
        cmocka_unit_test(families_stand_for_their_kernels),
        cmocka_unit_test(what_is_known_is_taken),
        cmocka_unit_test(a_list_is_in_order_of_keys),
        cmocka_unit_test(long_texts_are_refused),
        cmocka_unit_test(a_list_is_read_as_it_was_printed),
        cmocka_unit_test(what_is_no_list_is_refused),
        cmocka_unit_test(too_many_are_refused),
        cmocka_unit_test(nothing_that_can_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

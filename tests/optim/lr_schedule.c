/* Learning-rate schedules: known values, shape, refusals. */
#include "optim/plateau.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void has_known_rates(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t step;
        double rate; /* of base 0.5 */
    } cases[] = {
        {NULL, 1, 0.5},
        {"", 1000000, 0.5},
        {"warmup=4", 1, 0.125},
        {"warmup=4", 3, 0.375},
        {"warmup=4", 4, 0.5},
        {"warmup=4", 5, 0.5},
        {"kind=step every=10 factor=0.5", 10, 0.5},
        {"kind=step every=10 factor=0.5", 11, 0.25},
        {"kind=step every=10 factor=0.5", 20, 0.25},
        {"kind=step every=10 factor=0.5", 21, 0.125},
        {"kind=step every=10 factor=0.5 warmup=5", 15, 0.5},
        {"kind=step every=10 factor=0.5 warmup=5", 16, 0.25},
        {"kind=exponential every=10 factor=0.25", 1, 0.5},
        {"kind=exponential every=10 factor=0.25", 6, 0.25},
        {"kind=exponential every=10 factor=0.25", 11, 0.125},
        {"kind=cosine steps=100", 1, 0.5},
        {"kind=cosine steps=100", 51, 0.25},
        {"kind=cosine steps=90", 31, 0.375},
        {"kind=cosine steps=100", 101, 0},
        {"kind=cosine steps=100", 5000, 0},
        {"kind=cosine steps=100 last=0.5", 51, 0.375},
        {"kind=cosine steps=100 last=0.5", 101, 0.25},
        {"kind=cosine steps=100 warmup=10", 5, 0.25},
        {"kind=cosine steps=100 warmup=10", 11, 0.5},
        {"kind=cosine steps=100 warmup=10", 61, 0.25},
        {"kind=polynomial steps=100", 1, 0.5},
        {"kind=polynomial steps=100", 26, 0.375},
        {"kind=polynomial steps=100", 101, 0},
        {"kind=polynomial steps=100", 5000, 0},
        {"kind=polynomial steps=100 power=2", 51, 0.125},
        {"kind=polynomial steps=100 power=2 last=0.2", 51, 0.2},
        {"kind=polynomial steps=100 power=0.5 last=0.2 warmup=4", 80, 0.3},
        {"kind=polynomial steps=100 last=0.2", 200, 0.1},
        {"kind=plateau warmup=4", 1, 0.125},
        {"kind=plateau", 1000, 0.5},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct lk_lr_schedule schedule;
        assert_int_equal(lk_lr_schedule_parse(cases[i].text, &schedule), LK_OK);
        const double rate = lk_lr_schedule_rate(&schedule, 0.5, cases[i].step);
        if (!(fabs(rate - cases[i].rate) < 1e-15))
            fail_msg("'%s' at step %lld: %.17g, expected %.17g", cases[i].text,
                     (long long)cases[i].step, rate, cases[i].rate);
    }
}

static void cosine_falls(void **state)
{
    (void)state;
    struct lk_lr_schedule schedule;
    assert_int_equal(lk_lr_schedule_parse("kind=cosine steps=1000 last=0.1", &schedule), LK_OK);
    for (int64_t step = 2; step <= 1001; step++)
        assert_true(lk_lr_schedule_rate(&schedule, 3, step) <
                    lk_lr_schedule_rate(&schedule, 3, step - 1));
}

/* What keras.callbacks.ReduceLROnPlateau makes of these losses, one after each of steps 10, 20,
 * ...: the rates of the steps behind them. */
static void falls_at_plateaus(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int count;
        double figures[12], rates[12];
    } cases[] = {
        {"kind=plateau factor=0.5 patience=2 min_delta=0",
         10,
         {9, 8, 8, 8, 8, 8, 7, 7, 7, 7},
         {1, 1, 1, 0.5, 0.5, 0.25, 0.25, 0.25, 0.125, 0.125}},
        {"kind=plateau factor=0.5 patience=1 min_delta=0.5 cooldown=2",
         8,
         {9, 8.6, 8.4, 8.4, 8.4, 8.4, 8.4, 7},
         {1, 0.5, 0.5, 0.25, 0.25, 0.125, 0.125, 0.125}},
        {"kind=plateau factor=0.1 patience=1 min_lr=0.05",
         6,
         {5, 5, NAN, 5, 5, 5},
         {1, 0.1, 0.05, 0.05, 0.05, 0.05}},
        {"kind=plateau factor=0.5 patience=2 min_delta=0 monitor=accuracy",
         6,
         {0.5, 0.6, 0.6, 0.6, 0.7, 0.8},
         {1, 1, 1, 0.5, 0.5, 0.5}},
        {"kind=plateau patience=1 min_lr=2", 3, {5, 5, 5}, {1, 1, 1}},
    };
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        struct lk_lr_schedule schedule;
        struct lk_plateau plateau = {0};
        char text[LK_PLATEAU_TEXT];
        double before = 1;
        assert_int_equal(lk_lr_schedule_parse(cases[k].text, &schedule), LK_OK);
        for (int i = 0; i < cases[k].count; i++) {
            const int64_t step = 10 * (i + 1);
            const bool falls =
                lk_plateau_take(&schedule, &plateau, 1, step, cases[k].figures[i]);
            lk_plateau_print(&plateau, text); /* as a run that is stopped after each */
            memset(&plateau, 0, sizeof plateau);
            assert_int_equal(lk_plateau_parse(text, &plateau), LK_OK);
            const double rate = lk_plateau_rate(&schedule, &plateau, 1, step + 1);
            if (!(fabs(rate - cases[k].rates[i]) < 1e-15))
                fail_msg("'%s' behind step %d: %g, expected %g", cases[k].text, (int)step, rate,
                         cases[k].rates[i]);
            assert_true(falls == (rate != before));
            assert_true(lk_plateau_rate(&schedule, &plateau, 1, step) == before);
            before = rate;
        }
    }
    struct lk_plateau plateau = {.waited = 77};
    assert_int_equal(lk_plateau_parse("waited=-1", &plateau), LK_E_ARGUMENT);
    assert_int_equal(plateau.waited, 77);
    lk_error_clear();
}

static void refuses(void **state)
{
    (void)state;
    static const struct {
        const char *text, *said;
    } cases[] = {
        {"kind=cosin steps=3", "did you mean 'cosine'?"},
        {"kind=cosine", "'cosine' needs steps=STEPS"},
        {"kind=polynomial", "'polynomial' needs steps=STEPS"},
        {"kind=plateau factor=1", "'plateau': factor 1: expected less than 1"},
        {"kind=plateau monitor=los", "did you mean 'loss'?"},
        {"kind=step", "'step' needs every=STEPS"},
        {"kind=exponential factor=0.5", "'exponential' needs every=STEPS"},
        {"warmup=-1", "learning-rate schedule: option 'warmup': -1 is not in"},
        {"kind=step every=3 factor=-0.5", "'factor': -0.5 is not in"},
        {"kind=cosine steps=3 last=2", "'last': 2 is not in"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct lk_lr_schedule schedule = {.warmup = 77};
        lk_error_clear();
        assert_int_equal(lk_lr_schedule_parse(cases[i].text, &schedule), LK_E_ARGUMENT);
        if (!strstr(lk_error_text(), cases[i].said))
            fail_msg("'%s' gave '%s'", cases[i].text, lk_error_text());
        assert_int_equal(schedule.warmup, 77);
    }
    lk_error_clear();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_known_rates),
        cmocka_unit_test(cosine_falls),
        cmocka_unit_test(falls_at_plateaus),
        cmocka_unit_test(refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Learning-rate schedules: known values, shape, refusals. */
#include "optim/lr_schedule.h"

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

static void refuses(void **state)
{
    (void)state;
    static const struct {
        const char *text, *said;
    } cases[] = {
        {"kind=cosin steps=3", "did you mean 'cosine'?"},
        {"kind=cosine", "'cosine' needs steps=STEPS"},
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
        cmocka_unit_test(refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

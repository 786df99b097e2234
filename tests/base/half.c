/* Halves as bits, against numbers worked out from their definition. */
#include "base/half.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Of a half that is a number, or infinite. */
static double value_of(int half)
{
    const int exponent = half >> 10 & 31, rest = half & 1023;
    const double size = exponent == 31 ? (double)INFINITY
                        : exponent     ? ldexp(1024 + rest, exponent - 25)
                                       : ldexp(rest, -24);
    return half & 0x8000 ? -size : size;
}

static void all_halves_are_themselves(void **state)
{
    (void)state;
    for (int half = 0; half < 1 << 16; half++) {
        const float value = lk_half_value((uint16_t)half);
        if ((half & 0x7fff) > 0x7c00) {
            assert_true(isnan(value));
            assert_true(isnan(lk_half_value(lk_half_of(value))));
            continue;
        }
        assert_true((double)value == value_of(half));
        assert_int_equal(lk_half_of(value), half);
    }
}

/* Between two neighbours: the nearer one, at the middle the even one. */
static void others_are_rounded(void **state)
{
    (void)state;
    for (int half = 0; half < 0x7bff; half++) {
        const float low = lk_half_value((uint16_t)half),
                    high = lk_half_value((uint16_t)(half + 1));
        const float middle = (low + high) / 2;
        assert_int_equal(lk_half_of(middle), half + (half & 1));
        assert_int_equal(lk_half_of(nextafterf(middle, low)), half);
        assert_int_equal(lk_half_of(nextafterf(middle, high)), half + 1);
        assert_int_equal(lk_half_of(-middle), 0x8000 | (half + (half & 1)));
    }
    assert_int_equal(lk_half_of(65519.996f), 0x7bff);
    assert_int_equal(lk_half_of(65520), 0x7c00);
    assert_int_equal(lk_half_of(1e30f), 0x7c00);
    assert_int_equal(lk_half_of(1e-30f), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_halves_are_themselves),
        cmocka_unit_test(others_are_rounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

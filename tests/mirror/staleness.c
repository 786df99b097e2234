/* The bound on staleness, followed through updates of simulated devices. */
#include "mirror/staleness.h"

#include "base/random.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define assert_ok(call) assert_int_equal(call, LK_OK)

static uint64_t drawn;

static int draw(int below)
{
    return (int)(lk_random_unit(lk_random(5, LK_RANDOM_DATA, 0, drawn++).v[0]) * below);
}

static void test_refusals(void **state)
{
    struct lk_staleness s;
    (void)state;
    assert_int_equal(lk_staleness_init(&s, -1, 2, 0), LK_E_ARGUMENT);
    assert_int_equal(lk_staleness_init(&s, LK_MOST_STALENESS + 1, 2, 0), LK_E_ARGUMENT);
    assert_int_equal(lk_staleness_init(&s, 1, 0, 0), LK_E_ARGUMENT);
    assert_int_equal(lk_staleness_init(&s, 1, LK_MOST_STALE_WORKERS + 1, 0), LK_E_ARGUMENT);
    assert_int_equal(lk_staleness_init(&s, 1, 2, -1), LK_E_ARGUMENT);
    lk_error_clear();
}

/* Three begin at once; the first is done twice before any other. */
static void test_bound(void **state)
{
    struct lk_staleness s;
    (void)state;
    assert_ok(lk_staleness_init(&s, 3, 3, 7));
    for (int i = 0; i < 3; i++) {
        assert_true(lk_staleness_may_begin(&s, 7));
        lk_staleness_begin(&s, i, 7);
    }
    for (int64_t i = 0; i < 2; i++) { /* the others could still have staleness 2 and 3 */
        assert_int_equal(lk_staleness_may_apply(&s, 0), true);
        lk_staleness_apply(&s, 0);
        assert_true(lk_staleness_may_begin(&s, 8 + i));
        lk_staleness_begin(&s, 0, 8 + i);
    }
    assert_false(lk_staleness_may_apply(&s, 0)); /* one of them would have staleness 4 */
    assert_true(lk_staleness_may_apply(&s, 1));
    lk_staleness_apply(&s, 1);
    assert_false(lk_staleness_may_apply(&s, 0));
    lk_staleness_abandon(&s, 2);
    assert_true(lk_staleness_may_apply(&s, 0));
    assert_int_equal(s.updates, 10);
    assert_true(s.counts[0] == 2 && s.counts[2] == 1);
}

static void test_one_at_a_time(void **state)
{
    struct lk_staleness s;
    (void)state;
    assert_ok(lk_staleness_init(&s, 0, 2, 0));
    lk_staleness_begin(&s, 0, 0);
    assert_false(lk_staleness_may_begin(&s, 0));
    lk_staleness_apply(&s, 0);
    assert_false(lk_staleness_may_begin(&s, 0)); /* its replica lacks the update */
    assert_true(lk_staleness_may_begin(&s, 1));
}

/* Devices of any speed, which fail now and then: no update is staler than allowed, and whoever
 * is oldest may always apply, so that all go on. */
static void simulate(int most, int workers)
{
    struct lk_staleness s;
    int64_t counted = 0;
    assert_ok(lk_staleness_init(&s, most, workers, 0));
    for (int i = 0; i < 3000; i++) {
        const int w = draw(1 + draw(workers)); /* low ones are fast */
        int oldest = -1;
        for (int j = 0; j < workers; j++)
            if (s.is_working[j] && (oldest < 0 || s.bases[j] < s.bases[oldest]))
                oldest = j;
        assert_true(oldest < 0 || lk_staleness_may_apply(&s, oldest));
        const int64_t base = s.updates - (s.updates > 0 ? draw(2) : 0); /* may lack the last */
        if (!s.is_working[w] && lk_staleness_may_begin(&s, base)) {
            lk_staleness_begin(&s, w, base);
        } else if (s.is_working[w] && draw(20) == 0) {
            lk_staleness_abandon(&s, w);
        } else if (s.is_working[w] && lk_staleness_may_apply(&s, w)) {
            assert_in_range(s.updates - s.bases[w], 0, most);
            lk_staleness_apply(&s, w);
        }
    }
    for (int i = 0; i <= most; i++)
        counted += s.counts[i];
    assert_int_equal(counted, s.updates);
    assert_true(s.updates > 30);
}

static void test_simulations(void **state)
{
    (void)state;
    for (int workers = 1; workers <= 8; workers++)
        for (int most = 0; most <= 20; most++)
            simulate(most, workers);
    simulate(LK_MOST_STALENESS, LK_MOST_STALE_WORKERS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_bound),
        cmocka_unit_test(test_one_at_a_time),
        cmocka_unit_test(test_simulations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

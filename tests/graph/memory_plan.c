/* The memory plan: nothing overlaps that lives together, and lifetimes are really shared. */
#include "graph/memory/plan.h"

#include "base/random.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { ALIGN = 128 };

static void check(const struct lk_live_range *live_ranges, int count,
                  const struct lk_memory_plan *plan)
{
    for (int i = 0; i < count; i++) {
        const struct lk_live_range *a = &live_ranges[i];
        assert_int_equal(a->offset % ALIGN, 0);
        assert_true(a->slab < plan->slabs);
        assert_true(a->offset + a->bytes <= plan->slab_bytes[a->slab]);
        for (int j = 0; j < i; j++) {
            const struct lk_live_range *b = &live_ranges[j];
            if (a->slab == b->slab && a->first <= b->last && b->first <= a->last)
                assert_true(a->offset + a->bytes <= b->offset ||
                            b->offset + b->bytes <= a->offset);
        }
    }
}

static void random_blobs_do_not_overlap(void **state)
{
    (void)state;
    for (uint32_t trial = 0; trial < 200; trial++) {
        struct lk_live_range live_ranges[40];
        struct lk_memory_plan plan;
        const int count = 1 + (int)trial % 40;
        memset(live_ranges, 0, sizeof live_ranges);
        for (int i = 0; i < count; i++) {
            const struct lk_random4 r = lk_random(1, LK_RANDOM_DATA, trial, (uint64_t)i);
            live_ranges[i].bytes = 1 + r.v[0] % 5000;
            live_ranges[i].first = (int)(r.v[1] % 30);
            live_ranges[i].last = live_ranges[i].first + (int)(r.v[2] % 10);
        }
        assert_int_equal(
            lk_memory_plan_make(live_ranges, count, ALIGN, trial % 2 ? 8192 : 1 << 20, &plan),
            LK_OK);
        check(live_ranges, count, &plan);
    }
}

static void a_chain_needs_only_two_at_a_time(void **state)
{
    (void)state;
    struct lk_live_range live_ranges[10];
    struct lk_memory_plan plan;
    for (int i = 0; i < 10; i++)
        live_ranges[i] = (struct lk_live_range){.bytes = 1024, .first = i, .last = i + 1};
    assert_int_equal(lk_memory_plan_make(live_ranges, 10, ALIGN, 1 << 20, &plan), LK_OK);
    check(live_ranges, 10, &plan);
    assert_int_equal(plan.total_bytes, 2048);
}

static void one_that_is_too_large_is_refused(void **state)
{
    (void)state;
    struct lk_live_range live_range = {.bytes = 5000};
    struct lk_memory_plan plan = {.slabs = 7};
    lk_error_clear();
    assert_int_equal(lk_memory_plan_make(&live_range, 1, ALIGN, 4096, &plan),
                     LK_E_DEVICE_MEMORY);
    assert_non_null(strstr(lk_error_text(), "5000"));
    assert_int_equal(plan.slabs, 7); /* untouched */
    lk_error_clear();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_blobs_do_not_overlap),
        cmocka_unit_test(a_chain_needs_only_two_at_a_time),
        cmocka_unit_test(one_that_is_too_large_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

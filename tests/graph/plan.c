/* The memory plan: nothing overlaps that lives together, and lifetimes are really shared. */
#include "graph/plan.h"

#include "base/random.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { ALIGN = 128 };

static void check(const struct lk_blob *blobs, int count, const struct lk_plan *plan)
{
    for (int i = 0; i < count; i++) {
        const struct lk_blob *a = &blobs[i];
        assert_int_equal(a->offset % ALIGN, 0);
        assert_true(a->slab < plan->slabs);
        assert_true(a->offset + a->bytes <= plan->slab_bytes[a->slab]);
        for (int j = 0; j < i; j++) {
            const struct lk_blob *b = &blobs[j];
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
        struct lk_blob blobs[40];
        struct lk_plan plan;
        const int count = 1 + (int)trial % 40;
        memset(blobs, 0, sizeof blobs);
        for (int i = 0; i < count; i++) {
            const struct lk_random4 r = lk_random(1, LK_RANDOM_DATA, trial, (uint64_t)i);
            blobs[i].bytes = 1 + r.v[0] % 5000;
            blobs[i].first = (int)(r.v[1] % 30);
            blobs[i].last = blobs[i].first + (int)(r.v[2] % 10);
        }
        assert_int_equal(lk_plan_make(blobs, count, ALIGN, trial % 2 ? 8192 : 1 << 20, &plan),
                         LK_OK);
        check(blobs, count, &plan);
    }
}

static void a_chain_needs_only_two_at_a_time(void **state)
{
    (void)state;
    struct lk_blob blobs[10];
    struct lk_plan plan;
    for (int i = 0; i < 10; i++)
        blobs[i] = (struct lk_blob){.bytes = 1024, .first = i, .last = i + 1};
    assert_int_equal(lk_plan_make(blobs, 10, ALIGN, 1 << 20, &plan), LK_OK);
    check(blobs, 10, &plan);
    assert_int_equal(plan.total_bytes, 2048);
}

static void one_that_is_too_large_is_refused(void **state)
{
    (void)state;
    struct lk_blob blob = {.bytes = 5000};
    struct lk_plan plan = {.slabs = 7};
    lk_error_clear();
    assert_int_equal(lk_plan_make(&blob, 1, ALIGN, 4096, &plan), LK_E_DEVICE_MEMORY);
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

/* Tests that runs of shards are cut into the right subtrees. */
#include "mirror/tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Subtrees cover a run in order, are aligned to their size, and no two neighbours join. */
static void test_every_run(void **state)
{
    struct lk_subtree s[LK_MOST_SUBTREES];
    (void)state;
    for (int first = 0; first < LK_MOST_SHARDS; first++)
        for (int count = 0; first + count <= LK_MOST_SHARDS; count++) {
            const int made = lk_subtrees_of(first, count, s);
            int next = first;
            assert_in_range(made, 0, LK_MOST_SUBTREES);
            for (int i = 0; i < made; i++) {
                assert_int_equal(s[i].first, next);
                assert_int_equal(s[i].count & (s[i].count - 1), 0);
                assert_int_equal(s[i].first % s[i].count, 0);
                assert_false(i > 0 && lk_subtrees_join(s[i - 1], s[i]));
                next += s[i].count;
            }
            assert_int_equal(next, first + count);
        }
}

static void test_joins(void **state)
{
    (void)state;
    assert_true(lk_subtrees_join((struct lk_subtree){0, 1}, (struct lk_subtree){1, 1}));
    assert_true(lk_subtrees_join((struct lk_subtree){4, 2}, (struct lk_subtree){6, 2}));
    assert_false(lk_subtrees_join((struct lk_subtree){1, 1}, (struct lk_subtree){2, 1}));
    assert_false(lk_subtrees_join((struct lk_subtree){2, 2}, (struct lk_subtree){4, 2}));
    assert_false(lk_subtrees_join((struct lk_subtree){0, 2}, (struct lk_subtree){2, 1}));
    assert_false(lk_subtrees_join((struct lk_subtree){0, 1}, (struct lk_subtree){0, 1}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_run),
        cmocka_unit_test(test_joins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

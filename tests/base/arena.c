/* What an arena keeps is released with it, in reverse order. */
#include "base/arena.h"

#include "device/rig.h"

static int order[3], count;

static void note(void *object)
{
    order[count++] = *(const int *)object;
}

static void keeps_objects(void **state)
{
    (void)state;
    struct lk_arena arena = {0};
    void *memory;
    int first = 1, second = 2;
    count = 0;
    assert_ok(lk_arena_keep(&arena, note, &first));
    assert_ok(lk_arena_allocate(&arena, 100, &memory));
    assert_ok(lk_arena_keep(&arena, note, &second));
    assert_int_equal(count, 0);
    lk_arena_clear(&arena);
    assert_int_equal(count, 2);
    assert_int_equal(order[0], 2);
    assert_int_equal(order[1], 1);
    lk_arena_clear(&arena); /* once */
    assert_int_equal(count, 2);
}

/* An object may lie in the arena itself. */
static void keeps_its_own_memory(void **state)
{
    (void)state;
    struct lk_arena arena = {0};
    void *memory;
    count = 0;
    assert_ok(lk_arena_allocate(&arena, sizeof(int), &memory));
    *(int *)memory = 7;
    assert_ok(lk_arena_keep(&arena, note, memory));
    lk_arena_clear(&arena);
    assert_int_equal(count, 1);
    assert_int_equal(order[0], 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_objects),
        cmocka_unit_test(keeps_its_own_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Slow work as the program hears of it: of one thread, of several at once, ended early. */
#include "base/progress.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct lk_progress heard[16];
static int count;

static void hear(void *context, const struct lk_progress *progress)
{
    assert_ptr_equal(context, heard);
    assert_true(count < 16);
    assert_true(progress->seconds >= 0 && progress->seconds < 60);
    heard[count++] = *progress;
}

static void expect(int at, enum lk_task task, int64_t done, int64_t all, bool is_over)
{
    assert_true(at < count);
    assert_int_equal(heard[at].task, task);
    assert_int_equal(heard[at].done, done);
    assert_int_equal(heard[at].count, all);
    assert_int_equal(heard[at].is_over, is_over);
}

static int start(void **state)
{
    (void)state;
    count = 0;
    lk_progress_set(hear, heard);
    return 0;
}

static void tells_each_piece(void **state)
{
    (void)state;
    lk_progress_begin(LK_TASK_BUILD, 3);
    lk_progress_add(LK_TASK_BUILD, 1);
    lk_progress_add(LK_TASK_BUILD, 2);
    lk_progress_end(LK_TASK_BUILD);
    expect(0, LK_TASK_BUILD, 0, 3, false);
    expect(1, LK_TASK_BUILD, 1, 3, false);
    expect(2, LK_TASK_BUILD, 3, 3, false);
    expect(3, LK_TASK_BUILD, 3, 3, true);
    lk_progress_begin(LK_TASK_BUILD, 1); /* counted anew */
    expect(4, LK_TASK_BUILD, 0, 1, false);
    lk_progress_end(LK_TASK_BUILD); /* it failed */
    expect(5, LK_TASK_BUILD, 0, 1, true);
    assert_int_equal(count, 6);
}

static void adds_up_those_at_one_task(void **state)
{
    (void)state;
    lk_progress_begin(LK_TASK_BUILD, 3);
    lk_progress_begin(LK_TASK_BUILD, 4);
    lk_progress_begin(LK_TASK_CHECK, 9);
    lk_progress_add(LK_TASK_BUILD, 3);
    lk_progress_end(LK_TASK_BUILD);
    lk_progress_add(LK_TASK_BUILD, 4);
    lk_progress_end(LK_TASK_BUILD);
    lk_progress_end(LK_TASK_CHECK);
    expect(1, LK_TASK_BUILD, 0, 7, false);
    expect(2, LK_TASK_CHECK, 0, 9, false);
    expect(4, LK_TASK_BUILD, 3, 7, false);
    expect(6, LK_TASK_BUILD, 7, 7, true);
    expect(7, LK_TASK_CHECK, 0, 9, true);
}

static void needs_nobody(void **state)
{
    (void)state;
    lk_progress_set(NULL, NULL);
    lk_progress_begin(LK_TASK_MEASURE, 1);
    lk_progress_end(LK_TASK_MEASURE);
    assert_int_equal(count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(tells_each_piece, start),
        cmocka_unit_test_setup(adds_up_those_at_one_task, start),
        cmocka_unit_test_setup(needs_nobody, start),
    };
    return cmocka_run_group_tests_name("base/progress", tests, NULL, NULL);
}

/* The transition tables of devices and of the team, pair by pair. */
#include "team/workers/internal.h"

#include "base/fail.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { EVENTS = LK_WORKER_EVENTS };

/* What is expected of each pair, written down once more and by hand: "-" is refused, "=" stays.
 * A row for each state, a column for each event, in the order of the enums. */
static const struct {
    enum lk_worker_state state;
    const char *next[EVENTS];
} table[] = {
    /* START, CALL, SHARE, COMMIT, WORK, REST, CALL_BACK, LOSE, QUIT,
     * RETURN, DELIVER, UPDATED, DONE, FAIL, STOP */
    {LK_WORKER_NEW,
     {"ready", "-", "-", "-", "-", "-", "-", "-", "-", /**/ "-", "-", "-", "-", "-", "-"}},
    {LK_WORKER_READY,
     {"-", "called", "computing", "-", "working", "resting", "-", "lost", "ended", /**/ "-",
      "-", "=", "-", "failed", "stopped"}},
    {LK_WORKER_CALLED,
     {"-", "-", "-", "-", "-", "-", "-", "lost", "-", /**/ "ready", "=", "=", "=", "failed",
      "="}},
    {LK_WORKER_COMPUTING,
     {"-", "called", "=", "-", "-", "-", "-", "lost", "-", /**/ "-", "delivered", "=", "-",
      "failed", "stopped"}},
    {LK_WORKER_DELIVERED,
     {"-", "called", "computing", "updating", "-", "resting", "-", "lost", "-", /**/ "-", "-",
      "-", "-", "failed", "stopped"}},
    {LK_WORKER_UPDATING,
     {"-", "called", "computing", "-", "-", "resting", "-", "lost", "-", /**/ "-", "-", "ready",
      "-", "failed", "stopped"}},
    {LK_WORKER_WORKING,
     {"-", "called", "-", "-", "-", "-", "-", "lost", "-", /**/ "-", "-", "-", "ready",
      "failed", "stopped"}},
    {LK_WORKER_STOPPED,
     {"-", "called", "=", "=", "-", "resting", "-", "lost", "-", /**/ "-", "=", "=", "=",
      "failed", "="}},
    {LK_WORKER_FAILED,
     {"-", "=", "=", "=", "-", "lost", "-", "lost", "-", /**/ "-", "-", "=", "-", "-", "-"}},
    {LK_WORKER_RESTING,
     {"-", "-", "-", "-", "-", "-", "ready", "lost", "-", /**/ "-", "=", "=", "-", "lost",
      "="}},
    {LK_WORKER_LOST,
     {"-", "-", "-", "-", "-", "-", "-", "=", "-", /**/ "=", "=", "=", "=", "=", "="}},
    {LK_WORKER_ENDED,
     {"-", "-", "-", "-", "-", "-", "-", "-", "-", /**/ "-", "-", "-", "-", "-", "-"}},
};

static const char *expected_name(int row, int event)
{
    const char *next = table[row].next[event];
    if (strcmp(next, "-") == 0)
        return "refused";
    return strcmp(next, "=") == 0 ? lk_worker_state_name(table[row].state) : next;
}

/* A state or event that is new has to be entered above. */
static void test_every_pair(void **state)
{
    bool is_there[LK_WORKER_STATES] = {[LK_WORKER_REFUSED] = true};
    (void)state;
    for (int row = 0; row < LK_COUNT(table); row++) {
        const enum lk_worker_state from = table[row].state;
        assert_false(is_there[from]);
        is_there[from] = true;
        for (int event = 0; event < EVENTS; event++) {
            if (!table[row].next[event])
                fail_msg("nothing is expected of '%s' in state '%s'",
                         lk_worker_event_name(event), lk_worker_state_name(from));
            const char *found = lk_worker_state_name(lk_worker_next(from, event));
            if (strcmp(found, expected_name(row, event)) != 0)
                fail_msg("'%s' in state '%s' leads to '%s'", lk_worker_event_name(event),
                         lk_worker_state_name(from), found);
        }
    }
    for (int i = 0; i < LK_WORKER_STATES; i++)
        if (!is_there[i])
            fail_msg("state '%s' has no row", lk_worker_state_name(i));
}

/* Every transition, through the one function that makes it: a device is lost once. */
static void test_every_change(void **state)
{
    struct lk_team *team = calloc(1, sizeof *team);
    struct lk_worker *worker = calloc(1, sizeof *worker);
    (void)state;
    assert_non_null(team);
    assert_non_null(worker);
    team->workers[0] = worker;
    team->count = 1;
    worker->team = team;
    pthread_cond_init(&team->changed, NULL);
    for (int row = 0; row < LK_COUNT(table); row++)
        for (int event = 0; event < EVENTS; event++) {
            const enum lk_worker_state from = table[row].state;
            const enum lk_worker_state next = lk_worker_next(from, event);
            if (next == LK_WORKER_REFUSED)
                continue;
            team->counts.lost = 0;
            worker->state = from;
            lk_worker_change(worker, event, "the test says so");
            assert_int_equal(worker->state, next);
            assert_int_equal(team->counts.lost,
                             next == LK_WORKER_LOST && from != LK_WORKER_LOST);
        }
    pthread_cond_destroy(&team->changed);
    free(worker);
    free(team);
}

/* Those that are left, of which the trainer expects something. */
static void test_at_work(void **state)
{
    static const bool expected[LK_WORKER_STATES] = {
        [LK_WORKER_READY] = true,     [LK_WORKER_CALLED] = true,   [LK_WORKER_COMPUTING] = true,
        [LK_WORKER_DELIVERED] = true, [LK_WORKER_UPDATING] = true, [LK_WORKER_WORKING] = true,
        [LK_WORKER_STOPPED] = true,   [LK_WORKER_FAILED] = true};
    (void)state;
    for (int i = 0; i < LK_WORKER_STATES; i++) {
        const struct lk_worker worker = {.state = (enum lk_worker_state)i};
        assert_int_equal(lk_worker_is_at_work(&worker), expected[i]);
    }
}

/* Whatever state a device is in before it is lost or told to end, it can get there; and none
 * leaves those. */
static void test_ways_out(void **state)
{
    (void)state;
    for (int from = LK_WORKER_READY; from < LK_WORKER_LOST; from++)
        assert_int_equal(lk_worker_next(from, LK_WORKER_LOSE), LK_WORKER_LOST);
    for (int event = 0; event < EVENTS; event++) {
        const enum lk_worker_state next = lk_worker_next(LK_WORKER_LOST, event);
        assert_true(next == LK_WORKER_LOST || next == LK_WORKER_REFUSED);
        assert_int_equal(lk_worker_next(LK_WORKER_ENDED, event), LK_WORKER_REFUSED);
    }
}

/* A letter for each phase that may follow, in the order of the enum: building, Shared, trial of
 * All, trial of One, aLone, Calling back, asYnc. */
static void test_phases(void **state)
{
    static const char *const expected[LK_TEAM_PHASES] = {
        [LK_TEAM_BUILDING] = ".SA.L.Y",  [LK_TEAM_SHARED] = ".......",
        [LK_TEAM_TRIAL_ALL] = ".S.OL..", [LK_TEAM_TRIAL_ONE] = ".SA.L..",
        [LK_TEAM_ALONE] = "..A..C.",     [LK_TEAM_CALLING_BACK] = ".S.....",
        [LK_TEAM_ASYNC] = "......."};
    (void)state;
    for (int from = 0; from < LK_TEAM_PHASES; from++) {
        assert_int_equal(strlen(expected[from]), LK_TEAM_PHASES);
        for (int to = 0; to < LK_TEAM_PHASES; to++)
            if (lk_team_may_follow(from, to) != (expected[from][to] != '.'))
                fail_msg("'%s' behind '%s'", lk_team_phase_name(to), lk_team_phase_name(from));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_pair), cmocka_unit_test(test_every_change),
        cmocka_unit_test(test_at_work),    cmocka_unit_test(test_ways_out),
        cmocka_unit_test(test_phases),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

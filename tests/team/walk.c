/* Teams that lose devices in every state: what is left trains on to the same weights. */
#include "fakes.h"

#include "base/fail.h"
#include "ok.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { STEPS = 6 };

static struct lk_team_result last;

/* All devices that are at work have the weights of an undisturbed training; the others are in
 * `out`. devices: a letter each, 'w' at work, 'o' out. */
static void assert_ends(struct lk_team *team, const char *devices, enum lk_worker_state out,
                        int64_t steps)
{
    assert_int_equal(strlen(devices), team->count);
    for (int i = 0; i < team->count; i++)
        if (devices[i] == 'w') {
            assert_true(fake_reaches(team, i, LK_WORKER_READY));
            assert_true(fake_weight(team, i) == fake_expected(steps));
        } else {
            assert_int_equal(fake_state(team, i), out);
        }
}

static enum lk_status do_nothing(void *context, struct lk_worker *worker)
{
    (void)worker;
    if (*(const char *)context)
        return lk_fail(LK_E_DEVICE, "the test asks for it");
    return LK_OK;
}

/* --- shared steps ------------------------------------------------------------------------ */

static void test_undisturbed(void **state)
{
    (void)state;
    for (int count = 1; count <= FAKES; count++) {
        struct lk_team *team = fake_team(count, count == 1 ? LK_TEAM_ALONE : LK_TEAM_SHARED);
        ASSERT_OK(fake_train(team, 1, STEPS, &last));
        assert_ends(team, "www" + FAKES - count, LK_WORKER_LOST, STEPS);
        assert_int_equal(team->counts.repeated_steps, 0);
        fake_destroy(team);
    }
}

static void test_lost_while_ready(void **state)
{
    (void)state;
    struct lk_team *team = fake_team(2, LK_TEAM_SHARED);
    ASSERT_OK(fake_train(team, 1, 2, &last));
    assert_true(fake_reaches(team, 0, LK_WORKER_READY));
    assert_int_equal(lk_team_call_one(team, team->workers[0], do_nothing, "fails"),
                     LK_E_DEVICE);
    lk_error_clear();
    assert_int_equal(fake_state(team, 0), LK_WORKER_LOST);
    ASSERT_OK(fake_train(team, 3, STEPS, &last));
    assert_ends(team, "ow", LK_WORKER_LOST, STEPS);
    fake_destroy(team);
}

/* In each act, each kind of trouble that takes a device out, in the middle and at the end. */
static void test_lost_in_a_step(void **state)
{
    static const struct fake_plan plans[] = {
        {FAKE_FAILS, FAKE_BEGIN, 3, 0, 0},   {FAKE_FAILS, FAKE_END, 3, 0, 0},
        {FAKE_FAILS, FAKE_BEGIN, 1, 0, 0},   {FAKE_FAILS, FAKE_BEGIN, STEPS, 20, 0},
        {FAKE_HANGS, FAKE_BEGIN, 3, 0, 0},   {FAKE_HANGS, FAKE_END, 3, 0, 0},
        {FAKE_CHANGES, FAKE_BEGIN, 3, 0, 2}, {FAKE_NAN, FAKE_BEGIN, 3, 0, 0},
    };
    (void)state;
    for (int i = 0; i < LK_COUNT(plans); i++) {
        struct lk_team *team = fake_team(FAKES, LK_TEAM_SHARED);
        fake_plan(team, 1, plans[i]);
        ASSERT_OK(fake_train(team, 1, STEPS, &last));
        assert_ends(team, "wow", LK_WORKER_LOST, STEPS);
        assert_int_equal(team->counts.lost, 1);
        assert_int_equal(team->counts.repeated_steps, plans[i].trouble == FAKE_CHANGES ? 2 : 1);
        fake_destroy(team);
    }
}

/* A device that needs many times what another one does is no measure of a usual step. The first
 * two steps may take 20 times the hang limit, as kernels may be compiled in them. */
static void test_slow_beyond_measure(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        const int slow_ms = i == 0 ? 300 : 20; /* 100 times as long as the others is too long */
        struct lk_team *team = fake_team(2, LK_TEAM_SHARED);
        fake_plan(team, 1, (struct fake_plan){FAKE_IS_SLOW, FAKE_BEGIN, 1, slow_ms, 0});
        ASSERT_OK(fake_train(team, 1, STEPS, &last));
        assert_ends(team, i == 0 ? "wo" : "ww", LK_WORKER_LOST, STEPS);
        fake_destroy(team);
    }
}

/* The last update is asked for by whoever calls next. */
static void test_hangs_while_updating(void **state)
{
    char well[] = "";
    (void)state;
    struct lk_team *team = fake_team(2, LK_TEAM_SHARED);
    fake_plan(team, 0, (struct fake_plan){FAKE_HANGS, FAKE_END, STEPS, 0, 0});
    ASSERT_OK(fake_train(team, 1, STEPS, &last));
    assert_int_equal(fake_state(team, 0), LK_WORKER_UPDATING);
    ASSERT_OK(lk_team_call_first(team, do_nothing, well));
    assert_ends(team, "ow", LK_WORKER_LOST, STEPS);
    fake_destroy(team);
}

/* It is found at the next command; a call is carried out by another one. */
static void test_fails_while_updating(void **state)
{
    char well[] = "";
    (void)state;
    struct lk_team *team = fake_team(2, LK_TEAM_SHARED);
    fake_plan(team, 0, (struct fake_plan){FAKE_FAILS, FAKE_END, STEPS, 0, 0});
    ASSERT_OK(fake_train(team, 1, STEPS, &last));
    assert_true(fake_reaches(team, 0, LK_WORKER_FAILED));
    ASSERT_OK(lk_team_call_first(team, do_nothing, well));
    assert_ends(team, "ow", LK_WORKER_LOST, STEPS);
    fake_destroy(team);
}

static void test_failed_gets_a_step(void **state)
{
    (void)state;
    struct lk_team *team = fake_team(2, LK_TEAM_SHARED);
    fake_plan(team, 0, (struct fake_plan){FAKE_FAILS, FAKE_END, 3, 0, 0});
    ASSERT_OK(fake_train(team, 1, 3, &last));
    assert_true(fake_reaches(team, 0, LK_WORKER_FAILED));
    ASSERT_OK(fake_train(team, 4, STEPS, &last));
    assert_ends(team, "ow", LK_WORKER_LOST, STEPS);
    fake_destroy(team);
}

static void test_none_left(void **state)
{
    (void)state;
    struct lk_team *team = fake_team(2, LK_TEAM_SHARED);
    fake_plan(team, 0, (struct fake_plan){FAKE_FAILS, FAKE_BEGIN, 3, 0, 0});
    fake_plan(team, 1, (struct fake_plan){FAKE_FAILS, FAKE_BEGIN, 4, 0, 0});
    assert_int_equal(fake_train(team, 1, STEPS, &last), LK_E_DEVICE);
    assert_non_null(strstr(lk_error_text(), "no device is left"));
    assert_ends(team, "oo", LK_WORKER_LOST, STEPS);
    fake_destroy(team);
}

/* For a reason that is not the device's own: it ends the training, and no device. */
static void test_stops(void **state)
{
    char well[] = "";
    static const enum fake_act acts[] = {FAKE_BEGIN, FAKE_END};
    (void)state;
    for (int i = 0; i < LK_COUNT(acts); i++) {
        struct lk_team *team = fake_team(2, LK_TEAM_SHARED);
        fake_plan(team, 0, (struct fake_plan){FAKE_STOPS, acts[i], 3, 0, 1});
        assert_int_equal(fake_train(team, 1, STEPS, &last), LK_E_DATA);
        assert_int_equal(fake_state(team, 0), LK_WORKER_STOPPED);
        assert_int_equal(lk_team_left(team), 2);
        ASSERT_OK(lk_team_call_each(team, do_nothing, well, true));
        assert_int_equal(fake_state(team, 0), LK_WORKER_READY);
        fake_destroy(team);
    }
}

/* Once, or where its replica was wrong, it is mended and goes on. */
static void test_mended(void **state)
{
    (void)state;
    static const struct fake_plan plans[] = {{FAKE_CHANGES, FAKE_BEGIN, 3, 0, 1},
                                             {FAKE_DIVERGES, FAKE_END, 3, 0, 1}};
    for (int i = 0; i < LK_COUNT(plans); i++) {
        struct lk_team *team = fake_team(FAKES, LK_TEAM_SHARED);
        fake_plan(team, 1, plans[i]);
        ASSERT_OK(fake_train(team, 1, STEPS, &last));
        assert_ends(team, "www", LK_WORKER_LOST, STEPS);
        assert_int_equal(team->counts.repaired, plans[i].trouble == FAKE_DIVERGES);
        assert_int_equal(team->counts.lost, 0);
        fake_destroy(team);
    }
}

/* It computes no numbers once: who has doubted it once never trusts it again. */
static void test_doubted_once(void **state)
{
    (void)state;
    struct lk_team *team = fake_team(2, LK_TEAM_SHARED);
    fake_plan(team, 1, (struct fake_plan){FAKE_NAN, FAKE_BEGIN, 2, 0, 1});
    ASSERT_OK(fake_train(team, 1, STEPS, &last));
    assert_ends(team, "wo", LK_WORKER_LOST, STEPS);
    fake_destroy(team);
}

/* Doubted twice in a step, as all are: then training has diverged, and nobody is to blame. */
static void test_doubted_twice(void **state)
{
    (void)state;
    struct lk_team *team = fake_team(2, LK_TEAM_SHARED);
    for (int i = 0; i < 2; i++)
        fake_plan(team, i, (struct fake_plan){FAKE_NAN, FAKE_BEGIN, 2, 0, 0});
    ASSERT_OK(fake_train(team, 1, STEPS, &last));
    assert_true(team->judgement.has_diverged);
    assert_int_equal(lk_team_left(team), 2);
    fake_destroy(team);
}

/* --- one alone --------------------------------------------------------------------------- */

static struct lk_team *start_alone(int count)
{
    struct lk_team *team = fake_team(count, LK_TEAM_TRIAL_ALL);
    ASSERT_OK(fake_train(team, 1, 2, &last));
    return team;
}

static void test_alone(void **state)
{
    (void)state;
    struct lk_team *team = start_alone(FAKES);
    fake_go_alone(team, 1);
    assert_int_equal(team->phase, LK_TEAM_ALONE);
    ASSERT_OK(fake_train(team, 3, STEPS, &last));
    assert_ends(team, "owo", LK_WORKER_RESTING, STEPS);
    assert_int_equal(lk_team_left(team), 1);
    assert_int_equal(lk_team_resting(team), 2);
    fake_destroy(team);
}

static void test_alone_is_lost(void **state)
{
    static const struct fake_plan plans[] = {
        {FAKE_FAILS, FAKE_BEGIN, 5, 0, 0}, {FAKE_FAILS, FAKE_END, 5, 0, 0},
        {FAKE_HANGS, FAKE_BEGIN, 5, 0, 0}, {FAKE_HANGS, FAKE_END, 5, 0, 0},
        {FAKE_NAN, FAKE_BEGIN, 5, 0, 0},
    };
    (void)state;
    for (int i = 0; i < LK_COUNT(plans); i++) {
        struct lk_team *team = start_alone(FAKES);
        fake_go_alone(team, 1);
        fake_plan(team, 1, plans[i]);
        ASSERT_OK(fake_train(team, 3, STEPS, &last));
        assert_ends(team, "wow", LK_WORKER_LOST, STEPS);
        assert_int_equal(team->phase, LK_TEAM_SHARED);
        assert_int_equal(team->counts.lost, 1);
        fake_destroy(team);
    }
}

/* Between two steps, by a call to it and no other; what comes next finds that out. */
static void test_alone_is_lost_in_a_call(void **state)
{
    (void)state;
    for (int keeps = 0; keeps < 2; keeps++) {
        struct lk_team *team = start_alone(2);
        fake_go_alone(team, 0);
        ASSERT_OK(fake_train(team, 3, 4, &last));
        ASSERT_OK(lk_team_call_other(team, 0, do_nothing, "fails"));
        assert_int_equal(lk_team_left(team), 0);
        if (keeps)
            ASSERT_OK(lk_team_keep_state(team));
        ASSERT_OK(fake_train(team, 5, STEPS, &last));
        assert_ends(team, "ow", LK_WORKER_LOST, STEPS);
        assert_int_equal(team->phase, LK_TEAM_SHARED);
        fake_destroy(team);
    }
}

/* The devices that are called back find no numbers either: it rests, and nobody is to blame. */
static void test_alone_diverges(void **state)
{
    (void)state;
    struct lk_team *team = start_alone(2);
    fake_go_alone(team, 0);
    for (int i = 0; i < 2; i++)
        fake_plan(team, i, (struct fake_plan){FAKE_NAN, FAKE_BEGIN, 4, 0, 0});
    ASSERT_OK(fake_train(team, 3, STEPS, &last));
    assert_true(team->judgement.has_diverged);
    assert_int_equal(team->counts.lost, 0);
    assert_int_equal(fake_state(team, 0), LK_WORKER_RESTING);
    assert_int_equal(lk_team_left(team), 1);
    fake_destroy(team);
}

/* Where it has diverged before, nobody asks the others. */
static void test_diverged_goes_alone(void **state)
{
    (void)state;
    struct lk_team *team = fake_team(2, LK_TEAM_TRIAL_ALL);
    for (int i = 0; i < 2; i++)
        fake_plan(team, i, (struct fake_plan){FAKE_NAN, FAKE_BEGIN, 2, 0, 0});
    ASSERT_OK(fake_train(team, 1, 2, &last));
    assert_true(team->judgement.has_diverged);
    fake_go_alone(team, 0);
    ASSERT_OK(fake_train(team, 3, STEPS, &last));
    assert_int_equal(team->phase, LK_TEAM_ALONE);
    assert_int_equal(team->counts.lost, 0);
    assert_int_equal(lk_team_resting(team), 1);
    fake_destroy(team);
}

/* What keeps those that are called back from it: they fail or hang when they are given the
 * state, or in the first step that they do again. */
static void test_called_back_while_another_fails(void **state)
{
    static const struct fake_plan plans[] = {{FAKE_FAILS, FAKE_WRITE, 0, 0, 0},
                                             {FAKE_HANGS, FAKE_WRITE, 0, 0, 0},
                                             {FAKE_FAILS, FAKE_BEGIN, 3, 0, 0},
                                             {FAKE_FAILS, FAKE_END, 4, 0, 0}};
    (void)state;
    for (int i = 0; i < LK_COUNT(plans); i++) {
        struct lk_team *team = start_alone(FAKES);
        fake_go_alone(team, 0);
        fake_plan(team, 0, (struct fake_plan){FAKE_FAILS, FAKE_END, 5, 0, 0});
        fake_plan(team, 1, plans[i]);
        ASSERT_OK(fake_train(team, 3, STEPS, &last));
        assert_ends(team, "oow", LK_WORKER_LOST, STEPS);
        fake_destroy(team);
    }
}

static void test_none_can_come_back(void **state)
{
    (void)state;
    struct lk_team *team = start_alone(2);
    fake_go_alone(team, 0);
    fake_plan(team, 0, (struct fake_plan){FAKE_FAILS, FAKE_END, 5, 0, 0});
    fake_plan(team, 1, (struct fake_plan){FAKE_FAILS, FAKE_WRITE, 0, 0, 0});
    assert_int_equal(fake_train(team, 3, STEPS, &last), LK_E_DEVICE);
    assert_ends(team, "oo", LK_WORKER_LOST, STEPS);
    fake_destroy(team);
}

/* The last shared update fails, or stops, when its device has gone home; or just before. */
static void test_fails_while_resting(void **state)
{
    static const struct {
        struct fake_plan plan;
        enum lk_worker_state before, after;
    } cases[] = {
        {{FAKE_FAILS, FAKE_END, 2, 100, 0}, LK_WORKER_UPDATING, LK_WORKER_LOST},
        {{FAKE_FAILS, FAKE_END, 2, 0, 0}, LK_WORKER_FAILED, LK_WORKER_LOST},
        {{FAKE_STOPS, FAKE_END, 2, 100, 1}, LK_WORKER_UPDATING, LK_WORKER_RESTING},
        {{FAKE_STOPS, FAKE_END, 2, 0, 1}, LK_WORKER_STOPPED, LK_WORKER_RESTING},
        {{FAKE_NONE, FAKE_END, 2, 0, 0}, LK_WORKER_READY, LK_WORKER_RESTING},
    };
    (void)state;
    for (int i = 0; i < LK_COUNT(cases); i++) {
        struct lk_team *team = fake_team(2, LK_TEAM_TRIAL_ALL);
        fake_plan(team, 1, cases[i].plan);
        ASSERT_OK(fake_train(team, 1, 2, &last));
        assert_true(fake_reaches(team, 1, cases[i].before));
        fake_go_alone(team, 0);
        if (cases[i].before == LK_WORKER_UPDATING)
            assert_int_equal(fake_state(team, 1), LK_WORKER_RESTING);
        ASSERT_OK(fake_train(team, 3, STEPS, &last));
        assert_true(fake_reaches(team, 1, cases[i].after));
        assert_ends(team, "wo", cases[i].after, STEPS);
        fake_destroy(team);
    }
}

/* One that cannot go alone stays, and all go on; one that is lost over it is lost. */
static void test_cannot_go_alone(void **state)
{
    static const enum fake_act acts[] = {FAKE_READ, FAKE_CHANGE};
    (void)state;
    for (int i = 0; i < LK_COUNT(acts); i++)
        for (int fails = 0; fails < 2; fails++) {
            struct lk_team *team = start_alone(2);
            fake_plan(team, 0,
                      (struct fake_plan){fails ? FAKE_FAILS : FAKE_STOPS, acts[i], 0, 0, 1});
            fake_go_alone(team, 0);
            assert_int_equal(team->phase, LK_TEAM_SHARED);
            ASSERT_OK(fake_train(team, 3, STEPS, &last));
            assert_ends(team, fails ? "ow" : "ww", LK_WORKER_LOST, STEPS);
            fake_destroy(team);
        }
}

/* The state is kept on the way, so that only what comes behind it is done again; all are tried
 * again when it is time. */
static void test_kept_and_tried_again(void **state)
{
    (void)state;
    struct lk_team *team = start_alone(2);
    fake_go_alone(team, 0);
    ASSERT_OK(fake_train(team, 3, 4, &last));
    ASSERT_OK(lk_team_keep_state(team));
    assert_int_equal(team->recall.kept.step, 4);
    fake_plan(team, 0, (struct fake_plan){FAKE_FAILS, FAKE_READ, 0, 0, 0});
    ASSERT_OK(fake_train(team, 5, 5, &last));
    ASSERT_OK(lk_team_keep_state(team)); /* calls back */
    assert_int_equal(team->counts.repeated_steps, 1);
    assert_ends(team, "ow", LK_WORKER_LOST, 5);
    fake_destroy(team);

    team = start_alone(2);
    fake_go_alone(team, 0);
    ASSERT_OK(fake_train(team, 3, 4, &last));
    ASSERT_OK(lk_team_keep_state(team));
    ASSERT_OK(lk_team_try_again(team)); /* it is too early */
    assert_int_equal(team->phase, LK_TEAM_ALONE);
    team->trial.again_at = 4;
    ASSERT_OK(lk_team_try_again(team));
    assert_int_equal(team->phase, LK_TEAM_TRIAL_ALL);
    ASSERT_OK(fake_train(team, 5, STEPS, &last));
    assert_ends(team, "ww", LK_WORKER_LOST, STEPS);
    fake_destroy(team);
}

/* --- without lockstep -------------------------------------------------------------------- */

static enum lk_status work(struct lk_worker *worker, const struct lk_command *command)
{
    if (command->ticket == FAKE_FAILS)
        return lk_fail(LK_E_DEVICE, "the test asks for it");
    if (command->ticket == FAKE_STOPS)
        return lk_fail(LK_E_DATA, "a sample is not to be read");
    pthread_mutex_lock(&worker->team->mutex);
    lk_worker_change(worker, LK_WORKER_DONE, NULL);
    pthread_mutex_unlock(&worker->team->mutex);
    return LK_OK;
}

static void test_works(void **state)
{
    static const enum lk_worker_state after[] = {
        [FAKE_NONE] = LK_WORKER_READY,
        [FAKE_FAILS] = LK_WORKER_FAILED,
        [FAKE_STOPS] = LK_WORKER_STOPPED,
    };
    (void)state;
    for (int i = 0; i < LK_COUNT(after); i++) {
        struct lk_team *team = fake_team(1, LK_TEAM_ASYNC);
        const struct lk_command command = {.kind = LK_COMMAND_WORK, .run = work, .ticket = i};
        pthread_mutex_lock(&team->mutex);
        lk_worker_change(team->workers[0], LK_WORKER_WORK, NULL);
        lk_worker_send(team->workers[0], &command);
        pthread_mutex_unlock(&team->mutex);
        assert_true(fake_reaches(team, 0, after[i]));
        fake_destroy(team);
    }
}

/* --- all of it --------------------------------------------------------------------------- */

/* Every change of state that the table allows has happened above, but for those that only
 * chance brings about, with their reasons. */
static void test_all_walked(void **state)
{
    static const struct {
        enum lk_worker_state state;
        enum lk_worker_event event;
    } by_chance[] = {
        {LK_WORKER_READY, LK_WORKER_FAIL},      /* alone, as it enqueues the step after next */
        {LK_WORKER_READY, LK_WORKER_STOP},      /* the same */
        {LK_WORKER_CALLED, LK_WORKER_FAIL},     /* an update, behind which it was called */
        {LK_WORKER_COMPUTING, LK_WORKER_CALL},  /* a device to be mended brings its sums late */
        {LK_WORKER_DELIVERED, LK_WORKER_FAIL},  /* alone, with a step more on its way */
        {LK_WORKER_DELIVERED, LK_WORKER_STOP},  /* the same */
        {LK_WORKER_DELIVERED, LK_WORKER_CALL},  /* a device to be mended has brought all */
        {LK_WORKER_DELIVERED, LK_WORKER_SHARE}, /* another one is lost after it */
        {LK_WORKER_DELIVERED, LK_WORKER_LOSE},  /* its last bucket was changed on its way */
        {LK_WORKER_UPDATING, LK_WORKER_LOSE},   /* only calls wait for updates: called first */
        {LK_WORKER_UPDATING, LK_WORKER_SHARE},  /* it was not done with its update yet */
        {LK_WORKER_UPDATING, LK_WORKER_FAIL},   /* it was not given the next step yet */
        {LK_WORKER_UPDATING, LK_WORKER_STOP},   /* the same */
        {LK_WORKER_WORKING, LK_WORKER_CALL},    /* training was given up */
        {LK_WORKER_WORKING, LK_WORKER_LOSE},    /* async/watch.c, fault_asynchronous has it */
        {LK_WORKER_STOPPED, LK_WORKER_FAIL},    /* two commands fail in a row */
        {LK_WORKER_STOPPED, LK_WORKER_LOSE},    /* what it sent before was wrong as well */
        {LK_WORKER_COMPUTING, LK_WORKER_LOSE},  /* it hangs, but was known to be at work */
    };
    static bool walked[LK_WORKER_STATES][LK_WORKER_EVENTS];
    int missing = 0;
    (void)state;
    memcpy(walked, fake_walked, sizeof walked); /* asking for the next state counts as well */
    for (int i = 0; i < LK_COUNT(by_chance); i++)
        walked[by_chance[i].state][by_chance[i].event] = true;
    for (int from = 0; from < LK_WORKER_STATES; from++)
        for (int event = 0; event < LK_WORKER_EVENTS; event++) {
            const enum lk_worker_state next = lk_worker_next(from, event);
            if (next == LK_WORKER_REFUSED || (int)next == from || walked[from][event])
                continue;
            missing++;
            print_error("'%s' in state '%s' did not happen\n", lk_worker_event_name(event),
                        lk_worker_state_name(from));
        }
    assert_int_equal(missing, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_undisturbed),
        cmocka_unit_test(test_lost_while_ready),
        cmocka_unit_test(test_lost_in_a_step),
        cmocka_unit_test(test_slow_beyond_measure),
        cmocka_unit_test(test_hangs_while_updating),
        cmocka_unit_test(test_fails_while_updating),
        cmocka_unit_test(test_failed_gets_a_step),
        cmocka_unit_test(test_none_left),
        cmocka_unit_test(test_stops),
        cmocka_unit_test(test_mended),
        cmocka_unit_test(test_doubted_once),
        cmocka_unit_test(test_doubted_twice),
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_alone_is_lost),
        cmocka_unit_test(test_alone_is_lost_in_a_call),
        cmocka_unit_test(test_alone_diverges),
        cmocka_unit_test(test_diverged_goes_alone),
        cmocka_unit_test(test_called_back_while_another_fails),
        cmocka_unit_test(test_none_can_come_back),
        cmocka_unit_test(test_fails_while_resting),
        cmocka_unit_test(test_cannot_go_alone),
        cmocka_unit_test(test_kept_and_tried_again),
        cmocka_unit_test(test_works),
        cmocka_unit_test(test_all_walked),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

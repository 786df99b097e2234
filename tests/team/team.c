/* How long a team waits for a device before it is taken for one that hangs. */
#include "team/team.h"
#include "ok.h"
#include "team/workers/internal.h"
#include <lockstep/model.h>

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static const char net[] = "input: [4, 4, 1]\n"
                          "layers:\n"
                          "  - flatten\n"
                          "  - dense: {units: 2}\n"
                          "  - softmax\n";

struct fixture {
    struct lk_model *model;
    struct lk_team *team;
};

static int set_up(void **state)
{
    static struct fixture made;
    struct lk_node *labels, *loss;
    ASSERT_OK(lk_model_read(net, strlen(net), "net", &made.model));
    ASSERT_OK(lk_model_add_loss(made.model, &labels, &loss));
    const struct lk_team_config config = {
        .devices = "0*2",
        .split = "all",
        .log_folder = "",
        .loss = loss,
        .batch = 8,
        .shards = 2,
        .real = LK_F32,
        .optimizer = "sgd",
        .optimizer_options = "",
    };
    ASSERT_OK(lk_team_create(&config, &made.team));
    *state = &made;
    return 0;
}

static int tear_down(void **state)
{
    const struct fixture *f = *state;
    lk_team_destroy(f->team);
    lk_model_destroy(f->model);
    return 0;
}

struct work {
    int pieces;
    bool beats;
};

static enum lk_status do_work(void *context, struct lk_worker *worker)
{
    const struct work *work = context;
    for (int i = 0; i < work->pieces; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
        if (work->beats)
            lk_worker_heartbeat(worker);
    }
    return LK_OK;
}

/* Longer than a call is waited for, which is 20 times as long as a device may hang. */
static void test_long_call(void **state)
{
    const struct fixture *f = *state;
    struct work work = {.pieces = 20, .beats = true};
    f->team->clock.hang_seconds = 0.1;
    ASSERT_OK(lk_team_call(f->team, do_work, &work));
    assert_int_equal(lk_team_left(f->team), 2);
}

static void test_hung_call(void **state)
{
    static struct work work = {.pieces = 20};
    const struct fixture *f = *state;
    f->team->clock.hang_seconds = 0.1;
    assert_int_equal(lk_team_call(f->team, do_work, &work), LK_E_DEVICE);
    assert_int_equal(lk_team_left(f->team), 0);
}

/* A lapse in which nobody looked does not count. */
static void test_lapse(void **state)
{
    const struct fixture *f = *state;
    struct lk_team *team = f->team;
    pthread_mutex_lock(&team->mutex);
    const double before = lk_team_seconds(team);
    /* As if the last look had been long ago; the clock may have begun with the machine. */
    const double lapse = team->clock.looked_at < 2000 ? team->clock.looked_at / 2 : 1000;
    team->clock.looked_at -= lapse;
    const double after = lk_team_seconds(team);
    pthread_mutex_unlock(&team->mutex);
    assert_true(after < before - 0.99 * lapse);
}

/* The first step compiles kernels and may take long; the second is measured by the first, those
 * behind it by their own time. A device that is new has kernels to compile at any time. */
static void test_limits(void **state)
{
    const struct fixture *f = *state;
    struct lk_team *team = f->team;
    struct lk_team_clock *clock = &team->clock;
    clock->hang_seconds = 5;
    assert_true(lk_team_limit(team, false) == 100);
    clock->first_seconds = 0.01;
    assert_true(lk_team_limit(team, false) == 5);
    clock->first_seconds = 2;
    assert_true(lk_team_limit(team, false) == 20);
    assert_true(lk_team_limit(team, true) == 100);
    clock->step_seconds = 1;
    assert_true(lk_team_limit(team, false) == 10);
    assert_true(lk_team_limit(team, true) == 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_long_call, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_hung_call, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_lapse, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_limits, set_up, tear_down),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

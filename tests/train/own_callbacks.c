/* Callbacks of a program: what they see, and what their replies do. */
#include "scratch.h"

#include "ok.h"
#include <lockstep/lockstep.h>
#include <math.h>

static const char model[] = "name: tiny\n"
                            "input: [28, 28, 1]\n"
                            "layers:\n"
                            "  - flatten\n"
                            "  - dense: {units: 10}\n"
                            "  - softmax\n";

enum { EPOCH = 8, MOST_STEPS = 64 };

/* What a callback does, and has seen. */
struct record {
    int64_t stop_at, rate_at, fail_at; /* steps; 0: at none */
    bool sets_at_evaluation, adds_at_end, sets_often, names_wrongly, fails_at_checkpoint;
    int counts[LK_EVENT_CALLBACK + 1];
    int64_t last;
    double rates[MOST_STEPS + 1];
    char step_line[4096], evaluation_line[4096];
};

static void name_wrongly(struct lk_callback_reply *reply)
{
    static const char *const names[] = {"loss",  "val_loss", "lr",         "seconds",
                                        "epoch", "a\"b",     "two\nlines", "\377\376 bad",
                                        "",      "\033[1m"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_int_equal(lk_callback_add_figure(reply, names[i], 42), LK_E_ARGUMENT);
        lk_error_clear();
    }
}

static enum lk_status call(void *context, const struct lk_event *event,
                           struct lk_callback_reply *reply)
{
    struct record *r = context;
    r->counts[event->kind]++;
    if (event->kind == LK_EVENT_CHECKPOINT && r->fails_at_checkpoint)
        return LK_E_IO;
    if (event->kind == LK_EVENT_END)
        return r->adds_at_end ? lk_callback_add_figure(reply, "late", 1) : LK_OK;
    if (event->kind == LK_EVENT_EVALUATION) {
        if (r->sets_at_evaluation)
            LK_TRY(lk_callback_set_lr(reply, 0.5));
        if (r->names_wrongly)
            name_wrongly(reply);
        return lk_callback_add_figure(reply, "mine", (double)event->step / 2);
    }
    if (event->kind != LK_EVENT_STEP)
        return LK_OK;
    r->last = event->step;
    r->rates[event->step] = event->lr;
    LK_TRY(lk_callback_add_figure(reply, "twice", 2 * (double)event->step));
    for (int i = 0; i < 12 && r->sets_often; i++)
        LK_TRY(lk_callback_set_lr(reply, 0.5 + i));
    if (event->step == r->rate_at)
        LK_TRY(lk_callback_set_lr(reply, 0.125));
    if (event->step == r->stop_at)
        lk_callback_stop(reply);
    return event->step == r->fail_at ? LK_E_UNSUPPORTED : LK_OK;
}

/* The program sees the same event, with what was added to it. */
static void show(void *context, const struct lk_event *event)
{
    struct record *r = context;
    if (event->kind == LK_EVENT_STEP)
        snprintf(r->step_line, sizeof r->step_line, "%s", event->json);
    if (event->kind == LK_EVENT_EVALUATION)
        snprintf(r->evaluation_line, sizeof r->evaluation_line, "%s", event->json);
}

static enum lk_status train(const char *run, const char *callbacks, struct record *record)
{
    struct lk_settings *settings = NULL;
    struct lk_trainer *trainer = NULL;
    const struct lk_callback callback = {"watcher", record, call};
    lk_error_clear();
    scratch_put(scratch_path("tiny.yaml"), model, strlen(model));
    ASSERT_OK(lk_settings_create(&settings));
    ASSERT_OK(lk_settings_set(settings, "model", scratch_path("tiny.yaml")));
    ASSERT_OK(lk_settings_set(settings, "data", "synthetic:digits,count=256"));
    ASSERT_OK(lk_settings_set(settings, "batch_size", "32"));
    ASSERT_OK(lk_settings_set(settings, "epochs", "4"));
    ASSERT_OK(lk_settings_set(settings, "lr", "0.01"));
    ASSERT_OK(lk_settings_set(settings, "run", *run ? scratch_path(run) : ""));
    ASSERT_OK(lk_settings_set(settings, "callbacks", callbacks));
    ASSERT_OK(lk_settings_add_callback(settings, &callback));
    enum lk_status status = lk_trainer_create(settings, show, record, &trainer);
    lk_settings_destroy(settings); /* the trainer has a copy */
    if (status == LK_OK)
        status = lk_trainer_run(trainer);
    lk_trainer_destroy(trainer);
    return status;
}

static void sees_all(void **state)
{
    (void)state;
    struct record r = {.stop_at = 0};
    ASSERT_OK(train("seen", "", &r));
    assert_int_equal(r.counts[LK_EVENT_START], 1);
    assert_int_equal(r.counts[LK_EVENT_STEP], 4 * EPOCH);
    assert_int_equal(r.counts[LK_EVENT_EVALUATION], 4);
    assert_int_equal(r.counts[LK_EVENT_CHECKPOINT], 4);
    assert_int_equal(r.counts[LK_EVENT_END], 1);
    assert_non_null(strstr(r.step_line, "\"figures\": {\"twice\": 64.0}"));
    assert_non_null(strstr(r.evaluation_line, "\"figures\": {\"mine\": 16.0}"));
}

/* The step behind the one of the call is begun already, wherever a checkpoint lies. */
static void ends_the_run(void **state)
{
    (void)state;
    struct record r = {.stop_at = 11}, again = {.stop_at = 11};
    ASSERT_OK(train("ended", "", &r));
    assert_int_equal(r.last, 12);
    assert_int_equal(r.counts[LK_EVENT_END], 1);
    assert_int_equal(r.counts[LK_EVENT_CALLBACK], 1);
    ASSERT_OK(train("ended", "", &again)); /* a run that is finished stays so */
    assert_int_equal(again.counts[LK_EVENT_STEP], 0);
    struct record at_epoch = {.stop_at = EPOCH};
    ASSERT_OK(train("", "", &at_epoch));
    assert_int_equal(at_epoch.last, EPOCH);
}

static void sets_the_rate(void **state)
{
    (void)state;
    struct record r = {.rate_at = 11}, e = {.sets_at_evaluation = true};
    ASSERT_OK(train("", "", &r));
    assert_true(r.rates[12] == 0.01 && r.rates[13] == 0.125 && r.rates[32] == 0.125);
    ASSERT_OK(train("", "", &e));
    assert_true(e.rates[EPOCH] == 0.01 && e.rates[EPOCH + 1] == 0.5);
    struct record often = {.sets_often = true}; /* the last of each event counts */
    ASSERT_OK(train("", "", &often));
    for (int step = 3; step <= 32; step++)
        assert_true(often.rates[step] == 11.5);
}

/* A run that goes on from a checkpoint has the rate that was set before it. */
static void keeps_the_rate(void **state)
{
    (void)state;
    struct record r = {.rate_at = 7, .fail_at = 20}, later = {.stop_at = 0};
    assert_int_equal(train("kept", "", &r), LK_E_UNSUPPORTED);
    ASSERT_OK(train("kept", "", &later));
    assert_true(later.rates[17] == 0.125 && later.rates[32] == 0.125);
    assert_int_equal(later.counts[LK_EVENT_STEP], 16);
}

static void feeds_monitors(void **state)
{
    (void)state;
    struct record r = {.stop_at = 0};
    ASSERT_OK(
        train("", "early_stopping monitor=mine patience=1", &r)); /* it grows: no better */
    assert_int_equal(r.last, 2 * EPOCH);
    struct record up = {.stop_at = 0};
    ASSERT_OK(train("", "early_stopping monitor=mine mode=max patience=1", &up));
    assert_int_equal(up.last, 4 * EPOCH);
    struct record none = {.stop_at = 0};
    assert_int_equal(train("", "early_stopping monitor=absent", &none), LK_E_ARGUMENT);
    assert_non_null(strstr(lk_error_text(), "'absent', which epoch 1 has not"));
}

static void fails(void **state)
{
    (void)state;
    struct record r = {.fail_at = 5}, late = {.adds_at_end = true};
    assert_int_equal(train("", "", &r), LK_E_UNSUPPORTED);
    assert_int_equal(r.last, 5);
    assert_non_null(strstr(lk_error_text(), "callback 'watcher'"));
    assert_int_equal(train("", "", &late), LK_E_ARGUMENT);
    assert_non_null(strstr(lk_error_text(), "neither"));
    struct record told = {.fails_at_checkpoint = true}; /* it is no failure of the disk */
    assert_int_equal(train("told", "", &told), LK_E_IO);
    assert_int_equal(told.counts[LK_EVENT_CHECKPOINT], 1);
    assert_non_null(strstr(lk_error_text(), "callback 'watcher'"));
}

static void keeps_names_apart(void **state)
{
    (void)state;
    struct record r = {.names_wrongly = true};
    ASSERT_OK(train("named", "csv_log", &r));
    assert_int_equal(r.counts[LK_EVENT_EVALUATION], 4);
}

static void refuses(void **state)
{
    (void)state;
    struct record r = {.stop_at = 0};
    struct lk_settings *settings = NULL;
    char name[16][8];
    lk_error_clear();
    ASSERT_OK(lk_settings_create(&settings));
    const struct lk_callback nameless = {"", &r, call}, idle = {"idle", &r, NULL};
    assert_int_equal(lk_settings_add_callback(settings, &nameless), LK_E_ARGUMENT);
    assert_int_equal(lk_settings_add_callback(settings, &idle), LK_E_ARGUMENT);
    for (int i = 0; i < 8; i++) {
        snprintf(name[i], sizeof name[i], "c%d", i);
        ASSERT_OK(lk_settings_add_callback(settings, &(struct lk_callback){name[i], &r, call}));
        lk_error_clear();
        assert_int_equal(
            lk_settings_add_callback(settings, &(struct lk_callback){name[i], &r, call}),
            LK_E_ARGUMENT);
    }
    lk_error_clear();
    assert_int_equal(
        lk_settings_add_callback(settings, &(struct lk_callback){"more", &r, call}),
        LK_E_ARGUMENT);
    lk_settings_destroy(settings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sees_all),       cmocka_unit_test(ends_the_run),
        cmocka_unit_test(sets_the_rate),  cmocka_unit_test(keeps_the_rate),
        cmocka_unit_test(feeds_monitors), cmocka_unit_test(fails),
        cmocka_unit_test(refuses),        cmocka_unit_test(keeps_names_apart),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}

/* Shares against every other way to share; splits followed through steps of simulated devices.
 */
#include "mirror/split.h"

#include "base/random.h"
#include "mirror/tree.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define assert_ok(call) assert_int_equal(call, LK_OK)
#define assert_failed(call, code, text)                                                        \
    do {                                                                                       \
        assert_int_equal(call, code);                                                          \
        assert_non_null(strstr(lk_error_text(), text));                                        \
        lk_error_clear();                                                                      \
    } while (0)

static uint64_t drawn;

static double draw(void)
{
    return lk_random_unit(lk_random(11, LK_RANDOM_DATA, 0, drawn++).v[0]);
}

/* --- policies ----------------------------------------------------------------------------- */

static void test_policies(void **state)
{
    struct lk_split_policy p;
    (void)state;
    assert_ok(lk_split_parse("all", 2, &p));
    assert_int_equal(p.kind, LK_SPLIT_MEASURED);
    assert_true(p.keeps_all);
    assert_ok(lk_split_parse("measured", 2, &p));
    assert_false(p.keeps_all);
    assert_int_equal(p.kind, LK_SPLIT_MEASURED);
    assert_true(p.weights[0] == 1 && p.weights[1] == 1);
    assert_ok(lk_split_parse("equal", 64, &p));
    assert_int_equal(p.kind, LK_SPLIT_EQUAL);
    assert_true(p.weights[63] == 1);
    assert_ok(lk_split_parse("2:0:0.25", 3, &p));
    assert_int_equal(p.kind, LK_SPLIT_WEIGHTS);
    assert_true(p.weights[0] == 2 && p.weights[1] == 0 && p.weights[2] == 0.25);
    assert_ok(lk_split_parse("1e6", 1, &p));
    assert_true(p.weights[0] == 1e6);
}

static void test_wrong_policies(void **state)
{
    static const struct {
        const char *policy;
        int devices;
        const char *text;
    } cases[] = {
        {"fair", 2, "expected measured, all, equal, or a weight"},
        {"", 1, "expected measured"},
        {"1:", 2, "found ''"},
        {"1:x", 2, "found 'x'"},
        {"1:-1", 2, "found '-1'"},
        {"1:nan", 2, "found 'nan'"},
        {"1:inf", 2, "found 'inf'"},
        {"1:1000001", 2, "found '1000001'"},
        {"1", 2, "found '' after the one of device 0"},
        {"1:2:3", 2, "found ':3' after the one of device 1"},
        {"1,2", 2, "found ',2' after the one of device 0"},
        {"1:2 ", 2, "found ' ' after the one of device 1"},
        {"0:0", 2, "all weights are 0"},
        {"equal", 0, "0 devices"},
        {"equal", 257, "257 devices"},
    };
    struct lk_split_policy p = {.kind = LK_SPLIT_EQUAL, .weights = {7}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_failed(lk_split_parse(cases[i].policy, cases[i].devices, &p), LK_E_ARGUMENT,
                      cases[i].text);
    assert_true(p.weights[0] == 7);
}

/* --- shares ------------------------------------------------------------------------------- */

enum { MOST_TRIED = 4 };

/* The shortest time over all ways to give `shards` to devices from `device` on. */
static double shortest(int shards, int device, int devices, const double *rates)
{
    double best = INFINITY;
    if (device == devices || device == MOST_TRIED)
        return shards == 0 ? 0 : INFINITY;
    for (int n = 0; n <= shards && (n == 0 || rates[device] > 0); n++) {
        const double own = n == 0 ? 0 : n / rates[device];
        const double rest = shortest(shards - n, device + 1, devices, rates);
        best = fmin(best, fmax(own, rest));
    }
    return best;
}

static void test_shares_are_best(void **state)
{
    (void)state;
    for (int n = 0; n < 300; n++) {
        const int devices = 1 + (int)(MOST_TRIED * draw()), shards = 1 + (int)(12 * draw());
        double rates[MOST_TRIED] = {0}, took = 0;
        int counts[MOST_TRIED], sum = 0;
        for (int i = 0; i < devices; i++)
            rates[i] = i > 0 && draw() < 0.2 ? 0 : pow(10, 2 * draw());
        assert_ok(lk_split_share(shards, devices, rates, counts));
        for (int i = 0; i < devices; i++) {
            assert_in_range(counts[i], 0, rates[i] > 0 ? shards : 0);
            took = fmax(took, counts[i] > 0 ? counts[i] / rates[i] : 0);
            sum += counts[i];
        }
        assert_int_equal(sum, shards);
        assert_true(took == shortest(shards, 0, devices, rates));
    }
}

static void test_equal_shares(void **state)
{
    double rates[LK_MOST_SPLIT_DEVICES];
    int counts[LK_MOST_SPLIT_DEVICES];
    (void)state;
    for (int i = 0; i < LK_MOST_SPLIT_DEVICES; i++)
        rates[i] = 0.3;
    for (int devices = 1; devices <= LK_MOST_SPLIT_DEVICES; devices += 7)
        for (int shards = 1; shards <= LK_MOST_SHARDS; shards *= 2) {
            assert_ok(lk_split_share(shards, devices, rates, counts));
            for (int i = 0; i < devices; i++)
                assert_int_equal(counts[i], shards / devices + (i < shards % devices));
        }
}

static void test_refused_shares(void **state)
{
    const double rates[] = {1, 2}, none[] = {0, 0}, negative[] = {1, -1}, odd[] = {NAN, 1};
    const double infinite[] = {INFINITY, 1}, second[] = {0, 1};
    int counts[2] = {9, 9};
    (void)state;
    assert_failed(lk_split_share(0, 2, rates, counts), LK_E_ARGUMENT, "0 shards");
    assert_failed(lk_split_share(257, 2, rates, counts), LK_E_ARGUMENT, "257 shards");
    assert_failed(lk_split_share(8, 0, rates, counts), LK_E_ARGUMENT, "0 devices");
    assert_failed(lk_split_share(8, 257, rates, counts), LK_E_ARGUMENT, "257 devices");
    assert_failed(lk_split_share(8, 2, none, counts), LK_E_ARGUMENT, "no device");
    assert_failed(lk_split_share(8, 2, negative, counts), LK_E_ARGUMENT, "device 1");
    assert_failed(lk_split_share(8, 2, odd, counts), LK_E_ARGUMENT, "device 0");
    assert_failed(lk_split_share(8, 2, infinite, counts), LK_E_ARGUMENT, "device 0");
    assert_true(counts[0] == 9 && counts[1] == 9);
    assert_ok(lk_split_share(8, 2, second, counts));
    assert_true(counts[0] == 0 && counts[1] == 8);
}

/* --- steps of simulated devices ----------------------------------------------------------- */

struct devices {
    int count;
    double shard_seconds[LK_MOST_SPLIT_DEVICES]; /* 0: lost, nothing comes from it */
    double overhead;                             /* seconds of each step, in shards */
    double noise, hiccups; /* standard deviation; share of steps ten times slower */
    struct lk_split split;
    double seconds; /* that the steps took so far */
    int trials;     /* of idle devices */
};

static void start(struct devices *d, const char *policy, int shards)
{
    struct lk_split_policy p;
    assert_ok(lk_split_parse(policy, d->count, &p));
    assert_ok(lk_split_init(&d->split, &p, shards, d->count));
}

static double normal(void)
{
    return sqrt(-2 * log(1 - draw())) * cos(6.283185307179586 * draw());
}

/* Returns how many of the steps changed the split, trials of idle devices left out. */
static int run(struct devices *d, int steps)
{
    int changes = 0;
    for (int s = 0; s < steps; s++) {
        double seconds[LK_MOST_SPLIT_DEVICES], longest = 0;
        int sum = 0;
        for (int i = 0; i < d->count; i++) {
            sum += d->split.counts[i];
            seconds[i] = (d->overhead + d->split.counts[i]) * d->shard_seconds[i];
            seconds[i] *= exp(d->noise * normal()) * (draw() < d->hiccups ? 10 : 1);
            if (d->split.counts[i] == 0)
                seconds[i] = -1;
            longest = fmax(longest, seconds[i]);
        }
        assert_int_equal(sum, d->split.shards);
        d->seconds += longest;
        const bool was_trying = d->split.trial.kind;
        int before[LK_MOST_SPLIT_DEVICES];
        memcpy(before, was_trying ? d->split.trial.before : d->split.counts, sizeof before);
        const bool changed = lk_split_step(&d->split, seconds);
        if (!d->split.trial.kind)
            changes +=
                (changed || was_trying) && memcmp(before, d->split.counts, sizeof before) != 0;
        else
            d->trials += !was_trying && d->split.trial.kind == LK_SPLIT_IDLE_TRIAL;
    }
    return changes;
}

/* The step's time without noise, by the best split's. */
static double excess(const struct devices *d)
{
    double rates[LK_MOST_SPLIT_DEVICES], took = 0, best = 0;
    int counts[LK_MOST_SPLIT_DEVICES];
    for (int i = 0; i < d->count; i++)
        rates[i] = d->shard_seconds[i] > 0 ? 1 / d->shard_seconds[i] : 0;
    assert_ok(lk_split_share(d->split.shards, d->count, rates, counts));
    for (int i = 0; i < d->count; i++) {
        took = fmax(took, d->split.counts[i] * d->shard_seconds[i]);
        best = fmax(best, counts[i] * d->shard_seconds[i]);
    }
    return took / best;
}

static void test_measured_split(void **state)
{
    struct devices d = {.count = 3, .shard_seconds = {4, 2, 1}};
    (void)state;
    start(&d, "measured", 28);
    assert_int_equal(d.split.counts[0], 10);
    assert_int_equal(run(&d, 9), 1);
    assert_int_equal(d.split.counts[0], 4);
    assert_int_equal(d.split.counts[1], 8);
    assert_int_equal(d.split.counts[2], 16);
    assert_true(fabs(lk_split_rate(&d.split, 1) - 0.5) < 1e-12);
    assert_int_equal(run(&d, 1000), 0);
}

/* What is not measured stays as it began. */
static void test_fixed_splits(void **state)
{
    struct devices d = {.count = 3, .shard_seconds = {4, 2, 1}};
    (void)state;
    start(&d, "equal", 32);
    assert_int_equal(run(&d, 600), 0);
    assert_int_equal(d.split.counts[2], 10);
    start(&d, "0:1:3", 32);
    assert_int_equal(run(&d, 600), 0);
    assert_int_equal(d.split.counts[0], 0);
    assert_int_equal(d.split.counts[1], 8);
}

/* Less than 5 % to be gained is no reason: 32 shards on 1.04 and 1 would go 16:16 or 15:17. */
static void test_small_gain(void **state)
{
    struct devices d = {.count = 2, .shard_seconds = {1.04, 1}};
    (void)state;
    start(&d, "measured", 64);
    assert_int_equal(run(&d, 300), 0);
    d.shard_seconds[0] = 1.2;
    assert_in_range(run(&d, 300), 1, 2);
    assert_true(excess(&d) < 1.05);
}

/* Noise and a hiccup in 3 % of the steps: near the best split after 100 steps, and few changes
 * in 2000 more. */
static void test_noise(void **state)
{
    int all = 0;
    (void)state;
    for (int n = 0; n < 60; n++) {
        struct devices d = {.count = 2 + n % 7, .noise = 0.05, .hiccups = 0.03};
        for (int i = 0; i < d.count; i++)
            d.shard_seconds[i] = n % 2 ? 1 : 1 + 2 * draw();
        start(&d, "measured", n % 3 == 0 ? 8 : n % 3 == 1 ? 32 : 128);
        run(&d, 100);
        assert_true(excess(&d) < 1.12);
        const int changes = run(&d, 2000);
        assert_in_range(changes, 0, 5);
        assert_true(excess(&d) < 1.08);
        all += changes;
    }
    assert_in_range(all, 0, 60);
}

/* A hiccup in less than half of a window's steps does not count at all. */
static void test_hiccups(void **state)
{
    struct devices d = {.count = 4, .shard_seconds = {1, 1, 1, 1}, .hiccups = 0.1};
    (void)state;
    start(&d, "measured", 32);
    assert_int_equal(run(&d, 1000), 0);
}

/* Three times slower from one step to the next, then as before. */
static void test_slower_and_back(void **state)
{
    struct devices d = {.count = 4, .shard_seconds = {1, 1, 1, 1}, .noise = 0.03};
    (void)state;
    start(&d, "measured", 64);
    assert_int_equal(run(&d, 200), 0);
    d.shard_seconds[2] = 3;
    assert_in_range(run(&d, 50), 1, 3);
    assert_true(excess(&d) < 1.06);
    assert_in_range(d.split.counts[2], 5, 7);
    assert_in_range(run(&d, 500), 0, 1);
    d.shard_seconds[2] = 1;
    assert_in_range(run(&d, 50), 1, 3);
    assert_true(excess(&d) < 1.07);
    assert_in_range(d.split.counts[2], 15, 17);
    assert_in_range(run(&d, 500), 0, 1);
    assert_int_equal(d.trials, 0);
}

/* The step's time by the best split's, of two devices whose steps have an overhead. */
static double excess_of_two(const struct devices *d)
{
    double best = INFINITY, took = 0;
    for (int n = 0; n <= d->split.shards; n++) {
        const int counts[] = {n, d->split.shards - n};
        double longest = 0;
        for (int i = 0; i < 2; i++)
            if (counts[i] > 0)
                longest = fmax(longest, (d->overhead + counts[i]) * d->shard_seconds[i]);
        best = fmin(best, longest);
        took = n == d->split.counts[0] ? longest : took;
    }
    return took / best;
}

/* One of two is three times slower, steps have a cost of their own, and for some steps one of
 * both was disturbed: whatever the split became by that, it finds back. */
static void test_disturbed(void **state)
{
    (void)state;
    for (int n = 0; n < 200; n++) {
        struct devices d = {.count = 2,
                            .shard_seconds = {1, 3},
                            .overhead = n % 4 * 0.25,
                            .noise = n % 3 * 0.03,
                            .hiccups = 0.05};
        const int which = n % 2;
        const double usual = d.shard_seconds[which];
        start(&d, "measured", n % 5 ? 16 : 64);
        run(&d, (int)(60 * draw()));
        d.shard_seconds[which] = usual * (1.5 + 3 * draw());
        run(&d, 5 + (int)(20 * draw()));
        d.shard_seconds[which] = usual;
        run(&d, 150);
        assert_true(excess_of_two(&d) < 1.051);
        assert_in_range(run(&d, 1000), 0, 6);
        assert_true(excess_of_two(&d) < 1.051);
    }
}

/* So slow that it gets no shard: tried again, seldom enough, and taken back when it is well. */
static void test_idle_and_back(void **state)
{
    struct devices d = {.count = 4, .shard_seconds = {1, 1, 1, 1}};
    (void)state;
    start(&d, "measured", 8);
    run(&d, 50);
    d.shard_seconds[3] = 500;
    run(&d, 50);
    assert_int_equal(d.split.counts[3], 0);
    d.seconds = 0;
    assert_int_equal(run(&d, 100000), 0);
    assert_in_range(d.trials, 1, 4);
    assert_true(d.seconds < 3 * 100000 * 1.015); /* 3, 3 and 2 shards take 3 seconds */
    d.shard_seconds[3] = 1;
    run(&d, 60000);
    assert_int_equal(d.split.counts[3], 2);
}

/* More devices than shards, and the fast ones come last: they are found. */
static void test_more_devices_than_shards(void **state)
{
    struct devices d = {.count = 6, .shard_seconds = {5, 5, 5, 5, 1, 1}};
    (void)state;
    start(&d, "measured", 4);
    run(&d, 100);
    assert_int_equal(d.split.counts[4], 2);
    assert_int_equal(d.split.counts[5], 2);
}

static void test_lost_device(void **state)
{
    struct devices d = {.count = 3, .shard_seconds = {1, 1, 2}, .noise = 0.02};
    (void)state;
    start(&d, "measured", 40);
    run(&d, 50);
    assert_int_equal(d.split.counts[0], 16);
    assert_ok(lk_split_remove(&d.split, 1));
    d.shard_seconds[1] = 0;
    assert_int_equal(d.split.counts[1], 0);
    assert_in_range(d.split.counts[0], 26, 28);
    assert_true(lk_split_rate(&d.split, 1) == 0);
    assert_in_range(run(&d, 1000), 0, 2);
    assert_int_equal(d.split.counts[1], 0);
    assert_ok(lk_split_remove(&d.split, 0));
    assert_int_equal(d.split.counts[2], 40);
    const struct lk_split before = d.split;
    assert_failed(lk_split_remove(&d.split, 2), LK_E_NO_DEVICE, "no other is left");
    assert_memory_equal(&before, &d.split, sizeof before);
}

/* Before anything was measured, and where nothing ever is. */
static void test_lost_at_once(void **state)
{
    static const char *const policies[] = {"measured", "equal", "2:1:1"};
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct devices d = {.count = 3, .shard_seconds = {1, 1, 1}};
        start(&d, policies[i], 8);
        assert_ok(lk_split_remove(&d.split, 2));
        assert_int_equal(d.split.counts[0], i == 2 ? 6 : 4);
        assert_int_equal(d.split.counts[1], i == 2 ? 2 : 4);
        assert_ok(lk_split_remove(&d.split, 0));
        assert_int_equal(d.split.counts[1], 8);
        assert_failed(lk_split_remove(&d.split, 1), LK_E_NO_DEVICE, "no other");
    }
}

/* Devices without weight stand in for those that had all of it. */
static void test_stand_ins(void **state)
{
    struct devices d = {.count = 3, .shard_seconds = {1, 1, 1}};
    (void)state;
    start(&d, "1:0:0", 8);
    assert_int_equal(d.split.counts[0], 8);
    assert_ok(lk_split_remove(&d.split, 0));
    assert_int_equal(d.split.counts[0], 0);
    assert_int_equal(d.split.counts[1], 4);
    assert_int_equal(d.split.counts[2], 4);
    assert_ok(lk_split_remove(&d.split, 2));
    assert_int_equal(d.split.counts[1], 8);
}

/* Lost while it is tried: its trial is over, nobody goes back to it. */
static void test_lost_in_trial(void **state)
{
    struct devices d = {.count = 3, .shard_seconds = {1, 1, 1}};
    (void)state;
    start(&d, "measured", 2);
    for (int i = 0; i < 100 && !d.split.trial.kind; i++)
        run(&d, 1);
    assert_true(d.split.trial.kind);
    assert_int_equal(d.split.counts[2], 1);
    assert_ok(lk_split_remove(&d.split, 2));
    d.shard_seconds[2] = 0;
    run(&d, 600);
    assert_int_equal(d.split.counts[2], 0);
}

/* Times that are none change nothing. */
static void test_odd_times(void **state)
{
    const double odd[] = {0, -1, NAN, INFINITY};
    struct lk_split_policy p;
    struct lk_split split;
    (void)state;
    assert_ok(lk_split_parse("measured", 4, &p));
    assert_ok(lk_split_init(&split, &p, 8, 4));
    for (int i = 0; i < 50; i++)
        assert_false(lk_split_step(&split, odd));
    for (int i = 0; i < 4; i++)
        assert_true(lk_split_rate(&split, i) == 0);
}

/* Before the split follows the devices' speeds. */
static void tells_what_another_split_saves(void **state)
{
    struct lk_split_policy policy;
    struct lk_split split;
    (void)state;
    assert_int_equal(lk_split_parse("measured", 2, &policy), LK_OK);
    assert_int_equal(lk_split_init(&split, &policy, 8, 2), LK_OK);
    assert_true(lk_split_gain(&split) == 0);
    lk_split_step(&split, (const double[]){4, 12});
    assert_int_equal(split.counts[0], 4);
    const double gain = lk_split_gain(&split); /* 12 s against 6 s */
    assert_true(gain > 5.999 && gain < 6.001);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tells_what_another_split_saves),
        cmocka_unit_test(test_policies),
        cmocka_unit_test(test_wrong_policies),
        cmocka_unit_test(test_shares_are_best),
        cmocka_unit_test(test_equal_shares),
        cmocka_unit_test(test_refused_shares),
        cmocka_unit_test(test_measured_split),
        cmocka_unit_test(test_fixed_splits),
        cmocka_unit_test(test_small_gain),
        cmocka_unit_test(test_noise),
        cmocka_unit_test(test_hiccups),
        cmocka_unit_test(test_slower_and_back),
        cmocka_unit_test(test_disturbed),
        cmocka_unit_test(test_idle_and_back),
        cmocka_unit_test(test_more_devices_than_shards),
        cmocka_unit_test(test_lost_device),
        cmocka_unit_test(test_lost_at_once),
        cmocka_unit_test(test_stand_ins),
        cmocka_unit_test(test_lost_in_trial),
        cmocka_unit_test(test_odd_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

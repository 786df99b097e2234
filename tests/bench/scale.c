/* A step on more devices than were measured: the simulation on numbers that were worked out by
 * hand, and a small model's prediction from a real measurement. */
#include "bench/scale/scale.h"
#include "device/rig.h"
#include "scratch.h"

static struct lk_scale_costs costs;

/* 4 shards; two buckets of 100 and 200 MB; the host adds 100 GB/s. */
static void invent(void)
{
    memset(&costs, 0, sizeof costs);
    costs.shards = 4;
    costs.buckets = 2;
    costs.bytes[0] = 100e6;
    costs.bytes[1] = 200e6;
    costs.ready[2][0] = 0.050;
    costs.ready[2][1] = 0.100;
    costs.ready[1][0] = 0.030;
    costs.ready[1][1] = 0.060;
    costs.ready[4][0] = 0.100;
    costs.ready[4][1] = 0.200;
    costs.update[0] = 0.002;
    costs.update[1] = 0.030;
    costs.fixed = 0.001;
    costs.add_gbs = 100;
}

static void expect(const struct lk_scale_moment *end, double at,
                   const double seconds[LK_SCALE_SHARDS])
{
    assert_float_equal(end->at, at, 1e-9);
    for (int i = 0; i < LK_SCALE_SHARDS; i++)
        assert_float_equal(end->seconds[i], seconds[i], 1e-9);
}

/* The second bucket is ready when the first one is through: at 101 ms; 20 ms up, 8 ms added, 10
 * and 20 ms back, the last one updated in 30 ms. */
static void hides_transfers_behind_compute(void **state)
{
    (void)state;
    const struct lk_scale_links wires = {.link_gbs = 10, .hosts = 1};
    invent();
    const struct lk_scale_moment two = lk_scale_simulate(&costs, &wires, 2);
    expect(&two, 0.189, (double[]){0.100, 0.050, 0.008, 0, 0.030, 0.001, 0});
    assert_int_equal(lk_scale_limit_of(&two, 4, 2), LK_SCALE_COMPUTE);
    /* the first device still has two shards, and there are three terms and three copies */
    const struct lk_scale_moment three = lk_scale_simulate(&costs, &wires, 3);
    expect(&three, 0.193, (double[]){0.100, 0.050, 0.012, 0, 0.030, 0.001, 0});
    assert_int_equal(lk_scale_limit_of(&three, 4, 3), LK_SCALE_SHARDS);
    /* four have one each; the other four of eight idle */
    const struct lk_scale_moment four = lk_scale_simulate(&costs, &wires, 4);
    const struct lk_scale_moment eight = lk_scale_simulate(&costs, &wires, 8);
    expect(&four, 0.157, (double[]){0.060, 0.050, 0.016, 0, 0.030, 0.001, 0});
    expect(&eight, 0.157, four.seconds);
    assert_int_equal(lk_scale_limit_of(&four, 4, 4), LK_SCALE_COMPUTE);
    assert_int_equal(lk_scale_limit_of(&eight, 4, 8), LK_SCALE_SHARDS);
}

/* No host, no link. */
static void one_device_is_alone(void **state)
{
    (void)state;
    const struct lk_scale_links wires = {.link_gbs = 1e-3, .hosts = 2, .net_gbs = 1e-3};
    invent();
    const struct lk_scale_moment end = lk_scale_simulate(&costs, &wires, 1);
    expect(&end, 0.232, (double[]){0.200, 0, 0, 0, 0.032, 0, 0});
    assert_int_equal(lk_scale_limit_of(&end, 4, 1), LK_SCALE_COMPUTE);
}

/* The first bucket holds the link until 151 ms, when the second has long been ready. */
static void waits_for_slow_links(void **state)
{
    (void)state;
    const struct lk_scale_links wires = {.link_gbs = 1, .hosts = 1};
    invent();
    const struct lk_scale_moment end = lk_scale_simulate(&costs, &wires, 2);
    expect(&end, 0.689, (double[]){0.050, 0.600, 0.008, 0, 0.030, 0.001, 0});
    assert_int_equal(lk_scale_limit_of(&end, 4, 2), LK_SCALE_LINK);
}

/* Two hosts with two devices: half of twice a bucket's bytes at 1 GB/s. */
static void sums_across_hosts(void **state)
{
    (void)state;
    const struct lk_scale_links wires = {.link_gbs = 10, .hosts = 2, .net_gbs = 1};
    invent();
    const struct lk_scale_moment end = lk_scale_simulate(&costs, &wires, 4);
    expect(&end, 0.405, (double[]){0.030, 0.040, 0.004, 0.300, 0.030, 0.001, 0});
    assert_int_equal(lk_scale_limit_of(&end, 4, 4), LK_SCALE_NETWORK);
}

/* What is slowest is the bottleneck, whatever it is. */
static void tells_addition_update_and_fixed_cost(void **state)
{
    (void)state;
    const struct lk_scale_links wires = {.link_gbs = 10, .hosts = 1};
    invent();
    costs.add_gbs = 1;
    struct lk_scale_moment end = lk_scale_simulate(&costs, &wires, 2);
    /* added from 61 to 461 ms, and on to 1,261 */
    expect(&end, 1.321, (double[]){0.050, 0.040, 1.200, 0, 0.030, 0.001, 0});
    assert_int_equal(lk_scale_limit_of(&end, 4, 2), LK_SCALE_ADDITION);
    invent();
    costs.update[0] = 1;
    end = lk_scale_simulate(&costs, &wires, 2);
    assert_int_equal(lk_scale_limit_of(&end, 4, 2), LK_SCALE_UPDATE);
    invent();
    costs.fixed = 1;
    end = lk_scale_simulate(&costs, &wires, 2);
    assert_int_equal(lk_scale_limit_of(&end, 4, 2), LK_SCALE_FIXED);
}

/* Those of the shares that have the most shards; idle devices change nothing. */
static void finds_the_spread(void **state)
{
    (void)state;
    invent();
    costs.spread[4] = 0.01;
    costs.spread[2] = 0.02;
    costs.spread[1] = 0.04;
    assert_true(lk_scale_spread(&costs, 1) == 0.01);
    assert_true(lk_scale_spread(&costs, 2) == 0.02);
    assert_true(lk_scale_spread(&costs, 3) == 0.02);
    assert_true(lk_scale_spread(&costs, 4) == 0.04);
    assert_true(lk_scale_spread(&costs, 64) == 0.04);
}

/* 2 cores, of which a sample takes 0.4 ms. */
static void counts_reading(void **state)
{
    (void)state;
    const struct lk_scale_reading none = {.cores = 2};
    const struct lk_scale_reading reading = {
        .cores_time = 0.0004, .alone = 0.00025, .cores = 2};
    assert_float_equal(lk_scale_read_beside(&none, 100, 0.1, 0.2, 2), 0.1, 1e-9);
    assert_float_equal(lk_scale_read_alone(&reading, 100), 0.025, 1e-9);
    /* devices with processors of their own: until it takes longer than the step */
    assert_float_equal(lk_scale_read_beside(&reading, 100, 0.1, 0, 0), 0.1, 1e-9);
    assert_float_equal(lk_scale_read_beside(&reading, 1000, 0.1, 0, 0), 0.25, 1e-9);
    /* both cores compute, 200 ms in all, and read for 40; or one does, or both wait often */
    assert_float_equal(lk_scale_read_beside(&reading, 100, 0.1, 0.2, 2), 0.12, 1e-9);
    assert_float_equal(lk_scale_read_beside(&reading, 100, 0.1, 0.1, 1), 0.1, 1e-9);
    assert_float_equal(lk_scale_read_beside(&reading, 100, 0.1, 0.15, 2), 0.1, 1e-9);
    /* more devices than this host has cores: it would have more */
    assert_float_equal(lk_scale_read_beside(&reading, 100, 0.1, 0.4, 4), 0.11, 1e-9);
}

/* 16 shards on 5 devices are 4, 3, 3, 3, 3, computed at most 8 at a time: shards 7 to 9 take
 * two passes, and each run of three is two sums. */
static void takes_passes_as_a_team_does(void **state)
{
    (void)state;
    const struct lk_scale_links wires = {.link_gbs = 10, .hosts = 1};
    bool wanted[LK_MOST_SHARDS + 1] = {false};
    lk_scale_want(16, 5, wanted);
    for (int n = 0; n <= LK_MOST_SHARDS; n++)
        assert_int_equal(wanted[n], n >= 1 && n <= 4);
    memset(&costs, 0, sizeof costs);
    costs.shards = 16;
    costs.buckets = 1;
    costs.bytes[0] = 100e6;
    costs.ready[1][0] = 0.020;
    costs.ready[2][0] = 0.025;
    costs.ready[3][0] = 0.030;
    costs.ready[4][0] = 0.040;
    costs.update[0] = 0.002;
    costs.fixed = 0.001;
    costs.add_gbs = 100;
    const struct lk_scale_moment end = lk_scale_simulate(&costs, &wires, 5);
    expect(&end, 0.092, (double[]){0.045, 0.030, 0.014, 0, 0.002, 0.001, 0});
}

static const char net[] = "input: [28, 28, 1]\n"
                          "layers:\n"
                          "  - conv2d: {filters: 8, kernel: 3, activation: relu}\n"
                          "  - max_pool: {size: 2}\n"
                          "  - flatten\n"
                          "  - dense: {units: 10}\n"
                          "  - softmax\n";

static void predicts_from_a_measurement(void **state)
{
    (void)state;
    const int devices[] = {1, 2, 3, 8};
    struct lk_scale_row rows[4];
    struct lk_scale_report report = {.rows = rows};
    scratch_put(scratch_path("net.yaml"), net, strlen(net));
    struct lk_scale_options options = {.model = scratch_path("net.yaml"),
                                       .devices = devices,
                                       .count = 4,
                                       .batch = 60,
                                       .shards = 4,
                                       .hosts = 1};
    assert_ok(lk_bench_scale(device, &options, &report));
    assert_int_equal(lk_device_bytes(device), 0);
    assert_int_equal(report.buckets, 1);
    /* 80 and 13,530 parameters, each of the four padded to 128 */
    assert_float_equal(report.bytes, 4 * (128 + 128 + 13568 + 128), 0);
    assert_true(report.link_gbs > 0 && report.add_gbs > 0);
    assert_float_equal(rows[0].percent, 100, 1e-6);
    assert_int_equal(report.alone.devices, 1);
    assert_float_equal(report.alone.step_ms, rows[0].step_ms, 1e-6 * rows[0].step_ms);
    for (int i = 0; i < 4; i++) {
        double ms = 0;
        assert_true(rows[i].noise > 0 && rows[i].noise < 10 * rows[i].percent);
        assert_int_equal(rows[i].devices, devices[i]);
        assert_int_equal(rows[i].batch, 60);
        for (int j = 0; j < LK_SCALE_LIMITS; j++)
            ms += rows[i].ms[j];
        assert_float_equal(ms, rows[i].step_ms, 1e-6 * ms);
        assert_float_equal(rows[i].samples_per_s, 60e3 / ms, 1e-6 * rows[i].samples_per_s);
        assert_float_equal(rows[i].percent,
                           100 * rows[i].samples_per_s / rows[0].samples_per_s / devices[i],
                           1e-6 * rows[i].percent);
    }
    assert_true(rows[1].ms[LK_SCALE_COMPUTE] > 0 && rows[1].ms[LK_SCALE_LINK] > 0);
    assert_int_equal(rows[3].limit, LK_SCALE_SHARDS);
    /* the batch grows with the devices; a link of 10 kB/s stops everything */
    options.batch = 0;
    options.each = 16;
    options.count = 2;
    options.link_gbs = 1e-5;
    assert_ok(lk_bench_scale(device, &options, &report));
    assert_int_equal(rows[1].batch, 32);
    assert_int_equal(rows[1].limit, LK_SCALE_LINK);
    assert_true(rows[1].step_ms > 2 * 1e3 * 4 * 13952 / 1e4);
}

static void refuses_what_makes_no_sense(void **state)
{
    (void)state;
    int devices[] = {2};
    struct lk_scale_row row;
    struct lk_scale_report report = {.rows = &row};
    const struct lk_scale_options good = {
        .model = "mlp", .devices = devices, .count = 1, .batch = 64, .hosts = 1};
    struct lk_scale_options o = good;
    o.count = 0;
    assert_fails(lk_bench_scale(device, &o, &report), LK_E_ARGUMENT, "no number");
    for (devices[0] = 0; devices[0] < 300; devices[0] += 257)
        assert_fails(lk_bench_scale(device, &good, &report), LK_E_ARGUMENT, "1 to 256");
    devices[0] = 2;
    o = good;
    o.shards = 3;
    assert_fails(lk_bench_scale(device, &o, &report), LK_E_ARGUMENT, "power of two");
    o = good;
    o.each = 8;
    assert_fails(lk_bench_scale(device, &o, &report), LK_E_ARGUMENT, "both");
    o = good;
    o.batch = 0;
    assert_fails(lk_bench_scale(device, &o, &report), LK_E_ARGUMENT, "neither");
    o = good;
    o.batch = -1;
    assert_fails(lk_bench_scale(device, &o, &report), LK_E_ARGUMENT, "-1 samples");
    o = good;
    o.link_gbs = -1;
    assert_fails(lk_bench_scale(device, &o, &report), LK_E_ARGUMENT, "link of -1");
    o = good;
    o.hosts = 0;
    assert_fails(lk_bench_scale(device, &o, &report), LK_E_ARGUMENT, "0 hosts");
    o = good;
    o.hosts = 2;
    assert_fails(lk_bench_scale(device, &o, &report), LK_E_ARGUMENT, "network of 0");
    o = good;
    o.model = "nix";
    assert_fails(lk_bench_scale(device, &o, &report), LK_E_MODEL, "nix");
}

static int open_all(void **state)
{
    return open_device(state) || scratch_make(state);
}

static int close_all(void **state)
{
    return close_device(state) || scratch_remove(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hides_transfers_behind_compute),
        cmocka_unit_test(finds_the_spread),
        cmocka_unit_test(one_device_is_alone),
        cmocka_unit_test(waits_for_slow_links),
        cmocka_unit_test(sums_across_hosts),
        cmocka_unit_test(tells_addition_update_and_fixed_cost),
        cmocka_unit_test(counts_reading),
        cmocka_unit_test(takes_passes_as_a_team_does),
        cmocka_unit_test(predicts_from_a_measurement),
        cmocka_unit_test(refuses_what_makes_no_sense),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}

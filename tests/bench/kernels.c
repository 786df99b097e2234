/* The table of timed operations and what is reported of one. */
#include "bench/cases.h"
#include "bench/peaks.h"
#include "device/rig.h"
#include "ops/probe/probe.h"
#include "scratch.h"
#include "train/tuning/tuning.h"

/* A row whose operation, options or shape are wrong would be found out only after minutes. */
static void every_case_can_be_prepared(void **state)
{
    (void)state;
    for (const struct lk_bench_case *c = lk_bench_cases; c->set; c++) {
        struct lk_probe probe;
        struct lk_probe_config config = {.device = device,
                                         .op = c->op,
                                         .options = c->options,
                                         .absorbed = c->absorbed,
                                         .absorbed_options = c->absorbed_options,
                                         .batch = c->batch,
                                         .shards = 1,
                                         .training = true,
                                         .dx = true,
                                         .dw = true};
        config.inputs = lk_bench_case_inputs(c, config.x);
        const enum lk_status status = lk_probe_open(&probe, &config);
        if (status != LK_OK)
            fail_msg("%s %s %s: %s", c->set, c->op, c->options, lk_error_text());
        assert_true(probe.setup.shapes.flops > 0);
        if (strcmp(c->op, "conv2d") == 0 || strcmp(c->op, "dense") == 0)
            assert_true(probe.setup.shapes.params > 0);
        lk_probe_close(&probe);
    }
}

/* The ConvNet's forward pass is 5.6 MFLOP an image. */
static void convnet_has_its_operations(void **state)
{
    (void)state;
    double flops = 0;
    for (const struct lk_bench_case *c = lk_bench_cases; c->set; c++) {
        struct lk_probe probe;
        const struct lk_probe_config config = {.device = device,
                                               .op = c->op,
                                               .options = c->options,
                                               .inputs = 1,
                                               .x = {c->x},
                                               .batch = 1,
                                               .shards = 1};
        const bool is_plain = strcmp(c->op, "conv2d") == 0 && !strstr(c->options, "relu");
        if (strcmp(c->set, "convnet") != 0 || is_plain)
            continue;
        assert_int_equal(lk_probe_open(&probe, &config), LK_OK);
        if (probe.setup.shapes.params > 0)
            flops += probe.setup.shapes.flops;
        lk_probe_close(&probe);
    }
    assert_true(flops > 5.4e6 && flops < 5.8e6);
}

static bool stop_at_once(void *context, const struct lk_bench_kernel *kernel)
{
    struct lk_bench_kernel *kept = context;
    assert_string_equal(kernel->set, "mlp");
    assert_string_equal(kernel->op, "dense");
    assert_string_equal(kernel->pass, "forward");
    assert_string_equal(kernel->shape, "[784] units=1024 activation=relu, n 512");
    *kept = *kernel;
    return false;
}

static void reports_rates_and_stops(void **state)
{
    (void)state;
    struct lk_bench_kernel kernel = {0};
    assert_int_equal(lk_bench_kernels(device, "mlp", NULL, stop_at_once, &kernel), LK_OK);
    const double gflop = 2 * 784.0 * 1024 * 512 * 1e-9;
    assert_false(kernel.memory_bound);
    assert_int_equal(kernel.done, 1);
    assert_int_equal(kernel.count, 11);
    assert_true(kernel.ms > 0);
    assert_float_equal(kernel.gflops, gflop / kernel.ms * 1e3, 1e-3 * kernel.gflops);
    assert_float_equal(kernel.percent_of_peak, 100 * kernel.gflops / kernel.peaks.fma_gflops,
                       1e-6);
    /* wide: other work on the machine may hit one measurement and not the other */
    assert_true(kernel.percent_of_peak > 0.05 && kernel.percent_of_peak < 500);
    assert_int_equal(lk_device_bytes(device), 0);
}

static bool stop_at_pooling(void *context, const struct lk_bench_kernel *kernel)
{
    struct lk_bench_kernel *kept = context;
    *kept = *kernel;
    return strcmp(kernel->op, "max_pool") != 0;
}

/* The bounds that are said hold for others than the usual batch and time, too. */
static void takes_options(void **state)
{
    (void)state;
    const struct lk_bench_options options = {.batch = 3, .seconds = 1e-3};
    struct lk_bench_kernel kernel = {0};
    assert_int_equal(lk_bench_kernels(device, "convnet", &options, stop_at_pooling, &kernel),
                     LK_OK);
    assert_true(kernel.memory_bound && !kernel.is_reference);
    /* 32 x 26 x 26 in, a quarter of it out, of float */
    assert_float_equal(kernel.bytes, 3 * 32 * 26 * 26 * 1.25 * 4, 0);
    assert_float_equal(kernel.gbs, 1e-6 * kernel.bytes / kernel.ms, 1e-6 * kernel.gbs);
    assert_float_equal(kernel.gflops, 1e-6 * kernel.flops / kernel.ms, 1e-6 * kernel.gflops);
    assert_float_equal(kernel.percent_of_peak, 100 * kernel.gbs / kernel.peaks.bandwidth_gbs,
                       1e-6);
    assert_true(kernel.host_us > 0 && kernel.host_us < 1e3 * kernel.ms);
    assert_true(kernel.build_ms > 0);
}

/* A backward pass reads dy and x, reads w for dx, and writes what it was asked for. */
static void counts_bytes(void **state)
{
    (void)state;
    const double x = 5 * 784, y = 5 * 1024, w = 784 * 1024 + 1024;
    for (int wanted = 1; wanted < 4; wanted++) {
        struct lk_probe probe;
        const bool dx = wanted & 1, dw = wanted & 2;
        const struct lk_probe_config config = {.device = device,
                                               .op = "dense",
                                               .options = "units=1024",
                                               .inputs = 1,
                                               .x = {{1, {784}}},
                                               .batch = 5,
                                               .shards = 1,
                                               .training = true,
                                               .dx = dx,
                                               .dw = dw};
        assert_int_equal(lk_probe_open(&probe, &config), LK_OK);
        assert_float_equal(lk_probe_bytes(&probe, false), 4 * (x + y + w), 0);
        assert_float_equal(lk_probe_bytes(&probe, true), 4 * (y + dx * (x + w) + dw * (x + w)),
                           0);
        lk_probe_close(&probe);
    }
}

static void copy_text(void *to, const char *key, const char *text)
{
    (void)key;
    strcpy(to, text);
}

static bool stop_at_64(void *ran, const struct lk_bench_kernel *kernel)
{
    const bool is_it = strncmp(kernel->shape, "[64, 5, 5]", 10) == 0;
    if (is_it)
        snprintf(ran, 64, "%s", kernel->algorithm);
    return !is_it;
}

static void take_other(void *found, const char *key, const char *text)
{
    const char *other = strncmp(text, "direct", 6) == 0 ? "winograd4" : "direct";
    if (strstr(key, " forward "))
        assert_int_equal(lk_choices_set(found, key, other), LK_OK);
}

/* Keeps, as tuning does, another algorithm for the case than the rule takes. */
static void keep_other(const struct lk_bench_case *c, char *kept)
{
    struct lk_choices *choices, *found;
    struct lk_probe probe;
    assert_int_equal(lk_choices_create(LK_MATH_NORMAL, &choices), LK_OK);
    assert_int_equal(lk_choices_create(LK_MATH_NORMAL, &found), LK_OK);
    const struct lk_probe_config config = {.device = device,
                                           .op = c->op,
                                           .options = c->options,
                                           .inputs = 1,
                                           .x = {c->x},
                                           .batch = 1,
                                           .shards = 1,
                                           .choices = choices};
    assert_int_equal(lk_probe_open(&probe, &config), LK_OK);
    lk_choices_each(choices, take_other, found);
    lk_choices_each(found, copy_text, kept);
    assert_int_equal(lk_tuning_save(LK_TUNING_FULL, found), LK_OK);
    lk_probe_close(&probe);
    lk_choices_destroy(choices);
    lk_choices_destroy(found);
}

static void takes_what_tuning_found(void **state)
{
    (void)state;
    const struct lk_bench_options options = {.batch = 1, .seconds = 1e-3};
    const struct lk_bench_case *c = lk_bench_cases;
    const char *cache = getenv("LOCKSTEP_CACHE");
    char before[512] = "", kept[LK_CHOICE_TEXT_BYTES] = "", ran[64] = "";
    snprintf(before, sizeof before, "%s", cache ? cache : "");
    assert_int_equal(scratch_make(state), 0);
    setenv("LOCKSTEP_CACHE", scratch, 1);
    while (strcmp(c->set, "convnet") != 0 || c->x.dim[0] != 64)
        c++;
    keep_other(c, kept);
    assert_int_equal(lk_bench_kernels(device, "convnet", &options, stop_at_64, ran), LK_OK);
    assert_true(lk_candidate_answers(ran, kept));
    scratch_remove(state);
    cache ? setenv("LOCKSTEP_CACHE", before, 1) : unsetenv("LOCKSTEP_CACHE");
}

static void times_launches(void **state)
{
    (void)state;
    struct lk_launch_times times = {0};
    assert_int_equal(lk_launch_measure(device, &times), LK_OK);
    assert_true(times.enqueue_us > 0.01 && times.enqueue_us <= times.launch_us);
    assert_true(times.round_trip_us > times.enqueue_us && times.round_trip_us < 1e6);
    assert_int_equal(lk_device_bytes(device), 0);
}

static bool never(void *context, const struct lk_bench_kernel *kernel)
{
    (void)context;
    (void)kernel;
    fail_msg("the handler was called");
    return false;
}

static void refuses_an_unknown_set(void **state)
{
    (void)state;
    lk_error_clear();
    assert_int_equal(lk_bench_kernels(device, "resnet5", NULL, never, NULL), LK_E_ARGUMENT);
    assert_non_null(strstr(lk_error_text(), "did you mean 'resnet50'"));
    assert_string_equal(lk_bench_set(0), "convnet");
    assert_string_equal(lk_bench_set(4), "arrange");
    assert_string_equal(lk_bench_set(5), "other-layers");
    assert_string_equal(lk_bench_set(6), "text");
    assert_string_equal(lk_bench_set(7), "mlp");
    assert_null(lk_bench_set(8));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_case_can_be_prepared),
        cmocka_unit_test(convnet_has_its_operations),
        cmocka_unit_test(reports_rates_and_stops),
        cmocka_unit_test(takes_options),
        cmocka_unit_test(counts_bytes),
        cmocka_unit_test(takes_what_tuning_found),
        cmocka_unit_test(times_launches),
        cmocka_unit_test(refuses_an_unknown_set),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}

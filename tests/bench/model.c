/* Models whose training steps are timed. */
#include "device/rig.h"
#include <lockstep/bench.h>

static void times_training_steps(void **state)
{
    (void)state;
    struct lk_bench_model model = {0};
    const struct lk_bench_options options = {.batch = 48, .seconds = 0.01};
    if (lk_bench_model(device, "fashion-convnet", &options, &model) != LK_OK)
        fail_msg("%s", lk_error_text());
    assert_string_equal(model.name, "fashion-convnet");
    assert_int_equal(model.batch, 48);
    assert_true(model.steps >= 10);
    assert_true(model.step_ms > 0 && model.build_s * 1e3 > model.step_ms);
    assert_float_equal(model.samples_per_s, 48e3 / model.step_ms, 1e-6 * model.samples_per_s);
    assert_true(model.host_percent > 0 && model.host_percent <= 100);
    /* ten classes at random: ln 10 */
    assert_true(model.loss > 1.8 && model.loss < 2.8);
    /* 93,322 weights, their gradients and two moments in float */
    assert_true(model.peak_bytes > 93322u * 4 * 4);
    assert_true(model.resident_bytes > 1u << 20);
    assert_int_equal(lk_device_bytes(device), 0);
}

static void knows_its_models(void **state)
{
    (void)state;
    const struct lk_bench_options negative = {.batch = -1}, wrong = {.math = "exact"};
    struct lk_bench_model model;
    lk_error_clear();
    assert_int_equal(lk_bench_model(device, "fashion-convnit", NULL, &model), LK_E_MODEL);
    assert_non_null(strstr(lk_error_text(), "did you mean 'fashion-convnet'"));
    lk_error_clear();
    assert_int_equal(lk_bench_model(device, "text-lstn", NULL, &model), LK_E_MODEL);
    assert_non_null(strstr(lk_error_text(), "did you mean 'text-lstm'"));
    lk_error_clear();
    assert_int_equal(lk_bench_model_check("lstm"), LK_E_MODEL);
    assert_int_equal(lk_bench_model_check("text-lstm"), LK_OK);
    assert_int_equal(lk_bench_model_check("vgg16tail"), LK_OK);
    assert_int_equal(lk_bench_model_check("densenet121"), LK_OK);
    assert_int_equal(lk_bench_model(device, "mlp", &negative, &model), LK_E_ARGUMENT);
    lk_error_clear();
    assert_int_equal(lk_bench_model(device, "mlp", &wrong, &model), LK_E_ARGUMENT);
    assert_non_null(strstr(lk_error_text(), "'exact'"));
    lk_error_clear();
    int count = 0;
    while (lk_bench_model_name(count))
        assert_true(lk_bench_model_batch(count++) > 0);
    assert_int_equal(count, 7);
    assert_int_equal(lk_bench_model_batch(count), 0);
    for (count = 0; lk_bench_other_model_name(count); count++)
        assert_true(lk_bench_other_model_batch(count) > 0);
    assert_int_equal(count, 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_training_steps),
        cmocka_unit_test(knows_its_models),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}

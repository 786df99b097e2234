/* Whole networks through 20 steps against PyTorch in double (golden.py). */
#include "golden.h"
#include "model/checkpoint/checkpoint.h"
#include "ok.h"
#include "skip.h"
#include "team/stepper/stepper.h"
#include <lockstep/model.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char normalized_text[] = "name: normalized\n"
                                      "input: [28, 28, 1]\n"
                                      "layers:\n"
                                      "  - conv2d: {filters: 8, kernel: 3, bias: false}\n"
                                      "  - batch_norm: {momentum: 0.9}\n"
                                      "  - relu\n"
                                      "  - max_pool: {size: 2}\n"
                                      "  - conv2d: {filters: 20, kernel: 3, stride: 2, "
                                      "bias: false}\n"
                                      "  - batch_norm: {momentum: 0.9}\n"
                                      "  - flatten\n"
                                      "  - dense: {units: 10}\n"
                                      "  - softmax\n";

struct network {
    const char *text; /* NULL: the ConvNet */
    const char *optimizer, *options;
    double rate;
    const double *losses;
};

static const struct network convnet = {NULL, "adam", "", 0.001, golden_losses};
static const struct network normalized = {normalized_text, "sgd", "momentum=0.9", 0.002,
                                          normalized_losses};

/* golden.py's generator. */
static uint32_t draw(uint32_t *x)
{
    *x = *x * 1664525u + 1013904223u;
    return *x >> 16;
}

static void set_weights(struct lk_replica *replica, enum lk_dtype real, uint32_t *x)
{
    const struct lk_param *param;
    for (int i = 0; (param = lk_replica_param(replica, i)) != NULL; i++) {
        const struct lk_param_spec *spec = &param->spec;
        const double limit = sqrt(6.0 / (double)(spec->fan_in + spec->fan_out));
        double *wide = calloc((size_t)param->count, sizeof *wide);
        float *narrow = calloc((size_t)param->count, sizeof *narrow);
        for (int64_t e = 0; e < param->count; e++) {
            if (spec->init == LK_INIT_GLOROT_UNIFORM)
                narrow[e] = (float)((draw(x) / 65536.0 * 2 - 1) * limit);
            else
                narrow[e] = spec->init == LK_INIT_ONES;
            wide[e] = narrow[e];
        }
        ASSERT_OK(
            lk_replica_write_param(replica, i, real == LK_F64 ? (void *)wide : (void *)narrow));
        free(wide);
        free(narrow);
    }
}

static void fill_batch(uint8_t *images, int32_t *labels, uint32_t *x)
{
    for (int i = 0; i < GOLDEN_BATCH * 784; i++)
        images[i] = (uint8_t)(draw(x) % 256);
    for (int i = 0; i < GOLDEN_BATCH; i++) {
        labels[i] = (int32_t)(draw(x) % 10);
        memset(images + i * 784 + 28 * (2 * labels[i] + 4), 255, 28);
    }
}

/* The sums of the moving averages, in the order of the layers. */
static void check_moving(struct lk_replica *replica, enum lk_dtype real, double tolerance)
{
    const struct lk_param *param;
    int found = 0;
    for (int i = 0; (param = lk_replica_param(replica, i)) != NULL; i++) {
        if (!param->spec.is_tracked)
            continue;
        double *wide = calloc((size_t)param->count, sizeof *wide), sum = 0;
        ASSERT_OK(lk_replica_read_param(replica, i, wide));
        for (int64_t e = 0; e < param->count; e++)
            sum += real == LK_F64 ? wide[e] : ((const float *)wide)[e];
        free(wide);
        if (!(fabs(sum / normalized_moving[found] - 1) <= tolerance))
            fail_msg("%s: sum %.15g, PyTorch has %.15g", param->name, sum,
                     normalized_moving[found]);
        found++;
    }
    assert_int_equal(found, sizeof normalized_moving / sizeof *normalized_moving);
}

static double run_steps(struct lk_stepper *stepper, const struct lk_node *images,
                        const struct lk_node *labels, const struct network *network,
                        double tolerance, uint32_t *x)
{
    struct lk_replica *replica = lk_stepper_replica(stepper);
    double worst = 0;
    for (int step = 0; step < GOLDEN_STEPS; step++) {
        struct lk_step_result result;
        fill_batch(lk_replica_slot(replica, images, 0), lk_replica_slot(replica, labels, 0), x);
        ASSERT_OK(lk_stepper_enqueue(stepper, 0, GOLDEN_BATCH, network->rate, step + 1));
        ASSERT_OK(lk_stepper_wait(stepper, 0, &result));
        const double error = fabs(result.loss / network->losses[step] - 1);
        worst = fmax(worst, error);
        if (!(error <= tolerance))
            fail_msg("step %d: loss %.15g, PyTorch has %.15g", step + 1, result.loss,
                     network->losses[step]);
    }
    return worst;
}

static void train(const struct network *network, const char *kernel_class, enum lk_dtype real,
                  double tolerance)
{
    struct lk_device *device = NULL;
    struct lk_model *model = NULL;
    struct lk_stepper *stepper = NULL;
    struct lk_node *labels, *loss;
    uint32_t x = 1;
    setenv("LOCKSTEP_CLASS", kernel_class, 1);
    ASSERT_OK(lk_device_open(NULL, 0, &device));
    if (real == LK_F64 && !lk_device_info(device)->has_fp64) {
        lk_device_close(device);
        SKIP_TEST("the device has no double precision");
    }
    if (network->text)
        ASSERT_OK(lk_model_read(network->text, strlen(network->text), "text", &model));
    else
        ASSERT_OK(lk_model_open("fashion-convnet", NULL, &model));
    ASSERT_OK(lk_model_add_loss(model, &labels, &loss));
    const struct lk_stepper_config config = {
        .device = device,
        .loss = loss,
        .batch = GOLDEN_BATCH,
        .shards = GOLDEN_SHARDS,
        .real = real,
        .optimizer = network->optimizer,
        .optimizer_options = network->options,
    };
    ASSERT_OK(lk_stepper_create(&config, &stepper));
    ASSERT_OK(lk_stepper_build(stepper));
    set_weights(lk_stepper_replica(stepper), real, &x);
    const double worst =
        run_steps(stepper, lk_model_input(model, 0), labels, network, tolerance, &x);
    if (network == &normalized)
        check_moving(lk_stepper_replica(stepper), real, tolerance);
    print_message("# %s %s: largest relative difference %.2g\n", kernel_class,
                  lk_dtype_name(real), worst);
    lk_stepper_destroy(stepper);
    lk_model_destroy(model);
    lk_device_close(device);
}

static void single_precision_on_cpu_kernels(void **state)
{
    (void)state;
    train(&convnet, "cpu", LK_F32, 1e-5);
    train(&normalized, "cpu", LK_F32, 1e-5);
}

static void double_precision_on_cpu_kernels(void **state)
{
    (void)state;
    train(&convnet, "cpu", LK_F64, 1e-10);
    train(&normalized, "cpu", LK_F64, 1e-10);
}

static void single_precision_on_gpu_kernels(void **state)
{
    (void)state;
    train(&convnet, "gpu", LK_F32, 1e-5);
    train(&normalized, "gpu", LK_F32, 1e-5);
}

static void double_precision_on_gpu_kernels(void **state)
{
    (void)state;
    train(&convnet, "gpu", LK_F64, 1e-10);
    train(&normalized, "gpu", LK_F64, 1e-10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(single_precision_on_cpu_kernels),
        cmocka_unit_test(double_precision_on_cpu_kernels),
        cmocka_unit_test(single_precision_on_gpu_kernels),
        cmocka_unit_test(double_precision_on_gpu_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

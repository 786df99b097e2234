/* The zoo's models of texts through 20 steps against PyTorch in double (texts.py), with texts
 * of every length. */
#include "texts.h"
#include "graph/replica.h"
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

/* What is predicted: a class, the next tokens, or which of two texts begins with the lesser
 * token. */
enum target { CLASS, NEXT, LESSER };

static const struct network {
    const char *name, *parameters;
    const double *losses;
    enum target target;
} networks[] = {
    {"text-lstm", "width=16 units=20", lstm_losses, CLASS},
    {"text-bilstm", "width=16 units=20", bilstm_losses, CLASS},
    {"text-gru", "width=16 units=20", gru_losses, CLASS},
    {"text-cnn", "width=16 filters=10 dropout=0", cnn_losses, CLASS},
    {"transformer-encoder", "width=16 heads=2 blocks=2 wide=40 dropout=0", encoder_losses,
     CLASS},
    {"gpt-small", "width=16 heads=2 blocks=2 dropout=0", gpt_losses, NEXT},
    {"two-branch-text", "width=16 units=20 hidden=10", branches_losses, LESSER},
};
enum { NETWORKS = sizeof networks / sizeof *networks };

/* texts.py's generator. */
static uint32_t draw(uint32_t *x)
{
    *x = *x * 1664525u + 1013904223u;
    return *x >> 16;
}

static float initial(const struct lk_param *param, double u)
{
    const struct lk_shape *shape = &param->spec.shape;
    if (shape->rank > 1)
        return (float)((u * 2 - 1) *
                       sqrt(3.0 * (double)shape->dim[shape->rank - 1] / (double)param->count));
    return (float)(param->spec.init == LK_INIT_ONES ? 0.5 + u : (u - 0.5) * 0.2);
}

static void set_weights(struct lk_replica *replica, enum lk_dtype real, uint32_t *x)
{
    const struct lk_param *param;
    for (int i = 0; (param = lk_replica_param(replica, i)) != NULL; i++) {
        double *wide = calloc((size_t)param->count, sizeof *wide);
        float *narrow = calloc((size_t)param->count, sizeof *narrow);
        assert_true(wide && narrow);
        for (int64_t e = 0; e < param->count; e++)
            wide[e] = narrow[e] = initial(param, draw(x) / 65536.0);
        ASSERT_OK(
            lk_replica_write_param(replica, i, real == LK_F64 ? (void *)wide : (void *)narrow));
        free(wide);
        free(narrow);
    }
}

/* Behind a text's length its tokens go on, which nobody may see. */
static const int32_t *fill_texts(struct lk_replica *replica, struct lk_model *model, int input,
                                 uint32_t *x)
{
    int32_t *all = lk_replica_slot(replica, lk_model_input(model, input), 0), *tokens = all;
    int32_t *lengths = lk_replica_slot(replica, lk_model_input(model, input + 1), 0);
    for (int i = 0; i < TEXTS_BATCH; i++, tokens += TEXTS_LENGTH) {
        lengths[i] = (int32_t)(draw(x) % TEXTS_LENGTH + 1);
        tokens[0] = (int32_t)(draw(x) % TEXTS_VOCABULARY);
        for (int t = 1; t < TEXTS_LENGTH; t++)
            tokens[t] = (tokens[t - 1] * 3 + (int32_t)(draw(x) % 4)) % TEXTS_VOCABULARY;
    }
    return all;
}

/* Labels of tokens end with a text. */
static void fill_batch(struct lk_replica *replica, struct lk_model *model,
                       const struct lk_node *labels, enum target target, uint32_t *x)
{
    const int32_t *tokens = fill_texts(replica, model, 0, x);
    const int32_t *others = target == LESSER ? fill_texts(replica, model, 2, x) : NULL;
    const int32_t *lengths = lk_replica_slot(replica, lk_model_input(model, 1), 0);
    int32_t *targets = lk_replica_slot(replica, labels, 0);
    for (int i = 0; i < TEXTS_BATCH; i++, tokens += TEXTS_LENGTH) {
        if (target == CLASS)
            targets[i] = tokens[0] % TEXTS_CLASSES;
        if (target == LESSER)
            targets[i] = tokens[0] < others[i * TEXTS_LENGTH];
        for (int t = 0; target == NEXT && t < TEXTS_LENGTH; t++)
            targets[i * TEXTS_LENGTH + t] = t + 1 < lengths[i] ? tokens[t + 1] : -1;
    }
}

static double run_steps(struct lk_stepper *stepper, struct lk_model *model,
                        const struct lk_node *labels, const struct network *network,
                        double tolerance, uint32_t *x)
{
    double worst = 0;
    for (int step = 0; step < TEXTS_STEPS; step++) {
        struct lk_step_result result;
        fill_batch(lk_stepper_replica(stepper), model, labels, network->target, x);
        ASSERT_OK(lk_stepper_enqueue(stepper, 0, TEXTS_BATCH, 0.01, step + 1));
        ASSERT_OK(lk_stepper_wait(stepper, 0, &result));
        const double error = fabs(result.loss / network->losses[step] - 1);
        worst = fmax(worst, error);
        if (!(error <= tolerance))
            fail_msg("%s, step %d: loss %.15g, PyTorch has %.15g", network->name, step + 1,
                     result.loss, network->losses[step]);
    }
    return worst;
}

static void train(const struct network *network, struct lk_device *device, enum lk_dtype real,
                  double tolerance)
{
    const struct lk_model_shape shape = {.classes = TEXTS_CLASSES,
                                         .vocabulary = TEXTS_VOCABULARY,
                                         .length = TEXTS_LENGTH,
                                         .parameters = network->parameters};
    const struct lk_model_shape words = {.vocabulary = TEXTS_VOCABULARY,
                                         .length = TEXTS_LENGTH,
                                         .parameters = network->parameters};
    struct lk_model *model = NULL;
    struct lk_stepper *stepper = NULL;
    struct lk_node *labels, *loss;
    uint32_t x = 1;
    ASSERT_OK(lk_model_open(network->name, network->target == CLASS ? &shape : &words, &model));
    ASSERT_OK(lk_model_add_loss(model, &labels, &loss));
    const struct lk_stepper_config config = {
        .device = device,
        .loss = loss,
        .batch = TEXTS_BATCH,
        .shards = 2,
        .real = real,
        .optimizer = "adam",
        .optimizer_options = "",
    };
    ASSERT_OK(lk_stepper_create(&config, &stepper));
    ASSERT_OK(lk_stepper_build(stepper));
    set_weights(lk_stepper_replica(stepper), real, &x);
    const double worst = run_steps(stepper, model, labels, network, tolerance, &x);
    print_message("# %s %s: largest relative difference %.2g\n", network->name,
                  lk_dtype_name(real), worst);
    lk_stepper_destroy(stepper);
    lk_model_destroy(model);
}

static void train_all(const char *kernel_class, enum lk_dtype real, double tolerance)
{
    struct lk_device *device = NULL;
    setenv("LOCKSTEP_CLASS", kernel_class, 1);
    ASSERT_OK(lk_device_open(NULL, 0, &device));
    if (real == LK_F64 && !lk_device_info(device)->has_fp64) {
        lk_device_close(device);
        SKIP_TEST("the device has no double precision");
    }
    for (int i = 0; i < NETWORKS; i++)
        train(&networks[i], device, real, tolerance);
    lk_device_close(device);
}

static void single_precision_on_cpu_kernels(void **state)
{
    (void)state;
    train_all("cpu", LK_F32, 1e-4);
}

static void double_precision_on_cpu_kernels(void **state)
{
    (void)state;
    train_all("cpu", LK_F64, 1e-10);
}

static void single_precision_on_gpu_kernels(void **state)
{
    (void)state;
    train_all("gpu", LK_F32, 1e-4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(single_precision_on_cpu_kernels),
        cmocka_unit_test(double_precision_on_cpu_kernels),
        cmocka_unit_test(single_precision_on_gpu_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

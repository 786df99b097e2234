/* The parameters after some steps do not depend on which part of a device computes them; all
 * programs of a step are built as one. */
#include "team/stepper/stepper.h"
#include "device/program/kernel.h"
#include "model/checkpoint/checkpoint.h"
#include "ok.h"
#include "skip.h"
#include <lockstep/data.h>
#include <lockstep/model.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { BATCH = 48, SAMPLES = 120, STEPS = 9 };

static const char net[] = "input: [28, 28, 1]\n"
                          "layers:\n"
                          "  - conv2d: {filters: 8, kernel: 3, activation: relu}\n"
                          "  - max_pool: {size: 2}\n"
                          "  - conv2d: {filters: 8, kernel: 3, activation: relu}\n"
                          "  - flatten\n"
                          "  - dropout: {rate: 0.25}\n"
                          "  - dense: {units: 10}\n"
                          "  - softmax\n";

static void take_steps(struct lk_stepper *stepper, struct lk_batches *batches)
{
    for (int step = 1; step <= STEPS; step++) {
        struct lk_step_result result;
        const int64_t count = lk_batches_size(batches, step - 1);
        ASSERT_OK(
            lk_stepper_read(stepper, 0, batches, (struct lk_batch_range){step - 1, 0, count}));
        ASSERT_OK(lk_stepper_enqueue(stepper, 0, count, 0.001, step));
        ASSERT_OK(lk_stepper_wait(stepper, 0, &result));
    }
}

/* Where the compiler takes programs in turn they are one: what does not build together is built
 * one by one, which only takes longer, so that nothing else would tell. */
static void expect_one_program(const struct lk_device *device)
{
    if (!device->is_pocl || getenv("LOCKSTEP_PROGRAM_CACHE"))
        return;
    for (const struct lk_program *p = device->programs; p; p = p->next)
        if (p->program && !p->unit)
            fail_msg("cl/%s was built alone", p->source->name);
}

/* The hash after STEPS steps, the last of each epoch on fewer samples, on the first device of
 * the list; false: it cannot be cut. */
static bool train(const char *list, char hash[LK_SHA256_TEXT], int *units)
{
    struct lk_device *device = NULL;
    struct lk_model *model;
    struct lk_node *labels, *loss;
    struct lk_data *data;
    struct lk_batches *batches;
    struct lk_stepper *stepper;
    const enum lk_status opened = lk_device_open(list, 0, &device);
    if (opened == LK_E_ARGUMENT)
        return false;
    ASSERT_OK(opened);
    *units = lk_device_info(device)->compute_units;
    ASSERT_OK(lk_model_read(net, strlen(net), "net", &model));
    ASSERT_OK(lk_model_add_loss(model, &labels, &loss));
    ASSERT_OK(lk_data_open("synthetic:digits,count=120", LK_DATA_TRAIN, &data));
    assert_int_equal(lk_data_info(data)->count, SAMPLES);
    ASSERT_OK(lk_batches_create(
        data, &(struct lk_batches_options){.size = BATCH, .seed = 5, .shuffle = true},
        &batches));
    const struct lk_feed feed = {
        .rows = {{lk_model_input(model, 0), 0, false}, {labels, 1, false}}, .count = 2};
    const struct lk_stepper_config config = {
        .device = device,
        .loss = loss,
        .feed = &feed,
        .batch = BATCH,
        .shards = 2,
        .real = LK_F32,
        .seed = 5,
        .optimizer = "adam",
        .optimizer_options = "",
    };
    ASSERT_OK(lk_stepper_create(&config, &stepper));
    ASSERT_OK(lk_stepper_build(stepper));
    expect_one_program(device);
    take_steps(stepper, batches);
    ASSERT_OK(lk_parameters_sha256(lk_stepper_replica(stepper), hash));
    lk_stepper_destroy(stepper);
    lk_batches_destroy(batches);
    lk_data_close(data);
    lk_model_destroy(model);
    lk_device_close(device);
    return true;
}

static void same_bits_on_a_part(void **state)
{
    char whole[LK_SHA256_TEXT], part[LK_SHA256_TEXT];
    int all, some;
    (void)state;
    assert_true(train("0", whole, &all));
    if (!train("0/2", part, &some))
        SKIP_TEST("the device has no parts");
    assert_int_equal(some, all / 2);
    assert_string_equal(part, whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits_on_a_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Recurrent layers backward where a sequence is empty: the gradient of the last state is that
 * of the first, to the sign of a zero, whether steps are skipped or walked. */
#include "device/rig.h"

#include "../../scratch.h"
#include "ops/probe/probe.h"

#include <math.h>

enum { UNITS = 4, STATES = 2, SAMPLES = 16 };

/* A buffer of `count` numbers that are all `value`. */
static void fill(const struct lk_buffer *buffer, float value, int64_t count)
{
    float *values = malloc((size_t)count * sizeof *values);
    assert_non_null(values);
    for (int64_t i = 0; i < count; i++)
        values[i] = value;
    assert_ok(lk_buffer_write((struct lk_buffer *)(uintptr_t)buffer, 0,
                              (size_t)count * sizeof *values, values));
    free(values);
}

static void check(struct lk_device *on, const char *op, const char *options, int states)
{
    struct lk_probe probe = {0};
    const struct lk_probe_config config = {.device = on,
                                           .op = op,
                                           .options = options,
                                           .inputs = 3,
                                           .x = {{2, {3, 2}}, {2, {states, UNITS}}, {0}},
                                           .x_dtype = {LK_F32, LK_F32, LK_I32},
                                           .batch = SAMPLES,
                                           .shards = 1,
                                           .training = true,
                                           .dx = true};
    float found[UNITS * SAMPLES];
    assert_ok(lk_probe_open(&probe, &config));
    assert_ok(lk_device_build(on));
    assert_ok(lk_probe_allocate(&probe, 1 << 20, true));
    assert_ok(lk_probe_fill(&probe));
    const struct lk_op_run *run = &probe.runs[0];
    const struct lk_tiling *t = &probe.setup.tiling;
    fill(run->x[2], 0, t->tiles * t->lanes); /* lengths: 0 as a float is 0 as a number */
    fill(run->dy, -0.0f, t->tiles * UNITS * t->lanes);
    assert_ok(lk_probe_forward(&probe, 0));
    assert_ok(lk_probe_backward(&probe, 0));
    const int64_t count = UNITS * (t->lanes < SAMPLES ? t->lanes : SAMPLES);
    assert_ok(lk_probe_read(run->dx[1], LK_F32, 0, count, found));
    for (int64_t i = 0; i < count; i++)
        if (found[i] != 0 || !signbit(found[i]))
            fail_msg("%s %s: number %d is %g, expected -0", op, options, (int)i,
                     (double)found[i]);
    lk_probe_close(&probe);
}

static void test_empty(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct lk_device *on = open_class(classes[i]);
        check(on, "lstm", "units=4", STATES);
        check(on, "gru", "units=4 reset_after=false", 1);
        lk_device_close(on);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_empty)};
    return cmocka_run_group_tests_name("ops/recurrent/signs", tests, scratch_make,
                                       scratch_remove);
}

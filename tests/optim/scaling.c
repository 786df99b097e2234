/* The scale of the loss: what it makes of gradients that halves cannot hold, on both kernel
 * classes, and that it changes no bit of the others. */
#include "device/rig.h"
#include "optim/optimizer.h"

#include <math.h>
#include <string.h>

enum { COUNT = 1000, PADDED = 1024, FIRST = 64, EVERY = 3, SLOTS = 2 };

struct bench {
    struct lk_optimizer *optimizer;
    struct lk_buffer *w, *g;
    float weights[PADDED], state[SLOTS * PADDED], scaling[LK_LOSS_SCALE_NUMBERS];
};

static void bench_open(struct bench *b, struct lk_device *device, double first, int64_t every)
{
    const struct lk_loss_scale how = {.first = first, .every = every};
    float weights[PADDED] = {0};
    memset(b, 0, sizeof *b);
    const struct lk_optimizer_config config = {
        .device = device, .real = LK_F32, .kind = "adam", .options = "lr=0.01", .count = COUNT};
    assert_ok(lk_optimizer_create(&config, &b->optimizer));
    if (first > 0)
        assert_ok(lk_optimizer_scale_loss(b->optimizer, device, &how));
    assert_ok(lk_device_build(device));
    assert_ok(lk_buffer_create(device, sizeof weights, &b->w));
    assert_ok(lk_buffer_create(device, sizeof weights, &b->g));
    for (int i = 0; i < COUNT; i++)
        weights[i] = (float)(i % 13 - 6) / 8;
    assert_ok(lk_buffer_write(b->w, 0, sizeof weights, weights));
}

static void bench_close(struct bench *b)
{
    lk_buffer_destroy(b->w);
    lk_buffer_destroy(b->g);
    lk_optimizer_destroy(b->optimizer);
}

/* A step with gradients times `scale`, of which number `where` is `what`; -1: none. */
static void bench_step(struct bench *b, int64_t step, float scale, int where, float what)
{
    float g[PADDED] = {0};
    for (int i = 0; i < COUNT; i++)
        g[i] = scale * (float)((i * 37 + step * 11) % 101 - 50) / 64;
    if (where >= 0)
        g[where] = what;
    assert_ok(lk_buffer_write(b->g, 0, sizeof g, g));
    assert_ok(lk_optimizer_enqueue(b->optimizer, b->w, b->g, 0.25, 0.01, step));
}

static void bench_read(struct bench *b)
{
    const struct lk_optimizer_info *info = lk_optimizer_info(b->optimizer);
    assert_int_equal(info->stride, PADDED);
    assert_ok(lk_buffer_read(b->w, 0, sizeof b->weights, b->weights));
    assert_ok(lk_buffer_read(info->state, 0, sizeof b->state, b->state));
    if (info->scaling)
        assert_ok(lk_buffer_read(info->scaling, 0, sizeof b->scaling, b->scaling));
}

static void check_scale(struct bench *b, float scale, float skipped)
{
    bench_read(b);
    if (b->scaling[0] != scale || b->scaling[4] != skipped)
        fail_msg("scale %g, %g steps left out; expected %g, %g", b->scaling[0], b->scaling[4],
                 scale, skipped);
}

/* It doubles after EVERY steps and halves at each of `bad`, which change nothing else. */
static void follows_gradients(void **state)
{
    static const float bad[] = {INFINITY, -INFINITY, NAN};
    (void)state;
    for (int class = 0; class < 2; class ++) {
        struct lk_device *device = open_class(classes[class]);
        struct bench b;
        int64_t step = 1;
        bench_open(&b, device, FIRST, EVERY);
        check_scale(&b, FIRST, 0);
        for (int i = 0; i < EVERY; i++, step++) {
            check_scale(&b, FIRST, 0);
            bench_step(&b, step, FIRST, -1, 0);
        }
        check_scale(&b, 2 * FIRST, 0);
        for (int i = 0; i < 3; i++, step++) {
            struct bench before = b;
            bench_read(&before);
            bench_step(&b, step, 2 * FIRST, (int[]){0, 517, COUNT - 1}[i], bad[i]);
            check_scale(&b, ldexpf(FIRST, -i), (float)(i + 1));
            assert_memory_equal(before.weights, b.weights, sizeof b.weights);
            assert_memory_equal(before.state, b.state, sizeof b.state);
        }
        bench_step(&b, step, b.scaling[0], -1, 0);
        check_scale(&b, FIRST / 4, 3);
        bench_close(&b);
        lk_device_close(device);
    }
}

static void stays_as_asked(void **state)
{
    (void)state;
    struct lk_device *device = open_class(classes[0]);
    struct bench b;
    bench_open(&b, device, FIRST, 0);
    for (int64_t step = 1; step < 10; step++)
        bench_step(&b, step, FIRST, step == 5 ? 3 : -1, INFINITY);
    check_scale(&b, FIRST, 1);
    bench_close(&b);
    lk_device_close(device);
}

/* Powers of two leave the same weights and moments. */
static void changes_no_bit(void **state)
{
    (void)state;
    for (int class = 0; class < 2; class ++) {
        struct lk_device *device = open_class(classes[class]);
        struct bench plain, scaled;
        float scale = FIRST;
        bench_open(&plain, device, 0, 0);
        bench_open(&scaled, device, FIRST, EVERY);
        for (int64_t step = 1; step < 20; step++) {
            bench_step(&plain, step, 1, -1, 0);
            bench_step(&scaled, step, scale, -1, 0);
            bench_read(&scaled);
            scale = scaled.scaling[0];
        }
        bench_read(&plain);
        assert_true(scale > FIRST);
        assert_memory_equal(plain.weights, scaled.weights, sizeof plain.weights);
        assert_memory_equal(plain.state, scaled.state, sizeof plain.state);
        bench_close(&plain);
        bench_close(&scaled);
        lk_device_close(device);
    }
}

static void refuses(void **state)
{
    (void)state;
    struct lk_device *device = open_class(classes[0]);
    static const double wrong[] = {0, -1, NAN, 1e9, 96};
    for (int i = 0; i < 5; i++) {
        const struct lk_loss_scale how = {.first = wrong[i], .every = EVERY};
        struct lk_optimizer *optimizer = NULL;
        const struct lk_optimizer_config config = {
            .device = device, .real = LK_F32, .kind = "sgd", .count = COUNT};
        assert_ok(lk_optimizer_create(&config, &optimizer));
        assert_int_equal(lk_optimizer_scale_loss(optimizer, device, &how), LK_E_ARGUMENT);
        lk_optimizer_destroy(optimizer);
        lk_error_clear();
    }
    lk_device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(follows_gradients), cmocka_unit_test(stays_as_asked),
        cmocka_unit_test(changes_no_bit), cmocka_unit_test(refuses)};
    return cmocka_run_group_tests_name("scaling", tests, NULL, NULL);
}

/* Known-answer tests of what is no operation: tiles of batches, sums over shards, optimizers.
 */
#include "base/fail.h"
#include "bench/selftest/known_answers.h"
#include "bench/selftest/selftest.h"
#include "mirror/shards.h"
#include "optim/optimizer.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Whole numbers from -3 to 3. */
static void fill(int which, int64_t count, float *values)
{
    const struct lk_known_answer plain = {.op = ""};
    lk_known_fill(&plain, which, count, values);
}

static enum lk_status put(struct lk_device *device, size_t bytes, const void *from,
                          struct lk_buffer **buffer)
{
    LK_TRY(lk_buffer_create(device, bytes, buffer));
    return from ? lk_buffer_write(*buffer, 0, bytes, from)
                : lk_buffer_enqueue_fill(*buffer, 0xff);
}

static void spoil(const struct lk_tamper *tamper, const char *name, struct lk_buffer *buffer)
{
    if (tamper)
        tamper->change(tamper->context, name, buffer);
}

/* --- batches into tiles ---------------------------------------------------------------- */

enum { C = 3, H = 5, W = 4, PIXELS = C * H * W, BATCH = LK_KNOWN_BATCH };

static enum lk_status load(struct lk_device *device, const struct lk_tiling *tiling,
                           const struct lk_shape *shape, struct lk_buffer *from,
                           struct lk_buffer *y)
{
    struct lk_loader *loader;
    LK_TRY(lk_loader_create(device, tiling, LK_F32, NULL, &loader));
    enum lk_status status;
    LK_TRY_OUT(lk_device_build(device));
    const struct lk_image_batch images = {
        .buffer = from, .samples = BATCH, .scale = 0.5, .shift = -1};
    LK_TRY_OUT(lk_loader_enqueue_images(loader, &images, shape, y));
    LK_TRY_OUT(lk_device_finish(device));
out:
    lk_loader_destroy(loader);
    return status;
}

static enum lk_status test_images(const struct lk_selftest_check *check,
                                  struct lk_device *device, const struct lk_tamper *tamper,
                                  char *detail, size_t bytes)
{
    const struct lk_shape shape = {3, {C, H, W}};
    const struct lk_tiling tiling =
        lk_tiling_make(lk_device_info(device), BATCH, LK_KNOWN_SHARDS);
    uint8_t images[BATCH * PIXELS];
    float found[BATCH * PIXELS];
    double expected[BATCH * PIXELS];
    for (int n = 0; n < BATCH; n++)
        for (int at = 0; at < PIXELS; at++) {
            const int c = at % C, pixel = at / C, byte = (n * 31 + at * 7) % 256;
            images[n * PIXELS + at] = (uint8_t)byte;
            expected[n * PIXELS + c * H * W + pixel] = byte * 0.5 - 1;
        }
    struct lk_buffer *from = NULL, *y = NULL;
    enum lk_status status;
    LK_TRY_OUT(put(device, sizeof images, images, &from));
    LK_TRY_OUT(put(device, lk_tiled_bytes(&tiling, &shape, LK_F32), NULL, &y));
    LK_TRY_OUT(load(device, &tiling, &shape, from, y));
    spoil(tamper, check->name, y);
    LK_TRY_OUT(lk_tiled_read(y, &tiling, &shape, LK_F32, BATCH, found));
    lk_known_compare(found, expected, BATCH * PIXELS, LK_KNOWN_PLACES, detail, bytes);
out:
    lk_buffer_destroy(from);
    lk_buffer_destroy(y);
    return status;
}

/* --- sums over shards ------------------------------------------------------------------ */

enum { SHARDS = 8, COUNT = 96 };

static enum lk_status sum(struct lk_device *device, struct lk_buffer *x, struct lk_buffer *y)
{
    const struct lk_tiling tiling = lk_tiling_make(lk_device_info(device), SHARDS * 32, SHARDS);
    const struct lk_shard_slice slice = {.x = x, .stride = COUNT, .count = COUNT};
    struct lk_shard_sum *sum;
    LK_TRY(lk_shard_sum_create(device, &tiling, LK_F32, false, &sum));
    enum lk_status status;
    LK_TRY_OUT(lk_device_build(device));
    LK_TRY_OUT(lk_shard_sum_enqueue(sum, (struct lk_subtree){0, SHARDS}, &slice,
                                    &(struct lk_shard_target){.y = y}));
    LK_TRY_OUT(lk_device_finish(device));
out:
    lk_shard_sum_destroy(sum);
    return status;
}

static enum lk_status test_shards(const struct lk_selftest_check *check,
                                  struct lk_device *device, const struct lk_tamper *tamper,
                                  char *detail, size_t bytes)
{
    float values[SHARDS * COUNT], found[COUNT];
    double expected[COUNT] = {0};
    fill(LK_DRAW_X, SHARDS * COUNT, values);
    for (int i = 0; i < SHARDS * COUNT; i++)
        expected[i % COUNT] += values[i];
    struct lk_buffer *x = NULL, *y = NULL;
    enum lk_status status;
    LK_TRY_OUT(put(device, sizeof values, values, &x));
    LK_TRY_OUT(put(device, sizeof found, NULL, &y));
    LK_TRY_OUT(sum(device, x, y));
    spoil(tamper, check->name, y);
    LK_TRY_OUT(lk_buffer_read(y, 0, sizeof found, found));
    lk_known_compare(found, expected, COUNT, LK_KNOWN_PLACES, detail, bytes);
out:
    lk_buffer_destroy(x);
    lk_buffer_destroy(y);
    return status;
}

/* --- optimizers ------------------------------------------------------------------------ */

enum { STEPS = 3 };

static const double LR = 0.25, SCALE = 0.5, DECAY = 0.125;

/* Options under which the formulas below hold. */
static const struct formula {
    const char *kind, *options;
} formulas[] = {
    {"sgd", "momentum=0.5"},
    {"adam", "beta_1=0.5 beta_2=0.75"},
    {"adamw", "beta_1=0.5 beta_2=0.75 weight_decay=0.125"},
    {"rmsprop", "rho=0.75"},
};

/* One parameter's value after all steps, in double, by the formulas of src/optim. */
static double expect_weight(const char *kind, double w, double g)
{
    const double epsilon = 1e-7;
    double m = 0, v = 0;
    for (int t = 1; t <= STEPS; t++) {
        if (strcmp(kind, "sgd") == 0) {
            m = 0.5 * m + g;
            w -= LR * m;
        } else if (strcmp(kind, "rmsprop") == 0) {
            v = 0.75 * v + 0.25 * g * g;
            w -= LR * g / (sqrt(v) + epsilon);
        } else {
            m = 0.5 * m + 0.5 * g;
            v = 0.75 * v + 0.25 * g * g;
            if (strcmp(kind, "adamw") == 0)
                w *= 1 - LR * DECAY;
            w -= LR * (m / (1 - pow(0.5, t))) / (sqrt(v / (1 - pow(0.75, t))) + epsilon);
        }
    }
    return w;
}

static enum lk_status update(struct lk_device *device, const char *kind, struct lk_buffer *w,
                             struct lk_buffer *g)
{
    const char *options = NULL;
    for (int i = 0; i < LK_COUNT(formulas); i++)
        if (strcmp(formulas[i].kind, kind) == 0)
            options = formulas[i].options;
    struct lk_optimizer *optimizer;
    const struct lk_optimizer_config config = {
        .device = device, .real = LK_F32, .kind = kind, .options = options, .count = COUNT};
    LK_TRY(lk_optimizer_create(&config, &optimizer));
    enum lk_status status;
    LK_TRY_OUT(lk_device_build(device));
    for (int t = 1; t <= STEPS; t++)
        LK_TRY_OUT(lk_optimizer_enqueue(optimizer, w, g, SCALE, LR, t));
    LK_TRY_OUT(lk_device_finish(device));
out:
    lk_optimizer_destroy(optimizer);
    return status;
}

static enum lk_status test_optimizer(const struct lk_selftest_check *check,
                                     struct lk_device *device, const struct lk_tamper *tamper,
                                     char *detail, size_t bytes)
{
    float weights[COUNT], gradients[COUNT];
    double expected[COUNT];
    fill(LK_DRAW_W, COUNT, weights);
    fill(LK_DRAW_DY, COUNT, gradients);
    for (int i = 0; i < COUNT; i++)
        expected[i] = expect_weight(check->optimizer, weights[i], gradients[i] * SCALE);
    struct lk_buffer *w = NULL, *g = NULL;
    enum lk_status status;
    LK_TRY_OUT(put(device, sizeof weights, weights, &w));
    LK_TRY_OUT(put(device, sizeof gradients, gradients, &g));
    LK_TRY_OUT(update(device, check->optimizer, w, g));
    spoil(tamper, check->name, w);
    LK_TRY_OUT(lk_buffer_read(w, 0, sizeof weights, weights));
    lk_known_compare(weights, expected, COUNT, LK_KNOWN_PLACES, detail, bytes);
out:
    lk_buffer_destroy(w);
    lk_buffer_destroy(g);
    return status;
}

const struct lk_selftest_check lk_selftest_checks[] = {
    {.name = "images into batch tiles", .run = test_images},
    {.name = "sums over shards", .run = test_shards},
    {.name = "sgd", .optimizer = "sgd", .run = test_optimizer},
    {.name = "adam", .optimizer = "adam", .run = test_optimizer},
    {.name = "adamw", .optimizer = "adamw", .run = test_optimizer},
    {.name = "rmsprop", .optimizer = "rmsprop", .run = test_optimizer},
    {0},
};

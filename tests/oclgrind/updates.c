/* Runs the kernels of updates that no training of a network here runs. */
#include "oclgrind/updates.h"

#include "base/fail.h"
#include "optim/optimizer.h"
#include "tensor/elementwise.h"

/* --- parameters that no optimizer moves ------------------------------------------------ */

static enum lk_status run_tracked(struct lk_device *device, filler fill)
{
    struct lk_optimizer *optimizer = NULL;
    struct lk_buffer *w = NULL, *g = NULL;
    enum lk_status status;
    const struct lk_optimizer_config config = {
        .device = device, .real = LK_F32, .kind = "sgd", .count = LK_PAD};
    LK_TRY_OUT(lk_optimizer_create(&config, &optimizer));
    LK_TRY_OUT(lk_optimizer_track(optimizer, device, LK_PAD + 5));
    LK_TRY_OUT(lk_device_build(device));
    LK_TRY_OUT(lk_buffer_create(device, 3 * LK_PAD * sizeof(float), &w));
    LK_TRY_OUT(lk_buffer_create(device, 3 * LK_PAD * sizeof(float), &g));
    LK_TRY_OUT(fill(w, LK_F32));
    LK_TRY_OUT(fill(g, LK_F32));
    LK_TRY_OUT(lk_optimizer_enqueue(optimizer, w, g, 0.5, 0.1, 1));
    LK_TRY_OUT(lk_device_finish(device));
out:
    lk_optimizer_destroy(optimizer);
    lk_buffer_destroy(g);
    lk_buffer_destroy(w);
    return status;
}

/* --- updates with factors, limits and an average of weights ------------------------------ */

static enum lk_status run_adjusted(struct lk_device *device, filler fill)
{
    enum { COUNT = 9 * LK_FACTOR_BLOCK + 5, ROOM = 10 * LK_FACTOR_BLOCK };
    static const struct lk_param_factors factors = {
        .first = LK_FACTOR_BLOCK, .count = 7, .rate = 0.5, .l1 = 0.1, .l2 = 0.1};
    static const char *const kinds[] = {"sgd", "adamw", "rmsprop"};
    struct lk_optimizer *optimizer = NULL;
    struct lk_buffer *w = NULL, *g = NULL;
    enum lk_status status = LK_OK;
    LK_TRY_OUT(lk_buffer_create(device, ROOM * sizeof(float), &w));
    LK_TRY_OUT(lk_buffer_create(device, ROOM * sizeof(float), &g));
    LK_TRY_OUT(fill(w, LK_F32));
    LK_TRY_OUT(fill(g, LK_F32));
    for (int i = 0; i < LK_COUNT(kinds); i++) {
        const struct lk_optimizer_config config = {.device = device,
                                                   .real = LK_F32,
                                                   .kind = kinds[i],
                                                   .count = COUNT,
                                                   .factors = &factors,
                                                   .factor_count = 1,
                                                   .clip = {0.1, 1},
                                                   .ema = 0.9};
        LK_TRY_OUT(lk_optimizer_create(&config, &optimizer));
        LK_TRY_OUT(lk_device_build(device));
        LK_TRY_OUT(lk_optimizer_enqueue(optimizer, w, g, 0.5, 0.1, 1));
        LK_TRY_OUT(lk_optimizer_enqueue_swap(optimizer, w));
        LK_TRY_OUT(lk_optimizer_enqueue_penalties(optimizer, w, true, g, 0));
        LK_TRY_OUT(lk_device_finish(device));
        lk_optimizer_destroy(optimizer);
        optimizer = NULL;
    }
out:
    lk_optimizer_destroy(optimizer);
    lk_buffer_destroy(g);
    lk_buffer_destroy(w);
    return status;
}

/* --- updates of the rows of a table that have a gradient ---------------------------------- */

static enum lk_status run_lazy(struct lk_device *device, filler fill)
{
    enum { COUNT = 5 * LK_FACTOR_BLOCK };
    static const struct lk_param_rows table = {
        .first = LK_FACTOR_BLOCK, .count = 3 * 12, .units = 12};
    static const char *const kinds[] = {"adam", "sgd", "rmsprop"};
    struct lk_optimizer *optimizer = NULL;
    struct lk_buffer *w = NULL, *g = NULL;
    enum lk_status status = LK_OK;
    LK_TRY_OUT(lk_buffer_create(device, COUNT * sizeof(float), &w));
    LK_TRY_OUT(lk_buffer_create(device, COUNT * sizeof(float), &g));
    LK_TRY_OUT(fill(w, LK_F32));
    LK_TRY_OUT(fill(g, LK_F32));
    for (int i = 0; i < LK_COUNT(kinds); i++) {
        const struct lk_optimizer_config config = {.device = device,
                                                   .real = LK_F32,
                                                   .kind = kinds[i],
                                                   .options = "lazy=true",
                                                   .count = COUNT,
                                                   .rows = &table,
                                                   .row_count = 1};
        LK_TRY_OUT(lk_optimizer_create(&config, &optimizer));
        LK_TRY_OUT(lk_device_build(device));
        LK_TRY_OUT(lk_optimizer_enqueue(optimizer, w, g, 0.5, 0.1, 1));
        LK_TRY_OUT(lk_device_finish(device));
        lk_optimizer_destroy(optimizer);
        optimizer = NULL;
    }
out:
    lk_optimizer_destroy(optimizer);
    lk_buffer_destroy(g);
    lk_buffer_destroy(w);
    return status;
}

enum lk_status run_updates(struct lk_device *device, filler fill)
{
    LK_TRY(run_tracked(device, fill));
    LK_TRY(run_adjusted(device, fill));
    return run_lazy(device, fill);
}

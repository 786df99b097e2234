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

/* --- updates of one kind of optimizer ----------------------------------------------------- */

static enum lk_status run_kind(const struct lk_optimizer_config *config, struct lk_buffer *w,
                               struct lk_buffer *g)
{
    struct lk_optimizer *optimizer = NULL;
    enum lk_status status;
    LK_TRY_OUT(lk_optimizer_create(config, &optimizer));
    LK_TRY_OUT(lk_device_build(config->device));
    LK_TRY_OUT(lk_optimizer_enqueue(optimizer, w, g, 0.5, 0.1, 1));
    if (config->ema > 0)
        LK_TRY_OUT(lk_optimizer_enqueue_swap(optimizer, w));
    if (config->factor_count > 0)
        LK_TRY_OUT(lk_optimizer_enqueue_penalties(optimizer, w, true, g, 0));
    LK_TRY_OUT(lk_device_finish(config->device));
out:
    lk_optimizer_destroy(optimizer);
    return status;
}

static enum lk_status run_kinds(struct lk_optimizer_config *config, const char *const kinds[3],
                                int64_t room, filler fill)
{
    struct lk_buffer *w = NULL, *g = NULL;
    enum lk_status status;
    LK_TRY_OUT(lk_buffer_create(config->device, (size_t)room * sizeof(float), &w));
    LK_TRY_OUT(lk_buffer_create(config->device, (size_t)room * sizeof(float), &g));
    LK_TRY_OUT(fill(w, LK_F32));
    LK_TRY_OUT(fill(g, LK_F32));
    for (int i = 0; i < 3; i++) {
        config->kind = kinds[i];
        LK_TRY_OUT(run_kind(config, w, g));
    }
out:
    lk_buffer_destroy(g);
    lk_buffer_destroy(w);
    return status;
}

/* With factors, limits and an average of weights. */
static enum lk_status run_adjusted(struct lk_device *device, filler fill)
{
    static const struct lk_param_factors factors = {
        .first = LK_FACTOR_BLOCK, .count = 7, .rate = 0.5, .l1 = 0.1, .l2 = 0.1};
    static const char *const kinds[] = {"sgd", "adamw", "rmsprop"};
    struct lk_optimizer_config config = {.device = device,
                                         .real = LK_F32,
                                         .count = 9 * LK_FACTOR_BLOCK + 5,
                                         .factors = &factors,
                                         .factor_count = 1,
                                         .clip = {0.1, 1},
                                         .ema = 0.9};
    return run_kinds(&config, kinds, 10 * LK_FACTOR_BLOCK, fill);
}

/* Of the rows of a table that have a gradient. */
static enum lk_status run_lazy(struct lk_device *device, filler fill)
{
    static const struct lk_param_rows table = {
        .first = LK_FACTOR_BLOCK, .count = 3 * 12, .units = 12};
    static const char *const kinds[] = {"adam", "sgd", "rmsprop"};
    struct lk_optimizer_config config = {.device = device,
                                         .real = LK_F32,
                                         .options = "lazy=true",
                                         .count = 5 * LK_FACTOR_BLOCK,
                                         .rows = &table,
                                         .row_count = 1};
    return run_kinds(&config, kinds, config.count, fill);
}

enum lk_status run_updates(struct lk_device *device, filler fill)
{
    LK_TRY(run_tracked(device, fill));
    LK_TRY(run_adjusted(device, fill));
    return run_lazy(device, fill);
}

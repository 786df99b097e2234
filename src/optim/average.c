/* Launches the kernels that average weights over steps. */
#include "optim/average.h"

#include "base/fail.h"
#include <stdlib.h>

struct lk_average {
    struct lk_elementwise elementwise;
    const struct lk_optimizer_info *info; /* borrowed */
    struct lk_kernel *update, *swap;
    double decay;
};

static enum lk_status create(struct lk_average *average,
                             const struct lk_optimizer_config *config)
{
    char options[128];
    struct lk_kernel_spec spec = {.source = "optim/average",
                                  .name = "average_update",
                                  .options = options,
                                  .real_bytes = config->real == LK_F64 ? 8 : 4};
    lk_elementwise_define(&average->elementwise, options, sizeof options);
    LK_TRY(lk_kernel_create(config->device, &spec, &average->update));
    spec.name = "average_swap";
    return lk_kernel_create(config->device, &spec, &average->swap);
}

enum lk_status lk_average_create(const struct lk_optimizer_config *config,
                                 const struct lk_optimizer_info *info,
                                 struct lk_average **average)
{
    if (!(config->ema >= 0 && config->ema < 1))
        return lk_fail(LK_E_ARGUMENT, "an average of weights that keeps %g: expected 0 to 1",
                       config->ema);
    struct lk_average *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("an average of weights", sizeof *made);
    *made =
        (struct lk_average){.elementwise = lk_elementwise_make(lk_device_info(config->device)),
                            .info = info,
                            .decay = config->ema};
    const enum lk_status status = create(made, config);
    if (status != LK_OK) {
        lk_average_destroy(made);
        return status;
    }
    *average = made;
    return LK_OK;
}

void lk_average_destroy(struct lk_average *average)
{
    if (!average)
        return;
    lk_kernel_destroy(average->update);
    lk_kernel_destroy(average->swap);
    free(average);
}

enum lk_status lk_average_enqueue(struct lk_average *average, const struct lk_buffer *w,
                                  int64_t first, int64_t count, int64_t step)
{
    const struct lk_elementwise *e = &average->elementwise;
    const struct lk_optimizer_info *info = average->info;
    const double keep = step == 1 ? 0 : average->decay;
    return LK_ENQUEUE(
        average->update, lk_elementwise_grid(e, count), LK_BUF(w), LK_BUF(info->state),
        LK_INT(info->arrays - 1), LK_INT(info->stride / e->vector), LK_INT(first / e->vector),
        LK_INT(lk_elementwise_vectors(e, count)), LK_REAL(keep), LK_REAL(1 - keep));
}

enum lk_status lk_average_enqueue_swap(struct lk_average *average, struct lk_buffer *w)
{
    const struct lk_elementwise *e = &average->elementwise;
    const struct lk_optimizer_info *info = average->info;
    return LK_ENQUEUE(average->swap, lk_elementwise_grid(e, info->count), LK_BUF(w),
                      LK_BUF(info->state), LK_INT(info->arrays - 1),
                      LK_INT(info->stride / e->vector),
                      LK_INT(lk_elementwise_vectors(e, info->count)));
}

/* Launches the kernels that check gradients for overflow and move the scale of the loss. */
#include "optim/scaling.h"

#include "base/fail.h"
#include <math.h>
#include <stdlib.h>

/* Bounds of the scale: a training that would need more or less has another fault. */
static const double least_scale = 0x1p-14, most_scale = 0x1p24;

struct lk_scaling {
    struct lk_loss_scale how;
    struct lk_elementwise elementwise;
    struct lk_buffer *state; /* borrowed */
    struct lk_kernel *check, *decide;
};

static enum lk_status create(struct lk_device *device, struct lk_scaling *scaling)
{
    char options[128];
    lk_elementwise_define(&scaling->elementwise, options, sizeof options);
    struct lk_kernel_spec spec = {.source = "optim/scaling",
                                  .name = "scaling_check",
                                  .options = options,
                                  .real_bytes = sizeof(float)};
    const float state[LK_LOSS_SCALE_NUMBERS] = {(float)scaling->how.first};
    LK_TRY(lk_kernel_create(device, &spec, &scaling->check));
    spec.name = "scaling_decide";
    LK_TRY(lk_kernel_create(device, &spec, &scaling->decide));
    return lk_buffer_write(scaling->state, 0, sizeof state, state);
}

enum lk_status lk_scaling_create(struct lk_device *device, const struct lk_loss_scale *how,
                                 struct lk_buffer *state, struct lk_scaling **scaling)
{
    int exponent;
    if (!(how->first >= least_scale && how->first <= most_scale) ||
        frexp(how->first, &exponent) != 0.5)
        return lk_fail(LK_E_ARGUMENT, "loss scale %g: expected a power of two from %g to %g",
                       how->first, least_scale, most_scale);
    struct lk_scaling *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("the scale of the loss", sizeof *made);
    *made = (struct lk_scaling){.how = *how,
                                .elementwise = lk_elementwise_make(lk_device_info(device)),
                                .state = state};
    const enum lk_status status = create(device, made);
    if (status != LK_OK) {
        lk_scaling_destroy(made);
        return status;
    }
    *scaling = made;
    return LK_OK;
}

void lk_scaling_destroy(struct lk_scaling *scaling)
{
    if (!scaling)
        return;
    lk_kernel_destroy(scaling->check);
    lk_kernel_destroy(scaling->decide);
    free(scaling);
}

enum lk_status lk_scaling_enqueue_check(struct lk_scaling *scaling, const struct lk_buffer *g,
                                        int64_t count)
{
    const struct lk_elementwise *e = &scaling->elementwise;
    return LK_ENQUEUE(scaling->check, lk_elementwise_grid(e, count), LK_BUF(g),
                      LK_INT(lk_elementwise_vectors(e, count)), LK_BUF(scaling->state));
}

enum lk_status lk_scaling_enqueue_decision(struct lk_scaling *scaling)
{
    const struct lk_grid one = {{1, 1, 1}, 1};
    return LK_ENQUEUE(scaling->decide, one, LK_BUF(scaling->state), LK_INT(scaling->how.every),
                      LK_REAL(least_scale), LK_REAL(most_scale));
}

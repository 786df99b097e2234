/* Checks the inputs of operations on time steps, and finds their length. */
#include "ops/sequence/steps.h"

#include "base/fail.h"

enum lk_status lk_steps_check_length(const struct lk_op_shapes *shapes, const char *name)
{
    if (shapes->inputs < 2 || (shapes->x_dtype[1] == LK_I32 && shapes->x[1].rank == 0))
        return LK_OK;
    return lk_fail(LK_E_SHAPE, "%s: its second input is the length of a sequence, int32 []",
                   name);
}

enum lk_status lk_steps_check(const struct lk_op_shapes *shapes, const char *name)
{
    char text[96];
    lk_shape_print_hwc(&shapes->x[0], text, sizeof text);
    if (shapes->x_dtype[0] != LK_F32 || shapes->x[0].rank != 2)
        return lk_fail(LK_E_SHAPE, "%s: a sequence [t, c] expected, found %s%s", name,
                       shapes->x_dtype[0] == LK_F32 ? "" : "whole numbers ", text);
    return lk_steps_check_length(shapes, name);
}

const struct lk_buffer *lk_steps_length(const struct lk_op_setup *setup,
                                        const struct lk_op_run *run)
{
    return setup->shapes.inputs > 1 ? run->x[1] : NULL;
}

const char *const lk_steps_paddings[] = {"valid", "same", "causal", NULL};

/* same: as much padding as the last of ceil(steps / stride) windows needs, the odd step behind.
 */
enum lk_status lk_steps_place(struct lk_step_windows *w, int64_t steps,
                              enum lk_steps_padding padding, const char *name)
{
    const int64_t reach = (w->size - 1) * w->gap + 1;
    const int64_t last = (steps - 1) / w->stride * w->stride;
    const int64_t missing = last + reach > steps ? last + reach - steps : 0;
    w->steps = steps;
    w->before = padding == LK_STEPS_CAUSAL ? reach - 1
                : padding == LK_STEPS_SAME ? missing / 2
                                           : 0;
    w->lack = padding == LK_STEPS_VALID ? reach - 1 : 0;
    if (w->lack >= steps)
        return lk_fail(
            LK_E_SHAPE, "%s: a window of %lld time steps%s does not fit a sequence of %lld",
            name, (long long)reach, w->gap > 1 ? " (dilated)" : "", (long long)steps);
    w->count = (steps - w->lack - 1) / w->stride + 1;
    return LK_OK;
}

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

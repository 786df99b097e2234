/* Views: the oracle is the identity, and refusals name what does not fit. */
#include "driver.h"

#include <string.h>

static void forward(const struct op_problem *p, const double *const x[],
                    const double *const w[], double *y)
{
    (void)w;
    memcpy(y, x[0], (size_t)(p->samples * lk_shape_count(&p->shapes->y)) * sizeof *y);
}

static void backward(const struct op_problem *p, const double *const x[],
                     const double *const w[], const double *dy, double *const dx[],
                     double *const dw[])
{
    (void)x, (void)dw;
    forward(p, &dy, w, dx[0]);
}

static const struct op_oracle oracle = {forward, backward, NULL};

static const struct op_case cases[] = {
    {.op = "flatten", .x = {OP_SHAPE(3, 4, 5)}, .y = OP_SHAPE(60), .samples = 3},
    {.op = "flatten", .x = {OP_SHAPE(7)}, .y = OP_SHAPE(7), .samples = 3},
    {.op = "reshape",
     .options = "shape=[6, 10]",
     .x = {OP_SHAPE(3, 4, 5)},
     .y = OP_SHAPE(6, 10),
     .samples = 3},
    {.op = "reshape",
     .options = "shape=[3,-1,2]",
     .x = {OP_SHAPE(60)},
     .y = OP_SHAPE(3, 10, 2),
     .samples = 3},
    {.op = "reshape",
     .options = "shape=-1",
     .x = {OP_SHAPE(2, 3)},
     .y = OP_SHAPE(6),
     .samples = 3},
};

static const struct op_refusal refusals[] = {
    {.op = "reshape",
     .options = "shape=[7, 10]",
     .x = {OP_SHAPE(3, 4, 5)},
     .status = LK_E_SHAPE,
     .said = "[4, 5, 3] has 60 elements, which [7, 10] cannot have"},
    {.op = "reshape",
     .options = "shape=[7, -1]",
     .x = {OP_SHAPE(3, 4, 5)},
     .status = LK_E_SHAPE,
     .said = "cannot have"},
    {.op = "reshape",
     .options = "shape=[61, -1]",
     .x = {OP_SHAPE(3, 4, 5)},
     .status = LK_E_SHAPE,
     .said = "cannot have"},
    {.op = "reshape",
     .options = "shape=[-1, -1]",
     .x = {OP_SHAPE(4)},
     .status = LK_E_ARGUMENT,
     .said = "one of which may be -1"},
    {.op = "reshape",
     .options = "shape=[0, 4]",
     .x = {OP_SHAPE(4)},
     .status = LK_E_ARGUMENT,
     .said = "1 to 4 lengths"},
    {.op = "reshape",
     .options = "shape=[4, x]",
     .x = {OP_SHAPE(4)},
     .status = LK_E_ARGUMENT,
     .said = "1 to 4 lengths"},
    {.op = "reshape",
     .options = "shape=[4611686018427387904, 4, -1]",
     .x = {OP_SHAPE(4)},
     .status = LK_E_SHAPE,
     .said = "cannot have"},
    {.op = "reshape",
     .options = "shape=[]",
     .x = {OP_SHAPE(4)},
     .status = LK_E_ARGUMENT,
     .said = "is not a shape"},
    {.op = "reshape",
     .x = {OP_SHAPE(4)},
     .status = LK_E_ARGUMENT,
     .said = "'shape' is missing"},
    {.op = "flatten",
     .x = {{0}},
     .labels = {true},
     .status = LK_E_SHAPE,
     .said = "flatten: real numbers expected, found labels"},
};

int main(void)
{
    static const struct op_suite suite = OP_SUITE(&oracle, cases, refusals);
    return op_test(&suite);
}

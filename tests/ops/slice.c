/* Slice and crop against copies, number by number. */
#include "driver.h"

#include <stdio.h>

/* As the options struct of src/ops/arrange/slice.c. */
struct options {
    int64_t range[4][2]; /* c, h, w, t */
    char cropping[32];
};

/* Where the part begins in x, axis by axis, seen as an image. */
static void find_start(const struct op_problem *p, int64_t start[3])
{
    const struct options *o = p->options;
    const struct lk_shape *x = &p->shapes->x[0];
    static const int axes[4][3] = {{0}, {0}, {3, 0}, {0, 1, 2}};
    long long n[4] = {0};
    const int count =
        sscanf(o->cropping, "[%lld, %lld, %lld, %lld]", &n[0], &n[1], &n[2], &n[3]);
    const int all = sscanf(o->cropping, "%lld", &n[0]) == 1;
    for (int i = 0; i < x->rank; i++) {
        const int64_t first = o->range[axes[x->rank][i]][0];
        start[i] = first < 0 ? first + x->dim[i] : first;
    }
    if (count == 4 || all) {
        start[0] = 0;
        start[1] = n[0];
        start[2] = all ? n[0] : n[2];
    }
}

/* Number `at` of y, of all samples, as a number of x. */
static int64_t place_of(const struct op_problem *p, const int64_t start[3], int64_t at)
{
    const struct lk_shape *x = &p->shapes->x[0], *y = &p->shapes->y;
    int64_t place[4], to = 0;
    for (int i = y->rank - 1; i >= 0; i--) {
        place[i] = at % y->dim[i] + start[i];
        at /= y->dim[i];
    }
    for (int i = 0; i < y->rank; i++)
        to = to * x->dim[i] + place[i];
    return at * lk_shape_count(x) + to;
}

static void forward(const struct op_problem *p, const double *const x[],
                    const double *const w[], double *y)
{
    (void)w;
    int64_t start[3];
    find_start(p, start);
    for (int64_t i = 0; i < p->samples * lk_shape_count(&p->shapes->y); i++)
        y[i] = x[0][place_of(p, start, i)];
}

static void backward(const struct op_problem *p, const double *const x[],
                     const double *const w[], const double *dy, double *const dx[],
                     double *const dw[])
{
    (void)x, (void)w, (void)dw;
    int64_t start[3];
    find_start(p, start);
    for (int64_t i = 0; i < p->samples * lk_shape_count(&p->shapes->y); i++)
        dx[0][place_of(p, start, i)] = dy[i];
}

static const struct op_oracle oracle = {forward, backward, NULL};

static const struct op_case cases[] = {
    {.op = "slice",
     .options = "c=[1,3] h=[-4,-1] w=[2,0]",
     .x = {OP_SHAPE(4, 6, 7)},
     .y = OP_SHAPE(2, 3, 5),
     .samples = 18,
     .thorough = true,
     .sizes = true},
    {.op = "slice",
     .options = "c=[2,4]",
     .x = {OP_SHAPE(5, 20, 15)},
     .y = OP_SHAPE(2, 20, 15),
     .samples = 19,
     .shards = 2,
     .integers = true},
    {.op = "slice",
     .options = "h=[1,2]",
     .x = {OP_SHAPE(3, 3, 4)},
     .y = OP_SHAPE(3, 1, 4),
     .samples = 17},
    {.op = "slice",
     .options = "c=[-3,0]",
     .x = {OP_SHAPE(700)},
     .y = OP_SHAPE(3),
     .samples = 9},
    {.op = "slice",
     .options = "t=[1,-1] c=[0,2]",
     .x = {OP_SHAPE(5, 3)},
     .y = OP_SHAPE(3, 2),
     .samples = 9},
    {.op = "slice", .x = {OP_SHAPE(2, 3)}, .y = OP_SHAPE(2, 3), .samples = 5},
    {.op = "crop",
     .options = "cropping=[1, 2, 0, 3]",
     .x = {OP_SHAPE(2, 6, 7)},
     .y = OP_SHAPE(2, 3, 4),
     .samples = 18,
     .thorough = true},
    {.op = "crop",
     .options = "cropping=2",
     .x = {OP_SHAPE(3, 5, 6)},
     .y = OP_SHAPE(3, 1, 2),
     .samples = 9},
};

static const struct op_refusal refusals[] = {
    {.op = "slice",
     .options = "c=[3,3]",
     .x = {OP_SHAPE(8, 4, 5)},
     .status = LK_E_SHAPE,
     .said = "slice: [4, 5, 8] has 8 along c, of which [3, 3] is no range"},
    {.op = "slice",
     .options = "c=[0,9]",
     .x = {OP_SHAPE(8)},
     .status = LK_E_SHAPE,
     .said = "[0, 9] is no range"},
    {.op = "slice",
     .options = "t=[-9,0]",
     .x = {OP_SHAPE(8, 2)},
     .status = LK_E_SHAPE,
     .said = "[8, 2] has 8 along t, of which [-9, 0] is no range"},
    {.op = "slice",
     .options = "c=[0,-9223372036854775808]",
     .x = {OP_SHAPE(8)},
     .status = LK_E_SHAPE,
     .said = "is no range"},
    {.op = "slice",
     .options = "h=[0,2]",
     .x = {OP_SHAPE(8, 2)},
     .status = LK_E_SHAPE,
     .said = "slice: [8, 2] has no axis h"},
    {.op = "slice",
     .x = {{0}},
     .labels = {true},
     .status = LK_E_SHAPE,
     .said = "slice: real numbers expected, found labels"},
    {.op = "crop",
     .options = "cropping=2,3",
     .x = {OP_SHAPE(3, 5, 6)},
     .status = LK_E_SHAPE,
     .said = "crop: cropping '2,3' leaves nothing of [5, 6, 3]"},
    {.op = "crop",
     .options = "cropping=-1",
     .x = {OP_SHAPE(3, 5, 6)},
     .status = LK_E_ARGUMENT,
     .said = "crop: '-1' is not 1, 2 or 4 numbers of pixels"},
    {.op = "crop",
     .options = "cropping=1",
     .x = {OP_SHAPE(3, 5)},
     .status = LK_E_SHAPE,
     .said = "crop: an image [h, w, c] expected, found [3, 5]"},
    {.op = "crop",
     .x = {OP_SHAPE(3, 5, 5)},
     .status = LK_E_ARGUMENT,
     .said = "'cropping' is missing"},
};

int main(void)
{
    static const struct op_suite suite = OP_SUITE(&oracle, cases, refusals);
    return op_test(&suite);
}

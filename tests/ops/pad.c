/* Padding against each number's place, with mirrored ones found by walking to and fro. */
#include "driver.h"

#include <stdio.h>

/* As the options struct of src/ops/arrange/pad.c. */
struct options {
    char padding[32];
    int64_t channels[2];
    int mode;
    double value;
};

/* The numbers before x in y, for channels, rows and columns. */
static void find_start(const struct options *o, int64_t start[3])
{
    long long n[4] = {0};
    const int count =
        sscanf(o->padding, "[%lld , %lld , %lld , %lld]", &n[0], &n[1], &n[2], &n[3]);
    if (count < 1)
        n[1] = sscanf(o->padding, "%lld,%lld", &n[0], &n[1]) == 2 ? n[1] : n[0];
    start[0] = o->channels[0];
    start[1] = n[0];
    start[2] = count == 4 ? n[2] : n[1];
}

/* Walks `place` steps from 0, turning round at both ends. */
static int64_t reflect(int64_t place, int64_t count)
{
    int64_t at = 0, step = place < 0 ? -1 : 1;
    for (int64_t i = 0; i < (place < 0 ? -place : place); i++) {
        if (at + step < 0 || at + step >= count)
            step = -step;
        at += step;
    }
    return at;
}

/* What number `at` of y, of all samples, is of x; -1: the value. */
static int64_t place_of(const struct op_problem *p, int64_t at)
{
    const struct options *o = p->options;
    const struct lk_shape *x = &p->shapes->x[0], *y = &p->shapes->y;
    int64_t start[3], place[3], to = 0;
    bool is_there = true;
    find_start(o, start);
    for (int i = 2; i >= 0; i--) {
        place[i] = at % y->dim[i] - start[i];
        at /= y->dim[i];
        if (o->mode)
            place[i] = reflect(place[i], x->dim[i]);
        is_there &= place[i] >= 0 && place[i] < x->dim[i];
    }
    for (int i = 0; i < 3; i++)
        to = to * x->dim[i] + place[i];
    return is_there ? at * lk_shape_count(x) + to : -1;
}

static void forward(const struct op_problem *p, const double *const x[],
                    const double *const w[], double *y)
{
    const struct options *o = p->options;
    (void)w;
    for (int64_t i = 0; i < p->samples * lk_shape_count(&p->shapes->y); i++) {
        const int64_t from = place_of(p, i);
        y[i] = from < 0 ? o->value : x[0][from];
    }
}

static void backward(const struct op_problem *p, const double *const x[],
                     const double *const w[], const double *dy, double *const dx[],
                     double *const dw[])
{
    (void)x, (void)w, (void)dw;
    for (int64_t i = 0; i < p->samples * lk_shape_count(&p->shapes->y); i++) {
        const int64_t from = place_of(p, i);
        if (from >= 0)
            dx[0][from] += dy[i];
    }
}

static const struct op_oracle oracle = {forward, backward, NULL};

static const struct op_case cases[] = {
    {.op = "pad",
     .options = "padding=[1, 2, 0, 3]",
     .x = {OP_SHAPE(2, 3, 4)},
     .y = OP_SHAPE(2, 6, 7),
     .samples = 18,
     .thorough = true,
     .sizes = true},
    {.op = "pad",
     .options = "padding=2,1 channels=[1,2] value=0.75",
     .x = {OP_SHAPE(3, 4, 5)},
     .y = OP_SHAPE(6, 8, 7),
     .samples = 19,
     .shards = 2},
    {.op = "pad",
     .options = "channels=[0,3]",
     .x = {OP_SHAPE(2, 20, 16)},
     .y = OP_SHAPE(5, 20, 16),
     .samples = 17,
     .integers = true},
    {.op = "pad",
     .options = "padding=[2, 1, 3, 4] mode=reflect",
     .x = {OP_SHAPE(2, 4, 5)},
     .y = OP_SHAPE(2, 7, 12),
     .samples = 18,
     .thorough = true},
    {.op = "pad",
     .options = "padding=1 mode=reflect",
     .x = {OP_SHAPE(3, 2, 3)},
     .y = OP_SHAPE(3, 4, 5),
     .samples = 9,
     .integers = true},
    {.op = "pad",
     .options = "padding=0,2 mode=reflect",
     .x = {OP_SHAPE(1, 1, 3)},
     .y = OP_SHAPE(1, 1, 7),
     .samples = 9},
};

static const struct op_refusal refusals[] = {
    {.op = "pad",
     .options = "padding=2,3 mode=reflect",
     .x = {OP_SHAPE(3, 4, 3)},
     .status = LK_E_SHAPE,
     .said = "pad: [4, 3, 3] is too small to be mirrored in a border of 3"},
    {.op = "pad",
     .options = "padding=1 channels=1 mode=reflect",
     .x = {OP_SHAPE(3, 4, 4)},
     .status = LK_E_ARGUMENT,
     .said = "pad: channels cannot be mirrored"},
    {.op = "pad",
     .options = "padding=same",
     .x = {OP_SHAPE(3, 4, 4)},
     .status = LK_E_ARGUMENT,
     .said = "pad: 'same' is not 1, 2 or 4 numbers of pixels"},
    {.op = "pad",
     .options = "channels=[-1,0]",
     .x = {OP_SHAPE(3, 4, 4)},
     .status = LK_E_ARGUMENT,
     .said = "not in 0..1048576"},
    {.op = "pad",
     .options = "mode=edge",
     .x = {OP_SHAPE(3, 4, 4)},
     .status = LK_E_ARGUMENT,
     .said = "'edge' is none of constant, reflect"},
    {.op = "pad",
     .options = "padding=1000000 channels=1000000",
     .x = {OP_SHAPE(3, 2000000, 2000000)},
     .status = LK_E_SHAPE,
     .said = "has too many elements"},
    {.op = "pad",
     .x = {OP_SHAPE(3)},
     .status = LK_E_SHAPE,
     .said = "pad: an image [h, w, c] expected, found [3]"},
};

int main(void)
{
    static const struct op_suite suite = OP_SUITE(&oracle, cases, refusals);
    return op_test(&suite);
}

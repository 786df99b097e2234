/* Elements by a table of places against a loop over it. */
#include "../driver.h"
#include <math.h>

struct options {
    int64_t count;
    double fill;
};

static int64_t place(const struct op_problem *p, const double *const w[], int64_t i)
{
    const int64_t j = (int64_t)nearbyint(w[0][i]);
    return j >= 0 && j < lk_shape_count(&p->shapes->x[0]) ? j : -1;
}

static void forward(const struct op_problem *p, const double *const x[],
                    const double *const w[], double *y)
{
    const struct options *o = p->options;
    const int64_t inputs = lk_shape_count(&p->shapes->x[0]);
    for (int64_t n = 0; n < p->samples; n++)
        for (int64_t i = 0; i < o->count; i++) {
            const int64_t j = place(p, w, i);
            y[n * o->count + i] = j < 0 ? o->fill : x[0][n * inputs + j];
        }
}

static void backward(const struct op_problem *p, const double *const x[],
                     const double *const w[], const double *dy, double *const dx[],
                     double *const dw[])
{
    const struct options *o = p->options;
    const int64_t inputs = lk_shape_count(&p->shapes->x[0]);
    (void)x, (void)dw;
    for (int64_t n = 0; n < p->samples; n++)
        for (int64_t i = 0; i < o->count; i++)
            if (place(p, w, i) >= 0)
                dx[0][n * inputs + place(p, w, i)] += dy[n * o->count + i];
}

/* Places in no order, some several times, some outside on either side. */
static void arrange(const struct lk_op_shapes *shapes, int64_t samples, double *const x[],
                    double *const w[])
{
    const int64_t inputs = lk_shape_count(&shapes->x[0]);
    (void)samples, (void)x;
    for (int64_t i = 0; i < shapes->y.dim[0]; i++)
        w[0][i] = (double)((i * 7 + 3) % (inputs + 3) - 1);
}

static const struct op_oracle oracle = {forward, backward, arrange};

/* clang-format off */
static const struct op_case cases[] = {
    {.op = "pick", .options = "count=9", .x = {OP_SHAPE(2, 3)}, .samples = 37, .shards = 2,
     .y = OP_SHAPE(9), .integers = true, .thorough = true, .sizes = true},
    {.op = "pick", .options = "count=131 fill=-2.5", .x = {OP_SHAPE(67)}, .samples = 19},
    {.op = "pick", .options = "count=1", .x = {OP_SHAPE(3, 4, 5)}, .samples = 5},
    {.op = "pick", .options = "count=5", .x = {OP_SHAPE(70)}, .samples = 5, .frozen = true},
    {.op = "pick", .options = "count=70", .x = {OP_SHAPE(5)}, .samples = 5, .inference = true},
};

static const struct op_refusal refusals[] = {
    {.op = "pick", .options = "", .x = {OP_SHAPE(4)}, .status = LK_E_ARGUMENT, .said = "count"},
    {.op = "pick", .options = "count=0", .x = {OP_SHAPE(4)}, .status = LK_E_ARGUMENT,
     .said = "count"},
    {.op = "pick", .options = "count=4", .x = {OP_SHAPE(4)}, .labels = {true},
     .status = LK_E_SHAPE, .said = "labels"},
    {.op = "pick", .options = "count=4", .x = {OP_SHAPE(4097, 4096)}, .status = LK_E_SHAPE,
     .said = "at most"},
};
/* clang-format on */

int main(void)
{
    const struct op_suite suite = OP_SUITE(&oracle, cases, refusals);
    return op_test(&suite);
}

/* Softmax and cross-entropy: stable for large numbers, labels right and wrong, dead lanes. */
#include "driver.h"
#include <math.h>

/* Classes and rows: samples, times the steps of a sequence. */
static int64_t classes_of(const struct op_problem *p)
{
    return p->shapes->x[0].dim[p->shapes->x[0].rank - 1];
}

static int64_t rows_of(const struct op_problem *p)
{
    return p->samples * lk_shape_count(&p->shapes->x[0]) / classes_of(p);
}

/* As the options struct of src/ops/softmax.c. */
static double weight_option(const struct op_problem *p)
{
    const struct {
        int loss;
        double weight;
    } *o = p->options;
    return o->weight;
}

static int64_t first_largest(const double *x, int64_t count)
{
    int64_t at = 0;
    for (int64_t k = 1; k < count; k++)
        if (x[k] > x[at])
            at = k;
    return at;
}

/* The sum of e^(x - m), m the largest x, which keeps every digit. */
static double sum_exp(const double *x, int64_t count, double *most)
{
    double sum = 0;
    *most = x[first_largest(x, count)];
    for (int64_t k = 0; k < count; k++)
        sum += exp(x[k] - *most);
    return sum;
}

static void softmax_of(const double *x, int64_t count, double *y)
{
    double most;
    const double sum = sum_exp(x, count, &most);
    for (int64_t k = 0; k < count; k++)
        y[k] = exp(x[k] - most) / sum;
}

/* --- softmax --------------------------------------------------------------------------- */

enum { MOST_CLASSES = 80 }; /* of images in the cases below */

/* The numbers of pixel i of all images, [n][k][h][w], or back from `row`. */
static void copy_pixel(const struct op_problem *p, int64_t i, double *image, double *row,
                       bool is_back)
{
    const struct lk_shape *x = &p->shapes->x[0];
    const int64_t pixels = x->dim[1] * x->dim[2], classes = x->dim[0];
    for (int64_t k = 0; k < classes; k++) {
        double *at = &image[(i / pixels * classes + k) * pixels + i % pixels];
        *(is_back ? at : &row[k]) = *(is_back ? &row[k] : at);
    }
}

static int64_t pixels_of(const struct op_problem *p)
{
    return p->samples * p->shapes->x[0].dim[1] * p->shapes->x[0].dim[2];
}

static void pixels_forward(const struct op_problem *p, const double *const x[],
                           const double *const w[], double *y)
{
    (void)w;
    for (int64_t i = 0; i < pixels_of(p); i++) {
        double from[MOST_CLASSES] = {0}, to[MOST_CLASSES] = {0};
        copy_pixel(p, i, (double *)(uintptr_t)x[0], from, false);
        softmax_of(from, p->shapes->x[0].dim[0], to);
        copy_pixel(p, i, y, to, true);
    }
}

static void pixels_backward(const struct op_problem *p, const double *const x[],
                            const double *const w[], const double *dy, double *const dx[],
                            double *const dw[])
{
    const int64_t count = p->shapes->x[0].dim[0];
    (void)w;
    (void)dw;
    for (int64_t i = 0; i < pixels_of(p); i++) {
        double from[MOST_CLASSES] = {0}, y[MOST_CLASSES] = {0}, of_y[MOST_CLASSES] = {0};
        double sum = 0;
        copy_pixel(p, i, (double *)(uintptr_t)x[0], from, false);
        copy_pixel(p, i, (double *)(uintptr_t)dy, of_y, false);
        softmax_of(from, count, y);
        for (int64_t k = 0; k < count; k++)
            sum += of_y[k] * y[k];
        for (int64_t k = 0; k < count; k++)
            y[k] *= of_y[k] - sum;
        copy_pixel(p, i, dx[0], y, true);
    }
}

static void softmax_forward(const struct op_problem *p, const double *const x[],
                            const double *const w[], double *y)
{
    const int64_t count = classes_of(p);
    (void)w;
    for (int64_t n = 0; n < rows_of(p); n++)
        softmax_of(x[0] + n * count, count, y + n * count);
}

static void softmax_backward(const struct op_problem *p, const double *const x[],
                             const double *const w[], const double *dy, double *const dx[],
                             double *const dw[])
{
    const int64_t count = classes_of(p);
    (void)w;
    (void)dw;
    for (int64_t n = 0; n < rows_of(p); n++) {
        double *y = dx[0] + n * count, sum = 0;
        softmax_of(x[0] + n * count, count, y);
        for (int64_t k = 0; k < count; k++)
            sum += dy[n * count + k] * y[k];
        for (int64_t k = 0; k < count; k++)
            y[k] *= dy[n * count + k] - sum;
    }
}

/* Far apart and far from zero: e^x alone would overflow. */
static void arrange_far(const struct lk_op_shapes *shapes, int64_t samples, double *const x[],
                        double *const w[])
{
    (void)w;
    for (int64_t i = 0; i < samples * lk_shape_count(&shapes->x[0]); i++)
        x[0][i] = (double)(float)(x[0][i] * 20 + (i % 3 ? 500 : 480));
}

static const struct op_oracle softmax = {.forward = softmax_forward,
                                         .backward = softmax_backward};
static const struct op_oracle softmax_far = {
    .forward = softmax_forward, .backward = softmax_backward, .arrange = arrange_far};

static const struct op_oracle softmax_pixels = {.forward = pixels_forward,
                                                .backward = pixels_backward};

/* --- cross-entropy against labels: the mean over the steps that live ---------------------- */

static double logits_loss(const double *row, int64_t count, int64_t k)
{
    double most;
    const double sum = sum_exp(row, count, &most);
    return log(sum) + (most - row[k]);
}

static double entropy_loss(const double *row, int64_t count, int64_t k)
{
    (void)count;
    return -log(fmin(fmax(row[k], 1e-7), 1 - 1e-7));
}

static int64_t steps_of(const struct op_problem *p)
{
    return lk_shape_count(&p->shapes->x[0]) / classes_of(p);
}

static bool is_class(const struct op_problem *p, double label)
{
    return label >= 0 && label < (double)classes_of(p);
}

/* How many steps of the sample live; a vector is one step. */
static double living(const struct op_problem *p, const double *labels)
{
    double count = 0;
    for (int64_t t = 0; t < steps_of(p); t++)
        count += is_class(p, labels[t]);
    return count;
}

static void labels_forward(const struct op_problem *p, const double *const x[], double *y,
                           double (*loss)(const double *, int64_t, int64_t))
{
    const int64_t count = classes_of(p), steps = steps_of(p);
    for (int64_t at = 0; at < rows_of(p); at++) {
        const double *row = x[0] + at * count, label = x[1][at];
        const double n = living(p, x[1] + at / steps * steps);
        if (!is_class(p, label))
            continue;
        y[at / steps * 2] += loss(row, count, (int64_t)label) / n;
        y[at / steps * 2 + 1] += (first_largest(row, count) == (int64_t)label) / n;
    }
}

static void logits_forward(const struct op_problem *p, const double *const x[],
                           const double *const w[], double *y)
{
    (void)w;
    labels_forward(p, x, y, logits_loss);
}

/* What the gradients of a step are multiplied by: its share, and the option. */
static double times_of(const struct op_problem *p, const double *labels, int64_t at)
{
    const int64_t first = at / steps_of(p) * steps_of(p);
    return weight_option(p) / living(p, labels + first);
}

static void logits_backward(const struct op_problem *p, const double *const x[],
                            const double *const w[], const double *dy, double *const dx[],
                            double *const dw[])
{
    const int64_t count = classes_of(p);
    (void)w, (void)dy, (void)dw;
    for (int64_t at = 0; at < rows_of(p); at++) {
        const int64_t label = (int64_t)x[1][at];
        double *to = dx[0] + at * count;
        if (!is_class(p, x[1][at]))
            continue;
        softmax_of(x[0] + at * count, count, to);
        to[label] -= 1;
        for (int64_t k = 0; k < count; k++)
            to[k] *= times_of(p, x[1], at);
    }
}

/* Labels that are no class, the first and the last class, and ties for the largest. */
static void arrange_wrong(const struct lk_op_shapes *shapes, int64_t samples, double *const x[],
                          double *const w[])
{
    const int64_t count = shapes->x[0].dim[0];
    const double wrong[] = {-1, (double)count, 2147483647, -2147483648.0, 0, (double)count - 1};
    (void)w;
    for (int64_t n = 0; n < samples; n++) {
        if (n % 8 < 6)
            x[1][n] = wrong[n % 8];
        for (int64_t k = 0; k < count && n % 3 == 0; k++)
            x[0][n * count + k] = k % 2 ? 0.5 : 0.25;
    }
}

/* Sequences of some length, of none, with a hole; a label that is no class hides a step. */
static void arrange_steps(const struct lk_op_shapes *shapes, int64_t samples, double *const x[],
                          double *const w[])
{
    const int64_t steps = shapes->x[0].dim[0];
    (void)w;
    for (int64_t i = 0; i < samples * steps; i++) {
        const int64_t n = i / steps, t = i % steps;
        if (n % 4 == 1 ? t > n % steps : n % 4 == 2 ? t == 1 : n % 4 == 3 && n % 8 == 3)
            x[1][i] = t % 2 ? -1 : (double)shapes->x[0].dim[1];
    }
}

static const struct op_oracle logits_steps = {
    .forward = logits_forward, .backward = logits_backward, .arrange = arrange_steps};
static const struct op_oracle logits = {.forward = logits_forward, .backward = logits_backward};
static const struct op_oracle logits_far = {
    .forward = logits_forward, .backward = logits_backward, .arrange = arrange_far};
static const struct op_oracle logits_wrong = {
    .forward = logits_forward, .backward = logits_backward, .arrange = arrange_wrong};

/* --- cross-entropy of probabilities --------------------------------------------------------
 */

static void entropy_forward(const struct op_problem *p, const double *const x[],
                            const double *const w[], double *y)
{
    (void)w;
    labels_forward(p, x, y, entropy_loss);
}

static void entropy_backward(const struct op_problem *p, const double *const x[],
                             const double *const w[], const double *dy, double *const dx[],
                             double *const dw[])
{
    const int64_t count = classes_of(p);
    (void)w, (void)dy, (void)dw;
    for (int64_t at = 0; at < rows_of(p); at++) {
        const int64_t label = (int64_t)x[1][at];
        const double v = is_class(p, x[1][at]) ? x[0][at * count + label] : 0;
        if (v >= 1e-7 && v <= 1 - 1e-7)
            dx[0][at * count + label] = -times_of(p, x[1], at) / v;
    }
}

/* Certain and impossible answers: clipped, and no gradient from there. A little beyond 0 and 1,
 * so that differences do not cross the bend. */
static void arrange_certain(const struct lk_op_shapes *shapes, int64_t samples,
                            double *const x[], double *const w[])
{
    arrange_wrong(shapes, samples, x, w);
    for (int64_t i = 0; i < samples * lk_shape_count(&shapes->x[0]); i++)
        if (i % 2)
            x[0][i] = i % 4 == 1 ? -0x1p-10 : 1 + 0x1p-10;
}

static const struct op_oracle entropy_steps = {
    .forward = entropy_forward, .backward = entropy_backward, .arrange = arrange_steps};
static const struct op_oracle entropy = {.forward = entropy_forward,
                                         .backward = entropy_backward};
static const struct op_oracle entropy_certain = {
    .forward = entropy_forward, .backward = entropy_backward, .arrange = arrange_certain};

/* --- targets in place of labels ---------------------------------------------------------- */

static double weight_of(const double *t, int64_t count)
{
    double sum = 0;
    for (int64_t k = 0; k < count; k++)
        sum += t[k];
    return sum;
}

static void targets_forward(const struct op_problem *p, const double *const x[], double *y,
                            double (*loss)(const double *, int64_t, int64_t))
{
    const int64_t count = classes_of(p);
    for (int64_t n = 0; n < p->samples; n++) {
        const double *row = x[0] + n * count, *t = x[1] + n * count;
        if (!(weight_of(t, count) > 0))
            continue;
        for (int64_t k = 0; k < count; k++)
            y[2 * n] += t[k] * loss(row, count, k);
        y[2 * n + 1] = first_largest(row, count) == first_largest(t, count);
    }
}

static void target_logits_forward(const struct op_problem *p, const double *const x[],
                                  const double *const w[], double *y)
{
    (void)w;
    targets_forward(p, x, y, logits_loss);
}

static void target_entropy_forward(const struct op_problem *p, const double *const x[],
                                   const double *const w[], double *y)
{
    (void)w;
    targets_forward(p, x, y, entropy_loss);
}

static void target_logits_backward(const struct op_problem *p, const double *const x[],
                                   const double *const w[], const double *dy,
                                   double *const dx[], double *const dw[])
{
    const int64_t count = classes_of(p);
    (void)w;
    (void)dy;
    (void)dw;
    for (int64_t n = 0; n < p->samples; n++) {
        const double *row = x[0] + n * count, *t = x[1] + n * count;
        const double weight = weight_of(t, count);
        double *to = dx[0] + n * count;
        if (!(weight > 0))
            continue;
        softmax_of(row, count, to);
        for (int64_t k = 0; k < count; k++) {
            to[k] = weight_option(p) * (weight * to[k] - t[k]);
            dx[1][n * count + k] = weight_option(p) * logits_loss(row, count, k);
        }
    }
}

static void target_entropy_backward(const struct op_problem *p, const double *const x[],
                                    const double *const w[], const double *dy,
                                    double *const dx[], double *const dw[])
{
    const int64_t count = classes_of(p);
    (void)w;
    (void)dy;
    (void)dw;
    for (int64_t n = 0; n < p->samples; n++) {
        const double *row = x[0] + n * count, *t = x[1] + n * count;
        for (int64_t k = 0; k < count && weight_of(t, count) > 0; k++) {
            if (row[k] >= 1e-7 && row[k] <= 1 - 1e-7)
                dx[0][n * count + k] = -weight_option(p) * t[k] / row[k];
            dx[1][n * count + k] = weight_option(p) * entropy_loss(row, count, k);
        }
    }
}

/* One class, a weight for each, and those of a lane that counts as dead. */
static void arrange_targets(const struct lk_op_shapes *shapes, int64_t samples,
                            double *const x[], double *const w[])
{
    const int64_t count = shapes->x[0].dim[0];
    (void)w;
    for (int64_t n = 0; n < samples; n++)
        for (int64_t k = 0; k < count; k++)
            x[1][n * count + k] = n % 4 == 0   ? (double)(k == n % count)
                                  : n % 4 == 1 ? -0.25
                                               : 0.0625 * (double)((n + k) % count + 1);
}

static const struct op_oracle target_logits = {.forward = target_logits_forward,
                                               .backward = target_logits_backward,
                                               .arrange = arrange_targets};
static const struct op_oracle target_entropy = {.forward = target_entropy_forward,
                                                .backward = target_entropy_backward,
                                                .arrange = arrange_targets};

static const struct op_case cases[] = {
    {"softmax", "", .x = {OP_SHAPE(10)}, .samples = 33, .shards = 2, .sizes = true,
     .thorough = true, .low = -4, .high = 4},
    {"softmax", "", .x = {OP_SHAPE(1)}, .samples = 5, .thorough = true},
    {"softmax", "", .x = {OP_SHAPE(1000)}, .samples = 20, .low = -8, .high = 8},
    {"softmax", "", .x = {OP_SHAPE(5, 6)}, .samples = 20, .thorough = true},
    {"softmax", "", .x = {OP_SHAPE(12)}, .samples = 40, .oracle = &softmax_far},
    {"softmax", "", .x = {OP_SHAPE(5, 3, 4)}, .samples = 18, .thorough = true,
     .oracle = &softmax_pixels},
    {"softmax", "", .x = {OP_SHAPE(9, 7, 1)}, .samples = 37, .shards = 2, .sizes = true,
     .oracle = &softmax_pixels},
    {"softmax", "loss=cross_entropy", 2, .x = {OP_SHAPE(10), {0}}, .classes = {0, 10},
     .samples = 33, .shards = 2, .sizes = true, .thorough = true, .low = -4, .high = 4,
     .oracle = &logits},
    {"softmax_cross_entropy", "", 2, .x = {OP_SHAPE(10), {0}}, .classes = {0, 10},
     .samples = 33, .shards = 2, .thorough = true, .low = -4, .high = 4, .oracle = &logits},
    {"softmax_cross_entropy", "", 2, .x = {OP_SHAPE(1000), {0}}, .classes = {0, 1000},
     .samples = 20, .low = -8, .high = 8, .oracle = &logits},
    /* so many channels that a GPU has several work-items for a sample */
    {"softmax", "", .x = {OP_SHAPE(67, 3, 2)}, .samples = 37, .shards = 2, .half = true,
     .oracle = &softmax_pixels},
    {"softmax_cross_entropy", "", 2, .x = {OP_SHAPE(64), {0}}, .classes = {0, 64},
     .samples = 50, .shards = 2, .thorough = true, .oracle = &logits_wrong},
    {"softmax_cross_entropy", "", 2, .x = {OP_SHAPE(77), {0}}, .classes = {0, 77},
     .samples = 33, .oracle = &logits_far},
    {"softmax", "loss=cross_entropy weight=0.5", 2, .x = {OP_SHAPE(3, 131), OP_SHAPE(3)},
     .classes = {0, 131}, .samples = 33, .shards = 2, .weight = 0.5, .oracle = &logits_steps},
    {"softmax_cross_entropy", "", 2, .x = {OP_SHAPE(1), {0}}, .classes = {0, 1}, .samples = 9,
     .oracle = &logits},
    {"softmax_cross_entropy", "", 2, .x = {OP_SHAPE(7), {0}}, .classes = {0, 7}, .samples = 40,
     .oracle = &logits_far},
    {"softmax_cross_entropy", "", 2, .x = {OP_SHAPE(6), {0}}, .classes = {0, 6}, .samples = 50,
     .thorough = true, .oracle = &logits_wrong},
    {"softmax_cross_entropy", "", 2, .x = {OP_SHAPE(6), {0}}, .classes = {0, 6}, .samples = 50,
     .inference = true, .oracle = &logits_wrong},
    {"cross_entropy", "", 2, .x = {OP_SHAPE(10), {0}}, .classes = {0, 10}, .samples = 33,
     .shards = 2, .sizes = true, .thorough = true, .low = 0.05, .high = 0.95,
     .oracle = &entropy},
    {"cross_entropy", "", 2, .x = {OP_SHAPE(6), {0}}, .classes = {0, 6}, .samples = 50,
     .low = 0.05, .high = 0.95, .oracle = &entropy_certain},
    {"softmax", "loss=cross_entropy", 2, .x = {OP_SHAPE(10), OP_SHAPE(10)}, .samples = 33,
     .shards = 2, .sizes = true, .thorough = true, .low = -4, .high = 4,
     .oracle = &target_logits},
    {"softmax_cross_entropy", "", 2, .x = {OP_SHAPE(6), OP_SHAPE(6)}, .samples = 50,
     .inference = true, .oracle = &target_logits},
    {"softmax_cross_entropy", "", 2, .x = {OP_SHAPE(1), OP_SHAPE(1)}, .samples = 9,
     .oracle = &target_logits},
    {"cross_entropy", "", 2, .x = {OP_SHAPE(10), OP_SHAPE(10)}, .samples = 33, .shards = 2,
     .thorough = true, .low = 0.05, .high = 0.95, .oracle = &target_entropy},
    {"softmax", "loss=cross_entropy", 2, .x = {OP_SHAPE(5, 7), OP_SHAPE(5)}, .classes = {0, 7},
     .samples = 33, .shards = 2, .sizes = true, .thorough = true, .low = -4, .high = 4,
     .oracle = &logits_steps},
    {"softmax_cross_entropy", "", 2, .x = {OP_SHAPE(6, 3), OP_SHAPE(6)}, .classes = {0, 3},
     .samples = 20, .inference = true, .oracle = &logits_steps},
    {"softmax_cross_entropy", "", 2, .x = {OP_SHAPE(1, 4), OP_SHAPE(1)}, .classes = {0, 4},
     .samples = 9, .oracle = &logits},
    {"cross_entropy", "", 2, .x = {OP_SHAPE(4, 6), OP_SHAPE(4)}, .classes = {0, 6},
     .samples = 33, .shards = 2, .sizes = true, .thorough = true, .low = 0.05, .high = 0.95,
     .oracle = &entropy_steps},
    {"softmax_cross_entropy", "weight=0.375", 2, .x = {OP_SHAPE(3, 4), OP_SHAPE(3)},
     .classes = {0, 4}, .samples = 20, .weight = 0.375, .oracle = &logits_steps},
    {"softmax", "loss=cross_entropy weight=2.5", 2, .x = {OP_SHAPE(4), {0}}, .classes = {0, 4},
     .samples = 20, .weight = 2.5, .oracle = &logits},
    {"cross_entropy", "weight=3", 2, .x = {OP_SHAPE(4), {0}}, .classes = {0, 4}, .samples = 20,
     .weight = 3, .low = 0.05, .high = 0.95, .oracle = &entropy},
    {"softmax_cross_entropy", "weight=3", 2, .x = {OP_SHAPE(4), OP_SHAPE(4)}, .samples = 20,
     .weight = 3, .oracle = &target_logits},
    {"cross_entropy", "weight=0.5", 2, .x = {OP_SHAPE(4), OP_SHAPE(4)}, .samples = 20,
     .weight = 0.5, .low = 0.05, .high = 0.95, .oracle = &target_entropy},
};

static const struct op_refusal refusals[] = {
    {"cross_entropy", "", 2, .x = {OP_SHAPE(3, 8, 8), {0}}, .labels = {false, true},
     .status = LK_E_SHAPE, .said = "not [8, 8, 3]"},
    {"softmax", "", 2, .x = {OP_SHAPE(4), {0}}, .labels = {false, true}, .status = LK_E_SHAPE,
     .said = "one input"},
    {"softmax", "loss=cross_entropy", .x = {OP_SHAPE(4)}, .status = LK_E_SHAPE,
     .said = "two inputs"},
    {"softmax", "loss=hinge", .x = {OP_SHAPE(4)}, .status = LK_E_ARGUMENT,
     .said = "cross_entropy"},
    {"softmax", "axis=1", .x = {OP_SHAPE(4)}, .status = LK_E_ARGUMENT, .said = "axis"},
    {"cross_entropy", "", 2, .x = {OP_SHAPE(4), {0}}, .status = LK_E_SHAPE,
     .said = "one int32 label a sample, or a target for each of 4 classes, not numbers []"},
    {"softmax", "loss=cross_entropy", 2, .x = {OP_SHAPE(4), OP_SHAPE(5)}, .status = LK_E_SHAPE,
     .said = "a target for each of 4 classes, not numbers [5]"},
    {"cross_entropy", "", 2, .x = {OP_SHAPE(4), OP_SHAPE(3)}, .labels = {false, true},
     .status = LK_E_SHAPE, .said = "not [3]"},
    {"softmax_cross_entropy", "", 2, .x = {OP_SHAPE(2, 4), {0}}, .labels = {false, true},
     .status = LK_E_SHAPE, .said = "one int32 label for each of 2 time steps, not []"},
    {"softmax_cross_entropy", "", 2, .x = {OP_SHAPE(2, 4), OP_SHAPE(4)},
     .labels = {false, true}, .status = LK_E_SHAPE, .said = "each of 2 time steps, not [4]"},
    {"cross_entropy", "", 2, .x = {OP_SHAPE(2, 4), OP_SHAPE(2, 4)}, .status = LK_E_SHAPE,
     .said = "each of 2 time steps, not numbers [2, 4]"},
    {"cross_entropy", "", 2, .x = {OP_SHAPE(2, 4, 3), OP_SHAPE(2)}, .labels = {false, true},
     .status = LK_E_SHAPE, .said = "of every time step [t, k], not [4, 3, 2]"},
    {"cross_entropy", "weight=-1", 2, .x = {OP_SHAPE(4), {0}}, .labels = {false, true},
     .status = LK_E_ARGUMENT, .said = "weight"},
};

static const struct op_suite suite = OP_SUITE(&softmax, cases, refusals);

int main(void)
{
    return op_test(&suite);
}

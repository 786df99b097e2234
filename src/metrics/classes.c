/* Fractions of right answers: accuracy, top k, precision and recall. */
#include "metrics/metric.h"

#include "base/fail.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct lk_option none[] = {{0}};

enum {
    CLASSES = 1 << LK_FORM_CLASS | 1 << LK_FORM_DISTRIBUTION,
    SIDES = 1 << LK_FORM_CHOICE | 1 << LK_FORM_UNITS,
};

/* The class that time step t should have; -1: it counts nowhere. */
static int64_t wanted_class(const struct lk_metric_shape *shape, const void *target, int64_t t)
{
    if (shape->form == LK_FORM_DISTRIBUTION)
        return lk_metric_largest((const float *)target + t * shape->width, shape->width);
    const int32_t label = ((const int32_t *)target)[t];
    return label < shape->width ? label : -1;
}

/* The target of a yes-or-no output: 1, 0, or -1: it counts nowhere. */
static int wanted_side(const struct lk_metric_shape *shape, const void *target, int64_t i)
{
    if (shape->form == LK_FORM_UNITS)
        return ((const float *)target)[i] > 0.5F;
    const int32_t label = ((const int32_t *)target)[i];
    return label < 0 ? -1 : label > 0;
}

/* --- accuracy and top k ------------------------------------------------------------------ */

struct top_options {
    int64_t k;
};

struct fraction {
    double right;    /* sum over samples: of its time steps, or units, that are right */
    int64_t samples; /* samples of which some time step or unit has a target */
};

static double mean_of(struct lk_metric *metric)
{
    const struct fraction *fraction = metric->state;
    return fraction->right / (double)fraction->samples;
}

/* How many numbers are larger than that of `place`, or as large and before it; a NaN there is
 * behind all. */
static int64_t rank_of(const float *y, int64_t width, int64_t place)
{
    int64_t before = 0;
    if (isnan(y[place]))
        return width;
    for (int64_t k = 0; k < width; k++)
        before += y[k] > y[place] || (y[k] == y[place] && k < place);
    return before;
}

static void add_fraction(struct lk_metric *metric, int64_t right, int64_t alive)
{
    struct fraction *fraction = metric->state;
    if (alive == 0)
        return;
    fraction->right += (double)right / (double)alive;
    fraction->samples++;
}

static void add_classes(struct lk_metric *metric, const float *y, const void *target,
                        int64_t most)
{
    const struct lk_metric_shape *shape = &metric->shape;
    int64_t right = 0, alive = 0;
    for (int64_t t = 0; t < shape->time_steps; t++) {
        const int64_t wanted = wanted_class(shape, target, t);
        if (wanted < 0)
            continue;
        alive++;
        right += rank_of(y + t * shape->width, shape->width, wanted) < most;
    }
    add_fraction(metric, right, alive);
}

static void add_sides(struct lk_metric *metric, const float *y, const void *target)
{
    const float border = metric->shape.border;
    int64_t right = 0, alive = 0;
    for (int64_t i = 0; i < metric->shape.time_steps * metric->shape.width; i++) {
        const int wanted = wanted_side(&metric->shape, target, i);
        alive += wanted >= 0;
        right += wanted >= 0 && !isnan(y[i]) && (y[i] > border) == wanted;
    }
    add_fraction(metric, right, alive);
}

static enum lk_status add_accuracy(struct lk_metric *metric, const float *y, const void *target)
{
    if (CLASSES >> metric->shape.form & 1)
        add_classes(metric, y, target, 1);
    else
        add_sides(metric, y, target);
    return LK_OK;
}

static enum lk_status add_top(struct lk_metric *metric, const float *y, const void *target)
{
    const struct top_options *o = metric->options;
    add_classes(metric, y, target, o->k);
    return LK_OK;
}

static enum lk_status check_top(const void *options, const struct lk_metric_shape *shape)
{
    const struct top_options *o = options;
    if (o->k <= shape->width)
        return LK_OK;
    return lk_fail(LK_E_ARGUMENT, "the best %lld of %lld classes", (long long)o->k,
                   (long long)shape->width);
}

/* --- precision and recall ---------------------------------------------------------------- */

struct class_options {
    int64_t of; /* the class asked for; -1: the mean over all classes that are there */
};

struct counts {
    int64_t right, said, wanted; /* right: predicted and there; said: predicted; wanted:
                                  * there */
};

static enum lk_status check_class(const void *options, const struct lk_metric_shape *shape)
{
    const struct class_options *o = options;
    const bool has_classes = CLASSES >> shape->form & 1;
    if (o->of >= 0 && (!has_classes || o->of >= shape->width))
        return lk_fail(LK_E_ARGUMENT, "class %lld of an output of %lld classes",
                       (long long)o->of, has_classes ? (long long)shape->width : 1LL);
    return LK_OK;
}

/* The counts, in metric->memory: of each class, or of yes alone. */
static enum lk_status counts_of(struct lk_metric *metric, struct counts **counts)
{
    const bool has_classes = CLASSES >> metric->shape.form & 1;
    const size_t bytes =
        (size_t)(has_classes ? metric->shape.width : 1) * sizeof(struct counts);
    if (!metric->memory)
        metric->memory = malloc(bytes);
    if (!metric->memory)
        return lk_fail_memory("counts of classes", bytes);
    if (metric->samples == 1) /* the first since a reset */
        memset(metric->memory, 0, bytes);
    *counts = metric->memory;
    return LK_OK;
}

static void count_sides(struct lk_metric *metric, const float *y, const void *target,
                        struct counts *counts)
{
    for (int64_t i = 0; i < metric->shape.time_steps * metric->shape.width; i++) {
        const int wanted = wanted_side(&metric->shape, target, i);
        if (wanted < 0)
            continue;
        counts->said += y[i] > metric->shape.border;
        counts->wanted += wanted;
        counts->right += wanted && y[i] > metric->shape.border;
    }
}

static enum lk_status add_counts(struct lk_metric *metric, const float *y, const void *target)
{
    const struct lk_metric_shape *shape = &metric->shape;
    struct counts *counts = NULL;
    LK_TRY(counts_of(metric, &counts));
    if (!(CLASSES >> shape->form & 1)) {
        count_sides(metric, y, target, counts);
        return LK_OK;
    }
    for (int64_t t = 0; t < shape->time_steps; t++) {
        const int64_t wanted = wanted_class(shape, target, t);
        if (wanted < 0)
            continue;
        const int64_t said = lk_metric_largest(y + t * shape->width, shape->width);
        counts[said].said++;
        counts[wanted].wanted++;
        counts[wanted].right += said == wanted;
    }
    return LK_OK;
}

/* Precision or recall: the mean over classes that are there or were predicted; of a single
 * class that was asked for, NaN where there is nothing to divide by. */
static double mean_over_classes(struct lk_metric *metric, bool is_recall)
{
    const struct class_options *o = metric->options;
    const struct counts *counts = metric->memory;
    const bool has_classes = CLASSES >> metric->shape.form & 1;
    const int64_t classes = has_classes ? metric->shape.width : 1;
    double sum = 0;
    int64_t defined = 0;
    for (int64_t k = 0; k < classes && metric->samples > 0; k++) {
        const int64_t of = is_recall ? counts[k].wanted : counts[k].said;
        if (counts[k].wanted + counts[k].said == 0 || (o->of >= 0 && o->of != k))
            continue;
        if (of == 0 && (o->of >= 0 || classes == 1))
            return NAN;
        sum += of == 0 ? 0 : (double)counts[k].right / (double)of;
        defined++;
    }
    return defined ? sum / (double)defined : NAN;
}

static double precision(struct lk_metric *metric)
{
    return mean_over_classes(metric, false);
}

static double recall(struct lk_metric *metric)
{
    return mean_over_classes(metric, true);
}

/* --- the rows ---------------------------------------------------------------------------- */

static const struct lk_option top_options[] = {
    {.name = "k",
     .kind = LK_OPTION_INT,
     .offset = offsetof(struct top_options, k),
     .count = 1,
     .min = 1,
     .max = 1 << 24,
     .standard = "5",
     .help = "answers among which the right one has to be"},
    {0},
};

static const struct lk_option class_options[] = {
    {.name = "class",
     .kind = LK_OPTION_INT,
     .offset = offsetof(struct class_options, of),
     .count = 1,
     .min = -1,
     .max = 1 << 24,
     .standard = "-1",
     .help = "the class that counts as positive; -1: the mean over all classes"},
    {0},
};

/* source: Manning, Raghavan, Schuetze, Introduction to Information Retrieval, 8.3 and 13.6 */
const struct lk_metric_kind lk_metric_classes[] = {
    {.name = "accuracy",
     .options = none,
     .state_bytes = sizeof(struct fraction),
     .forms = CLASSES | SIDES,
     .is_larger_better = true,
     .add = add_accuracy,
     .result = mean_of,
     .help = "fraction of right answers"},
    {.name = "top_k",
     .options = top_options,
     .options_bytes = sizeof(struct top_options),
     .state_bytes = sizeof(struct fraction),
     .forms = CLASSES,
     .is_larger_better = true,
     .check = check_top,
     .add = add_top,
     .result = mean_of,
     .help = "fraction of samples whose class is among the k most probable"},
    {.name = "precision",
     .options = class_options,
     .options_bytes = sizeof(struct class_options),
     .forms = CLASSES | SIDES,
     .is_larger_better = true,
     .check = check_class,
     .add = add_counts,
     .result = precision,
     .help = "fraction of right ones among those predicted"},
    {.name = "recall",
     .options = class_options,
     .options_bytes = sizeof(struct class_options),
     .forms = CLASSES | SIDES,
     .is_larger_better = true,
     .check = check_class,
     .add = add_counts,
     .result = recall,
     .help = "fraction of those that are there which were predicted"},
    {0},
};

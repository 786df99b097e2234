/* Losses as figures of an evaluation: the mean over samples of what training minimizes. A
 * sample's loss is the mean over the time steps that have a label (cross-entropy) or over its
 * numbers. */
#include "metrics/metric.h"

#include "base/fail.h"
#include <float.h>
#include <math.h>

struct mean {
    double sum;
    int64_t samples; /* that have a time step with a label */
};

static double mean_of(struct lk_metric *metric)
{
    const struct mean *mean = metric->state;
    return mean->sum / (double)mean->samples;
}

/* -log(p), clipped; NaN stays NaN. */
static double minus_log(float p)
{
    return -log(p < FLT_MIN ? FLT_MIN : p);
}

/* --- cross-entropy over classes ---------------------------------------------------------- */

static void add_mean(struct lk_metric *metric, double sum, int64_t count)
{
    struct mean *mean = metric->state;
    if (count == 0)
        return;
    mean->sum += sum / (double)count;
    mean->samples++;
}

static void add_class(struct lk_metric *metric, const float *y, const int32_t *label)
{
    const struct lk_metric_shape *shape = &metric->shape;
    double sum = 0;
    int64_t alive = 0;
    for (int64_t t = 0; t < shape->time_steps; t++)
        if (label[t] >= 0 && label[t] < shape->width) {
            sum += minus_log(y[t * shape->width + label[t]]);
            alive++;
        }
    add_mean(metric, sum, alive);
}

static void add_weights(struct lk_metric *metric, const float *y, const float *weight)
{
    const struct lk_metric_shape *shape = &metric->shape;
    double sum = 0;
    for (int64_t i = 0; i < shape->time_steps * shape->width; i++)
        sum += weight[i] == 0 ? 0 : (double)weight[i] * minus_log(y[i]);
    add_mean(metric, sum, shape->time_steps);
}

static enum lk_status add_entropy(struct lk_metric *metric, const float *y, const void *target)
{
    if (metric->shape.form == LK_FORM_CLASS)
        add_class(metric, y, target);
    else
        add_weights(metric, y, target);
    return LK_OK;
}

/* --- means over numbers ------------------------------------------------------------------ */

struct number_options {
    double delta;
};

/* Number i of a target, as a real; whether it counts. */
static bool target_at(const struct lk_metric *metric, const void *target, int64_t i, double *t)
{
    const bool is_choice = metric->shape.form == LK_FORM_CHOICE;
    *t = is_choice ? ((const int32_t *)target)[i] : (double)((const float *)target)[i];
    return !is_choice || *t >= 0;
}

static enum lk_status add_numbers(struct lk_metric *metric, const float *y, const void *target,
                                  double (*loss)(double y, double t, double delta))
{
    const struct number_options *o = metric->options;
    const double delta = metric->kind->options_bytes ? o->delta : 0;
    double sum = 0, t;
    int64_t alive = 0;
    for (int64_t i = 0; i < metric->shape.time_steps * metric->shape.width; i++)
        if (target_at(metric, target, i, &t)) {
            sum += loss((double)y[i], t, delta);
            alive++;
        }
    add_mean(metric, sum, alive);
    return LK_OK;
}

/* Clipped as Keras clips, at 1e-7. */
static double binary(double y, double t, double unused)
{
    const double least = 1e-7, p = y < least ? least : y > 1 - least ? 1 - least : y;
    (void)unused;
    return -(t * log(p) + (1 - t) * log1p(-p));
}

static double squared(double y, double t, double unused)
{
    (void)unused;
    return (y - t) * (y - t);
}

static double absolute(double y, double t, double unused)
{
    (void)unused;
    return fabs(y - t);
}

static double huber(double y, double t, double delta)
{
    const double a = fabs(y - t);
    return a <= delta ? 0.5 * a * a : delta * (a - 0.5 * delta);
}

/* Targets 0 and 1 stand for -1 and 1. */
static double hinge(double y, double t, double unused)
{
    const double side = t > 0 ? 1 : -1, loss = 1 - side * y;
    (void)unused;
    return loss > 0 || isnan(loss) ? loss : 0;
}

#define ADD(function)                                                                          \
    static enum lk_status add_##function(struct lk_metric *m, const float *y, const void *t)   \
    {                                                                                          \
        return add_numbers(m, y, t, function);                                                 \
    }
ADD(binary)
ADD(squared)
ADD(absolute)
ADD(huber)
ADD(hinge)

static double perplexity(struct lk_metric *metric)
{
    return exp(mean_of(metric));
}

static double bits(struct lk_metric *metric)
{
    return mean_of(metric) / log(2);
}

static double root_of_mean(struct lk_metric *metric)
{
    return sqrt(mean_of(metric));
}

static const struct lk_option none[] = {{0}};
static const struct lk_option huber_options[] = {
    {.name = "delta",
     .kind = LK_OPTION_REAL,
     .offset = offsetof(struct number_options, delta),
     .min = 1e-30,
     .max = 1e30,
     .standard = "1",
     .help = "distance from which on it grows linearly"},
    {0},
};

enum {
    CLASSES = 1 << LK_FORM_CLASS | 1 << LK_FORM_DISTRIBUTION,
    SIDES = 1 << LK_FORM_CHOICE | 1 << LK_FORM_UNITS,
    VALUES = 1 << LK_FORM_VALUES,
};

#define MEAN(name_, forms_, add_, class_, border_, help_)                                      \
    {                                                                                          \
        .name = (name_), .options = none, .state_bytes = sizeof(struct mean),                  \
        .forms = (forms_), .takes_class = (class_), .border = (border_), .add = (add_),        \
        .result = mean_of, .help = (help_)                                                     \
    }

/* source: the losses of those names of Keras; Huber, Annals of Mathematical Statistics 35
 * (1964)
 */
const struct lk_metric_kind lk_metric_losses[] = {
    MEAN("cross_entropy", CLASSES, add_entropy, true, 0.5F,
         "-log of the right class's probability"),
    {.name = "perplexity",
     .options = none,
     .state_bytes = sizeof(struct mean),
     .forms = CLASSES,
     .add = add_entropy,
     .result = perplexity,
     .help = "e^cross_entropy: of how many tokens a language model has to guess one"},
    {.name = "bits_per_token",
     .options = none,
     .state_bytes = sizeof(struct mean),
     .forms = CLASSES,
     .add = add_entropy,
     .result = bits,
     .help = "cross_entropy / log 2; bits per character where tokens are characters"},
    MEAN("binary_cross_entropy", SIDES, add_binary, true, 0.5F,
         "-log of the right side's probability"),
    MEAN("mean_squared_error", SIDES | VALUES, add_squared, false, 0.5F, "mean of (y - t)^2"),
    MEAN("mean_absolute_error", SIDES | VALUES, add_absolute, false, 0.5F, "mean of |y - t|"),
    {.name = "root_mean_squared_error",
     .options = none,
     .state_bytes = sizeof(struct mean),
     .forms = SIDES | VALUES,
     .add = add_squared,
     .result = root_of_mean,
     .help = "root of the mean of (y - t)^2"},
    {.name = "huber",
     .options = huber_options,
     .options_bytes = sizeof(struct number_options),
     .state_bytes = sizeof(struct mean),
     .forms = SIDES | VALUES,
     .add = add_huber,
     .result = mean_of,
     .help = "(y - t)^2 / 2 up to delta, linear beyond"},
    MEAN("hinge", SIDES | VALUES, add_hinge, true, 0, "max(0, 1 - y t), t being -1 or 1"),
    {0},
};

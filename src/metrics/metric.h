/* Figures that say what predictions are worth: losses and metrics over samples, on the host, in
 * double. Floor 4. Knows arrays of numbers, no graph and no data set.
 * A new one is a row in the table of the file that it belongs to. */
#ifndef LK_METRICS_METRIC_H
#define LK_METRICS_METRIC_H

#include "base/option.h"

/* What an output predicts, and the form of the targets beside it. */
enum lk_metric_form {
    LK_FORM_CLASS, /* a probability for each of `width` classes; targets: int32, the class of
                    * each time step; below 0: it counts nowhere */
    LK_FORM_DISTRIBUTION, /* the same; targets: float [time_steps][width], what each class
                             weighs */
    LK_FORM_CHOICE, /* one probability each; targets: int32 [time_steps][width], 0 or 1, below
                     * 0: counts nowhere */
    LK_FORM_UNITS,  /* one probability each; targets: float [time_steps][width], 0 or 1 */
    LK_FORM_VALUES, /* numbers; targets: float [time_steps][width] */
};

/* Of one sample: predictions y [time_steps][width]. */
struct lk_metric_shape {
    enum lk_metric_form form;
    int64_t time_steps, width;
    float border; /* predictions above it say yes; 0.5 where they are probabilities */
};

struct lk_metric;

/* One kind of figure. */
struct lk_metric_kind {
    const char *name;
    const struct lk_option *options;
    size_t options_bytes, state_bytes;
    unsigned forms; /* bits 1 << form that it is defined for */
    bool is_larger_better;
    bool takes_class; /* as a loss: a target may be an integer, the class or yes and no */
    float border;     /* the border between yes and no in what this loss trains */
    const char *help;

    /* (optional) fails: LK_E_ARGUMENT for options that do not fit the shape */
    enum lk_status (*check)(const void *options, const struct lk_metric_shape *shape);

    /* Adds one sample. fails: LK_E_MEMORY */
    enum lk_status (*add)(struct lk_metric *metric, const float *y, const void *target);

    /* Over all samples since the last reset; NaN where it is not defined. */
    double (*result)(struct lk_metric *metric);
};

/* The inside, for the rows' functions. */
struct lk_metric {
    const struct lk_metric_kind *kind;
    struct lk_metric_shape shape;
    void *options, *state; /* state: zeros after a reset, but for `memory` */
    void *memory;          /* (optional) of the kind's own, freed with the metric */
    int64_t samples;
};

/* All kinds; ends with NULL. */
const struct lk_metric_kind *lk_metric_kind(int index);

/* The kind of that name. fails: LK_E_MODEL, naming the nearest one */
LK_MUST_CHECK enum lk_status lk_metric_find(const char *name,
                                            const struct lk_metric_kind **kind);

/* Options as text, "k=3". fails: LK_E_ARGUMENT for wrong options, and for a form that the kind
 * is not defined for, named */
LK_MUST_CHECK enum lk_status lk_metric_create(const struct lk_metric_kind *kind,
                                              const char *options,
                                              const struct lk_metric_shape *shape,
                                              struct lk_metric **metric);
void lk_metric_destroy(struct lk_metric *metric);

/* Forgets all samples. */
void lk_metric_reset(struct lk_metric *metric);

/* Adds one sample; samples in another order may give other last bits. fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_metric_add(struct lk_metric *metric, const float *y,
                                           const void *target);
double lk_metric_result(struct lk_metric *metric);

/* Bytes of a sample's target. */
size_t lk_metric_target_bytes(const struct lk_metric_shape *shape);

/* The place of the largest of `width` numbers, the first of several; 0 where all are NaN. */
int64_t lk_metric_largest(const float *y, int64_t width);

/* Rows by file; each ends with an empty one. */
extern const struct lk_metric_kind lk_metric_losses[], lk_metric_classes[],
    lk_metric_rankings[];

#endif

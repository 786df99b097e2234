/* Figures of how well scores put samples in order: the area under the ROC curve. */
#include "metrics/metric.h"

#include "base/fail.h"
#include <math.h>
#include <stdlib.h>

struct scored {
    float score;
    bool is_positive;
};

struct scores {
    int64_t count, room;
};

static enum lk_status note(struct lk_metric *metric, float score, bool is_positive)
{
    struct scores *s = metric->state;
    if (s->room == 0 && metric->memory) { /* after a reset */
        free(metric->memory);
        metric->memory = NULL;
    }
    if (s->count == s->room) {
        const int64_t room = s->room ? 2 * s->room : 1024;
        struct scored *list = realloc(metric->memory, (size_t)room * sizeof *list);
        if (!list)
            return lk_fail_memory("scores", (size_t)room * sizeof *list);
        metric->memory = list;
        s->room = room;
    }
    ((struct scored *)metric->memory)[s->count++] = (struct scored){score, is_positive};
    return LK_OK;
}

static enum lk_status check_auc(const void *options, const struct lk_metric_shape *shape)
{
    (void)options;
    if (shape->form == LK_FORM_CLASS && shape->width != 2)
        return lk_fail(LK_E_ARGUMENT, "auc is defined for two classes, not for %lld",
                       (long long)shape->width);
    return LK_OK;
}

static enum lk_status add_auc(struct lk_metric *metric, const float *y, const void *target)
{
    const struct lk_metric_shape *shape = &metric->shape;
    const bool is_class = shape->form == LK_FORM_CLASS;
    const int64_t count = shape->time_steps * (is_class ? 1 : shape->width);
    for (int64_t i = 0; i < count; i++) {
        const bool is_float = shape->form == LK_FORM_UNITS;
        const double t =
            is_float ? (double)((const float *)target)[i] : ((const int32_t *)target)[i];
        if (t >= 0)
            LK_TRY(note(metric, is_class ? y[2 * i + 1] : y[i], t > 0.5));
    }
    return LK_OK;
}

static int by_score(const void *a, const void *b)
{
    const float x = ((const struct scored *)a)->score, y = ((const struct scored *)b)->score;
    return (x > y) - (x < y);
}

/* The fraction of pairs of a positive and a negative in which the positive has the higher
 * score; equal scores count half. NaN where there is no such pair, or a score is not a number.
 * source: Hanley and McNeil, Radiology 143 (1982) */
static double auc(struct lk_metric *metric)
{
    const struct scores *s = metric->state;
    struct scored *list = metric->memory;
    double below = 0, pairs = 0, positives = 0; /* negatives with lower scores */
    for (int64_t i = 0; i < s->count; i++)
        if (isnan(list[i].score))
            return NAN;
    if (s->count == 0)
        return NAN;
    qsort(list, (size_t)s->count, sizeof *list, by_score);
    for (int64_t i = 0; i < s->count;) {
        double up = 0, down = 0;
        const float score = list[i].score;
        for (; i < s->count && list[i].score == score; i++)
            *(list[i].is_positive ? &up : &down) += 1;
        pairs += up * (below + down / 2);
        below += down;
        positives += up;
    }
    return positives > 0 && below > 0 ? pairs / (positives * below) : NAN;
}

static const struct lk_option none[] = {{0}};

const struct lk_metric_kind lk_metric_rankings[] = {
    {.name = "auc",
     .options = none,
     .state_bytes = sizeof(struct scores),
     .forms = 1 << LK_FORM_CLASS | 1 << LK_FORM_CHOICE | 1 << LK_FORM_UNITS,
     .is_larger_better = true,
     .check = check_auc,
     .add = add_auc,
     .result = auc,
     .help = "area under the ROC curve"},
    {0},
};

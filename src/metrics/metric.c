/* What all metrics have in common: finding a kind, options, memory, counting samples. */
#include "metrics/metric.h"

#include "base/fail.h"
#include <stdlib.h>
#include <string.h>

static const struct lk_metric_kind *const tables[] = {lk_metric_losses, lk_metric_classes,
                                                      lk_metric_rankings};

const struct lk_metric_kind *lk_metric_kind(int index)
{
    for (int t = 0; t < LK_COUNT(tables); t++)
        for (const struct lk_metric_kind *kind = tables[t]; kind->name; kind++)
            if (index-- == 0)
                return kind;
    return NULL;
}

static const char *kind_name(const void *unused, int i)
{
    const struct lk_metric_kind *kind = lk_metric_kind(i);
    (void)unused;
    return kind ? kind->name : NULL;
}

enum lk_status lk_metric_find(const char *name, const struct lk_metric_kind **kind)
{
    for (int i = 0; lk_metric_kind(i); i++)
        if (strcmp(lk_metric_kind(i)->name, name) == 0) {
            *kind = lk_metric_kind(i);
            return LK_OK;
        }
    const char *near = lk_nearest_name(name, kind_name, NULL);
    return lk_fail(LK_E_MODEL, "there is no metric '%.60s'%s%s%s", name,
                   near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static const char *form_name(enum lk_metric_form form)
{
    static const char *const names[] = {
        [LK_FORM_CLASS] = "one class of several",
        [LK_FORM_DISTRIBUTION] = "a weight for each class",
        [LK_FORM_CHOICE] = "yes or no",
        [LK_FORM_UNITS] = "yes or no for each unit",
        [LK_FORM_VALUES] = "numbers",
    };
    return names[form];
}

static enum lk_status set_up(struct lk_metric *metric, const char *options)
{
    const struct lk_metric_kind *kind = metric->kind;
    metric->options = calloc(1, kind->options_bytes + 1);
    metric->state = calloc(1, kind->state_bytes + 1);
    if (!metric->options || !metric->state)
        return lk_fail_memory("a metric", kind->options_bytes + kind->state_bytes);
    const enum lk_status status = lk_options_parse(kind->options, metric->options, options);
    if (status != LK_OK)
        return lk_fail_within(status, "%s", kind->name);
    if (!(kind->forms >> metric->shape.form & 1))
        return lk_fail(LK_E_ARGUMENT, "%s is not defined for an output that predicts %s",
                       kind->name, form_name(metric->shape.form));
    return kind->check ? kind->check(metric->options, &metric->shape) : LK_OK;
}

enum lk_status lk_metric_create(const struct lk_metric_kind *kind, const char *options,
                                const struct lk_metric_shape *shape, struct lk_metric **metric)
{
    struct lk_metric *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("a metric", sizeof *made);
    made->kind = kind;
    made->shape = *shape;
    const enum lk_status status = set_up(made, options);
    if (status != LK_OK) {
        lk_metric_destroy(made);
        return status;
    }
    *metric = made;
    return LK_OK;
}

void lk_metric_destroy(struct lk_metric *metric)
{
    if (!metric)
        return;
    free(metric->options);
    free(metric->state);
    free(metric->memory);
    free(metric);
}

void lk_metric_reset(struct lk_metric *metric)
{
    memset(metric->state, 0, metric->kind->state_bytes);
    metric->samples = 0;
}

enum lk_status lk_metric_add(struct lk_metric *metric, const float *y, const void *target)
{
    metric->samples++;
    return metric->kind->add(metric, y, target);
}

double lk_metric_result(struct lk_metric *metric)
{
    return metric->kind->result(metric);
}

size_t lk_metric_target_bytes(const struct lk_metric_shape *shape)
{
    const bool is_class = shape->form == LK_FORM_CLASS;
    return (size_t)(shape->time_steps * (is_class ? 1 : shape->width)) * sizeof(float);
}

int64_t lk_metric_largest(const float *y, int64_t width)
{
    int64_t best = 0;
    for (int64_t k = 1; k < width; k++)
        if (y[k] > y[best])
            best = k;
    return best;
}

/* Names the figures of an epoch, and says which way they are better. */
#include "train/callbacks/figures.h"

#include "metrics/metric.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

const char *const lk_monitor_modes[] = {
    [LK_MONITOR_AUTO] = "auto", [LK_MONITOR_MIN] = "min", [LK_MONITOR_MAX] = "max", NULL};

void lk_figures_set(struct lk_figures *figures, const char *name, double value)
{
    int i = 0;
    while (i < figures->count && strcmp(figures->items[i].name, name) != 0)
        i++;
    if (i == LK_MOST_FIGURES || strlen(name) >= LK_FIGURE_NAME)
        return;
    memcpy(figures->items[i].name, name, strlen(name) + 1);
    figures->items[i].value = value;
    figures->count += i == figures->count;
}

bool lk_figures_find(const struct lk_figures *figures, const char *name, double *value)
{
    for (int i = 0; i < figures->count; i++)
        if (strcmp(figures->items[i].name, name) == 0) {
            *value = figures->items[i].value;
            return true;
        }
    return false;
}

/* Of one output its name is not mentioned. */
static void set_of_output(struct lk_figures *figures, const char *output, const char *what,
                          double value)
{
    char name[LK_FIGURE_NAME];
    const int length =
        snprintf(name, sizeof name, "val_%s%s%s", output, *output ? "_" : "", what);
    if (length < (int)sizeof name)
        lk_figures_set(figures, name, value);
}

void lk_figures_set_evaluation(struct lk_figures *figures,
                               const struct lk_evaluation *evaluation)
{
    lk_figures_set(figures, "val_loss", evaluation->loss);
    if (!isnan(evaluation->accuracy))
        lk_figures_set(figures, "val_accuracy", evaluation->accuracy);
    for (int i = 0; i < evaluation->output_count; i++) {
        const struct lk_output_evaluation *output = &evaluation->outputs[i];
        const char *name = evaluation->output_count > 1 ? output->name : "";
        if (!output->loss_name)
            continue;
        if (*name)
            set_of_output(figures, name, "loss", output->loss);
        for (int m = 0; m < output->figure_count; m++)
            set_of_output(figures, name, output->figures[m].name, output->figures[m].value);
    }
}

/* Without the metrics of outputs. */
static void set_expected_means(struct lk_figures *figures, bool has_accuracy,
                               bool has_validation)
{
    lk_figures_set(figures, "loss", NAN);
    lk_figures_set(figures, "lr", NAN);
    if (has_accuracy)
        lk_figures_set(figures, "accuracy", NAN);
    if (has_validation)
        lk_figures_set(figures, "val_loss", NAN);
    if (has_validation && has_accuracy)
        lk_figures_set(figures, "val_accuracy", NAN);
}

void lk_figures_set_expected(struct lk_figures *figures, const struct lk_model *model,
                             bool has_accuracy, bool has_validation)
{
    set_expected_means(figures, has_accuracy, has_validation);
    for (int i = 0; has_validation && i < model->output_count; i++) {
        const struct lk_model_output *output = &model->outputs[i];
        const char *name = model->output_count > 1 ? output->name : "";
        if (!output->loss.kind)
            continue;
        if (*name)
            set_of_output(figures, name, "loss", NAN);
        for (int m = 0; m < output->metric_count; m++)
            set_of_output(figures, name, output->metrics[m].label, NAN);
    }
}

/* Whether a name of so many bytes ends with that. */
static bool ends_with(const char *name, size_t bytes, const char *end)
{
    const size_t length = strlen(end);
    return bytes >= length && memcmp(name + bytes - length, end, length) == 0;
}

/* "val_OUTPUT_METRIC(k=2)": of what comes before the metric nothing is known, "val_auc_loss" is
 * a loss. */
bool lk_monitor_is_up(const char *name, int mode)
{
    const struct lk_metric_kind *kind;
    const size_t bytes = strcspn(name, "(");
    size_t longest = 0;
    bool is_up = false;
    for (int i = 0; (kind = lk_metric_kind(i)) != NULL; i++)
        if (strlen(kind->name) > longest && ends_with(name, bytes, kind->name)) {
            longest = strlen(kind->name);
            is_up = kind->is_larger_better;
        }
    return mode == LK_MONITOR_AUTO ? is_up : mode == LK_MONITOR_MAX;
}

bool lk_monitor_is_better(bool is_up, double now, double best, double delta)
{
    return is_up ? now > best + delta : now < best - delta;
}

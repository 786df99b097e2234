/* Losses and metrics of an evaluation as text and as JSON. */
#include "figures.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

const char *loss_text(double loss, char text[32])
{
    snprintf(text, 32, fabs(loss) < 1e6 || isnan(loss) ? "%.4f" : "%.4g", loss);
    return text;
}

const char *percent_text(double share, int digits, char text[32])
{
    if (fabs(share) < 1e4 || isnan(share))
        snprintf(text, 32, "%.*f %%", digits, 100 * share);
    else
        snprintf(text, 32, "%.4g %%", 100 * share);
    return text;
}

const char *figure_text(const struct lk_figure *figure, char text[32])
{
    static const char *const shares[] = {"accuracy", "top_k", "precision", "recall"};
    snprintf(text, 32, "%.6g", figure->value);
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
        if (strncmp(figure->name, shares[i], strlen(shares[i])) == 0)
            snprintf(text, 32, "%.2f %%", 100 * figure->value);
    if (isnan(figure->value))
        snprintf(text, 32, "not defined");
    return text;
}

void output_text(const struct lk_output_evaluation *output, char *text, size_t bytes)
{
    char figure[32];
    char loss[32];
    size_t used = (size_t)snprintf(text, bytes, "loss %s", loss_text(output->loss, loss));
    for (int i = 0; i < output->figure_count && used < bytes; i++)
        used += (size_t)snprintf(text + used, bytes - used, ", %s %s", output->figures[i].name,
                                 figure_text(&output->figures[i], figure));
}

json_t *outputs_json(const struct lk_evaluation *evaluation)
{
    json_t *list = json_array();
    for (int i = 0; i < evaluation->output_count; i++) {
        const struct lk_output_evaluation *o = &evaluation->outputs[i];
        json_t *metrics = json_object();
        for (int m = 0; m < o->figure_count; m++)
            json_object_set_new(metrics, o->figures[m].name, json_number(o->figures[m].value));
        json_array_append_new(list, json_pack("{s:o, s:s?, s:o, s:o, s:o}", "name",
                                              json_text(o->name), "loss_name", o->loss_name,
                                              "loss", json_number(o->loss), "weight",
                                              json_number(o->weight), "metrics", metrics));
    }
    return list;
}

struct class_figures class_figures_of(const struct lk_evaluation *e, int class)
{
    struct class_figures f = {0};
    int64_t predicted = 0;
    for (int i = 0; i < e->classes; i++) {
        f.count += e->confusion[(int64_t) class * e->classes + i];
        predicted += e->confusion[(int64_t)i * e->classes + class];
    }
    const double right = (double)e->confusion[(int64_t) class * e->classes + class];
    f.precision = predicted ? right / (double)predicted : 0;
    f.recall = f.count ? right / (double)f.count : 0;
    if (class < e->named_classes)
        snprintf(f.name, sizeof f.name, "%s", e->class_names[class]);
    else
        snprintf(f.name, sizeof f.name, "%d", class);
    return f;
}

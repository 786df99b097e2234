/* Losses and metrics as text. Sees include/lockstep only. */
#ifndef TOOLS_FIGURES_H
#define TOOLS_FIGURES_H

#include "terminal/json.h"
#include <lockstep/train.h>

/* "0.3210", "1.25e+08" of a loss; "93.25 %" of a share, with so many digits. Never long. */
const char *loss_text(double loss, char text[32]);
const char *percent_text(double share, int digits, char text[32]);

/* "93.25 %" of a share, "0.1234" of another figure, "not defined". */
const char *figure_text(const struct lk_figure *figure, char text[32]);

/* "loss 0.3210, accuracy 93.25 %, top_k 99.10 %" of one output. */
void output_text(const struct lk_output_evaluation *output, char *text, size_t bytes);

/* {"name", "loss_name", "loss", "weight", "metrics"} of each output. */
json_t *outputs_json(const struct lk_evaluation *evaluation);

/* One class: of those predicted so, of those that are so, the share that is right. */
struct class_figures {
    char name[64];
    int64_t count;
    double precision, recall;
};

struct class_figures class_figures_of(const struct lk_evaluation *evaluation, int class);

#endif

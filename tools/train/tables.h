/* What a training shows on a terminal beside its bar: settings, devices and memory at the
 * start, and a row for each evaluation. */
#ifndef TOOLS_TRAIN_TABLES_H
#define TOOLS_TRAIN_TABLES_H

#include "train/progress.h"

void table_of_start(const struct lk_event *event, const struct lk_settings *settings);

/* The first one with headings above it. */
void row_of_evaluation(struct progress *progress, const struct lk_event *event);

#endif

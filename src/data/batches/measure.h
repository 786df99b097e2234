/* What pipelines of one run measure of its training part. Floor 4. */
#ifndef LK_DATA_BATCHES_MEASURE_H
#define LK_DATA_BATCHES_MEASURE_H

#include "data/stages/standardize.h"

/* As lk_pipeline_resolve(), but what was measured before is taken from `known`, which begins as
 * {0}; what is measured now is put there. */
LK_MUST_CHECK enum lk_status lk_pipeline_resolve_again(const struct lk_data *data,
                                                       const char *text,
                                                       struct lk_standardize *known,
                                                       char **resolved);

#endif

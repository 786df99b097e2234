/* The inside of an optimizer, for the files that make it up. Floor 4. */
#ifndef LK_OPTIM_INTERNAL_H
#define LK_OPTIM_INTERNAL_H

#include "optim/adjust.h"
#include "optim/average.h"
#include "optim/rows.h"
#include "optim/scaling.h"

struct lk_optimizer {
    struct lk_optimizer_info info;
    struct lk_kernel *kernel;
    struct lk_elementwise elementwise;
    size_t real_bytes;
    struct lk_scaling *scaling;       /* NULL: the loss is not scaled */
    struct lk_adjustment *adjustment; /* NULL: no factors and no limits */
    struct lk_lazy_rows *rows;        /* NULL: not lazy, or no tables of rows */
    struct lk_average *average;       /* NULL: weights are not averaged */
    struct lk_kernel *track;
    int64_t tracked;
};

#endif

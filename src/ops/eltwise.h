/* The options of functions of one element. Floor 4. */
#ifndef LK_OPS_ELTWISE_H
#define LK_OPS_ELTWISE_H

#include "ops/loss.h"

/* Each function has some of them; the others are 0. */
struct lk_eltwise_options {
    double alpha, beta;
    int takes; /* of a sigmoid: the loss that it has absorbed */
    struct lk_loss_options loss;
};

#endif

/* What the rows of eltwise_table.h and loss_table.h compute, in double, by their own
 * expressions in C: what known answers and tests compare kernels with. Floor 4. */
#ifndef LK_OPS_ORACLE_H
#define LK_OPS_ORACLE_H

#include <stdbool.h>

/* A function of one element; alpha and beta as ops/eltwise.h has them. */
struct lk_function_oracle {
    const char *name, *check; /* options to test with beside the standard ones, or "" */
    bool is_exact;            /* exact where x is a multiple of 1/4 */
    double low, high;         /* x of tests */
    double (*value)(double v, double alpha, double beta);
    double (*slope)(double v, double alpha, double beta);
};

/* The loss of one element: of p against t, as the target is given. */
struct lk_loss_oracle {
    const char *name;
    bool has_labels;  /* takes labels 0 and 1, too */
    double low, high; /* p and t of tests */
    double (*value)(double p, double t, double delta);
    double (*dp)(double p, double t, double delta);
    double (*dt)(double p, double t, double delta);
    bool (*right)(double p, double t);
};

/* One for each row; end with a row without a name. */
extern const struct lk_function_oracle lk_function_oracles[];
extern const struct lk_loss_oracle lk_loss_oracles[];

/* The row of that name; NULL: absent. */
const struct lk_function_oracle *lk_function_oracle_find(const char *name);
const struct lk_loss_oracle *lk_loss_oracle_find(const char *name);

#endif

/* What the oracles of operations on time steps share: lengths of every kind. */
#ifndef TESTS_OPS_SEQUENCE_LENGTHS_H
#define TESTS_OPS_SEQUENCE_LENGTHS_H

#include "../driver.h"

/* Some are below 0, some beyond the sequence, as far off as an int can be. */
static inline void arrange_lengths(const struct lk_op_shapes *shapes, int64_t samples,
                                   double *const x[], double *const w[])
{
    (void)w;
    static const double strange[] = {-1, 2147483647, -2147483647 - 1};
    for (int64_t n = 0; n < samples && shapes->inputs > 1; n++)
        x[1][n] = n % 5 == 4 ? strange[n % 3] : (double)(n % (shapes->x[0].dim[0] + 2));
}

/* The valid steps of sample n. */
static inline int64_t length_of(const struct op_problem *p, const double *const x[], int64_t n)
{
    const int64_t steps = p->shapes->x[0].dim[0];
    const double length = p->shapes->inputs > 1 ? x[1][n] : (double)steps;
    return length < 0 ? 0 : length > (double)steps ? steps : (int64_t)length;
}

/* The windows that are valid of n steps: with "valid" padding those that lie within them, else
 * those whose stride begins there. */
static inline int64_t count_windows(int64_t n, int64_t reach, int64_t stride, bool is_valid)
{
    int64_t count = 0;
    for (int64_t start = 0; is_valid ? start + reach <= n : start < n; start += stride)
        count++;
    return count;
}

#endif

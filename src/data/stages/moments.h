/* Mean and deviation of a run of numbers, in double arithmetic and in their order. Floor 4. */
#ifndef LK_DATA_STAGES_MOMENTS_H
#define LK_DATA_STAGES_MOMENTS_H

#include <math.h>
#include <stdint.h>

/* {0}: no number was added yet. */
struct lk_moments {
    int64_t count;
    double mean, squares; /* squares: sum of squared differences from the mean */
    double least, most;
};

/* source: Welford, "Note on a method for calculating corrected sums of squares and products",
 * Technometrics 4 (1962) */
static inline void lk_moments_add(struct lk_moments *moments, double x)
{
    const double from_old = x - moments->mean;
    moments->least = moments->count == 0 || x < moments->least ? x : moments->least;
    moments->most = moments->count == 0 || x > moments->most ? x : moments->most;
    moments->count++;
    moments->mean += from_old / (double)moments->count;
    const double from_new = x - moments->mean;
    moments->squares += from_old * from_new;
}

/* The population's standard deviation (divided by n, not by n - 1). */
static inline double lk_moments_deviation(const struct lk_moments *moments)
{
    return moments->count > 0 ? sqrt(moments->squares / (double)moments->count) : 0;
}

#endif

/* Statistics of repeated measurements. Floor 6. */
#ifndef LK_BENCH_TIMING_H
#define LK_BENCH_TIMING_H

/* The middle one of `count` values, which are sorted; of two middle ones the larger. */
double lk_median(double *values, int count);

#endif

/* The median. Floor 0. */
#ifndef LK_BASE_MEDIAN_H
#define LK_BASE_MEDIAN_H

/* Sorts values [count], count >= 1, in place; of an even count the upper middle one. */
double lk_median(double *values, int count);

#endif

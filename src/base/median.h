/* The median. Floor 0. */
#ifndef LK_BASE_MEDIAN_H
#define LK_BASE_MEDIAN_H

/* Sorts values [count], count >= 1; of two middle ones the larger. */
double lk_median(double *values, int count);

#endif

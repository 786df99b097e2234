/* Medians and quartiles. Floor 0. */
#ifndef LK_BASE_MEDIAN_H
#define LK_BASE_MEDIAN_H

/* Sorts values [count], count >= 1; returns the one that `quarters` quarters of the others are
 * not above, 0 <= quarters < 4. */
double lk_quartile(double *values, int count, int quarters);

/* The same for two quarters. */
double lk_median(double *values, int count);

#endif

#include "base/median.h"

#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double lk_quartile(double *values, int count, int quarters)
{
    qsort(values, (size_t)count, sizeof *values, compare);
    return values[count * quarters / 4];
}

double lk_median(double *values, int count)
{
    return lk_quartile(values, count, 2);
}

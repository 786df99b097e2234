/* First values of an orthogonal matrix, which are the same to the bit on every host: they take
 * nothing but sums, products, quotients and square roots of doubles, in one order. */
#include "base/orthogonal.h"

#include "base/fail.h"
#include "base/random.h"
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

/* Sums are made in so many parts, which compilers can compute side by side. */
enum { PARTS = 8 };

/* The sum of twelve uniform numbers less 6: normal for what it is needed for, without a
 * logarithm, whose last bit differs between libraries. */
static double normal(uint64_t seed, uint32_t stream, int64_t e)
{
    double sum = -6;
    for (uint64_t k = 0; k < 3; k++) {
        const struct lk_random4 r =
            lk_random(seed, LK_RANDOM_INIT, stream, (uint64_t)e * 3 + k);
        for (int i = 0; i < 4; i++)
            sum += lk_random_unit(r.v[i]);
    }
    return sum;
}

static double dot(const double *a, const double *b, int64_t count)
{
    double part[PARTS] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + PARTS <= count; i += PARTS)
        for (int k = 0; k < PARTS; k++)
            part[k] += a[i + k] * b[i + k];
    for (; i < count; i++)
        part[0] += a[i] * b[i];
    for (int k = 0; k < PARTS; k++)
        sum += part[k];
    return sum;
}

/* Gram's and Schmidt's process on rows no longer than they are many. Twice, since rows that
 * were close to each other are not orthogonal enough after once. */
static void orthogonalize(double *rows, int64_t count, int64_t length)
{
    for (int64_t i = 0; i < count; i++) {
        double *row = rows + i * length;
        for (int64_t before = 0; before < 2 * i; before++) {
            const double *other = rows + before % i * length;
            const double share = dot(row, other, length);
            for (int64_t k = 0; k < length; k++)
                row[k] -= share * other[k];
        }
        const double size = sqrt(dot(row, row, length));
        for (int64_t k = 0; k < length; k++)
            row[k] = size > 0 ? row[k] / size : 0;
    }
}

enum lk_status lk_make_orthogonal(int64_t rows, int64_t columns, uint64_t seed, uint32_t stream,
                                  double **values)
{
    const int64_t count = rows * columns;
    const bool is_tall = rows > columns;
    double *made = malloc((size_t)count * sizeof *made);
    if (!made)
        return lk_fail_memory("an orthogonal matrix", (size_t)count * sizeof *made);
    for (int64_t e = 0; e < count; e++)
        made[e] = normal(seed, stream, e);
    orthogonalize(made, is_tall ? columns : rows, is_tall ? rows : columns);
    *values = made;
    if (!is_tall)
        return LK_OK;
    *values = malloc((size_t)count * sizeof *made);
    for (int64_t e = 0; *values && e < count; e++)
        (*values)[e] = made[e % columns * rows + e / columns];
    free(made);
    return *values ? LK_OK
                   : lk_fail_memory("an orthogonal matrix", (size_t)count * sizeof *made);
}

/* Elementwise kernels over one long array. -D: ITEMS: work-items of a group, GROUP: vectors
 * that a group handles, its work-items taking neighbouring ones in turn. Needs lib/real.cl. */
#define UPDATE_KERNEL __kernel WIDE __attribute__((reqd_work_group_size(ITEMS, 1, 1)))

#define SINGLE_KERNEL __kernel __attribute__((reqd_work_group_size(1, 1, 1)))

#define FOR_EACH(i, vectors)                                                                   \
    for (int i = (int)get_group_id(0) * GROUP + (int)get_local_id(0),                          \
             i##_end = min((int)(get_group_id(0) + 1) * GROUP, vectors);                       \
         i < i##_end; i += ITEMS)

/* Numbers in `scaling`, where the loss is scaled (null: it is not): the scale of the next
 * step's loss; 1 / the scale of these gradients, or 0: there is no update; an int: whether some
 * gradient of the step was not finite; steps since the scale changed; steps that made no
 * update. */
#define SCALING_SCALE 0
#define SCALING_INVERSE 1
#define SCALING_FOUND 2
#define SCALING_GOOD 3
#define SCALING_SKIPPED 4

#define IS_SKIPPED(scaling) ((scaling) && (scaling)[SCALING_INVERSE] == 0)
#define UNSCALED(scale, scaling) ((scaling) ? (scale) * (scaling)[SCALING_INVERSE] : (scale))

/* Columns of the factors below. */
#define FACTOR_RATE 0
#define FACTOR_DECAY 1
#define FACTOR_L1 2
#define FACTOR_L2 3

/* With -DADJUSTED=1 (src/optim/adjust.h) an update's kernel takes ADJUSTMENTS too: factors,
 * real [columns][blocks], of the BLOCK parameters of each block (null: all are 1); norm, whose
 * first real multiplies the gradient (null: it is 1); most, above which no gradient may be in
 * size. A factor of 1 and a penalty of 0 change no bit. Without it the macros change nothing.
 * `first` and i are those of the kernel. */
#if ADJUSTED
#define BLOCK 128
#define ADJUSTMENTS                                                                            \
    , __global const real *factors, int blocks, __global const real *norm, real most
#define FACTOR(column, i)                                                                      \
    (factors ? factors[(column)*blocks + (first + (i)) / (BLOCK / VECTOR)] : (real)1)
#define RATE(rate, i) ((rate)*FACTOR(FACTOR_RATE, i))
#define DECAY(decay, i) ((decay)*FACTOR(FACTOR_DECAY, i))
#define KEEP(keep, i) (1 - (1 - (keep)) * FACTOR(FACTOR_RATE, i) * FACTOR(FACTOR_DECAY, i))
#define CLIPPED_NORM(times) (norm ? (times)*norm[0] : (times))
#define CLIPPED(d) clip_value(d, (V)(most))
#define PENALIZED(d, w, i)                                                                     \
    (factors ? penalize(d, w, FACTOR(FACTOR_L1, i), FACTOR(FACTOR_L2, i)) : (d))

/* Adds the gradient of l1 sum |w| + l2 sum w^2. */
INLINE V penalize(V d, V w, real l1, real l2)
{
    if (l1 != 0)
        d += l1 * sign(w);
    if (l2 != 0)
        d += 2 * l2 * w;
    return d;
}

/* A value that is no number stays none. */
INLINE V clip_value(V d, V most)
{
    return d > most ? most : d < -most ? -most : d;
}
#else
#define ADJUSTMENTS
#define RATE(rate, i) (rate)
#define DECAY(decay, i) (decay)
#define KEEP(keep, i) (keep)
#define CLIPPED_NORM(times) (times)
#define CLIPPED(d) (d)
#define PENALIZED(d, w, i) (d)
#endif

/* With -DLAZY=1 (src/optim/rows.h) an update's kernel takes LAZINESS too: it begins at vector
 * `from` of g; what it updates are rows of `units` numbers, of which those with touched[row] 0
 * stay as they are, with all of their state; units 0: it is no table, and all is updated. With
 * `numbers` row n of g belongs to row numbers[n] of the table, or to none (-1), and units are a
 * multiple of VECTOR. The kernel says which vector i of w belongs to vector k of g, leaving out
 * those that stay (IF_TOUCHED), and what a number becomes that may be in a row that stays
 * (MOVED). Without it the macros change nothing.
 *
 * With -DLAZY=2 all rows move, but the gradient of a table is as with `numbers`, which then has
 * for each row of the table the row of g that is its gradient; -1: it is 0. */
#if LAZY
#define LAZINESS                                                                               \
    , int from, int units, __global const int *restrict touched,                               \
        __global const int *restrict numbers
#define FROM from

/* The vector of numbers[row] that is vector k of rows; -1: there is no such row. */
INLINE int find_vector(int k, int units, __global const int *restrict numbers)
{
    const int vectors = units / VECTOR, row = numbers[k / vectors];
    return row < 0 ? -1 : row * vectors + k % vectors;
}
#else
#define LAZINESS
#define FROM 0
#endif

#if LAZY == 1
#define IF_TOUCHED(i, k)                                                                       \
    const V is_touched = find_touched(k, units, touched);                                      \
    if (units && !touches(is_touched))                                                         \
        continue;                                                                              \
    const int i = numbers ? find_vector(k, units, numbers) : k;                                \
    if (i < 0)                                                                                 \
        continue;
#define MOVED(y, old) (is_touched > (V)0 ? (y) : (old))

typedef union {
    real lane[VECTOR];
    V all;
} touched_lanes;

INLINE bool touches(V is_touched)
{
#if VECTOR > 1
    return any(is_touched > (V)0);
#else
    return is_touched > 0;
#endif
}

/* Of each number of vector i: 1 if its row is touched, 0 if not. Few vectors lie in more rows
 * than one. */
INLINE V find_touched(int i, int units, __global const int *restrict touched)
{
    if (!units)
        return (V)1;
    const int at = i * VECTOR, row = at / units;
    if (VECTOR == 1 || units - (at - row * units) >= VECTOR)
        return (V)((real)touched[row]);
    touched_lanes found;
    for (int v = 0; v < VECTOR; v++)
        found.lane[v] = touched[(at + v) / units];
    return found.all;
}
#else
#define IF_TOUCHED(i, k) const int i = k;
#define MOVED(y, old) (y)
#endif

#if LAZY == 2
#define GRADIENT(k) find_gradient(g, k, units, numbers)

INLINE V find_gradient(__global const V *restrict g, int k, int units,
                       __global const int *restrict numbers)
{
    const int of_row = units ? find_vector(k, units, numbers) : k;
    return of_row < 0 ? (V)0 : g[of_row];
}
#else
#define GRADIENT(k) g[k]
#endif

/* Losses of predictions p against targets t, element by element.
 *
 *   loss_forward   y = [sum_i e(p[i], t[i]) / count, right / count], right: how many p[i] are
 *   loss_finish    the same of the sums of `chunks` chunks
 *   loss_backward  dx[i] = de/dp(p[i], t[i]) scale weight / count, dt[i] = de/dt ...
 *
 * -D SELECTED=LOSS_<name>: the row of ops/loss_table.h that has e. Tensors: stored
 * [tiles][count][LANES]. -D LABELS: t are int32 labels [tiles][1][LANES], 0 or 1; others mark
 * dead lanes. Without, lanes that have no sample (as in convert.cl) are dead. Their loss, right
 * and gradients are 0.
 *
 * Group id 0: a chunk of `each` elements of a tile; where a tile has several chunks,
 * loss_forward leaves sums[tiles][chunks][2][LANES], and loss_finish adds them, a group a tile.
 * Work-items: PARTS of a tile.
 */
#include "lib/real.cl"
#include "lib/alive.cl"
#include "lib/loss.cl"
#include "ops/loss_table.h"

#define ZERO ((V)0)
#define ONE ((V)1)
#define HALF ((V)(NUMBER(0.5)))
#define SIGMOID(x) (ONE / (ONE + exp(-(x))))
#define SIGN(d) ((d) > ZERO ? ONE : (d) < ZERO ? -ONE : ZERO)
#define CUT(d) ((d) > (V)delta ? (V)delta : (d) < (V)-delta ? (V)-delta : (d))
#define NEVER ((I)(0))
#define AS_GIVEN(t) (t)
#define AS_SIGN(t) ((t) == ZERO ? -ONE : (t))

/* Numbers the rows of the table, each with four expressions in C behind those in OpenCL. All
 * arguments are named, since OpenCL has no variadic macros. */
#define NUMBERED(name, options, answers, target, low, high, value, dp, dt, right, c, d, e, f)  \
    LOSS_##name,
#define VALUE(name, options, answers, target, low, high, value, dp, dt, right, c, d, e, f)     \
    case LOSS_##name: {                                                                        \
        const V t = target(given);                                                             \
        *is_right = right;                                                                     \
        return value;                                                                          \
    }
#define SLOPES(name, options, answers, target, low, high, value, dp, dt, right, c, d, e, f)    \
    case LOSS_##name: {                                                                        \
        const V t = target(given);                                                             \
        *dt_of = dt;                                                                           \
        return dp;                                                                             \
    }

INLINE V value_of(V p, V given, real delta, I *is_right)
{
    enum { LK_LOSSES(NUMBERED) };
    switch (SELECTED) {
        LK_LOSSES(VALUE)
    }
    return p;
}

INLINE V slopes_of(V p, V given, real delta, V *dt_of)
{
    enum { LK_LOSSES(NUMBERED) };
    switch (SELECTED) {
        LK_LOSSES(SLOPES)
    }
    return p;
}

#ifdef LABELS
typedef __global const int *targets;
#define TARGET(t, at) (is_one)
#define TARGETS_OF(t, tile)                                                                    \
    const I label = labels_of(t, tile), lives = is_alive(label, 2);                            \
    const V is_one = label == (I)(1) ? ONE : ZERO
#else
typedef __global const S *targets;
#define TARGET(t, at) LOAD(t + at)
#define TARGETS_OF(t, tile)                                                                    \
    const I lives = alive_lanes(tile, samples, shard_samples, shard_tiles) > ZERO
#endif

KERNEL void loss_forward(__global const S *restrict p, targets restrict t, __global V *y,
                         __global V *sums, int count, int each, int chunks, real delta,
                         int samples, int shard_samples, int shard_tiles)
{
    const int group = get_group_id(0), tile = group / chunks;
    const int first = group % chunks * each, last = min(count, first + each);
    TARGETS_OF(t, tile);
    V sum = ZERO, right = ZERO;
    for (int i = first; i < last; i++) {
        const size_t at = ((size_t)tile * count + i) * PARTS + PART;
        I is_right;
        sum += value_of(LOAD(p + at), TARGET(t, at), delta, &is_right);
        right += is_right ? ONE : ZERO;
    }
    if (chunks == 1) {
        write_loss(y, tile, sum / (V)(count), right / (V)(count), lives);
    } else {
        write_loss(sums, group, sum, right, lives);
    }
}

KERNEL void loss_finish(__global const V *restrict sums, __global V *restrict y, int count,
                        int chunks)
{
    const int tile = get_group_id(0);
    V sum = ZERO, right = ZERO;
    sums += (size_t)tile * chunks * 2 * PARTS + PART;
    for (int i = 0; i < chunks; i++) {
        sum += sums[(2 * i) * PARTS];
        right += sums[(2 * i + 1) * PARTS];
    }
    write_loss(y, tile, sum / (V)(count), right / (V)(count), ONE > ZERO);
}

KERNEL void loss_backward(__global const S *restrict p, targets restrict t,
                          __global S *restrict dx, __global S *restrict dt, int count, int each,
                          int chunks, real delta, int samples, int shard_samples,
                          int shard_tiles, __global const real *loss_scale, real weight)
{
    const int group = get_group_id(0), tile = group / chunks;
    const int first = group % chunks * each, last = min(count, first + each);
    const real times = SCALE_OF(loss_scale) * weight / (real)count;
    TARGETS_OF(t, tile);
    for (int i = first; i < last; i++) {
        const size_t at = ((size_t)tile * count + i) * PARTS + PART;
        V dt_of;
        const V dp = slopes_of(LOAD(p + at), TARGET(t, at), delta, &dt_of);
        if (dx)
            STORE(dx + at, lives ? dp * times : ZERO);
        if (dt)
            STORE(dt + at, lives ? dt_of * times : ZERO);
    }
}

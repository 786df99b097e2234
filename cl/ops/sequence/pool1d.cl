/* The largest number of a channel in each window of time steps, or the mean.
 *
 *   max_forward    y[o,c] = the largest x[t,c] of window o; at[o,c] = the first such t
 *
 *   max_backward   dx[t,c] = the sum of dy[o,c] over windows with at[o,c] = t
 *
 *   mean_forward   y[o,c] = the mean of x[t,c] over window o
 *
 *   mean_backward  dx[t,c] = the sum of dy[o,c] / (steps of window o) over windows with t
 *
 * Windows: struct lk_step_windows, gap 1; only the valid steps of a sample are in them. y is 0
 * of a window that is not valid, or has no step. x, dx: stored [tiles][steps][channels][LANES];
 * y, dy: stored [tiles][count][channels][LANES]; at: ints of the width of a real likewise, or
 * null; length: lib/steps.cl. Sums run from the first step, or window, on.
 *
 * Group ids: 0: `each` numbers of y (forward) or of dx (backward); 1: tile.
 */
#include "lib/real.cl"
#include "lib/steps.cl"
#include "ops/args.h"

/* The windows with step t: from the first to the last. */
#define FIRST_WITH(t, w)                                                                       \
    ((t) + (w).before < (w).size ? 0 : ((t) + (w).before - (w).size) / (w).stride + 1)
#define LAST_WITH(t, w) min(((t) + (w).before) / (w).stride, (w).count - 1)

KERNEL void max_forward(__global const S *restrict x, __global const int *restrict length,
                        __global I *restrict at, __global S *restrict y,
                        struct lk_step_windows w)
{
    const size_t tile = get_group_id(1);
    const int first = get_group_id(0) * w.each;
    const int end = min(first + w.each, w.count * w.channels);
    const I n = valid_steps_here(length, tile, w.steps);
    const I windows = valid_windows(n, w.lack, w.stride);
    for (int e = first; e < end; e++) {
        const int o = e / w.channels, c = e % w.channels, start = o * w.stride - w.before;
        V best = (V)0;
        I place = (I)(-1);
        for (int t = max(start, 0); t < min(start + w.size, w.steps); t++) {
            const V value = LOAD(x + ((tile * w.steps + t) * w.channels + c) * PARTS + PART);
            const I wins =
                ((I)t < n) & ((I)o < windows) & ((place < (I)0) | TO_I(value > best));
            best = wins ? value : best;
            place = wins ? (I)t : place;
        }
        STORE(y + (tile * w.count * w.channels + e) * PARTS + PART, best);
        if (at)
            at[(tile * w.count * w.channels + e) * PARTS + PART] = place;
    }
}

KERNEL void max_backward(__global const S *restrict dy, __global const int *restrict length,
                         __global const I *restrict at, __global S *restrict dx,
                         struct lk_step_windows w)
{
    const size_t tile = get_group_id(1);
    const int first = get_group_id(0) * w.each;
    const int end = min(first + w.each, w.steps * w.channels);
    for (int e = first; e < end; e++) {
        const int t = e / w.channels, c = e % w.channels;
        V sum = (V)0;
        for (int o = FIRST_WITH(t, w); o <= LAST_WITH(t, w); o++) {
            const size_t k = ((tile * w.count + o) * w.channels + c) * PARTS + PART;
            sum += at[k] == (I)t ? LOAD(dy + k) : (V)0;
        }
        STORE(dx + (tile * w.steps * w.channels + e) * PARTS + PART, sum);
    }
}

/* How many valid steps are in window o of each lane, at least 1. */
INLINE V steps_in(I n, int o, const struct lk_step_windows *w)
{
    const int start = o * w->stride - w->before;
    const I end = n < (I)(start + w->size) ? n : (I)(start + w->size);
    const I count = end - max(start, 0);
    return STEPS_TO_V(count > (I)1 ? count : (I)1);
}

KERNEL void mean_forward(__global const S *restrict x, __global const int *restrict length,
                         __global I *restrict at, __global S *restrict y,
                         struct lk_step_windows w)
{
    const size_t tile = get_group_id(1);
    const int first = get_group_id(0) * w.each;
    const int end = min(first + w.each, w.count * w.channels);
    const I n = valid_steps_here(length, tile, w.steps);
    const I windows = valid_windows(n, w.lack, w.stride);
    for (int e = first; e < end; e++) {
        const int o = e / w.channels, c = e % w.channels, start = o * w.stride - w.before;
        V sum = (V)0;
        for (int t = max(start, 0); t < min(start + w.size, w.steps); t++) {
            const V value = LOAD(x + ((tile * w.steps + t) * w.channels + c) * PARTS + PART);
            sum += (I)t < n ? value : (V)0;
        }
        STORE(y + (tile * w.count * w.channels + e) * PARTS + PART,
              (I)o < windows ? sum / steps_in(n, o, &w) : (V)0);
    }
}

KERNEL void mean_backward(__global const S *restrict dy, __global const int *restrict length,
                          __global const I *restrict at, __global S *restrict dx,
                          struct lk_step_windows w)
{
    const size_t tile = get_group_id(1);
    const int first = get_group_id(0) * w.each;
    const int end = min(first + w.each, w.steps * w.channels);
    const I n = valid_steps_here(length, tile, w.steps);
    const I windows = valid_windows(n, w.lack, w.stride);
    for (int e = first; e < end; e++) {
        const int t = e / w.channels, c = e % w.channels;
        V sum = (V)0;
        for (int o = FIRST_WITH(t, w); o <= LAST_WITH(t, w); o++) {
            const size_t k = ((tile * w.count + o) * w.channels + c) * PARTS + PART;
            sum += (I)o < windows ? LOAD(dy + k) / steps_in(n, o, &w) : (V)0;
        }
        STORE(dx + (tile * w.steps * w.channels + e) * PARTS + PART, (I)t < n ? sum : (V)0);
    }
}

/* What a convolution over time does beside its products.
 *
 *   conv1d_copy    rows[o,j,c] = x[o stride + j gap - before, c]; 0 where there is no such
 *                  step, it is not valid, or window o is not
 *
 *   conv1d_add     dx[t,c] = the sum of rows[o,j,c] over valid windows o whose step j is t; 0
 *                  where t is not valid
 *
 *   conv1d_finish  to[o,k] = from[o,k] where window o is valid and, with RELU, y[o,k] > 0;
 *                  else 0
 *
 * Windows: struct lk_step_windows. x, dx: stored [tiles][steps][channels][LANES]; rows: stored
 * [tiles][count][size][channels][LANES]; from, y, to: stored [tiles][count][filters][LANES];
 * length: lib/steps.cl. Sums run from j = 0 on.
 *
 * -D: RELU (0, 1). Group ids: 0: `each` windows, or steps of dx; 1: tile.
 */
#include "lib/real.cl"
#include "lib/steps.cl"
#include "ops/args.h"

KERNEL void conv1d_copy(__global const S *restrict x, __global const int *restrict length,
                        __global S *restrict rows, struct lk_step_windows w)
{
    const size_t tile = get_group_id(1);
    const int first = get_group_id(0) * w.each, end = min(first + w.each, w.count);
    const I n = valid_steps_here(length, tile, w.steps);
    const I windows = valid_windows(n, w.lack, w.stride);
    for (int o = first; o < end; o++)
        for (int j = 0; j < w.size; j++) {
            const int t = o * w.stride + j * w.gap - w.before;
            const bool is_there = t >= 0 && t < w.steps;
            const I is_valid = ((I)t < n) & ((I)o < windows);
            __global const S *from =
                x + (tile * w.steps + (is_there ? t : 0)) * w.channels * PARTS + PART;
            __global S *to =
                rows + ((tile * w.count + o) * w.size + j) * w.channels * PARTS + PART;
            for (int c = 0; c < w.channels; c++) {
                const V value = LOAD(from + c * PARTS);
                STORE(to + c * PARTS, is_there ? (is_valid ? value : (V)0) : (V)0);
            }
        }
}

KERNEL void conv1d_add(__global const S *restrict rows, __global const int *restrict length,
                       __global S *restrict dx, struct lk_step_windows w)
{
    const size_t tile = get_group_id(1);
    const int first = get_group_id(0) * w.each, end = min(first + w.each, w.steps);
    const I n = valid_steps_here(length, tile, w.steps);
    const I windows = valid_windows(n, w.lack, w.stride);
    for (int t = first; t < end; t++)
        for (int c = 0; c < w.channels; c++) {
            V sum = (V)0;
            for (int j = 0; j < w.size; j++) {
                const int start = t + w.before - j * w.gap, o = start / w.stride;
                if (start < 0 || start % w.stride != 0 || o >= w.count)
                    continue;
                const size_t k = ((tile * w.count + o) * w.size + j) * w.channels + c;
                sum += (I)o < windows ? LOAD(rows + k * PARTS + PART) : (V)0;
            }
            STORE(dx + ((tile * w.steps + t) * w.channels + c) * PARTS + PART,
                  (I)t < n ? sum : (V)0);
        }
}

/* from, to, y: some are the same. */
KERNEL void conv1d_finish(__global const S *from, __global const S *y,
                          __global const int *restrict length, __global S *to, int filters,
                          struct lk_step_windows w)
{
    const size_t tile = get_group_id(1);
    const int first = get_group_id(0) * w.each, end = min(first + w.each, w.count);
    const I windows = valid_windows(valid_steps_here(length, tile, w.steps), w.lack, w.stride);
    for (int o = first; o < end; o++) {
        const I is_valid = (I)o < windows;
        const size_t at = (tile * w.count + o) * filters * PARTS + PART;
        for (int k = 0; k < filters; k++) {
            const I passes = RELU ? is_valid & TO_I(LOAD(y + at + k * PARTS) > (V)0) : is_valid;
            STORE(to + at + k * PARTS, passes ? LOAD(from + at + k * PARTS) : (V)0);
        }
    }
}

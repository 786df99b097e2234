/* Time steps that are picked by the length n of each sample.
 *
 *   last_forward   y[c] = x[n - 1][c]; 0 where n is 0
 *   last_backward  dx[t][c] = dy[c] where t is n - 1, else 0
 *   reverse        y[t][c] = x[n - 1 - t][c]; 0 where t >= n
 *
 * x, dx, and y of reverse: stored [tiles][steps][channels][LANES]; y, dy of last: stored
 * [tiles][channels][LANES]; length: lib/steps.cl.
 *
 * Group ids: 0: `each` time steps of dx, or of y of reverse; 1: tile.
 */
#include "lib/real.cl"
#include "lib/steps.cl"

typedef union {
    real lane[VECTOR];
    V all;
} lanes;

/* to[c] = from[step of the lane][c], 0 where the step is below 0. */
INLINE void pick(__global const S *restrict from, __global S *restrict to,
                 const int step[VECTOR], int channels)
{
    for (int c = 0; c < channels; c++) {
        lanes value;
        for (int v = 0; v < VECTOR; v++) {
            const size_t row = (size_t)max(step[v], 0) * channels + c;
            __global const stored *place =
                (__global const stored *)from + row * LANES + PART * VECTOR + v;
            value.lane[v] = step[v] < 0 ? 0 : LOAD_LANE(place);
        }
        STORE(to + c * PARTS + PART, value.all);
    }
}

KERNEL void last_forward(__global const S *restrict x, __global const int *restrict length,
                         __global S *restrict y, int steps, int channels, int each)
{
    const size_t tile = get_group_id(1);
    int step[VECTOR];
    for (int v = 0; v < VECTOR; v++)
        step[v] = valid_steps(length, tile, PART * VECTOR + v, steps) - 1;
    pick(x + tile * steps * channels * PARTS, y + tile * channels * PARTS, step, channels);
}

KERNEL void last_backward(__global const S *restrict dy, __global const int *restrict length,
                          __global S *restrict dx, int steps, int channels, int each)
{
    const size_t tile = get_group_id(1);
    const int first = get_group_id(0) * each, end = min(first + each, steps);
    const I last = valid_steps_here(length, tile, steps) - 1;
    for (int t = first; t < end; t++)
        for (int c = 0; c < channels; c++)
            STORE(dx + ((tile * steps + t) * channels + c) * PARTS + PART,
                  last == (I)t ? LOAD(dy + (tile * channels + c) * PARTS + PART) : (V)0);
}

KERNEL void reverse(__global const S *restrict x, __global const int *restrict length,
                    __global S *restrict y, int steps, int channels, int each)
{
    const size_t tile = get_group_id(1);
    const int first = get_group_id(0) * each, end = min(first + each, steps);
    for (int t = first; t < end; t++) {
        int step[VECTOR];
        for (int v = 0; v < VECTOR; v++)
            step[v] = valid_steps(length, tile, PART * VECTOR + v, steps) - 1 - t;
        pick(x + tile * steps * channels * PARTS, y + (tile * steps + t) * channels * PARTS,
             step, channels);
    }
}

/* Softmax and the cross-entropy behind it, over the channels k of every sample.
 *
 *   softmax_forward   y[t,k,l] = e^(x[k] - m) / sum_j e^(x[j] - m), m = max_j x[j]
 *   softmax_backward  dx = y (dy - sum_j dy[j] y[j])
 *   logits_forward    y = [e(label), correct], e(k) = log(sum_j e^(x[j] - m)) + m - x[k];
 *                     saved[t,2,l] = [m, sum]
 *   logits_backward   dx[k] = (e^(x[k] - m) / sum - (k == label)) times, times = scale weight
 *   entropy_forward   y = [e(label), correct], e(k) = -log(clip(x[k])), to [1e-7, 1 - 1e-7]
 *   entropy_backward  dx[k] = k == label and x[k] not clipped ? -times / x[k] : 0
 *   entropy_mean      y = sum over the n time steps that have a label / n; counts = n
 *
 * correct: 1 where the first largest x is that of the label. A label outside 0 .. channels - 1
 * marks a dead lane: loss, correct and gradient are 0. Of a sequence it marks a masked time
 * step. There the first four kernels treat each time step like a tile of its own, entropy_mean
 * makes the sample's y of theirs (0 where all are masked), and a gradient is divided by n.
 * counts[tiles][LANES] lie in `saved`, behind what the time steps have there.
 * -D DENSE: the last four take targets t[k], a weight of each channel, in place of labels:
 *
 *   logits_forward, entropy_forward    y = [sum_k t[k] e(k), correct]
 *   logits_backward                    dx[k] = sum_j t[j] e^(x[k] - m) / sum - t[k]
 *   entropy_backward                   dx[k] = x[k] not clipped ? -t[k] / x[k] : 0
 *   both                               dt[k] = e(k)
 *
 * The label is then the first largest t. Lanes without a sample (as in convert.cl) are dead,
 * and those of targets with no sum above 0. Where t is 1 for the label and else 0, the bits are
 * those of the label.
 *
 * Group id 0: tile (softmax: and time step, or pixel of an image). Work-items: PARTS of a tile.
 */
#include "lib/real.cl"
#include "lib/alive.cl"
#include "lib/loss.cl"

/* The largest of the channels, `step` apart, and the number of the first that is. */
INLINE V largest(__global const S *x, int channels, size_t step, I *where)
{
    V most = LOAD(x + PART);
    *where = (I)(0);
    for (int k = 1; k < channels; k++) {
        const V v = LOAD(x + k * step + PART);
        const I more = v > most;
        most = more ? v : most;
        *where = more ? (I)(k) : *where;
    }
    return most;
}

/* Where a group's first channel is: of an image's pixel, else of a tile or a time step. */
INLINE size_t first_channel(size_t group, int channels, int pixels)
{
    return (group / pixels * channels * pixels + group % pixels) * PARTS;
}

KERNEL void softmax_forward(__global const S *restrict x, __global S *restrict y, int channels,
                            int pixels GROUP_ARGS)
{
    const size_t at = first_channel(GROUP_ID(0), channels, pixels);
    const size_t step = (size_t)pixels * PARTS;
    I where;
    x += at;
    y += at + PART;
    const V most = largest(x, channels, step, &where);
    V sum = (V)(0);
    for (int k = 0; k < channels; k++) {
        const V v = exp(LOAD(x + k * step + PART) - most);
        STORE(y + k * step, v);
        sum += v;
    }
    for (int k = 0; k < channels; k++)
        STORE(y + k * step, LOAD(y + k * step) / sum);
}

KERNEL void softmax_backward(__global const S *restrict y, __global const S *restrict dy,
                             __global S *restrict dx, int channels, int pixels)
{
    const size_t at = first_channel(get_group_id(0), channels, pixels) + PART;
    const size_t step = (size_t)pixels * PARTS;
    V sum = (V)(0);
    for (int k = 0; k < channels; k++)
        sum = FMA(LOAD(dy + at + k * step), LOAD(y + at + k * step), sum);
    for (int k = 0; k < channels; k++)
        STORE(dx + at + k * step,
              LOAD(y + at + k * step) * (LOAD(dy + at + k * step) - sum));
}

#define ONE_IF(is_so) ((is_so) ? (V)(1) : (V)(0))

#ifndef DENSE

/* x[label]; 0 where no channel has that number. */
INLINE V at_label(__global const S *x, int channels, I label)
{
    V v = (V)(0);
    for (int k = 0; k < channels; k++)
        v = label == (I)(k) ? LOAD(x + k * PARTS + PART) : v;
    return v;
}

/* What the gradient of group id 0, a tile or one of its time steps, is multiplied by. */
INLINE V times_of(__global const real *loss_scale, real weight, __global const V *counts,
                  int time_steps)
{
    const V times = (V)(SCALE_OF(loss_scale) * weight);
    return time_steps > 1 ? times / counts[get_group_id(0) / time_steps * PARTS + PART] : times;
}

KERNEL void logits_forward(__global const S *restrict x, __global const int *restrict labels,
                           __global V *restrict y, __global V *restrict saved, int channels)
{
    const int tile = get_group_id(0);
    const I label = labels_of(labels, tile);
    I where;
    x += (size_t)tile * channels * PARTS;
    const V most = largest(x, channels, PARTS, &where);
    V sum = (V)(0);
    for (int k = 0; k < channels; k++)
        sum += exp(LOAD(x + k * PARTS + PART) - most);
    if (saved) {
        saved += (size_t)tile * 2 * PARTS + PART;
        saved[0] = most;
        saved[PARTS] = sum;
    }
    const V loss = log(sum) + (most - at_label(x, channels, label));
    write_loss(y, tile, loss, ONE_IF(where == label), is_alive(label, channels));
}

KERNEL void logits_backward(__global const S *restrict x, __global const int *restrict labels,
                            __global const V *restrict saved, __global S *restrict dx,
                            int channels, __global const real *loss_scale, real weight,
                            int time_steps)
{
    const int tile = get_group_id(0);
    const I label = labels_of(labels, tile), lives = is_alive(label, channels);
    const size_t at = (size_t)tile * channels * PARTS + PART;
    const V times = times_of(loss_scale, weight,
                             saved + (size_t)get_num_groups(0) * 2 * PARTS, time_steps);
    saved += (size_t)tile * 2 * PARTS + PART;
    const V most = saved[0], sum = saved[PARTS];
    for (int k = 0; k < channels; k++) {
        const V y = exp(LOAD(x + at + k * PARTS) - most) / sum;
        const V one = label == (I)(k) ? (V)(1) : (V)(0);
        STORE(dx + at + k * PARTS, lives ? (y - one) * times : (V)(0));
    }
}

KERNEL void entropy_forward(__global const S *restrict x, __global const int *restrict labels,
                            __global V *restrict y, int channels)
{
    const int tile = get_group_id(0);
    const I label = labels_of(labels, tile);
    I where;
    x += (size_t)tile * channels * PARTS;
    largest(x, channels, PARTS, &where);
    const V p = at_label(x, channels, label);
    write_loss(y, tile, -log(clip(p)), ONE_IF(where == label), is_alive(label, channels));
}

KERNEL void entropy_backward(__global const S *restrict x, __global const int *restrict labels,
                             __global const V *restrict saved, __global S *restrict dx,
                             int channels, __global const real *loss_scale, real weight,
                             int time_steps)
{
    const int tile = get_group_id(0);
    const I label = labels_of(labels, tile);
    const size_t at = (size_t)tile * channels * PARTS + PART;
    const V times = times_of(loss_scale, weight, saved, time_steps);
    for (int k = 0; k < channels; k++) {
        const V p = LOAD(x + at + k * PARTS);
        const I counts = label == (I)(k) && p >= LEAST && p <= MOST;
        STORE(dx + at + k * PARTS, counts ? -times / p : (V)(0));
    }
}

KERNEL void entropy_mean(__global const V *restrict each, __global const int *restrict labels,
                         __global V *restrict y, __global V *restrict saved, int counts_at,
                         int channels, int time_steps)
{
    const int tile = get_group_id(0);
    V loss = (V)(0), correct = (V)(0), count = (V)(0);
    for (int t = tile * time_steps; t < (tile + 1) * time_steps; t++) {
        loss += each[(size_t)t * 2 * PARTS + PART];
        correct += each[((size_t)t * 2 + 1) * PARTS + PART];
        count += ONE_IF(is_alive(labels_of(labels, t), channels));
    }
    if (saved)
        saved[((size_t)counts_at + tile) * PARTS + PART] = count;
    write_loss(y, tile, loss / count, correct / count, count > (V)(0));
}

#else

/* Which lanes have a sample and a target with some weight. */
INLINE I are_alive(V weight, int samples, int shard_samples, int shard_tiles)
{
    return alive_lanes(get_group_id(0), samples, shard_samples, shard_tiles) > (V)(0) &&
           weight > (V)(0);
}

/* The sum of a target over the channels. */
INLINE V weight_of(__global const S *t, int channels)
{
    V sum = (V)(0);
    for (int k = 0; k < channels; k++)
        sum += LOAD(t + k * PARTS + PART);
    return sum;
}

/* t times e; 0 where t is 0, even if e is infinite. */
INLINE V weighed(V t, V e)
{
    return t != (V)(0) ? t * e : (V)(0);
}

KERNEL void logits_forward(__global const S *restrict x, __global const S *restrict t,
                           __global V *restrict y, __global V *restrict saved, int channels,
                           int samples, int shard_samples, int shard_tiles)
{
    const int tile = get_group_id(0);
    I where, wanted;
    x += (size_t)tile * channels * PARTS;
    t += (size_t)tile * channels * PARTS;
    const V most = largest(x, channels, PARTS, &where);
    largest(t, channels, PARTS, &wanted);
    V sum = (V)(0), loss = (V)(0);
    for (int k = 0; k < channels; k++)
        sum += exp(LOAD(x + k * PARTS + PART) - most);
    if (saved) {
        saved += (size_t)tile * 2 * PARTS + PART;
        saved[0] = most;
        saved[PARTS] = sum;
    }
    const V log_sum = log(sum);
    for (int k = 0; k < channels; k++)
        loss += weighed(LOAD(t + k * PARTS + PART),
                        log_sum + (most - LOAD(x + k * PARTS + PART)));
    write_loss(y, tile, loss, ONE_IF(where == wanted),
               are_alive(weight_of(t, channels), samples, shard_samples, shard_tiles));
}

KERNEL void logits_backward(__global const S *restrict x, __global const S *restrict t,
                            __global const V *restrict saved, __global S *restrict dx,
                            __global S *restrict dt, int channels, int samples,
                            int shard_samples, int shard_tiles, __global const real *loss_scale,
                            real gradient_weight)
{
    const int tile = get_group_id(0);
    const real times = SCALE_OF(loss_scale) * gradient_weight;
    const size_t at = (size_t)tile * channels * PARTS;
    const V weight = weight_of(t + at, channels);
    const I lives = are_alive(weight, samples, shard_samples, shard_tiles);
    saved += (size_t)tile * 2 * PARTS + PART;
    const V most = saved[0], sum = saved[PARTS], log_sum = log(sum);
    for (int k = 0; k < channels; k++) {
        const size_t i = at + k * PARTS + PART;
        const V v = LOAD(x + i), y = exp(v - most) / sum;
        if (dx)
            STORE(dx + i, lives ? (weight * y - LOAD(t + i)) * times : (V)(0));
        if (dt)
            STORE(dt + i, lives ? (log_sum + (most - v)) * times : (V)(0));
    }
}

KERNEL void entropy_forward(__global const S *restrict x, __global const S *restrict t,
                            __global V *restrict y, int channels, int samples,
                            int shard_samples, int shard_tiles)
{
    const int tile = get_group_id(0);
    I where, wanted;
    x += (size_t)tile * channels * PARTS;
    t += (size_t)tile * channels * PARTS;
    largest(x, channels, PARTS, &where);
    largest(t, channels, PARTS, &wanted);
    V loss = (V)(0);
    for (int k = 0; k < channels; k++)
        loss += weighed(LOAD(t + k * PARTS + PART), -log(clip(LOAD(x + k * PARTS + PART))));
    write_loss(y, tile, loss, ONE_IF(where == wanted),
               are_alive(weight_of(t, channels), samples, shard_samples, shard_tiles));
}

KERNEL void entropy_backward(__global const S *restrict x, __global const S *restrict t,
                             __global S *restrict dx, __global S *restrict dt, int channels,
                             int samples, int shard_samples, int shard_tiles,
                             __global const real *loss_scale, real gradient_weight)
{
    const int tile = get_group_id(0);
    const real times = SCALE_OF(loss_scale) * gradient_weight;
    const size_t at = (size_t)tile * channels * PARTS;
    const I lives = are_alive(weight_of(t + at, channels), samples, shard_samples, shard_tiles);
    for (int k = 0; k < channels; k++) {
        const size_t i = at + k * PARTS + PART;
        const V p = LOAD(x + i), target = LOAD(t + i);
        const I counts = lives && target != (V)(0) && p >= LEAST && p <= MOST;
        if (dx)
            STORE(dx + i, counts ? -target / p * times : (V)(0));
        if (dt)
            STORE(dt + i, lives ? -log(clip(p)) * times : (V)(0));
    }
}

#endif

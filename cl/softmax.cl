/* Softmax and the cross-entropy behind it, over the channels k of every sample.
 *
 *   softmax_forward   y[t,k,l] = e^(x[k] - m) / sum_j e^(x[j] - m), m = max_j x[j]
 *   softmax_backward  dx = y (dy - sum_j dy[j] y[j])
 *   logits_forward    y = [log(sum_j e^(x[j] - m)) + m - x[label], correct]; saved[t,2,l] = m,
 * sum logits_backward   dx[k] = e^(x[k] - m) / sum - (k == label) entropy_forward   y =
 * [-log(clip(x[label])), correct], clip to [1e-7, 1 - 1e-7] entropy_backward  dx[k] = k ==
 * label and x[k] not clipped ? -1 / x[k] : 0
 *
 * correct: 1 where the first largest x is that of the label. A label outside 0 .. channels - 1
 * marks a dead lane: loss, correct and gradient are 0.
 * Group id 0: tile (softmax: and step of a sequence). Work-items: PARTS of a tile.
 */
#include "lib/real.cl"

/* The largest of the channels and the number of the first that is. */
INLINE V largest(__global const V *x, int channels, I *where)
{
    V most = x[PART];
    *where = (I)(0);
    for (int k = 1; k < channels; k++) {
        const V v = x[k * PARTS + PART];
        const I more = v > most;
        most = more ? v : most;
        *where = more ? (I)(k) : *where;
    }
    return most;
}

KERNEL void softmax_forward(__global const V *restrict x, __global V *restrict y, int channels)
{
    const size_t at = (size_t)get_group_id(0) * channels * PARTS;
    I where;
    x += at;
    y += at + PART;
    const V most = largest(x, channels, &where);
    V sum = (V)(0);
    for (int k = 0; k < channels; k++) {
        const V v = exp(x[k * PARTS + PART] - most);
        y[k * PARTS] = v;
        sum += v;
    }
    for (int k = 0; k < channels; k++)
        y[k * PARTS] = y[k * PARTS] / sum;
}

KERNEL void softmax_backward(__global const V *restrict y, __global const V *restrict dy,
                             __global V *restrict dx, int channels)
{
    const size_t at = (size_t)get_group_id(0) * channels * PARTS + PART;
    V sum = (V)(0);
    for (int k = 0; k < channels; k++)
        sum = FMA(dy[at + k * PARTS], y[at + k * PARTS], sum);
    for (int k = 0; k < channels; k++)
        dx[at + k * PARTS] = y[at + k * PARTS] * (dy[at + k * PARTS] - sum);
}

/* The labels of the work-item's lanes, as wide as what comparing two V gives. */
INLINE I labels_of(__global const int *labels, int tile)
{
#if VECTOR == 1
    return labels[tile * LANES + PART];
#else
    return TO_I(PASTE(vload, VECTOR)(0, labels + (size_t)tile * LANES + PART * VECTOR));
#endif
}

/* Writes loss and correctness of the lanes that live. */
INLINE void write_loss(__global V *y, int tile, V loss, I correct, I lives)
{
    y += (size_t)tile * 2 * PARTS + PART;
    y[0] = lives ? loss : (V)(0);
    y[PARTS] = lives && correct ? (V)(1) : (V)(0);
}

/* x[label]; 0 where no channel has that number. */
INLINE V at_label(__global const V *x, int channels, I label)
{
    V v = (V)(0);
    for (int k = 0; k < channels; k++)
        v = label == (I)(k) ? x[k * PARTS + PART] : v;
    return v;
}

INLINE I is_alive(I label, int channels)
{
    return label >= (I)(0) && label < (I)(channels);
}

KERNEL void logits_forward(__global const V *restrict x, __global const int *restrict labels,
                           __global V *restrict y, __global V *restrict saved, int channels)
{
    const int tile = get_group_id(0);
    const I label = labels_of(labels, tile);
    I where;
    x += (size_t)tile * channels * PARTS;
    const V most = largest(x, channels, &where);
    V sum = (V)(0);
    for (int k = 0; k < channels; k++)
        sum += exp(x[k * PARTS + PART] - most);
    if (saved) {
        saved += (size_t)tile * 2 * PARTS + PART;
        saved[0] = most;
        saved[PARTS] = sum;
    }
    const V loss = log(sum) + (most - at_label(x, channels, label));
    write_loss(y, tile, loss, where == label, is_alive(label, channels));
}

KERNEL void logits_backward(__global const V *restrict x, __global const int *restrict labels,
                            __global const V *restrict saved, __global V *restrict dx,
                            int channels)
{
    const int tile = get_group_id(0);
    const I label = labels_of(labels, tile), lives = is_alive(label, channels);
    const size_t at = (size_t)tile * channels * PARTS + PART;
    saved += (size_t)tile * 2 * PARTS + PART;
    const V most = saved[0], sum = saved[PARTS];
    for (int k = 0; k < channels; k++) {
        const V y = exp(x[at + k * PARTS] - most) / sum;
        const V one = label == (I)(k) ? (V)(1) : (V)(0);
        dx[at + k * PARTS] = lives ? y - one : (V)(0);
    }
}

#define LEAST ((V)(NUMBER(1e-7)))
#define MOST ((V)((real)1 - NUMBER(1e-7)))

KERNEL void entropy_forward(__global const V *restrict x, __global const int *restrict labels,
                            __global V *restrict y, int channels)
{
    const int tile = get_group_id(0);
    const I label = labels_of(labels, tile);
    I where;
    x += (size_t)tile * channels * PARTS;
    largest(x, channels, &where);
    const V p = at_label(x, channels, label);
    const V clipped = p < LEAST ? LEAST : p > MOST ? MOST : p;
    write_loss(y, tile, -log(clipped), where == label, is_alive(label, channels));
}

KERNEL void entropy_backward(__global const V *restrict x, __global const int *restrict labels,
                             __global V *restrict dx, int channels)
{
    const int tile = get_group_id(0);
    const I label = labels_of(labels, tile);
    const size_t at = (size_t)tile * channels * PARTS + PART;
    for (int k = 0; k < channels; k++) {
        const V p = x[at + k * PARTS];
        const I counts = label == (I)(k) && p >= LEAST && p <= MOST;
        dx[at + k * PARTS] = counts ? (V)(-1) / p : (V)(0);
    }
}

/* Softmax over many channels on a GPU, where a batch has too few samples to keep it busy: a
 * work-group has SLICES work-items for each sample of its tile, of which number s takes
 * channels s, s + SLICES and so on. What they find is joined in the order of slices. Formulas,
 * arrays and what labels mean are those of softmax.cl, names too but for `sliced`.
 *
 * Group id 0: tile and time step, or pixel of an image. Work-items: SLICES times LANES.
 * -D: SLICES: less than channels
 */
#include "lib/real.cl"
#undef PART
#define PART ((int)get_local_id(0) % LANES)
#include "lib/loss.cl"

#define SLICE ((int)get_local_id(0) / LANES)
#define SLICED_KERNEL __kernel __attribute__((reqd_work_group_size(LANES * SLICES, 1, 1)))

/* Channels whose loads start together. */
#define AT_ONCE 8
#define EACH(n) UNROLL for (int n = 0; n < AT_ONCE; n++)
#define FOR_CHANNELS(k) for (int k = SLICE; k < channels; k += AT_ONCE * SLICES)

/* Channels k, k + SLICES and so on of the sample; past the last one that one again. */
INLINE void load_channels(real v[AT_ONCE], __global const S *x, int k, int channels,
                          size_t step)
{
    EACH(n)
        v[n] = LOAD(x + min(k + n * SLICES, channels - 1) * step);
}

/* The sum of what all slices of the sample have. met: a number for each work-item. */
INLINE real sum_slices(real v, __local real *met)
{
    real sum = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    met[get_local_id(0)] = v;
    barrier(CLK_LOCAL_MEM_FENCE);
    UNROLL for (int s = 0; s < SLICES; s++)
        sum += met[s * LANES + PART];
    return sum;
}

/* The largest channel of the sample and the number of the first that is. */
INLINE real largest(__global const S *x, int channels, size_t step, int *where,
                    __local real *met, __local int *places)
{
    real most = LOAD(x + SLICE * step), v[AT_ONCE];
    int first = SLICE;
    FOR_CHANNELS (k) {
        load_channels(v, x, k, channels, step);
        EACH(n) if (k + n * SLICES < channels && v[n] > most)
        {
            most = v[n];
            first = k + n * SLICES;
        }
    }
    met[get_local_id(0)] = most;
    places[get_local_id(0)] = first;
    barrier(CLK_LOCAL_MEM_FENCE);
    most = met[PART];
    *where = places[PART];
    for (int s = 1; s < SLICES; s++) {
        const real other = met[s * LANES + PART];
        const int place = places[s * LANES + PART];
        if (other > most || (other == most && place < *where)) {
            most = other;
            *where = place;
        }
    }
    return most;
}

SLICED_KERNEL void sliced_softmax_forward(__global const S *restrict x, __global S *restrict y,
                                          int channels, int pixels)
{
    __local real met[LANES * SLICES];
    __local int places[LANES * SLICES];
    const size_t group = get_group_id(0), step = (size_t)pixels * LANES;
    const size_t at = (group / pixels * channels * pixels + group % pixels) * LANES + PART;
    int where;
    const real most = largest(x + at, channels, step, &where, met, places);
    real sum = 0, v[AT_ONCE];
    FOR_CHANNELS (k) {
        load_channels(v, x + at, k, channels, step);
        EACH(n) if (k + n * SLICES < channels)
        {
            v[n] = exp(v[n] - most);
            STORE(y + at + (k + n * SLICES) * step, v[n]);
            sum += v[n];
        }
    }
    sum = sum_slices(sum, met);
    FOR_CHANNELS (k) {
        EACH(n) if (k + n * SLICES < channels) /* its own ones: nobody else wrote them */
            v[n] = LOAD(y + at + (k + n * SLICES) * step);
        EACH(n) if (k + n * SLICES < channels)
            STORE(y + at + (k + n * SLICES) * step, v[n] / sum);
    }
}

SLICED_KERNEL void sliced_softmax_backward(__global const S *restrict y,
                                           __global const S *restrict dy,
                                           __global S *restrict dx, int channels, int pixels)
{
    __local real met[LANES * SLICES];
    const size_t group = get_group_id(0), step = (size_t)pixels * LANES;
    const size_t at = (group / pixels * channels * pixels + group % pixels) * LANES + PART;
    real sum = 0, v[AT_ONCE], d[AT_ONCE];
    FOR_CHANNELS (k) {
        load_channels(v, y + at, k, channels, step);
        load_channels(d, dy + at, k, channels, step);
        EACH(n) if (k + n * SLICES < channels)
            sum = FMA(d[n], v[n], sum);
    }
    sum = sum_slices(sum, met);
    FOR_CHANNELS (k) {
        load_channels(v, y + at, k, channels, step);
        load_channels(d, dy + at, k, channels, step);
        EACH(n) if (k + n * SLICES < channels)
            STORE(dx + at + (k + n * SLICES) * step, v[n] * (d[n] - sum));
    }
}

SLICED_KERNEL void sliced_logits_forward(__global const S *restrict x,
                                         __global const int *restrict labels,
                                         __global real *restrict y,
                                         __global real *restrict saved, int channels)
{
    __local real met[LANES * SLICES];
    __local int places[LANES * SLICES];
    const int tile = get_group_id(0), label = labels_of(labels, tile);
    int where;
    x += (size_t)tile * channels * LANES + PART;
    const real most = largest(x, channels, LANES, &where, met, places);
    real sum = 0, v[AT_ONCE];
    FOR_CHANNELS (k) {
        load_channels(v, x, k, channels, LANES);
        EACH(n) if (k + n * SLICES < channels)
            sum += exp(v[n] - most);
    }
    sum = sum_slices(sum, met);
    if (SLICE > 0)
        return;
    if (saved) {
        saved += (size_t)tile * 2 * LANES + PART;
        saved[0] = most;
        saved[LANES] = sum;
    }
    const bool lives = is_alive(label, channels);
    const real loss = log(sum) + (most - (lives ? LOAD(x + label * LANES) : (real)0));
    write_loss(y, tile, loss, where == label ? (real)1 : (real)0, lives);
}

SLICED_KERNEL void sliced_logits_backward(
    __global const S *restrict x, __global const int *restrict labels,
    __global const real *restrict saved, __global S *restrict dx, int channels,
    __global const real *restrict loss_scale, real weight, int time_steps)
{
    const int tile = get_group_id(0), label = labels_of(labels, tile);
    const size_t at = (size_t)tile * channels * LANES + PART;
    /* Of a sequence: how many time steps of the sample have a label. */
    __global const real *counts = saved + (size_t)get_num_groups(0) * 2 * LANES;
    const bool lives = is_alive(label, channels);
    real times = SCALE_OF(loss_scale) * weight, v[AT_ONCE];
    if (time_steps > 1)
        times /= counts[tile / time_steps * LANES + PART];
    saved += (size_t)tile * 2 * LANES + PART;
    const real most = saved[0], sum = saved[LANES];
    FOR_CHANNELS (k) {
        load_channels(v, x + at, k, channels, LANES);
        EACH(n) if (k + n * SLICES < channels)
        {
            const real one = label == k + n * SLICES ? (real)1 : (real)0;
            STORE(dx + at + (size_t)(k + n * SLICES) * LANES,
                  lives ? (exp(v[n] - most) / sum - one) * times : (real)0);
        }
    }
}

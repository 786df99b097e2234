/* Batches as the host has them into batch tiles.
 *
 *   convert_images  y[t,c,h,w,l] = f(x[n,h,w,c']) * scale[c] + shift[c]  x: uint8, y: stored
 *   convert_means   sums[t,h,l] = the sum over w of grey before contrast
 *   convert_integers y[t,e,l] = x[n,e]                                      int32
 *   convert_numbers y[t,e,l] = x[n,e] * scale + shift                       x: float, y: stored
 *   convert_one_hot y[t,k,l] = x[n] == k ? on : off                         x: int32, y: stored
 *
 * n is the sample of lane l of tile t: number (t % shard_tiles) * LANES + l of shard
 * t / shard_tiles. Lanes without a sample (number >= shard_samples, or n >= samples) get 0, or
 * the integer -1; all k of a label that is none of them get 0. f mirrors a sample and changes
 * its colours, as tensor/transform.h says; its record, 4 floats, is number n of those that x
 * begins with, `pixels_at` bytes before the pixels.
 *
 * -D, where there are records: MIRRORS; STAGE_1 to STAGE_3: as enum lk_colour_stage; CHANNELS.
 * REVERSES: c' is channels - 1 - c; without it c.
 * PLANES: tiles of one sample, which is in every lane.
 * ONE_HOT: convert_one_hot alone; NUMBERS: convert_numbers alone.
 * Group ids: images, means: 0: row h, 1: tile; integers, numbers: 0: a run of `each` elements,
 * 1: tile; one_hot: 0: tile. Work-items: PARTS of a tile.
 */
#include "lib/real.cl"

#ifndef STAGE_1
#define STAGE_1 0
#define STAGE_2 0
#define STAGE_3 0
#endif
#ifndef MIRRORS
#define MIRRORS 0
#endif

#ifdef REVERSES
#define FROM(c, channels) ((channels) - 1 - (c))
#else
#define FROM(c, channels) (c)
#endif

#define BRIGHTNESS 1
#define CONTRAST 2
#define SATURATION 3

/* The sample of a lane; -1: none. */
INLINE int sample_of(int tile, int lane, int samples, int shard_samples, int shard_tiles)
{
#ifdef PLANES
    const int number = tile % shard_tiles;
#else
    const int number = tile % shard_tiles * LANES + lane;
#endif
    const int n = tile / shard_tiles * shard_samples + number;
    return number < shard_samples && n < samples ? n : -1;
}

#ifdef ONE_HOT
KERNEL void convert_one_hot(__global const int *restrict x, __global S *restrict y, int classes,
                            int samples, int shard_samples, int shard_tiles, real on, real off)
{
    const int tile = get_group_id(0);
    union {
        real lane[VECTOR];
        V all;
    } value;
    y += (size_t)tile * classes * PARTS + PART;
    for (int k = 0; k < classes; k++) {
        for (int v = 0; v < VECTOR; v++) {
            const int n =
                sample_of(tile, PART * VECTOR + v, samples, shard_samples, shard_tiles);
            const int label = n < 0 ? -1 : x[n];
            const real there = k == label ? on : off;
            value.lane[v] = label >= 0 && label < classes ? there : 0;
        }
        STORE(y + k * PARTS, value.all);
    }
}

#elif defined(NUMBERS)
#if VECTOR > 1 && REAL_BYTES == 4 && !defined(PLANES)
#define IN_BLOCKS
#include "lib/transpose.cl"
#endif

typedef union {
    real lane[VECTOR];
    V all;
} lanes;

/* In blocks of VECTOR numbers of VECTOR samples, so that each line of memory is read once: one
 * by one, numbers of samples whose size is a multiple of 4096 bytes would push one another out
 * of the cache. */
KERNEL void convert_numbers(__global const float *restrict x, __global S *restrict y, int count,
                            int each, int samples, int shard_samples, int shard_tiles,
                            real scale, real shift)
{
    const int tile = get_group_id(1), first = get_group_id(0) * each;
    const int end = min(first + each, count);
    __global const float *row[VECTOR];
    lanes there;
    for (int v = 0; v < VECTOR; v++) {
        const int n = sample_of(tile, PART * VECTOR + v, samples, shard_samples, shard_tiles);
        there.lane[v] = n >= 0;
        row[v] = x + (size_t)max(n, 0) * count;
    }
    y += (size_t)tile * count * PARTS + PART;
    int e = first;
#ifdef IN_BLOCKS
    for (; e + VECTOR <= end; e += VECTOR) {
        V block[VECTOR];
        UNROLL for (int v = 0; v < VECTOR; v++) block[v] = ROW_LOAD(row[v] + e);
        transpose(block);
        UNROLL for (int v = 0; v < VECTOR; v++)
            STORE(y + (e + v) * PARTS,
                  there.all > (V)0 ? block[v] * scale + shift : (V)0);
    }
#endif
    for (; e < end; e++) {
        lanes value;
        for (int v = 0; v < VECTOR; v++)
            value.lane[v] = there.lane[v] > 0 ? row[v][e] * scale + shift : 0;
        STORE(y + e * PARTS, value.all);
    }
}

#else

#if VECTOR == 1
#define TO_V(x) ((real)(x))
#else
#define TO_V(x) PASTE(PASTE(convert_, REAL), VECTOR)(x)
#endif

typedef union {
    real lane[VECTOR];
    V all;
} lanes;

/* Row h of the samples in a work-item's lanes. */
struct row {
    __global const uchar *first[VECTOR]; /* its first pixel, as it will be */
    int channels;                        /* from one pixel to the next, */
    int stride[VECTOR];                  /* from one column to the next, backwards in samples
                                          * that are mirrored */
    lanes alive, factor[3];
};

/* Writes through a pointer, since Oclgrind cannot handle a struct that is returned. */
INLINE void find_row(struct row *row, __global const uchar *x, int pixels_at, int channels,
                     int height, int width, int samples, int shard_samples, int shard_tiles)
{
    const int h = get_group_id(0), tile = get_group_id(1);
    row->channels = channels;
    for (int v = 0; v < VECTOR; v++) {
        const int n = sample_of(tile, PART * VECTOR + v, samples, shard_samples, shard_tiles);
        __global const uchar *sample =
            x + pixels_at + (size_t)max(n, 0) * height * width * channels;
        row->alive.lane[v] = n >= 0;
        row->first[v] = sample + h * width * channels;
#if MIRRORS || STAGE_1
        __global const float *record = (__global const float *)x + 4 * max(n, 0);
        for (int i = 0; i < 3; i++)
            row->factor[i].lane[v] = record[i];
        const int mirror = (int)record[3];
        if (mirror & 2)
            row->first[v] = sample + (height - 1 - h) * width * channels;
        if (mirror & 1)
            row->first[v] += (width - 1) * channels;
        row->stride[v] = mirror & 1 ? -channels : channels;
#endif
    }
}

INLINE V load(const struct row *row, int w, int c)
{
    union {
        uchar lane[VECTOR];
        B all;
    } pixel;
    UNROLL
    for (int v = 0; v < VECTOR; v++)
        pixel.lane[v] = row->first[v][w * (MIRRORS ? row->stride[v] : row->channels) + c];
    return TO_V(pixel.all);
}

/* One of the values of the first four channels: that of channel c. */
INLINE real choose(int c, real of_0, real of_1, real of_2, real of_3)
{
    return c == 0 ? of_0 : c == 1 ? of_1 : c == 2 ? of_2 : of_3;
}

#if STAGE_1
INLINE V grey(const V *p)
{
#if CHANNELS == 3
    return p[0] * NUMBER(0.2989) + p[1] * NUMBER(0.587) + p[2] * NUMBER(0.114);
#else
    return p[0];
#endif
}

/* Applies one stage to a pixel's values p. */
INLINE void change(V *p, int stage, V factor, V mean)
{
    const V to = stage == CONTRAST ? mean : stage == SATURATION ? grey(p) : (V)0;
    const V part = stage == BRIGHTNESS ? (V)0 : to * ((V)1 - factor);
    if (stage != 0)
        for (int c = 0; c < CHANNELS; c++)
            p[c] = clamp(p[c] * factor + part, (V)0, (V)255);
}

KERNEL void convert_means(__global const uchar *restrict x, __global V *restrict sums,
                          int pixels_at, int channels, int height, int width, int samples,
                          int shard_samples, int shard_tiles)
{
    const int h = get_group_id(0), tile = get_group_id(1);
    struct row row;
    find_row(&row, x, pixels_at, channels, height, width, samples, shard_samples, shard_tiles);
    V sum = 0;
    for (int w = 0; w < width; w++) {
        V p[CHANNELS];
        for (int c = 0; c < CHANNELS; c++)
            p[c] = load(&row, w, c);
        if (STAGE_1 != CONTRAST)
            change(p, STAGE_1, row.factor[0].all, 0);
        if ((STAGE_1 != CONTRAST) & (STAGE_2 != CONTRAST))
            change(p, STAGE_2, row.factor[1].all, 0);
        sum += grey(p);
    }
    sums[((size_t)tile * height + h) * PARTS + PART] = sum;
}
#endif

KERNEL void convert_images(__global const uchar *restrict x, __global const V *restrict sums,
                           __global S *restrict y, int pixels_at, int channels, int height,
                           int width, int samples, int shard_samples, int shard_tiles,
                           real one_of_pixels, real scale_0, real scale_1, real scale_2,
                           real scale_3, real shift_0, real shift_1, real shift_2, real shift_3)
{
    const int h = get_group_id(0), tile = get_group_id(1);
    const size_t plane = (size_t)height * width * PARTS;
    struct row row;
    find_row(&row, x, pixels_at, channels, height, width, samples, shard_samples, shard_tiles);
    y += ((size_t)tile * channels * height + h) * width * PARTS + PART;
#if STAGE_1
    V mean = 0;
    if ((STAGE_1 == CONTRAST) | (STAGE_2 == CONTRAST) | (STAGE_3 == CONTRAST))
        for (int i = 0; i < height; i++)
            mean += sums[((size_t)tile * height + i) * PARTS + PART];
    mean *= one_of_pixels;
    for (int w = 0; w < width; w++) {
        V p[CHANNELS];
        for (int c = 0; c < CHANNELS; c++)
            p[c] = load(&row, w, c);
        change(p, STAGE_1, row.factor[0].all, mean);
        change(p, STAGE_2, row.factor[1].all, mean);
        change(p, STAGE_3, row.factor[2].all, mean);
        for (int c = 0; c < CHANNELS; c++)
            STORE(y + c * plane + w * PARTS,
                  (p[FROM(c, CHANNELS)] * choose(c, scale_0, scale_1, scale_2, scale_3) +
                   choose(c, shift_0, shift_1, shift_2, shift_3)) *
                      row.alive.all);
    }
#else
    for (int c = 0; c < channels; c++) {
        const V times = row.alive.all * choose(c, scale_0, scale_1, scale_2, scale_3);
        const V plus = row.alive.all * choose(c, shift_0, shift_1, shift_2, shift_3);
        for (int w = 0; w < width; w++)
            STORE(y + c * plane + w * PARTS, load(&row, w, FROM(c, channels)) * times + plus);
    }
#endif
}

KERNEL void convert_integers(__global const int *restrict x, __global int *restrict y,
                             int count, int each, int samples, int shard_samples,
                             int shard_tiles)
{
    const int tile = get_group_id(1), first = get_group_id(0) * each;
    const int end = min(first + each, count);
    for (int v = 0; v < VECTOR; v++) {
        const int lane = PART * VECTOR + v;
        const int n = sample_of(tile, lane, samples, shard_samples, shard_tiles);
        for (int e = first; e < end; e++)
            y[((size_t)tile * count + e) * LANES + lane] =
                n < 0 ? -1 : x[(size_t)n * count + e];
    }
}
#endif

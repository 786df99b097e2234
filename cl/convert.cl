/* Batches as the host has them into batch tiles.
 *
 *   convert_images  y[t,c,h,w,l] = x[n,h,w,c] * scale + shift    x: uint8, y: real
 *   convert_labels  y[t,l] = x[n]                                int32
 *
 * n is the sample of lane l of tile t: number (t % shard_tiles) * LANES + l of shard
 * t / shard_tiles. Lanes without a sample (number >= shard_samples, or n >= samples) get 0, or
 * label -1.
 *
 * Group ids: images: 0: row h, 1: tile; labels: 0: tile. Work-items: PARTS of a tile.
 */
#include "lib/real.cl"

/* The sample of a lane; -1: none. */
INLINE int sample_of(int tile, int lane, int samples, int shard_samples, int shard_tiles)
{
    const int number = tile % shard_tiles * LANES + lane;
    const int n = tile / shard_tiles * shard_samples + number;
    return number < shard_samples && n < samples ? n : -1;
}

#if VECTOR == 1
#define TO_V(x) ((real)(x))
#else
#define TO_V(x) PASTE(PASTE(convert_, REAL), VECTOR)(x)
#endif

KERNEL void convert_images(__global const uchar *restrict x, __global V *restrict y,
                           int channels, int height, int width, int samples, int shard_samples,
                           int shard_tiles, real scale, real shift)
{
    const int h = get_group_id(0), tile = get_group_id(1);
    const int row = width * channels;
    __global const uchar *from[VECTOR];
    union {
        real lane[VECTOR];
        V all;
    } alive;
    for (int v = 0; v < VECTOR; v++) {
        const int n = sample_of(tile, PART * VECTOR + v, samples, shard_samples, shard_tiles);
        from[v] = x + ((size_t)max(n, 0) * height + h) * row;
        alive.lane[v] = n >= 0;
    }
    const V times = alive.all * scale, plus = alive.all * shift;
    for (int c = 0; c < channels; c++) {
        const size_t line = ((size_t)tile * channels + c) * height + h;
        __global V *to = y + line * width * PARTS + PART;
        for (int w = 0; w < width; w++) {
            union {
                uchar lane[VECTOR];
                B all;
            } pixel;
            UNROLL
            for (int v = 0; v < VECTOR; v++)
                pixel.lane[v] = from[v][w * channels + c];
            to[w * PARTS] = TO_V(pixel.all) * times + plus;
        }
    }
}

KERNEL void convert_labels(__global const int *restrict x, __global int *restrict y,
                           int samples, int shard_samples, int shard_tiles)
{
    const int tile = get_group_id(0);
    for (int v = 0; v < VECTOR; v++) {
        const int lane = PART * VECTOR + v;
        const int n = sample_of(tile, lane, samples, shard_samples, shard_tiles);
        y[tile * LANES + lane] = n < 0 ? -1 : x[n];
    }
}

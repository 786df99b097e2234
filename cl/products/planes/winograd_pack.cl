/* Weights of Winograd's algorithm over plane tiles: u = G (w * a) G', packed for each section
 * [positions][blocks of FILTERS][images][c][FILTERS], with zeros for filters that there are
 * not, and behind these zeros [positions][blocks][FILTERS], with which its sums begin; behind
 * all sections b. a, b: as pack.cl has them. -D: as winograd.cl; NORM, TURNED: as pack.cl.
 * Group id 0: block of filters.
 */
#include "lib/real.cl"
#include "products/planes/positions.cl"
#include "products/planes/norm.cl"

/* VECTOR filters from k on, of those `apart` in w, times `factor`. */
INLINE V load_filters(__global const real *w, int k, int filters, int apart, const real *factor)
{
    union {
        real lane[VECTOR];
        V all;
    } v;
    for (int i = 0; i < VECTOR; i++)
        v.lane[i] = i < FILTERS && k + i < filters ? w[(size_t)(k + i) * apart] * factor[i] : 0;
    return v.all;
}

/* Tap (r, s), of w as they lie; with TURNED filters are channels of w, c its filters, taps
 * turned round. */
INLINE V load_tap_of(__global const real *w, const real *factor, int channels, int filters,
                     int c, int k, int r, int s)
{
    if (r > 2 || s > 2)
        return (V)0;
#if TURNED
    return load_filters(w + (8 - (r * 3 + s)) * channels + c, k, filters, 9 * channels, factor);
#else
    return load_filters(w + ((size_t)c * 9 + r * 3 + s) * filters, k, filters, 1, factor);
#endif
}

/* Reals of a block of filters of a position; of a section up to its zeros; and of all of them
 * before this one. */
INLINE size_t panel_of(int section, int channels)
{
    return (size_t)images_of(section) * channels * FILTERS;
}

INLINE size_t weights_of(int section, int channels, int blocks)
{
    return count_of(section) * blocks * panel_of(section, channels);
}

INLINE size_t section_at(int section, int channels, int blocks)
{
    size_t at = 0;
    for (int s = 0; s < section; s++)
        at += weights_of(s, channels, blocks) + (size_t)count_of(s) * blocks * FILTERS;
    return at;
}

/* Of one image and channel. */
INLINE void pack_taps(__global const real *w, const real *factor, __global real *packed,
                      int channels, int filters, int c, int block, int blocks, int odd_y,
                      int odd_x)
{
    V t[SIDE][TAPS];
    for (int s = 0; s < TAPS; s++) {
        V column[SIDE];
#define W(r)                                                                                   \
    load_tap_of(w, factor, channels, filters, c, block *FILTERS, odd_y + STRIDE_Y * (r),       \
                odd_x + STRIDE_Y * s)
        WINOGRAD_G(column, W);
#undef W
        for (int i = 0; i < SIDE; i++)
            t[i][s] = column[i];
    }
    for (int i = 0; i < SIDE; i++) {
        V row[SIDE];
#define W(s) t[i][s]
        WINOGRAD_G(row, W);
#undef W
        for (int j = 0; j < SIDE; j++) {
            const int section = section_of(i, j);
            __global real *to = packed + section_at(section, channels, blocks) +
                                (place_of(i, j) * blocks + block) * panel_of(section, channels);
            to += (image_of(i, j, odd_y, odd_x) * channels + c) * FILTERS;
            if (has_image(i, j, odd_y, odd_x))
                for (int l = 0; l < FILTERS; l++)
                    to[l] = ((const real *)&row[j])[l];
        }
    }
}

BODY void pack_block(__global const real *w, const real *factor, __global real *packed,
                     int channels, int filters, int block, int blocks)
{
    for (int c = 0; c < channels; c++)
        for (int image = 0; image < IMAGES; image++)
            pack_taps(w, factor, packed, channels, filters, c, block, blocks, image / STRIDE_Y,
                      image % STRIDE_Y);
}

KERNEL void planes_winograd_pack(__global const real *restrict w,
                                 __global const real *restrict bias,
                                 __global const real *restrict gamma,
                                 __global const real *restrict beta,
                                 __global const real *restrict mean,
                                 __global const real *restrict variance, real epsilon,
                                 __global real *restrict packed, int packed_first,
                                 int channels, int filters)
{
    const int blocks = get_num_groups(0), block = get_group_id(0), first = block * FILTERS;
    packed += packed_first;
    __global real *shift = packed + section_at(SECTIONS, channels, blocks) + first;
    real factor[FILTERS];
    for (int i = 0; i < FILTERS; i++) {
        factor[i] = fold_norm(min(first + i, filters - 1), bias, gamma, beta, mean, variance,
                              epsilon, shift + i);
        for (int s = 0; s < SECTIONS; s++)
            for (int p = 0; p < count_of(s); p++)
                packed[section_at(s, channels, blocks) + weights_of(s, channels, blocks) +
                       p * blocks * FILTERS + first + i] = 0;
    }
    pack_block(w, factor, packed, channels, filters, block, blocks);
}

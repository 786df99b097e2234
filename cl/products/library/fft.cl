/* Convolution by Fourier transforms: what happens around and between them. Images of SIDE_H x
 * SIDE_W reals lie one after the other, an image for each channel and sample of a batch tile,
 * [channel][lane], or for each pair of channel and filter, [channel][filter]; their spectra are
 * [SIDE_H][SIDE_W / 2 + 1] complex numbers, BINS of them, interleaved.
 *
 *   forward: y = sum over c of x[c] corr w[c,k];  data: dx = sum over k of dz[k] conv w[c,k];
 *   weights: dw[c,k] = sum over samples of x[c] corr dz[k]
 *
 * where corr multiplies by the conjugate of the second spectrum. Sums run over channels or
 * lanes in ascending order; over tiles, one after the other, into what is there.
 *
 * -D: SIDE_H SIDE_W IN_H IN_W (of what is spread) AT_Y AT_X (where it begins in an image) OUT_H
 *     OUT_W (of what is gathered) FROM_Y FROM_X (where that begins)
 */
#include "lib/real.cl"
#include "products/library/args.h"

#define BINS (SIDE_H * (SIDE_W / 2 + 1))
#define IMAGE (SIDE_H * SIDE_W)

/* The sample of a value in a tile row, and how many each work-item holds. */
INLINE void store_lanes(__global real *to, V v, int stride)
{
#if VECTOR == 1
    to[PART * stride] = v;
#else
    union {
        V v;
        real each[VECTOR];
    } u = {v};
    for (int i = 0; i < VECTOR; i++)
        to[(PART * VECTOR + i) * stride] = u.each[i];
#endif
}

INLINE V load_lanes(__global const real *from, int stride)
{
#if VECTOR == 1
    return from[PART * stride];
#else
    union {
        V v;
        real each[VECTOR];
    } u;
    for (int i = 0; i < VECTOR; i++)
        u.each[i] = from[(PART * VECTOR + i) * stride];
    return u.v;
#endif
}

/* A batch tile [channels][IN_H][IN_W][LANES] as images. Group ids: 0: row, 1: channel. */
KERNEL void fft_spread(__global const V *restrict x, int x_first, int tile, int channels,
                       __global real *restrict to, int to_first)
{
    const int row = get_group_id(0), c = get_group_id(1), i = row - AT_Y;
    x += x_first / VECTOR + ((size_t)tile * channels + c) * (IN_H * IN_W * PARTS) + PART;
    to += to_first + (size_t)c * (LANES * IMAGE) + row * SIDE_W;
    for (int j = 0; j < SIDE_W; j++) {
        const bool inside = i >= 0 && i < IN_H && j >= AT_X && j < AT_X + IN_W;
        store_lanes(to + j, inside ? x[(i * IN_W + j - AT_X) * PARTS] : (V)0, IMAGE);
    }
}

/* Weights [channels][IN_H][IN_W][filters] as images. Group ids: 0: row, 1: channel. */
KERNEL void fft_spread_weights(__global const real *restrict w, int filters,
                               __global real *restrict to, int to_first)
{
    const int row = get_group_id(0), c = get_group_id(1);
    w += ((size_t)c * IN_H + row) * (IN_W * filters);
    to += to_first + (size_t)c * filters * IMAGE + row * SIDE_W;
    for (int k = PART; k < filters; k += PARTS)
        for (int j = 0; j < SIDE_W; j++)
            to[(size_t)k * IMAGE + j] = row < IN_H && j < IN_W ? w[j * filters + k] : (real)0;
}

/* Images as a batch tile [channels][OUT_H][OUT_W][LANES], with bias and relu (least 0, else
 * -infinity). Group ids: 0: row, 1: channel. */
KERNEL void fft_gather(__global const real *restrict from, int from_first,
                       __global const real *restrict bias, real least, int tile, int channels,
                       __global V *restrict y)
{
    const int row = get_group_id(0), c = get_group_id(1);
    const real b = bias ? bias[c] : (real)0;
    from += from_first + (size_t)c * (LANES * IMAGE) + (row + FROM_Y) * SIDE_W + FROM_X;
    y += (((size_t)tile * channels + c) * OUT_H + row) * (OUT_W * PARTS) + PART;
    for (int j = 0; j < OUT_W; j++) {
        const V v = load_lanes(from + j, IMAGE) + b;
        y[j * PARTS] = v < (V)least ? (V)least : v;
    }
}

/* Images as weights [channels][OUT_H][OUT_W][filters]. Group ids: 0: row, 1: channel. */
KERNEL void fft_gather_weights(__global const real *restrict from, int from_first, int filters,
                               __global real *restrict dw, int dw_first)
{
    const int row = get_group_id(0), c = get_group_id(1);
    from += from_first + (size_t)c * filters * IMAGE + row * SIDE_W;
    dw += dw_first + ((size_t)c * OUT_H + row) * (OUT_W * filters);
    for (int k = PART; k < filters; k += PARTS)
        for (int j = 0; j < OUT_W; j++)
            dw[j * filters + k] = from[(size_t)k * IMAGE + j];
}

/* --- products of spectra ----------------------------------------------------------------- */

/* Real or imaginary parts of the bins that a work-item holds at once. */
#if VECTOR == 1 || VECTOR == 2
typedef real H;
#elif VECTOR == 4
typedef PASTE(REAL, 2) H;
#elif VECTOR == 8
typedef PASTE(REAL, 4) H;
#else
typedef PASTE(REAL, 8) H;
#endif
#define HELD (VECTOR == 1 ? 1 : VECTOR / 2)
#define ROWS 4
#define COLUMNS 4

INLINE void load_bins(__global const real *from, H *re, H *im)
{
#if VECTOR == 1
    *re = from[0];
    *im = from[1];
#else
    const V v = PASTE(vload, VECTOR)(0, from);
    *re = v.even;
    *im = v.odd;
#endif
}

INLINE void store_bins(__global real *to, H re, H im)
{
#if VECTOR == 1
    to[0] = re;
    to[1] = im;
#else
    V v;
    v.even = re;
    v.odd = im;
    PASTE(vstore, VECTOR)(v, 0, to);
#endif
}

/* A block of sums at a bin: out[p, q] (+)= sum over m < depth of a[p, m] b[m, q], spectra that
 * lie a_p, a_m ... spectra apart. `turn` -1: of b's conjugate. rows, columns: there are. */
struct block {
    __global const real *a, *b;
    __global real *to;
    int a_p, a_m, b_m, b_q, to_p, to_q, depth, rows, columns;
    real turn;
    bool adds;
};

#define SPECTRUM(base, index) ((base) + (size_t)(index) * (2 * BINS))

INLINE void add_blocks(const struct block *k, int bin)
{
    H re[ROWS][COLUMNS], im[ROWS][COLUMNS], a_re[ROWS], a_im[ROWS], b_re, b_im;
    UNROLL for (int p = 0; p < ROWS; p++)
        UNROLL for (int q = 0; q < COLUMNS; q++) {
            re[p][q] = im[p][q] = (H)0;
            if (k->adds && p < k->rows && q < k->columns)
                load_bins(SPECTRUM(k->to, p * k->to_p + q * k->to_q) + 2 * bin, &re[p][q],
                          &im[p][q]);
        }
    for (int m = 0; m < k->depth; m++) {
        UNROLL for (int p = 0; p < ROWS; p++)
            load_bins(SPECTRUM(k->a, min(p, k->rows - 1) * k->a_p + m * k->a_m) + 2 * bin,
                      &a_re[p], &a_im[p]);
        UNROLL for (int q = 0; q < COLUMNS; q++) {
            load_bins(SPECTRUM(k->b, min(q, k->columns - 1) * k->b_q + m * k->b_m) + 2 * bin,
                      &b_re, &b_im);
            b_im *= k->turn;
            UNROLL for (int p = 0; p < ROWS; p++) {
                re[p][q] = FMA(a_re[p], b_re, re[p][q]);
                re[p][q] = FMA(-a_im[p], b_im, re[p][q]);
                im[p][q] = FMA(a_re[p], b_im, im[p][q]);
                im[p][q] = FMA(a_im[p], b_re, im[p][q]);
            }
        }
    }
    UNROLL for (int p = 0; p < ROWS; p++)
        UNROLL for (int q = 0; q < COLUMNS; q++)
            if (p < k->rows && q < k->columns)
                store_bins(SPECTRUM(k->to, p * k->to_p + q * k->to_q) + 2 * bin, re[p][q],
                           im[p][q]);
}

/* The same sum for one bin and one pair. */
INLINE void add_one(const struct block *k, int p, int q, int bin)
{
    __global real *to = SPECTRUM(k->to, p * k->to_p + q * k->to_q) + 2 * bin;
    real re = k->adds ? to[0] : (real)0, im = k->adds ? to[1] : (real)0;
    for (int m = 0; m < k->depth; m++) {
        __global const real *a = SPECTRUM(k->a, p * k->a_p + m * k->a_m) + 2 * bin;
        __global const real *b = SPECTRUM(k->b, q * k->b_q + m * k->b_m) + 2 * bin;
        const real b_im = b[1] * k->turn;
        re = FMA(a[0], b[0], re);
        re = FMA(-a[1], b_im, re);
        im = FMA(a[0], b_im, im);
        im = FMA(a[1], b[0], im);
    }
    to[0] = re;
    to[1] = im;
}

BODY void product_group(const struct block *k, int first, int last, int part, int parts)
{
    int bin = first + part * HELD;
    for (; bin + HELD <= last; bin += parts * HELD)
        add_blocks(k, bin);
    if (HELD > 1 && bin < last) /* the last, narrower vector belongs to one work-item */
        for (int p = 0; p < k->rows; p++)
            for (int q = 0; q < k->columns; q++)
                for (int rest = bin; rest < last; rest++)
                    add_one(k, p, q, rest);
}

/* Group ids: 0: block of q, 1: block of p, 2: run of `each` bins. */
KERNEL void fft_product(__global real *restrict room, int a_first, int b_first, int to_first,
                        struct lk_fft_product s)
{
    const int q = get_group_id(0) * COLUMNS, p = get_group_id(1) * ROWS;
    const int first = get_group_id(2) * s.each;
    const struct block k = {.a = SPECTRUM(room + a_first, p * s.a_p),
                            .b = SPECTRUM(room + b_first, q * s.b_q),
                            .to = SPECTRUM(room + to_first, p * s.to_p + q * s.to_q),
                            .a_p = s.a_p,
                            .a_m = s.a_m,
                            .b_m = s.b_m,
                            .b_q = s.b_q,
                            .to_p = s.to_p,
                            .to_q = s.to_q,
                            .depth = s.depth,
                            .rows = min(ROWS, s.rows - p),
                            .columns = min(COLUMNS, s.columns - q),
                            .turn = s.conjugate ? (real)-1 : (real)1,
                            .adds = s.adds};
    product_group(&k, first, min(first + s.each, BINS), PART, PARTS);
}

/* Windows over a plane of plane tiles. Needs lib/real.cl, products/planes/args.h; -D: TAPS_Y,
 * TAPS_X, STRIDE_Y, STRIDE_X, GAP_Y, GAP_X.
 *
 * A vector of outputs is VECTOR neighbours of a plane of out_h x out_w, row by row. What tap
 * (r, s) sees of them are as many neighbours of an arranged plane: for each column s of taps a
 * copy of the plane, `copy` reals, with the columns that s sees and `pad` beyond the edges, its
 * rows in `phases` of every STRIDE_Y-th, `rows` each. So strides, gaps and edges cost a copy.
 */
#define ARRANGED(a) (TAPS_X * (a)->copy)
#define TAP_AT(a, r, s)                                                                        \
    ((s) * (a)->copy +                                                                         \
     ((r) * GAP_Y % STRIDE_Y * (a)->rows + (r) * GAP_Y / STRIDE_Y) * (a)->out_w)

/* VECTOR reals, STRIDE_X apart. */
INLINE V load_columns(__global const real *x)
{
#if STRIDE_X == 1
    return ROW_LOAD(x);
#elif STRIDE_X == 2 && VECTOR > 1
    V v;
    v.lo = ROW_LOAD(x).even;
    v.hi = ROW_LOAD(x + VECTOR).even;
    return v;
#else
    union {
        real lane[VECTOR];
        V all;
    } v;
    for (int i = 0; i < VECTOR; i++)
        v.lane[i] = x[i * STRIDE_X];
    return v.all;
#endif
}

/* Row y of a plane, as column s of taps sees it. What is written behind a row's end, less than
 * a vector, is the beginning of the next one or room at the end of the copy. */
INLINE void arrange_row(const struct lk_planes *a, __global const real *x, __global real *to,
                        int y, int s, real pad)
{
    const int shift = s * GAP_X - a->pad_x, width = a->out_w;
    const int reach = a->in_w - 1 - shift;
    const int first = shift < 0 ? min((STRIDE_X - 1 - shift) / STRIDE_X, width) : 0;
    const int end = reach < 0 ? 0 : min(reach / STRIDE_X + 1, width);
    if (y < 0 || y >= a->in_h || first >= end) {
        for (int j = 0; j < width; j += VECTOR)
            ROW_STORE(to + j, (V)pad);
        return;
    }
    const int at = y * a->in_w + shift, last = (a->in_vectors - STRIDE_X) * VECTOR;
    int j = first;
    for (; j < end && at + j * STRIDE_X <= last; j += VECTOR)
        ROW_STORE(to + j, load_columns(x + at + j * STRIDE_X));
    for (; j < end; j++)
        to[j] = x[at + j * STRIDE_X];
    for (j = end; j < width; j++)
        to[j] = pad;
    for (j = 0; j < first; j++)
        to[j] = pad;
}

/* The copy of a plane for column s of taps, and `pad` in what is left of it: dead lanes of what
 * is made of it are finite then. */
INLINE void arrange_copy(const struct lk_planes *a, __global const real *x, __global real *to,
                         int s, real pad)
{
    for (int phase = 0; phase < a->phases; phase++)
        for (int i = 0; i < a->rows; i++)
            arrange_row(a, x, to + (phase * a->rows + i) * a->out_w,
                        i * STRIDE_Y + phase - a->pad_y, s, pad);
    for (int j = a->phases * a->rows * a->out_w; j < a->copy; j++)
        to[j] = pad;
}

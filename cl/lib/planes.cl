/* Windows over a plane of plane tiles. Needs lib/real.cl, products/planes/args.h; -D: TAPS_Y,
 * TAPS_X, STRIDE_Y, STRIDE_X, GAP_Y, GAP_X.
 *
 * Sums over channels read a plane for many filters, so strides, gaps and edges may cost a copy.
 * A vector of outputs is VECTOR neighbours of a plane of out_h x out_w, row by row. What tap
 * (r, s) sees of them are as many neighbours of an arranged plane: for each column s of taps a
 * copy of the plane, `copy` reals, with the columns that s sees and `pad` beyond the edges, its
 * rows in `phases` of every STRIDE_Y-th, `rows` each: row r of taps begins at row
 * r GAP_Y / STRIDE_Y of phase r GAP_Y % STRIDE_Y. What works channel by channel reads rows as
 * they lie (load_tap()).
 */
#define ARRANGED(a) (TAPS_X * (a)->copy)

/* Every second of the 2 VECTOR reals of a and b. */
#if VECTOR > 1
INLINE V evens(V a, V b)
{
    V v;
    v.lo = a.even;
    v.hi = b.even;
    return v;
}

INLINE V odds(V a, V b)
{
    V v;
    v.lo = a.odd;
    v.hi = b.odd;
    return v;
}
#endif

/* VECTOR reals, STRIDE_X apart. */
INLINE V load_columns(__global const real *x)
{
#if STRIDE_X == 1
    return ROW_LOAD(x);
#elif STRIDE_X == 2 && VECTOR > 1
    return evens(ROW_LOAD(x), ROW_LOAD(x + VECTOR));
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

/* Which of VECTOR outputs, from `column` of their row on, see a column of x by tap s. */
INLINE I columns_seen(const struct lk_planes *a, int column, int s)
{
    union {
        real lane[VECTOR];
        V all;
    } at;
    UNROLL
    for (int i = 0; i < VECTOR; i++)
        at.lane[i] = i * STRIDE_X;
    at.all += (V)(real)(column * STRIDE_X - a->pad_x + s * GAP_X);
    return (at.all >= (V)0) & (at.all < (V)(real)a->in_w);
}

/* How far what lies around a plane may be read, which are planes too: `before` reals before
 * its beginning, `end` from there on. */
struct surroundings {
    int before, end;
};

INLINE struct surroundings around(const struct lk_planes *a, size_t plane, size_t planes)
{
    const size_t size = a->in_vectors * VECTOR, before = plane * size;
    const size_t end = (planes - plane) * size, most = 1 << 30;
    const struct surroundings around = {before < most ? before : most, end < most ? end : most};
    return around;
}

/* What tap s of a row sees of VECTOR outputs, of which the first sees x with tap 0. With
 * strides of 2 two taps share what they load. */
INLINE V load_tap(__global const real *x, int s)
{
#if STRIDE_X == 2 && GAP_X == 1 && VECTOR > 1
    const V left = ROW_LOAD(x + s / 2 * 2), right = ROW_LOAD(x + s / 2 * 2 + VECTOR);
    return s % 2 ? odds(left, right) : evens(left, right);
#else
    return load_columns(x + s * GAP_X);
#endif
}

/* load_columns() from real `at` of a plane on, where some of them are not there. */
INLINE V load_within(__global const real *x, int at, int size)
{
    union {
        real lane[VECTOR];
        V all;
    } v;
    for (int i = 0; i < VECTOR; i++) {
        const int from = at + i * STRIDE_X;
        v.lane[i] = from >= 0 && from < size ? x[from] : 0;
    }
    return v.all;
}

/* The first `count` reals of v: for the others there may be no room. */
INLINE void store_first(__global real *to, V v, int count)
{
    union {
        V all;
        real lane[VECTOR];
    } lanes = {v};
    if (count == VECTOR) {
        ROW_STORE(to, v);
        return;
    }
    for (int i = 0; i < count; i++)
        to[i] = lanes.lane[i];
}

/* VECTOR columns of `rows` rows of a copy, of which the first is row y of the plane. */
INLINE void arrange_columns(const struct lk_planes *a, __global const real *x,
                            struct surroundings around, __global real *to, int y, int rows,
                            int column, int s, real pad)
{
    const int in_h = a->in_h, in_w = a->in_w, width = a->out_w;
    const int last = around.end - STRIDE_X * VECTOR;
    const I there = columns_seen(a, column, s);
    int at = y * in_w + column * STRIDE_X - a->pad_x + s * GAP_X;
    to += column;
    ROLLED
    for (int i = 0; i < rows; i++, y += STRIDE_Y, at += STRIDE_Y * in_w, to += width) {
        V v = (V)pad;
        if ((uint)y < (uint)in_h) {
            v = at >= -around.before && at <= last
                    ? load_columns(x + at)
                    : load_within(x, at, a->in_vectors * VECTOR);
            v = there ? v : (V)pad;
        }
        ROW_STORE(to, v);
    }
}

/* The copy of a plane for column s of taps, and `pad` where there is nothing of it and in what
 * is left of the copy: dead lanes of what is made of it are finite then. What a row writes
 * beyond its end the next one overwrites. Columns of a few rows at a time, which stay in the
 * first cache. */
BODY void arrange_copy(const struct lk_planes *a, __global const real *x,
                       struct surroundings around, __global real *to, int s, real pad)
{
    const int width = a->out_w, at_once = 16, all = a->phases * a->rows * width;
    __global real *const end = to + all;
    for (int j = a->copy - VECTOR; j + VECTOR > all; j -= VECTOR)
        ROW_STORE(to + j, (V)pad);
    for (int phase = 0; phase < a->phases; phase++)
        for (int i = 0; i < a->rows; i += at_once) {
            const int rows = min(at_once, (int)a->rows - i);
            for (int column = 0; column < width; column += VECTOR)
                arrange_columns(a, x, around, to, phase - a->pad_y + i * STRIDE_Y, rows,
                                max(min(column, width - VECTOR), 0), s, pad);
            to += rows * width;
        }
    for (int j = 0; j < VECTOR - width; j++)
        end[j] = pad;
}

/* The transforms of Winograd's F(TILE x TILE, 3x3), TILE 2 or 4, in one dimension. Needs
 * lib/real.cl. source: Lavin and Gray, Fast Algorithms for Convolutional Neural Networks (2015)
 *
 *   y = A' [(G g) . (B' d)]: inputs d[SIDE], taps g[3], outputs y[TILE]
 *
 * and, as its derivatives: dg = G' [(B' d) . (A dy)], dd = B [(G g) . (A dy)]. Each macro takes
 * where results go and a macro that names operand i.
 */
#define SIDE (TILE + 2)
#define POSITIONS (SIDE * SIDE)

#if TILE == 4
INLINE void winograd_bt(V *o, V d0, V d1, V d2, V d3, V d4, V d5)
{
    const V a = FMA((V)-4, d2, d4), b = FMA((V)-4, d1, d3), c = d4 - d2, e = d3 - d1;
    o[0] = FMA((V)4, d0, FMA((V)-5, d2, d4));
    o[1] = a + b;
    o[2] = a - b;
    o[3] = FMA((V)2, e, c);
    o[4] = FMA((V)-2, e, c);
    o[5] = FMA((V)4, d1, FMA((V)-5, d3, d5));
}

INLINE void winograd_g(V *o, V g0, V g1, V g2)
{
    const V even = (g0 + g2) * (V)(-1 / (real)6), odd = g1 * (V)(-1 / (real)6);
    const V far = FMA((V)(1 / (real)6), g2, g0 * (V)(1 / (real)24));
    const V half_odd = g1 * (V)(1 / (real)12);
    o[0] = g0 * (V)0.25f;
    o[1] = even + odd;
    o[2] = even - odd;
    o[3] = far + half_odd;
    o[4] = far - half_odd;
    o[5] = g2;
}

INLINE void winograd_at(V *o, V m0, V m1, V m2, V m3, V m4, V m5)
{
    const V s = m1 + m2, d = m1 - m2, p = m3 + m4, q = m3 - m4;
    o[0] = m0 + s + p;
    o[1] = FMA((V)2, q, d);
    o[2] = FMA((V)4, p, s);
    o[3] = FMA((V)8, q, d) + m5;
}

INLINE void winograd_a(V *o, V d0, V d1, V d2, V d3)
{
    const V even = d0 + d2, odd = d1 + d3;
    const V even4 = FMA((V)4, d2, d0), odd4 = FMA((V)8, d3, d1 + d1);
    o[0] = d0;
    o[1] = even + odd;
    o[2] = even - odd;
    o[3] = even4 + odd4;
    o[4] = even4 - odd4;
    o[5] = d3;
}

INLINE void winograd_gt(V *o, V m0, V m1, V m2, V m3, V m4, V m5)
{
    const V s = m1 + m2, d = m2 - m1, p = m3 + m4, q = m3 - m4;
    const V sixth = (V)(1 / (real)6);
    o[0] = FMA((V)(1 / (real)24), p, FMA(-sixth, s, (V)0.25f * m0));
    o[1] = FMA((V)(1 / (real)12), q, sixth * d);
    o[2] = FMA(sixth, p - s, m5);
}

INLINE void winograd_b(V *o, V m0, V m1, V m2, V m3, V m4, V m5)
{
    const V s = m1 + m2, d = m1 - m2, p = m3 + m4, q = m3 - m4;
    o[0] = (V)4 * m0;
    o[1] = FMA((V)4, m5 - d, (V)-2 * q);
    o[2] = FMA((V)-5, m0, FMA((V)-4, s, -p));
    o[3] = FMA((V)-5, m5, FMA((V)2, q, d));
    o[4] = m0 + s + p;
    o[5] = m5;
}

#define WINOGRAD_BT(o, d) winograd_bt(o, d(0), d(1), d(2), d(3), d(4), d(5))
#define WINOGRAD_B(o, m) winograd_b(o, m(0), m(1), m(2), m(3), m(4), m(5))
#define WINOGRAD_AT(o, m) winograd_at(o, m(0), m(1), m(2), m(3), m(4), m(5))
#define WINOGRAD_A(o, d) winograd_a(o, d(0), d(1), d(2), d(3))
#define WINOGRAD_GT(o, m) winograd_gt(o, m(0), m(1), m(2), m(3), m(4), m(5))
#else
INLINE void winograd_bt(V *o, V d0, V d1, V d2, V d3)
{
    o[0] = d0 - d2;
    o[1] = d1 + d2;
    o[2] = d2 - d1;
    o[3] = d1 - d3;
}

INLINE void winograd_g(V *o, V g0, V g1, V g2)
{
    const V even = (g0 + g2) * (V)0.5f, odd = g1 * (V)0.5f;
    o[0] = g0;
    o[1] = even + odd;
    o[2] = even - odd;
    o[3] = g2;
}

INLINE void winograd_at(V *o, V m0, V m1, V m2, V m3)
{
    o[0] = m0 + m1 + m2;
    o[1] = m1 - m2 - m3;
}

INLINE void winograd_a(V *o, V d0, V d1)
{
    o[0] = d0;
    o[1] = d0 + d1;
    o[2] = d0 - d1;
    o[3] = -d1;
}

INLINE void winograd_gt(V *o, V m0, V m1, V m2, V m3)
{
    const V even = (m1 + m2) * (V)0.5f;
    o[0] = m0 + even;
    o[1] = (m1 - m2) * (V)0.5f;
    o[2] = even + m3;
}

INLINE void winograd_b(V *o, V m0, V m1, V m2, V m3)
{
    o[0] = m0;
    o[1] = m1 - m2 + m3;
    o[2] = m1 + m2 - m0;
    o[3] = -m3;
}

#define WINOGRAD_BT(o, d) winograd_bt(o, d(0), d(1), d(2), d(3))
#define WINOGRAD_B(o, m) winograd_b(o, m(0), m(1), m(2), m(3))
#define WINOGRAD_AT(o, m) winograd_at(o, m(0), m(1), m(2), m(3))
#define WINOGRAD_A(o, d) winograd_a(o, d(0), d(1))
#define WINOGRAD_GT(o, m) winograd_gt(o, m(0), m(1), m(2), m(3))
#endif
#define WINOGRAD_G(o, g) winograd_g(o, g(0), g(1), g(2))

/* dw = G' m G, positions of m `stride` apart. */
INLINE void winograd_taps(V dw[3][3], __global const V *m, size_t stride)
{
    V t[3][SIDE];
    UNROLL for (int j = 0; j < SIDE; j++) {
        V column[3];
#define M(i) m[((i) * SIDE + j) * stride]
        WINOGRAD_GT(column, M);
#undef M
        UNROLL for (int r = 0; r < 3; r++)
            t[r][j] = column[r];
    }
    UNROLL for (int r = 0; r < 3; r++) {
#define M(j) t[r][j]
        WINOGRAD_GT(dw[r], M);
#undef M
    }
}

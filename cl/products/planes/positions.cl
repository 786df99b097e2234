/* What Winograd's algorithm over plane tiles multiplies. Needs lib/real.cl; -D: TILE, STRIDE_Y
 *
 * Stride 1 is F(TILE x TILE, 3x3) of lib/winograd.cl.
 *
 * With strides of 2 an image is four: its even and odd rows, of these the even and the odd
 * columns, counted from the padded edge on. Output i sees of even ones i and i + 1, by taps 0
 * and 2, and of odd ones i, by tap 1. So that is a convolution of four times the channels with
 * 2x2 taps, some of them 0, by F(TILE x TILE, 2x2). Of a lone tap the last of the transformed
 * ones is 0: the last row of positions has no odd rows, the last column no odd columns, so that
 * (2 TILE + 1)^2 products make TILE^2 outputs, which are 9 TILE^2 without.
 * source: Yepez and Ko, Stride 2 1-D, 2-D, and 3-D Winograd for Convolutional Neural Networks
 * (2020)
 *
 * Positions lie in up to three sections: first those of all four images, then those of two,
 * then the one of a single image.
 */
#if STRIDE_Y == 1
#include "lib/winograd.cl"
#define TAPS 3
#define SECTIONS 1
#else
#define TAPS 2
#define SECTIONS 3
#define SIDE (TILE + 1)
#define POSITIONS (SIDE * SIDE)

#if TILE == 4 /* points 0, 1, -1, 2 and infinity */
INLINE void winograd_bt(V *o, V d0, V d1, V d2, V d3, V d4)
{
    const V p = d3 - d1;
    o[0] = FMA((V)2, d0 - d2, p);
    o[1] = p - d1 - d2;
    o[2] = FMA((V)-3, d2, FMA((V)2, d1, d3));
    o[3] = p;
    o[4] = FMA((V)-2, p, d4 - d2);
}

INLINE void winograd_g(V *o, V g0, V g1)
{
    const V sixth = (V)(1 / (real)6);
    o[0] = g0 * (V)0.5f;
    o[1] = (g0 + g1) * (V)-0.5f;
    o[2] = (g1 - g0) * sixth;
    o[3] = FMA((V)2, g1, g0) * sixth;
    o[4] = g1;
}

INLINE void winograd_at(V *o, V m0, V m1, V m2, V m3, V m4)
{
    const V s = m1 + m2, d = m1 - m2;
    o[0] = m0 + s + m3;
    o[1] = FMA((V)2, m3, d);
    o[2] = FMA((V)4, m3, s);
    o[3] = FMA((V)8, m3, d) + m4;
}
#define WINOGRAD_BT(o, d) winograd_bt(o, d(0), d(1), d(2), d(3), d(4))
#define WINOGRAD_AT(o, m) winograd_at(o, m(0), m(1), m(2), m(3), m(4))
#else
INLINE void winograd_bt(V *o, V d0, V d1, V d2)
{
    o[0] = d0 - d1;
    o[1] = d1;
    o[2] = d2 - d1;
}

INLINE void winograd_g(V *o, V g0, V g1)
{
    o[0] = g0;
    o[1] = g0 + g1;
    o[2] = g1;
}

INLINE void winograd_at(V *o, V m0, V m1, V m2)
{
    o[0] = m0 + m1;
    o[1] = m1 + m2;
}
#define WINOGRAD_BT(o, d) winograd_bt(o, d(0), d(1), d(2))
#define WINOGRAD_AT(o, m) winograd_at(o, m(0), m(1), m(2))
#endif
#define WINOGRAD_G(o, g) winograd_g(o, g(0), g(1))
#endif

#define IMAGES (STRIDE_Y * STRIDE_Y)
#define LAST (SIDE - 1)

INLINE int images_of(int section)
{
    return IMAGES >> section;
}

INLINE int first_of(int section)
{
    return section == 0 ? 0 : section == 1 ? LAST * LAST : LAST * SIDE + LAST;
}

INLINE int count_of(int section)
{
    return SECTIONS == 1 ? POSITIONS : section == 0 ? LAST * LAST : section == 1 ? 2 * LAST : 1;
}

INLINE int section_of(int i, int j)
{
    return SECTIONS == 1 ? 0 : (i == LAST) + (j == LAST);
}

/* Where position (i, j) lies in its section. */
INLINE int place_of(int i, int j)
{
    if (SECTIONS == 1)
        return i * SIDE + j;
    return i < LAST ? (j < LAST ? i * LAST + j : LAST + i) : (j < LAST ? j : 0);
}

/* Whether position (i, j) has the image of odd (1) or even (0) rows and columns. */
INLINE bool has_image(int i, int j, int odd_y, int odd_x)
{
    return !(i == LAST && odd_y) && !(j == LAST && odd_x);
}

/* The number of that image among those of the position. */
INLINE int image_of(int i, int j, int odd_y, int odd_x)
{
    return j == LAST ? odd_y : i == LAST ? odd_x : odd_y * STRIDE_Y + odd_x;
}

/* Where positions of a sample begin: [sections][samples][positions], `apart` reals each. */
struct positions {
    size_t first[SECTIONS], apart;
};

INLINE struct positions positions_of(size_t apart, int sample, int samples)
{
    struct positions at = {.apart = apart};
    for (int s = 0; s < SECTIONS; s++)
        at.first[s] = ((size_t)samples * first_of(s) + (size_t)sample * count_of(s)) * apart;
    return at;
}

INLINE size_t position_at(const struct positions *at, int i, int j)
{
    return at->first[section_of(i, j)] + place_of(i, j) * at->apart;
}

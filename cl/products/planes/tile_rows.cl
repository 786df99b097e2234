/* Rows of Winograd tiles side by side, and vectors whose lanes are tiles. Needs lib/real.cl,
 * lib/planes.cl; -D: TILE.
 *
 * Where a row has at most half as many tiles as a vector has lanes, a vector has the tiles of
 * two rows, each in a half.
 */
#if VECTOR == 16
#define HALF 8
#elif VECTOR == 8
#define HALF 4
#else
#define HALF 2
#endif
typedef __attribute__((aligned(REAL_BYTES))) PASTE(REAL, HALF) half_row;

/* VECTOR tiles: of one row, or half of them of each of two rows, which are `apart` reals apart.
 */
INLINE V load_tiles(__global const real *from, bool is_pair, int apart)
{
    if (is_pair) {
        V v;
        v.lo = *(__global const half_row *)from;
        v.hi = *(__global const half_row *)(from + apart);
        return v;
    }
    return ROW_LOAD(from);
}

INLINE void store_tiles(__global real *to, bool is_pair, int apart, V v)
{
    if (is_pair) {
        *(__global half_row *)to = v.lo;
        *(__global half_row *)(to + apart) = v.hi;
        return;
    }
    ROW_STORE(to, v);
}

/* Columns 0 to TILE - 1 of VECTOR Winograd tiles: of half of them, side by side, from `row` on,
 * of the others from `other` on. */
INLINE void part_tiles(__global const real *row, __global const real *other, V *column)
{
#if TILE == 4
    const V a = ROW_LOAD(row), b = ROW_LOAD(row + VECTOR), c = ROW_LOAD(other),
            d = ROW_LOAD(other + VECTOR);
    const V even = evens(a, b), more_even = evens(c, d), odd = odds(a, b),
            more_odd = odds(c, d);
    column[0] = evens(even, more_even);
    column[1] = evens(odd, more_odd);
    column[2] = odds(even, more_even);
    column[3] = odds(odd, more_odd);
#else
    const V a = ROW_LOAD(row), b = ROW_LOAD(other);
    column[0] = evens(a, b);
    column[1] = odds(a, b);
#endif
}

/* The lanes of a and b in turn. */
INLINE void pair(V a, V b, V *first, V *second)
{
    first->even = a.lo;
    first->odd = b.lo;
    second->even = a.hi;
    second->odd = b.hi;
}

/* The other way: columns to `row` and `other`. */
INLINE void join_tiles(const V *column, __global real *row, __global real *other)
{
    V a, b, c, d;
#if TILE == 4
    V even, more_even, odd, more_odd;
    pair(column[0], column[2], &even, &more_even);
    pair(column[1], column[3], &odd, &more_odd);
    pair(even, odd, &a, &b);
    pair(more_even, more_odd, &c, &d);
    ROW_STORE(row + VECTOR, b);
    ROW_STORE(other + VECTOR, d);
#else
    pair(column[0], column[1], &a, &c);
#endif
    ROW_STORE(row, a);
    ROW_STORE(other, c);
}

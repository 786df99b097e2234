/* How recurrent layers pack U: in the order in which blocks of UNITS units read it. Past the
 * last unit that one again. Needs lib/real.cl, GATES, UNITS. */

/* packed[block][k][gate][UNITS] of gates from `first` on. */
INLINE void pack_gates(__global const real *u, __global real *to, int units, int first,
                       const int gates, int block)
{
    to += (size_t)block * units * gates * UNITS;
    for (int k = PART; k < units; k += PARTS)
        for (int g = 0; g < gates; g++)
            for (int v = 0; v < UNITS; v++)
                to[(k * gates + g) * UNITS + v] = u[((size_t)k * GATES + first + g) * units +
                                                    min(block * UNITS + v, units - 1)];
}

/* packed[block][column][UNITS] of `count` columns. */
INLINE void pack_columns(__global const real *u, __global real *to, int units, int first,
                         int count, int block)
{
    to += (size_t)block * count * UNITS;
    for (int v = 0; v < UNITS; v++) {
        __global const real *from =
            u + (size_t)min(block * UNITS + v, units - 1) * GATES * units + first;
        for (int c = PART; c < count; c += PARTS)
            to[(size_t)c * UNITS + v] = from[c];
    }
}

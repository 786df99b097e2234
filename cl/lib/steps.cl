/* How many time steps of a sequence are valid in each lane. Needs lib/real.cl.
 *
 * length: [tiles][LANES], or null where all are valid; data, so that any number may stand
 * there. */

/* An element of an I. */
#if REAL_BYTES == 8 && VECTOR > 1
typedef long whole;
#else
typedef int whole;
#endif

/* Of one lane, from 0 to steps. */
INLINE int valid_steps(__global const int *restrict length, size_t tile, int lane, int steps)
{
    return length ? clamp(length[tile * LANES + lane], 0, steps) : steps;
}

/* Of the lanes of a work-item. */
INLINE I valid_steps_here(__global const int *restrict length, size_t tile, int steps)
{
    union {
        whole lane[VECTOR];
        I all;
    } valid;
    UNROLL for (int v = 0; v < VECTOR; v++) valid.lane[v] =
        valid_steps(length, tile, PART * VECTOR + v, steps);
    return valid.all;
}

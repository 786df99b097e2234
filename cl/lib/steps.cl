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

#if VECTOR == 1
#define STEPS_TO_V(x) ((real)(x))
#else
#define STEPS_TO_V(x) PASTE(PASTE(convert_, REAL), VECTOR)(x)
#endif

/* How many windows over n valid steps are valid: those that begin before step n - lack. */
INLINE I valid_windows(I n, int lack, int stride)
{
    return n > (I)lack ? (n - lack - 1) / stride + 1 : (I)0;
}

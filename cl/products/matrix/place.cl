/* What the kernels of matrices share. Needs lib/real.cl. */

/* at[i] = stride * i for i up to `last`, and the last place again for those past it: the same
 * number is then stored several times, which is cheaper to run and to compile than leaving it
 * out. */
INLINE void place(size_t at[], int count, int last, int stride)
{
    at[0] = 0;
    UNROLL for (int i = 1; i < count; i++) at[i] = at[i - 1] + (i <= last ? stride : 0);
}

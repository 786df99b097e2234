/* The end of a product: y = act(norm(sum) + more). Needs lib/real.cl.
 * -D, 0 where nothing is said: NORMS: 0 or 1: norm(x) = (x - n[0]) n[1] + n[2], n: three reals
 * of the filter; ADDS: 0 or 1; RELU: 0: act(x) = x, 1: max(x, 0), 2: min(max(x, 0), MOST),
 * 3: x / (1 + exp(-x)). Bits are those of the operations that it stands for
 * (cl/ops/norm/batch_norm.cl, cl/ops/arrange/broadcast.cl, cl/ops/eltwise.cl).
 */
#ifndef NORMS
#define NORMS 0
#endif
#ifndef ADDS
#define ADDS 0
#endif
#ifndef RELU
#define RELU 0
#endif

/* Whether what a kernel calls `gate` is read: it either gates the outputs or is added. */
#define READS_GATE (GATED || ADDS)

INLINE V activate(V x)
{
#if RELU == 1 && NORMS && !ADDS
    return x > (V)0 ? x : (V)0;
#elif RELU == 1
    return x < (V)0 ? (V)0 : x;
#elif RELU == 2
    return x < (V)0 ? (V)0 : x > (V)NUMBER(MOST) ? (V)NUMBER(MOST) : x;
#elif RELU == 3
    return x * ((V)1 / ((V)1 + exp(-x)));
#else
    return x;
#endif
}

/* more: a summand, read where ADDS. */
INLINE V finish(V sum, __global const S *more)
{
#if ADDS
    sum += LOAD(more);
#endif
    return activate(sum);
}

/* n: of the filter, read where NORMS. */
INLINE V finish_norm(V sum, __global const real *n, __global const S *more)
{
#if NORMS
    sum = FMA(sum - n[0], (V)n[1], (V)n[2]);
#endif
    return finish(sum, more);
}

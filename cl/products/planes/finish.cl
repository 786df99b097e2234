/* The end of a product over plane tiles: y = act(sum + more). Needs lib/real.cl.
 * -D: ADDS: 0 or 1; RELU: 0: act(x) = x, 1: max(x, 0), 2: min(max(x, 0), MOST),
 * 3: x / (1 + exp(-x)). Bits are those of the operations (cl/ops/eltwise.cl) that it stands
 * for.
 */
INLINE V activate(V x)
{
#if RELU == 1
    return x < (V)0 ? (V)0 : x;
#elif RELU == 2
    return x < (V)0 ? (V)0 : x > (V)NUMBER(MOST) ? (V)NUMBER(MOST) : x;
#elif RELU == 3
    return x * ((V)1 / ((V)1 + exp(-x)));
#else
    return x;
#endif
}

INLINE V finish(V sum, __global const V *more)
{
#if ADDS
    sum += *more;
#endif
    return activate(sum);
}

/* Sums over the lanes of a batch tile, in one fixed order: a binary tree over lane numbers,
 * halves first (lane l + lane l + LANES/2, ...), whatever VECTOR is. Needs lib/real.cl. */

#if VECTOR == 1
INLINE real sum_vector(V v)
{
    return v;
}
#else
INLINE real sum_vector(V v)
{
#if VECTOR == 16
    PASTE(REAL, 8) h = v.lo + v.hi;
    PASTE(REAL, 4) q = h.lo + h.hi;
#elif VECTOR == 8
    PASTE(REAL, 4) q = v.lo + v.hi;
#else
    PASTE(REAL, 4) q = v;
#endif
    PASTE(REAL, 2) p = q.lo + q.hi;
    return p.x + p.y;
}
#endif

/* The sum over all lanes, for every work-item of the group. scratch: PARTS values V of local
 * memory, free to be used again on return. All work-items of the group must call it. */
INLINE real sum_lanes(V v, __local V *scratch)
{
#if PARTS > 1
    for (int apart = PARTS / 2; apart > 0; apart /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        scratch[PART] = v;
        barrier(CLK_LOCAL_MEM_FENCE);
        v += scratch[(PART + apart) % PARTS];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    scratch[PART] = v;
    barrier(CLK_LOCAL_MEM_FENCE);
    v = scratch[0];
#endif
    return sum_vector(v);
}

/* Sums over the lanes of a batch tile, in one fixed order: a binary tree over lane numbers,
 * halves first (lane l + lane l + LANES/2, ...), whatever VECTOR is. Needs lib/real.cl.
 * -D, where the device has sub-groups, for the same bits: SHUFFLE(v, apart): v of the work-item
 * whose number in its sub-group is the own one xor `apart`; SUBGROUP: work-items of one. */

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

#if defined(SHUFFLE) && defined(__AMDGCN__)
INLINE float amd_shuffle_xor(float v, int apart)
{
    return as_float(__builtin_amdgcn_ds_bpermute((PART ^ apart) * 4, as_int(v)));
}
#endif

/* The sum over all lanes, for every work-item of the group. After the addition with `apart`,
 * all work-items whose numbers differ by a multiple of `apart` hold the same value. scratch:
 * PARTS values V of local memory, for this alone. All work-items of the group must call it. */
INLINE real sum_lanes(V v, __local V *scratch)
{
#if PARTS > 1
    UNROLL for (int apart = PARTS / 2; apart > 0; apart /= 2)
    {
#if defined(SHUFFLE) && REAL_BYTES == 4
        if (apart < (int)SUBGROUP) {
            v += SHUFFLE(v, apart);
            continue;
        }
#endif
        barrier(CLK_LOCAL_MEM_FENCE);
        scratch[PART] = v;
        barrier(CLK_LOCAL_MEM_FENCE);
        v += scratch[(PART + apart) % PARTS];
    }
#endif
    return sum_vector(v);
}

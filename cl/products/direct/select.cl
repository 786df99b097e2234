/* Choice lane by lane: SELECT(m, a, b) is a in the lanes of mask m, b in the others; MASK(v):
 * those where v, an I as a comparison gives it, is negative. The compiler turns many choices by
 * the same comparison into twice as many logical operations; where masks are registers of their
 * own it is told of that. Needs lib/real.cl. */
#if defined(__AVX512F__) && defined(__has_builtin) && VECTOR * REAL_BYTES == 64
#if REAL_BYTES == 4 && __has_builtin(__builtin_ia32_selectps_512) &&                           \
    __has_builtin(__builtin_ia32_cmpd512_mask)
typedef ushort M;
#define MASK(v) __builtin_ia32_cmpd512_mask(v, (I)0, 1, (ushort)-1)
#define SELECT(m, a, b) __builtin_ia32_selectps_512(m, a, b)
#elif REAL_BYTES == 8 && __has_builtin(__builtin_ia32_selectpd_512) &&                         \
    __has_builtin(__builtin_ia32_cmpq512_mask)
typedef uchar M;
#define MASK(v) __builtin_ia32_cmpq512_mask(v, (I)0, 1, (uchar)-1)
#define SELECT(m, a, b) __builtin_ia32_selectpd_512(m, a, b)
#endif
#endif
#ifndef MASK
typedef I M;
#define MASK(v) (v)
#define SELECT(m, a, b) ((m) ? (a) : (b))
#endif

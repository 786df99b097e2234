/* PUT(p, v) is STORE(p, v); with STREAM it writes past the caches. GATE(p, v) is v; with GATED
 * it is 0 in those lanes in which p, a pointer to an S, has nothing above 0. Needs
 * lib/hints.cl, lib/real.cl.
 *
 * A kernel that is told when it runs uses STORE in one branch and PUT_PAST in another that
 * begins and ends with APART: without it compilers make one store of both, into the caches. */

#if defined(STORED_BYTES) && STORED_BYTES == 2
INLINE S as_stored(V v)
{
    S stored;
#if VECTOR == 1
    vstore_half(v, 0, (half *)&stored);
#else
    PASTE(vstore_half, VECTOR)(v, 0, (half *)&stored);
#endif
    return stored;
}
#define PUT_PAST(p, v) STREAM_STORE(p, as_stored(v))
#else
#define PUT_PAST(p, v) STREAM_STORE(p, v)
#endif

#if STREAM
#define PUT(p, v) PUT_PAST(p, v)
#else
#define PUT(p, v) STORE(p, v)
#endif

#ifndef GATED
#define GATED 0
#endif
#if GATED
#define GATE(p, v) (LOAD(p) > (V)0 ? (v) : (V)0)
#else
#define GATE(p, v) (v)
#endif

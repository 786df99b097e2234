/* PUT(p, v): STORE(p, v), where STREAM past the caches. Needs lib/hints.cl, lib/real.cl. */

#if !STREAM
#define PUT(p, v) STORE(p, v)
#elif defined(STORED_BYTES) && STORED_BYTES == 2
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
#define PUT(p, v) STREAM_STORE(p, as_stored(v))
#else
#define PUT(p, v) STREAM_STORE(p, v)
#endif

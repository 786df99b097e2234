/* The largest of the four pixels of a 2x2 max-pool, and which it was. Needs lib/real.cl. */

/* The largest of four and its number; of equal ones the first. */
INLINE V greatest(V v0, V v1, V v2, V v3, I *which)
{
    I at = v1 > v0 ? (I)1 : (I)0;
    V most = v1 > v0 ? v1 : v0;
    at = v2 > most ? (I)2 : at;
    most = v2 > most ? v2 : most;
    *which = v3 > most ? (I)3 : at;
    return v3 > most ? v3 : most;
}

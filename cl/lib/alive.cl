/* Which lanes of a batch tile have a sample, as convert.cl fills them. Needs lib/real.cl. */

/* 1 for lanes that have one, 0 for dead ones. */
INLINE V alive_lanes(int tile, int samples, int shard_samples, int shard_tiles)
{
    const int before = tile / shard_tiles * shard_samples;
    union {
        real lane[VECTOR];
        V all;
    } alive;
    for (int v = 0; v < VECTOR; v++) {
        const int number = tile % shard_tiles * LANES + PART * VECTOR + v;
        alive.lane[v] = number < shard_samples && before + number < samples;
    }
    return alive.all;
}

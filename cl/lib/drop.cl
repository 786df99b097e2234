/* Which elements dropouts keep: those whose random number is at least `threshold`. Needs
 * lib/real.cl, lib/random.cl, ops/args.h.
 *
 * The number of element k of quadruple (low, high) of sample n is word k of
 * lk_random(key, purpose, n, high 2^32 + low); n counts over the whole batch, from `first` on
 * this device, so that no tile, shard or device changes it. */

/* Of the samples of a tile: whether the elements of a quadruple are kept. */
INLINE void draw_kept(I kept[4], struct lk_drop d, int tile, uint low, uint high)
{
    const int start =
        d.first + tile / d.shard_tiles * d.shard_samples + tile % d.shard_tiles * LANES;
    const struct random4 r = random_bits((uint)d.key_low, (uint)d.key_high, RANDOM_DROPOUT,
                                         (uint)start + LANES_HERE, low, high);
    const U bits[4] = {r.v0, r.v1, r.v2, r.v3};
    for (int k = 0; k < 4; k++)
        kept[k] = TO_I(bits[k] >= (U)(uint)d.threshold);
}

/* The pixels of a shard that kernels of batch normalization walk over, a part for each group.
 * Needs lib/real.cl, lib/alive.cl. -D: LIVE, as batch_norm.cl has it. */

struct area {
    int channels, pixels, parts, part_pixels, samples, shard_samples, shard_tiles;
};
#define AREA                                                                                   \
    int channels, int pixels, int parts, int part_pixels, int samples, int shard_samples,      \
        int shard_tiles
#define THE_AREA                                                                               \
    {                                                                                          \
        channels, pixels, parts, part_pixels, samples, shard_samples, shard_tiles              \
    }
#define CHANNEL ((int)get_group_id(0))
#define SHARD ((int)get_group_id(1))

/* Neighbouring pixels of one tile: where they lie and which lanes count. */
struct run {
    size_t at;
    int count;
    V alive;
#ifdef LIVE
    int first; /* of the vectors of a plane */
    V last;    /* which lanes count of its last vector */
#endif
};

#ifdef LIVE
#define PIXELS(a) LIVE
#define ALIVE(run, i) ((run).first + (i) == (LIVE - 1) / VECTOR ? (run).last : (run).alive)

/* Where sample `number` of the shard is there, 1 for the first `count` lanes. */
INLINE V alive_pixels(const struct area *a, int number, int count)
{
    union {
        real lane[VECTOR];
        V all;
    } alive;
    for (int l = 0; l < VECTOR; l++)
        alive.lane[l] = l < count && SHARD * a->shard_samples + number < a->samples;
    return alive.all;
}
#else
#define PIXELS(a) (a)->pixels
#define ALIVE(run, i) (run).alive
#endif

/* The run that begins with pixel p of the shard and ends at `last` at the latest. */
INLINE struct run run_at(const struct area *a, long p, long last)
{
    const int first = (int)(p % a->pixels), at = (int)(p / a->pixels);
    const int tile = SHARD * a->shard_tiles + at;
    struct run run;
    run.at = (((size_t)tile * a->channels + CHANNEL) * a->pixels + first) * PARTS + PART;
    run.count = (int)min((long)(a->pixels - first), last - p);
#ifdef LIVE
    run.first = first;
    run.alive = alive_pixels(a, at, VECTOR);
    run.last = alive_pixels(a, at, (LIVE - 1) % VECTOR + 1);
#else
    run.alive = alive_lanes(tile, a->samples, a->shard_samples, a->shard_tiles);
#endif
    return run;
}

/* Loops over the runs of a part. */
#define FOR_RUNS(run, a, part)                                                                 \
    for (long p = (long)(part) * (a)->part_pixels,                                             \
              last = min(p + (a)->part_pixels, (long)(a)->shard_tiles * (a)->pixels);          \
         p < last && (run = run_at(a, p, last), true); p += run.count)

/* Parts in which the pixels of a shard are summed: `part` pixels each, none of which goes on
 * from one run of `run` pixels to the next. The time steps of a batch tile are a run: its parts
 * begin at the same steps however far it is padded, and those of padding add 0 behind the
 * others, so no bit depends on it. All pixels of other shards are one run.
 */
INLINE long part_begin(int index, int run, int part)
{
    const int of_run = (run + part - 1) / part;
    return (long)(index / of_run) * run + (long)(index % of_run) * part;
}

/* all: pixels of the shard, of which the last run may have fewer. */
INLINE long part_end(long begin, int run, int part, long all)
{
    return min(min(begin + part, (begin / run + 1) * run), all);
}

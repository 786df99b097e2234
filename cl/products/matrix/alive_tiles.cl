/* Tiles of a sequence, one for each time step of a batch tile, are dead behind the longest of
 * its samples. Needs lib/real.cl. lengths: [batch tiles][LANES], null: no tile is dead; steps:
 * tiles of a batch tile. Where a work-item sees its own lane alone, none counts as dead.
 */
#if VECTOR > 1 && PARTS == 1
typedef PASTE(int, VECTOR) lengths_row;
#endif

INLINE int is_alive(__global const int *lengths, int steps, int tile)
{
#if VECTOR > 1 && PARTS == 1
    const lengths_row t = tile % max(steps, 1);
    return !lengths || any(t < ((__global const lengths_row *)lengths)[tile / max(steps, 1)]);
#else
    return 1;
#endif
}

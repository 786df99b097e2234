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
    __global const lengths_row *rows = (__global const lengths_row *)lengths;
    return !lengths || any((lengths_row)(tile % steps) < rows[tile / steps]);
#else
    return 1;
#endif
}

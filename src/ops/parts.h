/* Sums over the pixels of a shard that operations divide into parts. Floor 4. Private to
 * src/ops. */
#ifndef LK_OPS_PARTS_H
#define LK_OPS_PARTS_H

#include "ops/op.h"

/* Pixels of one part where sums over so many pixels, of each of so many channels, are divided
 * among work-groups. Parts decide bits: they follow from these and the device's class alone. */
int64_t lk_op_part_pixels(const struct lk_op_setup *setup, int64_t channels, int64_t pixels);

/* Likewise of a shard whose runs (cl/lib/parts.cl) are so many pixels each: all of them, or
 * where `of_steps` those of a tile's time steps, on whose number the parts then do not depend.
 */
struct lk_op_parts {
    int64_t count, run_pixels, pixels;
};
struct lk_op_parts lk_op_parts(const struct lk_op_setup *setup, int64_t channels,
                               int64_t tile_pixels, bool of_steps);

#endif

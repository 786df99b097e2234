/* Structs that kernels of operations take by value. Floor 4. Private to src/ops. C and OpenCL C
 * read it. The kernels' texts in cl/ops say what the numbers mean. */
#ifndef LK_OPS_ARGS_H
#define LK_OPS_ARGS_H

#include "device/args.h"

/* What decides which elements a dropout keeps in a step; cl/lib/drop.cl. */
struct lk_drop {
    lk_int first, shard_samples, shard_tiles; /* number of the first sample in the whole batch;
                                               * of a shard */
    lk_int key_low, key_high, threshold;      /* unsigned numbers, as bits */
};

struct lk_pool {
    lk_int height, width, out_h, out_w; /* of x; of y */
    lk_int before_h, before_w;
    lk_int each;
};

/* A copy of boxes, axis by axis, 3 the innermost. */
struct lk_box_lines {
    lk_int count_1, count_2, count_3;
    lk_int from_0, from_1, from_2, from_3;
    lk_int to_1, to_2, to_3;
    lk_int shift_0, shift_1, shift_2, shift_3;
    lk_int at_0, at_1, at_2, at_3;
    lk_int lines, each, piece, pieces;
};

struct lk_group_norm {
    lk_int channels, set_channels, pixels; /* of a sample; of one normalized set */
    lk_int parts, part_pixels;
};

struct lk_layer_norm {
    lk_int channels, pixels;
    lk_int parts, run_pixels, part_pixels, shard_tiles; /* of what is summed for gamma, beta */
};

struct lk_attention {
    lk_int queries, keys, heads;
    lk_int q_row, k_row, v_row; /* numbers of a time step */
    lk_int k_at, v_at;          /* where those of the first head begin; q's at 0 */
    lk_int before;              /* causal: so many keys come before that of the first query */
};

struct lk_response_norm {
    lk_int channels, pixels;
};

/* Offsets are in sixteens of reals. */
struct lk_recurrent {
    lk_int steps, units, tiles;
    lk_int backwards, sequences, states; /* walks from the last step on; y has all steps; how
                                          * many final states it has */
    lk_int packed_at, state_at;          /* in the workspace */
};

struct lk_prelu {
    lk_int channels, pixels;
    lk_int parts, run_pixels, part_pixels, shard_tiles; /* of what is summed for slopes */
};

struct lk_embedding {
    lk_int vocabulary, units, steps;
    lk_int each;                /* time steps of a work-group; rows that one sets to zero */
    lk_int shard_tiles, groups; /* a power of two */
};

/* Windows over time steps: window o covers the steps o * stride - before + i * gap, i < size.
 * Of a sample with n valid steps, the windows that are valid begin before step n - lack. */
struct lk_step_windows {
    lk_int channels, steps, count; /* of x; windows */
    lk_int size, stride, gap, before, lack;
    lk_int each;
};

#endif

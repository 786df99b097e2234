/* Structs that kernels of the GPU class take by value, beside the geometry of a convolution
 * (products/kernel/args.h). Floor 3. Private to src/products. C and OpenCL C read it. The
 * kernels' texts in cl/products/gpu say what the numbers mean. */
#ifndef LK_PRODUCTS_GPU_ARGS_H
#define LK_PRODUCTS_GPU_ARGS_H

#include "device/args.h"

struct lk_gpu_gather {
    lk_int tiles, channels, filters;
    lk_int w_group, w_pitch;
    lk_int y_row, y_column, plane;
};

struct lk_gpu_turn {
    lk_int w_pitch, outs;
    /* In elements of w. */
    lk_int group_stride, out_stride, in_stride, first, row_stride, column_stride;
};

struct lk_gpu_sums {
    lk_int groups, channels, filters;
    lk_int shard_tiles, parts; /* of a shard */
    lk_int run_pixels, part_pixels;
};

#endif

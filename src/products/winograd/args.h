/* Structs that kernels of Winograd convolution take by value, beside the geometry of a
 * convolution (products/kernel/args.h). Floor 3. Private to src/products. C and OpenCL C read
 * it. The kernels' texts in cl/products/winograd say what the numbers mean. */
#ifndef LK_PRODUCTS_WINOGRAD_ARGS_H
#define LK_PRODUCTS_WINOGRAD_ARGS_H

#include "device/args.h"

/* Where weights come from, in elements of the parameter. */
struct lk_winograd_from {
    lk_int ins, outs;
    lk_int in_stride, row_stride, column_stride, out_stride;
};

struct lk_winograd_whole {
    lk_int tiles, ins, outs, relu, chunk, stream;
};

struct lk_winograd_parts {
    lk_int shards, shard_tiles, parts;
    lk_int channels, filters, block_channels;
};

struct lk_winograd_terms {
    lk_int shard0, shard_tiles, q0, q1, room;
    lk_int channels, filters;
};

#endif

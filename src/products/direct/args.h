/* Structs that kernels of direct sums take by value. Floor 3. Private to src/products. C and
 * OpenCL C read it. The kernels' texts in cl/products/direct say what the numbers mean. */
#ifndef LK_PRODUCTS_DIRECT_ARGS_H
#define LK_PRODUCTS_DIRECT_ARGS_H

#include "device/args.h"

struct lk_pack {
    lk_int block, outs, ins, rows, columns;
    /* In elements of w. */
    lk_int group_stride, out_stride, in_stride, first, row_stride, column_stride;
    lk_int blocks_each, ins_each;
};

/* Of a plane of outputs: pixels, and from one row and column to the next; blocks of a row that
 * see an edge; how the outputs are written. */
struct lk_strided {
    lk_int channels, filters, groups;
    lk_int plane, pitch, out_stride;
    lk_int left, right;
    lk_int relu, stream;
    lk_int rows_each, blocks_each;
};

/* Sizes are in vectors and pixels. */
struct lk_pointwise {
    lk_int channels, filters, all_filters, filter_first;
    lk_int in_plane, in_row, in_stride, width, pixels;
    lk_int cell_h, cell_w, out_h, out_w;
    lk_int groups, panel_runs, blocks_each;
    lk_int stream; /* outputs are written past the caches */
};

struct lk_point_weights {
    lk_int channels, filters, groups;
    lk_int in_plane, in_row, in_stride, width, pixels;
    lk_int areas; /* of an image */
    lk_int shard_tiles, parts;
};

/* How filters and channels are cut: see filter_blocks.h. */
struct lk_filter_cut {
    lk_int wide, blocks, blocks_each, group_channels;
};

struct lk_turned {
    lk_int channels, filters, groups;
    lk_int strip, rows_each, shard_tiles, areas_each;
};

struct lk_lanewise {
    lk_int channels, filters, groups;
    lk_int pad_y, pad_x, in_h, in_w, dz_h, dz_w; /* dz: of dy */
    lk_int group_channels, group_filters, areas, areas_each;
};

#endif

/* Structs that kernels of plane tiles take by value. Floor 3. C and OpenCL C read it. What the
 * numbers mean stands in cl/lib/planes.cl and cl/products/planes. */
#ifndef LK_PRODUCTS_PLANES_ARGS_H
#define LK_PRODUCTS_PLANES_ARGS_H

#include "device/args.h"

/* Windows over a plane. */
struct lk_planes {
    lk_int taps_y, taps_x, stride_y, stride_x, gap_y, gap_x; /* as struct lk_geometry */
    lk_int pad_y, pad_x, in_h, in_w, out_h, out_w;
    lk_int in_vectors, out_vectors; /* of a plane */
    lk_int phases, rows, copy;      /* of an arranged plane */
};

struct lk_plane_product {
    lk_int groups, channels, filters; /* of one group */
    lk_int x_plane, copy;             /* reals from channel to channel, column to column */
    lk_int row, phase;                /* and from row to row of taps, phase to phase */
    lk_int out_vectors;
    lk_int vectors_each, blocks_each;
};

#endif

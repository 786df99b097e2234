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
    lk_int x_group, y_group;          /* reals from group to group */
    lk_int row, phase;                /* and from row to row of taps, phase to phase */
    lk_int out_vectors, is_lone;      /* is_lone: the last has LONE pixels at most */
    lk_int vectors_each, blocks_each;
};

/* Sums of a weight gradient over `vectors` of a shard's planes of dz, those of sample after
 * sample. */
struct lk_plane_sums {
    lk_int groups, channels, filters; /* of one group */
    lk_int x_plane, copy, row, phase; /* as lk_plane_product */
    lk_int out_vectors;               /* of a plane of dz */
    lk_int shard_tiles, part_vectors; /* samples of a shard; vectors of a part of it */
    lk_int blocks_each;               /* blocks of rows of a work-group */
};

/* A strip of Winograd tiles: `rows` rows of them, from row `first` on, `across` in each. */
struct lk_plane_winograd {
    lk_int first, rows, across;
    lk_int width;                     /* reals of a row in scratch */
    lk_int v_plane, m_plane;          /* reals from channel to channel, from filter to filter */
    lk_int v_position, m_position;    /* and from position to position: each in another set of a
                                       * cache than the one before */
    lk_int v_first, m_first, scratch; /* in the workspace */
    lk_int scratch_each;              /* reals of a group */
    lk_int shift;                     /* where b begins in what is packed */
};

#endif

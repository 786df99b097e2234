/* The geometry of a convolution as kernels take it. Floor 3. C and OpenCL C read it: for C it
 * makes struct lk_geometry and the -D options of kernels that are compiled for a geometry
 * (products/kernel/geometry.h); kernels that serve any take the struct as an argument.
 *
 * NUMBER(kind, NAME of the option, name of the member): taps of a filter; strides, and gaps
 *   between taps (dilation), over the inputs; zeros around these; sizes of what is read and
 *   written */
#ifndef LK_PRODUCTS_KERNEL_ARGS_H
#define LK_PRODUCTS_KERNEL_ARGS_H

#include "device/args.h"

/* clang-format off */
#define LK_GEOMETRY(NUMBER)                                                                    \
    NUMBER(TAPS, TAPS_Y, taps_y) NUMBER(TAPS, TAPS_X, taps_x)                                  \
    NUMBER(STRIDES, STRIDE_Y, stride_y) NUMBER(STRIDES, STRIDE_X, stride_x)                    \
    NUMBER(STRIDES, GAP_Y, gap_y) NUMBER(STRIDES, GAP_X, gap_x)                                \
    NUMBER(PADS, PAD_Y, pad_y) NUMBER(PADS, PAD_X, pad_x)                                      \
    NUMBER(PLANES, IN_H, in_h) NUMBER(PLANES, IN_W, in_w)                                      \
    NUMBER(PLANES, OUT_H, out_h) NUMBER(PLANES, OUT_W, out_w)
/* clang-format on */

#define LK_GEOMETRY_MEMBER(kind, NAME, name) lk_int name;
struct lk_geometry {
    LK_GEOMETRY(LK_GEOMETRY_MEMBER)
};

#endif

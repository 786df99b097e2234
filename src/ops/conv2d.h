/* The options of conv2d, and the geometry that they make of an image. Floor 4. Private to
 * src/ops/conv2d*.c. */
#ifndef LK_OPS_CONV2D_H
#define LK_OPS_CONV2D_H

#include "ops/op.h"
#include "ops/window.h"
#include "products/kernel/kernel.h"

struct lk_conv2d_options {
    int64_t filters, kernel[2], stride[2], dilation[2], groups;
    char padding[LK_PADDING_BYTES];
    bool bias, pool;
    int activation;  /* ops/activation.h */
    bool norm, adds; /* what it took over outside training: batch normalization and a sum */
    double epsilon;
    double most; /* of the relu that it took over there; 0: any */
    bool silu;   /* took one over there */
};

extern const struct lk_option lk_conv2d_table[];
extern const struct lk_op lk_op_conv2d;

/* The geometry of a convolution. fails: LK_E_SHAPE, LK_E_ARGUMENT, saying which numbers */
LK_MUST_CHECK enum lk_status lk_conv2d_shape(const struct lk_conv2d_options *options,
                                             const struct lk_shape *x,
                                             struct lk_product_shape *shape);

#endif

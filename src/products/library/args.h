/* Structs that kernels between a library's take by value. Floor 3. Private to src/products. C
 * and OpenCL C read it. The kernels' texts in cl/products/library say what the numbers mean. */
#ifndef LK_PRODUCTS_LIBRARY_ARGS_H
#define LK_PRODUCTS_LIBRARY_ARGS_H

#include "device/args.h"

struct lk_fft_product {
    lk_int a_p, a_m, b_m, b_q, to_p, to_q; /* strides between spectra */
    lk_int depth, rows, columns, each, conjugate, adds;
};

#endif

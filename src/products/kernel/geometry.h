/* The geometry of a convolution, for kernels. Floor 3. Private to src/products. */
#ifndef LK_PRODUCTS_GEOMETRY_H
#define LK_PRODUCTS_GEOMETRY_H

#include "products/kernel/args.h"
#include "products/kernel/kernel.h"

/* Which numbers a kernel is compiled for. */
enum lk_geometry_kind {
    LK_GEOMETRY_TAPS = 1,
    LK_GEOMETRY_STRIDES = 2,
    LK_GEOMETRY_PADS = 4,
    LK_GEOMETRY_PLANES = 8,
    LK_GEOMETRY_ALL = 15
};

enum { LK_GEOMETRY_BYTES = 320 }; /* of its options */

struct lk_geometry lk_geometry_of(const struct lk_product_axis axis[2]);

/* "-DTAPS_Y=3 ..."; `kinds`: of enum lk_geometry_kind */
void lk_geometry_print(const struct lk_geometry *geometry, int kinds,
                       char text[LK_GEOMETRY_BYTES]);

#endif

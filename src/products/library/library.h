/* Products that libraries make: CLBlast's of matrices, clFFT's transforms. Floor 3. Private to
 * src/products. */
#ifndef LK_PRODUCTS_LIBRARY_H
#define LK_PRODUCTS_LIBRARY_H

#include "products/kernel/kernel.h"

/* The choice of CLBlast's tiles, which is the device's. False: there is none for the type. */
bool lk_blas_choice(const struct lk_product_setup *setup, struct lk_choice *choice);

#endif

/* What comes behind the sums of a forward pass: the options of cl/lib/finish.cl. Floor 3.
 * Private to src/products. */
#ifndef LK_PRODUCTS_FINISH_H
#define LK_PRODUCTS_FINISH_H

#include "products/kernel/kernel.h"

enum { LK_FINISH_BYTES = 80 };

/* Whether more comes than a relu or a pool: what an operation takes over outside training. */
bool lk_has_finish(const struct lk_product_shape *shape);

/* The options of finish.cl. `folded`: a batch normalization is part of the weights. */
void lk_finish_print(const struct lk_product_shape *shape, bool folded,
                     char text[LK_FINISH_BYTES]);

#endif

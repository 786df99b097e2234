/* What comes behind the sums of a forward pass. */
#include "products/kernel/finish.h"

#include <stdio.h>

bool lk_has_finish(const struct lk_product_shape *shape)
{
    return shape->norm || shape->adds || shape->silu || shape->most > 0;
}

void lk_finish_print(const struct lk_product_shape *shape, bool folded,
                     char text[LK_FINISH_BYTES])
{
    const int function = shape->silu ? 3 : !shape->relu ? 0 : shape->most > 0 ? 2 : 1;
    if (lk_has_finish(shape))
        snprintf(text, LK_FINISH_BYTES, "-DRELU=%d -DADDS=%d -DNORMS=%d -DMOST=%.17e", function,
                 shape->adds, shape->norm && !folded, shape->most);
    else
        snprintf(text, LK_FINISH_BYTES, "-DRELU=%d", function);
}

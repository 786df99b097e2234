/* Finds operations by name, and creates kernels for them. */
#include "ops/op.h"

#include "base/fail.h"
#include "ops/products.h"
#include <string.h>

static const char *op_name(const void *ops, int i)
{
    const struct lk_op *const *list = ops;
    return list[i] ? list[i]->name : NULL;
}

enum lk_status lk_op_find(const char *name, const struct lk_op **op)
{
    for (int i = 0; lk_ops[i]; i++)
        if (strcmp(lk_ops[i]->name, name) == 0) {
            *op = lk_ops[i];
            return LK_OK;
        }
    const char *near = lk_nearest_name(name, op_name, lk_ops);
    return lk_fail(LK_E_MODEL, "unknown operation '%s'%s%s%s", name,
                   near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

enum lk_status lk_op_kernel(const struct lk_op_setup *setup, const char *source,
                            const char *name, const char *options, struct lk_kernel **kernel)
{
    const struct lk_product_setup product = lk_op_products(setup, NULL);
    return lk_product_kernel(&product, source, name, options, kernel);
}

enum lk_dtype lk_op_stored(const struct lk_op_setup *setup)
{
    return setup->stores_half ? LK_F16 : setup->real;
}

bool lk_op_streams(const struct lk_op_setup *setup, const struct lk_shape *written)
{
    enum { CACHED_BYTES = 12 << 20 };
    return setup->tiling.vector > 1 &&
           lk_tiled_bytes(&setup->tiling, written, lk_op_stored(setup)) > CACHED_BYTES;
}

int lk_op_items(const struct lk_op_setup *setup)
{
    return setup->tiling.lanes / setup->tiling.vector;
}

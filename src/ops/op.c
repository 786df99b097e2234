/* Finds operations by name, and creates kernels for them. */
#include "ops/op.h"
#include "ops/warps.h"

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

enum lk_status lk_op_check_image(const struct lk_op_shapes *shapes, const char *name)
{
    char text[64];
    if (shapes->x[0].rank == 3 && shapes->x_dtype[0] == LK_F32)
        return LK_OK;
    lk_shape_print_hwc(&shapes->x[0], text, sizeof text);
    return lk_fail(LK_E_SHAPE, "%s: an image [h, w, c] expected, found %s%s", name,
                   shapes->x_dtype[0] == LK_F32 ? "" : "labels ", text);
}

struct lk_op_rows lk_op_rows(const struct lk_op_setup *setup)
{
    struct lk_op_rows rows = {.count = setup->tiling.tiles * lk_shape_count(&setup->shapes.y),
                              .each = setup->tiling.vector == 1 ? 16 : 256};
    rows.grid = lk_op_grid(setup, rows.count, rows.each, 1);
    return rows;
}

struct lk_grid lk_op_grid(const struct lk_op_setup *setup, int64_t rows, int64_t each,
                          int64_t tiles)
{
    return (struct lk_grid){{lk_divide_up(rows, each), tiles, 1}, lk_op_items(setup)};
}

int lk_op_items(const struct lk_op_setup *setup)
{
    return setup->tiling.lanes / setup->tiling.vector;
}

int lk_op_warps(const struct lk_op_setup *setup)
{
    const size_t room = lk_device_info(setup->device)->group_items;
    int warps = setup->tiling.vector == 1 ? 8 : 1;
    while (warps > 1 && (size_t)(warps * setup->tiling.lanes) > room)
        warps /= 2;
    return warps;
}

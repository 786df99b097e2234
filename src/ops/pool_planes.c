/* Pooling of images in plane tiles: see cl/ops/pool_planes.cl. */
#include "ops/pool_planes.h"

#include "base/fail.h"
#include "products/planes/planes.h"
#include <stdio.h>
#include <string.h>

enum { GROUPS = 16 }; /* work-groups that there are at least, if there can be */

enum lk_status lk_pool_planes_prepare(struct lk_op_setup *setup,
                                      const struct lk_window window[2], const char *what,
                                      const char *definitions, struct lk_pool_planes *pool)
{
    char name[40], geometry[LK_GEOMETRY_BYTES], text[LK_GEOMETRY_BYTES + 64];
    struct lk_product_axis axis[2];
    const int64_t channels = setup->shapes.x[0].dim[0];
    for (int i = 0; i < 2; i++)
        axis[i] = (struct lk_product_axis){.in = setup->shapes.x[0].dim[1 + i],
                                           .out = window[i].count,
                                           .all_out = window[i].count,
                                           .taps = window[i].size,
                                           .stride = window[i].stride,
                                           .gap = 1,
                                           .pad = window[i].before};
    pool->planes = lk_planes_of(&setup->tiling, axis);
    pool->is_global = setup->shapes.y.rank == 1;
    pool->each = lk_divide_up(channels, lk_least(channels, GROUPS));
    snprintf(name, sizeof name, "planes_%s%s", pool->is_global ? "global_" : "", what);
    if (pool->is_global)
        return lk_op_kernel(setup, "ops/pool_planes", name, "", &pool->kernel);
    lk_planes_print(axis, geometry);
    snprintf(text, sizeof text, "%s%s", geometry, definitions);
    LK_TRY(lk_op_kernel(setup, "ops/pool_planes", name, text, &pool->kernel));
    snprintf(name, sizeof name, "planes_%s_backward", what);
    pool->finds = strcmp(what, "max") == 0;
    return setup->training && setup->wants_dx[0]
               ? lk_op_kernel(setup, "ops/pool_planes", name, text, &pool->backward)
               : LK_OK;
}

enum lk_status lk_pool_planes_enqueue(const struct lk_op_setup *setup,
                                      const struct lk_pool_planes *pool,
                                      const struct lk_op_run *run)
{
    const struct lk_shape *x = &setup->shapes.x[0];
    const struct lk_grid grid = {{lk_divide_up(x->dim[0], pool->each), setup->tiling.tiles, 1},
                                 1};
    if (pool->is_global)
        return LK_ENQUEUE(pool->kernel, grid, LK_BUF(run->x[0]), LK_BUF(run->y),
                          LK_INT(x->dim[0]), LK_INT(x->dim[1] * x->dim[2]), LK_INT(pool->each));
    if (pool->finds)
        return LK_ENQUEUE(pool->kernel, grid, LK_BUF(run->x[0]), LK_BUF(run->saved),
                          LK_BUF(run->y), LK_STRUCT(&pool->planes), LK_INT(x->dim[0]),
                          LK_INT(pool->each));
    return LK_ENQUEUE(pool->kernel, grid, LK_BUF(run->x[0]), LK_BUF(run->y),
                      LK_STRUCT(&pool->planes), LK_INT(x->dim[0]), LK_INT(pool->each));
}

enum lk_status lk_pool_planes_enqueue_backward(const struct lk_op_setup *setup,
                                               const struct lk_pool_planes *pool,
                                               const struct lk_op_run *run)
{
    const struct lk_shape *x = &setup->shapes.x[0];
    const struct lk_grid grid = {{lk_divide_up(x->dim[0], pool->each), setup->tiling.tiles, 1},
                                 1};
    if (pool->finds)
        return LK_ENQUEUE(pool->backward, grid, LK_BUF(run->dy), LK_BUF(run->saved),
                          LK_BUF(run->dx[0]), LK_STRUCT(&pool->planes), LK_INT(x->dim[0]),
                          LK_INT(pool->each));
    return LK_ENQUEUE(pool->backward, grid, LK_BUF(run->dy), LK_BUF(run->dx[0]),
                      LK_STRUCT(&pool->planes), LK_INT(x->dim[0]), LK_INT(pool->each));
}

/* What comes behind the sums of a layer over batch tiles. See cl/products/ending.cl. */
#include "products/ending.h"

#include "base/fail.h"

enum { FILTERS_EACH = 64, PIXELS_EACH = 16 /* on a GPU */ };

static int64_t filters_of(const struct lk_ending *ending)
{
    return ending->shape.groups * ending->shape.filters;
}

int64_t lk_ending_reals(const struct lk_product_setup *setup,
                        const struct lk_product_shape *shape)
{
    return setup->tiling.planes || !shape->norm
               ? 0
               : lk_divide_up(3 * shape->groups * shape->filters, 16) * 16;
}

enum lk_status lk_ending_prepare(const struct lk_product_setup *setup,
                                 const struct lk_product *row, struct lk_ending *ending)
{
    char text[LK_FINISH_BYTES];
    if (setup->tiling.planes || !lk_has_finish(&ending->shape))
        return LK_OK;
    if (ending->shape.norm)
        LK_TRY(
            lk_product_kernel(setup, "products/ending", "ending_norms", NULL, &ending->norms));
    if (row->finishes)
        return LK_OK;
    lk_finish_print(&ending->shape, false, text);
    return lk_product_kernel(setup, "products/ending", "ending_finish", text, &ending->finish);
}

enum lk_status lk_ending_begin(const struct lk_product_setup *setup,
                               const struct lk_ending *ending, const struct lk_product_run *run)
{
    const int64_t filters = filters_of(ending);
    const struct lk_grid grid = {{lk_divide_up(filters, FILTERS_EACH), 1, 1},
                                 lk_product_items(setup)};
    if (!ending->norms || !run->weights_are_new)
        return LK_OK;
    return LK_ENQUEUE(ending->norms, grid, LK_BUF(run->norm[LK_NORM_GAMMA]),
                      LK_BUF(run->norm[LK_NORM_BETA]), LK_BUF(run->norm[LK_NORM_MEAN]),
                      LK_BUF(run->norm[LK_NORM_VARIANCE]), LK_REAL(ending->shape.epsilon),
                      LK_BUF(run->packed), LK_INT(filters), LK_INT(FILTERS_EACH));
}

enum lk_status lk_ending_finish(const struct lk_product_setup *setup,
                                const struct lk_ending *ending,
                                const struct lk_product_run *run)
{
    const struct lk_product_shape *s = &ending->shape;
    const int64_t pixels = s->axis[0].out * s->axis[1].out;
    const int64_t each = setup->tiling.vector == 1 ? PIXELS_EACH : pixels;
    const struct lk_grid grid = {
        {lk_divide_up(pixels, each), filters_of(ending), setup->tiling.tiles},
        lk_product_items(setup)};
    if (!ending->finish)
        return LK_OK;
    return LK_ENQUEUE(ending->finish, grid, LK_BUF(run->y), LK_BUF(run->norms),
                      LK_BUF(run->more), LK_INT(pixels), LK_INT(each));
}

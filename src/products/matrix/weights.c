/* Gradients of products of matrices: dz turned, and the weights' sums over all lanes. See
 * cl/products/matrix/weights.cl. */
#include "products/matrix/matrix.h"

#include "base/fail.h"
#include <stdio.h>

/* Channels of a work-group that sums weights, about. */
enum { MOST_CHANNELS = 256 };

/* What kernels count kept reals in. */
enum { KEPT_REALS = 16 };

/* Of turned gradients in a CPU's first-level cache, at least. */
enum { SLICE_BYTES = 16 << 10 };

/* What the gradients share: how wide a panel of turned gradients is. Each row of sums walks the
 * whole panel, which lies in a CPU's second-level cache: few columns leave more rows to a walk.
 */
static struct lk_product_block choose_panel(const struct lk_product_setup *setup, int64_t units,
                                            int64_t *panels)
{
    const int64_t lanes = setup->tiling.lanes;
    const int64_t columns = lk_divide_up(units, lanes);
    const struct lk_product_block block = lk_matrix_block(setup, columns < 2 ? columns : 2);
    *panels = lk_divide_up(units, block.columns * lanes);
    return block;
}

static enum lk_status panel_kernel(const struct lk_product_setup *setup, const char *name,
                                   bool is_masked, int64_t units, struct lk_kernel **kernel)
{
    char text[80];
    int64_t panels;
    const struct lk_product_block block = choose_panel(setup, units, &panels);
    snprintf(text, sizeof text, "-DRELU=%d -DROWS=%d -DCOLUMNS=%d", is_masked, block.rows,
             block.columns);
    return lk_product_kernel(setup, "products/matrix/weights", name, text, kernel);
}

/* --- dz --------------------------------------------------------------------------------- */

enum lk_status lk_matrix_transpose_prepare(const struct lk_product_setup *setup,
                                           const struct lk_product_shape *shape,
                                           struct lk_matrix_transpose *turn)
{
    const int64_t lanes = setup->tiling.lanes, n = setup->tiling.tiles * lanes;
    turn->units = shape->filters;
    const struct lk_product_block block = choose_panel(setup, turn->units, &turn->panels);
    turn->count = turn->kept + ((turn->is_masked ? turn->units : 0) +
                                (turn->turns ? turn->panels * block.columns * lanes : 0)) *
                                   n;
    return panel_kernel(setup, "dense_gradient", turn->is_masked, turn->units, &turn->kernel);
}

enum lk_status lk_matrix_transpose_enqueue(const struct lk_product_setup *setup,
                                           const struct lk_matrix_transpose *turn,
                                           const struct lk_buffer *dy,
                                           const struct lk_buffer *y,
                                           struct lk_buffer *workspace)
{
    const struct lk_grid grid = {{turn->panels, setup->tiling.tiles, 1},
                                 lk_product_items(setup)};
    return LK_ENQUEUE(turn->kernel, grid, LK_BUF(dy), LK_BUF(turn->is_masked ? y : NULL),
                      LK_BUF(workspace), LK_INT(turn->units), LK_INT(setup->tiling.tiles),
                      LK_INT(turn->turns), LK_INT(turn->kept / KEPT_REALS));
}

/* --- weight gradient -------------------------------------------------------------------- */

struct weights {
    struct lk_product_shape shape;
    struct lk_product_block block;
    int64_t panels, kept;
    struct lk_kernel *weights, *bias;
};

static enum lk_status prepare_weights(const struct lk_product_setup *setup,
                                      struct lk_product_job *job, void **state)
{
    LK_TRY(lk_arena_allocate(setup->arena, sizeof(struct weights), state));
    struct weights *w = *state;
    const bool is_masked = job->gradient == LK_GRADIENT_MASKED;
    w->shape = *job->shape;
    w->block = choose_panel(setup, w->shape.filters, &w->panels);
    w->kept = job->kept;
    job->gives_db = true;
    LK_TRY(panel_kernel(setup, "dense_weight", is_masked, w->shape.filters, &w->weights));
    if (!w->shape.bias || setup->tiling.vector > 1)
        return LK_OK;
    return panel_kernel(setup, "dense_bias", is_masked, w->shape.filters, &w->bias);
}

/* Of the channels and panels that a work-group sums: on a GPU one panel; on a CPU, which turns
 * a panel for all of a group's channels, as few groups as keep its cores busy, and channels
 * whose x of a slice of the tiles stays in the second-level cache. */
static void choose_groups(const struct lk_product_setup *setup, const struct weights *w,
                          int64_t *chunk, int64_t *panels)
{
    const int64_t channels = w->shape.channels, shards = setup->tiling.shards;
    const int64_t rows = w->block.rows, most = lk_divide_up(MOST_CHANNELS, rows) * rows;
    const int64_t wanted = lk_divide_up(lk_device_info(setup->device)->compute_units, shards);
    *panels = 1;
    *chunk = lk_matrix_chunk(setup, channels, rows, w->panels * shards);
    if (setup->tiling.vector == 1)
        return;
    *panels = lk_divide_up(w->panels, wanted);
    const int64_t parts = lk_divide_up(wanted, lk_divide_up(w->panels, *panels));
    *chunk = lk_least(lk_divide_up(lk_divide_up(channels, rows), parts) * rows, most);
}

/* As SLICE in the kernel has it. */
static size_t slice_bytes(const struct lk_product_setup *setup, const struct weights *w)
{
    const size_t lanes = (size_t)setup->tiling.lanes;
    const size_t tile = lanes * lanes * (size_t)w->block.columns * lk_dtype_bytes(setup->real);
    return tile > SLICE_BYTES ? tile : SLICE_BYTES;
}

static enum lk_status enqueue_weights(const struct lk_product_setup *setup, void *state,
                                      const struct lk_product_run *run)
{
    const struct weights *w = state;
    const struct lk_tiling *t = &setup->tiling;
    const int64_t channels = w->shape.channels, units = w->shape.filters;
    int64_t chunk, panels;
    choose_groups(setup, w, &chunk, &panels);
    const int items = lk_product_items(setup);
    const struct lk_grid grid = {
        {lk_divide_up(w->panels, panels), lk_divide_up(channels, chunk), t->shards}, items};
    if (setup->tiling.vector > 1)
        return LK_ENQUEUE(w->weights, grid, LK_BUF(run->x), LK_BUF(run->dz), LK_BUF(run->dw),
                          LK_BUF(run->db), LK_BUF(run->lengths), LK_INT(setup->run_tiles),
                          LK_INT(channels), LK_INT(units), LK_INT(t->shard_tiles),
                          LK_INT(run->dw_stride), LK_INT(chunk), LK_INT(panels),
                          LK_LOCAL(slice_bytes(setup, w)));
    const struct lk_grid of_bias = {{w->panels, t->shards, 1}, items};
    LK_TRY(LK_ENQUEUE(w->weights, grid, LK_BUF(run->x), LK_BUF(run->workspace), LK_BUF(run->dw),
                      LK_INT(channels), LK_INT(units), LK_INT(t->tiles), LK_INT(t->shard_tiles),
                      LK_INT(run->dw_stride), LK_INT(chunk), LK_INT(panels),
                      LK_INT(w->kept / KEPT_REALS)));
    if (!run->db)
        return LK_OK;
    return LK_ENQUEUE(w->bias, of_bias, LK_BUF(run->workspace), LK_BUF(run->db), LK_INT(units),
                      LK_INT(t->tiles), LK_INT(t->shard_tiles), LK_INT(run->dw_stride),
                      LK_INT(w->kept / KEPT_REALS));
}

const struct lk_product_verbs lk_matrix_weights = {.fits = lk_matrix_fits,
                                                   .cost = lk_matrix_cost,
                                                   .prepare = prepare_weights,
                                                   .enqueue = enqueue_weights};

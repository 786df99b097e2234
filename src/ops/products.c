/* Turns the setup, wanted gradients and run of an operation into those that products take. */
#include "ops/products.h"

struct lk_product_setup lk_op_products(const struct lk_op_setup *setup, const char *problem)
{
    return (struct lk_product_setup){.device = setup->device,
                                     .node = setup->node,
                                     .problem = problem,
                                     .tiling = setup->tiling,
                                     .real = setup->real,
                                     .stores_half = setup->stores_half,
                                     .arena = setup->arena,
                                     .choices = setup->choices};
}

struct lk_product_setup lk_op_step_products(const struct lk_op_setup *setup, int64_t steps,
                                            const char *problem)
{
    struct lk_product_setup of = lk_op_products(setup, problem);
    of.run_tiles = steps;
    of.tiling.tiles *= steps > 0 ? steps : 1;
    of.tiling.shard_tiles *= steps > 0 ? steps : 1;
    return of;
}

int64_t lk_op_kept(const struct lk_op_setup *setup, int64_t values)
{
    const int64_t values_a_real =
        (int64_t)(lk_dtype_bytes(setup->real) / lk_dtype_bytes(lk_op_stored(setup)));
    return lk_divide_up(values, values_a_real * 16) * 16;
}

struct lk_layer_wants lk_op_wants(const struct lk_op_setup *setup)
{
    return (struct lk_layer_wants){.training = setup->training,
                                   .dx = setup->wants_dx[0],
                                   .dw = setup->wants_dw,
                                   .asks_gate = setup->asks_gate[0],
                                   .dy_is_gated = setup->dy_is_gated};
}

struct lk_layer_run lk_op_layer_run(const struct lk_op_setup *setup,
                                    const struct lk_op_run *run)
{
    return (struct lk_layer_run){.x = run->x[0],
                                 .w = run->w[0],
                                 .bias = run->w[1],
                                 .dy = run->dy,
                                 .y = run->y,
                                 .at = setup->training ? run->saved : NULL,
                                 .dx = run->dx[0],
                                 .dw = run->dw[0],
                                 .db = run->dw[1],
                                 .workspace = run->workspace,
                                 .packed = run->packed,
                                 .weights_are_new = run->weights_are_new,
                                 .dw_stride = run->dw_stride};
}

/* Dropout of recurrent layers: a mask of the inputs and one of h, which are functions of seed,
 * node, step, sample and element and the same at all time steps. Backward draws them again.
 * source: Gal, Ghahramani, A Theoretically Grounded Application of Dropout in Recurrent Neural
 * Networks (2016) */
#include "ops/dropout.h"
#include "ops/recurrent/recurrent.h"

bool lk_drops_inputs(const struct lk_op_setup *setup)
{
    const struct lk_recurrent_options *o = setup->options;
    return setup->training && o->dropout > 0;
}

bool lk_drops_states(const struct lk_op_setup *setup)
{
    const struct lk_recurrent_options *o = setup->options;
    return setup->training && o->recurrent_dropout > 0;
}

enum lk_status lk_drop_inputs(const struct lk_op_setup *setup, const struct lk_walk *walk,
                              const struct lk_op_run *run, const struct lk_buffer *x,
                              struct lk_buffer *y)
{
    const struct lk_recurrent_options *o = setup->options;
    const struct lk_drop args = lk_drop(setup, run, o->dropout);
    const struct lk_shape *shape = &setup->shapes.x[0];
    const struct lk_grid grid = {{lk_divide_up(shape->dim[1], 4), setup->tiling.tiles, 1},
                                 lk_op_items(setup)};
    return LK_ENQUEUE(walk->drop_inputs, grid, LK_BUF(x), LK_BUF(y), LK_INT(shape->dim[0]),
                      LK_INT(shape->dim[1]), LK_STRUCT(&args), LK_REAL(1 / (1 - o->dropout)));
}

enum lk_status lk_drop_states(const struct lk_op_setup *setup, const struct lk_walk *walk,
                              const struct lk_op_run *run, const struct lk_recurrent *of_walk)
{
    const struct lk_recurrent_options *o = setup->options;
    const struct lk_drop args = lk_drop(setup, run, o->recurrent_dropout);
    const struct lk_grid grid = {
        {lk_divide_up(o->units, 4), lk_divide_up(setup->tiling.tiles, walk->form.columns), 1},
        lk_op_items(setup)};
    if (!walk->drop_states)
        return LK_OK;
    return LK_ENQUEUE(walk->drop_states, grid, LK_BUF(run->workspace), LK_STRUCT(of_walk),
                      LK_STRUCT(&args), LK_REAL(1 / (1 - o->recurrent_dropout)));
}

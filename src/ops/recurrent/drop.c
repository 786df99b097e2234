/* Dropout of recurrent layers: a mask of the inputs and one of h, which are functions of seed,
 * node, step, sample and element and the same at all time steps. Backward draws them again.
 * source: Gal, Ghahramani, A Theoretically Grounded Application of Dropout in Recurrent Neural
 * Networks (2016) */
#include "ops/dropout.h"
#include "ops/recurrent/recurrent.h"

static struct lk_recurrent_drop args_of(const struct lk_op_setup *setup,
                                        const struct lk_op_run *run, double rate)
{
    const struct lk_dropout_numbers numbers = lk_dropout_numbers(setup, run, rate);
    return (struct lk_recurrent_drop){.first = (int32_t)run->first_sample,
                                      .shard_samples = (int32_t)setup->tiling.shard_samples,
                                      .shard_tiles = (int32_t)setup->tiling.shard_tiles,
                                      .key_low = numbers.key_low,
                                      .key_high = numbers.key_high,
                                      .threshold = numbers.threshold};
}

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
    const struct lk_recurrent_drop args = args_of(setup, run, o->dropout);
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
    const struct lk_recurrent_drop args = args_of(setup, run, o->recurrent_dropout);
    const struct lk_grid grid = {
        {lk_divide_up(o->units, 4), lk_divide_up(setup->tiling.tiles, walk->form.columns), 1},
        lk_op_items(setup)};
    if (!walk->drop_states)
        return LK_OK;
    return LK_ENQUEUE(walk->drop_states, grid, LK_BUF(run->workspace), LK_STRUCT(of_walk),
                      LK_STRUCT(&args), LK_REAL(1 / (1 - o->recurrent_dropout)));
}

/* The walk of recurrent layers over their time steps: in one launch, where there are enough
 * tiles for a CPU's cores, or a launch a step. Kernels: cl/ops/recurrent. */
#include "base/fail.h"
#include "ops/recurrent/recurrent.h"
#include "ops/warps.h"
#include <stdio.h>

/* Slots of the state in cl/ops/recurrent/state.cl; the rows that a
 * work-group of gru_candidate sums. */
enum { SLOTS = 12, CANDIDATE_ROWS = 4 };

int lk_cell_gates(enum lk_cell cell)
{
    static const int gates[] = {
        [LK_LSTM] = 4, [LK_GRU_AFTER] = 3, [LK_GRU_BEFORE] = 3, [LK_RNN] = 1};
    return gates[cell];
}

int lk_cell_states(enum lk_cell cell)
{
    return cell == LK_LSTM ? 2 : 1;
}

int lk_recurrent_length(const struct lk_op_shapes *shapes)
{
    const int last = shapes->inputs - 1;
    return last > 0 && shapes->x_dtype[last] == LK_I32 && shapes->x[last].rank == 0 ? last : -1;
}

int lk_recurrent_first_state(const struct lk_op_shapes *shapes)
{
    return shapes->inputs - (lk_recurrent_length(shapes) > 0) > 1 ? 1 : -1;
}

/* --- the form ---------------------------------------------------------------------------- */

/* Groups of `columns` tiles. */
static int64_t groups_of(const struct lk_tiling *tiling, int columns)
{
    return lk_divide_up(tiling->tiles, columns);
}

/* The time of a pass in that of one tile walked beside another: one alone is multiplied more
 * slowly, cores without a group wait, and launches cost time. */
static double form_cost(const struct lk_op_setup *setup, enum lk_cell cell,
                        struct lk_walk_form form)
{
    const double alone = 1.3, split = 1.1, launch_us = 8, flops_a_us = 1e5;
    const struct lk_recurrent_options *o = setup->options;
    const double units = (double)lk_device_info(setup->device)->compute_units;
    const double step_us = 2.0 * (double)setup->tiling.lanes * lk_cell_gates(cell) *
                           (double)o->units * (double)o->units / flops_a_us;
    const double groups = (double)groups_of(&setup->tiling, form.columns);
    const double each = form.columns > 1 ? form.columns : alone;
    if (!form.in_one_launch)
        return groups * each / units * split + launch_us / step_us;
    return (double)lk_divide_up((int64_t)groups, (int64_t)units) * each;
}

static struct lk_walk_form choose_form(const struct lk_op_setup *setup, enum lk_cell cell)
{
    static const struct lk_walk_form forms[] = {{true, 2}, {true, 1}, {false, 2}};
    if (setup->tiling.vector == 1 || setup->shapes.window > 0)
        return (struct lk_walk_form){false, 1};
    if (setup->tiling.tiles == 1)
        return (struct lk_walk_form){
            form_cost(setup, cell, forms[1]) <=
                form_cost(setup, cell, (struct lk_walk_form){false, 1}),
            1};
    int best = 0;
    for (int i = 1; i < LK_COUNT(forms); i++)
        if (form_cost(setup, cell, forms[i]) < form_cost(setup, cell, forms[best]))
            best = i;
    return forms[best];
}

/* Registers for sums: of 16 there are few beside the operands. */
static int sums_of(const struct lk_op_setup *setup)
{
    const size_t bytes = (size_t)setup->tiling.vector * lk_dtype_bytes(setup->real);
    return setup->tiling.vector == 1 ? 8 : bytes == 64 ? 24 : 12;
}

/* As many units as have their sums, `gates` of each, in the registers beside the operands, or
 * somewhat fewer where fewer units then remain to fill up the last block. */
static struct lk_walk_block all_at_once(const struct lk_op_setup *setup,
                                        struct lk_walk_form form, int gates)
{
    const struct lk_recurrent_options *o = setup->options;
    const int most = (int)lk_least(o->units, sums_of(setup) / gates / form.columns);
    int best = most < 1 ? 1 : most;
    for (int units = best; units >= (2 * most + 2) / 3 && units > 0; units--)
        if (lk_divide_up(o->units, units) * units < lk_divide_up(o->units, best) * best)
            best = units;
    return (struct lk_walk_block){best, best * gates};
}

/* With 16 registers the sums of a unit's gates may not fill them: forward, a block may have
 * more rows than are summed at a time, which is the largest divisor that there is room for. The
 * fewer these are, the more do the ends of loops and chains of sums count. */
static struct lk_walk_block some_at_once(const struct lk_op_setup *setup,
                                         struct lk_walk_form form, int gates, bool forward)
{
    const struct lk_recurrent_options *o = setup->options;
    const int room = sums_of(setup) / form.columns, rows = forward ? sums_of(setup) : room;
    struct lk_walk_block best = {0};
    int64_t least = INT64_MAX;
    for (int units = 1; units * gates <= rows && units <= o->units; units++) {
        int at_once = (int)lk_least(room, units * gates);
        while (units * gates % at_once != 0)
            at_once--;
        const int64_t passes = lk_divide_up(o->units, units) * (units * gates / at_once);
        if (passes * (at_once * form.columns + 2) > least)
            continue;
        least = passes * (at_once * form.columns + 2);
        best = (struct lk_walk_block){units, at_once};
    }
    return best;
}

static struct lk_walk_block choose_block(const struct lk_op_setup *setup,
                                         const struct lk_walk *walk, bool forward)
{
    const int gates = !forward                      ? 1
                      : walk->cell == LK_GRU_BEFORE ? 2
                                                    : lk_cell_gates(walk->cell);
    if (sums_of(setup) == 12)
        return some_at_once(setup, walk->form, gates, forward);
    struct lk_walk_block block = all_at_once(setup, walk->form, gates);
    const struct lk_recurrent_options *o = setup->options;
    const int64_t cores = lk_device_info(setup->device)->compute_units;
    while (setup->tiling.vector == 1 && block.units % 2 == 0 &&
           lk_divide_up(o->units, block.units) * setup->tiling.tiles < cores) {
        block.units /= 2; /* else cores of a GPU wait */
        block.at_once /= 2;
    }
    return block;
}

/* --- preparing --------------------------------------------------------------------------- */

/* Of kernels without blocks. */
static const struct lk_walk_block whole = {1, 1};

static enum lk_status make_kernel(const struct lk_op_setup *setup, const struct lk_walk *walk,
                                  const char *source, const char *name,
                                  struct lk_walk_block block, struct lk_kernel **kernel)
{
    const struct lk_recurrent_options *o = setup->options;
    char text[192];
    snprintf(text, sizeof text,
             "-DKIND=%d -DRELU=%d -DBIAS=%d -DLENGTHS=%d -DCOLUMNS=%d -DUNITS=%d "
             "-DAT_ONCE=%d -DROWS=%d -DDROP=%d -DSPLIT=%d",
             walk->cell, o->activation == LK_CELL_RELU,
             walk->cell == LK_GRU_AFTER && o->use_bias, lk_recurrent_length(&setup->shapes) > 0,
             walk->form.columns, block.units, block.at_once, CANDIDATE_ROWS,
             lk_drops_states(setup), lk_op_warps(setup));
    return lk_op_kernel(setup, source, name, text, kernel);
}

static enum lk_status prepare_forward(const struct lk_op_setup *setup, struct lk_walk *walk)
{
    static const char source[] = "ops/recurrent/forward";
    struct lk_walk_pass *p = &walk->forward;
    LK_TRY(make_kernel(setup, walk, source, "recurrent_pack", p->block, &p->pack));
    if (walk->form.in_one_launch)
        return make_kernel(setup, walk, source, "recurrent_forward", p->block, &p->walk);
    LK_TRY(make_kernel(setup, walk, source, "recurrent_begin", p->block, &p->begin));
    LK_TRY(make_kernel(setup, walk, source, "recurrent_step", p->block, &p->step));
    if (walk->cell == LK_GRU_BEFORE)
        LK_TRY(make_kernel(setup, walk, source, "recurrent_candidate", p->block, &p->reset));
    return make_kernel(setup, walk, source, "recurrent_end", p->block, &p->end);
}

static enum lk_status prepare_backward(const struct lk_op_setup *setup, struct lk_walk *walk)
{
    static const char source[] = "ops/recurrent/backward", gru[] = "ops/recurrent/gru";
    struct lk_walk_pass *p = &walk->backward;
    LK_TRY(make_kernel(setup, walk, source, "recurrent_pack", p->block, &p->pack));
    if (walk->form.in_one_launch) {
        LK_TRY(make_kernel(setup, walk, source, "recurrent_backward", p->block, &p->walk));
    } else {
        LK_TRY(make_kernel(setup, walk, source, "recurrent_begin", p->block, &p->begin));
        LK_TRY(make_kernel(setup, walk, source, "recurrent_gates", p->block, &p->gates));
        if (walk->cell == LK_GRU_BEFORE)
            LK_TRY(make_kernel(setup, walk, source, "recurrent_reset", p->block, &p->reset));
        LK_TRY(make_kernel(setup, walk, source, "recurrent_step", p->block, &p->step));
        LK_TRY(make_kernel(setup, walk, source, "recurrent_end", p->block, &p->end));
    }
    if (walk->cell == LK_GRU_AFTER && setup->wants_dw)
        return make_kernel(setup, walk, gru, "gru_reset", whole, &walk->reset);
    if (walk->cell == LK_GRU_BEFORE && setup->wants_dw)
        return make_kernel(setup, walk, gru, "gru_candidate", whole, &walk->candidate);
    return LK_OK;
}

static enum lk_status prepare_drops(const struct lk_op_setup *setup, struct lk_walk *walk)
{
    static const char source[] = "ops/recurrent/drop", gru[] = "ops/recurrent/gru";
    if (lk_drops_states(setup))
        LK_TRY(make_kernel(setup, walk, source, "recurrent_drop_states", whole,
                           &walk->drop_states));
    if (!lk_drops_inputs(setup))
        return LK_OK;
    LK_TRY(
        make_kernel(setup, walk, source, "recurrent_drop_inputs", whole, &walk->drop_inputs));
    return walk->reset ? make_kernel(setup, walk, gru, "gru_keep", whole, &walk->keep) : LK_OK;
}

static int64_t round_up(int64_t reals)
{
    return lk_divide_up(reals, 16) * 16;
}

enum lk_status lk_walk_prepare(const struct lk_op_setup *setup, enum lk_cell cell, int64_t kept,
                               struct lk_walk *walk)
{
    static const int of_cell[] = {
        [LK_LSTM] = 5, [LK_GRU_AFTER] = 4, [LK_GRU_BEFORE] = 3, [LK_RNN] = 1};
    const struct lk_recurrent_options *o = setup->options;
    const struct lk_tiling *t = &setup->tiling;
    const int gates = lk_cell_gates(cell);
    const int kept_rows = of_cell[cell] + (gates == 3 && lk_drops_states(setup));
    walk->cell = cell;
    walk->form = choose_form(setup, cell);
    walk->forward.block = choose_block(setup, walk, true);
    walk->backward.block = choose_block(setup, walk, false);
    const int most = walk->forward.block.units > walk->backward.block.units
                         ? walk->forward.block.units
                         : walk->backward.block.units;
    walk->packed_at = round_up(kept);
    walk->state_at = walk->packed_at + round_up((o->units + most) * gates * o->units);
    walk->reals = walk->state_at + groups_of(t, walk->form.columns) * SLOTS * o->units *
                                       walk->form.columns * t->lanes;
    const int64_t rows = t->tiles * setup->shapes.x[0].dim[0] * o->units * t->lanes;
    walk->saved_bytes =
        (size_t)rows * (size_t)(1 + kept_rows) * lk_dtype_bytes(lk_op_stored(setup));
    walk->past_bytes = (size_t)(t->tiles * lk_cell_states(cell) * o->units * t->lanes) *
                       lk_dtype_bytes(lk_op_stored(setup));
    LK_TRY(prepare_forward(setup, walk));
    if (setup->training)
        LK_TRY(prepare_backward(setup, walk));
    return prepare_drops(setup, walk);
}

/* --- running ----------------------------------------------------------------------------- */

static struct lk_recurrent args_of(const struct lk_op_setup *setup, const struct lk_walk *walk)
{
    const struct lk_recurrent_options *o = setup->options;
    return (struct lk_recurrent){.steps = setup->shapes.x[0].dim[0],
                                 .units = o->units,
                                 .tiles = setup->tiling.tiles,
                                 .backwards = o->go_backwards,
                                 .sequences = o->return_sequences,
                                 .states = o->return_state ? lk_cell_states(walk->cell) : 0,
                                 .packed_at = walk->packed_at / 16,
                                 .state_at = walk->state_at / 16};
}

static const struct lk_buffer *input_of(const struct lk_op_run *run, int number)
{
    return number > 0 ? run->x[number] : NULL;
}

static const struct lk_buffer *lengths_of(const struct lk_op_setup *setup,
                                          const struct lk_op_run *run)
{
    return input_of(run, lk_recurrent_length(&setup->shapes));
}

const struct lk_buffer *lk_walk_lengths(const struct lk_op_setup *setup,
                                        const struct lk_walk *walk, const struct lk_op_run *run)
{
    const bool ends = walk->form.in_one_launch && walk->cell != LK_GRU_BEFORE;
    return ends ? lengths_of(setup, run) : NULL;
}

/* Of what walks, or takes a step: which takes as long as the sums of one warp. */
static struct lk_grid grid_of(const struct lk_op_setup *setup, const struct lk_walk *walk)
{
    return (struct lk_grid){{groups_of(&setup->tiling, walk->form.columns), 1, 1},
                            lk_op_items(setup) * lk_op_warps(setup)};
}

static int64_t blocks_of(const struct lk_op_setup *setup, const struct lk_walk_pass *pass)
{
    const struct lk_recurrent_options *o = setup->options;
    return lk_divide_up(o->units, pass->block.units);
}

/* The states to begin with: given ones, those behind the time step before, or zeros. */
static const struct lk_buffer *first_states(const struct lk_op_setup *setup,
                                            const struct lk_op_run *run)
{
    if (setup->shapes.window > 0)
        return run->time > 0 ? run->past : NULL;
    return input_of(run, lk_recurrent_first_state(&setup->shapes));
}

/* Blocks that a group does in a launch of one step: so that every core has work. */
static int64_t blocks_each(const struct lk_op_setup *setup, const struct lk_walk *walk,
                           const struct lk_walk_pass *pass)
{
    const int64_t units = lk_device_info(setup->device)->compute_units;
    const int64_t groups = groups_of(&setup->tiling, walk->form.columns);
    const int64_t parts = lk_divide_up(2 * units, groups), blocks = blocks_of(setup, pass);
    return setup->tiling.vector == 1 || parts >= blocks ? 1 : lk_divide_up(blocks, parts);
}

static enum lk_status enqueue_pack(const struct lk_op_setup *setup,
                                   const struct lk_walk_pass *pass, const struct lk_op_run *run,
                                   const struct lk_recurrent *args)
{
    const struct lk_grid grid = {{blocks_of(setup, pass), 1, 1}, lk_op_items(setup)};
    return LK_ENQUEUE(pass->pack, grid, LK_BUF(run->w[LK_CELL_RECURRENT]),
                      LK_BUF(run->workspace), LK_STRUCT(args));
}

/* The states behind one time step, as the next one begins with them: like a y of states alone,
 * which no row of a time step comes before. */
static enum lk_status keep_states(const struct lk_op_setup *setup, const struct lk_walk *walk,
                                  const struct lk_op_run *run, const struct lk_recurrent *args)
{
    struct lk_recurrent past = *args;
    past.steps = 0;
    past.sequences = 1;
    past.states = lk_cell_states(walk->cell);
    return LK_ENQUEUE(walk->forward.end, grid_of(setup, walk), LK_BUF(run->past),
                      LK_BUF(run->workspace), LK_STRUCT(&past), LK_INT(args->steps % 2));
}

static enum lk_status forward_steps(const struct lk_op_setup *setup, const struct lk_walk *walk,
                                    const struct lk_op_run *run,
                                    const struct lk_recurrent *args)
{
    const struct lk_walk_pass *p = &walk->forward;
    const struct lk_buffer *first = first_states(setup, run);
    const struct lk_buffer *lengths = lengths_of(setup, run);
    const int64_t each = blocks_each(setup, walk, p);
    struct lk_grid grid = grid_of(setup, walk);
    LK_TRY(LK_ENQUEUE(p->begin, grid, LK_BUF(first), LK_BUF(run->workspace), LK_STRUCT(args)));
    grid.groups[1] = grid.groups[0];
    grid.groups[0] = lk_divide_up(blocks_of(setup, p), each);
    for (int64_t i = 0; i < args->steps; i++)
        for (int phase = 0; phase <= (p->reset != NULL); phase++)
            LK_TRY(LK_ENQUEUE(phase ? p->reset : p->step, grid,
                              LK_BUF(run->w[LK_CELL_RECURRENT_BIAS]), LK_BUF(lengths),
                              LK_BUF(run->y), LK_BUF(run->saved), LK_BUF(run->workspace),
                              LK_STRUCT(args), LK_INT(i), LK_INT(each)));
    return setup->shapes.window > 0
               ? keep_states(setup, walk, run, args)
               : LK_ENQUEUE(p->end, grid_of(setup, walk), LK_BUF(run->y),
                            LK_BUF(run->workspace), LK_STRUCT(args), LK_INT(args->steps % 2));
}

enum lk_status lk_walk_forward(const struct lk_op_setup *setup, const struct lk_walk *walk,
                               const struct lk_op_run *run)
{
    const struct lk_recurrent args = args_of(setup, walk);
    const struct lk_buffer *first = first_states(setup, run);
    const struct lk_buffer *lengths = lengths_of(setup, run);
    struct lk_op_run own = *run;
    own.saved = setup->training ? run->saved : NULL;
    LK_TRY(enqueue_pack(setup, &walk->forward, run, &args));
    LK_TRY(lk_drop_states(setup, walk, run, &args));
    if (!walk->form.in_one_launch)
        return forward_steps(setup, walk, &own, &args);
    return LK_ENQUEUE(walk->forward.walk, grid_of(setup, walk), LK_BUF(first),
                      LK_BUF(run->w[LK_CELL_RECURRENT_BIAS]), LK_BUF(lengths), LK_BUF(run->y),
                      LK_BUF(own.saved), LK_BUF(run->workspace), LK_STRUCT(&args));
}

static enum lk_status backward_steps(const struct lk_op_setup *setup,
                                     const struct lk_walk *walk, const struct lk_op_run *run,
                                     struct lk_buffer *dfirst, const struct lk_recurrent *args)
{
    const struct lk_walk_pass *p = &walk->backward;
    const struct lk_buffer *lengths = lengths_of(setup, run);
    const int64_t each = blocks_each(setup, walk, p);
    struct lk_grid grid = grid_of(setup, walk);
    LK_TRY(
        LK_ENQUEUE(p->begin, grid, LK_BUF(run->dy), LK_BUF(run->workspace), LK_STRUCT(args)));
    grid.groups[1] = grid.groups[0];
    grid.groups[0] = lk_divide_up(blocks_of(setup, p), each);
    LK_TRY(LK_ENQUEUE(p->gates, grid, LK_BUF(lengths), LK_BUF(run->dy), LK_BUF(run->saved),
                      LK_BUF(run->workspace), LK_STRUCT(args), LK_INT(args->steps - 1),
                      LK_INT(each)));
    for (int64_t i = args->steps - 1; i >= 0; i--) {
        if (p->reset)
            LK_TRY(LK_ENQUEUE(p->reset, grid, LK_BUF(lengths), LK_BUF(run->saved),
                              LK_BUF(run->workspace), LK_STRUCT(args), LK_INT(i),
                              LK_INT(each)));
        LK_TRY(LK_ENQUEUE(p->step, grid, LK_BUF(lengths), LK_BUF(run->dy), LK_BUF(run->saved),
                          LK_BUF(run->workspace), LK_STRUCT(args), LK_INT(i), LK_INT(each)));
    }
    return LK_ENQUEUE(p->end, grid_of(setup, walk), LK_BUF(dfirst), LK_BUF(run->workspace),
                      LK_STRUCT(args));
}

enum lk_status lk_walk_backward(const struct lk_op_setup *setup, const struct lk_walk *walk,
                                const struct lk_op_run *run)
{
    const struct lk_recurrent args = args_of(setup, walk);
    const int first = lk_recurrent_first_state(&setup->shapes);
    const struct lk_buffer *lengths = lengths_of(setup, run);
    struct lk_buffer *dfirst = first > 0 ? run->dx[first] : NULL;
    LK_TRY(enqueue_pack(setup, &walk->backward, run, &args));
    LK_TRY(lk_drop_states(setup, walk, run, &args));
    if (!walk->form.in_one_launch)
        return backward_steps(setup, walk, run, dfirst, &args);
    return LK_ENQUEUE(walk->backward.walk, grid_of(setup, walk), LK_BUF(lengths),
                      LK_BUF(run->dy), LK_BUF(run->saved), LK_BUF(dfirst),
                      LK_BUF(run->workspace), LK_STRUCT(&args));
}

/* --- between and behind the products ----------------------------------------------------- */

enum lk_status lk_walk_turn_to_recurrent(const struct lk_op_setup *setup,
                                         const struct lk_walk *walk,
                                         const struct lk_op_run *run)
{
    const struct lk_recurrent args = args_of(setup, walk);
    const struct lk_grid grid = {{args.steps, args.tiles, 1}, lk_op_items(setup)};
    if (!walk->reset)
        return LK_OK;
    return LK_ENQUEUE(walk->reset, grid, LK_BUF(run->saved), LK_BUF(run->workspace),
                      LK_STRUCT(&args));
}

enum lk_status lk_walk_keep(const struct lk_op_setup *setup, const struct lk_walk *walk,
                            const struct lk_op_run *run, bool back)
{
    const struct lk_recurrent args = args_of(setup, walk);
    const struct lk_grid grid = {{args.steps, args.tiles, 1}, lk_op_items(setup)};
    if (!walk->keep)
        return LK_OK;
    return LK_ENQUEUE(walk->keep, grid, LK_BUF(run->saved), LK_BUF(run->workspace),
                      LK_STRUCT(&args), LK_INT(back));
}

enum lk_status lk_walk_candidate(const struct lk_op_setup *setup, const struct lk_walk *walk,
                                 const struct lk_op_run *run)
{
    const struct lk_recurrent args = args_of(setup, walk);
    const struct lk_grid grid = {
        {lk_divide_up(args.units, CANDIDATE_ROWS), setup->tiling.shards, 1},
        lk_op_items(setup)};
    const int64_t scratch = setup->tiling.lanes * (int64_t)lk_dtype_bytes(setup->real);
    if (!walk->candidate)
        return LK_OK;
    return LK_ENQUEUE(walk->candidate, grid, LK_BUF(run->saved), LK_BUF(run->workspace),
                      LK_BUF(run->dw[LK_CELL_RECURRENT]), LK_INT(run->dw_stride),
                      LK_INT(setup->tiling.shard_tiles), LK_STRUCT(&args), LK_LOCAL(scratch));
}

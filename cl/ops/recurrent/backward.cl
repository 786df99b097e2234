/* Recurrent layers backward through time: the gradients dz of all gates' sums, of which the
 * products over all time steps make those of x and of the weights, and the gradients of the
 * initial states. forward.cl has the formulas, state.cl the arrays.
 *
 *   recurrent_pack       U in the order in which blocks of UNITS units read it: transposed
 *   recurrent_backward   walks all steps of COLUMNS tiles
 *   recurrent_begin, recurrent_gates, recurrent_reset, recurrent_step, recurrent_end   the same
 *                        in launches
 *
 * dz: stored [tiles][steps][GATES][units][LANES], at the beginning of the workspace; behind a
 * sample's length 0; behind the longest of a group nothing is written, as products leave that
 * out, but for a GRU whose reset gate comes first zeros.
 * Each sum begins with what h hands on by itself; then gates' gradients are added in ascending
 * order, on GPUs in SPLIT parts. Slots of the state: 0: dh; 1: dc; 2: what h hands on by
 * itself; from 3 on the gates' gradients, where they are not read in dz (gates.cl). In launches
 * those of every other step are from 8 on: the launch that makes dh of a step makes of it the
 * gates' gradients of the next one.
 * Group ids: pack: 0: block; backward, begin, end: 0: group; gates, reset,
 * step: 0: `each` blocks, 1: group.
 */
#include "lib/real.cl"
#include "ops/recurrent/state.cl"
#include "ops/recurrent/pack.cl"

#define LAST_GATES (KIND == GRU_BEFORE ? 2 : GATES) /* of the sums that make dh */
#define D_SLOT 3
#define OTHER_D_SLOT 8
#define D_SLOT_OF(i) ((i) % 2 ? OTHER_D_SLOT : D_SLOT) /* step i, in launches */

KERNEL void recurrent_pack(__global const real *restrict u, __global real *restrict workspace,
                           struct lk_recurrent a)
{
    __global real *packed = workspace + (size_t)a.packed_at * 16;
    const int blocks = (a.units + UNITS - 1) / UNITS, columns = LAST_GATES * a.units;
    pack_columns(u, packed, a.units, 0, columns, get_group_id(0));
    if (GATES > LAST_GATES)
        pack_columns(u, packed + (size_t)blocks * UNITS * columns, a.units, columns, a.units,
                     get_group_id(0));
}

#include "ops/recurrent/gates.cl"

INLINE void gates_block(const struct backward *b, int t, int block)
{
    for (int v = WARP; v < min(UNITS, b->w.a.units - block * UNITS); v += SPLIT)
        UNROLL for (int j = 0; j < COLUMNS; j++) gates(b, t, block * UNITS + v, j);
}

/* The gradient of r h, and of a reset gate that came first. */
INLINE void reset_block(const struct backward *b, int t, int block, __local V *exchange)
{
    const struct walk *w = &b->w;
    const int units = w->a.units, first = block * UNITS;
    V s[UNITS][COLUMNS];
    UNROLL for (int v = 0; v < UNITS; v++) UNROLL for (int j = 0; j < COLUMNS; j++) s[v][j] =
        (V)0;
    MULTIPLY(b->packed + (size_t)BLOCKS(w) * UNITS * LAST_GATES * units +
                 (size_t)block * UNITS * units,
             UNITS, slot(w, b->d_slot + 2), units, UNITS, s, exchange);
    UNROLL for (int v = 0; v < UNITS; v++) UNROLL for (int j = 0; j < COLUMNS; j++)
    {
        const int u = first + v;
        if (OWNS(v) && u < units) {
            const V r = kept(b, t, 1, u, j);
            const V dr = s[v][j] * h_multiplied(b, t, u, j) * r * ((V)1 - r);
            __global V *on = slot(w, 2) + in_slot(u, j);
            *on = FMA(undropped(w, s[v][j], u, j), r, *on);
            give(b, t, 1, u, j, dr, dr);
        }
    }
}

/* Brings row number `row` of what the units from `first` on read and write in the next step. */
INLINE void fetch(const struct backward *b, int t, int first, int row)
{
    const struct walk *w = &b->w;
    const int next = w->a.backwards ? min(t + 1, w->a.steps - 1) : max(t - 1, 0);
    if (row < KEPT)
        HINT(PREFETCH, b->saved, kept_at(w, j, next, row), first);
    else
        HINT(PREFETCH_TO_WRITE, b->dz, at_step(w, j, next, GATES, row - KEPT), first);
}

/* Where there is no step dh stays, the sign of a zero too: ways that skip such steps give the
 * same bits. */
INLINE void step_block(const struct backward *b, int t, int block, __local V *exchange)
{
    const struct walk *w = &b->w;
    const int units = w->a.units, first = block * UNITS, all = LAST_GATES * units;
    V s[UNITS][COLUMNS];
    UNROLL for (int v = 0; v < UNITS; v++) UNROLL for (int j = 0; j < COLUMNS; j++)
    {
        /* What another warp owns it may already replace. */
        const int is_mine = SPLIT == 1 || (OWNS(v) && first + v < units);
        s[v][j] =
            DROP || !is_mine ? (V)0 : slot(w, 2)[in_slot(min(first + v, units - 1), j)];
    }
#if SPLIT > 1
    multiply_split(b->packed + (size_t)block * UNITS * all, UNITS, slot(w, b->d_slot), all,
                   UNITS, s, exchange);
#else
    MULTIPLY_FETCHING(0, KEPT + GATES, fetch(b, t, first, part),
                      b->packed + (size_t)block * UNITS * all, UNITS, SUMMED(b, t),
                      SUMMED_BETWEEN(b, t), SUMMED_STEP, all, UNITS, s);
#endif
    UNROLL for (int v = 0; v < UNITS; v++)
        UNROLL for (int j = 0; j < COLUMNS; j++) if (OWNS(v) && first + v < units)
    {
        const int at = in_slot(first + v, j);
        const V dh = DROP ? FMA(s[v][j], slot(w, FACTORS)[at], slot(w, 2)[at]) : s[v][j];
        slot(w, 0)[at] = WHERE_VALID(w, j, t, dh, slot(w, 0)[at]);
    }
}

INLINE void begin(const struct backward *b)
{
    const struct walk *w = &b->w;
    const int row = rows_before_states(w);
    for (int u = WARP; u < w->a.units; u += SPLIT)
        for (int j = 0; j < COLUMNS; j++) {
            V dh = (V)0;
            if (!w->a.sequences)
                dh = LOAD(b->dy + y_at(w, j, 0) + u * PARTS);
            if (w->a.states > 0)
                dh += LOAD(b->dy + y_at(w, j, row) + u * PARTS);
            slot(w, 0)[in_slot(u, j)] = dh;
            if (KIND == LSTM)
                slot(w, 1)[in_slot(u, j)] =
                    w->a.states > 1 ? LOAD(b->dy + y_at(w, j, row + 1) + u * PARTS) : (V)0;
        }
}

INLINE void end(const struct backward *b, __global S *dfirst)
{
    const struct walk *w = &b->w;
    for (int u = WARP; dfirst && u < w->a.units; u += SPLIT)
        for (int j = 0; j < COLUMNS; j++) {
            STORE(dfirst + first_at(w, j, 0) + u * PARTS, slot(w, 0)[in_slot(u, j)]);
            if (KIND == LSTM)
                STORE(dfirst + first_at(w, j, 1) + u * PARTS, slot(w, 1)[in_slot(u, j)]);
        }
}

#if SPLIT == 1 /* GPUs take each step in a launch */
BODY void walk_backward(struct backward all, __global S *dfirst)
{
    const struct backward b = all; /* or each store would make LLVM read its fields anew */
    const struct walk *w = &b.w;
    const int last = last_step(w);
    begin(&b);
    for (int i = w->a.steps - 1; i >= 0; i--) {
        const int t = step_of(w, i);
        if (t >= last) {
            for (int u = 0; KIND == GRU_BEFORE && u < GATES * w->a.units; u++)
                for (int j = 0; j < COLUMNS; j++) /* gru_candidate reads it */
                    STORE(b.dz + at_step(w, j, t, GATES, 0) + u * PARTS, (V)0);
            continue;
        }
        for (int block = 0; block < BLOCKS(w); block++)
            gates_block(&b, t, block);
        if (KIND == GRU_BEFORE)
            for (int block = 0; block < BLOCKS(w); block++)
                reset_block(&b, t, block, 0);
        for (int block = 0; block < BLOCKS(w); block++)
            step_block(&b, t, block, 0);
    }
    end(&b, dfirst);
}

KERNEL void recurrent_backward(__global const int *restrict lengths,
                               __global const S *restrict dy, __global const S *restrict saved,
                               __global S *restrict dfirst, __global real *workspace,
                               struct lk_recurrent a)
{
    walk_backward(backward_of(a, workspace, lengths, dy, saved, get_group_id(0), D_SLOT),
                  dfirst);
}
#endif

SPLIT_KERNEL void recurrent_begin(__global const S *restrict dy, __global real *workspace,
                                  struct lk_recurrent a)
{
    const struct backward b = backward_of(a, workspace, 0, dy, 0, get_group_id(0), 0);
    begin(&b);
}

/* Of the step that comes last, with which backward begins. */
SPLIT_KERNEL void recurrent_gates(__global const int *restrict lengths,
                                  __global const S *restrict dy,
                                  __global const S *restrict saved, __global real *workspace,
                                  struct lk_recurrent a, int i, int each)
{
    const struct backward b =
        backward_of(a, workspace, lengths, dy, saved, get_group_id(1), D_SLOT_OF(i));
    const int begin = (int)get_group_id(0) * each, t = step_of(&b.w, i);
    for (int block = begin; block < min(begin + each, BLOCKS(&b.w)); block++)
        gates_block(&b, t, block);
}

/* The gradient of r h, where the reset gate comes first. */
SPLIT_KERNEL void recurrent_reset(__global const int *restrict lengths,
                                  __global const S *restrict saved, __global real *workspace,
                                  struct lk_recurrent a, int i, int each)
{
    const struct backward b =
        backward_of(a, workspace, lengths, 0, saved, get_group_id(1), D_SLOT_OF(i));
    LOCAL_EXCHANGE
    const int begin = (int)get_group_id(0) * each;
    for (int block = begin; block < END_OF(begin, each, &b.w); block++)
        reset_block(&b, step_of(&b.w, i), block, exchange);
}

/* dh of step i, and the gates' gradients of the step before, number i - 1, if there is one. */
SPLIT_KERNEL void recurrent_step(__global const int *restrict lengths,
                                 __global const S *restrict dy,
                                 __global const S *restrict saved, __global real *workspace,
                                 struct lk_recurrent a, int i, int each)
{
    struct backward b =
        backward_of(a, workspace, lengths, dy, saved, get_group_id(1), D_SLOT_OF(i));
    LOCAL_EXCHANGE
    const int begin = (int)get_group_id(0) * each, end = END_OF(begin, each, &b.w);
    for (int block = begin; block < end; block++)
        step_block(&b, step_of(&b.w, i), block, exchange);
    b.d_slot = D_SLOT_OF(i - 1);
    for (int block = begin; i > 0 && block < end; block++)
        gates_block(&b, step_of(&b.w, i - 1), block);
}

SPLIT_KERNEL void recurrent_end(__global S *restrict dfirst, __global real *workspace,
                                struct lk_recurrent a)
{
    const struct backward b = backward_of(a, workspace, 0, 0, 0, get_group_id(0), 0);
    end(&b, dfirst);
}

/* Recurrent layers forward, from the input parts of all time steps on. s = x W + b + h U:
 *
 *   lstm  i, f, o = logistic(s), z = act(s); c' = f c + i z; h' = o act(c')
 *   gru   z, r = logistic(s); n = act(x W + b + r (h U + b')), or act(x W + b + (r h) U);
 *         h' = z h + (1 - z) n
 *   rnn   h' = act(s)
 *
 *   recurrent_pack      U in the order in which blocks of UNITS units read it
 *   recurrent_forward   walks all steps of COLUMNS tiles
 *   recurrent_begin, recurrent_step, recurrent_candidate, recurrent_end   the same, a step a
 *                       launch or two
 *
 * Each sum begins with the input part, to which h U is added in ascending order of units: both
 * ways give the same bits. On GPUs, which have the second way alone, a sum is made in SPLIT
 * parts. Behind a sample's length y is 0 and the states stay. state.cl has the arrays; z: input
 * parts, stored [tiles][steps][GATES][units][LANES], at the beginning of the workspace; u:
 * [units][GATES][units]. Slots of the state: 0, 1: h by turns; 2: c, or r h; 3: z of a GRU's
 * first phase; 5, 6: what is left of h where it is dropped. Group ids: pack: 0: block; forward,
 * begin, end: 0: group; step, candidate: 0: `each`
 * blocks, 1: group.
 */
#include "lib/real.cl"
#include "ops/recurrent/state.cl"
#include "ops/recurrent/pack.cl"

#define FIRST_GATES (KIND == GRU_BEFORE ? 2 : GATES) /* of the sums with h */
#define FIRST_ROWS (FIRST_GATES * UNITS)
#define FETCHES (FIRST_GATES + KEPT + 1)
#if AT_ONCE < FIRST_ROWS
#define EACH_PASS ROLLED
#else
#define EACH_PASS UNROLL
#endif
#define MULTIPLIED(from) (DROP ? 5 + (from) : (from)) /* the slot of h that sums multiply */

KERNEL void recurrent_pack(__global const real *restrict u, __global real *restrict workspace,
                           struct lk_recurrent a)
{
    __global real *packed = workspace + (size_t)a.packed_at * 16;
    const int blocks = (a.units + UNITS - 1) / UNITS;
    pack_gates(u, packed, a.units, 0, FIRST_GATES, get_group_id(0));
    if (GATES > FIRST_GATES)
        pack_gates(u, packed + (size_t)blocks * FIRST_ROWS * a.units, a.units, FIRST_GATES,
                   GATES - FIRST_GATES, get_group_id(0));
}

#include "ops/recurrent/cells.cl"

/* Brings row number `row` of what the units from `first` on read and write. */
INLINE void fetch(const struct forward *f, int t, int first, int row)
{
    const struct walk *w = &f->w;
    if (row < FIRST_GATES)
        HINT(PREFETCH, f->z, at_step(w, j, t, GATES, row), first);
    else if (f->saved && row < FIRST_GATES + KEPT)
        HINT(PREFETCH_TO_WRITE, f->saved, kept_at(w, j, t, row - FIRST_GATES), first);
    else if (f->saved)
        HINT(PREFETCH_TO_WRITE, f->saved, at_step(w, j, t, 1, 0), first);
}

/* The sums of AT_ONCE rows of a block from `begin` on. */
INLINE void sum_rows(const struct forward *f, int t, int from, int block, int begin,
                     V s[AT_ONCE][COLUMNS], __local V *exchange)
{
    enum { PASSES = FIRST_ROWS / AT_ONCE, EACH = (FETCHES + PASSES - 1) / PASSES };
    const int units = f->w.a.units, first = block * UNITS, fetches = begin / AT_ONCE * EACH;
    UNROLL for (int i = 0; i < AT_ONCE; i++) UNROLL for (int j = 0; j < COLUMNS; j++)
    {
        const int v = (begin + i) % UNITS, u = min(first + v, units - 1);
        s[i][j] = OWNS(v) ? start_of(f, t, (begin + i) / UNITS, u, j) : (V)0;
    }
#if SPLIT > 1
    multiply_split(f->packed + (size_t)block * units * FIRST_ROWS, FIRST_ROWS,
                   slot(&f->w, MULTIPLIED(from)), units, FIRST_ROWS, s, exchange);
#else
    MULTIPLY_FETCHING(fetches, fetches + EACH, fetch(f, t, first + UNITS, part),
                      f->packed + (size_t)block * units * FIRST_ROWS + begin, FIRST_ROWS,
                      slot(&f->w, MULTIPLIED(from)), SLOT_BETWEEN, SLOT_STEP, units, AT_ONCE,
                      s);
#endif
}

/* Where registers hold the sums of some rows only, those of the others are in memory. */
INLINE void step_block(const struct forward *f, int t, int from, int block, __local V *exchange)
{
    V s[FIRST_ROWS][COLUMNS];
    EACH_PASS for (int i = 0; i < FIRST_ROWS; i += AT_ONCE)
    {
        V some[AT_ONCE][COLUMNS];
        sum_rows(f, t, from, block, i, some, exchange);
        UNROLL for (int k = 0; k < AT_ONCE; k++) UNROLL for (int j = 0; j < COLUMNS; j++)
            s[i + k][j] = some[k][j];
    }
    EACH_PASS for (int v = 0; v < UNITS; v++) UNROLL for (int j = 0; j < COLUMNS; j++)
    {
        V gate[FIRST_GATES];
        UNROLL for (int g = 0; g < FIRST_GATES; g++) gate[g] = s[g * UNITS + v][j];
        if (OWNS(v) && block * UNITS + v < f->w.a.units)
            cell(f, t, from, block * UNITS + v, j, gate);
    }
}

/* The candidate of a GRU of which r h is known for all units. */
INLINE void candidate_block(const struct forward *f, int t, int from, int block,
                            __local V *exchange)
{
    const struct walk *w = &f->w;
    const int units = w->a.units, first = block * UNITS;
    __global const real *packed =
        f->packed + (size_t)BLOCKS(w) * units * FIRST_ROWS + (size_t)block * units * UNITS;
    V s[UNITS][COLUMNS];
    UNROLL for (int v = 0; v < UNITS; v++) UNROLL for (int j = 0; j < COLUMNS; j++) s[v][j] =
        start_of(f, t, GATES - 1, min(first + v, units - 1), j);
    MULTIPLY(packed, UNITS, slot(w, 2), units, UNITS, s, exchange);
    UNROLL for (int v = 0; v < UNITS; v++) UNROLL for (int j = 0; j < COLUMNS; j++)
    {
        const int u = first + v;
        if (OWNS(v) && u < units) {
            const V h = slot(w, from)[in_slot(u, j)], z = slot(w, 3)[in_slot(u, j)];
            const V n = ACTIVATION(s[v][j]);
            keep(f, t, 2, 1, u, j, &n);
            finish(f, t, from, u, j, FMA(z, h - n, n));
        }
    }
}

INLINE void begin(const struct forward *f, __global const S *first)
{
    const struct walk *w = &f->w;
    for (int u = WARP; u < w->a.units; u += SPLIT)
        for (int j = 0; j < COLUMNS; j++) {
            const size_t to = in_slot(u, j);
            slot(w, 0)[to] = first ? LOAD(first + first_at(w, j, 0) + u * PARTS) : (V)0;
            drop(w, 0, u, j);
            if (KIND == LSTM)
                slot(w, 2)[to] = first ? LOAD(first + first_at(w, j, 1) + u * PARTS) : (V)0;
        }
}

/* from: the slot of the last h. */
INLINE void end(const struct forward *f, int from)
{
    const struct walk *w = &f->w;
    const int row = rows_before_states(w);
    for (int u = WARP; u < w->a.units; u += SPLIT)
        for (int j = 0; j < COLUMNS; j++) {
            const V h = slot(w, from)[in_slot(u, j)];
            if (!w->a.sequences)
                STORE(f->y + y_at(w, j, 0) + u * PARTS, h);
            if (w->a.states > 0)
                STORE(f->y + y_at(w, j, row) + u * PARTS, h);
            if (w->a.states > 1)
                STORE(f->y + y_at(w, j, row + 1) + u * PARTS, slot(w, 2)[in_slot(u, j)]);
        }
}

/* A step that belongs to no sample of the group. Products leave it out. But where a GRU's reset
 * gate comes first they do not: they read h, and gru_candidate r. */
INLINE void skip(const struct forward *f, int t)
{
    const struct walk *w = &f->w;
    const V zero = (V)0;
    for (int u = 0; u < w->a.units; u++)
        for (int j = 0; j < COLUMNS; j++) {
            if (w->a.sequences)
                STORE(f->y + y_at(w, j, t) + u * PARTS, zero);
            if (KIND == GRU_BEFORE && f->saved) {
                STORE(f->saved + at_step(w, j, t, 1, 0) + u * PARTS, zero);
                keep(f, t, 1, 1, u, j, &zero);
            }
        }
}

#if SPLIT == 1 /* GPUs take each step in a launch */
BODY void walk_forward(struct forward all, __global const S *first)
{
    const struct forward f = all; /* or each store would make LLVM read its fields anew */
    const struct walk *w = &f.w;
    const int last = last_step(w);
    int from = 0;
    begin(&f, first);
    for (int i = 0; i < w->a.steps; i++) {
        const int t = step_of(w, i);
        if (t >= last) {
            skip(&f, t);
            continue;
        }
        for (int block = 0; block < BLOCKS(w); block++)
            step_block(&f, t, from, block, 0);
        if (GATES > FIRST_GATES)
            for (int block = 0; block < BLOCKS(w); block++)
                candidate_block(&f, t, from, block, 0);
        from = !from;
    }
    end(&f, from);
}

KERNEL void recurrent_forward(__global const S *restrict first,
                              __global const real *restrict bias,
                              __global const int *restrict lengths, __global S *restrict y,
                              __global S *restrict saved, __global real *workspace,
                              struct lk_recurrent a)
{
    walk_forward(forward_of(a, workspace, bias, lengths, y, saved, get_group_id(0)), first);
}
#endif

SPLIT_KERNEL void recurrent_begin(__global const S *restrict first, __global real *workspace,
                                  struct lk_recurrent a)
{
    const struct forward f = forward_of(a, workspace, 0, 0, 0, 0, get_group_id(0));
    begin(&f, first);
}

SPLIT_KERNEL void recurrent_step(__global const real *restrict bias,
                                 __global const int *restrict lengths, __global S *restrict y,
                                 __global S *restrict saved, __global real *workspace,
                                 struct lk_recurrent a, int i, int each)
{
    const struct forward f = forward_of(a, workspace, bias, lengths, y, saved, get_group_id(1));
    LOCAL_EXCHANGE
    const int begin = (int)get_group_id(0) * each;
    for (int block = begin; block < END_OF(begin, each, &f.w); block++)
        step_block(&f, step_of(&f.w, i), i % 2, block, exchange);
}

/* Of a GRU whose reset gate comes first, behind recurrent_step. */
SPLIT_KERNEL void recurrent_candidate(__global const real *restrict bias,
                                      __global const int *restrict lengths,
                                      __global S *restrict y, __global S *restrict saved,
                                      __global real *workspace, struct lk_recurrent a, int i,
                                      int each)
{
    const struct forward f = forward_of(a, workspace, bias, lengths, y, saved, get_group_id(1));
    LOCAL_EXCHANGE
    const int begin = (int)get_group_id(0) * each;
    for (int block = begin; block < END_OF(begin, each, &f.w); block++)
        candidate_block(&f, step_of(&f.w, i), i % 2, block, exchange);
}

SPLIT_KERNEL void recurrent_end(__global S *restrict y, __global real *workspace,
                                struct lk_recurrent a, int from)
{
    const struct forward f = forward_of(a, workspace, 0, 0, y, 0, get_group_id(0));
    end(&f, from);
}

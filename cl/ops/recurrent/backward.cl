/* Recurrent layers backward through time: the gradients dz of all gates' sums, of which the
 * products over all time steps make those of x and of the weights, and the gradients of the
 * initial states. forward.cl has the formulas, state.cl the arrays.
 *
 *   recurrent_pack       U in the order in which blocks of UNITS units read it: transposed
 *   recurrent_backward   walks all steps of COLUMNS tiles
 *   recurrent_begin, recurrent_gates, recurrent_step, recurrent_end   the same in launches
 *
 * dz: stored [tiles][steps][GATES][units][LANES], at the beginning of the workspace; behind a
 * sample's length 0. Each sum begins with what h hands on by itself; then gates' gradients are
 * added in ascending order. Slots of the state: 0: dh; 1: dc; 2: what h hands on by itself;
 * from 3 on the gates' gradients; last, FACTORS.
 * Group ids: pack: 0: block; backward, begin, end: 0: group; gates, step: 0: `each` blocks, 1:
 * group.
 */
#include "lib/real.cl"
#include "ops/recurrent/state.cl"
#include "ops/recurrent/pack.cl"

#define LAST_GATES (KIND == GRU_BEFORE ? 2 : GATES) /* of the sums that make dh */
#define D_SLOT 3

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

struct backward {
    struct walk w;
    __global S *dz;
    __global const real *packed;
    __global const S *dy, *saved;
};

INLINE struct backward backward_of(struct lk_recurrent a, __global real *workspace,
                                   __global const int *lengths, __global const S *dy,
                                   __global const S *saved, int group)
{
    const struct backward b = {walk_of(a, workspace, lengths, group), (__global S *)workspace,
                               workspace + (size_t)a.packed_at * 16, dy, saved};
    return b;
}

INLINE V kept(const struct backward *b, int t, int row, int u, int j)
{
    return LOAD(b->saved + kept_at(&b->w, j, t, row) + u * PARTS);
}

/* What was multiplied: h before the step, or what is left of it. */
INLINE V h_multiplied(const struct backward *b, int t, int u, int j)
{
    return LOAD(b->saved + at_step(&b->w, j, t, 1, 0) + u * PARTS);
}

/* Of a GRU. */
INLINE V h_before(const struct backward *b, int t, int u, int j)
{
    return DROP ? kept(b, t, KEPT - 1, u, j) : h_multiplied(b, t, u, j);
}

/* The gradient of h from that of what was multiplied. */
INLINE V undropped(const struct walk *w, V d, int u, int j)
{
    return DROP ? d * slot(w, FACTORS)[in_slot(u, j)] : d;
}

/* `own`: of the sum with h, `given`: of the sum with x. */
INLINE void give(const struct backward *b, int t, int gate, int u, int j, V own, V given)
{
    const struct walk *w = &b->w;
    slot(w, D_SLOT + gate)[in_slot(u, j)] = WHERE_VALID(w, j, t, own, (V)0);
    STORE(b->dz + at_step(w, j, t, GATES, gate) + u * PARTS, WHERE_VALID(w, j, t, given, (V)0));
}

/* From dh of a unit to the gradients of its gates. */
INLINE void gates(const struct backward *b, int t, int u, int j)
{
    const struct walk *w = &b->w;
    const V one = (V)1, dh = slot(w, 0)[in_slot(u, j)];
    const V e = w->a.sequences ? dh + LOAD(b->dy + y_at(w, j, t) + u * PARTS) : dh;
    V on = (V)0;
#if KIND == LSTM
    __global V *dc = slot(w, 1) + in_slot(u, j);
    const V in = kept(b, t, 0, u, j), forget = kept(b, t, 1, u, j), z = kept(b, t, 2, u, j),
            out = kept(b, t, 3, u, j), before = kept(b, t, 4, u, j);
    const V c = ACTIVATION(FMA(forget, before, in * z)), later = *dc;
    const V d = FMA(e * out, SLOPE(c), later);
    const V di = d * z * in * (one - in), df = d * before * forget * (one - forget);
    const V dn = d * in * SLOPE(z), dout = e * c * out * (one - out);
    *dc = WHERE_VALID(w, j, t, d * forget, later);
    give(b, t, 0, u, j, di, di);
    give(b, t, 1, u, j, df, df);
    give(b, t, 2, u, j, dn, dn);
    give(b, t, 3, u, j, dout, dout);
#elif KIND == GRU_AFTER || KIND == GRU_BEFORE
    const V z = kept(b, t, 0, u, j), r = kept(b, t, 1, u, j), n = kept(b, t, 2, u, j);
    const V dz = e * (h_before(b, t, u, j) - n) * z * (one - z);
    const V dn = e * (one - z) * SLOPE(n);
    give(b, t, 0, u, j, dz, dz);
#if KIND == GRU_AFTER
    const V dr = dn * kept(b, t, 3, u, j) * r * (one - r);
    give(b, t, 1, u, j, dr, dr);
    give(b, t, 2, u, j, dn * r, dn);
#else
    give(b, t, 2, u, j, dn, dn);
#endif
    on = e * z;
#else
    const V d = e * SLOPE(kept(b, t, 0, u, j));
    give(b, t, 0, u, j, d, d);
#endif
    slot(w, 2)[in_slot(u, j)] = WHERE_VALID(w, j, t, on, dh);
}

INLINE void gates_block(const struct backward *b, int t, int block)
{
    for (int u = block * UNITS; u < min((block + 1) * UNITS, b->w.a.units); u++)
        UNROLL for (int j = 0; j < COLUMNS; j++) gates(b, t, u, j);
}

/* The gradient of r h, and of a reset gate that came first. */
INLINE void reset_block(const struct backward *b, int t, int block)
{
    const struct walk *w = &b->w;
    const int units = w->a.units, first = block * UNITS;
    V s[UNITS][COLUMNS];
    UNROLL for (int v = 0; v < UNITS; v++) UNROLL for (int j = 0; j < COLUMNS; j++) s[v][j] =
        (V)0;
    multiply(b->packed + (size_t)BLOCKS(w) * UNITS * LAST_GATES * units +
                 (size_t)block * UNITS * units,
             UNITS, slot(w, D_SLOT + 2), units, UNITS, s);
    UNROLL for (int v = 0; v < UNITS; v++) UNROLL for (int j = 0; j < COLUMNS; j++)
    {
        const int u = first + v;
        if (u < units) {
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
INLINE void step_block(const struct backward *b, int t, int block)
{
    const struct walk *w = &b->w;
    const int units = w->a.units, first = block * UNITS, all = LAST_GATES * units;
    V s[UNITS][COLUMNS];
    UNROLL for (int v = 0; v < UNITS; v++) UNROLL for (int j = 0; j < COLUMNS; j++) s[v][j] =
        DROP ? (V)0 : slot(w, 2)[in_slot(min(first + v, units - 1), j)];
    MULTIPLY_FETCHING(0, KEPT + GATES, fetch(b, t, first, part),
                      b->packed + (size_t)block * UNITS * all, UNITS, slot(w, D_SLOT), all,
                      UNITS, s);
    UNROLL for (int v = 0; v < UNITS; v++)
        UNROLL for (int j = 0; j < COLUMNS; j++) if (first + v < units)
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
    for (int u = 0; u < w->a.units; u++)
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
    for (int u = 0; dfirst && u < w->a.units; u++)
        for (int j = 0; j < COLUMNS; j++) {
            STORE(dfirst + first_at(w, j, 0) + u * PARTS, slot(w, 0)[in_slot(u, j)]);
            if (KIND == LSTM)
                STORE(dfirst + first_at(w, j, 1) + u * PARTS, slot(w, 1)[in_slot(u, j)]);
        }
}

BODY void walk_backward(struct backward b, __global S *dfirst)
{
    const struct walk *w = &b.w;
    const int last = last_step(w);
    begin(&b);
    for (int i = w->a.steps - 1; i >= 0; i--) {
        const int t = step_of(w, i);
        if (t >= last) {
            for (int u = 0; u < GATES * w->a.units; u++)
                for (int j = 0; j < COLUMNS; j++)
                    STORE(b.dz + at_step(w, j, t, GATES, 0) + u * PARTS, (V)0);
            continue;
        }
        for (int block = 0; block < BLOCKS(w); block++)
            gates_block(&b, t, block);
        if (KIND == GRU_BEFORE)
            for (int block = 0; block < BLOCKS(w); block++)
                reset_block(&b, t, block);
        for (int block = 0; block < BLOCKS(w); block++)
            step_block(&b, t, block);
    }
    end(&b, dfirst);
}

KERNEL void recurrent_backward(__global const int *restrict lengths,
                               __global const S *restrict dy, __global const S *restrict saved,
                               __global S *restrict dfirst, __global real *workspace,
                               struct lk_recurrent a)
{
    walk_backward(backward_of(a, workspace, lengths, dy, saved, get_group_id(0)), dfirst);
}

KERNEL void recurrent_begin(__global const S *restrict dy, __global real *workspace,
                            struct lk_recurrent a)
{
    const struct backward b = backward_of(a, workspace, 0, dy, 0, get_group_id(0));
    begin(&b);
}

KERNEL void recurrent_gates(__global const int *restrict lengths, __global const S *restrict dy,
                            __global const S *restrict saved, __global real *workspace,
                            struct lk_recurrent a, int i, int each)
{
    const struct backward b = backward_of(a, workspace, lengths, dy, saved, get_group_id(1));
    const int begin = (int)get_group_id(0) * each, t = step_of(&b.w, i);
    for (int block = begin; block < min(begin + each, BLOCKS(&b.w)); block++)
        gates_block(&b, t, block);
}

/* phase 0: the gradient of r h; 1: that of h. */
KERNEL void recurrent_step(__global const int *restrict lengths,
                           __global const S *restrict saved, __global real *workspace,
                           struct lk_recurrent a, int i, int phase, int each)
{
    const struct backward b = backward_of(a, workspace, lengths, 0, saved, get_group_id(1));
    const int begin = (int)get_group_id(0) * each, t = step_of(&b.w, i);
    for (int block = begin; block < min(begin + each, BLOCKS(&b.w)); block++)
        if (phase == 0)
            reset_block(&b, t, block);
        else
            step_block(&b, t, block);
}

KERNEL void recurrent_end(__global S *restrict dfirst, __global real *workspace,
                          struct lk_recurrent a)
{
    const struct backward b = backward_of(a, workspace, 0, 0, 0, get_group_id(0));
    end(&b, dfirst);
}

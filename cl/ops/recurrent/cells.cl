/* Recurrent cells forward: what the sums of a unit's gates begin with, and how they become its
 * new state. forward.cl has the formulas and the slots of the state. Needs FIRST_GATES,
 * MULTIPLIED, ops/recurrent/state.cl. */

struct forward {
    struct walk w;
    __global const S *z;
    __global const real *packed, *bias;
    __global S *y, *saved;
};

INLINE struct forward forward_of(struct lk_recurrent a, __global real *workspace,
                                 __global const real *bias, __global const int *lengths,
                                 __global S *y, __global S *saved, int group)
{
    const struct forward f = {walk_of(a, workspace, lengths, group),
                              (__global const S *)workspace,
                              workspace + (size_t)a.packed_at * 16, bias, y, saved};
    return f;
}

INLINE V bias_of(const struct forward *f, int gate, int u)
{
    return BIAS ? (V)(f->bias[gate * f->w.a.units + u]) : (V)0;
}

INLINE V input_part(const struct forward *f, int t, int gate, int u, int j)
{
    return LOAD(f->z + at_step(&f->w, j, t, GATES, gate) + u * PARTS);
}

/* What the sum of a gate begins with. A GRU's reset gate may multiply what comes from h, which
 * is then summed by itself. */
INLINE V start_of(const struct forward *f, int t, int gate, int u, int j)
{
    if (KIND == GRU_AFTER && gate == 2)
        return bias_of(f, gate, u);
    return input_part(f, t, gate, u, j) + bias_of(f, gate, u);
}

/* Keeps values for backward, as so many rows from `row` on. */
INLINE void keep(const struct forward *f, int t, int row, const int count, int u, int j,
                 const V *values)
{
    if (!f->saved)
        return;
    __global S *to = f->saved + kept_at(&f->w, j, t, row) + u * PARTS;
    const size_t apart = (size_t)f->w.a.units * PARTS;
    UNROLL for (int i = 0; i < count; i++) STORE(to + i * apart, values[i]);
}

/* Makes of h in a slot what the sums of the next step multiply. */
INLINE void drop(const struct walk *w, int from, int u, int j)
{
    if (DROP)
        slot(w, MULTIPLIED(from))[in_slot(u, j)] =
            slot(w, from)[in_slot(u, j)] * slot(w, FACTORS)[in_slot(u, j)];
}

/* Replaces h and gives y, once h' is known. */
INLINE void finish(const struct forward *f, int t, int from, int u, int j, V next)
{
    const struct walk *w = &f->w;
    const V h = slot(w, from)[in_slot(u, j)];
    slot(w, !from)[in_slot(u, j)] = WHERE_VALID(w, j, t, next, h);
    drop(w, !from, u, j);
    if (w->a.sequences)
        STORE(f->y + y_at(w, j, t) + u * PARTS, WHERE_VALID(w, j, t, next, (V)0));
    if (f->saved)
        STORE(f->saved + at_step(w, j, t, 1, 0) + u * PARTS,
              slot(w, MULTIPLIED(from))[in_slot(u, j)]);
#if DROP && GATES == 3
    keep(f, t, KEPT - 1, 1, u, j, &h);
#endif
}

/* From the sums of unit u to its new state; a GRU whose reset gate comes first makes r h. */
INLINE void cell(const struct forward *f, int t, int from, int u, int j, const V s[FIRST_GATES])
{
    const struct walk *w = &f->w;
#if KIND == LSTM
    __global V *c = slot(w, 2) + in_slot(u, j);
    const V in = logistic(s[0]), forget = logistic(s[1]), z = ACTIVATION(s[2]),
            out = logistic(s[3]), before = *c;
    const V after = FMA(forget, before, in * z);
    *c = WHERE_VALID(w, j, t, after, before);
    const V kept[] = {in, forget, z, out, before};
    keep(f, t, 0, 5, u, j, kept);
    finish(f, t, from, u, j, out * ACTIVATION(after));
#elif KIND == GRU_AFTER
    const V h = slot(w, from)[in_slot(u, j)], z = logistic(s[0]), r = logistic(s[1]);
    const V n = ACTIVATION(FMA(r, s[2], input_part(f, t, 2, u, j)));
    const V kept[] = {z, r, n, s[2]};
    keep(f, t, 0, 4, u, j, kept);
    finish(f, t, from, u, j, FMA(z, h - n, n));
#elif KIND == GRU_BEFORE
    const V z = logistic(s[0]), r = logistic(s[1]);
    slot(w, 2)[in_slot(u, j)] = r * slot(w, MULTIPLIED(from))[in_slot(u, j)];
    slot(w, 3)[in_slot(u, j)] = z;
    const V kept[] = {z, r};
    keep(f, t, 0, 2, u, j, kept);
#else
    const V h = ACTIVATION(s[0]);
    keep(f, t, 0, 1, u, j, &h);
    finish(f, t, from, u, j, h);
#endif
}

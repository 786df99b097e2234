/* Recurrent cells backward: from the gradient of a unit's h to those of its gates' sums.
 * backward.cl has the slots of the state. Needs ops/recurrent/state.cl. */

struct backward {
    struct walk w;
    __global S *dz;
    __global const real *packed;
    __global const S *dy, *saved;
    int d_slot; /* of the step's gates' gradients */
};

INLINE struct backward backward_of(struct lk_recurrent a, __global real *workspace,
                                   __global const int *lengths, __global const S *dy,
                                   __global const S *saved, int group, int d_slot)
{
    const struct backward b = {walk_of(a, workspace, lengths, group),
                               (__global S *)workspace,
                               workspace + (size_t)a.packed_at * 16,
                               dy,
                               saved,
                               d_slot};
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

/* The gates' gradients, which the products that make dh add up. On CPUs they are read in dz,
 * where that holds the same reals; otherwise they have slots of their own. */
#if VECTOR > 1 && (KIND == LSTM || KIND == RNN) && !(defined(STORED_BYTES) && STORED_BYTES == 2)
#define SUMS_DZ 1
#define SUMMED(b, t) ((b)->dz + at_step(&(b)->w, 0, t, GATES, 0))
#define SUMMED_BETWEEN(b, t)                                                                   \
    (at_step(&(b)->w, COLUMNS - 1, t, GATES, 0) - at_step(&(b)->w, 0, t, GATES, 0))
#define SUMMED_STEP PARTS
#else
#define SUMS_DZ 0
#define SUMMED(b, t) slot(&(b)->w, (b)->d_slot)
#define SUMMED_BETWEEN(b, t) SLOT_BETWEEN
#define SUMMED_STEP SLOT_STEP
#endif

/* `own`: of the sum with h, `given`: of the sum with x. */
INLINE void give(const struct backward *b, int t, int gate, int u, int j, V own, V given)
{
    const struct walk *w = &b->w;
    if (!SUMS_DZ)
        slot(w, b->d_slot + gate)[in_slot(u, j)] = WHERE_VALID(w, j, t, own, (V)0);
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

/* What the kernels of recurrent layers share: where their numbers lie. Needs lib/real.cl.
 *
 * A group walks COLUMNS batch tiles; past the last tile it walks that one again and stores the
 * same numbers twice. u: a unit, j: a tile of the group, t: a time step.
 *   state  reals [groups][SLOTS][units][COLUMNS][LANES]: h, c and what one step hands to the
 *          next
 *   y      stored [tiles][rows][units][LANES]: all steps, or the last output alone, followed by
 *          as many final states as are asked for
 *   saved  stored [tiles][steps][units][LANES]: h before each step, of which the weight
 *          gradient is made; behind them [tiles][steps][KEPT][units][LANES]. Where h is dropped
 *          it is what is left of h; a GRU keeps the whole h as its last row
 * -D: KIND: LSTM, GRU_AFTER, GRU_BEFORE (the reset gate), RNN; RELU: activation: 0 tanh, 1
 * relu; BIAS: there is a recurrent bias; LENGTHS: samples have lengths; COLUMNS: 1 or 2; UNITS:
 * of a block; AT_ONCE: of a block's rows, those whose sums are in registers at a time, a
 * divisor; DROP: h is dropped where it is multiplied; SPLIT: warps of PARTS work-items that a
 * work-group of begin, gates, step and end has on a GPU, which divide its sums and its units
 * among them.
 */
#include "lib/hints.cl"
#include "lib/tanh.cl"
#include "ops/args.h"

#define LSTM 0
#define GRU_AFTER 1
#define GRU_BEFORE 2
#define RNN 3

#if KIND == LSTM
#define GATES 4
#define KEPT 5 /* i, f, z, o, c before the step */
#elif KIND == GRU_AFTER
#define GATES 3
#define KEPT (4 + DROP) /* z, r, candidate, the part of its sum that comes from h */
#elif KIND == GRU_BEFORE
#define GATES 3
#define KEPT (3 + DROP)
#else
#define GATES 1
#define KEPT 1 /* h */
#endif

#define SLOTS 12
/* The slot of the state with what h is multiplied with where it is dropped: 0 or a number for
 * all steps. */
#define FACTORS 7

#if SPLIT > 1
#undef PART
#define PART ((int)get_local_id(0) % PARTS)
#define WARP ((int)get_local_id(0) / PARTS)
#define SPLIT_KERNEL __kernel __attribute__((reqd_work_group_size(PARTS * SPLIT, 1, 1)))
#else
#define WARP 0
#define SPLIT_KERNEL KERNEL
#endif
/* Whether this warp makes the new state of unit v of a block. */
#define OWNS(v) (SPLIT == 1 || (v) % SPLIT == WARP)

/* Of UNITS units. */
#define BLOCKS(w) (((w)->a.units + UNITS - 1) / UNITS)

/* Numbers of a whole vector of lanes, as comparisons with V want them. */
#if VECTOR == 1
typedef int W;
#else
typedef PASTE(int, VECTOR) W;
#endif

#if RELU
#define ACTIVATION(x) ((x) > (V)0 ? (x) : (V)0)
#define SLOPE(y) ((y) > (V)0 ? (V)1 : (V)0)
#else
#define ACTIVATION(x) tanh_of(x)
#define SLOPE(y) ((V)1 - (y) * (y))
#endif

/* What belongs to a sample's sequence, or else stays as it was. */
#if LENGTHS
#define WHERE_VALID(w, j, t, a, b) (TO_I((W)(t) < length_of(w, j)) ? (a) : (b))
#else
#define WHERE_VALID(w, j, t, a, b) (a)
#endif

/* A group and what it works on. */
struct walk {
    struct lk_recurrent a;
    __global V *state; /* of the group */
    __global const W *lengths;
    int tile; /* its first */
};

INLINE int tile_of(const struct walk *w, int j)
{
    return min(w->tile + j, w->a.tiles - 1);
}

INLINE W length_of(const struct walk *w, int j)
{
    return w->lengths[tile_of(w, j) * PARTS + PART];
}

INLINE struct walk walk_of(struct lk_recurrent a, __global real *workspace,
                           __global const int *lengths, int group)
{
    __global V *state = (__global V *)(workspace + (size_t)a.state_at * 16) +
                        (size_t)group * SLOTS * a.units * COLUMNS * PARTS + PART;
    const struct walk w = {a, state, (__global const W *)lengths, group * COLUMNS};
    return w;
}

/* Array n of those of the state, of all units. */
INLINE __global V *slot(const struct walk *w, int n)
{
    return w->state + (size_t)n * w->a.units * COLUMNS * PARTS;
}

INLINE size_t in_slot(int u, int j)
{
    return (size_t)(u * COLUMNS + j) * PARTS;
}

/* The time step that is walked as number i. */
INLINE int step_of(const struct walk *w, int i)
{
    return w->a.backwards ? w->a.steps - 1 - i : i;
}

/* Row `row` of `rows` of array [tiles][steps][rows][units]. */
INLINE size_t at_step(const struct walk *w, int j, int t, int rows, int row)
{
    return (((size_t)tile_of(w, j) * w->a.steps + t) * rows + row) * w->a.units * PARTS + PART;
}

INLINE size_t kept_at(const struct walk *w, int j, int t, int row)
{
    return (size_t)w->a.tiles * w->a.steps * w->a.units * PARTS + at_step(w, j, t, KEPT, row);
}

INLINE int rows_before_states(const struct walk *w)
{
    return w->a.sequences ? w->a.steps : 1;
}

/* Row `row` of y or dy. */
INLINE size_t y_at(const struct walk *w, int j, int row)
{
    const size_t rows = (size_t)rows_before_states(w) + w->a.states;
    return ((size_t)tile_of(w, j) * rows + row) * w->a.units * PARTS + PART;
}

/* Row `row` of the initial states or their gradients. */
INLINE size_t first_at(const struct walk *w, int j, int row)
{
    const int rows = KIND == LSTM ? 2 : 1;
    return ((size_t)tile_of(w, j) * rows + row) * w->a.units * PARTS + PART;
}

INLINE int has_step(const struct walk *w, int t)
{
    int found = 0;
    for (int j = 0; j < COLUMNS; j++)
        found |= any((W)(t) < length_of(w, j));
    return found;
}

/* Behind the longest sequence of the group's tiles there is nothing to walk. Where a
 * work-item sees its own lane alone, it does not know and walks on. Vectors are compared whole:
 * of a loop over lanes Intel's compiler (2026.22.10) made one that gave wrong steps. */
INLINE int last_step(const struct walk *w)
{
    int last = w->a.steps;
#if LENGTHS && PARTS == 1
    while (last > 0 && !has_step(w, last - 1))
        last--;
#endif
    return last;
}

/* s += A h over n values of h, which are `step` V from one to the next and `between` from one
 * tile's to the next tile's; of A `rows` neighbours belong to one value of h, and those `apart`
 * behind to the next. */
INLINE void multiply(__global const real *packed, const int apart, __global const V *h,
                     const size_t between, const int step, int n, const int rows,
                     V s[][COLUMNS])
{
    for (int k = 0; k < n; k++, packed += apart, h += step) {
        V column[COLUMNS];
        UNROLL for (int j = 0; j < COLUMNS; j++) column[j] = h[j * between];
        UNROLL for (int i = 0; i < rows; i++)
        {
            const V value = (V)(packed[i]);
            UNROLL for (int j = 0; j < COLUMNS; j++) s[i][j] = FMA(value, column[j], s[i][j]);
        }
    }
}

/* As slots of the state have values of h: `between` and `step`. */
#define SLOT_BETWEEN PARTS
#define SLOT_STEP (COLUMNS * PARTS)

/* multiply() by all warps of a work-group, which hand their sums over in `exchange`; the end of
 * the group's blocks, of which a GPU's group has one: PoCL makes no loops round barriers. */
#if SPLIT > 1
#include "ops/recurrent/split.cl"
#define MULTIPLY(packed, apart, h, n, rows, s, exchange)                                       \
    multiply_split(packed, apart, h, n, rows, s, exchange)
#define LOCAL_EXCHANGE __local V exchange[EXCHANGE];
#define END_OF(begin, each, w) ((begin) + 1)
#else
#define MULTIPLY(packed, apart, h, n, rows, s, exchange)                                       \
    multiply(packed, apart, h, SLOT_BETWEEN, SLOT_STEP, n, rows, s)
#define LOCAL_EXCHANGE __local V *exchange = 0;
#define END_OF(begin, each, w) min((begin) + (each), BLOCKS(w))
#endif

/* Hints at a row of the group's units from `first` on, where `at` tells the row of tile j. */
#define HINT(hint, array, at, first)                                                           \
    UNROLL for (int j = 0; j < COLUMNS; j++) UNROLL for (int v = 0; v < UNITS; v++)            \
        hint((array) + (at) + ((first) + v) * PARTS)

/* multiply() in as many parts as there are rows to be fetched, on a CPU: `fetch` brings row
 * `part`, from `begin` to before `end`, and the products hide that. */
#define MULTIPLY_FETCHING(begin, end, fetch, packed, apart, h, between, step, n, rows, s)      \
    for (int part = (begin), parts = VECTOR > 1 ? (end) : part + 1; part < parts; part++) {    \
        const int from_k = (n) * (part - (begin)) / (parts - (begin)),                         \
                  end_k = (n) * (part - (begin) + 1) / (parts - (begin));                      \
        fetch;                                                                                 \
        multiply((packed) + (size_t)from_k * (apart), apart, (h) + (size_t)from_k * (step),    \
                 between, step, end_k - from_k, rows, s);                                      \
    }

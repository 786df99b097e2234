/* ONNX's operators that move elements of whole arrays to places that other inputs say, which
 * must be known. */
#include "model/onnx_arrays/whole.h"

#include "base/fail.h"
#include "model/onnx_arrays/tables.h"
#include <string.h>

/* A table of places, an index each, with what it is read by. */
struct table {
    const struct lk_onnx_tensor *index;
    int rank, axis, batch; /* rank: of the data; batch: axes that both have first */
    int64_t dim[LK_ONNX_AXES], stride[LK_ONNX_AXES];
};

static enum lk_status open_table(draft *d, const value *x, int index, struct table *t)
{
    LK_TRY(lk_onnx_constant(d, index, &t->index));
    if (!t->index || !lk_onnx_is_whole(t->index->type))
        return lk_onnx_fail(d, "indices are expected");
    t->rank = x->rank;
    memcpy(t->dim, x->dim, sizeof t->dim);
    lk_whole_strides(x->rank, x->dim, t->stride);
    return LK_OK;
}

/* All indices must lie within an axis; they may count from its end. */
static enum lk_status check_indices(const draft *d, const struct table *t, int64_t length)
{
    for (int64_t i = 0; i < t->index->count; i++) {
        const int64_t index = lk_onnx_integer(t->index, i);
        if (index < -length || index >= length)
            return lk_onnx_fail(d, "index %lld of an axis of %lld", (long long)index,
                                (long long)length);
    }
    return LK_OK;
}

static int64_t index_at(const struct table *t, int64_t i, int64_t length)
{
    const int64_t index = lk_onnx_integer(t->index, i);
    return index < 0 ? index + length : index;
}

/* --- Gather ------------------------------------------------------------------------------ */

static int64_t gather_place(const void *how, const int64_t *at)
{
    const struct table *t = how;
    int64_t place = 0, index = 0;
    for (int i = 0; i < t->axis; i++)
        place += at[i] * t->stride[i];
    for (int i = 0; i < t->index->rank; i++)
        index = index * t->index->dim[i] + at[t->axis + i];
    place += index_at(t, index, t->dim[t->axis]) * t->stride[t->axis];
    for (int i = t->axis + 1; i < t->rank; i++)
        place += at[i - 1 + t->index->rank] * t->stride[i];
    return place;
}

static enum lk_status gather(draft *d)
{
    value x;
    struct table t = {0};
    int64_t said, dim[LK_ONNX_AXES];
    int rank = 0;
    LK_TRY(lk_whole_input(d, 0, &x));
    LK_TRY(open_table(d, &x, 1, &t));
    LK_TRY(lk_onnx_say_integer(d, "axis", 0, &said));
    LK_TRY(lk_onnx_axis(d, said, x.rank, &t.axis));
    LK_TRY(check_indices(d, &t, x.dim[t.axis]));
    if (x.rank - 1 + t.index->rank > LK_ONNX_AXES)
        return lk_onnx_fail(d, "more than %d axes", LK_ONNX_AXES);
    for (int i = 0; i < t.axis; i++)
        dim[rank++] = x.dim[i];
    for (int i = 0; i < t.index->rank; i++)
        dim[rank++] = t.index->dim[i];
    for (int i = t.axis + 1; i < x.rank; i++)
        dim[rank++] = x.dim[i];
    LK_TRY(lk_whole_move(d, &x, rank, dim, gather_place, &t, 0, &x));
    return lk_onnx_give(d, 0, &x);
}

static int64_t element_place(const void *how, const int64_t *at)
{
    const struct table *t = how;
    int64_t place = 0, index = 0;
    for (int i = 0; i < t->rank; i++)
        index = index * t->index->dim[i] + at[i];
    for (int i = 0; i < t->rank; i++)
        place += (i == t->axis ? index_at(t, index, t->dim[i]) : at[i]) * t->stride[i];
    return place;
}

static enum lk_status open_elements(draft *d, const value *x, struct table *t)
{
    int64_t said;
    LK_TRY(open_table(d, x, 1, t));
    LK_TRY(lk_onnx_say_integer(d, "axis", 0, &said));
    LK_TRY(lk_onnx_axis(d, said, x->rank, &t->axis));
    LK_TRY(check_indices(d, t, x->dim[t->axis]));
    for (int i = 0; i < x->rank; i++)
        if (t->index->rank != x->rank || (i != t->axis && t->index->dim[i] > x->dim[i]))
            return lk_onnx_fail(d, "indices of a shape that does not fit");
    return LK_OK;
}

static enum lk_status gather_elements(draft *d)
{
    value x;
    struct table t = {0};
    LK_TRY(lk_whole_input(d, 0, &x));
    LK_TRY(open_elements(d, &x, &t));
    LK_TRY(lk_whole_move(d, &x, t.rank, t.index->dim, element_place, &t, 0, &x));
    return lk_onnx_give(d, 0, &x);
}

/* The last axis of the table names leading axes of the data. */
static int64_t tuple_place(const struct table *t, int64_t row, const int64_t *batch)
{
    const int length = (int)t->index->dim[t->index->rank - 1];
    int64_t place = 0;
    for (int i = 0; i < t->batch; i++)
        place += batch[i] * t->stride[i];
    for (int i = 0; i < length; i++)
        place += index_at(t, row * length + i, t->dim[t->batch + i]) * t->stride[t->batch + i];
    return place;
}

static int64_t gather_nd_place(const void *how, const int64_t *at)
{
    const struct table *t = how;
    const int heads = t->index->rank - 1, tuple = (int)t->index->dim[heads];
    int64_t row = 0;
    for (int i = 0; i < heads; i++)
        row = row * t->index->dim[i] + at[i];
    int64_t place = tuple_place(t, row, at);
    for (int i = t->batch + tuple; i < t->rank; i++)
        place += at[heads + i - t->batch - tuple] * t->stride[i];
    return place;
}

static enum lk_status check_tuples(const draft *d, const struct table *t)
{
    const int heads = t->index->rank - 1;
    if (t->index->rank < 1 || t->batch > heads || t->batch + t->index->dim[heads] > t->rank ||
        t->index->dim[heads] < 1)
        return lk_onnx_fail(d, "indices of a shape that does not fit");
    const int64_t tuple = t->index->dim[heads];
    for (int64_t i = 0; i < t->index->count; i++) {
        const int64_t length = t->dim[t->batch + i % tuple],
                      index = lk_onnx_integer(t->index, i);
        if (index < -length || index >= length)
            return lk_onnx_fail(d, "index %lld of an axis of %lld", (long long)index,
                                (long long)length);
    }
    return LK_OK;
}

static enum lk_status gather_nd(draft *d)
{
    value x;
    struct table t = {0};
    int64_t batch, dim[2 * LK_ONNX_AXES];
    int rank = 0;
    LK_TRY(lk_whole_input(d, 0, &x));
    LK_TRY(open_table(d, &x, 1, &t));
    LK_TRY(lk_onnx_say_integer(d, "batch_dims", 0, &batch));
    t.batch = batch < 0 || batch > LK_ONNX_AXES ? LK_ONNX_AXES : (int)batch;
    LK_TRY(check_tuples(d, &t));
    const int heads = t.index->rank - 1;
    for (int i = 0; i < heads; i++) {
        if (i < t.batch && t.index->dim[i] != x.dim[i])
            return lk_onnx_fail(d, "indices of another batch");
        dim[rank++] = t.index->dim[i];
    }
    for (int i = t.batch + (int)t.index->dim[heads]; i < x.rank; i++)
        dim[rank++] = x.dim[i];
    LK_TRY(lk_whole_move(d, &x, rank, dim, gather_nd_place, &t, 0, &x));
    return lk_onnx_give(d, 0, &x);
}

/* --- Scatter ----------------------------------------------------------------------------- */

/* Which update goes to each place: those after one another to one place make rounds. */
struct scatter {
    int64_t *which; /* [places] of a round; -1: none */
    int64_t places;
    int rank;
    const int64_t *dim;
    bool joins; /* updates lie behind the data in one row */
};

static int64_t scatter_place(const void *how, const int64_t *at)
{
    const struct scatter *s = how;
    int64_t place = 0;
    for (int i = 0; i < s->rank; i++)
        place = place * s->dim[i] + at[i];
    if (!s->joins)
        return s->which[place];
    return s->which[place] >= 0 ? s->places + s->which[place] : place;
}

/* The place of update u. */
typedef int64_t target(const struct table *t, const value *updates, int64_t u);

static int64_t element_target(const struct table *t, const value *updates, int64_t u)
{
    int64_t at[LK_ONNX_AXES], rest = u;
    for (int i = updates->rank - 1; i >= 0; i--) {
        at[i] = rest % updates->dim[i];
        rest /= updates->dim[i];
    }
    return element_place(t, at);
}

static int64_t tuple_target(const struct table *t, const value *updates, int64_t u)
{
    const int64_t tuple = t->index->dim[t->index->rank - 1];
    int64_t each = 1;
    (void)updates;
    for (int i = (int)tuple; i < t->rank; i++)
        each *= t->dim[i];
    return tuple_place(t, u / each, NULL) + u % each;
}

/* One update of each place, the next that is not done yet. *more: some are left. */
static enum lk_status fill_round(const draft *d, const struct table *t, const value *updates,
                                 target *target, bool *done, struct scatter *s, bool is_last,
                                 bool *more)
{
    const int64_t count = lk_whole_count(updates->rank, updates->dim);
    *more = false;
    for (int64_t p = 0; p < s->places; p++)
        s->which[p] = -1;
    for (int64_t u = 0; u < count; u++) {
        const int64_t place = target(t, updates, u);
        if (place < 0 || place >= s->places)
            return lk_onnx_fail(d, "an update behind the end");
        if (done[u])
            continue;
        if (is_last || s->which[place] < 0) {
            s->which[place] = u;
            done[u] = true;
        } else {
            *more = true;
        }
    }
    return LK_OK;
}

/* What is left where no update goes: 0, 1 or what changes nothing. */
static const struct {
    const char *name, *function;
    double neutral;
} reductions[] = {{"none", NULL, 0},
                  {"add", "sum", 0},
                  {"mul", "product", 1},
                  {"max", "larger", -3.5e38},
                  {"min", "smaller", 3.5e38}};

static enum lk_status scatter_rounds(draft *d, const struct table *t, target *target, value *x,
                                     const value *updates, bool *done, struct scatter *s)
{
    enum { MOST_ROUNDS = 64 };
    const char *name;
    int r = 0;
    bool more = true;
    value made;
    LK_TRY(lk_onnx_say_text(d, "reduction", "none", &name));
    while (r < LK_COUNT(reductions) && strcmp(reductions[r].name, name) != 0)
        r++;
    if (r == LK_COUNT(reductions))
        return lk_onnx_fail(d, "'reduction' is %.40s", name);
    s->joins = r == 0;
    for (int round = 0; more; round++) {
        if (round == MOST_ROUNDS)
            return lk_onnx_fail(d, "more than %d updates of one place", MOST_ROUNDS);
        LK_TRY(fill_round(d, t, updates, target, done, s, r == 0, &more));
        if (r == 0) {
            const value both[] = {*x, *updates};
            LK_TRY(lk_whole_join(d, both, 2, &made));
            return lk_whole_move(d, &made, s->rank, s->dim, scatter_place, s, 0, x);
        }
        LK_TRY(lk_whole_move(d, updates, s->rank, s->dim, scatter_place, s,
                             reductions[r].neutral, &made));
        LK_TRY(lk_whole_two(d, reductions[r].function, x, &made, x));
    }
    return LK_OK;
}

static enum lk_status scatter(draft *d, const struct table *t, target *target, value *x)
{
    value updates;
    void *which, *done;
    const value data = *x;
    struct scatter s = {
        .places = lk_whole_count(x->rank, x->dim), .rank = data.rank, .dim = data.dim};
    LK_TRY(lk_whole_input(d, 2, &updates));
    const int64_t count = lk_whole_count(updates.rank, updates.dim);
    LK_TRY(lk_arena_allocate(&d->arena, (size_t)s.places * sizeof *s.which, &which));
    LK_TRY(lk_arena_allocate(&d->arena, (size_t)count + 1, &done));
    s.which = which;
    const enum lk_onnx_type type = data.type;
    LK_TRY(scatter_rounds(d, t, target, x, &updates, done, &s));
    x->type = type;
    return lk_onnx_give(d, 0, x);
}

static enum lk_status scatter_elements(draft *d)
{
    value x, updates;
    struct table t = {0};
    LK_TRY(lk_whole_input(d, 0, &x));
    LK_TRY(open_elements(d, &x, &t));
    LK_TRY(lk_whole_input(d, 2, &updates));
    if (updates.rank != t.index->rank ||
        memcmp(updates.dim, t.index->dim, (size_t)updates.rank * sizeof *updates.dim) != 0)
        return lk_onnx_fail(d, "updates of another shape than their indices");
    return scatter(d, &t, element_target, &x);
}

static enum lk_status scatter_nd(draft *d)
{
    value x, updates;
    struct table t = {0};
    LK_TRY(lk_whole_input(d, 0, &x));
    LK_TRY(open_table(d, &x, 1, &t));
    LK_TRY(check_tuples(d, &t));
    LK_TRY(lk_whole_input(d, 2, &updates));
    const int heads = t.index->rank - 1, tuple = (int)t.index->dim[heads];
    bool fits = updates.rank == heads + t.rank - tuple;
    for (int i = 0; fits && i < updates.rank; i++)
        fits = updates.dim[i] == (i < heads ? t.index->dim[i] : t.dim[tuple + i - heads]);
    if (!fits)
        return lk_onnx_fail(d, "updates of another shape than their indices");
    return scatter(d, &t, tuple_target, &x);
}

/* --- others ------------------------------------------------------------------------------ */

/* Elements along an axis, or of all in a row, for which the condition holds. */
static enum lk_status compress(draft *d)
{
    value x;
    struct table t = {0};
    const struct lk_onnx_tensor *condition;
    struct lk_onnx_tensor *index;
    int64_t said, kept = 0, all, dim[LK_ONNX_AXES];
    LK_TRY(lk_whole_input(d, 0, &x));
    LK_TRY(lk_onnx_constant(d, 1, &condition));
    LK_TRY(lk_onnx_say_integer(d, "axis", 0, &said));
    if (!condition || condition->rank != 1)
        return lk_onnx_fail(d, "a list of truths is expected");
    all = lk_whole_count(x.rank, x.dim);
    if (!lk_onnx_find_attribute(d->node, "axis"))
        LK_TRY(lk_whole_reshape(d, &x, 1, &all));
    LK_TRY(lk_onnx_axis(d, said, x.rank, &t.axis));
    for (int64_t i = 0; i < condition->count; i++)
        kept += lk_onnx_integer(condition, i) != 0;
    LK_TRY(lk_onnx_new_tensor(d, LK_ONNX_INT64, 1, &kept, &index));
    kept = 0;
    for (int64_t i = 0; i < condition->count; i++)
        if (lk_onnx_integer(condition, i) != 0)
            lk_onnx_put_integer(index, kept++, i);
    t.index = index;
    t.rank = x.rank;
    memcpy(t.dim, x.dim, sizeof t.dim);
    lk_whole_strides(x.rank, x.dim, t.stride);
    LK_TRY(check_indices(d, &t, x.dim[t.axis]));
    memcpy(dim, x.dim, sizeof dim);
    dim[t.axis] = kept;
    LK_TRY(lk_whole_move(d, &x, x.rank, dim, gather_place, &t, 0, &x));
    return lk_onnx_give(d, 0, &x);
}

/* The first steps of each sequence backwards. */
struct reversed {
    const struct lk_onnx_tensor *lengths;
    int rank, batch, time;
    int64_t stride[LK_ONNX_AXES];
};

static int64_t reversed_place(const void *how, const int64_t *at)
{
    const struct reversed *r = how;
    const int64_t length = lk_onnx_integer(r->lengths, at[r->batch]);
    int64_t place = 0;
    for (int i = 0; i < r->rank; i++)
        place += (i == r->time && at[i] < length ? length - 1 - at[i] : at[i]) * r->stride[i];
    return place;
}

static enum lk_status reverse_sequence(draft *d)
{
    value x;
    struct reversed r = {0};
    int64_t batch, time;
    LK_TRY(lk_whole_input(d, 0, &x));
    LK_TRY(lk_onnx_constant(d, 1, &r.lengths));
    LK_TRY(lk_onnx_say_integer(d, "batch_axis", 1, &batch));
    LK_TRY(lk_onnx_say_integer(d, "time_axis", 0, &time));
    LK_TRY(lk_onnx_axis(d, batch, x.rank, &r.batch));
    LK_TRY(lk_onnx_axis(d, time, x.rank, &r.time));
    r.rank = x.rank;
    lk_whole_strides(x.rank, x.dim, r.stride);
    if (!r.lengths || r.lengths->count != x.dim[r.batch] || r.batch == r.time)
        return lk_onnx_fail(d, "a length of each sequence is expected");
    for (int64_t i = 0; i < r.lengths->count; i++)
        if (lk_onnx_integer(r.lengths, i) < 0 || lk_onnx_integer(r.lengths, i) > x.dim[r.time])
            return lk_onnx_fail(d, "a length that is longer than the axis");
    LK_TRY(lk_whole_move(d, &x, x.rank, x.dim, reversed_place, &r, 0, &x));
    return lk_onnx_give(d, 0, &x);
}

const struct lk_onnx_operator lk_array_gathers[] = {
    {"Gather", gather, LK_ONNX_KNOWS("axis")},
    {"GatherElements", gather_elements, LK_ONNX_KNOWS("axis")},
    {"GatherND", gather_nd, LK_ONNX_KNOWS("batch_dims")},
    {"Scatter", scatter_elements, LK_ONNX_KNOWS("axis")},
    {"ScatterElements", scatter_elements, LK_ONNX_KNOWS("axis", "reduction")},
    {"ScatterND", scatter_nd, LK_ONNX_KNOWS("reduction")},
    {"Compress", compress, LK_ONNX_KNOWS("axis")},
    {"ReverseSequence", reverse_sequence, LK_ONNX_KNOWS("batch_axis", "time_axis")},
    {0},
};

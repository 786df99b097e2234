/* ONNX's operators that move elements of whole arrays to places that follow from shapes. */
#include "model/onnx_arrays/whole.h"

#include "base/fail.h"
#include "model/onnx_arrays/tables.h"
#include <string.h>

/* --- shapes ------------------------------------------------------------------------------ */

static enum lk_status reshape(draft *d)
{
    value x;
    int64_t dim[LK_ONNX_AXES] = {0}, zeros, rest = 1;
    int rank, open = -1;
    LK_TRY(lk_whole_input(d, 0, &x));
    LK_TRY(lk_onnx_numbers(d, "shape", 1, LK_ONNX_AXES, dim, &rank));
    LK_TRY(lk_onnx_say_integer(d, "allowzero", 0, &zeros));
    for (int i = 0; i < rank; i++) {
        if (dim[i] == 0 && i < x.rank && !zeros)
            dim[i] = x.dim[i];
        if (dim[i] == -1 && open < 0)
            open = i;
        else if (dim[i] < 1 || rest > (1 << 24) / dim[i])
            return lk_onnx_fail(d, "a shape that its input cannot have");
        else
            rest *= dim[i];
    }
    if (open >= 0)
        dim[open] = lk_whole_count(x.rank, x.dim) / rest;
    LK_TRY(lk_whole_reshape(d, &x, rank, dim));
    return lk_onnx_give(d, 0, &x);
}

static enum lk_status flatten(draft *d)
{
    value x;
    int64_t said, dim[2] = {1, 1};
    LK_TRY(lk_whole_input(d, 0, &x));
    LK_TRY(lk_onnx_say_integer(d, "axis", 1, &said));
    const int64_t axis = said < 0 ? said + x.rank : said;
    if (axis < 0 || axis > x.rank)
        return lk_onnx_fail(d, "axis %lld of %d", (long long)said, x.rank);
    for (int i = 0; i < x.rank; i++)
        dim[i >= axis] *= x.dim[i];
    LK_TRY(lk_whole_reshape(d, &x, 2, dim));
    return lk_onnx_give(d, 0, &x);
}

static enum lk_status squeeze(draft *d)
{
    value x;
    unsigned axes;
    bool found;
    LK_TRY(lk_whole_input(d, 0, &x));
    LK_TRY(lk_whole_axes(d, "axes", 1, x.rank, &axes, &found));
    for (int i = 0; i < x.rank; i++) {
        if (!found && x.dim[i] == 1)
            axes |= 1u << i;
        else if (axes >> i & 1 && x.dim[i] != 1)
            return lk_onnx_fail(d, "axis %d has length %lld", i, (long long)x.dim[i]);
    }
    lk_whole_drop_axes(&x, axes);
    return lk_onnx_give(d, 0, &x);
}

static enum lk_status unsqueeze(draft *d)
{
    value x;
    int64_t said[LK_ONNX_AXES], dim[LK_ONNX_AXES];
    int count, axis, from = 0;
    unsigned added = 0;
    LK_TRY(lk_whole_input(d, 0, &x));
    LK_TRY(lk_onnx_numbers(d, "axes", 1, LK_ONNX_AXES, said, &count));
    const int rank = x.rank + count;
    if (rank > LK_ONNX_AXES)
        return lk_onnx_fail(d, "more than %d axes", LK_ONNX_AXES);
    for (int i = 0; i < count; i++) {
        LK_TRY(lk_onnx_axis(d, said[i], rank, &axis));
        if (added >> axis & 1)
            return lk_onnx_fail(d, "axis %d twice", axis);
        added |= 1u << axis;
    }
    for (int i = 0; i < rank; i++)
        dim[i] = added >> i & 1 ? 1 : x.dim[from++];
    LK_TRY(lk_whole_reshape(d, &x, rank, dim));
    return lk_onnx_give(d, 0, &x);
}

static enum lk_status pass_on(draft *d)
{
    value x;
    LK_TRY(lk_whole_input(d, 0, &x));
    return lk_onnx_give(d, 0, &x);
}

/* Outside training nothing is dropped; the mask is all true. */
static enum lk_status dropout(draft *d)
{
    value x, mask;
    const struct lk_onnx_tensor *trains, *ratio;
    int64_t says_training;
    LK_TRY(lk_whole_input(d, 0, &x));
    LK_TRY(lk_onnx_constant(d, 1, &ratio));
    LK_TRY(lk_onnx_constant(d, 2, &trains));
    LK_TRY(lk_onnx_say_integer(d, "is_test", 1, &says_training));
    const double rate = ratio && ratio->count == 1 ? lk_onnx_real(ratio, 0) : 0.5;
    if ((trains && trains->count == 1 && lk_onnx_real(trains, 0) != 0 && rate != 0) ||
        (d->file->operators < 7 && !says_training))
        return lk_onnx_fail(d, "dropping at random, in training mode, is not supported");
    LK_TRY(lk_onnx_give(d, 0, &x));
    if (d->node->output_count < 2 || !*d->node->outputs[1])
        return LK_OK;
    LK_TRY(lk_whole_number(d, 1, &mask));
    LK_TRY(lk_whole_expand(d, &mask, x.rank, x.dim, &mask));
    mask.type = LK_ONNX_BOOL;
    return lk_onnx_give(d, 1, &mask);
}

/* --- orders ------------------------------------------------------------------------------ */

static enum lk_status transpose(draft *d)
{
    value x;
    int64_t said[LK_ONNX_AXES];
    int order[LK_ONNX_AXES];
    unsigned seen = 0;
    LK_TRY(lk_whole_input(d, 0, &x));
    const bool is_said = lk_onnx_find_attribute(d->node, "perm") != NULL;
    LK_TRY(lk_onnx_say_list(d, "perm", x.rank, 0, said));
    for (int i = 0; i < x.rank; i++) {
        LK_TRY(lk_onnx_axis(d, is_said ? said[i] : x.rank - 1 - i, x.rank, &order[i]));
        seen |= 1u << order[i];
    }
    if (seen != (1u << x.rank) - 1)
        return lk_onnx_fail(d, "'perm' is no order of %d axes", x.rank);
    LK_TRY(lk_whole_order(d, &x, order, &x));
    return lk_onnx_give(d, 0, &x);
}

/* [n, c, h, w] with blocks of pixels as channels, to and fro. */
static enum lk_status move_blocks(draft *d)
{
    const bool to_space = strcmp(d->node->op, "DepthToSpace") == 0;
    static const int wide[] = {0, 3, 4, 1, 5, 2}, narrow[] = {0, 1, 4, 2, 5, 3},
                     deep[] = {0, 3, 5, 1, 2, 4};
    value x;
    int64_t b;
    const char *mode;
    LK_TRY(lk_whole_input(d, 0, &x));
    LK_TRY(lk_onnx_say_integer(d, "blocksize", 0, &b));
    LK_TRY(lk_onnx_say_text(d, "mode", "DCR", &mode));
    const int64_t *s = x.dim;
    if (x.rank != 4 || b < 1 || b > 4096 ||
        (to_space ? s[1] % (b * b) != 0 : s[2] % b != 0 || s[3] % b != 0))
        return lk_onnx_fail(d, "images whose lengths blocks of %lld divide are expected",
                            (long long)b);
    const int64_t n = s[0], c = to_space ? s[1] / (b * b) : s[1],
                  h = to_space ? s[2] : s[2] / b, w = to_space ? s[3] : s[3] / b;
    const bool is_crd = strcmp(mode, "CRD") == 0;
    static const int deep_crd[] = {0, 1, 3, 5, 2, 4};
    if (to_space) {
        const int64_t first[] = {n, is_crd ? c : b, b, is_crd ? b : c, h, w};
        LK_TRY(lk_whole_reshape(d, &x, 6, first));
        LK_TRY(lk_whole_order(d, &x, is_crd ? narrow : wide, &x));
        LK_TRY(lk_whole_reshape(d, &x, 4, (const int64_t[]){n, c, h * b, w * b}));
    } else {
        LK_TRY(lk_whole_reshape(d, &x, 6, (const int64_t[]){n, c, h, b, w, b}));
        LK_TRY(lk_whole_order(d, &x, is_crd ? deep_crd : deep, &x));
        LK_TRY(lk_whole_reshape(d, &x, 4, (const int64_t[]){n, c * b * b, h, w}));
    }
    return lk_onnx_give(d, 0, &x);
}

/* --- parts ------------------------------------------------------------------------------- */

/* Every step-th element of each axis from `first` on. */
struct cut {
    int rank;
    int64_t first[LK_ONNX_AXES], step[LK_ONNX_AXES], stride[LK_ONNX_AXES];
};

static int64_t cut_place(const void *how, const int64_t *at)
{
    const struct cut *c = how;
    int64_t place = 0;
    for (int i = 0; i < c->rank; i++)
        place += (c->first[i] + at[i] * c->step[i]) * c->stride[i];
    return place;
}

static void open_cut(const value *x, struct cut *c)
{
    *c = (struct cut){.rank = x->rank};
    lk_whole_strides(x->rank, x->dim, c->stride);
    for (int i = 0; i < x->rank; i++)
        c->step[i] = 1;
}

static int64_t within(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

/* Some elements of x become output `index`, perhaps none. */
static enum lk_status give_cut(draft *d, const value *x, const int64_t *dim,
                               const struct cut *cut, int index)
{
    struct lk_onnx_tensor *none;
    value made;
    for (int i = 0; i < x->rank; i++)
        if (dim[i] == 0) {
            LK_TRY(lk_onnx_new_tensor(d, x->type, x->rank, dim, &none));
            return lk_onnx_give(d, index, &(value){.constant = none});
        }
    LK_TRY(lk_whole_move(d, x, x->rank, dim, cut_place, cut, 0, &made));
    return lk_onnx_give(d, index, &made);
}

/* As Python cuts lists. */
static enum lk_status slice(draft *d)
{
    value x;
    struct cut c;
    int64_t said[4][LK_ONNX_AXES], dim[LK_ONNX_AXES];
    static const char *const names[] = {"starts", "ends", "axes", "steps"};
    int count[4], axis;
    LK_TRY(lk_whole_input(d, 0, &x));
    for (int i = 0; i < 4; i++)
        LK_TRY(lk_onnx_numbers(d, names[i], 1 + i, LK_ONNX_AXES, said[i], &count[i]));
    if (count[1] != count[0] || (count[2] && count[2] != count[0]) ||
        (count[3] && count[3] != count[0]))
        return lk_onnx_fail(d, "lists of different lengths");
    open_cut(&x, &c);
    memcpy(dim, x.dim, sizeof dim);
    for (int i = 0; i < count[0]; i++) {
        LK_TRY(lk_onnx_axis(d, count[2] ? said[2][i] : i, x.rank, &axis));
        const int64_t length = x.dim[axis], step = count[3] ? said[3][i] : 1;
        if (step == 0 || step > INT32_MAX || step < -INT32_MAX)
            return lk_onnx_fail(d, "steps of %lld", (long long)step);
        const int64_t low = step < 0 ? -1 : 0, high = step < 0 ? length - 1 : length;
        int64_t start = said[0][i] < 0 ? said[0][i] + length : said[0][i];
        int64_t end = said[1][i] < 0 ? said[1][i] + length : said[1][i];
        start = within(start, step < 0 ? low : 0, high);
        end = within(end, low, high);
        const int64_t room = step < 0 ? start - end : end - start;
        const int64_t each = step < 0 ? -step : step;
        c.first[axis] = start;
        c.step[axis] = step;
        dim[axis] = room > 0 ? (room + each - 1) / each : 0;
    }
    return give_cut(d, &x, dim, &c, 0);
}

static enum lk_status split(draft *d)
{
    enum { MOST = 64 };
    value x;
    int64_t said, lengths[MOST], dim[LK_ONNX_AXES], first = 0;
    int axis, count;
    const int parts = d->node->output_count;
    LK_TRY(lk_whole_input(d, 0, &x));
    LK_TRY(lk_onnx_say_integer(d, "axis", 0, &said));
    LK_TRY(lk_onnx_axis(d, said, x.rank, &axis));
    LK_TRY(lk_onnx_numbers(d, "split", 1, MOST, lengths, &count));
    if (parts < 1 || parts > MOST || (count && count != parts))
        return lk_onnx_fail(d, "%d parts, but %d lengths", parts, count);
    const int64_t each = (x.dim[axis] + parts - 1) / parts;
    for (int i = 0; i < parts; i++) {
        struct cut c;
        const int64_t rest = x.dim[axis] - first;
        const int64_t length = count ? lengths[i] : each < rest ? each : rest;
        if (length < 0 || length > rest)
            return lk_onnx_fail(d, "parts that are longer than the axis");
        open_cut(&x, &c);
        c.first[axis] = first;
        memcpy(dim, x.dim, sizeof dim);
        dim[axis] = length;
        first += length;
        LK_TRY(give_cut(d, &x, dim, &c, i));
    }
    return LK_OK;
}

/* The lower or upper triangle, zeros elsewhere. */
struct triangle {
    int rank;
    int64_t stride[LK_ONNX_AXES], diagonal;
    bool is_upper;
};

static int64_t triangle_place(const void *how, const int64_t *at)
{
    const struct triangle *t = how;
    const int64_t apart = at[t->rank - 1] - at[t->rank - 2] - t->diagonal;
    int64_t place = 0;
    for (int i = 0; i < t->rank; i++)
        place += at[i] * t->stride[i];
    return (t->is_upper ? apart >= 0 : apart <= 0) ? place : -1;
}

static enum lk_status triangle(draft *d)
{
    value x;
    int64_t upper;
    const struct lk_onnx_tensor *diagonal;
    LK_TRY(lk_whole_input(d, 0, &x));
    LK_TRY(lk_onnx_constant(d, 1, &diagonal));
    LK_TRY(lk_onnx_say_integer(d, "upper", 1, &upper));
    if (x.rank < 2)
        return lk_onnx_fail(d, "matrices are expected");
    struct triangle t = {.rank = x.rank, .is_upper = upper != 0};
    t.diagonal = diagonal && diagonal->count == 1
                     ? within(lk_onnx_integer(diagonal, 0), INT32_MIN, INT32_MAX)
                     : 0;
    lk_whole_strides(x.rank, x.dim, t.stride);
    LK_TRY(lk_whole_move(d, &x, x.rank, x.dim, triangle_place, &t, 0, &x));
    return lk_onnx_give(d, 0, &x);
}

/* --- joins and repetitions --------------------------------------------------------------- */

/* Parts one behind the other in memory, of lengths along an axis. */
struct parts {
    int rank, axis, count;
    const value *part;
};

static int64_t part_place(const void *how, const int64_t *at)
{
    const struct parts *p = how;
    int64_t place = 0, before = 0, along = at[p->axis];
    int part = 0;
    while (along >= p->part[part].dim[p->axis]) {
        along -= p->part[part].dim[p->axis];
        before += lk_whole_count(p->rank, p->part[part++].dim);
    }
    for (int i = 0; i < p->rank; i++)
        place = place * p->part[part].dim[i] + (i == p->axis ? along : at[i]);
    return before + place;
}

static enum lk_status concat(draft *d)
{
    enum { MOST = 256 };
    value x[MOST], joined;
    int64_t said, dim[LK_ONNX_AXES] = {0};
    int axis = 0, count = 0;
    LK_TRY(lk_onnx_say_integer(d, "axis", 1, &said));
    for (int i = 0; i < d->node->input_count; i++) {
        const value *part = lk_onnx_input(d, i);
        if (part && part->constant && part->constant->count == 0)
            continue;
        if (count == MOST)
            return lk_onnx_fail(d, "more than %d inputs", MOST);
        LK_TRY(lk_whole_input(d, i, &x[count]));
        if (count == 0) {
            LK_TRY(lk_onnx_axis(d, said, x[0].rank, &axis));
            memcpy(dim, x[0].dim, sizeof dim);
            dim[axis] = 0;
        }
        for (int a = 0; a < x[0].rank; a++)
            if (x[count].rank != x[0].rank || (a != axis && x[count].dim[a] != dim[a]))
                return lk_onnx_fail(d, "its inputs have different shapes");
        dim[axis] += x[count++].dim[axis];
    }
    if (count == 0)
        return lk_onnx_fail(d, "it joins nothing");
    const struct parts p = {x[0].rank, axis, count, x};
    LK_TRY(lk_whole_join(d, x, count, &joined));
    LK_TRY(lk_whole_move(d, &joined, p.rank, dim, part_place, &p, 0, &joined));
    return lk_onnx_give(d, 0, &joined);
}

static enum lk_status expand(draft *d)
{
    value x;
    int64_t dim[LK_ONNX_AXES], said[LK_ONNX_AXES];
    int count;
    LK_TRY(lk_whole_input(d, 0, &x));
    LK_TRY(lk_onnx_numbers(d, "shape", 1, LK_ONNX_AXES, said, &count));
    const int rank = count > x.rank ? count : x.rank;
    for (int i = 0; i < rank; i++) {
        const int own = i - (rank - x.rank), asked = i - (rank - count);
        const int64_t length = own < 0 ? 1 : x.dim[own], wanted = asked < 0 ? 1 : said[asked];
        dim[i] = wanted == 1 ? length : wanted;
    }
    LK_TRY(lk_whole_expand(d, &x, rank, dim, &x));
    return lk_onnx_give(d, 0, &x);
}

/* Again and again along each axis. */
static int64_t tile_place(const void *how, const int64_t *at)
{
    const value *x = how;
    int64_t place = 0;
    for (int i = 0; i < x->rank; i++)
        place = place * x->dim[i] + at[i] % x->dim[i];
    return place;
}

static enum lk_status tile(draft *d)
{
    value x, made;
    int64_t times[LK_ONNX_AXES], dim[LK_ONNX_AXES];
    int count;
    LK_TRY(lk_whole_input(d, 0, &x));
    LK_TRY(lk_onnx_numbers(d, "repeats", 1, LK_ONNX_AXES, times, &count));
    if (count != x.rank)
        return lk_onnx_fail(d, "%d repetitions for %d axes", count, x.rank);
    for (int i = 0; i < count; i++) {
        if (times[i] < 0 || times[i] > 1 << 24)
            return lk_onnx_fail(d, "%lld repetitions", (long long)times[i]);
        dim[i] = x.dim[i] * times[i];
    }
    LK_TRY(lk_whole_move(d, &x, x.rank, dim, tile_place, &x, 0, &made));
    return lk_onnx_give(d, 0, &made);
}

/* --- padding ----------------------------------------------------------------------------- */

enum { CONSTANT, EDGE, REFLECT, WRAP };

struct padding {
    const value *x;
    int64_t before[LK_ONNX_AXES];
    int mode;
};

static int64_t pad_place(const void *how, const int64_t *at)
{
    const struct padding *p = how;
    int64_t place = 0;
    for (int i = 0; i < p->x->rank; i++) {
        const int64_t length = p->x->dim[i];
        int64_t j = at[i] - p->before[i];
        if (p->mode == CONSTANT && (j < 0 || j >= length))
            return -1;
        if (p->mode == EDGE)
            j = within(j, 0, length - 1);
        if (p->mode == WRAP)
            j = (j % length + length) % length;
        if (p->mode == REFLECT) {
            const int64_t period = length > 1 ? 2 * (length - 1) : 1;
            j = (j % period + period) % period;
            j = j < length ? j : period - j;
        }
        place = place * length + j;
    }
    return place;
}

/* Lengths before and behind each axis, by those of the axes that are named. */
static enum lk_status read_pads(draft *d, const value *x, struct padding *p, int64_t *dim)
{
    int64_t pads[2 * LK_ONNX_AXES], axes[LK_ONNX_AXES];
    int count, named, axis;
    LK_TRY(lk_onnx_numbers(d, lk_onnx_find_attribute(d->node, "paddings") ? "paddings" : "pads",
                           1, 2 * LK_ONNX_AXES, pads, &count));
    LK_TRY(lk_onnx_numbers(d, "axes", 3, LK_ONNX_AXES, axes, &named));
    if (!named)
        for (named = 0; named < x->rank; named++)
            axes[named] = named;
    if (count != 2 * named)
        return lk_onnx_fail(d, "%d lengths of padding for %d axes", count, named);
    memcpy(dim, x->dim, sizeof x->dim);
    for (int i = 0; i < named; i++) {
        LK_TRY(lk_onnx_axis(d, axes[i], x->rank, &axis));
        const int64_t before = pads[i], behind = pads[named + i];
        if (before < -(1 << 24) || before > 1 << 24 || behind < -(1 << 24) || behind > 1 << 24)
            return lk_onnx_fail(d, "%lld elements of padding", (long long)before);
        p->before[axis] = before;
        dim[axis] = x->dim[axis] + before + behind;
    }
    return LK_OK;
}

static enum lk_status pad(draft *d)
{
    static const char *const modes[] = {"constant", "edge", "reflect", "wrap"};
    value x, made;
    struct padding p = {.mode = -1};
    int64_t dim[LK_ONNX_AXES];
    const struct lk_onnx_tensor *number;
    const char *mode;
    LK_TRY(lk_whole_input(d, 0, &x));
    LK_TRY(lk_onnx_say_text(d, "mode", "constant", &mode));
    LK_TRY(lk_onnx_constant(d, 2, &number));
    for (int i = 0; i < LK_COUNT(modes); i++)
        p.mode = strcmp(modes[i], mode) == 0 ? i : p.mode;
    if (p.mode < 0 || (number && number->count != 1))
        return lk_onnx_fail(d, "'mode' %.40s, or a padding of several numbers", mode);
    LK_TRY(read_pads(d, &x, &p, dim));
    p.x = &x;
    LK_TRY(lk_whole_move(d, &x, x.rank, dim, pad_place, &p,
                         number ? lk_onnx_real(number, 0) : lk_whole_say(d, "value", 0),
                         &made));
    return lk_onnx_give(d, 0, &made);
}

const struct lk_onnx_operator lk_array_moves[] = {
    {"Reshape", reshape, LK_ONNX_KNOWS("shape", "allowzero", "consumed_inputs")},
    {"Flatten", flatten, LK_ONNX_KNOWS("axis")},
    {"Squeeze", squeeze, LK_ONNX_KNOWS("axes")},
    {"Unsqueeze", unsqueeze, LK_ONNX_KNOWS("axes")},
    {"Identity", pass_on, LK_ONNX_KNOWS(NULL)},
    {"Dropout", dropout, LK_ONNX_KNOWS("ratio", "seed", "is_test", "consumed_inputs")},
    {"Transpose", transpose, LK_ONNX_KNOWS("perm")},
    {"DepthToSpace", move_blocks, LK_ONNX_KNOWS("blocksize", "mode")},
    {"SpaceToDepth", move_blocks, LK_ONNX_KNOWS("blocksize", "mode")},
    {"Slice", slice, LK_ONNX_KNOWS("starts", "ends", "axes")},
    {"Split", split, LK_ONNX_KNOWS("axis", "split", "num_outputs")},
    {"Trilu", triangle, LK_ONNX_KNOWS("upper")},
    {"Concat", concat, LK_ONNX_KNOWS("axis")},
    {"Expand", expand, LK_ONNX_KNOWS(NULL)},
    {"Tile", tile, LK_ONNX_KNOWS(NULL)},
    {"Pad", pad, LK_ONNX_KNOWS("mode", "pads", "paddings", "value")},
    {0},
};

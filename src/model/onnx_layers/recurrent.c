/* ONNX's LSTM, GRU and RNN, of whole arrays: written out step by step.
 * source: onnx.ai/onnx/operators/onnx__LSTM.html, onnx__GRU.html, onnx__RNN.html */
#include "model/onnx_arrays/whole.h"

#include "base/fail.h"
#include "model/onnx_arrays/tables.h"
#include <string.h>

enum { MOST_GATES = 4, MOST_STEPS = 256 };
enum kind { RNN, GRU, LSTM };

/* A layer in one direction. */
struct layer {
    enum kind kind;
    int gates;
    int64_t steps, batch, inputs, units;
    bool is_back, resets_behind; /* linear_before_reset */
    bool is_relu;                /* an RNN's function, in place of tanh */
    value x;                     /* [steps, batch, inputs] */
    value w, r, b[2], p[3];      /* weights turned: [inputs, gates units] */
    bool has_bias, has_peep;
    value h, c;
    const struct lk_onnx_tensor *lengths; /* NULL: all steps count */
    bool is_masked, keeps_output; /* a mask says which steps count; others repeat outputs */
    value mask;                   /* [steps, batch, 1], as numbers */
};

/* --- parts ------------------------------------------------------------------------------- */

struct part {
    int64_t begin, stride[3];
};

static int64_t part_place(const void *how, const int64_t *at)
{
    const struct part *p = how;
    return p->begin + at[0] * p->stride[0] + at[1] * p->stride[1];
}

/* Rows `count` from `first` on of a matrix [rows, columns], or columns. */
static enum lk_status take_rows(draft *d, const value *x, int64_t begin, int64_t rows,
                                int64_t columns, int64_t step, value *made)
{
    const struct part p = {begin, {step, 1, 0}};
    return lk_whole_move(d, x, 2, (const int64_t[]){rows, columns}, part_place, &p, 0, made);
}

static enum lk_status gate_of(draft *d, const struct layer *l, const value *gates, int gate,
                              value *made)
{
    const int64_t row = gates->dim[1];
    return take_rows(d, gates, gate * l->units, l->batch, l->units, row, made);
}

/* Direction `way` of an input [directions, a, b] as a matrix [b, a]. */
static enum lk_status turn_weights(draft *d, int index, int way, value *made)
{
    value all;
    LK_TRY(lk_whole_input(d, index, &all));
    if (all.rank != 3 || way >= all.dim[0])
        return lk_onnx_fail(d, "weights of three axes are expected");
    const int64_t a = all.dim[1], b = all.dim[2];
    const struct part p = {way * a * b, {1, b, 0}};
    return lk_whole_move(d, &all, 2, (const int64_t[]){b, a}, part_place, &p, 0, made);
}

/* A row of `count` numbers of input [directions, ...] as [1, count]. */
static enum lk_status take_vector(draft *d, int index, int way, int64_t first, int64_t count,
                                  value *made)
{
    value all;
    LK_TRY(lk_whole_input(d, index, &all));
    if (all.rank != 2 || way >= all.dim[0] || first + count > all.dim[1])
        return lk_onnx_fail(d, "its input %d has another shape than is expected", index);
    return take_rows(d, &all, way * all.dim[1] + first, 1, count, count, made);
}

/* The state before the first step: [batch, units], zeros where none is given. */
static enum lk_status first_state(draft *d, const struct layer *l, int index, int way,
                                  bool is_batch_first, value *made)
{
    value all;
    if (!lk_whole_has(d, index)) {
        LK_TRY(lk_whole_number(d, 0, made));
        return lk_whole_expand(d, made, 2, (const int64_t[]){l->batch, l->units}, made);
    }
    LK_TRY(lk_whole_input(d, index, &all));
    const int batch = is_batch_first ? 0 : 1;
    if (all.rank != 3 || all.dim[2] != l->units || all.dim[batch] != l->batch ||
        way >= all.dim[1 - batch])
        return lk_onnx_fail(d, "a first state of another shape");
    const struct part p = {is_batch_first ? way * l->units : way * l->batch * l->units,
                           {is_batch_first ? all.dim[1] * l->units : l->units, 1, 0}};
    return lk_whole_move(d, &all, 2, (const int64_t[]){l->batch, l->units}, part_place, &p, 0,
                         made);
}

/* --- functions --------------------------------------------------------------------------- */

static enum lk_status activate(draft *d, const char *function, value *x)
{
    return lk_whole_apply(d, function, "", x, x);
}

/* Functions are the standard ones, in turn, if the node names them; of an RNN also relu. */
static enum lk_status check_functions(draft *d, struct layer *l, int ways)
{
    static const char *const standard[][3] = {
        [RNN] = {"Tanh"}, [GRU] = {"Sigmoid", "Tanh"}, [LSTM] = {"Sigmoid", "Tanh", "Tanh"}};
    static const int count[] = {[RNN] = 1, [GRU] = 2, [LSTM] = 3};
    const struct lk_onnx_attribute *said = lk_onnx_find_attribute(d->node, "activations");
    int64_t couples;
    LK_TRY(lk_onnx_say_integer(d, "input_forget", 0, &couples));
    if (couples || lk_onnx_find_attribute(d->node, "activation_alpha") ||
        lk_onnx_find_attribute(d->node, "activation_beta") ||
        lk_onnx_find_attribute(d->node, "clip") ||
        (said && (!said->texts || said->count != ways * count[l->kind])))
        return lk_onnx_fail(d, "other functions than the standard ones, or 'clip', are not "
                               "supported");
    l->is_relu = said && l->kind == RNN && strcmp(said->texts[0], "Relu") == 0;
    for (int i = 0; said && i < said->count; i++)
        if (strcmp(said->texts[i],
                   l->is_relu ? "Relu" : standard[l->kind][i % count[l->kind]]) != 0)
            return lk_onnx_fail(d, "its function '%.40s' is not supported", said->texts[i]);
    return LK_OK;
}

/* x W + b of all gates at one step, plus h R where `with_state`. */
static enum lk_status affine(draft *d, const value *x, const value *w, const value *bias,
                             value *made)
{
    LK_TRY(lk_whole_matmul(d, x, w, made));
    return bias ? lk_whole_two(d, "sum", made, bias, made) : LK_OK;
}

/* --- steps ------------------------------------------------------------------------------- */

static enum lk_status step_rnn(draft *d, struct layer *l, const value *from_x,
                               const value *from_h, value *h)
{
    LK_TRY(lk_whole_two(d, "sum", from_x, from_h, h));
    return activate(d, l->is_relu ? "relu" : "tanh", h);
}

/* Gates update, reset, candidate. */
static enum lk_status step_gru(draft *d, struct layer *l, const value *from_x,
                               const value *from_h, value *h)
{
    value g[2], a, b, inverse;
    for (int i = 0; i < 2; i++) {
        LK_TRY(gate_of(d, l, from_x, i, &a));
        LK_TRY(gate_of(d, l, from_h, i, &b));
        LK_TRY(lk_whole_two(d, "sum", &a, &b, &g[i]));
        LK_TRY(activate(d, "sigmoid", &g[i]));
    }
    LK_TRY(gate_of(d, l, from_x, 2, &a));
    if (l->resets_behind) {
        LK_TRY(gate_of(d, l, from_h, 2, &b));
        LK_TRY(lk_whole_two(d, "product", &g[1], &b, &b));
    } else {
        value weights, bias;
        LK_TRY(lk_whole_two(d, "product", &g[1], &l->h, &b));
        LK_TRY(take_rows(d, &l->r, 2 * l->units, l->units, l->units, 3 * l->units, &weights));
        if (l->has_bias)
            LK_TRY(take_rows(d, &l->b[1], 2 * l->units, 1, l->units, l->units, &bias));
        LK_TRY(affine(d, &b, &weights, l->has_bias ? &bias : NULL, &b));
    }
    LK_TRY(lk_whole_two(d, "sum", &a, &b, &a));
    LK_TRY(activate(d, "tanh", &a));
    LK_TRY(lk_whole_with(d, "product", &g[0], -1, &inverse));
    LK_TRY(lk_whole_with(d, "sum", &inverse, 1, &inverse));
    LK_TRY(lk_whole_two(d, "product", &inverse, &a, &a));
    LK_TRY(lk_whole_two(d, "product", &g[0], &l->h, &b));
    return lk_whole_two(d, "sum", &a, &b, h);
}

/* A gate, to which the cell may add by its peephole. */
static enum lk_status peep(draft *d, struct layer *l, int which, const value *c, value *gate)
{
    value added;
    if (l->has_peep) {
        LK_TRY(lk_whole_two(d, "product", &l->p[which], c, &added));
        LK_TRY(lk_whole_two(d, "sum", gate, &added, gate));
    }
    return activate(d, "sigmoid", gate);
}

/* Gates input, output, forget, cell. */
static enum lk_status step_lstm(draft *d, struct layer *l, const value *from_x,
                                const value *from_h, value *h, value *c)
{
    value g[MOST_GATES], sum, kept;
    LK_TRY(lk_whole_two(d, "sum", from_x, from_h, &sum));
    for (int i = 0; i < MOST_GATES; i++)
        LK_TRY(gate_of(d, l, &sum, i, &g[i]));
    LK_TRY(peep(d, l, 0, &l->c, &g[0]));
    LK_TRY(peep(d, l, 2, &l->c, &g[2]));
    LK_TRY(activate(d, "tanh", &g[3]));
    LK_TRY(lk_whole_two(d, "product", &g[2], &l->c, &kept));
    LK_TRY(lk_whole_two(d, "product", &g[0], &g[3], &sum));
    LK_TRY(lk_whole_two(d, "sum", &kept, &sum, c));
    LK_TRY(peep(d, l, 1, c, &g[1]));
    sum = *c;
    LK_TRY(activate(d, "tanh", &sum));
    return lk_whole_two(d, "product", &g[1], &sum, h);
}

/* [batch, 1]: 1 where step t of a sample counts, else 0. */
static enum lk_status find_counted(draft *d, const struct layer *l, int64_t t, value *made)
{
    struct lk_onnx_tensor *counts;
    if (l->is_masked)
        return take_rows(d, &l->mask, t * l->batch, l->batch, 1, 1, made);
    LK_TRY(lk_onnx_new_tensor(d, LK_ONNX_FLOAT, 2, (const int64_t[]){l->batch, 1}, &counts));
    for (int64_t n = 0; n < l->batch; n++)
        lk_onnx_put_real(counts, n, t < lk_onnx_integer(l->lengths, n));
    return lk_whole_constant(d, counts, made);
}

/* Where a step does not count the state stays, and y is 0, or the output before: the state. */
static enum lk_status keep_state(draft *d, const struct layer *l, int64_t t, const value *old,
                                 value *now, value *y)
{
    value all[3];
    if (!l->lengths && !l->is_masked)
        return LK_OK;
    LK_TRY(find_counted(d, l, t, &all[0]));
    all[1] = *now;
    if (y && !l->keeps_output) {
        LK_TRY(lk_whole_number(d, 0, &all[2]));
        LK_TRY(lk_whole_math(d, "choice", 3, all, y));
    }
    all[2] = *old;
    LK_TRY(lk_whole_math(d, "choice", 3, all, now));
    if (y && l->keeps_output)
        *y = *now;
    return LK_OK;
}

/* Step t of x; of a direction backwards, from each sample's last step on. */
struct step {
    const struct layer *l;
    int64_t t;
};

static int64_t step_place(const void *how, const int64_t *at)
{
    const struct step *s = how;
    const struct layer *l = s->l;
    const int64_t length = l->lengths ? lk_onnx_integer(l->lengths, at[0]) : l->steps;
    const int64_t t = !l->is_back ? s->t : s->t < length ? length - 1 - s->t : s->t;
    return (t * l->batch + at[0]) * l->inputs + at[1];
}

static enum lk_status walk(draft *d, struct layer *l, value *y)
{
    for (int64_t t = 0; t < l->steps; t++) {
        const struct step s = {l, t};
        value x, from_x, from_h, h, c = l->c;
        LK_TRY(lk_whole_move(d, &l->x, 2, (const int64_t[]){l->batch, l->inputs}, step_place,
                             &s, 0, &x));
        LK_TRY(affine(d, &x, &l->w, l->has_bias ? &l->b[0] : NULL, &from_x));
        LK_TRY(affine(d, &l->h, &l->r, l->has_bias ? &l->b[1] : NULL, &from_h));
        if (l->kind == RNN)
            LK_TRY(step_rnn(d, l, &from_x, &from_h, &h));
        else if (l->kind == GRU)
            LK_TRY(step_gru(d, l, &from_x, &from_h, &h));
        else
            LK_TRY(step_lstm(d, l, &from_x, &from_h, &h, &c));
        y[t] = h;
        LK_TRY(keep_state(d, l, t, &l->h, &h, &y[t]));
        if (l->kind == LSTM)
            LK_TRY(keep_state(d, l, t, &l->c, &c, NULL));
        l->h = h;
        l->c = c;
    }
    return LK_OK;
}

/* --- the layer --------------------------------------------------------------------------- */

static enum lk_status open_layer(draft *d, struct layer *l, int way, bool is_batch_first)
{
    LK_TRY(turn_weights(d, 1, way, &l->w));
    LK_TRY(turn_weights(d, 2, way, &l->r));
    l->units = l->r.dim[0];
    const int64_t all = l->gates * l->units;
    if (l->w.dim[0] != l->inputs || l->w.dim[1] != all || l->r.dim[1] != all)
        return lk_onnx_fail(d, "weights of shapes that do not go together");
    l->has_bias = lk_whole_has(d, 3);
    for (int i = 0; i < 2 && l->has_bias; i++)
        LK_TRY(take_vector(d, 3, way, i * all, all, &l->b[i]));
    l->has_peep = l->kind == LSTM && lk_whole_has(d, 7);
    for (int i = 0; i < 3 && l->has_peep; i++)
        LK_TRY(take_vector(d, 7, way, i * l->units, l->units, &l->p[i]));
    LK_TRY(first_state(d, l, 5, way, is_batch_first, &l->h));
    return l->kind == LSTM ? first_state(d, l, 6, way, is_batch_first, &l->c) : LK_OK;
}

/* Steps of all directions, one behind the other, as [steps, directions, batch, units], or with
 * the batch first. */
struct stacked {
    const struct layer *l;
    int ways;
    bool is_batch_first, is_back[2];
};

static int64_t stacked_place(const void *how, const int64_t *at)
{
    const struct stacked *s = how;
    const int64_t n = at[s->is_batch_first ? 0 : 2], way = at[s->is_batch_first ? 2 : 1];
    int64_t t = at[s->is_batch_first ? 1 : 0];
    const int64_t length = s->l->lengths ? lk_onnx_integer(s->l->lengths, n) : s->l->steps;
    if (s->is_back[way] && t < length)
        t = length - 1 - t;
    return ((way * s->l->steps + t) * s->l->batch + n) * s->l->units + at[3];
}

/* The last states of all directions, [directions, batch, units] or with the batch first. */
static enum lk_status give_state(draft *d, const struct layer *l, const value *states, int ways,
                                 bool is_batch_first, int output)
{
    static const int order[] = {1, 0, 2};
    value all;
    LK_TRY(lk_whole_join(d, states, ways, &all));
    LK_TRY(lk_whole_reshape(d, &all, 3, (const int64_t[]){ways, l->batch, l->units}));
    if (is_batch_first)
        LK_TRY(lk_whole_order(d, &all, order, &all));
    return lk_onnx_give(d, output, &all);
}

/* Which steps count. Of a loop, its steps and its mask are said as well. */
static enum lk_status read_steps(draft *d, struct layer *l)
{
    const char *masked;
    int64_t steps;
    LK_TRY(lk_onnx_say_text(d, "masked", "", &masked));
    LK_TRY(lk_onnx_say_integer(d, "loop_steps", l->steps, &steps));
    if (steps != l->steps)
        return lk_onnx_fail(d, "a loop over some of %lld steps is not supported",
                            (long long)l->steps);
    l->is_masked = *masked && lk_whole_has(d, 4);
    l->keeps_output = strcmp(masked, "keep") == 0;
    if (l->is_masked)
        LK_TRY(lk_whole_input(d, 4, &l->mask));
    else
        LK_TRY(lk_onnx_constant(d, 4, &l->lengths));
    if (l->is_masked && (l->mask.rank != 3 || l->mask.dim[0] != l->steps ||
                         l->mask.dim[1] != l->batch || l->mask.dim[2] != 1))
        return lk_onnx_fail(d, "its mask is expected to say of each step whether it counts");
    if (l->steps > MOST_STEPS || (l->lengths && l->lengths->count != l->batch))
        return lk_onnx_fail(d, "more than %d steps, or lengths of another batch", MOST_STEPS);
    for (int64_t n = 0; l->lengths && n < l->batch; n++)
        if (lk_onnx_integer(l->lengths, n) < 0 || lk_onnx_integer(l->lengths, n) > l->steps)
            return lk_onnx_fail(d, "a length of %lld steps",
                                (long long)lk_onnx_integer(l->lengths, n));
    return LK_OK;
}

static enum lk_status read_layer(draft *d, struct layer *l, bool *is_batch_first, int *ways,
                                 bool is_back[2])
{
    const char *direction;
    int64_t layout, resets;
    static const int first[] = {1, 0, 2};
    LK_TRY(lk_onnx_say_text(d, "direction", "forward", &direction));
    LK_TRY(lk_onnx_say_integer(d, "layout", 0, &layout));
    LK_TRY(lk_onnx_say_integer(d, "linear_before_reset", 0, &resets));
    *is_batch_first = layout != 0;
    *ways = strcmp(direction, "bidirectional") == 0 ? 2 : 1;
    is_back[0] = strcmp(direction, "reverse") == 0;
    is_back[1] = true;
    *l = (struct layer){.kind = strcmp(d->node->op, "LSTM") == 0  ? LSTM
                                : strcmp(d->node->op, "GRU") == 0 ? GRU
                                                                  : RNN,
                        .resets_behind = resets != 0};
    l->gates = l->kind == LSTM ? 4 : l->kind == GRU ? 3 : 1;
    LK_TRY(check_functions(d, l, *ways));
    LK_TRY(lk_whole_input(d, 0, &l->x));
    if (l->x.rank != 3)
        return lk_onnx_fail(d, "sequences of three axes are expected");
    if (*is_batch_first)
        LK_TRY(lk_whole_order(d, &l->x, first, &l->x));
    l->steps = l->x.dim[0];
    l->batch = l->x.dim[1];
    l->inputs = l->x.dim[2];
    return read_steps(d, l);
}

static enum lk_status recurrent(draft *d)
{
    struct layer l;
    struct stacked s = {0};
    value states[2][2], all;
    void *memory;
    LK_TRY(read_layer(d, &l, &s.is_batch_first, &s.ways, s.is_back));
    LK_TRY(lk_arena_allocate(&d->arena, (size_t)(2 * l.steps) * sizeof(value), &memory));
    value *y = memory;
    for (int way = 0; way < s.ways; way++) {
        l.is_back = s.is_back[way];
        LK_TRY(open_layer(d, &l, way, s.is_batch_first));
        LK_TRY(walk(d, &l, y + way * l.steps));
        states[0][way] = l.h;
        states[1][way] = l.c;
    }
    s.l = &l;
    const int64_t dim[2][4] = {{l.steps, s.ways, l.batch, l.units},
                               {l.batch, l.steps, s.ways, l.units}};
    LK_TRY(lk_whole_join(d, y, (int)(s.ways * l.steps), &all));
    LK_TRY(lk_whole_move(d, &all, 4, dim[s.is_batch_first], stacked_place, &s, 0, &all));
    LK_TRY(lk_onnx_give(d, 0, &all));
    LK_TRY(give_state(d, &l, states[0], s.ways, s.is_batch_first, 1));
    return l.kind == LSTM ? give_state(d, &l, states[1], s.ways, s.is_batch_first, 2) : LK_OK;
}

#define KNOWN                                                                                  \
    "activations", "activation_alpha", "activation_beta", "clip", "direction", "hidden_size",  \
        "layout", "loop_steps", "masked"

const struct lk_onnx_operator lk_array_recurrent[] = {
    {"RNN", recurrent, LK_ONNX_KNOWS(KNOWN)},
    {"GRU", recurrent, LK_ONNX_KNOWS(KNOWN, "linear_before_reset")},
    {"LSTM", recurrent, LK_ONNX_KNOWS(KNOWN, "input_forget")},
    {0},
};

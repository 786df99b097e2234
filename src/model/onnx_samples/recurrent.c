/* ONNX's LSTM, GRU and RNN as recurrent layers of ours, one for each direction.
 * source: onnx.ai/onnx/operators/onnx__LSTM.html, onnx__GRU.html, onnx__RNN.html */
#include "model/onnx_samples/samples.h"

#include "base/fail.h"
#include <string.h>

enum { MOST_GATES = 4 };

/* gate[i]: which of theirs is our gate i. */
struct kind {
    const char *name, *op;
    int gates, gate[MOST_GATES], states;
    const char *functions[3];
};

static const struct kind kinds[] = {
    {"LSTM", "lstm", 4, {0, 2, 3, 1}, 2, {"Sigmoid", "Tanh", "Tanh"}},
    {"GRU", "gru", 3, {0, 1, 2}, 1, {"Sigmoid", "Tanh", NULL}},
    {"RNN", "rnn", 1, {0}, 1, {"Tanh", NULL, NULL}},
};

struct layer {
    const struct kind *kind;
    int ways;
    bool is_back, is_batch_first, resets_behind, is_relu;
    bool wants_steps, wants_states;
    int64_t steps, inputs, units;
    value x, length;
    bool has_length;
    const struct lk_onnx_tensor *w, *r, *b;
};

/* --- what the node says ------------------------------------------------------------------ */

/* Functions of gates are the standard ones, if they are said; of an RNN also relu. */
static enum lk_status check_functions(draft *d, struct layer *l)
{
    int64_t couples;
    const struct lk_onnx_attribute *said = lk_onnx_find_attribute(d->node, "activations");
    LK_TRY(lk_onnx_say_integer(d, "input_forget", 0, &couples));
    if (said || couples || lk_onnx_find_attribute(d->node, "activation_alpha") ||
        lk_onnx_find_attribute(d->node, "activation_beta") ||
        lk_onnx_find_attribute(d->node, "clip"))
        l->is_relu = said && said->texts && !couples && l->kind->gates == 1;
    else
        return LK_OK;
    if (couples || !said || !said->texts)
        return lk_onnx_fail(d, "other functions than the standard ones, or 'clip', are not "
                               "supported");
    const int each = said->count / l->ways;
    for (int i = 0; i < said->count; i++) {
        const char *standard = each > 0 && i % each < 3 ? l->kind->functions[i % each] : NULL;
        l->is_relu &= strcmp(said->texts[i], "Relu") == 0;
        if (!l->is_relu && (!standard || strcmp(said->texts[i], standard) != 0))
            return lk_onnx_fail(d, "its function '%.40s' is not supported", said->texts[i]);
    }
    return LK_OK;
}

static bool is_read(const draft *d, int output)
{
    return output < d->node->output_count && *d->node->outputs[output] &&
           lk_onnx_find(d, d->node->outputs[output])->readers > 0;
}

static enum lk_status read_node(draft *d, struct layer *l)
{
    const char *direction;
    int64_t layout, resets;
    for (int i = 0; i < LK_COUNT(kinds); i++)
        if (strcmp(kinds[i].name, d->node->op) == 0)
            l->kind = &kinds[i];
    LK_TRY(lk_onnx_say_text(d, "direction", "forward", &direction));
    LK_TRY(lk_onnx_say_integer(d, "layout", 0, &layout));
    LK_TRY(lk_onnx_say_integer(d, "linear_before_reset", 0, &resets));
    l->ways = strcmp(direction, "bidirectional") == 0 ? 2 : 1;
    l->is_back = strcmp(direction, "reverse") == 0;
    l->is_batch_first = layout != 0;
    l->resets_behind = resets != 0;
    l->wants_steps = is_read(d, 0);
    l->wants_states = is_read(d, 1) || is_read(d, 2);
    return check_functions(d, l);
}

/* --- inputs ------------------------------------------------------------------------------ */

static bool is_zero(const struct lk_onnx_tensor *tensor)
{
    for (int64_t i = 0; i < tensor->count; i++)
        if (lk_onnx_real(tensor, i) != 0)
            return false;
    return true;
}

/* Of a loop, all steps of x are known to be its own. */
static enum lk_status read_length(draft *d, struct layer *l)
{
    int64_t steps;
    const value *length = lk_onnx_input(d, 4);
    LK_TRY(lk_onnx_say_integer(d, "loop_steps", l->steps, &steps));
    if (steps != l->steps)
        return lk_onnx_fail(d, "a loop over some of %lld steps is not supported",
                            (long long)l->steps);
    bool is_all = length && length->constant;
    if (!length)
        return LK_OK;
    for (int64_t i = 0; is_all && i < length->constant->count; i++)
        is_all = lk_onnx_integer(length->constant, i) == l->steps;
    if (is_all)
        return LK_OK;
    if (length->constant || !length->node || length->node->op || length->at != 0 ||
        length->rank != 1 || length->node->input.dtype != LK_I32)
        return lk_onnx_fail(d, "lengths are expected to be an input");
    l->has_length = true;
    l->length = *length;
    return LK_OK;
}

static enum lk_status read_inputs(draft *d, struct layer *l)
{
    const value *x;
    LK_TRY(lk_onnx_computed(d, 0, &x));
    if (x->rank != 3 || x->at != (l->is_batch_first ? 0 : 1))
        return lk_onnx_fail(d, "sequences are expected whose samples lie along axis %d",
                            l->is_batch_first ? 0 : 1);
    LK_TRY(lk_onnx_put_first(d, x, &l->x));
    LK_TRY(lk_onnx_settle(d, &l->x, &l->x));
    LK_TRY(lk_onnx_constant(d, 1, &l->w));
    LK_TRY(lk_onnx_constant(d, 2, &l->r));
    LK_TRY(lk_onnx_constant(d, 3, &l->b));
    l->steps = l->x.dim[1];
    l->inputs = l->x.dim[2];
    const int64_t gates = l->kind->gates;
    if (!l->w || !l->r || l->w->rank != 3 || l->r->rank != 3)
        return lk_onnx_fail(d, "constant weights of three axes are expected");
    l->units = l->r->dim[2];
    if (l->w->dim[0] != l->ways || l->r->dim[0] != l->ways || l->w->dim[2] != l->inputs ||
        l->w->dim[1] != gates * l->units || l->r->dim[1] != gates * l->units ||
        (l->b && l->b->count != 2 * l->ways * gates * l->units))
        return lk_onnx_fail(d, "weights of shapes that do not go together");
    for (int i = 5; i < 8; i++) {
        const value *state = lk_onnx_input(d, i);
        if (state && (!state->constant || !is_zero(state->constant)))
            return lk_onnx_fail(d, "a first state that is not 0, or peepholes, are not "
                                   "supported");
    }
    return read_length(d, l);
}

/* --- parameters -------------------------------------------------------------------------- */

/* A matrix of direction `way`, [gates][units][columns] there, becomes [columns][gates][units].
 */
static enum lk_status set_matrix(draft *d, const struct layer *l, const value *entry,
                                 const char *param, const struct lk_onnx_tensor *from, int way)
{
    const int64_t columns = from->dim[2], units = l->units, gates = l->kind->gates;
    struct lk_onnx_tensor *made;
    LK_TRY(lk_onnx_new_tensor(d, LK_ONNX_FLOAT, 2, (const int64_t[]){columns, gates * units},
                              &made));
    for (int64_t c = 0; c < columns; c++)
        for (int64_t g = 0; g < gates; g++)
            for (int64_t u = 0; u < units; u++) {
                const int64_t row = (way * gates + l->kind->gate[g]) * units + u;
                lk_onnx_put_real(made, (c * gates + g) * units + u,
                                 lk_onnx_real(from, row * columns + c));
            }
    return lk_onnx_set(d, entry, param, made, true, 1);
}

/* Biases of the input and of the state: one of them, or their sum where second is 1. */
static enum lk_status set_bias(draft *d, const struct layer *l, const value *entry,
                               const char *param, int way, int first, int second)
{
    const int64_t units = l->units, gates = l->kind->gates, all = gates * units;
    struct lk_onnx_tensor *made;
    LK_TRY(lk_onnx_new_tensor(d, LK_ONNX_FLOAT, 1, &all, &made));
    for (int64_t g = 0; g < gates; g++)
        for (int64_t u = 0; u < units; u++) {
            double sum = 0;
            for (int half = first; half <= second; half++)
                sum +=
                    lk_onnx_real(l->b, (way * 2 + half) * all + l->kind->gate[g] * units + u);
            lk_onnx_put_real(made, g * units + u, sum);
        }
    return lk_onnx_set(d, entry, param, made, true, 1);
}

static enum lk_status add_way(draft *d, const struct layer *l, int way, value *made)
{
    const bool is_gru = strcmp(l->kind->op, "gru") == 0, is_split = is_gru && l->resets_behind;
    const value x[] = {l->x, l->length};
    const char *options;
    LK_TRY(lk_onnx_text(
        d, &options, "units=%lld%s%s%s%s%s%s", (long long)l->units,
        l->is_relu ? " activation=relu" : "", l->b ? "" : " use_bias=false",
        l->wants_steps ? " return_sequences=true" : "",
        l->wants_states && (l->wants_steps || is_read(d, 2)) ? " return_state=true" : "",
        l->is_back || way == 1 ? " go_backwards=true" : "",
        !is_gru            ? ""
        : l->resets_behind ? " reset_after=true"
                           : " reset_after=false"));
    LK_TRY(lk_onnx_add(d, l->kind->op, options, l->has_length ? 2 : 1, x, made));
    LK_TRY(set_matrix(d, l, made, "weight", l->w, way));
    LK_TRY(set_matrix(d, l, made, "recurrent_weight", l->r, way));
    if (!l->b)
        return LK_OK;
    LK_TRY(set_bias(d, l, made, "bias", way, 0, is_split ? 0 : 1));
    return is_split ? set_bias(d, l, made, "recurrent_bias", way, 1, 1) : LK_OK;
}

/* --- outputs ----------------------------------------------------------------------------- */

/* Time steps first..end of what a direction made. */
static enum lk_status take(draft *d, const value *made, int64_t first, int64_t end, value *part)
{
    const char *options;
    if (made->rank == 2) {
        *part = *made;
        return LK_OK;
    }
    if (first == 0 && end == made->dim[1]) {
        *part = *made;
        return LK_OK;
    }
    LK_TRY(lk_onnx_text(d, &options, "t=[%lld, %lld]", (long long)first,
                        (long long)(end == made->dim[1] ? 0 : end)));
    return lk_onnx_add(d, "slice", options, 1, made, part);
}

/* The outputs of both directions side by side: [steps, directions, n, units]. */
static enum lk_status give_steps(draft *d, const struct layer *l, const value *ways)
{
    value part[2], all;
    for (int i = 0; i < l->ways; i++)
        LK_TRY(take(d, &ways[i], 0, l->steps, &part[i]));
    all = part[0];
    if (l->ways > 1)
        LK_TRY(lk_onnx_add(d, "concat", "axis=c", 2, part, &all));
    const int64_t dim[2][4] = {{l->steps, l->ways, 1, l->units},
                               {1, l->steps, l->ways, l->units}};
    all.rank = 4;
    memcpy(all.dim, dim[l->is_batch_first], sizeof dim[0]);
    return lk_samples_give(d, 0, &all, l->is_batch_first ? 0 : 2);
}

/* Final state `which` of both directions, one behind the other: [directions, n, units]. */
static enum lk_status give_state(draft *d, const struct layer *l, const value *ways, int which)
{
    value part[2], all;
    const int64_t first = (l->wants_steps ? l->steps : 1) + which;
    if (!is_read(d, 1 + which))
        return LK_OK;
    for (int i = 0; i < l->ways; i++) {
        LK_TRY(take(d, &ways[i], first, first + 1, &part[i]));
        if (l->ways > 1 && part[i].rank != 2)
            LK_TRY(lk_onnx_add(d, "flatten", "", 1, &part[i], &part[i]));
    }
    all = part[0];
    if (l->ways > 1)
        LK_TRY(lk_onnx_add(d, "concat", "axis=c", 2, part, &all));
    const int64_t dim[2][3] = {{l->ways, 1, l->units}, {1, l->ways, l->units}};
    all.rank = 3;
    memcpy(all.dim, dim[l->is_batch_first], sizeof dim[0]);
    return lk_samples_give(d, 1 + which, &all, l->is_batch_first ? 0 : 1);
}

static enum lk_status recurrent(draft *d)
{
    struct layer l = {0};
    value ways[2];
    LK_TRY(read_node(d, &l));
    LK_TRY(read_inputs(d, &l));
    for (int i = 0; i < l.ways; i++)
        LK_TRY(add_way(d, &l, i, &ways[i]));
    if (l.wants_steps)
        LK_TRY(give_steps(d, &l, ways));
    for (int i = 0; i < l.kind->states; i++)
        LK_TRY(give_state(d, &l, ways, i));
    return LK_OK;
}

#define KNOWN                                                                                  \
    "activations", "activation_alpha", "activation_beta", "clip", "direction", "hidden_size",  \
        "layout", "loop_steps"

const struct lk_onnx_operator lk_samples_recurrent[] = {
    {"RNN", recurrent, LK_ONNX_KNOWS(KNOWN)},
    {"GRU", recurrent, LK_ONNX_KNOWS(KNOWN, "linear_before_reset")},
    {"LSTM", recurrent, LK_ONNX_KNOWS(KNOWN, "input_forget")},
    {0},
};

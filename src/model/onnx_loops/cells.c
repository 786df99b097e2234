/* What a step computes: products of the step and of the state, biases, gates, and the new
 * states that they make. */
#include "model/onnx_loops/loops.h"

#include "base/fail.h"
#include <string.h>

/* --- products and biases ------------------------------------------------------------------ */

/* A part of x: the step of that number. */
static bool is_step(struct lk_loop *l, const char *name)
{
    const char *outside = lk_loop_find_step(l, name);
    if (!outside || (l->x && strcmp(l->x, outside) != 0))
        return false;
    l->x = outside;
    return true;
}

static struct lk_loop_row row_of(const struct lk_loop *l, const char *name)
{
    int output;
    const struct lk_onnx_tensor *all = lk_loop_tensor(l, name);
    if (all)
        return (struct lk_loop_row){all, 0, all->count};
    const struct lk_onnx_node *node = lk_loop_maker(l, name, &output);
    if (lk_loop_takes(node, "Squeeze", 1))
        node = lk_loop_maker(l, node->inputs[0], &output);
    all = lk_loop_takes(node, "Split", 1) && lk_loop_say(node, "axis", 0) == 0
              ? lk_loop_tensor(l, node->inputs[0])
              : NULL;
    if (!all || all->rank != 2 || all->dim[0] != node->output_count)
        return (struct lk_loop_row){NULL, 0, 0};
    return (struct lk_loop_row){all, output * all->dim[1], all->dim[1]};
}

/* Which columns of `width` a Slice takes of all rows. */
static bool find_columns(const struct lk_loop *l, const struct lk_onnx_node *node,
                         int64_t width, int64_t *first, int64_t *count)
{
    const struct lk_onnx_tensor *list[3];
    bool found = false;
    for (int i = 0; i < 3; i++)
        list[i] = lk_loop_tensor(l, node->inputs[1 + i]);
    if (!list[0] || !list[1] || !list[2] || list[1]->count != list[0]->count ||
        list[2]->count != list[0]->count || node->input_count > 5)
        return false;
    const struct lk_onnx_tensor *steps =
        node->input_count == 5 && *node->inputs[4] ? lk_loop_tensor(l, node->inputs[4]) : NULL;
    if (node->input_count == 5 && *node->inputs[4] && !steps)
        return false;
    for (int64_t i = 0; steps && i < steps->count; i++)
        if (lk_onnx_integer(steps, i) != 1)
            return false;
    for (int64_t i = 0; i < list[0]->count; i++) {
        const int64_t begin = lk_onnx_integer(list[0], i), end = lk_onnx_integer(list[1], i);
        if (lk_onnx_integer(list[2], i) == 1 && !found && begin >= 0 && begin < width &&
            end > begin) {
            *first = begin;
            *count = (end < width ? end : width) - begin;
            found = true;
        } else if (lk_onnx_integer(list[2], i) != 0 || begin != 0 || end < INT32_MAX)
            return false;
    }
    return found;
}

/* A matrix, or some of its columns. NULL: it is neither. */
static const struct lk_onnx_tensor *matrix_of(const struct lk_loop *l, const char *name,
                                              int64_t *first, int64_t *columns)
{
    int output;
    const struct lk_onnx_tensor *all = lk_loop_tensor(l, name);
    const struct lk_onnx_node *node = all ? NULL : lk_loop_maker(l, name, &output);
    if (lk_loop_takes(node, "Slice", 4))
        all = lk_loop_tensor(l, node->inputs[0]);
    if (!all || all->rank != 2)
        return NULL;
    *first = 0;
    *columns = all->dim[1];
    return !node || find_columns(l, node, all->dim[1], first, columns) ? all : NULL;
}

/* A MatMul, or a Gemm that only adds something to it. */
static bool is_product(const struct lk_onnx_node *node)
{
    static const char *const factors[] = {"alpha", "beta"};
    if (!lk_loop_takes(node, "Gemm", 2))
        return lk_loop_takes(node, "MatMul", 2);
    for (int i = 0; i < LK_COUNT(factors); i++) {
        const struct lk_onnx_attribute *said = lk_onnx_find_attribute(node, factors[i]);
        if (said && (said->kind != LK_ONNX_REAL || said->real != 1))
            return false;
    }
    return lk_loop_say(node, "transA", 0) == 0 && lk_loop_say(node, "transB", 0) == 0;
}

static bool adds(const struct lk_onnx_node *product)
{
    return product->input_count > 2 && *product->inputs[2];
}

/* Adds what a name is a sum of. */
static bool add_terms(struct lk_loop *l, const char *name, struct lk_loop_sum *sum, int depth)
{
    int output;
    int64_t first, columns;
    const struct lk_onnx_node *node = lk_loop_maker(l, name, &output);
    const struct lk_loop_row row = row_of(l, name);
    if (row.of && sum->biases < 2) {
        sum->bias[sum->biases++] = row;
        return true;
    }
    if (is_product(node)) {
        const bool is_given = is_step(l, node->inputs[0]);
        const struct lk_onnx_tensor **matrix = is_given ? &sum->w : &sum->r;
        if (*matrix || (!is_given && lk_loop_find_input(l, node->inputs[0]) != l->state))
            return false;
        *matrix = matrix_of(l, node->inputs[1], &first, &columns);
        if (!*matrix || (is_given && columns != (*matrix)->dim[1]))
            return false;
        if (!is_given) {
            sum->first = first;
            sum->columns = columns;
        }
        if (!adds(node))
            return true;
        return depth > 0 && add_terms(l, node->inputs[2], sum, depth - 1);
    }
    return depth > 0 && lk_loop_takes(node, "Add", 2) &&
           add_terms(l, node->inputs[0], sum, depth - 1) &&
           add_terms(l, node->inputs[1], sum, depth - 1);
}

/* Whether all columns of the state's matrix are multiplied. */
static bool is_whole(const struct lk_loop_sum *sum)
{
    return sum->r && sum->first == 0 && sum->columns == sum->r->dim[1];
}

/* Whether two gates are parts of the same sum. */
static bool is_same(const struct lk_loop_sum *a, const struct lk_loop_sum *b)
{
    bool is = a->w == b->w && a->r == b->r && a->biases == b->biases && a->first == b->first &&
              a->columns == b->columns;
    for (int i = 0; is && i < a->biases; i++)
        is = a->bias[i].of == b->bias[i].of && a->bias[i].first == b->bias[i].first &&
             a->bias[i].count == b->bias[i].count;
    return is;
}

/* Output of a Split of all columns into so many of one width; -1: it is none. */
static int find_split(const struct lk_onnx_node *node, int gates, int output)
{
    const bool splits =
        lk_loop_takes(node, "Split", 1) && node->output_count == gates &&
        (lk_loop_say(node, "axis", 0) == 1 || lk_loop_say(node, "axis", 0) == -1) &&
        (node->input_count == 1 || !*node->inputs[1]) && !lk_onnx_find_attribute(node, "split");
    return splits ? output : -1;
}

/* --- a GRU -------------------------------------------------------------------------------- */

/* Which gate of a sum's columns a value is; -1: none. */
static int find_gate(const struct lk_loop *l, const struct lk_onnx_node *node, int output,
                     const struct lk_loop_sum *sum)
{
    int64_t first, count;
    const int64_t columns = sum->w ? sum->w->dim[1] : sum->columns;
    if (columns == 3 * l->units && find_split(node, 3, output) >= 0)
        return output;
    return lk_loop_takes(node, "Slice", 4) && find_columns(l, node, columns, &first, &count) &&
                   count == l->units && first % l->units == 0
               ? (int)(first / l->units)
               : -1;
}

/* Gate of a value: a third of what is computed of x, or of the state. */
static bool is_gate(struct lk_loop *l, const char *name, int *gate, bool *is_given)
{
    int output;
    const struct lk_onnx_node *node = lk_loop_maker(l, name, &output);
    struct lk_loop_sum sum = {0};
    if ((!lk_loop_takes(node, "Split", 1) && !lk_loop_takes(node, "Slice", 4)) ||
        !add_terms(l, node->inputs[0], &sum, 2) || !sum.w == !sum.r || sum.biases > 1)
        return false;
    *gate = find_gate(l, node, output, &sum);
    *is_given = sum.w != NULL;
    struct lk_loop_sum *known = *is_given ? &l->given : &l->carried;
    if (*gate < 0 || *gate > 2 || ((known->w || known->r) && !is_same(known, &sum)))
        return false;
    *known = sum;
    return true;
}

/* A product of the candidate's columns with the state times `by`, which resets it before. */
static bool is_reset(struct lk_loop *l, const struct lk_onnx_node *product, const char **by)
{
    int output;
    int64_t first, columns;
    const struct lk_onnx_node *state = lk_loop_maker(l, product->inputs[0], &output);
    const struct lk_onnx_tensor *r = matrix_of(l, product->inputs[1], &first, &columns);
    if (!r || first != 2 * l->units || columns != l->units || r->dim[1] != 3 * l->units ||
        r != l->carried.r)
        return false;
    l->resets_before = true;
    for (int k = 0; lk_loop_takes(state, "Mul", 2) && k < 2; k++) {
        *by = state->inputs[1 - k];
        if (lk_loop_find_input(l, state->inputs[k]) == l->state)
            return true;
    }
    return false;
}

/* What comes of the state as that gate. Of the candidate: times `by`, before the product or
 * behind it. */
static bool is_carried(struct lk_loop *l, const char *name, int wanted, const char **by)
{
    int output, gate;
    bool is_given;
    if (!by)
        return is_gate(l, name, &gate, &is_given) && !is_given && gate == wanted;
    const struct lk_onnx_node *node = lk_loop_maker(l, name, &output);
    if (is_product(node))
        return !adds(node) && is_reset(l, node, by);
    for (int k = 0; lk_loop_takes(node, "Mul", 2) && k < 2; k++) {
        *by = node->inputs[1 - k];
        if (is_gate(l, node->inputs[k], &gate, &is_given) && !is_given && gate == wanted)
            return true;
    }
    return false;
}

/* function(gate of x + gate of the state) */
static bool is_function(struct lk_loop *l, const char *name, const char *function, int wanted,
                        const char **by)
{
    int output, gate;
    bool is_given;
    const struct lk_onnx_node *node = lk_loop_maker(l, name, &output);
    node = lk_loop_takes(node, function, 1) ? lk_loop_maker(l, node->inputs[0], &output) : NULL;
    if (by && is_product(node) && adds(node))
        return is_gate(l, node->inputs[2], &gate, &is_given) && is_given && gate == wanted &&
               is_reset(l, node, by);
    for (int i = 0; lk_loop_takes(node, "Add", 2) && i < 2; i++)
        if (is_gate(l, node->inputs[i], &gate, &is_given) && is_given && gate == wanted)
            return is_carried(l, node->inputs[1 - i], wanted, by);
    return false;
}

/* z state + (1 - z) tanh(...) */
static bool is_gru(struct lk_loop *l)
{
    int output;
    const char *reset = NULL;
    const struct lk_onnx_node *node = lk_loop_maker(l, l->h, &output), *part[2], *one;
    if (!lk_loop_takes(node, "Add", 2))
        return false;
    for (int i = 0; i < 2; i++)
        part[i] = lk_loop_maker(l, node->inputs[i], &output);
    if (!lk_loop_takes(part[0], "Mul", 2) || !lk_loop_takes(part[1], "Mul", 2))
        return false;
    for (int k = 0; k < 8; k++) { /* all products may be turned round */
        const struct lk_onnx_node *keeps = part[k & 1], *takes = part[1 - (k & 1)];
        const char *z = keeps->inputs[k >> 1 & 1], *rest = takes->inputs[k >> 2];
        one = lk_loop_maker(l, rest, &output);
        if (lk_loop_find_input(l, keeps->inputs[1 - (k >> 1 & 1)]) == l->state &&
            lk_loop_takes(one, "Sub", 2) &&
            lk_loop_is_number(lk_loop_tensor(l, one->inputs[0]), 1) &&
            strcmp(lk_loop_skip(l->body, one->inputs[1]), lk_loop_skip(l->body, z)) == 0)
            return is_function(l, z, "Sigmoid", 0, NULL) &&
                   is_function(l, takes->inputs[1 - (k >> 2)], "Tanh", 2, &reset) &&
                   is_function(l, reset, "Sigmoid", 1, NULL) &&
                   (l->resets_before ? l->carried.first == 0 && !l->carried.biases &&
                                           l->carried.columns == 2 * l->units
                                     : is_whole(&l->carried));
    }
    return false;
}

/* --- an LSTM ------------------------------------------------------------------------------ */

/* function(gate), a quarter of the sum that all gates are of. */
static bool is_quarter(struct lk_loop *l, const char *name, const char *function, int wanted,
                       const char **sum)
{
    int output;
    const struct lk_onnx_node *node = lk_loop_maker(l, name, &output);
    node = lk_loop_takes(node, function, 1) ? lk_loop_maker(l, node->inputs[0], &output) : NULL;
    if (!node || find_split(node, 4, output) != wanted)
        return false;
    const char *all = lk_loop_skip(l->body, node->inputs[0]);
    *sum = *sum ? *sum : all;
    return strcmp(*sum, all) == 0;
}

/* h = sigmoid(o) tanh(c), c = sigmoid(f) c + sigmoid(i) tanh(g); gates i, f, g, o. */
static bool is_lstm(struct lk_loop *l)
{
    int output;
    const char *sum = NULL;
    bool is_output = false, is_kept = false, is_taken = false;
    const struct lk_onnx_node *h = lk_loop_maker(l, l->h, &output),
                              *c = lk_loop_maker(l, l->c, &output);
    if (!lk_loop_takes(h, "Mul", 2) || !lk_loop_takes(c, "Add", 2))
        return false;
    for (int k = 0; k < 2 && !is_output; k++) {
        const struct lk_onnx_node *tanh = lk_loop_maker(l, h->inputs[k], &output);
        is_output = lk_loop_takes(tanh, "Tanh", 1) &&
                    strcmp(lk_loop_skip(l->body, tanh->inputs[0]), l->c) == 0 &&
                    is_quarter(l, h->inputs[1 - k], "Sigmoid", 3, &sum);
    }
    for (int i = 0; i < 2; i++) {
        const struct lk_onnx_node *part = lk_loop_maker(l, c->inputs[i], &output);
        for (int k = 0; lk_loop_takes(part, "Mul", 2) && k < 2; k++) {
            const char *one = part->inputs[k], *other = part->inputs[1 - k];
            is_kept |= lk_loop_find_input(l, one) == l->cell &&
                       is_quarter(l, other, "Sigmoid", 1, &sum);
            is_taken |=
                is_quarter(l, one, "Sigmoid", 0, &sum) && is_quarter(l, other, "Tanh", 2, &sum);
        }
    }
    return is_output && is_kept && is_taken && add_terms(l, sum, &l->given, 4) && l->given.w &&
           is_whole(&l->given);
}

/* --- any ---------------------------------------------------------------------------------- */

static bool is_rnn(struct lk_loop *l)
{
    int output;
    const struct lk_onnx_node *node = lk_loop_maker(l, l->h, &output);
    if (!lk_loop_takes(node, "Tanh", 1) && !lk_loop_takes(node, "Relu", 1))
        return false;
    l->function = node->op;
    return add_terms(l, node->inputs[0], &l->given, 4) && l->given.w && is_whole(&l->given);
}

static bool has_shapes(const struct lk_loop *l)
{
    const struct lk_onnx_tensor *w = l->given.w, *r = l->gates == 3 ? l->carried.r : l->given.r;
    bool fits = l->x && w && r && w->type == LK_ONNX_FLOAT && r->type == LK_ONNX_FLOAT &&
                r->dim[0] == l->units && r->dim[1] == l->gates * l->units &&
                w->dim[1] == l->gates * l->units;
    for (int i = 0; i < 2; i++) {
        const struct lk_loop_sum *s = i == 0 ? &l->given : &l->carried;
        for (int b = 0; b < s->biases; b++) {
            const struct lk_onnx_tensor *of = s->bias[b].of;
            fits &= of->type == LK_ONNX_FLOAT && s->bias[b].count == l->gates * l->units &&
                    of->rank > 0 && of->dim[of->rank - 1] == s->bias[b].count;
        }
    }
    return fits;
}

/* The state's product says how long the state is; 0: there is none. */
static int64_t find_units(const struct lk_loop *l)
{
    const struct lk_onnx_graph *body = l->body->of;
    int64_t first, columns;
    for (int i = 0; i < body->node_count; i++) {
        const struct lk_onnx_node *node = &body->nodes[i];
        if (!is_product(node) || lk_loop_find_input(l, node->inputs[0]) != l->state)
            continue;
        const struct lk_onnx_tensor *r = matrix_of(l, node->inputs[1], &first, &columns);
        return r ? r->dim[0] : 0;
    }
    return 0;
}

bool lk_loop_is_cell(struct lk_loop *l)
{
    static const struct {
        const char *op;
        int gates;
        bool (*is)(struct lk_loop *l);
    } cells[] = {{"RNN", 1, is_rnn}, {"GRU", 3, is_gru}, {"LSTM", 4, is_lstm}};
    l->units = find_units(l);
    for (int i = 0; l->units > 0 && i < LK_COUNT(cells); i++) {
        l->op = cells[i].op;
        l->gates = cells[i].gates;
        l->given = l->carried = (struct lk_loop_sum){0};
        l->x = NULL;
        if ((l->gates == 4) == (l->cell >= 0) && cells[i].is(l))
            return has_shapes(l);
    }
    return false;
}

/* Recognizes loops: each value of a body is followed back to what it is made of. */
#include "model/onnx_loops/loops.h"

#include "base/fail.h"
#include <string.h>

enum { MOST_DEPTH = 8 };

/* --- looking things up -------------------------------------------------------------------- */

static const struct lk_onnx_node *find_maker(const struct lk_loop_graph *graph,
                                             const char *name, int *output)
{
    const struct lk_loop_name *found = lk_loop_find(graph, name);
    if (!found || !found->node)
        return NULL;
    *output = found->output;
    return found->node;
}

static bool is_op(const struct lk_onnx_node *node, const char *op, int inputs)
{
    return node && lk_loop_is_op(node, op) && node->input_count >= inputs;
}

static const char *skip_identities(const struct lk_loop_graph *graph, const char *name)
{
    int output;
    for (int i = 0; i < MOST_DEPTH; i++) {
        const struct lk_onnx_node *node = find_maker(graph, name, &output);
        if (!is_op(node, "Identity", 1))
            break;
        name = node->inputs[0];
    }
    return name;
}

static const struct lk_onnx_node *made_by(const struct lk_loop *l, const char *name,
                                          int *output)
{
    return find_maker(l->body, skip_identities(l->body, name), output);
}

static const struct lk_onnx_tensor *find_constant(const struct lk_loop_graph *graph,
                                                  const char *name)
{
    const struct lk_loop_name *found = lk_loop_find(graph, skip_identities(graph, name));
    if (!found || found->constant)
        return found ? found->constant : NULL;
    const struct lk_onnx_attribute *said =
        is_op(found->node, "Constant", 0) ? lk_onnx_find_attribute(found->node, "value") : NULL;
    return said ? said->tensor : NULL;
}

static int find_input(const struct lk_loop *l, const char *name)
{
    const struct lk_loop_name *found = lk_loop_find(l->body, skip_identities(l->body, name));
    return found ? found->input : -1;
}

/* What a name of the body is outside: itself, or what is carried and never changes. NULL: the
 * body makes it. */
static const char *find_outside(const struct lk_loop *l, const char *name)
{
    int output;
    const int input = find_input(l, name);
    name = skip_identities(l->body, name);
    if (input < 0)
        return find_maker(l->body, name, &output) ? NULL : name;
    return input >= 2 && input < l->node->input_count &&
                   input == find_input(l, l->body->of->outputs[input - 1].name)
               ? l->node->inputs[input]
               : NULL;
}

static const struct lk_onnx_tensor *tensor_of(const struct lk_loop *l, const char *name)
{
    const struct lk_onnx_tensor *own = find_constant(l->body, name);
    const char *outside = own ? NULL : find_outside(l, name);
    return outside ? find_constant(l->file, outside) : own;
}

static bool is_number(const struct lk_onnx_tensor *tensor, double number)
{
    return tensor && tensor->count == 1 && lk_onnx_real(tensor, 0) == number;
}

static int64_t say(const struct lk_onnx_node *node, const char *name, int64_t standard)
{
    const struct lk_onnx_attribute *said = lk_onnx_find_attribute(node, name);
    return said && said->kind == LK_ONNX_INTEGER ? said->integer : standard;
}

/* --- steps -------------------------------------------------------------------------------- */

/* The counter, or one more. */
static bool is_counted(const struct lk_loop *l, const char *name, int64_t *more)
{
    int output;
    const struct lk_onnx_node *node = made_by(l, name, &output);
    for (int i = 0; i < MOST_DEPTH && is_op(node, "Cast", 1); i++) {
        name = node->inputs[0];
        node = made_by(l, name, &output);
    }
    *more = is_op(node, "Add", 2);
    if (*more)
        name = node->inputs[is_number(tensor_of(l, node->inputs[0]), 1)];
    const int input = find_input(l, name);
    return input >= 0 && (input == 0 || input == l->counter) &&
           (!*more || is_number(tensor_of(l, node->inputs[0]), 1) ||
            is_number(tensor_of(l, node->inputs[1]), 1));
}

/* Whether the body goes on until the last step. */
static bool goes_on(const struct lk_loop *l, const char *name, int depth)
{
    int output;
    int64_t more;
    const struct lk_onnx_node *node = made_by(l, name, &output);
    if (find_input(l, name) == 1)
        return true;
    if (depth > 0 && is_op(node, "And", 2))
        return goes_on(l, node->inputs[0], depth - 1) && goes_on(l, node->inputs[1], depth - 1);
    const struct lk_onnx_tensor *end =
        is_op(node, "Less", 2) ? tensor_of(l, node->inputs[1]) : NULL;
    return end && end->count == 1 && is_counted(l, node->inputs[0], &more) &&
           (double)(l->steps - 2 + more) < lk_onnx_real(end, 0);
}

/* Whether the loop begins at all. */
static bool begins(const struct lk_loop_graph *file, const char *name, int depth)
{
    int output;
    const struct lk_onnx_tensor *known = find_constant(file, name);
    const struct lk_onnx_node *node = find_maker(file, name, &output);
    if (!*name || known)
        return !known || (known->count == 1 && lk_onnx_real(known, 0) != 0);
    if (depth > 0 && is_op(node, "And", 2))
        return begins(file, node->inputs[0], depth - 1) &&
               begins(file, node->inputs[1], depth - 1);
    if (!is_op(node, "Less", 2))
        return false;
    const struct lk_onnx_tensor *a = find_constant(file, node->inputs[0]),
                                *b = find_constant(file, node->inputs[1]);
    return a && b && a->count == 1 && b->count == 1 && lk_onnx_real(a, 0) < lk_onnx_real(b, 0);
}

static bool is_zero(const struct lk_loop_graph *file, const char *name)
{
    int output;
    const struct lk_onnx_tensor *known = find_constant(file, name);
    const struct lk_onnx_node *node = find_maker(file, name, &output);
    if (is_op(node, "Expand", 2))
        return is_number(find_constant(file, node->inputs[0]), 0);
    if (is_op(node, "ConstantOfShape", 1)) {
        const struct lk_onnx_attribute *said = lk_onnx_find_attribute(node, "value");
        return !said || is_number(said->tensor, 0);
    }
    for (int64_t i = 0; known && i < known->count; i++)
        if (lk_onnx_real(known, i) != 0)
            return false;
    return known != NULL;
}

/* --- products and biases ------------------------------------------------------------------ */

/* A part of x: the step of that number. */
static bool is_step(struct lk_loop *l, const char *name)
{
    int output;
    int64_t more;
    const struct lk_onnx_node *node = made_by(l, name, &output);
    if (!is_op(node, "Gather", 2) || say(node, "axis", 0) != 0 ||
        !is_counted(l, node->inputs[1], &more) || more)
        return false;
    const char *outside = find_outside(l, node->inputs[0]);
    if (!outside || (l->x && strcmp(l->x, outside) != 0))
        return false;
    l->x = outside;
    return true;
}

static struct lk_loop_row row_of(const struct lk_loop *l, const char *name)
{
    int output;
    const struct lk_onnx_tensor *all = tensor_of(l, name);
    if (all)
        return (struct lk_loop_row){all, 0, all->count};
    const struct lk_onnx_node *node = made_by(l, name, &output);
    if (is_op(node, "Squeeze", 1))
        node = made_by(l, node->inputs[0], &output);
    all = is_op(node, "Split", 1) && say(node, "axis", 0) == 0 ? tensor_of(l, node->inputs[0])
                                                               : NULL;
    if (!all || all->rank != 2 || all->dim[0] != node->output_count)
        return (struct lk_loop_row){NULL, 0, 0};
    return (struct lk_loop_row){all, output * all->dim[1], all->dim[1]};
}

/* A MatMul, or a Gemm that only adds something to it. */
static bool is_product(const struct lk_onnx_node *node)
{
    static const char *const factors[] = {"alpha", "beta"};
    if (!is_op(node, "Gemm", 2))
        return is_op(node, "MatMul", 2);
    for (int i = 0; i < LK_COUNT(factors); i++) {
        const struct lk_onnx_attribute *said = lk_onnx_find_attribute(node, factors[i]);
        if (said && (said->kind != LK_ONNX_REAL || said->real != 1))
            return false;
    }
    return say(node, "transA", 0) == 0 && say(node, "transB", 0) == 0;
}

/* Adds what a name is a sum of. */
static bool add_terms(struct lk_loop *l, const char *name, struct lk_loop_sum *sum, int depth)
{
    int output;
    const struct lk_onnx_node *node = made_by(l, name, &output);
    const struct lk_loop_row row = row_of(l, name);
    if (row.of && sum->biases < 2) {
        sum->bias[sum->biases++] = row;
        return true;
    }
    if (is_product(node)) {
        const bool is_given = is_step(l, node->inputs[0]);
        const struct lk_onnx_tensor **matrix = is_given ? &sum->w : &sum->r;
        if (*matrix || (!is_given && find_input(l, node->inputs[0]) != l->state))
            return false;
        *matrix = tensor_of(l, node->inputs[1]);
        if (!*matrix || (*matrix)->rank != 2 || node->input_count < 3 || !*node->inputs[2])
            return *matrix && (*matrix)->rank == 2;
        return depth > 0 && add_terms(l, node->inputs[2], sum, depth - 1);
    }
    return depth > 0 && is_op(node, "Add", 2) &&
           add_terms(l, node->inputs[0], sum, depth - 1) &&
           add_terms(l, node->inputs[1], sum, depth - 1);
}

/* --- gates of a GRU ----------------------------------------------------------------------- */

/* Which third of the columns of a value a Slice takes; -1: none. */
static int find_third(const struct lk_loop *l, const struct lk_onnx_node *node)
{
    const struct lk_onnx_tensor *list[3];
    int third = -1;
    for (int i = 0; i < 3; i++)
        list[i] = tensor_of(l, node->inputs[1 + i]);
    if (!list[0] || !list[1] || !list[2] || list[1]->count != list[0]->count ||
        list[2]->count != list[0]->count || node->input_count > 5)
        return -1;
    const struct lk_onnx_tensor *steps =
        node->input_count == 5 && *node->inputs[4] ? tensor_of(l, node->inputs[4]) : NULL;
    for (int64_t i = 0; steps && i < steps->count; i++)
        if (lk_onnx_integer(steps, i) != 1)
            return -1;
    for (int64_t i = 0; i < list[0]->count; i++) {
        const int64_t first = lk_onnx_integer(list[0], i), end = lk_onnx_integer(list[1], i);
        if (lk_onnx_integer(list[2], i) == 1 && first % l->units == 0 && first >= 0 &&
            first < 3 * l->units &&
            (end == first + l->units || (first == 2 * l->units && end >= 3 * l->units)))
            third = (int)(first / l->units);
        else if (lk_onnx_integer(list[2], i) != 0 || first != 0 || end < INT32_MAX)
            return -1;
    }
    return third;
}

/* Whether two gates are parts of the same sum. */
static bool is_same(const struct lk_loop_sum *a, const struct lk_loop_sum *b)
{
    bool is = a->w == b->w && a->r == b->r && a->biases == b->biases;
    for (int i = 0; is && i < a->biases; i++)
        is = a->bias[i].of == b->bias[i].of && a->bias[i].first == b->bias[i].first &&
             a->bias[i].count == b->bias[i].count;
    return is;
}

/* Gate of a value: a third of what is computed of x, or of the state. */
static bool is_gate(struct lk_loop *l, const char *name, int *gate, bool *is_given)
{
    int output;
    const struct lk_onnx_node *node = made_by(l, name, &output);
    const bool splits = is_op(node, "Split", 1) && node->output_count == 3 &&
                        (say(node, "axis", 0) == 1 || say(node, "axis", 0) == -1) &&
                        node->input_count == 1 && !lk_onnx_find_attribute(node, "split");
    struct lk_loop_sum sum = {0};
    *gate = splits ? output : is_op(node, "Slice", 4) ? find_third(l, node) : -1;
    if (*gate < 0 || !add_terms(l, node->inputs[0], &sum, 2) || !sum.w == !sum.r ||
        sum.biases > 1)
        return false;
    *is_given = sum.w != NULL;
    struct lk_loop_sum *known = *is_given ? &l->given : &l->carried;
    if ((known->w || known->r) && !is_same(known, &sum))
        return false;
    *known = sum;
    return true;
}

/* function(gate of x + gate of the state), where the latter may be times `by`. */
static bool is_function(struct lk_loop *l, const char *name, const char *function, int wanted,
                        const char **by)
{
    int output, gate;
    bool is_given;
    const struct lk_onnx_node *node = made_by(l, name, &output);
    node = is_op(node, function, 1) ? made_by(l, node->inputs[0], &output) : NULL;
    if (!is_op(node, "Add", 2))
        return false;
    for (int i = 0; i < 2; i++) {
        if (!is_gate(l, node->inputs[i], &gate, &is_given) || !is_given || gate != wanted)
            continue;
        const char *other = node->inputs[1 - i];
        if (!by)
            return is_gate(l, other, &gate, &is_given) && !is_given && gate == wanted;
        const struct lk_onnx_node *product = made_by(l, other, &output);
        for (int k = 0; is_op(product, "Mul", 2) && k < 2; k++)
            if (is_gate(l, product->inputs[k], &gate, &is_given) && !is_given &&
                gate == wanted) {
                *by = product->inputs[1 - k];
                return true;
            }
    }
    return false;
}

/* z state + (1 - z) tanh(...), with the reset behind the product. */
static bool is_gru(struct lk_loop *l, const char *name)
{
    int output;
    const char *reset = NULL;
    const struct lk_onnx_node *node = made_by(l, name, &output), *part[2], *one;
    if (!is_op(node, "Add", 2))
        return false;
    for (int i = 0; i < 2; i++)
        part[i] = made_by(l, node->inputs[i], &output);
    if (!is_op(part[0], "Mul", 2) || !is_op(part[1], "Mul", 2))
        return false;
    for (int k = 0; k < 8; k++) { /* all products may be turned round */
        const struct lk_onnx_node *keeps = part[k & 1], *takes = part[1 - (k & 1)];
        const char *z = keeps->inputs[k >> 1 & 1], *rest = takes->inputs[k >> 2];
        one = made_by(l, rest, &output);
        if (find_input(l, keeps->inputs[1 - (k >> 1 & 1)]) == l->state &&
            is_op(one, "Sub", 2) && is_number(tensor_of(l, one->inputs[0]), 1) &&
            made_by(l, one->inputs[1], &output) == made_by(l, z, &output))
            return is_function(l, z, "Sigmoid", 0, NULL) &&
                   is_function(l, takes->inputs[1 - (k >> 2)], "Tanh", 2, &reset) &&
                   is_function(l, reset, "Sigmoid", 1, NULL);
    }
    return false;
}

static bool is_rnn(struct lk_loop *l, const char *name)
{
    int output;
    const struct lk_onnx_node *node = made_by(l, name, &output);
    if (!is_op(node, "Tanh", 1) && !is_op(node, "Relu", 1))
        return false;
    l->function = node->op;
    return add_terms(l, node->inputs[0], &l->given, 4) && l->given.w && l->given.r;
}

/* --- the loop ----------------------------------------------------------------------------- */

/* What is carried: a counter from 0 on, the state, and what never changes. One output has the
 * states of all steps. */
static bool find_carried(struct lk_loop *l)
{
    const int carried = l->node->input_count - 2;
    const struct lk_onnx_graph *body = l->body->of;
    l->counter = l->state = -1;
    if (carried < 1 || body->input_count != carried + 2 || body->output_count != carried + 2 ||
        l->node->output_count != carried + 1)
        return false;
    const char *states = skip_identities(l->body, body->outputs[carried + 1].name);
    for (int i = 2; i < carried + 2; i++) {
        int output;
        const char *next = body->outputs[i - 1].name;
        const struct lk_onnx_node *node = made_by(l, next, &output);
        if (find_input(l, next) == i)
            continue;
        if (strcmp(skip_identities(l->body, next), states) == 0)
            l->state = i;
        else if (is_op(node, "Add", 2) &&
                 is_number(find_constant(l->file, l->node->inputs[i]), 0) &&
                 (find_input(l, node->inputs[0]) == i
                      ? is_number(tensor_of(l, node->inputs[1]), 1)
                      : find_input(l, node->inputs[1]) == i &&
                            is_number(tensor_of(l, node->inputs[0]), 1)))
            l->counter = i;
        else
            return false;
    }
    if (l->state < 0 || !is_zero(l->file, l->node->inputs[l->state]))
        return false;
    l->name = l->node->outputs[*l->node->outputs[carried] ? carried : l->state - 2];
    return *l->name != '\0';
}

static bool has_shapes(struct lk_loop *l)
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

bool lk_loop_recognize(struct lk_loop *l)
{
    const struct lk_onnx_graph *body = l->body->of;
    const struct lk_onnx_tensor *steps = find_constant(l->file, l->node->inputs[0]);
    if (!steps || steps->count != 1 || !begins(l->file, l->node->inputs[1], 4) ||
        !find_carried(l))
        return false;
    l->steps = lk_onnx_integer(steps, 0);
    const char *states = body->outputs[body->output_count - 1].name;
    if (l->steps < 1 || !goes_on(l, body->outputs[0].name, 4))
        return false;
    l->gates = 1;
    if (is_rnn(l, states)) {
        l->units = l->given.r->dim[0];
        return has_shapes(l);
    }
    l->gates = 3;
    for (int i = 0; i < body->node_count; i++) { /* the state's product says its length */
        const struct lk_onnx_node *node = &body->nodes[i];
        if (!is_product(node) || find_input(l, node->inputs[0]) != l->state)
            continue;
        const struct lk_onnx_tensor *r = tensor_of(l, node->inputs[1]);
        l->units = r && r->rank == 2 ? r->dim[0] : 0;
        break;
    }
    l->given = l->carried = (struct lk_loop_sum){0};
    l->x = NULL;
    return l->units > 0 && is_gru(l, states) && has_shapes(l);
}

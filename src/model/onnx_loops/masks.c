/* Masks of time steps, as TensorFlow's converter writes those of Keras: a step that does not
 * count leaves states as they are. Where a mask says which tokens are not 0, these come with
 * their length, as in models of Keras: what is padded comes last. */
#include "model/onnx_loops/loops.h"

#include "base/fail.h"
#include <string.h>

/* --- choices ------------------------------------------------------------------------------ */

/* The mask whose step a name is, as 1 and 0. NULL: it is none. */
static const char *find_mask(const struct lk_loop *l, const char *name, bool is_turned)
{
    int output;
    const struct lk_onnx_node *node = lk_loop_maker(l, name, &output);
    if (!lk_loop_takes(node, "Cast", 1) || lk_loop_say(node, "to", 0) != LK_ONNX_FLOAT)
        return NULL;
    name = node->inputs[0];
    if (is_turned) {
        node = lk_loop_maker(l, name, &output);
        if (!lk_loop_takes(node, "Not", 1))
            return NULL;
        name = node->inputs[0];
    }
    return lk_loop_find_step(l, name);
}

/* A Mul by the step of a mask; *other: what is multiplied. NULL: it is none. */
static const char *find_product(const struct lk_loop *l, const char *name, bool is_turned,
                                const char **other)
{
    int output;
    const struct lk_onnx_node *node = lk_loop_maker(l, name, &output);
    for (int k = 0; lk_loop_takes(node, "Mul", 2) && k < 2; k++) {
        const char *mask = find_mask(l, node->inputs[k], is_turned);
        *other = node->inputs[1 - k];
        if (mask)
            return mask;
    }
    return NULL;
}

bool lk_loop_is_choice(struct lk_loop *l, const char *name, const char **now, const char **old)
{
    int output;
    const char *one, *two, *mask = NULL;
    const struct lk_onnx_node *node = lk_loop_maker(l, name, &output);
    if (lk_loop_takes(node, "Where", 3)) {
        mask = lk_loop_find_step(l, node->inputs[0]);
        one = node->inputs[1];
        two = node->inputs[2];
    }
    for (int i = 0; lk_loop_takes(node, "Add", 2) && !mask && i < 2; i++) {
        const char *kept = find_product(l, node->inputs[1 - i], true, &two);
        mask = find_product(l, node->inputs[i], false, &one);
        if (!mask || !kept || strcmp(mask, kept) != 0)
            mask = NULL;
    }
    if (!mask || (l->mask && strcmp(mask, l->mask) != 0))
        return false;
    l->mask = mask;
    *now = lk_loop_skip(l->body, one);
    *old = lk_loop_skip(l->body, two);
    return true;
}

/* --- what is turned ----------------------------------------------------------------------- */

/* The node of that operator that makes a name of the file; NULL: another one does. */
static const struct lk_onnx_node *find_node(const struct lk_loop_graph *file, const char *name,
                                            const char *op, int inputs)
{
    int output;
    const struct lk_onnx_node *node =
        lk_loop_find_maker(file, lk_loop_skip(file, name), &output);
    return lk_loop_takes(node, op, inputs) ? node : NULL;
}

/* Whether a node has its samples and time steps changed. */
static bool swaps(const struct lk_onnx_node *node)
{
    static const int64_t wanted[] = {1, 0, 2};
    const struct lk_onnx_attribute *order = lk_onnx_find_attribute(node, "perm");
    return order && order->kind == LK_ONNX_INTEGERS && order->count == 3 &&
           memcmp(order->integers, wanted, sizeof wanted) == 0;
}

const char *lk_loop_find_root(const struct lk_loop_graph *file, const char *name, bool *is_odd)
{
    enum { MOST = 8 };
    *is_odd = false;
    name = lk_loop_skip(file, name);
    for (int i = 0; i < MOST; i++) {
        const struct lk_onnx_node *node = find_node(file, name, "Transpose", 1);
        if (!node || !swaps(node))
            break;
        name = lk_loop_skip(file, node->inputs[0]);
        *is_odd = !*is_odd;
    }
    return name;
}

/* Whether a number is the length of the first axis of a sequence: it is known, or asked for. */
static bool is_length(const struct lk_loop_graph *file, const char *name, const char *sequence,
                      int64_t steps)
{
    bool is_odd[2];
    const struct lk_onnx_tensor *known = lk_loop_find_constant(file, name);
    if (known)
        return lk_loop_is_number(known, (double)steps);
    const struct lk_onnx_node *take = find_node(file, name, "Gather", 2);
    const struct lk_onnx_node *shape = take && lk_loop_say(take, "axis", 0) == 0
                                           ? find_node(file, take->inputs[0], "Shape", 1)
                                           : NULL;
    if (!shape || shape->attribute_count > 0)
        return false;
    const char *one = lk_loop_find_root(file, shape->inputs[0], &is_odd[0]);
    const char *other = lk_loop_find_root(file, sequence, &is_odd[1]);
    return strcmp(one, other) == 0 &&
           lk_loop_is_number(lk_loop_find_constant(file, take->inputs[1]),
                             is_odd[0] != is_odd[1]);
}

bool lk_loop_turns(const struct lk_loop_graph *file, const struct lk_onnx_node *node,
                   int64_t steps)
{
    if (!lk_loop_takes(node, "ReverseSequence", 2) || lk_loop_say(node, "batch_axis", 1) != 1 ||
        lk_loop_say(node, "time_axis", 0) != 0)
        return false;
    const struct lk_onnx_tensor *known = lk_loop_find_constant(file, node->inputs[1]);
    const struct lk_onnx_node *all = find_node(file, node->inputs[1], "Expand", 2);
    for (int64_t i = 0; known && i < known->count; i++)
        if (lk_onnx_integer(known, i) != steps)
            return false;
    return known || (all && is_length(file, all->inputs[0], node->inputs[0], steps));
}

/* --- tokens ------------------------------------------------------------------------------- */

/* Whether Unsqueeze adds an axis behind two. */
static bool adds_last(const struct lk_loop_graph *file, const struct lk_onnx_node *node)
{
    int64_t axis = 0;
    const struct lk_onnx_attribute *said = lk_onnx_find_attribute(node, "axes");
    const struct lk_onnx_tensor *axes =
        node->input_count > 1 ? lk_loop_find_constant(file, node->inputs[1]) : NULL;
    if (axes && axes->count == 1)
        axis = lk_onnx_integer(axes, 0);
    if (!axes && said && said->kind == LK_ONNX_INTEGERS && said->count == 1)
        axis = said->integers[0];
    return axis == -1 || axis == 2;
}

/* The tokens [n, t] of an input of which [t, n, 1] tells which are not 0; NULL: it is not so.
 */
static const struct lk_onnx_port *find_tokens(const struct lk_loop *l, const char *mask)
{
    bool is_odd;
    const struct lk_loop_graph *file = l->file;
    const struct lk_onnx_node *axis =
        find_node(file, lk_loop_find_root(file, mask, &is_odd), "Unsqueeze", 1);
    const struct lk_onnx_node *not = axis && is_odd && adds_last(file, axis)
                                         ? find_node(file, axis->inputs[0], "Not", 1)
                                         : NULL;
    const struct lk_onnx_node *equal =
        not ? find_node(file, not ->inputs[0], "Equal", 2) : NULL;
    for (int i = 0; equal && i < 2; i++) {
        const struct lk_loop_name *found =
            lk_loop_find(file, lk_loop_skip(file, equal->inputs[i]));
        if (!found || found->input < 0 || found->constant ||
            !lk_loop_is_number(lk_loop_find_constant(file, equal->inputs[1 - i]), 0))
            continue;
        const struct lk_onnx_port *port = &file->of->inputs[found->input];
        return port->rank == 2 && port->dim[1] == l->steps && lk_onnx_is_whole(port->type)
                   ? port
                   : NULL;
    }
    return NULL;
}

bool lk_loop_find_tokens(struct lk_loop *l)
{
    const char *x = l->x, *mask = l->mask;
    const struct lk_onnx_node *turn[] = {find_node(l->file, x, "ReverseSequence", 2),
                                         find_node(l->file, mask, "ReverseSequence", 2)};
    if (turn[1]) {
        if (!turn[0] || !lk_loop_turns(l->file, turn[0], l->steps) ||
            !lk_loop_turns(l->file, turn[1], l->steps))
            return false;
        x = turn[0]->inputs[0];
        mask = turn[1]->inputs[0];
        l->turned = turn[0]->inputs[1];
    }
    l->tokens = find_tokens(l, mask);
    l->x = x;
    return l->tokens != NULL;
}

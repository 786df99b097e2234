/* Recognizes loops: each value of a body is followed back to what it is made of. */
#include "model/onnx_loops/loops.h"

#include "base/fail.h"
#include <string.h>

enum { MOST_DEPTH = 8, MOST_STATES = 3 };

/* --- steps -------------------------------------------------------------------------------- */

/* The counter, or one more. */
static bool is_counted(const struct lk_loop *l, const char *name, int64_t *more)
{
    int output;
    const struct lk_onnx_node *node = lk_loop_maker(l, name, &output);
    for (int i = 0; i < MOST_DEPTH && lk_loop_takes(node, "Cast", 1); i++) {
        name = node->inputs[0];
        node = lk_loop_maker(l, name, &output);
    }
    *more = lk_loop_takes(node, "Add", 2);
    if (*more)
        name = node->inputs[lk_loop_is_number(lk_loop_tensor(l, node->inputs[0]), 1)];
    const int input = lk_loop_find_input(l, name);
    return input >= 0 && (input == 0 || input == l->counter) &&
           (!*more || lk_loop_is_number(lk_loop_tensor(l, node->inputs[0]), 1) ||
            lk_loop_is_number(lk_loop_tensor(l, node->inputs[1]), 1));
}

/* Whether the body goes on until the last step. */
static bool goes_on(const struct lk_loop *l, const char *name, int depth)
{
    int output;
    int64_t more;
    const struct lk_onnx_node *node = lk_loop_maker(l, name, &output);
    if (lk_loop_find_input(l, name) == 1)
        return true;
    if (depth > 0 && lk_loop_takes(node, "And", 2))
        return goes_on(l, node->inputs[0], depth - 1) && goes_on(l, node->inputs[1], depth - 1);
    const struct lk_onnx_tensor *end =
        lk_loop_takes(node, "Less", 2) ? lk_loop_tensor(l, node->inputs[1]) : NULL;
    return end && end->count == 1 && is_counted(l, node->inputs[0], &more) &&
           (double)(l->steps - 2 + more) < lk_onnx_real(end, 0);
}

/* Whether the loop begins at all. */
static bool begins(const struct lk_loop_graph *file, const char *name, int depth)
{
    int output;
    const struct lk_onnx_tensor *known = lk_loop_find_constant(file, name);
    const struct lk_onnx_node *node = lk_loop_find_maker(file, name, &output);
    if (!*name || known)
        return !known || (known->count == 1 && lk_onnx_real(known, 0) != 0);
    if (depth > 0 && lk_loop_takes(node, "And", 2))
        return begins(file, node->inputs[0], depth - 1) &&
               begins(file, node->inputs[1], depth - 1);
    if (!lk_loop_takes(node, "Less", 2))
        return false;
    const struct lk_onnx_tensor *a = lk_loop_find_constant(file, node->inputs[0]),
                                *b = lk_loop_find_constant(file, node->inputs[1]);
    return a && b && a->count == 1 && b->count == 1 && lk_onnx_real(a, 0) < lk_onnx_real(b, 0);
}

bool lk_loop_is_zero(const struct lk_loop_graph *file, const char *name)
{
    int output;
    const struct lk_onnx_tensor *known = lk_loop_find_constant(file, name);
    const struct lk_onnx_node *node = lk_loop_find_maker(file, name, &output);
    if (lk_loop_takes(node, "Expand", 2))
        return lk_loop_is_number(lk_loop_find_constant(file, node->inputs[0]), 0);
    if (lk_loop_takes(node, "ConstantOfShape", 1)) {
        const struct lk_onnx_attribute *said = lk_onnx_find_attribute(node, "value");
        return !said || lk_loop_is_number(said->tensor, 0);
    }
    for (int64_t i = 0; known && i < known->count; i++)
        if (lk_onnx_real(known, i) != 0)
            return false;
    return known != NULL;
}

const char *lk_loop_find_step(const struct lk_loop *l, const char *name)
{
    int output;
    int64_t more;
    const struct lk_onnx_node *node = lk_loop_maker(l, name, &output);
    if (!lk_loop_takes(node, "Gather", 2) || lk_loop_say(node, "axis", 0) != 0 ||
        !is_counted(l, node->inputs[1], &more) || more)
        return NULL;
    return lk_loop_find_outside(l, node->inputs[0]);
}

/* --- what is carried ---------------------------------------------------------------------- */

/* A counter from 0 on. */
static bool is_counter(const struct lk_loop *l, int input)
{
    int output;
    const struct lk_onnx_node *node =
        lk_loop_maker(l, l->body->of->outputs[input - 1].name, &output);
    if (!lk_loop_takes(node, "Add", 2) ||
        !lk_loop_is_number(lk_loop_find_constant(l->file, l->node->inputs[input]), 0))
        return false;
    const int other = lk_loop_find_input(l, node->inputs[0]) == input;
    return lk_loop_find_input(l, node->inputs[1 - other]) == input &&
           lk_loop_is_number(lk_loop_tensor(l, node->inputs[other]), 1);
}

/* Which state an input of the body is: all begin with zeros, and where a step does not count
 * they stay. `all`: what the body gives of each step, l->h or else `kept`. */
static bool tell_state(struct lk_loop *l, int input, const char *all, const char *kept)
{
    const char *now, *old;
    const char *next = lk_loop_skip(l->body, l->body->of->outputs[input - 1].name);
    if (l->mask && strcmp(next, all) == 0) {
        l->previous = input;
        return lk_loop_find_input(l, kept) != input || /* or else nothing reads it */
               lk_loop_is_zero(l->file, l->node->inputs[input]);
    }
    now = next;
    if (l->mask &&
        (!lk_loop_is_choice(l, next, &now, &old) || lk_loop_find_input(l, old) != input))
        return false;
    const bool is_h = strcmp(now, l->h) == 0;
    if ((is_h ? l->state : l->cell) >= 0)
        return false;
    *(is_h ? &l->state : &l->cell) = input;
    l->c = is_h ? l->c : now;
    return lk_loop_is_zero(l->file, l->node->inputs[input]);
}

static bool tell_states(struct lk_loop *l, const char *all, const int *states, int count)
{
    const char *kept = NULL;
    if (!lk_loop_is_choice(l, all, &l->h, &kept))
        l->h = all;
    for (int i = 0; i < count; i++)
        if (!tell_state(l, states[i], all, kept))
            return false;
    if (!l->mask)
        return l->state >= 0;
    const int from = lk_loop_find_input(l, kept);
    const char *zero = lk_loop_find_outside(l, kept);
    if (l->state < 0 && from == l->previous) { /* the state is what the loop gives */
        l->state = l->previous;
        l->previous = -1;
    }
    const bool keeps = from >= 0 && (from == l->state || from == l->previous);
    l->masked = keeps ? LK_LOOP_KEEPS : LK_LOOP_ZEROES;
    return l->state >= 0 && (keeps || (zero && lk_loop_is_zero(l->file, zero)));
}

/* Counters, states, and what never changes. One output has the states of all steps. */
static bool find_carried(struct lk_loop *l)
{
    int states[MOST_STATES], count = 0;
    const int carried = l->node->input_count - 2;
    const struct lk_onnx_graph *body = l->body->of;
    l->counter = l->state = l->cell = l->previous = -1;
    if (carried < 1 || body->input_count != carried + 2 || body->output_count != carried + 2 ||
        l->node->output_count != carried + 1)
        return false;
    for (int i = 2; i < carried + 2; i++) {
        if (lk_loop_find_input(l, body->outputs[i - 1].name) == i)
            continue;
        if (is_counter(l, i))
            l->counter = i;
        else if (count < MOST_STATES)
            states[count++] = i;
        else
            return false;
    }
    const char *all = lk_loop_skip(l->body, body->outputs[carried + 1].name);
    if (!tell_states(l, all, states, count))
        return false;
    l->name = l->node->outputs[*l->node->outputs[carried] ? carried : l->state - 2];
    return *l->name != '\0';
}

/* --- the loop ----------------------------------------------------------------------------- */

bool lk_loop_recognize(struct lk_loop *l)
{
    const struct lk_onnx_tensor *steps = lk_loop_find_constant(l->file, l->node->inputs[0]);
    if (!steps || steps->count != 1 || !begins(l->file, l->node->inputs[1], 4) ||
        !find_carried(l))
        return false;
    l->steps = lk_onnx_integer(steps, 0);
    return l->steps >= 1 && goes_on(l, l->body->of->outputs[0].name, 4) && lk_loop_is_cell(l);
}

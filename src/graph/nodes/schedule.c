/* Puts nodes into the order in which they run, fuses them and finds what has a gradient. */
#include "graph/nodes/schedule.h"

#include "base/fail.h"
#include <string.h>

/* Marks the nodes that the outputs need. Inputs come before their readers, so one walk from the
 * back reaches everything. */
static void mark_needed(const struct lk_node *const *outputs, bool *needed)
{
    const struct lk_graph *graph = outputs[0]->graph;
    for (int i = 0; outputs[i]; i++)
        needed[outputs[i]->index] = true;
    for (int i = graph->count - 1; i >= 0; i--) {
        const struct lk_node *n = graph->nodes[i];
        for (int j = 0; needed[i] && j < n->inputs; j++)
            needed[n->input_nodes[j]->index] = true;
    }
}

static bool is_view(const struct lk_node *node, bool training)
{
    return node->op && (node->op->is_view || (node->op->only_trains && !training));
}

static enum lk_status add_op(struct lk_schedule *schedule, const struct lk_node *node,
                             const int *value_of)
{
    struct lk_scheduled_op *scheduled = &schedule->ops[schedule->op_count];
    *scheduled = (struct lk_scheduled_op){.node = node, .op = node->op, .shapes = node->shapes};
    LK_TRY(
        lk_arena_allocate(&schedule->arena, node->op->options_bytes + 1, &scheduled->options));
    memcpy(scheduled->options, node->options, node->op->options_bytes);
    scheduled->shapes.options = scheduled->options;
    for (int i = 0; i < node->inputs; i++)
        scheduled->x[i] = value_of[node->input_nodes[i]->index];
    scheduled->y = value_of[node->index];
    schedule->values[scheduled->y].producer = schedule->op_count++;
    return LK_OK;
}

static enum lk_status add_node(struct lk_schedule *schedule, const struct lk_node *node,
                               int *value_of)
{
    if (is_view(node, schedule->training)) {
        value_of[node->index] = value_of[node->input_nodes[0]->index];
        return LK_OK;
    }
    const int value = schedule->value_count++;
    value_of[node->index] = value;
    schedule->values[value] = (struct lk_value){
        .shape = node->shapes.y,
        .dtype = !node->op && node->input.dtype == LK_I32 ? LK_I32 : LK_F32,
        .input = node->op ? NULL : node,
        .producer = -1,
    };
    return node->op ? add_op(schedule, node, value_of) : LK_OK;
}

bool lk_schedule_is_output(const struct lk_schedule *schedule, int value)
{
    for (int i = 0; i < schedule->output_count; i++)
        if (schedule->outputs[i] == value)
            return true;
    return false;
}

int lk_schedule_readers(const struct lk_schedule *schedule, int value)
{
    int readers = lk_schedule_is_output(schedule, value);
    for (int i = 0; i < schedule->op_count; i++)
        for (int j = 0; j < schedule->ops[i].shapes.inputs; j++)
            readers += schedule->ops[i].x[j] == value;
    return readers;
}

int lk_schedule_first_use(const struct lk_schedule *schedule, int i)
{
    const struct lk_node *owner = lk_node_owner(schedule->ops[i].node);
    for (int first = 0; first < i; first++)
        if (schedule->ops[first].shapes.params > 0 &&
            lk_node_owner(schedule->ops[first].node) == owner)
            return first;
    return i;
}

/* The operation that alone reads the value made by operation i, as its first input; -1: none.
 */
static int only_reader(const struct lk_schedule *schedule, int i)
{
    const int value = schedule->ops[i].y;
    if (lk_schedule_readers(schedule, value) != 1)
        return -1;
    for (int j = i + 1; j < schedule->op_count; j++)
        if (schedule->ops[j].x[0] == value)
            return j;
    return -1;
}

/* Whether operation j can be part of i: it reads what i makes in its own shape, with no flatten
 * or reshape between, and everything but its first input is there when i runs. */
static bool can_absorb(const struct lk_schedule *schedule, int i, int j)
{
    const struct lk_scheduled_op *next = &schedule->ops[j];
    if (!lk_shape_equal(&next->shapes.x[0], &schedule->ops[i].shapes.y))
        return false;
    for (int k = 1; k < next->shapes.inputs; k++)
        if (schedule->values[next->x[k]].producer >= i)
            return false;
    return next->shapes.params == 0 &&
           schedule->ops[i].shapes.inputs + next->shapes.inputs - 1 <= LK_MOST_INPUTS;
}

static void remove_op(struct lk_schedule *schedule, int at)
{
    memmove(&schedule->ops[at], &schedule->ops[at + 1],
            (size_t)(schedule->op_count - at - 1) * sizeof schedule->ops[0]);
    schedule->op_count--;
    for (int i = 0; i < schedule->op_count; i++)
        schedule->values[schedule->ops[i].y].producer = i;
}

/* Lets operation i absorb the one behind it, for as long as that succeeds. */
static enum lk_status fuse(struct lk_schedule *schedule, int i)
{
    struct lk_scheduled_op *scheduled = &schedule->ops[i];
    int j;
    while (scheduled->op->absorb && (j = only_reader(schedule, i)) >= 0 &&
           can_absorb(schedule, i, j)) {
        const struct lk_scheduled_op *next = &schedule->ops[j];
        char text[1024];
        if (!lk_options_print(next->op->options, next->options, true, text, sizeof text) ||
            !scheduled->op->absorb(scheduled->options, next->op->name, text))
            break;
        if (lk_node_place(next->node) != lk_node_place(scheduled->node))
            scheduled->misplaced = next->node;
        for (int k = 1; k < next->shapes.inputs; k++) {
            scheduled->x[scheduled->shapes.inputs] = next->x[k];
            scheduled->shapes.x[scheduled->shapes.inputs] = next->shapes.x[k];
            scheduled->shapes.x_dtype[scheduled->shapes.inputs++] = next->shapes.x_dtype[k];
        }
        scheduled->y = next->y;
        remove_op(schedule, j);
        const enum lk_status status = scheduled->op->infer(&scheduled->shapes);
        if (status != LK_OK)
            return lk_fail_within(status, "%s", scheduled->node->name);
    }
    return LK_OK;
}

/* Finds where a relu's part of backward can be done by another operation. One that ends in a
 * relu must zero the gradient where its output is not > 0. If a single operation reads that
 * output, it has the output in memory anyway and may write the zeros itself. */
static void find_gates(struct lk_schedule *schedule)
{
    for (int i = 0; i < schedule->op_count; i++)
        for (int j = 0; j < schedule->ops[i].shapes.inputs; j++) {
            struct lk_scheduled_op *scheduled = &schedule->ops[i];
            const int value = scheduled->x[j], producer = schedule->values[value].producer;
            scheduled->asks_gate[j] = scheduled->wants_dx[j] && producer >= 0 &&
                                      schedule->ops[producer].shapes.is_gate &&
                                      lk_schedule_readers(schedule, value) == 1;
        }
}

static void find_gradients(struct lk_schedule *schedule)
{
    for (int i = 0; i < schedule->op_count; i++) {
        struct lk_scheduled_op *scheduled = &schedule->ops[i];
        scheduled->wants_dw =
            lk_node_owner(scheduled->node)->is_trainable && scheduled->shapes.params > 0;
        scheduled->has_backward = scheduled->wants_dw;
        for (int j = 0; j < scheduled->shapes.inputs; j++) {
            scheduled->wants_dx[j] = schedule->values[scheduled->x[j]].wants_gradient;
            scheduled->has_backward |= scheduled->wants_dx[j];
        }
        schedule->values[scheduled->y].wants_gradient =
            scheduled->has_backward && !scheduled->shapes.is_loss &&
            !lk_schedule_is_output(schedule, scheduled->y);
    }
}

/* For each node an operation and its value, and one that turns or spreads it (graph/planes),
 * which an input has for each reader. */
static size_t most_ops(const struct lk_graph *graph)
{
    size_t most = 2 * (size_t)graph->count;
    for (int i = 0; i < graph->count; i++)
        most += (size_t)graph->nodes[i]->inputs;
    return most;
}

enum lk_status lk_schedule_make(const struct lk_node *const *outputs, bool training,
                                struct lk_schedule *schedule)
{
    const struct lk_graph *graph = outputs[0]->graph;
    const size_t count = (size_t)graph->count, most = most_ops(graph);
    struct lk_schedule made = {.training = training};
    void *memory = NULL;
    enum lk_status status;
    LK_TRY_OUT(lk_arena_allocate(&made.arena, most * sizeof *made.ops, &memory));
    made.ops = memory;
    LK_TRY_OUT(lk_arena_allocate(&made.arena, most * sizeof *made.values, &memory));
    made.values = memory;
    LK_TRY_OUT(lk_arena_allocate(&made.arena, count * sizeof(bool), &memory));
    bool *needed = memory;
    LK_TRY_OUT(lk_arena_allocate(&made.arena, count * sizeof(int), &memory));
    int *value_of = memory;
    mark_needed(outputs, needed);
    for (size_t i = 0; i < count; i++)
        if (needed[i])
            LK_TRY_OUT(add_node(&made, graph->nodes[i], value_of));
    for (; outputs[made.output_count]; made.output_count++)
        made.outputs[made.output_count] = value_of[outputs[made.output_count]->index];
    for (int i = 0; i < made.op_count; i++)
        LK_TRY_OUT(fuse(&made, i));
    if (training) {
        find_gradients(&made);
        find_gates(&made);
    }
    *schedule = made;
    return LK_OK;
out:
    lk_schedule_clear(&made);
    return status;
}

void lk_schedule_describe(const struct lk_schedule *schedule, int i, struct lk_op_setup *setup)
{
    const struct lk_scheduled_op *scheduled = &schedule->ops[i];
    *setup = (struct lk_op_setup){.node = scheduled->node->name,
                                  .options = scheduled->options,
                                  .shapes = scheduled->shapes,
                                  .wants_dw = scheduled->wants_dw,
                                  .dy_is_gated = schedule->values[scheduled->y].is_gated};
    memcpy(setup->wants_dx, scheduled->wants_dx, sizeof setup->wants_dx);
    memcpy(setup->asks_gate, scheduled->asks_gate, sizeof setup->asks_gate);
}

void lk_schedule_note_gates(struct lk_schedule *schedule, int i,
                            const struct lk_op_setup *setup)
{
    for (int j = 0; j < setup->shapes.inputs; j++)
        schedule->values[schedule->ops[i].x[j]].is_gated |= setup->gates_dx[j];
}

void lk_schedule_clear(struct lk_schedule *schedule)
{
    lk_arena_clear(&schedule->arena);
}

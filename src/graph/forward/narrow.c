/* Schedules one time step in place of whole sequences, so that a replica computes them one
 * after the other: each operation either needs no other step or keeps what it needs of earlier
 * ones. */
#include "base/fail.h"
#include "graph/replica_internal.h"
#include <string.h>

static bool is_sequence(const struct lk_value *value, int64_t steps)
{
    const int rank = value->shape.rank;
    return rank == (value->dtype == LK_I32 ? 1 : 2) && value->shape.dim[0] == steps;
}

static bool is_length(const struct lk_value *value)
{
    return value->input && value->input->sequence;
}

/* How many time steps the inputs have: as many as the first of them that is a sequence. */
static int64_t steps_of(const struct lk_schedule *schedule)
{
    for (int v = 0; v < schedule->value_count; v++)
        if (schedule->values[v].input && schedule->values[v].shape.rank > 0)
            return schedule->values[v].shape.dim[0];
    return 0;
}

/* Whether operation i reads sequences of so many time steps alone, and their length, none of
 * them through a view of another shape. */
static bool reads_sequences(const struct lk_schedule *schedule, int i, int64_t steps)
{
    const struct lk_scheduled_op *s = &schedule->ops[i];
    for (int j = 0; j < s->shapes.inputs; j++) {
        const struct lk_value *value = &schedule->values[s->x[j]];
        if (!lk_shape_equal(&value->shape, &s->shapes.x[j]) ||
            !(is_sequence(value, steps) || is_length(value)))
            return false;
    }
    return true;
}

/* Infers the shapes of operation i for one time step: those of y and the parameters must be
 * what they were, but for the time steps of y. */
static bool infer_one(const struct lk_schedule *schedule, int i, int64_t steps,
                      struct lk_op_shapes *one)
{
    const struct lk_scheduled_op *s = &schedule->ops[i];
    struct lk_shape y = s->shapes.y;
    *one = (struct lk_op_shapes){.options = s->options,
                                 .inputs = s->shapes.inputs,
                                 .window = s->op->time == LK_TIME_BEFORE ? steps : 0};
    memcpy(one->x, s->shapes.x, sizeof one->x);
    memcpy(one->x_dtype, s->shapes.x_dtype, sizeof one->x_dtype);
    for (int j = 0; j < one->inputs; j++)
        if (one->x[j].rank > 0)
            one->x[j].dim[0] = 1;
    y.dim[0] = 1;
    if (!is_sequence(&schedule->values[s->y], steps) || s->op->infer(one) != LK_OK ||
        !lk_shape_equal(&one->y, &y) || one->params != s->shapes.params)
        return false;
    for (int j = 0; j < one->params; j++)
        if (!lk_shape_equal(&one->param[j].shape, &s->shapes.param[j].shape))
            return false;
    return true;
}

enum lk_status lk_replica_narrow(struct lk_replica *replica)
{
    struct lk_schedule *schedule = &replica->schedule;
    const int64_t steps = steps_of(schedule);
    replica->forgets_nothing = true;
    for (int i = 0; i < schedule->op_count; i++) {
        struct lk_scheduled_op *s = &schedule->ops[i];
        struct lk_op_shapes one;
        if (s->op->time == LK_TIME_ANY || !reads_sequences(schedule, i, steps) ||
            !infer_one(schedule, i, steps, &one)) {
            lk_error_clear();
            return lk_fail(LK_E_UNSUPPORTED, "%s: needs more than earlier time steps",
                           s->node->name);
        }
        s->shapes = one;
        if (one.window > 0 && !one.forgets_nothing)
            replica->forgets_nothing = false;
    }
    for (int v = 0; v < schedule->value_count; v++)
        if (is_sequence(&schedule->values[v], steps))
            schedule->values[v].shape.dim[0] = 1;
    return LK_OK;
}

bool lk_replica_forgets_nothing(const struct lk_replica *replica)
{
    return replica->forgets_nothing;
}

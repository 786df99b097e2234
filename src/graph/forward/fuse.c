/* Fuses what only forward can have fused: outside training a convolution takes over the batch
 * normalization behind it, a sum and a function, which would each go over its outputs once
 * more. Backward would need what lies between them. */
#include "base/fail.h"
#include "graph/replica_internal.h"
#include <string.h>

/* The operation that alone reads what operation i made, once; -1: none. */
static int only_reader(const struct lk_schedule *schedule, int i)
{
    const int value = schedule->ops[i].y;
    for (int j = i + 1; j < schedule->op_count && lk_schedule_readers(schedule, value) == 1;
         j++)
        for (int k = 0; k < schedule->ops[j].shapes.inputs; k++)
            if (schedule->ops[j].x[k] == value)
                return j;
    return -1;
}

/* Whether operation j maps images of one shape, others than i's there before i runs, to y. A
 * value is as it was made: a reader behind a flatten or reshape has another shape of it. */
static bool can_join(const struct lk_replica *replica, int i, int j)
{
    const struct lk_schedule *schedule = &replica->schedule;
    const struct lk_scheduled_op *s = &schedule->ops[i], *next = &schedule->ops[j];
    bool can = s->shapes.params + next->shapes.params <= LK_MOST_PARAMS &&
               s->shapes.inputs + next->shapes.inputs <= 3;
    for (int k = 0; k < next->shapes.inputs; k++)
        can &= lk_shape_equal(&next->shapes.x[k], &s->shapes.y) &&
               lk_shape_equal(&schedule->values[next->x[k]].shape, &s->shapes.y) &&
               (next->x[k] == s->y || schedule->values[next->x[k]].producer < i);
    return can;
}

static void take_over(struct lk_replica *replica, int i, int j)
{
    struct lk_schedule *schedule = &replica->schedule;
    struct lk_scheduled_op *s = &schedule->ops[i];
    const struct lk_scheduled_op *next = &schedule->ops[j];
    struct lk_prepared *p = replica->prepared;
    const size_t behind = (size_t)(schedule->op_count - j - 1);
    for (int k = 0; k < next->shapes.inputs; k++)
        if (next->x[k] != s->y) {
            s->shapes.x[s->shapes.inputs] = next->shapes.x[k];
            s->x[s->shapes.inputs++] = next->x[k];
        }
    for (int k = 0; k < next->shapes.params; k++)
        p[i].param[s->shapes.params + k] = p[j].param[k];
    s->y = next->y;
    memmove(&schedule->ops[j], &schedule->ops[j + 1], behind * sizeof schedule->ops[0]);
    memmove(&p[j], &p[j + 1], behind * sizeof *p);
    schedule->op_count--;
    for (int k = 0; k < schedule->op_count; k++)
        schedule->values[schedule->ops[k].y].producer = k;
}

static enum lk_status fuse(struct lk_replica *replica, int i)
{
    struct lk_scheduled_op *s = &replica->schedule.ops[i];
    int j;
    while (s->op->absorb_forward && (j = only_reader(&replica->schedule, i)) >= 0 &&
           can_join(replica, i, j)) {
        const struct lk_scheduled_op *next = &replica->schedule.ops[j];
        char text[1024];
        if (!lk_options_print(next->op->options, next->options, true, text, sizeof text) ||
            !s->op->absorb_forward(s->options, next->op->name, text))
            break;
        take_over(replica, i, j);
        LK_TRY(s->op->infer(&s->shapes));
    }
    return LK_OK;
}

/* Where a device has the whole graph: what a place or a part leaves out may be read elsewhere.
 */
bool lk_replica_fuses(const struct lk_replica *replica)
{
    const struct lk_replica_config *c = &replica->config;
    return !c->training && c->places <= 1 && c->part == LK_PART_ALL && !c->one_step;
}

enum lk_status lk_replica_fuse(struct lk_replica *replica)
{
    for (int i = 0; i < replica->schedule.op_count; i++)
        LK_TRY(fuse(replica, i));
    return LK_OK;
}

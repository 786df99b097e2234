/* The schedule of a graph: the operations that run, in order and fused, and the values that
 * they pass to one another. Floor 5. Knows no device. */
#ifndef LK_GRAPH_SCHEDULE_H
#define LK_GRAPH_SCHEDULE_H

#include "graph/nodes/node.h"

/* A value is an activation; nodes that are views of one another share it. */
struct lk_value {
    struct lk_shape shape;
    enum lk_dtype dtype;
    const struct lk_node *input; /* NULL: an operation makes it */
    int producer;                /* the scheduled operation that does; -1: it is an input */
    const struct lk_node *cut; /* of a schedule that was cut, see lk_replica_cut(): the node of
                                * the frozen operation that makes it, for the head to read */
    bool wants_gradient;
    bool in_planes; /* in training: it lies in plane tiles */
    bool is_gated;  /* the value ends in a relu, and the only operation that reads it
                     * writes 0 to the gradient wherever the relu let nothing pass: see
                     * lk_schedule_note_gates() */
};

/* A scheduled operation ("operation i" below): that of a node with all that it has absorbed. */
struct lk_scheduled_op {
    const struct lk_node *node;      /* names it; lk_node_owner() of it has the parameters */
    const struct lk_node *misplaced; /* one that it absorbed, whose place is another than its
                                      * own; NULL: there is none */
    const struct lk_op *op;
    void *options;
    struct lk_op_shapes shapes;
    int x[LK_MOST_INPUTS], y; /* values */
    bool wants_dx[LK_MOST_INPUTS], wants_dw, has_backward;
    bool asks_gate[LK_MOST_INPUTS]; /* as in lk_op_setup */
    bool in_planes;                 /* in training: it computes images in plane tiles */
    int crossing; /* it stands for this crossing (crossing.h), counted from 1; 0: for none */
};

struct lk_schedule {
    struct lk_arena arena;
    struct lk_scheduled_op *ops;
    struct lk_value *values;
    int op_count, value_count; /* there is room for twice as many, and one for each read */
    int outputs[LK_MOST_VALUES], output_count; /* values of the output nodes */
    bool training;
};

/* Schedules all that the outputs, a list that ends with NULL, need: drops other nodes, lets
 * operations absorb the ones behind them and, for training, finds what has a gradient. Forward
 * runs operations in order, backward in reverse. fails: LK_E_MEMORY, or as infer does. */
LK_MUST_CHECK enum lk_status lk_schedule_make(const struct lk_node *const *outputs,
                                              bool training, struct lk_schedule *schedule);

void lk_schedule_clear(struct lk_schedule *schedule);

/* Begins the setup of operation i: shapes, wanted gradients and gates; the rest is 0. */
void lk_schedule_describe(const struct lk_schedule *schedule, int i, struct lk_op_setup *setup);

/* Notes which of its gradients operation i sets to 0 where a relu before it let nothing pass;
 * call it when i was prepared. The one with that relu then need not do so itself, and has to
 * know it when it is prepared: so operations are prepared from the last to the first. */
void lk_schedule_note_gates(struct lk_schedule *schedule, int i,
                            const struct lk_op_setup *setup);

/* The first operation that uses the parameters of i: most often i itself. */
int lk_schedule_first_use(const struct lk_schedule *schedule, int i);

/* Whether a value is one of the outputs. */
bool lk_schedule_is_output(const struct lk_schedule *schedule, int value);

/* How often operations read a value; that of an output is read once more, behind them all. */
int lk_schedule_readers(const struct lk_schedule *schedule, int value);

#endif

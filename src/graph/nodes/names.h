/* Which node has a name, and how many nodes an operation has. Floor 5. */
#ifndef LK_GRAPH_NAMES_H
#define LK_GRAPH_NAMES_H

#include "graph/nodes/node.h"

/* Room for the name of one more node.
 * fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_names_make_room(struct lk_graph *graph);

/* Makes a node known under its name, for which there is room and which no other node has. */
void lk_names_enter(struct lk_node *node);

/* Forgets a node that is known under its name, before it gets another. */
void lk_names_leave(struct lk_node *node);

/* *count: how many nodes of `graph` have an operation, until the next call.
 * fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_names_count(struct lk_graph *graph, const struct lk_op *op,
                                            int **count);

#endif

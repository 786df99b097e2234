/* Nodes, and graphs of them, inside this room. Floor 5. */
#ifndef LK_GRAPH_NODE_H
#define LK_GRAPH_NODE_H

#include "ops/op.h"
#include <lockstep/graph.h>

enum {
    LK_MOST_OUTPUTS = 8, /* of a model */
    LK_MOST_VALUES = 64  /* nodes that a graph is run for: a model's outputs, and others whose
                          * values are asked for */
};

struct lk_node {
    struct lk_graph *graph;
    int index; /* position in graph->nodes; inputs come before their readers */
    char name[64];
    const struct lk_op *op; /* NULL: an input */
    void *options;
    struct lk_input input; /* of an input */
    int inputs;
    struct lk_node *input_nodes[LK_MOST_INPUTS];
    struct lk_op_shapes shapes; /* as inferred; of an input: y */
    int place;          /* which device of a group computes it; -1: that of its first input */
    const char *device; /* lk_node_set_device(); NULL: no name */
    bool is_trainable;
    bool is_named;           /* by somebody; else its name is its operation's, with a number */
    double lr_scale, l1, l2; /* factor of its learning rate; penalties of its weights */
    struct lk_node *weights_of;   /* whose parameters it uses; NULL: its own */
    struct lk_node *length;       /* the input, i32 [], that says how many of its time steps are
                                   * valid in each sample; NULL: all, or it has none */
    struct lk_node *sequence;     /* of an input: whose length it is; NULL: nobody's */
    struct lk_node *next_in_list; /* of nodes by name (names.h) */
};

/* How many nodes have an operation. */
struct lk_op_use {
    const struct lk_op *op;
    int nodes;
};

struct lk_graph {
    struct lk_arena arena;
    struct lk_node **nodes;
    int count, room;
    struct lk_node **lists; /* [list_count], a power of two: by the hash of a name (names.h) */
    int list_count;
    struct lk_op_use *ops; /* [op_count] operations of its nodes */
    int op_count;
};

/* The node whose parameters a node uses: most often itself. */
static inline const struct lk_node *lk_node_owner(const struct lk_node *node)
{
    return node->weights_of ? node->weights_of : node;
}

/* Whether a parameter is one of those that decay and have penalties: no bias, no scale. */
static inline bool lk_param_is_weight(const struct lk_param_spec *spec)
{
    return spec->shape.rank > 1 && !spec->is_affine;
}

/* The device of a group that computes a node, from 0 on. */
static inline int lk_node_place(const struct lk_node *node)
{
    while (node->op && node->place < 0)
        node = node->input_nodes[0];
    return node->op ? node->place : 0;
}

/* Bytes of one sample of an input, as the host has it: a label is the number of its class. */
size_t lk_input_bytes(const struct lk_input *input);

#endif

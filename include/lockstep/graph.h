/* Graphs of operations: built node by node, free of any device.
 * Floor 5. Knows no file and no particular operation. */
#ifndef LOCKSTEP_GRAPH_H
#define LOCKSTEP_GRAPH_H

#include <lockstep/status.h>
#include <lockstep/tensor.h>
#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct lk_graph;
struct lk_node; /* belongs to its graph */

/* What a batch brings for one input, as the host has it, and what the graph sees:
 *   LK_U8   images as decoded, [h][w][c] of each sample: x * scale + shift, shape [c, h, w]
 *   LK_I32  integers of any shape: a label [], a label or a token for each time step [t]
 *   LK_F32  numbers of any shape where takes_numbers: x * scale + shift; otherwise one label a
 *           sample, which becomes a vector of shape [classes]: shift, and scale + shift in the
 *           place of the label's class */
struct lk_input {
    const char *name;
    enum lk_dtype dtype;
    struct lk_shape shape;
    double scale, shift;
    bool takes_numbers; /* of LK_F32 */
};

/* Activations that backward computes again, to save memory: none; all but those at about
 * sqrt(n) cuts of n operations; as few as let the model fit its device. No bit depends on it.
 */
enum lk_recompute_mode { LK_RECOMPUTE_OFF, LK_RECOMPUTE_SQRT, LK_RECOMPUTE_AUTO };

/* An empty graph. fails: LK_E_MEMORY */
LK_API LK_MUST_CHECK enum lk_status lk_graph_create(struct lk_graph **graph);

/* Releases the graph and its nodes. NULL is fine. */
LK_API void lk_graph_destroy(struct lk_graph *graph);

/* Adds an input. fails: LK_E_ARGUMENT (a name in use), LK_E_SHAPE */
LK_API LK_MUST_CHECK enum lk_status
lk_graph_add_input(struct lk_graph *graph, const struct lk_input *input, struct lk_node **node);

/* Adds the length of an input that is a sequence, numbers [t, c] or integers [t]: an input of
 * integers [], named after it with "_length", which says how many of a sample's time steps are
 * valid. The sequence's other steps count for nothing: operations that look at time steps get
 * the length as one more input, behind theirs (lk_graph_add() adds it). What is computed from a
 * sequence step by step has the same length. fails: LK_E_ARGUMENT (a name in use), LK_E_SHAPE
 */
LK_API LK_MUST_CHECK enum lk_status lk_graph_add_length(struct lk_node *sequence,
                                                        struct lk_node **length);

/* Adds operation `op` on one node: lk_graph_add(g, "conv2d", x, "filters=64 kernel=3", &y). The
 * node is named after its operation and its number among these ("conv2d_1").
 * fails: LK_E_MODEL (unknown operation), LK_E_ARGUMENT (options), LK_E_SHAPE */
LK_API LK_MUST_CHECK enum lk_status lk_graph_add(struct lk_graph *graph, const char *op,
                                                 struct lk_node *x, const char *options,
                                                 struct lk_node **y);

/* As lk_graph_add() with `count` inputs, in the operation's order. */
LK_API LK_MUST_CHECK enum lk_status lk_graph_add_many(struct lk_graph *graph, const char *op,
                                                      int count, struct lk_node *const *x,
                                                      const char *options, struct lk_node **y);

/* Renames a node. fails: LK_E_ARGUMENT for a name in use, empty, or with odd characters */
LK_API LK_MUST_CHECK enum lk_status lk_node_set_name(struct lk_node *node, const char *name);

/* Frozen nodes keep their parameters while training. Of a node that has another one's, the
 * owner's setting counts. */
LK_API void lk_node_set_trainable(struct lk_node *node, bool is_trainable);

/* Lets device `place` of a group, counted from 0, compute the node: a graph may be divided
 * among several devices. At first, and with -1, a node is computed where its first input is,
 * or, if that is an input of the graph, on device 0. */
LK_API void lk_node_set_place(struct lk_node *node, int place);

/* Names the device that is to compute the node: letters, digits, '_' and '-'. Nodes with one
 * name belong together; which device that is says lk_node_set_place(). fails: LK_E_ARGUMENT */
LK_API LK_MUST_CHECK enum lk_status lk_node_set_device(struct lk_node *node, const char *name);

/* Multiplies the learning rate of the node's parameters by `scale`, from 0 on; 1 is standard.
 * Of a node that has another one's parameters, the owner's counts. fails: LK_E_ARGUMENT */
LK_API LK_MUST_CHECK enum lk_status lk_node_set_lr_scale(struct lk_node *node, double scale);

/* Adds the gradient of l1 sum |w| + l2 sum w^2 over the node's weights (all parameters but
 * vectors) to theirs; the loss that is told has no part of it. Both are 0 at first, and at
 * least 0. Of a node that has another one's parameters, the owner's count. fails:
 * LK_E_ARGUMENT */
LK_API LK_MUST_CHECK enum lk_status lk_node_set_penalties(struct lk_node *node, double l1,
                                                          double l2);

/* Lets a node use all parameters of `owner`, which was added before it, in place of its own:
 * they exist once, under the owner's name, and their gradients are the sums over all uses.
 * Calling it again changes the owner. fails: LK_E_ARGUMENT: another operation, no parameters, a
 * later owner or the node itself, an owner that has another one's, a node whose parameters
 * others use; LK_E_SHAPE, naming both; LK_E_UNSUPPORTED: parameters that no optimizer moves
 * (moving averages) */
LK_API LK_MUST_CHECK enum lk_status lk_node_share_weights(struct lk_node *node,
                                                          struct lk_node *owner);

/* The node of that name; NULL: absent. */
LK_API struct lk_node *lk_graph_find(const struct lk_graph *graph, const char *name);

/* The nodes in the order they were added; NULL past the last. */
LK_API struct lk_node *lk_graph_node(const struct lk_graph *graph, int index);

/* What a node is; the pointers live as long as the graph. An input has the operation "input".
 */
struct lk_node_info {
    const char *name, *op;
    struct lk_shape shape; /* of its output */
    int inputs;
    bool is_trainable;
    int64_t parameters;     /* elements of all its parameters; 0 where it has another node's */
    int64_t trained;        /* of these, those that an optimizer moves: no moving averages */
    double flops;           /* forward, one sample */
    const char *weights_of; /* the node whose parameters it uses; NULL: its own */
    double lr_scale;        /* of its parameters' learning rate */
    double l1, l2;          /* penalties of its weights */
    const char *length;     /* the input that says how many of its time steps are valid in each
                             * sample; NULL: all, or it has none */
    const char *device;     /* the name of its device; NULL: it has none */
    int place;              /* the device of a group that computes it */
    bool has_place;         /* it is said; else it is that of its first input */
};

/* Describes a node as it is now. */
LK_API struct lk_node_info lk_node_info(const struct lk_node *node);

/* Input `index` of a node; NULL past the last. */
LK_API struct lk_node *lk_node_input(const struct lk_node *node, int index);

/* The node's options that differ from their defaults, as text. */
LK_API void lk_node_options(const struct lk_node *node, char *text, size_t bytes);

/* What a device of a group took for a step, in milliseconds: in which it worked; in which it
 * waited for others, from the begin of the step to its end; and in which the host copied what
 * it has sent, so many bytes. planned_ms: what its operations, measured before the run, and
 * what crosses would take; 0: they were not measured. */
enum { LK_MOST_PLACES = 16 };
struct lk_place_times {
    double compute_ms, idle_ms, crossing_ms;
    double crossing_bytes;
    double planned_ms;
};

#ifdef __cplusplus
}
#endif
#endif

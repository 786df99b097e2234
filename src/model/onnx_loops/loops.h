/* Loops over time steps as converters from TensorFlow write them, while they are recognized.
 * Floor 6. Knows what a file says, not what becomes of it. Private to src/model/onnx_loops. */
#ifndef LK_MODEL_ONNX_LOOPS_H
#define LK_MODEL_ONNX_LOOPS_H

#include "model/onnx/convert.h"

/* Numbers of a bias, a row of a constant. */
struct lk_loop_row {
    const struct lk_onnx_tensor *of;
    int64_t first, count;
};

/* x w + b, or state r + b, or both together. */
struct lk_loop_sum {
    const struct lk_onnx_tensor *w, *r;
    struct lk_loop_row bias[2];
    int biases;
};

/* What has a name in a graph. */
struct lk_loop_name {
    const char *name; /* NULL: a free slot */
    const struct lk_onnx_tensor *constant;
    const struct lk_onnx_node *node; /* that makes it, as that output */
    int output, input;               /* input of the graph; -1: it is none */
};

/* A graph whose names are found without going through all of them. */
struct lk_loop_graph {
    const struct lk_onnx_graph *of;
    struct lk_loop_name *names; /* [slots] */
    size_t slots;
};

struct lk_loop {
    struct lk_arena *arena;
    const struct lk_loop_graph *file, *body;
    const struct lk_onnx_node *node;
    const char *name; /* of an output that has one: names of what is added begin with it */
    int64_t steps, units, gates;
    int counter, state; /* which inputs of the body they are */
    const char *x;      /* [t, n, c], outside; NULL: not found yet */
    const char *function;
    struct lk_loop_sum given, carried; /* of an RNN: all is in the first */
};

/* Whether it is that operator of ONNX itself. */
bool lk_loop_is_op(const struct lk_onnx_node *node, const char *op);

LK_MUST_CHECK enum lk_status lk_loop_open_graph(struct lk_arena *arena,
                                                const struct lk_onnx_graph *of,
                                                struct lk_loop_graph *graph);

const struct lk_loop_name *lk_loop_find(const struct lk_loop_graph *graph,
                                        const char *name); /* NULL: absent, or "" */

/* Whether l->node, a Loop, is a GRU or an RNN; then l has all that it says. */
bool lk_loop_recognize(struct lk_loop *l);

#endif

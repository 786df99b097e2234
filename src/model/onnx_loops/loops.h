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
    int64_t first, columns; /* of r, those that are multiplied */
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

/* How steps are masked: what stands in place of the output of a step that does not count. */
enum lk_loop_mask { LK_LOOP_UNMASKED, LK_LOOP_KEEPS, LK_LOOP_ZEROES };

struct lk_loop {
    struct lk_arena *arena;
    const struct lk_loop_graph *file, *body;
    const struct lk_onnx_node *node;
    const char *name; /* of an output that has one: names of what is added begin with it */
    const char *op;   /* GRU, LSTM or RNN */
    int64_t steps, units, gates;
    int counter, state;   /* which inputs of the body they are */
    int cell, previous;   /* likewise, the state c and the output before; -1: none */
    const char *h, *c;    /* of the body: what the cell makes of them */
    const char *x;        /* [t, n, c], outside; NULL: not found yet */
    const char *function; /* of an RNN */
    bool resets_before;   /* of a GRU: the state, not its product */
    struct lk_loop_sum given, carried; /* of an RNN or LSTM: all is in the first */

    enum lk_loop_mask masked;
    const char *mask; /* [t, n, 1], outside; NULL: not found yet */

    /* of a masked loop that becomes a layer with lengths */
    const struct lk_onnx_port *tokens; /* those that are not 0 count; NULL: the mask is kept */
    const char *length;                /* name of an input, how many they are */
    const char *turned; /* lengths of all steps, by which x is turned; NULL: it is not */
    const char *raw;    /* what the operator makes: 0 where steps do not count */
    const char *last;   /* [1, n, units], its final state */
};

/* --- names.c ----------------------------------------------------------------------------- */

/* Whether it is that operator of ONNX itself; takes: and has so many inputs at least. */
bool lk_loop_is_op(const struct lk_onnx_node *node, const char *op);
bool lk_loop_takes(const struct lk_onnx_node *node, const char *op, int inputs);

LK_MUST_CHECK enum lk_status lk_loop_open_graph(struct lk_arena *arena,
                                                const struct lk_onnx_graph *of,
                                                struct lk_loop_graph *graph);

const struct lk_loop_name *lk_loop_find(const struct lk_loop_graph *graph,
                                        const char *name); /* NULL: absent, or "" */

/* What Identities make a name of. */
const char *lk_loop_skip(const struct lk_loop_graph *graph, const char *name);

/* The node that makes a name, as output `*output`; NULL: none does. */
const struct lk_onnx_node *lk_loop_find_maker(const struct lk_loop_graph *graph,
                                              const char *name, int *output);
const struct lk_onnx_tensor *lk_loop_find_constant(const struct lk_loop_graph *graph,
                                                   const char *name); /* NULL: it is none */

/* The same in the body of a loop, behind Identities. */
const struct lk_onnx_node *lk_loop_maker(const struct lk_loop *l, const char *name,
                                         int *output);
int lk_loop_find_input(const struct lk_loop *l, const char *name); /* -1: it is none */

/* What a name of the body is outside: itself, or what is carried and never changes. NULL: the
 * body makes it. */
const char *lk_loop_find_outside(const struct lk_loop *l, const char *name);

/* A constant of the body or outside of it. */
const struct lk_onnx_tensor *lk_loop_tensor(const struct lk_loop *l, const char *name);
bool lk_loop_is_number(const struct lk_onnx_tensor *tensor, double number);

/* An attribute that is a whole number. */
int64_t lk_loop_say(const struct lk_onnx_node *node, const char *name, int64_t standard);

/* --- recognize.c ------------------------------------------------------------------------- */

/* Whether l->node, a Loop, is a GRU, an LSTM or an RNN; then l has all that it says. */
bool lk_loop_recognize(struct lk_loop *l);

/* The step of a sequence outside; NULL: it is none. */
const char *lk_loop_find_step(const struct lk_loop *l, const char *name);

/* Whether what a name of the file stands for is all 0. */
bool lk_loop_is_zero(const struct lk_loop_graph *file, const char *name);

/* --- cells.c ----------------------------------------------------------------------------- */

/* Whether the body computes l->h, and of an LSTM l->c, as that operator does. */
bool lk_loop_is_cell(struct lk_loop *l);

/* --- masks.c ----------------------------------------------------------------------------- */

/* Whether a name is the one where the loop's mask counts a step, and the other elsewhere. */
bool lk_loop_is_choice(struct lk_loop *l, const char *name, const char **now, const char **old);

/* Whether the mask of a loop says which tokens of an input are not 0, in the order of x. Then
 * the loop has these tokens, and x in the order of time. */
bool lk_loop_find_tokens(struct lk_loop *l);

/* Behind Identities, and Transposes [1, 0, 2], of which an odd number or an even one was left
 * out. */
const char *lk_loop_find_root(const struct lk_loop_graph *file, const char *name, bool *is_odd);

/* Whether it is a ReverseSequence of all time steps, so many, of [t, n, c]. */
bool lk_loop_turns(const struct lk_loop_graph *file, const struct lk_onnx_node *node,
                   int64_t steps);

/* --- outputs.c --------------------------------------------------------------------------- */

enum { LK_LOOP_MOST_NODES = 6, LK_LOOP_CONSTANTS = 6 };

/* A name that begins with the loop's. */
LK_MUST_CHECK enum lk_status lk_loop_make_name(struct lk_loop *l, const char *role,
                                               const char **name);

/* A node with names[inputs + outputs]. */
LK_MUST_CHECK enum lk_status lk_loop_add(struct lk_loop *l, const char *op, int inputs,
                                         int outputs, const char *const *names,
                                         struct lk_onnx_node *made);

/* The nodes that make what the loop gave of y, all steps [t, 1, n, units] and final states h
 * and c. numbers[3]: constants 0, 1 and the last step. */
LK_MUST_CHECK enum lk_status lk_loop_give(struct lk_loop *l, const char *const y[3],
                                          const struct lk_onnx_tensor *numbers,
                                          struct lk_onnx_node *nodes, int *count);

/* A node behind loops, of which it may read what their operators make themselves. */
LK_MUST_CHECK enum lk_status lk_loop_read(struct lk_loop *loops, int count,
                                          const struct lk_loop_graph *file,
                                          struct lk_onnx_node *node);

/* A loop reads another one of the same lengths: what stands behind these does not count. */
void lk_loop_read_steps(struct lk_loop *loops, int count, struct lk_loop *l);

#endif

/* What lstm, gru and rnn have in common: options, the walk over the time steps. The input parts
 * of all steps are one product, and so are the gradients of x and of both matrices; only what
 * depends on the step before walks (cl/ops/recurrent). Floor 4. For src/ops/recurrent, and for
 * tests of its operations. */
#ifndef LK_OPS_RECURRENT_RECURRENT_H
#define LK_OPS_RECURRENT_RECURRENT_H

#include "ops/args.h"
#include "ops/op.h"

/* As KIND in cl/ops/recurrent/state.cl. A GRU's reset gate multiplies what comes from h, or h
 * itself. */
enum lk_cell { LK_LSTM, LK_GRU_AFTER, LK_GRU_BEFORE, LK_RNN };

enum { LK_CELL_TANH, LK_CELL_RELU };

struct lk_recurrent_options {
    int64_t units;
    int activation;
    bool use_bias, unit_forget_bias; /* the latter of lstm */
    bool reset_after;                /* of gru */
    bool return_sequences, return_state, go_backwards;
    double dropout, recurrent_dropout;
};

/* The parameters, by number. */
enum { LK_CELL_WEIGHT, LK_CELL_RECURRENT, LK_CELL_BIAS, LK_CELL_RECURRENT_BIAS };

int lk_cell_gates(enum lk_cell cell);
int lk_cell_states(enum lk_cell cell);

/* Which inputs there are beside x; -1: none. */
int lk_recurrent_first_state(const struct lk_op_shapes *shapes);
int lk_recurrent_length(const struct lk_op_shapes *shapes);

/* How a device walks. Every way gives the same bits. */
struct lk_walk_form {
    bool in_one_launch; /* all steps, or one */
    int columns;        /* tiles of a group */
};

/* What a walk multiplies before it goes on to other units. Changes no bit. */
struct lk_walk_block {
    int units, at_once; /* the latter of its rows, gates of units: they fill the registers */
};

struct lk_walk_pass {
    struct lk_walk_block block;
    struct lk_kernel *pack, *walk, *begin, *gates, *step, *end;
    struct lk_kernel *reset; /* of GRUs whose reset gate comes first: beside step */
};

struct lk_walk {
    enum lk_cell cell;
    struct lk_walk_form form;
    struct lk_walk_pass forward, backward;
    struct lk_kernel *reset, *candidate; /* of a GRU, between the products */
    struct lk_kernel *keep;              /* of a GRU that drops inputs */
    struct lk_kernel *drop_inputs, *drop_states;
    int64_t packed_at, state_at, reals; /* in the workspace, in reals; where it ends */
    size_t saved_bytes, past_bytes;
};

/* Chooses the form, announces kernels. `kept`: reals of the workspace that hold input parts or
 * dz, at its beginning. fails: as prepare */
LK_MUST_CHECK enum lk_status lk_walk_prepare(const struct lk_op_setup *setup, enum lk_cell cell,
                                             int64_t kept, struct lk_walk *walk);

/* The lengths with which products over all time steps may leave some out (lk_product_run);
 * NULL: none. A walk in one launch ends with the longest sample of its tiles, so they may end
 * with each tile's. Not those of a GRU whose reset gate comes first: gru_candidate multiplies r
 * of all steps by dz, and r of input parts that nobody wrote may be NaN. */
const struct lk_buffer *lk_walk_lengths(const struct lk_op_setup *setup,
                                        const struct lk_walk *walk,
                                        const struct lk_op_run *run);

/* Enqueue only. Forward: the workspace holds the input parts. Backward: it will hold dz. */
LK_MUST_CHECK enum lk_status lk_walk_forward(const struct lk_op_setup *setup,
                                             const struct lk_walk *walk,
                                             const struct lk_op_run *run);
LK_MUST_CHECK enum lk_status lk_walk_backward(const struct lk_op_setup *setup,
                                              const struct lk_walk *walk,
                                              const struct lk_op_run *run);

/* Keeps dz of a GRU's candidate in `saved` while the product with h has its own; `back`:
 * restores it. Where the reset gate changes no dz it does nothing. */
LK_MUST_CHECK enum lk_status lk_walk_keep(const struct lk_op_setup *setup,
                                          const struct lk_walk *walk,
                                          const struct lk_op_run *run, bool back);

/* Makes of dz of the sums with x that of the sums with h, and after the product the part of dU
 * that it cannot make. Where there is no such thing they do nothing. */
LK_MUST_CHECK enum lk_status lk_walk_turn_to_recurrent(const struct lk_op_setup *setup,
                                                       const struct lk_walk *walk,
                                                       const struct lk_op_run *run);
LK_MUST_CHECK enum lk_status lk_walk_candidate(const struct lk_op_setup *setup,
                                               const struct lk_walk *walk,
                                               const struct lk_op_run *run);

/* Whether this training drops. */
bool lk_drops_inputs(const struct lk_op_setup *setup);
bool lk_drops_states(const struct lk_op_setup *setup);

/* Enqueue only. y = x times the mask of inputs, in place where y is x. States: their factors
 * into the walk's workspace, if it drops any. */
LK_MUST_CHECK enum lk_status lk_drop_inputs(const struct lk_op_setup *setup,
                                            const struct lk_walk *walk,
                                            const struct lk_op_run *run,
                                            const struct lk_buffer *x, struct lk_buffer *y);
LK_MUST_CHECK enum lk_status lk_drop_states(const struct lk_op_setup *setup,
                                            const struct lk_walk *walk,
                                            const struct lk_op_run *run,
                                            const struct lk_recurrent *of_walk);

#endif

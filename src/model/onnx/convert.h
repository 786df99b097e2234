/* Going through the nodes of a graph of ONNX. Floor 6. Private to the rooms of ONNX. */
#ifndef LK_MODEL_ONNX_CONVERT_H
#define LK_MODEL_ONNX_CONVERT_H

#include "model/onnx/draft.h"

/* Tables of src/model/onnx_operators, which end with {0}. */
extern const struct lk_onnx_operator lk_onnx_images[], lk_onnx_functions[],
    lk_onnx_arrangements[], lk_onnx_products[];

/* Tables for whole arrays, of src/model/onnx_arrays; end with NULL. */
extern const struct lk_onnx_operator *const lk_onnx_array_tables[];

/* Marks nodes that no output depends on as done, and counts readers of each value. */
LK_MUST_CHECK enum lk_status lk_onnx_find_needed(struct lk_onnx_draft *draft);

/* Adds an input of the model. In inputs.c. */
LK_MUST_CHECK enum lk_status lk_onnx_add_input(struct lk_onnx_draft *draft,
                                               const struct lk_onnx_port *port, bool is_last);

/* Converts all nodes that are not done, in the file's order. */
LK_MUST_CHECK enum lk_status lk_onnx_convert_all(struct lk_onnx_draft *draft);

/* Converts the node at work by a table that has its operator, unless *done. */
LK_MUST_CHECK enum lk_status lk_onnx_convert_by(struct lk_onnx_draft *draft,
                                                const struct lk_onnx_operator *table,
                                                bool *done);

/* The node at work for each sample of a batch: by the operators for batches, or else by those
 * for whole arrays, where what they compute of a sample depends on it alone.
 * In src/model/onnx_samples. */
LK_MUST_CHECK enum lk_status lk_onnx_convert_samples(struct lk_onnx_draft *draft, bool *done);

/* Computes the node at work where it counts the samples of an open batch, or reads constants
 * that do. In src/model/onnx_samples. */
LK_MUST_CHECK enum lk_status lk_onnx_fold_counted(struct lk_onnx_draft *draft, bool *done);

/* x with the samples as its first axis. fails: LK_E_MODEL they have no axis of their own */
LK_MUST_CHECK enum lk_status lk_onnx_put_first(struct lk_onnx_draft *draft,
                                               const struct lk_onnx_value *x,
                                               struct lk_onnx_value *made);

/* For tables of names. In values.c. */
size_t lk_onnx_hash(const char *name);

/* Makes of loops over time steps, as converters write Keras's recurrent layers, the operators
 * that say the same; `graph` gets lists in the arena. A mask of tokens becomes an input with
 * their lengths, or, where arrays are computed whole (is_whole), stays a mask.
 * In src/model/onnx_loops. */
LK_MUST_CHECK enum lk_status lk_onnx_join_loops(struct lk_arena *arena,
                                                struct lk_onnx_graph *graph, bool is_whole);

/* Makes a Gather read tokens of an input where it reads what nodes make of them, if that is the
 * same for all tokens that its table has. In src/model/onnx_samples. */
LK_MUST_CHECK enum lk_status lk_onnx_join_tokens(struct lk_onnx_draft *draft);

/* The graph of one sample of a file with convolutions, as an import makes it. fails: as that,
 * and LK_E_MODEL where an output does not have the samples along its first axis */
LK_MUST_CHECK enum lk_status lk_onnx_make_samples(struct lk_onnx_draft *draft);

/* An output of the file as an entry of the shape that it has there behind the batch. */
LK_MUST_CHECK enum lk_status lk_onnx_make_output(struct lk_onnx_draft *draft, const char *name,
                                                 struct lk_onnx_value *value);

/* The node at work by the operators for batches; *done: there was one. */
LK_MUST_CHECK enum lk_status lk_onnx_convert_batch(struct lk_onnx_draft *draft, bool *done);

/* --- of src/model/onnx_operators/products.c ------------------------------------------------
 */

/* A dense layer with a matrix [in, out], or turned [out, in]; bias NULL: it has none. */
LK_MUST_CHECK enum lk_status lk_onnx_add_dense(struct lk_onnx_draft *draft,
                                               const struct lk_onnx_value *x,
                                               const struct lk_onnx_tensor *matrix,
                                               bool is_turned, double factor,
                                               const struct lk_onnx_tensor *bias,
                                               double bias_factor, struct lk_onnx_value *made);

/* The bias that the only reader of the product at work adds; *adds: that reader. NULL: none. */
const struct lk_onnx_tensor *lk_onnx_find_bias(const struct lk_onnx_draft *draft, int64_t units,
                                               const struct lk_onnx_node **adds);

/* Output 0 becomes `made`, or that of `adds`, unless NULL, which is done then. */
LK_MUST_CHECK enum lk_status lk_onnx_give_sum(struct lk_onnx_draft *draft,
                                              const struct lk_onnx_node *adds,
                                              const struct lk_onnx_value *made);

/* The numbers of Range from its three inputs, each of one number.
 * fails: LK_E_MODEL a range of 1e9 numbers or more */
LK_MUST_CHECK enum lk_status lk_onnx_fold_range(struct lk_onnx_draft *draft,
                                                const struct lk_onnx_tensor *const x[3]);

#endif

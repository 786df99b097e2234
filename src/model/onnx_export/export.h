/* A run's model as a graph of ONNX. Floor 6. Pairs our operations with ONNX's operators, both
 * as words. Images are [n, c, h, w] there, so that all numbers lie as they do here. Private to
 * src/model/onnx_export. */
#ifndef LK_MODEL_ONNX_EXPORT_EXPORT_H
#define LK_MODEL_ONNX_EXPORT_EXPORT_H

#include "io/onnx/onnx.h"
#include "model/foreign/stored.h"

enum {
    LK_ONNX_EXPORT_EACH = 40
}; /* most nodes, and constants, that one node of ours becomes */

/* A graph while it is made; `node` is at work. */
struct lk_onnx_export {
    struct lk_stored stored;
    struct lk_arena arena;
    struct lk_onnx_graph graph;
    struct lk_onnx_node *nodes;       /* [graph.node_count] */
    struct lk_onnx_tensor *constants; /* [graph.constant_count] */
    struct lk_onnx_attribute *last;   /* room for attributes of the node added last */
    const struct lk_node *node;
    bool folds, prepares;     /* batch norms, images: struct lk_onnx_options */
    double *factors, *shifts; /* of the norm that the convolution at work takes over, a number
                               * for each channel; NULL: none */
};

/* What a node of ours becomes: reads x[], its inputs' names, and makes the value `y`. */
typedef enum lk_status lk_onnx_pair(struct lk_onnx_export *e, const char *const *x,
                                    const char *y);

struct lk_onnx_pairing {
    const char *op;
    lk_onnx_pair *emit;
};

extern const struct lk_onnx_pairing lk_onnx_image_pairings[], lk_onnx_plain_pairings[],
    lk_onnx_sequence_pairings[], lk_onnx_recurrent_pairings[], lk_onnx_attention_pairings[],
    lk_onnx_array_pairings[];

/* "conv2d 'c1': ..." Returns LK_E_UNSUPPORTED. */
enum lk_status lk_onnx_export_fail(const struct lk_onnx_export *e, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Adds a node that reads inputs[count] and makes `output`. Inputs end early with NULL. */
LK_MUST_CHECK enum lk_status lk_onnx_emit_node(struct lk_onnx_export *e, const char *op,
                                               const char *output, int count,
                                               const char *const *inputs);

/* The same with a value between as output, whose name is lk_onnx_name()'s. */
LK_MUST_CHECK enum lk_status lk_onnx_emit(struct lk_onnx_export *e, const char *op,
                                          const char *what, int count,
                                          const char *const *inputs, const char **made);

/* The node added last has these outputs; "": not made. */
LK_MUST_CHECK enum lk_status lk_onnx_emit_outputs(struct lk_onnx_export *e, int count,
                                                  const char *const *outputs);

/* Reshape: `shape` behind the batch, which stays; `what` names the shape. */
LK_MUST_CHECK enum lk_status lk_onnx_emit_reshape(struct lk_onnx_export *e, const char *what,
                                                  const char *x, const struct lk_shape *shape,
                                                  const char *y);

/* Say something of the node added last, at most LK_ONNX_EXPORT_EACH times. */
void lk_onnx_emit_integer(struct lk_onnx_export *e, const char *name, int64_t value);
void lk_onnx_emit_real(struct lk_onnx_export *e, const char *name, double value);
void lk_onnx_emit_text(struct lk_onnx_export *e, const char *name, const char *value);
LK_MUST_CHECK enum lk_status lk_onnx_emit_list(struct lk_onnx_export *e, const char *name,
                                               int count, const int64_t *values);

/* A name of a value between, of the node at work: "c1.scale". */
LK_MUST_CHECK enum lk_status lk_onnx_name(struct lk_onnx_export *e, const char *what,
                                          const char **name);

/* Constants of the node at work; *name: what stands for it. */
LK_MUST_CHECK enum lk_status lk_onnx_emit_integers(struct lk_onnx_export *e, const char *what,
                                                   int count, const int64_t *values,
                                                   const char **name);
LK_MUST_CHECK enum lk_status lk_onnx_emit_reals(struct lk_onnx_export *e, const char *what,
                                                int rank, int count, const double *values,
                                                const char **name);

/* A constant of rank 0. */
LK_MUST_CHECK enum lk_status lk_onnx_emit_integer_constant(struct lk_onnx_export *e,
                                                           const char *what, int64_t value,
                                                           const char **name);
LK_MUST_CHECK enum lk_status lk_onnx_emit_real_constant(struct lk_onnx_export *e,
                                                        const char *what, double value,
                                                        const char **name);

/* A constant of numbers that live as long as `arena`. */
LK_MUST_CHECK enum lk_status lk_onnx_emit_floats(struct lk_onnx_export *e, const char *what,
                                                 int rank, const int64_t *dim,
                                                 const float *data, const char **name);

/* Memory for `count` elements of `each` bytes in `arena`; `to` points to a pointer. */
LK_MUST_CHECK enum lk_status lk_onnx_take(struct lk_onnx_export *e, size_t count, size_t each,
                                          void *to);

/* The numbers of a parameter in our layout, in `arena`; NULL: the node has none of that name.
 * fails: LK_E_DATA */
LK_MUST_CHECK enum lk_status lk_onnx_take_param(struct lk_onnx_export *e, const char *param,
                                                const float **data);

/* A parameter of the node at work in PyTorch's order of axes (is_ours: in ours); *name NULL: it
 * has none. `shape`: other axes for the same numbers; NULL: its own. fails: LK_E_DATA */
LK_MUST_CHECK enum lk_status lk_onnx_emit_param(struct lk_onnx_export *e, const char *param,
                                                bool is_ours, const struct lk_shape *shape,
                                                const char **name);

/* The batch norm that a convolution takes over: its only reader; NULL: none. */
const struct lk_node *lk_onnx_find_norm(const struct lk_onnx_export *e,
                                        const struct lk_node *node);

/* Sets factors and shifts of the norm at work; the bias of the convolution then, with them. */
LK_MUST_CHECK enum lk_status lk_onnx_take_norm(struct lk_onnx_export *e);
LK_MUST_CHECK enum lk_status lk_onnx_emit_folded_bias(struct lk_onnx_export *e,
                                                      const char **name);

/* What readers of an input read: the input as the file has it, prepared. */
LK_MUST_CHECK enum lk_status lk_onnx_emit_input(struct lk_onnx_export *e, const char **name);

/* How the file has an input or output of the model. batch 0: of any length. */
struct lk_onnx_port lk_onnx_describe(const struct lk_onnx_export *e, const struct lk_node *node,
                                     int64_t batch);

/* What a length of the node at work lets count. length: what stands for it, int64 [n]. Mask i
 * of `count` is whether first + i stride < length, shaped as `shape` says behind the batch. */
struct lk_onnx_steps {
    const char *length;
    int64_t first, stride, count;
    struct lk_shape shape;
};

/* *mask: bool. `what` begins the names of the values between. */
LK_MUST_CHECK enum lk_status lk_onnx_emit_mask(struct lk_onnx_export *e, const char *what,
                                               const struct lk_onnx_steps *steps,
                                               const char **mask);

/* y = x where the time steps [t, c] count, else `hidden`. steps->shape is set here. */
LK_MUST_CHECK enum lk_status lk_onnx_emit_hide(struct lk_onnx_export *e, const char *what,
                                               struct lk_onnx_steps *steps, const char *x,
                                               double hidden, const char *y);

/* y = what `op`, such as ReduceSum, makes of an axis of x, which goes. */
LK_MUST_CHECK enum lk_status lk_onnx_emit_reduce(struct lk_onnx_export *e, const char *op,
                                                 int64_t axis, const char *x, const char *y);

/* Swaps axes: `order` of `rank` axes, the batch counted. */
LK_MUST_CHECK enum lk_status lk_onnx_emit_transpose(struct lk_onnx_export *e, const char *what,
                                                    int rank, const int64_t *order,
                                                    const char *x, const char **y);

/* Options of the node at work: as text, and as `count` numbers ("3" is all of them). */
void lk_onnx_option(const struct lk_onnx_export *e, const char *name, char text[96]);
void lk_onnx_option_integers(const struct lk_onnx_export *e, const char *name, int count,
                             int64_t *values);
double lk_onnx_option_real(const struct lk_onnx_export *e, const char *name);
bool lk_onnx_option_is(const struct lk_onnx_export *e, const char *name, const char *value);

#endif

/* Models: text in, a graph out; the zoo; checkpoints. Floor 6. */
#ifndef LOCKSTEP_MODEL_H
#define LOCKSTEP_MODEL_H

#include <lockstep/device.h>
#include <lockstep/graph.h>
#include <lockstep/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A graph with its named inputs, the output that predicts, and the text it was read from. */
struct lk_model;

/* Reads model text (YAML, `bytes` long; grammar in `lockstep help model`); `where` names it
 * in messages. fails: LK_E_MODEL with the line, what was expected and the nearest known name */
LK_API LK_MUST_CHECK enum lk_status lk_model_read(const char *text, size_t bytes,
                                                  const char *where, struct lk_model **model);

/* What stands beside a zoo model's name: 0 leaves the model's own. `parameters` are values for
 * those of the text, "top=false cells=6"; NULL or "": its own. */
struct lk_model_shape {
    int64_t height, width, channels, classes;
    const char *parameters;
    int64_t vocabulary, length; /* tokens that there are, and tokens of a sample */
};

/* Opens a zoo model ("fashion-convnet") or a model file. The shape replaces the zoo text's own
 * input, number of classes and parameters, and of a model of texts its vocabulary and length;
 * NULL: none. fails: LK_E_MODEL, LK_E_IO */
LK_API LK_MUST_CHECK enum lk_status
lk_model_open(const char *name, const struct lk_model_shape *shape, struct lk_model **model);

/* Whether the text of that zoo model or model file has such a parameter. */
LK_API bool lk_model_has_parameter(const char *name, const char *parameter);

/* Freezes a model's first entries, as its text then says: replaces *model, which must have no
 * loss yet, by one whose text has `freeze_until: UNTIL` (all entries up to that one) or
 * `train_last: LAST` (all with parameters but the last so many) too. NULL or "", and 0: not
 * asked for. fails: LK_E_ARGUMENT both at once; LK_E_MODEL an unknown entry, with the nearest
 * name; more than there are; nothing left to train. *model is then as it was */
LK_API LK_MUST_CHECK enum lk_status lk_model_freeze(struct lk_model **model, const char *until,
                                                    int64_t last);

/* Releases the model and its graph. NULL is fine. */
LK_API void lk_model_destroy(struct lk_model *model);

/* The names of the zoo; NULL past the last. */
LK_API const char *lk_model_zoo(int index);

/* The model's graph, which lives as long as the model. */
LK_API struct lk_graph *lk_model_graph(struct lk_model *model);

/* Input `index` in the order of the text; NULL past the last. */
LK_API struct lk_node *lk_model_input(const struct lk_model *model, int index);

/* The node whose values are predictions, [classes] for a classifier. */
LK_API struct lk_node *lk_model_output(const struct lk_model *model);

/* The text that gives this very model again, through lk_model_read(). */
LK_API const char *lk_model_text(const struct lk_model *model);
LK_API const char *lk_model_name(const struct lk_model *model);

/* Whether `text` gives the same graph as the model has: names, operations, options, connections
 * and what is frozen, in the same order, so that runs of one can go on with the other.
 * fails: LK_E_MODEL where it cannot be read */
LK_API LK_MUST_CHECK enum lk_status lk_model_compare(const struct lk_model *model,
                                                     const char *text, bool *is_same);

/* As lk_model_compare(): writes what the first difference is, "" where there is none. */
LK_API LK_MUST_CHECK enum lk_status lk_model_differ(const struct lk_model *model,
                                                    const char *text, char *what, size_t bytes);

/* Adds the labels and the loss behind the output, once: cross-entropy. Training runs to *loss.
 * fails: LK_E_MODEL where the output is no vector of class probabilities */
LK_API LK_MUST_CHECK enum lk_status
lk_model_add_loss(struct lk_model *model, struct lk_node **labels, struct lk_node **loss);

/* As lk_model_add_loss(), with labels as one-hot vectors [classes], of which `smoothing`, in
 * 0..1, is spread evenly: 1 - smoothing + smoothing / classes for the label's class, smoothing
 * / classes for others. With 0 the bits are those of labels. Labels have the same form on the
 * host. fails: LK_E_ARGUMENT too. source: Szegedy et al. arXiv:1512.00567, 7 */
LK_API LK_MUST_CHECK enum lk_status lk_model_add_one_hot_loss(struct lk_model *model,
                                                              double smoothing,
                                                              struct lk_node **labels,
                                                              struct lk_node **loss);

/* Bytes of device memory a model takes at a batch size, by use; training is with Adam. */
struct lk_memory {
    size_t weights, gradients, activations, inputs, optimizer, total;
    double again; /* what backward computes of forward again, as a part of its work */
    int pieces;   /* in which a batch is computed, one after the other; 1: at once */
};

/* MIXED: training with --precision mixed. */
enum lk_memory_use { LK_MEMORY_PREDICTING, LK_MEMORY_TRAINING, LK_MEMORY_TRAINING_MIXED };

/* Plans a model's memory on a device and allocates nothing. shards 0: as training would choose.
 * fails: LK_E_DEVICE_MEMORY where it does not fit, with the batch size that would */
LK_API LK_MUST_CHECK enum lk_status lk_model_memory(struct lk_model *model,
                                                    struct lk_device *device, int64_t batch,
                                                    int shards, enum lk_memory_use use,
                                                    struct lk_memory *memory);

/* As lk_model_memory(), which recomputes automatically, with that mode. */
LK_API LK_MUST_CHECK enum lk_status
lk_model_memory_recomputing(struct lk_model *model, struct lk_device *device, int64_t batch,
                            int shards, enum lk_memory_use use, enum lk_recompute_mode mode,
                            struct lk_memory *memory);

#ifdef __cplusplus
}
#endif
#endif

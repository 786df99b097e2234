/* Models as the model room sees them. Floor 6. */
#ifndef LK_MODEL_MODEL_H
#define LK_MODEL_MODEL_H

#include "base/arena.h"
#include "graph/node.h"
#include "metrics/metric.h"
#include "model/words.h"
#include <lockstep/model.h>

enum { LK_MOST_LAYERS = 2000, LK_MOST_METRICS = 8 };

/* A figure of an output's evaluation, as the text asks for it. */
struct lk_model_metric {
    const struct lk_metric_kind *kind;
    const char *options;
};

/* A node that predicts, what it is trained for, and by which figures it is judged. */
struct lk_model_output {
    const char *name; /* of the text; of labels too, where data have several */
    struct lk_node *node;
    struct lk_model_metric loss; /* kind NULL: it is not trained */
    double weight;               /* of its loss among those of all outputs */
    struct lk_metric_shape shape;
    struct lk_model_metric metrics[LK_MOST_METRICS];
    int metric_count;
    struct lk_node *target, *loss_node; /* NULL: not added yet */
};

struct lk_model {
    struct lk_arena arena;
    struct lk_graph *graph;
    const char *name, *text;
    struct lk_node *inputs[LK_MOST_INPUTS];
    int input_count;
    int node_count; /* of the text: labels and losses not counted */
    struct lk_model_output outputs[LK_MOST_OUTPUTS];
    int output_count;
    bool says_loss;       /* the text does: else cross-entropy over classes is taken */
    struct lk_node *loss; /* of all outputs; NULL: not added yet */
};

/* Two nodes at most: an operation and the activation behind it. */
struct lk_layer_entry {
    const struct lk_yaml *entry; /* as it stands in the text */
    struct lk_node *first;       /* names the layer and has its parameters */
    struct lk_node *last;        /* what readers of the layer read */
};

/* An entry of the text that has a name and is no layer: one that uses a block, or that is not
 * there. */
struct lk_named {
    const struct lk_named *before;
    const char *name;
    struct lk_node *node;  /* what readers of it read */
    const char *block;     /* NULL: it is not there */
    int layers, end_layer; /* of the reading, that the block has made: the first, and behind the
                              last */
};

/* A model text while it is read. */
struct lk_reading {
    struct lk_model *model;
    int64_t classes; /* what $classes stands for; 0: the text does not say */
    struct lk_layer_entry layers[LK_MOST_LAYERS];
    int count;
    struct lk_growth growth;
    const struct lk_yaml *blocks; /* a map of definitions; NULL: none */
    int *uses;                    /* of each block, so far */
    const struct lk_named *named; /* the latest */
    struct lk_node *before;       /* what an entry without `from` reads; NULL: the only input */
    int entries;                  /* that were read, each repetition counted */
    int depth;                    /* blocks around the entry that is read */
    bool is_frozen;               /* one of these is `trainable: false` */
};

/* The outputs' nodes, NULL behind the last, as a replica takes them. */
void lk_model_output_nodes(const struct lk_model *model,
                           const struct lk_node *nodes[LK_MOST_OUTPUTS + 1]);

/* Read `input:`; `output:`, `loss:` and `metrics:`. fails: LK_E_MODEL with the line */
LK_MUST_CHECK enum lk_status lk_inputs_read(struct lk_reading *reading,
                                            const struct lk_yaml *root);
LK_MUST_CHECK enum lk_status lk_outputs_read(struct lk_reading *reading,
                                             const struct lk_yaml *root);

/* What an output of a text without `loss:` is trained for: its class. fails: LK_E_MODEL where
 * it is no vector of class probabilities */
LK_MUST_CHECK enum lk_status lk_output_set_standard(const struct lk_model *model,
                                                    struct lk_model_output *output);

/* Adds targets and losses of all outputs, and their weighted sum where there are several.
 * smoothing: as lk_model_add_one_hot_loss() has it; below 0: labels as they are. */
LK_MUST_CHECK enum lk_status lk_model_add_losses(struct lk_model *model, double smoothing,
                                                 struct lk_node **loss);

/* Takes over the definitions under `blocks:`. fails: LK_E_MODEL with the line */
LK_MUST_CHECK enum lk_status lk_blocks_read(struct lk_reading *reading,
                                            const struct lk_yaml *blocks);

/* Tells of blocks that no entry uses. */
void lk_blocks_warn_of_unused(const struct lk_reading *reading);

/* Adds the layers that an entry of `layers:` describes, which may be none, where words stand
 * for this. fails: LK_E_MODEL with the line */
LK_MUST_CHECK enum lk_status lk_entry_read(struct lk_reading *reading,
                                           const struct lk_yaml *yaml,
                                           const struct lk_words *words);

/* The node that `name:` (a scalar) stands for: what the entry, or the input, gives to readers.
 * fails: LK_E_MODEL with the nearest name */
LK_MUST_CHECK enum lk_status lk_layer_find(const struct lk_reading *reading,
                                           const struct lk_yaml *name, struct lk_node **node);

/* Writes a value as lk_option_set() takes it: "3", "[3, 5]"; $classes is replaced.
 * fails: LK_E_MODEL */
LK_MUST_CHECK enum lk_status lk_layer_value(const struct lk_reading *reading,
                                            const struct lk_yaml *value, char *text,
                                            size_t bytes);

#endif

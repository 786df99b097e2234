/* A model behind its public handle: the graph of its text, its inputs, and its outputs with
 * their losses and metrics. Floor 6. */
#ifndef LK_MODEL_MODEL_H
#define LK_MODEL_MODEL_H

#include "base/arena.h"
#include "graph/nodes/node.h"
#include "metrics/metric.h"
#include <lockstep/model.h>

enum { LK_MOST_METRICS = 8 };

/* A figure of an output's evaluation, as the text asks for it. */
struct lk_model_metric {
    const struct lk_metric_kind *kind;
    const char *options, *label; /* "k="2" ", "top_k(k=2)" */
};

/* A node that predicts, what it is trained for, and by which figures it is judged. */
struct lk_model_output {
    const char *name; /* of the text; of labels too, where data have several */
    const char
        *said; /* the same, but for an activation behind an entry that has a name: that */
    struct lk_node *node;
    struct lk_model_metric loss; /* kind NULL: the output is not trained */
    double weight;               /* of its loss among those of all outputs */
    struct lk_metric_shape shape;
    struct lk_model_metric metrics[LK_MOST_METRICS];
    int metric_count;
    const char *const *class_names;     /* [class_count], see classes.h */
    int64_t class_count;                /* 0: its classes have no names */
    struct lk_node *target, *loss_node; /* NULL: not added yet */
};

/* A name of the text that stands for another node than the one of that name: an entry that
 * uses a block or is not there, one with an activation behind it. */
struct lk_model_name {
    const char *name;
    struct lk_node *node; /* what readers of it read */
    int first, end;       /* the nodes that it has made, by number: `first` to end - 1; none of
                           * an entry that is not there */
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
    const struct lk_model_name *names; /* [name_count] */
    int name_count;
    int64_t classes,
        vocabulary;       /* what $classes and $vocabulary stand for; 0: nothing is said */
    bool says_loss;       /* the text says what is trained for; else cross-entropy over classes
                           * is taken */
    struct lk_node *loss; /* of all outputs; NULL: not added yet */
};

/* The outputs' nodes, NULL behind the last, as a replica takes them. */
void lk_model_output_nodes(const struct lk_model *model,
                           const struct lk_node *nodes[LK_MOST_OUTPUTS + 1]);

/* Fills in what planning a model's memory needs beside device, batch and recompute: losses,
 * which it adds for training, shards where there are none, Adam's arrays, and choices, which
 * the caller destroys. */
struct lk_replica_config;
LK_MUST_CHECK enum lk_status lk_model_config(struct lk_model *model, enum lk_memory_use use,
                                             struct lk_replica_config *config);

/* Whether it is trained in plane tiles (tensor/tensor.h), where devices and operations can, if
 * nobody says otherwise: with few samples of a shard, unless a part is frozen, since the bits
 * are to be those of training with that part computed once (graph/cut.c). */
bool lk_model_trains_planes(struct lk_model *model, int64_t batch, int shards);

struct lk_replica_bytes;
struct lk_memory lk_memory_of(const struct lk_replica_bytes *bytes);

/* What the entry or input of that name gives. fails: LK_E_ARGUMENT with the nearest name */
LK_MUST_CHECK enum lk_status lk_model_find(const struct lk_model *model, const char *name,
                                           struct lk_node **node);

/* What an output of a text without `loss:` is trained for: its class. fails: LK_E_MODEL where
 * it is no vector of class probabilities */
LK_MUST_CHECK enum lk_status lk_output_set_standard(const struct lk_model *model,
                                                    struct lk_model_output *output);

/* Adds targets and losses of all outputs, and their weighted sum where there are several.
 * smoothing: as lk_model_add_one_hot_loss() has it; below 0: labels as they are. */
LK_MUST_CHECK enum lk_status lk_model_add_losses(struct lk_model *model, double smoothing,
                                                 struct lk_node **loss);

/* needed[graph->count], all false: marks the nodes that outputs depend on. Others are in no
 * replica, and their parameters in no checkpoint. */
void lk_model_mark_needed(const struct lk_model *model, bool *needed);

#endif

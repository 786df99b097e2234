/* Models as the model room sees them. Floor 6. */
#ifndef LK_MODEL_MODEL_H
#define LK_MODEL_MODEL_H

#include "base/arena.h"
#include "model/yaml.h"
#include "ops/op.h"
#include <lockstep/model.h>

enum { LK_MOST_LAYERS = 2000 };

struct lk_model {
    struct lk_arena arena;
    struct lk_graph *graph;
    const char *name, *text;
    struct lk_node *inputs[LK_MOST_INPUTS];
    int input_count;
    struct lk_node *output;
    struct lk_node *labels, *loss; /* NULL: not added yet */
};

/* An entry of `layers:`, which may be two nodes: an operation and the activation behind it. */
struct lk_layer {
    const struct lk_yaml *entry;
    struct lk_node *first; /* names the layer and has its parameters */
    struct lk_node *last;  /* what readers of the layer read */
};

/* A model text while it is read. */
struct lk_reading {
    struct lk_model *model;
    int64_t classes; /* what $classes stands for; 0: the text does not say */
    struct lk_layer layers[LK_MOST_LAYERS];
    int count;
};

/* Adds the layer that an entry of `layers:` describes. fails: LK_E_MODEL with the line */
LK_MUST_CHECK enum lk_status lk_layer_read(struct lk_reading *reading,
                                           const struct lk_yaml *entry);

/* The node that `name:` (a scalar) stands for: what the layer, or the input, gives to readers.
 * fails: LK_E_MODEL with the nearest name */
LK_MUST_CHECK enum lk_status lk_layer_find(const struct lk_reading *reading,
                                           const struct lk_yaml *name, struct lk_node **node);

/* Writes a value as lk_option_set() takes it: "3", "[3, 5]"; $classes is replaced.
 * fails: LK_E_MODEL */
LK_MUST_CHECK enum lk_status lk_layer_value(const struct lk_reading *reading,
                                            const struct lk_yaml *value, char *text,
                                            size_t bytes);

#endif

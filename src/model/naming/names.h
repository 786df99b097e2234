/* What other programs call the parameters of a model. Floor 6. Knows no file of weights.
 *
 * A naming gives every parameter of the model a name. There are our own names; for
 * models of the zoo the conventions in zoo/names; and what PyTorch and Keras would
 * call the parameters of layers that have our names, or that Keras counts. */
#ifndef LK_MODEL_NAMING_NAMES_H
#define LK_MODEL_NAMING_NAMES_H

#include "model/model.h"
#include "model/naming/layout.h"

enum { LK_MOST_NAMINGS = 24, LK_MOST_SPELLINGS = 2, LK_MOST_UNUSED = 8 };

/* Parameter `index` of a node that uses its own. */
struct lk_foreign_param {
    const struct lk_node *node;
    int index;
    char name[96];  /* ours: "conv2d_1.weight" */
    bool is_needed; /* an output depends on it: else it is in no replica and no checkpoint */
};

/* How a naming spells a layer's parameters: "conv1.weight", "conv1/kernel", "conv1/vars/0". */
enum lk_naming_style { LK_NAMING_OWN, LK_NAMING_TORCH, LK_NAMING_KERAS, LK_NAMING_KERAS_3 };

/* Arrays of that program's files that our model has on purpose no parameters for. */
struct lk_unused {
    const char *layer, *why; /* "AuxLogits": it, or what all their names begin with */
};

/* names[p]: the spellings of parameter p, the usual one first; NULL: it has no other. A ":0" at
 * the end, as in Keras 2, is left out. Two parameters have one name where an array holds both.
 * A layer that its table does not name has our name. */
struct lk_naming {
    const char *title; /* "torchvision" */
    enum lk_naming_style style;
    enum lk_layout_kind layout;
    bool has_table;  /* names are those of a table in zoo/names, not of our nodes */
    bool is_counted; /* layers have the numbers that Keras 3 gives them in a file, not names */
    const char *differs; /* how that program's network differs from ours; NULL: it does not */
    const char *images;  /* how images are prepared for its published weights: a preset of the
                          * stage normalize, "torchvision"; NULL: not known */
    const char *lacks;   /* a parameter that layers there do not have, "gamma": its names are
                          * NULL, and it is as initialized; NULL: none */
    const struct lk_unused *unused; /* [unused_count] */
    int unused_count;
    const char *(*names)[LK_MOST_SPELLINGS];
    const char *(*added)[LK_MOST_SPELLINGS]; /* likewise, of an array that is added to it, as
                                              * PyTorch's recurrent layers have a second bias
                                              * where one is enough */
    const int *order; /* [params]: the parameters in the order of that program */
};

struct lk_namings {
    struct lk_arena arena;
    int params, count;
    struct lk_foreign_param *param; /* [params], in the order of the graph */
    struct lk_naming list[LK_MOST_NAMINGS];
};

/* Lists the model's parameters and all namings; {0} before. To be cleared after failures too.
 * fails: LK_E_MEMORY; LK_E_MODEL where a table of names is wrong */
LK_MUST_CHECK enum lk_status lk_namings_make(const struct lk_model *model,
                                             struct lk_namings *namings);
void lk_namings_clear(struct lk_namings *namings);

/* The first naming of that title: "lockstep", one of the model's table ("torchvision"), or
 * "pytorch", "keras" and "keras-3", which need no table. NULL: absent. */
const struct lk_naming *lk_namings_find(const struct lk_namings *namings, const char *title);

#endif

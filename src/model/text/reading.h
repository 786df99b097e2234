/* A model text while it is read, for the files that read it. Floor 6. */
#ifndef LK_MODEL_TEXT_READING_H
#define LK_MODEL_TEXT_READING_H

#include "model/model.h"
#include "model/text/words.h"

enum { LK_MOST_LAYERS = 2000 };

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
    int layers, end_layer; /* the layers that the block has made: numbers of the first, and of
                            * the one behind the last */
};

/* A model text while it is read. */
struct lk_reading {
    struct lk_model *model;
    int64_t classes;                  /* what $classes stands for; 0: the text does not say */
    int64_t vocabulary;               /* what $vocabulary stands for; 0: likewise */
    const struct lk_yaml *parameters; /* words of the text, a map; NULL: none */
    struct lk_layer_entry layers[LK_MOST_LAYERS];
    int count;
    struct lk_growth growth;
    const struct lk_yaml *blocks; /* a map of definitions; NULL: none */
    int *uses;                    /* of each block, so far */
    const struct lk_named *named; /* the latest */
    struct lk_node *before;       /* what an entry without `from` reads; NULL: the only input */
    int entries;                  /* that were read, each repetition counted */
    int depth;                    /* blocks around the entry that is read */
    bool is_frozen;               /* one of those blocks is `trainable: false` */
    double lr_scale;              /* of those blocks, multiplied */
    const struct lk_yaml *device; /* of the innermost of them that says one; NULL: none does */
};

/* Read `input:`; `output:`, `loss:` and `metrics:`. fails: LK_E_MODEL with the line */
LK_MUST_CHECK enum lk_status lk_inputs_read(struct lk_reading *reading,
                                            const struct lk_yaml *root);
LK_MUST_CHECK enum lk_status lk_outputs_read(struct lk_reading *reading,
                                             const struct lk_yaml *root);

/* Reads `freeze_until:` or `train_last:` and freezes nodes, once all layers are read.
 * fails: LK_E_MODEL with the line */
LK_MUST_CHECK enum lk_status lk_freeze_read(struct lk_reading *reading,
                                            const struct lk_yaml *root);

/* Takes over the definitions under `blocks:`. fails: LK_E_MODEL with the line */
LK_MUST_CHECK enum lk_status lk_blocks_read(struct lk_reading *reading,
                                            const struct lk_yaml *blocks);

/* Tells of blocks that no entry uses. */
void lk_blocks_warn_of_unused(const struct lk_reading *reading);

/* Adds the layers that an entry of `layers:` describes, which may be none. `words` are the
 * values of its words with a dollar sign. fails: LK_E_MODEL with the line */
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

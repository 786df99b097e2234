/* One entry of `layers:`, for the files that read it. Floor 6. entry.c and block.c call each
 * other, since an entry may use a block, whose layers are entries; so do layer.c and weights.c,
 * since a layer may name another one whose weights it takes. */
#ifndef LK_MODEL_TEXT_ENTRY_H
#define LK_MODEL_TEXT_ENTRY_H

#include "model/text/reading.h"

/* What may stand beside the operation or the block. */
enum lk_entry_key {
    LK_ENTRY_NAME,
    LK_ENTRY_FROM,
    LK_ENTRY_TRAINABLE,
    LK_ENTRY_LR_SCALE,
    LK_ENTRY_L1,
    LK_ENTRY_L2,
    LK_ENTRY_WEIGHTS,
    LK_ENTRY_DEVICE,
    LK_ENTRY_REPEAT,
    LK_ENTRY_WHEN,
    LK_ENTRY_KEYS
};

/* An entry taken apart: it has an operation or uses a block. */
struct lk_entry {
    const struct lk_yaml *yaml;
    const struct lk_op *op;
    const struct lk_yaml *block;             /* its definition */
    const struct lk_yaml *options;           /* a map; NULL: none */
    const struct lk_yaml *at[LK_ENTRY_KEYS]; /* NULL: absent */
};

/* The words of keys, in their order. */
extern const char *const lk_entry_words[LK_ENTRY_KEYS];

/* The operation of that name; NULL: there is none. */
const struct lk_op *lk_entry_find_op(const char *name);

/* Takes an entry apart as it stands. fails: LK_E_MODEL with the line and the nearest word */
LK_MUST_CHECK enum lk_status lk_entry_take_apart(const struct lk_reading *reading,
                                                 const struct lk_yaml *yaml,
                                                 struct lk_entry *entry);

/* What an entry reads: the nodes of `from`, or what is before it. */
struct lk_sources {
    struct lk_node *x[LK_MOST_INPUTS];
    int count;
};

/* from NULL: there is none at `place`. fails: LK_E_MODEL */
LK_MUST_CHECK enum lk_status lk_layer_sources(const struct lk_reading *reading,
                                              const struct lk_yaml *from,
                                              const struct lk_yaml *place,
                                              struct lk_sources *sources);

/* Adds the nodes of an entry with an operation, all words of which are replaced.
 * fails: LK_E_MODEL with the line */
LK_MUST_CHECK enum lk_status lk_layer_read(struct lk_reading *reading,
                                           const struct lk_entry *entry,
                                           const struct lk_sources *sources);

/* The option `bidirectional` of an entry with a recurrent operation; NULL: it has none. */
const struct lk_yaml *lk_directions_find(const struct lk_entry *entry);

/* Adds the nodes of an entry that has it: NAME_forward, NAME_backward, and NAME, which joins
 * them. fails: LK_E_MODEL with the line */
LK_MUST_CHECK enum lk_status lk_directions_read(struct lk_reading *reading,
                                                const struct lk_entry *entry,
                                                const struct lk_sources *sources);

/* Reads yes or no; value NULL: yes. fails: LK_E_MODEL */
LK_MUST_CHECK enum lk_status lk_layer_flag(const struct lk_reading *reading, const char *word,
                                           const struct lk_yaml *value, bool *flag);

/* Multiplies *scale by the value of `lr_scale`; NULL: by 1. fails: LK_E_MODEL */
LK_MUST_CHECK enum lk_status lk_layer_lr_scale(const struct lk_reading *reading,
                                               const struct lk_yaml *value, double *scale);

/* The latest entry of that name that uses a block, or that is not there; NULL: there is none.
 */
const struct lk_named *lk_layer_find_named(const struct lk_reading *reading, const char *name,
                                           bool is_block);

/* Says that nothing has this name, with the nearest that there is. Returns LK_E_MODEL. */
enum lk_status lk_layer_refuse_name(const struct lk_reading *reading,
                                    const struct lk_yaml *name);

/* The node whose weights an entry with an operation is to have; NULL: its own. Call it before
 * the entry's node is added. fails: LK_E_MODEL with the line */
LK_MUST_CHECK enum lk_status lk_weights_find(const struct lk_reading *reading,
                                             const struct lk_entry *entry,
                                             struct lk_node **owner);

/* Lets the entry's node have the weights of the owner (NULL: its own), and be frozen like it.
 * fails: LK_E_MODEL with the line */
LK_MUST_CHECK enum lk_status lk_weights_share(const struct lk_entry *entry,
                                              struct lk_node *node, struct lk_node *owner);

/* Lets the layers that a block has made have the weights of those of the block that the entry
 * names, one by one. fails: LK_E_MODEL with the line */
LK_MUST_CHECK enum lk_status lk_weights_share_block(const struct lk_reading *reading,
                                                    const struct lk_entry *entry,
                                                    const struct lk_named *use);

/* Lays out the block that an entry uses. fails: LK_E_MODEL with the line */
LK_MUST_CHECK enum lk_status lk_block_use(struct lk_reading *reading,
                                          const struct lk_entry *entry,
                                          const struct lk_sources *sources,
                                          const struct lk_words *words);

/* For an entry that is left out (`when: false`): whoever reads it by its name gets `node`,
 * which the entry would have read. name: a scalar. fails: LK_E_MODEL, LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_block_pass_by(struct lk_reading *reading,
                                              const struct lk_yaml *name, struct lk_node *node);

#endif

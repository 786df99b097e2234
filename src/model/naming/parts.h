/* Nodes of ours that other programs have as the parts of one layer. Floor 6. Private to this
 * room. */
#ifndef LK_MODEL_NAMING_PARTS_H
#define LK_MODEL_NAMING_PARTS_H

#include "model/naming/names.h"

/* Finds what other programs call the layers of nodes, where that is not the node's name:
 * - NAME_forward and NAME_backward (made by `bidirectional`): "NAME:forward", in PyTorch
 *   "NAME:l0_reverse"; NAME_linear before a function NAME, in Keras: "NAME";
 * - NAME_depthwise and NAME (Keras's separable convolutions): "NAME:depthwise", ":pointwise";
 * - NAME_query, _key, _value, NAME_heads and NAME (its attention): "NAME:query", ":output".
 * base[p] is that for a parameter of such a node, else NULL. *base NULL: the model has none.
 * What they point to lies in the arena. fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_parts_list(const struct lk_namings *params,
                                           enum lk_naming_style style, struct lk_arena *arena,
                                           const char ***base);

/* Whether a convolution has a kernel for each channel by itself. */
bool lk_node_is_depthwise(const struct lk_node *node);

#endif

/* Nodes of ours that other programs have as the parts of one layer. Floor 6. Private to this
 * room. */
#ifndef LK_MODEL_NAMING_PARTS_H
#define LK_MODEL_NAMING_PARTS_H

#include "model/naming/names.h"

/* Finds what other programs call the layers of nodes, where that is not the node's name:
 * - NAME_forward and NAME_backward, which walk one sequence both ways, as `bidirectional` makes
 *   them: "NAME:forward", or as PyTorch counts directions "NAME:l0_reverse";
 * - NAME_depthwise and NAME behind it, as Keras's separable convolutions are imported:
 *   "NAME:depthwise", "NAME:pointwise"; NAME_linear before a function NAME, in Keras: "NAME".
 * base[p] is that for a parameter of such a node, else NULL. *base NULL: the model has none.
 * What they point to lies in the arena. fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_parts_list(const struct lk_namings *params,
                                           enum lk_naming_style style, struct lk_arena *arena,
                                           const char ***base);

/* Whether a convolution has a kernel for each channel by itself. */
bool lk_node_is_depthwise(const struct lk_node *node);

#endif

/* Pairs of recurrent nodes that other programs have as one layer of two directions. Floor 6.
 * Private to this room. */
#ifndef LK_MODEL_FOREIGN_DIRECTIONS_H
#define LK_MODEL_FOREIGN_DIRECTIONS_H

#include "model/foreign/names.h"

/* Finds nodes NAME_forward and NAME_backward that walk one sequence both ways, as the option
 * `bidirectional` makes them. base[p]: "NAME:forward" for parameters of such a node, or as
 * PyTorch counts directions "NAME:l0_reverse"; else NULL. *base NULL: the model has none.
 * What they point to lies in the arena. fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_directions_list(const struct lk_namings *params,
                                                enum lk_naming_style style,
                                                struct lk_arena *arena, const char ***base);

#endif

/* Tables of what other programs call the layers of a model, in zoo/names. Floor 6.
 * Private to this room. */
#ifndef LK_MODEL_FOREIGN_TABLE_H
#define LK_MODEL_FOREIGN_TABLE_H

#include "model/foreign/names.h"

enum { LK_MOST_CONVENTIONS = 8 };

/* A convention of a table. base[p]: the layer that parameter p belongs to, perhaps with
 * ":depthwise" or ":pointwise", its part of a layer that we have as two; NULL: none. */
struct lk_convention {
    const char *title, *differs, *images; /* as struct lk_naming has them */
    bool is_keras;
    const char **base; /* [params] */
    int *order;        /* [params]: as struct lk_naming has it */
};

/* Reads the conventions of the table that belongs to a model of that name: none where there is
 * no table. What they point to lies in the arena. fails: LK_E_MODEL with the line; LK_E_MEMORY
 */
LK_MUST_CHECK enum lk_status lk_conventions_read(const char *model,
                                                 const struct lk_namings *params,
                                                 struct lk_arena *arena,
                                                 struct lk_convention *conventions, int *count);

#endif

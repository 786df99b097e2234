/* Tables of what other programs call the layers of a model, in zoo/names. Floor 6.
 * Private to this room. */
#ifndef LK_MODEL_NAMING_TABLE_H
#define LK_MODEL_NAMING_TABLE_H

#include "model/naming/names.h"

enum { LK_MOST_CONVENTIONS = 8 };

/* A convention of a table. base[p]: the layer that parameter p belongs to, perhaps with
 * ":depthwise" or ":pointwise", its part of a layer that we have as two, or ":conv2d", a
 * convolution of one pixel where we have a dense layer; NULL: none. */
struct lk_convention {
    const char *title, *differs, *images, *lacks; /* as struct lk_naming has them */
    const struct lk_unused *unused;
    int unused_count;
    bool is_keras;
    int counts_from;   /* number of the first layer of a class that has no base; -1: layers
                        * without a base have our names */
    const char **base; /* [params] */
    int *order;        /* [params]: as struct lk_naming has it */
};

/* Reads the conventions of the table that belongs to models of that name: none where there is
 * no table. What they point to lies in the arena. fails: LK_E_MODEL with the line; LK_E_MEMORY
 */
LK_MUST_CHECK enum lk_status lk_conventions_read(const struct lk_model *model,
                                                 const struct lk_namings *params,
                                                 struct lk_arena *arena,
                                                 struct lk_convention *conventions, int *count);

#endif

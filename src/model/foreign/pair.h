/* Which array of a file belongs to which parameter of a model. Floor 6. Reads no numbers and
 * judges nothing: what is left over on either side is the caller's affair. */
#ifndef LK_MODEL_FOREIGN_PAIR_H
#define LK_MODEL_FOREIGN_PAIR_H

#include "io/arrays/arrays.h"
#include "model/naming/names.h"

/* What decides: names, then order where no names fit; or one of them alone. */
enum lk_pair_by { LK_PAIR_BY_BOTH, LK_PAIR_BY_NAME, LK_PAIR_BY_ORDER };

enum { LK_PREFIX_BYTES = 256 };

struct lk_pair {
    int array;       /* of the file; -1: none */
    int added;       /* that is added to it; -1: none */
    bool fits;       /* in shape */
    bool by_shape;   /* no name says that it is this array: the next one of such a shape */
    bool is_initial; /* there is no such array: the names' program has no such parameter, which
                      * is as initialized, 1 or 0 */
    struct lk_layout layout;
};

/* pair[p]: of parameter p. */
struct lk_pairing {
    const struct lk_naming *naming; /* NULL: in the file's order, by shape */
    char prefix[LK_PREFIX_BYTES];   /* that all names of the file have more: "module." */
    int paired, fitting;
    bool is_mixed;        /* some names were found without the prefix, or behind another one */
    bool numbers_differ;  /* names are numbers, and layers are counted otherwise there */
    bool order_fits;      /* names do not fit all, and all fits in order, by shape */
    struct lk_pair *pair; /* [params], in the arena of the namings */
};

/* Pairs as many parameters as it can. What names leave over on both sides is paired in order,
 * if it is one layer and all of it fits: most often a head by another name. fails: LK_E_MEMORY
 */
LK_MUST_CHECK enum lk_status lk_pair(const struct lk_arrays *file, struct lk_namings *namings,
                                     enum lk_pair_by by, struct lk_pairing *pairing);

/* used[array]: whether a parameter takes it; to be freed. fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_pairing_used(const struct lk_arrays *file,
                                             const struct lk_namings *namings,
                                             const struct lk_pairing *pairing, bool **used);

/* Whether an array is none of a model's parameters: counters of PyTorch's batch norm, what
 * optimizers and random generators keep. */
bool lk_array_is_aside(const struct lk_arrays *file, const struct lk_array *array);

#endif

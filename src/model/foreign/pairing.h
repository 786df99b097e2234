/* Steps of pairing. Floor 6. Private to this room. */
#ifndef LK_MODEL_FOREIGN_PAIRING_H
#define LK_MODEL_FOREIGN_PAIRING_H

#include "model/foreign/pair.h"

/* A pair for each parameter, without arrays. fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_pairing_describe(struct lk_namings *namings,
                                                 enum lk_layout_kind kind,
                                                 struct lk_pair **pairs);

/* Notes which array is that of parameter p. */
void lk_pairing_set(struct lk_pairing *pairing, int p, const struct lk_arrays *file, int array);

/* Which row of the naming's `unused` tells that our model has no use for an array; -1: none. */
int lk_pairing_find_unused(const struct lk_pairing *pairing, const char *name);

/* Whether an array is called as parameter p is, but for the layer: "kernel", "gamma". */
bool lk_pairing_has_word(const struct lk_array *array, const struct lk_naming *naming, int p);

/* Completes what was paired by names, where one layer is left over on both sides at the same
 * place and all of it fits. Names of Keras 3 count: where some are missing, others may be those
 * of other layers. fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_pairing_complete(const struct lk_arrays *file,
                                                 struct lk_namings *namings,
                                                 struct lk_pairing *pairing);

/* Nodes that nobody has named have numbers, as layers of others have that nobody has named, and
 * these count otherwise: dense and dense_1 there are dense_1 and dense_2 here. Whether some
 * parameter has its array by such a name; whether another pairing gives one of those another
 * array; takes the arrays of all those away. */
bool lk_pairing_has_numbers(const struct lk_namings *namings, const struct lk_pairing *pairing);
bool lk_pairing_differs(const struct lk_namings *namings, const struct lk_pairing *pairing,
                        const struct lk_pairing *other);
void lk_pairing_drop_numbers(const struct lk_namings *namings, struct lk_pairing *pairing);

#endif

/* Arrays of Keras 3 whose layers lie in models within the model. Floor 6. Private to
 * this room. */
#ifndef LK_MODEL_FOREIGN_NESTED_H
#define LK_MODEL_FOREIGN_NESTED_H

#include "model/foreign/pair.h"

/* Pairs by a naming of style LK_NAMING_KERAS_3, which counts the layers of a class. A file does
 * so in each model by itself: layers/conv2d/vars/0, layers/functional/layers/conv2d/vars/0.
 * Where a model stands among the layers of another is not told. So each layer of ours takes the
 * next one of its class that has its shapes; where several models have one, that of the inner
 * model of the layer before it, whose layers stand together, unless a model within that one has
 * such a layer too. Else nothing decides: the layer gets no arrays.
 * pairing: described, and nothing paired; not changed where the file has one model alone.
 * fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_pair_nested(const struct lk_arrays *file,
                                            const struct lk_namings *namings,
                                            const struct lk_naming *naming,
                                            struct lk_pairing *pairing);

#endif

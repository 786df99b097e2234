/* Keras's classes of layers, and what each becomes: finding one and calling it, and the tables
 * of those that model/keras_layers has. Floor 6. Private to both rooms. */
#ifndef LK_MODEL_KERAS_LAYERS_H
#define LK_MODEL_KERAS_LAYERS_H

#include "model/keras/keras.h"

/* What a layer of ours is made of one of Keras: reads x[count], gives *made. */
typedef enum lk_status lk_keras_convert(struct lk_keras_draft *draft, int count,
                                        const struct lk_keras_tensor *x,
                                        struct lk_keras_tensor *made);

struct lk_keras_class {
    const char *name;
    lk_keras_convert *convert;
    int most_inputs;
    const char *const *options; /* that it knows */
};

/* The options of a row: names, or NULL alone. */
#define LK_KERAS_OPTIONS(...)                                                                  \
    (const char *const[])                                                                      \
    {                                                                                          \
        __VA_ARGS__, NULL                                                                      \
    }

extern const struct lk_keras_class lk_keras_image_classes[], lk_keras_classes[],
    lk_keras_norm_classes[], lk_keras_text_classes[]; /* end with an empty row */

/* Calls the layer at work. fails: LK_E_MODEL a class that is not known, by name */
LK_MUST_CHECK enum lk_status lk_keras_call(struct lk_keras_draft *draft, int count,
                                           const struct lk_keras_tensor *x,
                                           struct lk_keras_tensor *made);

/* The activation that the layer at work names under `key`: an operation and its options. "":
 * none. fails: LK_E_MODEL one that is not known */
LK_MUST_CHECK enum lk_status lk_keras_activation(const struct lk_keras_draft *draft,
                                                 const char *key, const char **op,
                                                 const char **options);

/* Adds `entry` and behind it the activation that the layer names. weighted: the entry that has
 * the layer's weights. */
LK_MUST_CHECK enum lk_status lk_keras_add_activated(struct lk_keras_draft *draft,
                                                    const struct lk_keras_entry *entry,
                                                    const struct lk_keras_tensor *x,
                                                    struct lk_keras_tensor *weighted,
                                                    struct lk_keras_tensor *made);

/* The arrays of a layer from number `first` on: a kernel of that word and, perhaps, a bias. */
LK_MUST_CHECK enum lk_status lk_keras_pair_kernel(struct lk_keras_draft *draft,
                                                  const struct lk_keras_tensor *weighted,
                                                  const char *word, int first, bool bias);

/* Rescaling with a scale of each channel. */
LK_MUST_CHECK enum lk_status lk_keras_rescale_channels(struct lk_keras_draft *draft,
                                                       const struct lk_keras_tensor *x,
                                                       struct lk_keras_tensor *made);

#endif

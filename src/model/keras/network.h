/* A model of Keras while it is walked through: its layers, and their calls. Floor 6. Private to
 * this room. */
#ifndef LK_MODEL_KERAS_NETWORK_H
#define LK_MODEL_KERAS_NETWORK_H

#include "model/keras/keras.h"

/* Output `tensor` of call `call` of a layer. */
struct lk_keras_reference {
    int layer, call, tensor;
};

struct lk_keras_call_site {
    int layer, count;
    bool is_causal;
    json_t *number;                    /* that is one of two operands; NULL: none */
    bool begins_with_number;           /* it is the first */
    struct lk_keras_reference *inputs; /* [count] */
    struct lk_keras_reference *masks;  /* [mask_count] */
    int mask_count;
    struct lk_keras_tensor *made;
    int made_count; /* 0: not called yet */
};

/* One model, the outer one or a nested one, while it is walked through. */
struct lk_keras_network {
    struct lk_keras_draft *draft;
    json_t *config, *layers; /* an array */
    const char *path;        /* of the model in a Keras 3 file; "" of the outer one */
    struct lk_keras_layer **known;
    const char **names; /* [layer_count]: by which calls refer to them */
    int *first_calls;   /* [layer_count + 1]: of the calls */
    struct lk_keras_call_site *calls;
    int layer_count, call_count, references;
    const struct lk_keras_tensor *given; /* what the nested model reads; NULL: the outer one */
    int given_count;
};

/* --- calls.c ------------------------------------------------------------------------------ */

/* The text of that key; NULL: there is none. */
const char *lk_keras_text_of(json_t *object, const char *key);

bool lk_keras_is_model(const char *class);

/* ["conv2d", 0, 0]: a layer's name, the number of its call, that of the call's output;
 * is_output: in "output_layers". fails: LK_E_MODEL, also where there is no such layer */
LK_MUST_CHECK enum lk_status lk_keras_read_reference(struct lk_keras_network *n, json_t *value,
                                                     bool is_output,
                                                     struct lk_keras_reference *reference);

/* A call as Keras 3 writes it, {"args": [...], "kwargs": {...}}, or as Keras 2 does, a list of
 * references, or one alone. fails: LK_E_MODEL */
LK_MUST_CHECK enum lk_status lk_keras_read_call(struct lk_keras_network *n, json_t *node,
                                                struct lk_keras_call_site *call);

#endif

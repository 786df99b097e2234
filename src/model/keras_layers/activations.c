/* Keras's activations by name, as operations of ours with their options. */
#include "model/keras/layers.h"

#include "base/fail.h"
#include <string.h>

/* major: of the Keras in which the name means this; 0: in both. */
static const struct {
    const char *name, *op, *options;
    int major;
} table[] = {
    {"linear", "", "", 0},
    {"relu", "relu", "", 0},
    {"relu6", "relu6", "", 0},
    {"leaky_relu", "leaky_relu", "alpha=0.2", 0},
    {"elu", "elu", "", 0},
    {"selu", "selu", "", 0},
    {"gelu", "gelu", "", 0},
    {"silu", "silu", "", 0},
    {"swish", "silu", "", 0},
    {"mish", "mish", "", 0},
    {"hard_silu", "hard_swish", "", 0},
    {"hard_swish", "hard_swish", "", 0},
    {"sigmoid", "sigmoid", "", 0},
    {"hard_sigmoid", "hard_sigmoid", "", 2},
    {"hard_sigmoid", "hard_sigmoid", "alpha=0.16666666666666666 beta=0.5", 3},
    {"tanh", "tanh", "", 0},
    {"softplus", "softplus", "", 0},
    {"softsign", "softsign", "", 0},
    {"exponential", "exp", "", 0},
    {"softmax", "softmax", "", 0},
};

/* A name, or {"class_name": ..., "config": name} of a function that Keras has serialized. */
static const char *find_name(json_t *value)
{
    json_t *registered = json_object_get(value, "registered_name");
    if (json_is_object(value) && json_is_string(json_object_get(value, "config")) &&
        json_is_string(registered) && !strchr(json_string_value(registered), '>'))
        return json_string_value(json_object_get(value, "config"));
    return json_string_value(value);
}

enum lk_status lk_keras_activation(const struct lk_keras_draft *draft, const char *key,
                                   const char **op, const char **options)
{
    json_t *value = json_object_get(draft->layer->config, key);
    const char *name = find_name(value);
    *op = *options = "";
    if (!value || json_is_null(value))
        return LK_OK;
    for (int i = 0; name && i < LK_COUNT(table); i++)
        if (strcmp(table[i].name, name) == 0 &&
            (table[i].major == 0 || table[i].major == draft->major)) {
            *op = table[i].op;
            *options = table[i].options;
            return LK_OK;
        }
    if (name)
        return lk_keras_fail(draft, "its activation '%.60s' is not supported", name);
    return lk_keras_fail(draft,
                         "its activation is an object of Python, which is not supported");
}

/* Behind a layer, an activation with options of its own is an entry of its own: it has the
 * layer's name then, so that this stands for the same value as in Keras. */
enum lk_status lk_keras_add_activated(struct lk_keras_draft *draft,
                                      const struct lk_keras_entry *entry,
                                      const struct lk_keras_tensor *x,
                                      struct lk_keras_tensor *weighted,
                                      struct lk_keras_tensor *made)
{
    const char *op, *options;
    struct lk_keras_entry own = *entry;
    LK_TRY(lk_keras_activation(draft, "activation", &op, &options));
    const bool is_apart = *options != '\0';
    if (*op && !is_apart)
        own.activation = op;
    if (is_apart)
        own.suffix = "_linear";
    LK_TRY(lk_keras_add(draft, &own, 1, x, weighted));
    *made = *weighted;
    if (!is_apart)
        return LK_OK;
    const struct lk_keras_entry behind = {.op = op, .options = options};
    return lk_keras_add(draft, &behind, 1, weighted, made);
}

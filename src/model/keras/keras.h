/* Models that Keras has written as JSON, made into model text and weights of ours. Floor 6.
 * Pairs Keras's layers with our operations, both as words; knows no operation and no device.
 * The JSON may come from anyone: its size and depth are checked before it is parsed, all counts
 * while it is walked through. Private to src/model/keras. */
#ifndef LK_MODEL_KERAS_KERAS_H
#define LK_MODEL_KERAS_KERAS_H

#include "base/arena.h"
#include "base/text.h"
#include "graph/nodes/node.h"
#include "model/model.h"
#include <jansson.h>

enum {
    LK_KERAS_MOST_CALLS = 10000, /* of layers, each use of a shared one counted */
    LK_KERAS_MOST_INPUTS = 64,   /* that one call joins */
    LK_KERAS_NAME = 64,
    LK_KERAS_TEXT = 256
};

/* What one call of a layer gives: a node of the graph, and how its numbers lie. */
struct lk_keras_tensor {
    struct lk_node *node; /* of the draft graph, which has the shapes of the text to be */
    const char *name;     /* of the entry that makes it; of an input its own */
    /* of a vector whose numbers lie as in an image of ours, channels first, where Keras has
     * them last: that image; rank 0: as in Keras */
    struct lk_shape image;
    bool
        is_joined; /* a vector of parts, some of which lie so: only a dense layer can read it */
    int input;     /* number of the input that it is, from 1; 0: none */
    int masked_by; /* of a sequence: number of the input whose length says which of its time
                    * steps count; 0: all do */
};

/* An array of a file, or numbers from the configuration, for a parameter of an entry. */
struct lk_keras_array {
    const char *entry, *param; /* "conv2d_1", "weight" */
    const char *suffix;        /* of the entry: a layer may be several; "" */
    const char *layer;         /* Keras's name of the layer, "conv2d_1" */
    const char *outer;         /* of the outermost nested model that it is in; NULL: none */
    const char *path;          /* of the layer in a Keras 3 file: "layers/conv2d_1" */
    const char *word;          /* Keras's name of the array: "kernel" */
    int number;                /* of the array among those of its layer */
    double value;              /* in all elements, where word is NULL */
    json_t *values;            /* then: of each element; NULL: all have that value */
    double least, epsilon;     /* least > 0: an element v is max(v, least) - epsilon here */
    struct lk_keras_array *next;
};

/* A layer as it stands in the configuration, once for all its calls. */
struct lk_keras_layer {
    const char *name, *class; /* Keras's; of a layer in a nested model "outer/inner" */
    const char *path;         /* as of an array */
    json_t *config;
    const char *snake; /* its class as files of Keras 3 write it: "conv2d" */
    int calls;         /* so far */
    bool is_frozen;
    bool is_function; /* an operation on tensors, such as x + 1, which forgets masks */
    struct lk_keras_layer *next;
};

/* How layers read an input: none yet, those that mask time steps, others. */
enum lk_keras_mask { LK_KERAS_NO_MASK, LK_KERAS_MASKED, LK_KERAS_UNMASKED };

/* A model text while it is made. */
struct lk_keras_draft {
    struct lk_arena arena;
    const char *where; /* the file, for messages */
    int major;         /* version of Keras: 2 or 3 */
    int64_t size[2];   /* height and width where the file leaves them open; 0: not said */
    struct lk_graph *graph;
    struct lk_text layers;
    const char *inputs[LK_MOST_INPUTS]; /* their lines, without the end */
    enum lk_keras_mask masks[LK_MOST_INPUTS];
    bool reads_tokens; /* the input at work is of an embedding, whatever type it tells */
    bool is_causal;    /* the attention at work is called with use_causal_mask */
    double number;     /* that the layer at work is called with beside a tensor; NAN: none */
    bool begins_with_number; /* it stands before the tensor */
    bool is_keras_3;         /* calls are written so */
    const char *suffix;      /* of the entry that was added last */
    bool has_arrays;         /* the file has weights */
    const char *before;      /* the entry made last; NULL: none */
    struct lk_keras_layer *known;
    struct lk_keras_array *arrays, **last_array;
    int calls, entries, depth, input_count;
    bool shares;                  /* the last entry with parameters has those of another one */
    struct lk_keras_layer *layer; /* at work */
    const char *outer;            /* the nested model of the outer one at work; NULL: none */
};

/* --- json.c ------------------------------------------------------------------------------ */

/* Parses text after a look at its size and depth. fails: LK_E_DATA */
LK_MUST_CHECK enum lk_status lk_keras_parse(const char *text, size_t bytes, const char *where,
                                            json_t **root);

/* "FILE: layer 'conv1' (Conv2D): ..." Returns LK_E_MODEL. */
enum lk_status lk_keras_fail(const struct lk_keras_draft *draft, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Options of the layer at work; what is absent or null has the value `standard`.
 * fails: LK_E_MODEL a value of another type or out of range */
LK_MUST_CHECK enum lk_status lk_keras_int(const struct lk_keras_draft *draft, const char *key,
                                          int64_t standard, int64_t *value);
LK_MUST_CHECK enum lk_status lk_keras_real(const struct lk_keras_draft *draft, const char *key,
                                           double standard, double *value);
LK_MUST_CHECK enum lk_status lk_keras_bool(const struct lk_keras_draft *draft, const char *key,
                                           bool standard, bool *value);
LK_MUST_CHECK enum lk_status lk_keras_word(const struct lk_keras_draft *draft, const char *key,
                                           const char *standard, const char **value);

/* One number for both axes, or a list of two. */
LK_MUST_CHECK enum lk_status lk_keras_pair(const struct lk_keras_draft *draft, const char *key,
                                           int64_t standard, int64_t value[2]);

/* n, (down, across) or ((top, bottom), (left, right)): top, bottom, left, right. */
LK_MUST_CHECK enum lk_status lk_keras_edges(const struct lk_keras_draft *draft, const char *key,
                                            int64_t value[4]);

/* The only axis that an option names, counted from 0 for the batch, of values with `rank` axes
 * behind it; with is_list a list of one is fine. fails: LK_E_MODEL */
LK_MUST_CHECK enum lk_status lk_keras_axis(const struct lk_keras_draft *draft, int rank,
                                           int64_t *axis);

/* Refuses what a layer's options say beside `known` (a list that ends with NULL) and beside
 * what changes no prediction. */
LK_MUST_CHECK enum lk_status lk_keras_check_known(const struct lk_keras_draft *draft,
                                                  const char *const *known);

/* A class as Keras names its layers in files: "Conv2D" conv2d, "ReLU" re_lu. */
void lk_keras_snake(const char *class, char *text, size_t bytes);

/* Whether a layer is of a class of someone else's, whatever its name. */
bool lk_keras_is_foreign(json_t *layer);

/* --- entries.c --------------------------------------------------------------------------- */

/* Adds an input of the model. */
LK_MUST_CHECK enum lk_status lk_keras_add_input(struct lk_keras_draft *draft,
                                                struct lk_keras_tensor *made);

/* An entry to be added: `options` as lk_graph_add() takes them, all values without quotes. */
struct lk_keras_entry {
    const char *op, *options;
    const char *suffix;     /* of its name, which is the layer's; NULL: none */
    const char *activation; /* a function behind it; NULL: none */
    bool is_frozen;         /* whatever the layer says */
};

/* Adds an entry that reads x[count] and names it after the layer at work. It shares the weights
 * of the layer's first call. fails: LK_E_MODEL */
LK_MUST_CHECK enum lk_status lk_keras_add(struct lk_keras_draft *draft,
                                          const struct lk_keras_entry *entry, int count,
                                          const struct lk_keras_tensor *x,
                                          struct lk_keras_tensor *made);

/* Says which array of the layer at work the parameter of an entry gets; nothing where the entry
 * has another one's weights. word NULL: `value` in all elements. */
LK_MUST_CHECK enum lk_status lk_keras_pair_array(struct lk_keras_draft *draft,
                                                 const struct lk_keras_tensor *entry,
                                                 const struct lk_keras_array *array);

/* A copy of formatted text in the draft's arena. */
LK_MUST_CHECK enum lk_status lk_keras_text(struct lk_keras_draft *draft, const char **text,
                                           const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* --- network.c --------------------------------------------------------------------------- */

/* Goes through a model's configuration. names[o]: of outputs o, made[o]. fails: LK_E_MODEL */
LK_MUST_CHECK enum lk_status lk_keras_read_model(struct lk_keras_draft *draft, json_t *root,
                                                 struct lk_keras_tensor made[LK_MOST_OUTPUTS],
                                                 int *outputs);

/* --- weights.c --------------------------------------------------------------------------- */

struct lk_arrays;
struct lk_imported;

/* Takes the arrays of `file`, and constants, under our names and in our layout into tensors of
 * `made`, which has the model. fails: LK_E_DATA one missing or misshapen */
LK_MUST_CHECK enum lk_status lk_keras_take_weights(const struct lk_keras_draft *draft,
                                                   const struct lk_arrays *file,
                                                   struct lk_imported *made);

#endif

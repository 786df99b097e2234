/* Reads what layers are called with, as Keras 2 and Keras 3 write it. */
#include "model/keras/network.h"

#include "base/fail.h"
#include <string.h>

enum { MOST_REFERENCES = 10000 };

const char *lk_keras_text_of(json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static int find_layer(const struct lk_keras_network *n, const char *name)
{
    for (int i = 0; i < n->layer_count; i++)
        if (strcmp(n->names[i], name) == 0)
            return i;
    return -1;
}

bool lk_keras_is_model(const char *class)
{
    return strcmp(class, "Functional") == 0 || strcmp(class, "Model") == 0 ||
           strcmp(class, "Sequential") == 0;
}

/* Whether references to a model in a model count its making as call 0: in Keras 2, and in
 * Keras 3 where a functional one is an output. */
static bool counts_making(const struct lk_keras_network *n, int layer, bool is_output)
{
    const char *class = n->known[layer]->class;
    return lk_keras_is_model(class) &&
           (!n->draft->is_keras_3 || (is_output && strcmp(class, "Sequential") != 0));
}

enum lk_status lk_keras_read_reference(struct lk_keras_network *n, json_t *value,
                                       bool is_output, struct lk_keras_reference *reference)
{
    const char *name = json_string_value(json_array_get(value, 0));
    json_t *call = json_array_get(value, 1), *tensor = json_array_get(value, 2);
    if (!name || !json_is_integer(call) || !json_is_integer(tensor) ||
        json_integer_value(call) < 0 || json_integer_value(call) > LK_KERAS_MOST_CALLS ||
        json_integer_value(tensor) < 0 || json_integer_value(tensor) >= LK_MOST_OUTPUTS)
        return lk_keras_fail(n->draft, "[layer, number of its call, number of the output] "
                                       "expected where a layer's input is named");
    if (++n->references > MOST_REFERENCES)
        return lk_keras_fail(n->draft, "more than %d inputs of layers", MOST_REFERENCES);
    reference->layer = find_layer(n, name);
    reference->call = (int)json_integer_value(call);
    reference->tensor = (int)json_integer_value(tensor);
    if (reference->layer < 0)
        return lk_keras_fail(n->draft, "no layer is named '%.80s'", name);
    if (reference->call > 0 && counts_making(n, reference->layer, is_output))
        reference->call--;
    return LK_OK;
}

/* What a layer is called with beside tensors must not change what it computes. */
static enum lk_status check_arguments(const struct lk_keras_network *n, json_t *arguments)
{
    const char *key;
    json_t *value;
    json_object_foreach(arguments, key, value)
    {
        if (json_is_null(value) || json_is_false(value))
            continue;
        return lk_keras_fail(n->draft,
                             "it is called with the argument '%.60s', which is not "
                             "supported",
                             key);
    }
    return LK_OK;
}

static enum lk_status add_input(struct lk_keras_network *n, struct lk_keras_call_site *call,
                                json_t *reference)
{
    if (call->count == LK_KERAS_MOST_INPUTS)
        return lk_keras_fail(n->draft, "it joins more than %d inputs", LK_KERAS_MOST_INPUTS);
    LK_TRY(lk_keras_read_reference(n, reference, false, &call->inputs[call->count]));
    call->count++;
    return check_arguments(n, json_array_get(reference, 3));
}

/* Whether one of two operands may be a number. */
static bool takes_number(const char *class)
{
    static const char *const classes[] = {"Add", "Subtract", "Multiply", "TrueDivide",
                                          "Divide"};
    for (int i = 0; i < LK_COUNT(classes); i++)
        if (strcmp(classes[i], class) == 0)
            return true;
    return false;
}

/* A tensor of Keras 3, or a list of such. */
static enum lk_status add_tensors(struct lk_keras_network *n, struct lk_keras_call_site *call,
                                  json_t *value)
{
    if (json_is_array(value)) {
        for (size_t i = 0; i < json_array_size(value); i++)
            if (json_is_array(json_array_get(value, i)))
                return lk_keras_fail(n->draft, "its inputs are lists of lists");
            else
                LK_TRY(add_tensors(n, call, json_array_get(value, i)));
        return LK_OK;
    }
    const char *class = lk_keras_text_of(value, "class_name");
    if (json_is_number(value) && takes_number(n->known[call->layer]->class) && !call->number) {
        call->number = value;
        call->begins_with_number = call->count == 0;
        return LK_OK;
    }
    if (!class || strcmp(class, "__keras_tensor__") != 0)
        return lk_keras_fail(n->draft, "it is called with something that is no tensor");
    return add_input(n, call,
                     json_object_get(json_object_get(value, "config"), "keras_history"));
}

static bool is_mask(const struct lk_keras_network *n, const struct lk_keras_reference *r)
{
    return strcmp(n->known[r->layer]->class, "NotEqual") == 0;
}

/* Keras 3 writes masks down as what they are made of: a layer that finds tokens that are not 0,
 * and arguments of those that read it. */
static enum lk_status read_masks(struct lk_keras_network *n, struct lk_keras_call_site *call,
                                 json_t *arguments)
{
    static const char *const names[] = {"mask", "query_mask", "value_mask", "key_mask"};
    void *memory = NULL;
    LK_TRY(lk_arena_allocate(&n->draft->arena,
                             sizeof names / sizeof *names * sizeof *call->masks, &memory));
    call->masks = memory;
    for (int i = 0; i < LK_COUNT(names); i++) {
        json_t *config = json_object_get(json_object_get(arguments, names[i]), "config");
        json_t *history = json_object_get(config, "keras_history");
        if (!history)
            continue;
        LK_TRY(lk_keras_read_reference(n, history, false, &call->masks[call->mask_count]));
        if (!is_mask(n, &call->masks[call->mask_count++]))
            return lk_keras_fail(n->draft, "its mask is not that of an embedding");
        (void)json_object_del(arguments, names[i]);
    }
    return LK_OK;
}

/* The mask of tokens: "not equal", with the tokens and 0. */
static enum lk_status read_not_equal(struct lk_keras_network *n,
                                     struct lk_keras_call_site *call, json_t *args)
{
    json_t *number = json_array_get(args, 1);
    if (json_array_size(args) != 2 || !json_is_number(number) || json_number_value(number) != 0)
        return lk_keras_fail(n->draft, "tokens are expected to be masked where they are 0");
    return add_tensors(n, call, json_array_get(args, 0));
}

/* What attention is called with by name: values, keys, a mask that hides later steps. */
static enum lk_status read_arguments(struct lk_keras_network *n,
                                     struct lk_keras_call_site *call, json_t *arguments)
{
    static const char *const tensors[] = {"query", "value", "key"};
    LK_TRY(read_masks(n, call, arguments));
    if (strcmp(n->known[call->layer]->class, "MultiHeadAttention") != 0)
        return check_arguments(n, arguments);
    for (int i = 0; i < LK_COUNT(tensors); i++) {
        json_t *tensor = json_object_get(arguments, tensors[i]);
        if (!tensor || json_is_null(tensor))
            continue;
        if (call->count != i)
            return lk_keras_fail(n->draft,
                                 "it is called with '%s', but not with what comes "
                                 "before",
                                 tensors[i]);
        LK_TRY(add_tensors(n, call, tensor));
        (void)json_object_del(arguments, tensors[i]);
    }
    call->is_causal = json_is_true(json_object_get(arguments, "use_causal_mask"));
    (void)json_object_del(arguments, "use_causal_mask");
    return check_arguments(n, arguments);
}

/* A call as Keras 3 writes it, {"args": [...], "kwargs": {...}}, or as Keras 2 does, a list of
 * references, or one alone. */
enum lk_status lk_keras_read_call(struct lk_keras_network *n, json_t *node,
                                  struct lk_keras_call_site *call)
{
    void *memory = NULL;
    LK_TRY(lk_arena_allocate(&n->draft->arena, LK_KERAS_MOST_INPUTS * sizeof *call->inputs,
                             &memory));
    call->inputs = memory;
    n->draft->is_keras_3 |= json_is_object(node);
    if (json_is_object(node)) {
        json_t *args = json_object_get(node, "args");
        if (strcmp(n->known[call->layer]->class, "NotEqual") == 0)
            return read_not_equal(n, call, args);
        for (size_t i = 0; i < json_array_size(args); i++)
            LK_TRY(add_tensors(n, call, json_array_get(args, i)));
        return read_arguments(n, call, json_object_get(node, "kwargs"));
    }
    if (json_is_string(json_array_get(node, 0)))
        return add_input(n, call, node);
    for (size_t i = 0; i < json_array_size(node); i++)
        LK_TRY(add_input(n, call, json_array_get(node, i)));
    return LK_OK;
}

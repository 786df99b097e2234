/* Walks through the configuration of a model: lists the calls of its layers, finds an order in
 * which each has its inputs, and calls them; nested models are walked through at each call. */
#include "model/keras/network.h"

#include "base/fail.h"
#include "model/keras/layers.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_LAYERS = 2000, MOST_DEPTH = 12, PATH_BYTES = 512 };

static enum lk_status walk(struct lk_keras_draft *draft, json_t *model, const char *path,
                           const struct lk_keras_tensor *given, int given_count,
                           struct lk_keras_tensor made[LK_MOST_OUTPUTS], int *count);

/* --- layers ------------------------------------------------------------------------------ */

/* How many layers of the same name in files stand before layer `index`. */
static int count_before(const struct lk_keras_network *n, int index, const char *snake)
{
    int count = 0;
    for (int i = 0; i < index; i++)
        count += strcmp(n->known[i]->snake, snake) == 0;
    return count;
}

static enum lk_status find_known(struct lk_keras_network *n, json_t *layer, const char *path,
                                 struct lk_keras_layer **found)
{
    struct lk_keras_draft *draft = n->draft;
    void *memory = NULL;
    for (*found = draft->known; *found; *found = (*found)->next)
        if (strcmp((*found)->path, path) == 0)
            return LK_OK;
    LK_TRY(lk_arena_allocate(&draft->arena, sizeof **found, &memory));
    struct lk_keras_layer *made = memory;
    json_t *config = json_object_get(layer, "config");
    const char *name = lk_keras_text_of(config, "name");
    made->name = name ? name : lk_keras_text_of(layer, "name");
    made->class = lk_keras_text_of(layer, "class_name");
    made->config = config;
    const char *module = lk_keras_text_of(layer, "module");
    made->is_function = module && strncmp(module, "keras.src.ops", 13) == 0;
    made->is_frozen = json_is_false(json_object_get(config, "trainable"));
    LK_TRY(lk_arena_text(&draft->arena, path, &made->path));
    made->next = draft->known;
    draft->known = made;
    *found = made;
    return LK_OK;
}

static enum lk_status add_layer(struct lk_keras_network *n, int index)
{
    json_t *layer = json_array_get(n->layers, (size_t)index);
    json_t *config = json_object_get(layer, "config");
    const char *class = lk_keras_text_of(layer, "class_name");
    const char *name = lk_keras_text_of(config, "name") ? lk_keras_text_of(config, "name")
                                                        : lk_keras_text_of(layer, "name");
    char snake[LK_KERAS_NAME], path[PATH_BYTES], number[16] = "";
    if (!class || !*class || !name || !*name || !json_is_object(config))
        return lk_keras_fail(n->draft, "layer %d has no 'class_name', no 'config' or no 'name'",
                             index);
    lk_keras_snake(class, snake, sizeof snake);
    const int before = count_before(n, index, snake);
    if (before)
        snprintf(number, sizeof number, "_%d", before);
    if ((size_t)snprintf(path, sizeof path, "%s%slayers/%s%s", n->path, *n->path ? "/" : "",
                         snake, number) >= sizeof path)
        return lk_keras_fail(n->draft, "models are nested too deeply");
    LK_TRY(find_known(n, layer, path, &n->known[index]));
    n->names[index] = lk_keras_text_of(layer, "name") ? lk_keras_text_of(layer, "name") : name;
    if (!n->known[index]->snake)
        LK_TRY(lk_arena_text(&n->draft->arena, snake, &n->known[index]->snake));
    return LK_OK;
}

static enum lk_status list_layers(struct lk_keras_network *n)
{
    struct lk_keras_draft *draft = n->draft;
    void *memory = NULL;
    /* the oldest Sequential models are a list themselves */
    n->layers = json_is_array(n->config) ? n->config : json_object_get(n->config, "layers");
    const size_t count = json_array_size(n->layers);
    if (count < 1 || count > MOST_LAYERS)
        return lk_keras_fail(draft, "a model has 'layers', 1 to %d of them; found %zu",
                             MOST_LAYERS, count);
    n->layer_count = (int)count;
    LK_TRY(lk_arena_allocate(&draft->arena, count * sizeof *n->known, &memory));
    n->known = memory;
    LK_TRY(lk_arena_allocate(&draft->arena, count * sizeof *n->names, &memory));
    n->names = memory;
    draft->calls += (int)count; /* each costs time, whether it is called or not */
    if (draft->calls > LK_KERAS_MOST_CALLS)
        return lk_keras_fail(draft, "more than %d layers with those of nested models",
                             LK_KERAS_MOST_CALLS);
    for (int i = 0; i < n->layer_count; i++)
        LK_TRY(add_layer(n, i));
    return LK_OK;
}

/* --- calls ------------------------------------------------------------------------------- */

static enum lk_status list_calls(struct lk_keras_network *n)
{
    struct lk_keras_draft *draft = n->draft;
    void *memory = NULL;
    size_t count = 0;
    LK_TRY(lk_arena_allocate(&draft->arena,
                             ((size_t)n->layer_count + 1) * sizeof *n->first_calls, &memory));
    n->first_calls = memory;
    for (int i = 0; i < n->layer_count; i++) {
        json_t *nodes = json_object_get(json_array_get(n->layers, (size_t)i), "inbound_nodes");
        const bool is_input = strcmp(n->known[i]->class, "InputLayer") == 0;
        n->first_calls[i] = (int)count;
        count += is_input ? 1 : json_array_size(nodes);
    }
    n->first_calls[n->layer_count] = n->call_count = (int)count;
    if (count < 1 || count > LK_KERAS_MOST_CALLS)
        return lk_keras_fail(draft, "its layers are called %zu times, 1 to %d are expected",
                             count, LK_KERAS_MOST_CALLS);
    LK_TRY(lk_arena_allocate(&draft->arena, count * sizeof *n->calls, &memory));
    n->calls = memory;
    for (int i = 0; i < n->layer_count; i++) {
        json_t *nodes = json_object_get(json_array_get(n->layers, (size_t)i), "inbound_nodes");
        draft->layer = n->known[i];
        for (int c = n->first_calls[i]; c < n->first_calls[i + 1]; c++) {
            n->calls[c].layer = i;
            if (strcmp(n->known[i]->class, "InputLayer") != 0)
                LK_TRY(lk_keras_read_call(
                    n, json_array_get(nodes, (size_t)(c - n->first_calls[i])), &n->calls[c]));
        }
    }
    draft->layer = NULL;
    return LK_OK;
}

/* The tensor of a reference; NULL: its layer has not been called so often yet. */
static const struct lk_keras_tensor *find_tensor(const struct lk_keras_network *n,
                                                 const struct lk_keras_reference *r)
{
    const int call = n->first_calls[r->layer] + r->call;
    if (call >= n->first_calls[r->layer + 1] || n->calls[call].made_count <= r->tensor)
        return NULL;
    return &n->calls[call].made[r->tensor];
}

/* --- calling ----------------------------------------------------------------------------- */

static enum lk_status keep_made(struct lk_keras_network *n, struct lk_keras_call_site *call,
                                const struct lk_keras_tensor *made, int count)
{
    void *memory = NULL;
    LK_TRY(lk_arena_allocate(&n->draft->arena, (size_t)count * sizeof *made, &memory));
    call->made = memcpy(memory, made, (size_t)count * sizeof *made);
    call->made_count = count;
    return LK_OK;
}

/* Calls a layer, or walks through a nested model, once. */
static enum lk_status call_layer(struct lk_keras_network *n, int layer, int count,
                                 const struct lk_keras_tensor *x,
                                 struct lk_keras_tensor made[LK_MOST_OUTPUTS], int *made_count)
{
    struct lk_keras_draft *draft = n->draft;
    json_t *object = json_array_get(n->layers, (size_t)layer);
    draft->layer = n->known[layer];
    if (++draft->calls > LK_KERAS_MOST_CALLS)
        return lk_keras_fail(draft, "layers are called more than %d times",
                             LK_KERAS_MOST_CALLS);
    if (lk_keras_is_foreign(object))
        return lk_keras_fail(draft,
                             "class '%.60s' is not Keras's own, so what it computes is "
                             "not known",
                             n->known[layer]->class);
    draft->layer->calls++;
    *made_count = 1;
    if (strcmp(n->known[layer]->class, "NotEqual") == 0) { /* a mask: what it is made of */
        made[0] = x[0];
        return x[0].input > 0 ? LK_OK : lk_keras_fail(draft, "it masks what is no input");
    }
    if (!lk_keras_is_model(n->known[layer]->class))
        return lk_keras_call(draft, count, x, &made[0]);
    draft->layer = NULL;
    if (draft->depth == 1)
        draft->outer = n->known[layer]->name;
    LK_TRY(walk(draft, object, n->known[layer]->path, x, count, made, made_count));
    if (draft->depth == 1)
        draft->outer = NULL;
    return LK_OK;
}

/* The number that an input layer has among the model's inputs. */
static int find_given(const struct lk_keras_network *n, int layer)
{
    json_t *list = json_object_get(n->config, "input_layers"), *value;
    const char *name = n->names[layer], *key;
    int index = 0;
    if (json_is_string(json_array_get(list, 0)))
        return strcmp(json_string_value(json_array_get(list, 0)), name) == 0 ? 0 : -1;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *own = json_string_value(json_array_get(json_array_get(list, i), 0));
        if (own && strcmp(own, name) == 0)
            return (int)i;
    }
    json_object_foreach(list, key, value)
    {
        const char *own = json_string_value(json_array_get(value, 0));
        if (own && strcmp(own, name) == 0)
            return index;
        index++;
    }
    return -1;
}

/* Whether an embedding reads the layer. */
static bool has_embedding(const struct lk_keras_network *n, int layer)
{
    for (int c = 0; c < n->call_count; c++)
        for (int i = 0; i < n->calls[c].count; i++)
            if (n->calls[c].inputs[i].layer == layer &&
                strcmp(n->known[n->calls[c].layer]->class, "Embedding") == 0)
                return true;
    return false;
}

static enum lk_status call_input(struct lk_keras_network *n, int layer,
                                 struct lk_keras_tensor *made)
{
    struct lk_keras_draft *draft = n->draft;
    const int index = n->given ? find_given(n, layer) : 0;
    draft->layer = n->known[layer];
    draft->reads_tokens = has_embedding(n, layer);
    if (!n->given)
        return lk_keras_add_input(draft, made);
    if (index < 0 || index >= n->given_count)
        return lk_keras_fail(draft, "it is no input of its model, or not given");
    *made = n->given[index];
    return LK_OK;
}

static enum lk_status call_one(struct lk_keras_network *n, struct lk_keras_call_site *call)
{
    struct lk_keras_tensor x[LK_KERAS_MOST_INPUTS], made[LK_MOST_OUTPUTS];
    int count = 1;
    if (strcmp(n->known[call->layer]->class, "InputLayer") == 0)
        LK_TRY(call_input(n, call->layer, &made[0]));
    else {
        for (int i = 0; i < call->count; i++)
            x[i] = *find_tensor(n, &call->inputs[i]);
        n->draft->layer = n->known[call->layer];
        for (int i = 0; i < call->mask_count; i++)
            if (x[0].masked_by == 0 || find_tensor(n, &call->masks[i])->input != x[0].masked_by)
                return lk_keras_fail(n->draft, "it is called with a mask that is not that of "
                                               "what it reads");
        n->draft->is_causal = call->is_causal;
        n->draft->number = call->number ? json_number_value(call->number) : NAN;
        n->draft->begins_with_number = call->begins_with_number;
        LK_TRY(call_layer(n, call->layer, call->count, x, made, &count));
    }
    n->draft->layer = NULL;
    return keep_made(n, call, made, count);
}

static bool is_ready(const struct lk_keras_network *n, const struct lk_keras_call_site *call)
{
    for (int i = 0; i < call->count; i++)
        if (!find_tensor(n, &call->inputs[i]))
            return false;
    for (int i = 0; i < call->mask_count; i++)
        if (!find_tensor(n, &call->masks[i]))
            return false;
    return true;
}

/* Calls whatever has its inputs, as long as there is some such; layers mostly stand in order.
 */
static enum lk_status call_all(struct lk_keras_network *n)
{
    int left = n->call_count;
    for (bool goes_on = true; goes_on && left > 0;) {
        goes_on = false;
        for (int c = 0; c < n->call_count; c++) {
            struct lk_keras_call_site *call = &n->calls[c];
            if (call->made_count || !is_ready(n, call))
                continue;
            LK_TRY(call_one(n, call));
            goes_on = true;
            left--;
        }
    }
    for (int c = 0; c < n->call_count && left > 0; c++)
        if (!n->calls[c].made_count) {
            n->draft->layer = n->known[n->calls[c].layer];
            return lk_keras_fail(n->draft, "what it reads depends on itself, or is not there");
        }
    return LK_OK;
}

static enum lk_status add_output(struct lk_keras_network *n, json_t *reference,
                                 struct lk_keras_tensor made[LK_MOST_OUTPUTS], int *count)
{
    struct lk_keras_reference r;
    LK_TRY(lk_keras_read_reference(n, reference, true, &r));
    const struct lk_keras_tensor *found = find_tensor(n, &r);
    if (!found || *count == LK_MOST_OUTPUTS)
        return lk_keras_fail(n->draft, "an output that is not there, or more than %d",
                             LK_MOST_OUTPUTS);
    made[(*count)++] = *found;
    return LK_OK;
}

/* "output_layers": one reference, a list of them, or an object. */
static enum lk_status list_outputs(struct lk_keras_network *n,
                                   struct lk_keras_tensor made[LK_MOST_OUTPUTS], int *count)
{
    json_t *list = json_object_get(n->config, "output_layers"), *value;
    const char *key;
    *count = 0;
    if (json_is_string(json_array_get(list, 0)))
        return add_output(n, list, made, count);
    for (size_t i = 0; i < json_array_size(list); i++)
        LK_TRY(add_output(n, json_array_get(list, i), made, count));
    json_object_foreach(list, key, value) LK_TRY(add_output(n, value, made, count));
    return *count > 0 ? LK_OK : lk_keras_fail(n->draft, "the model has no 'output_layers'");
}

/* --- sequential models ------------------------------------------------------------------- */

/* A model that says no input layer has the shape in its first layer, or beside the layers. */
static enum lk_status begin_sequence(struct lk_keras_network *n, struct lk_keras_tensor *x,
                                     int *first)
{
    json_t *shape = json_object_get(n->config, "build_input_shape");
    struct lk_keras_layer *layer = n->known[0];
    *first = strcmp(layer->class, "InputLayer") == 0;
    if (n->given) {
        *x = n->given[0];
        return n->given_count == 1
                   ? LK_OK
                   : lk_keras_fail(n->draft, "a Sequential model reads one input, not %d",
                                   n->given_count);
    }
    n->draft->layer = layer;
    n->draft->reads_tokens =
        *first < n->layer_count && strcmp(n->known[*first]->class, "Embedding") == 0;
    if (!*first && shape && !json_object_get(layer->config, "batch_input_shape") &&
        json_object_set(layer->config, "batch_input_shape", shape))
        return lk_fail_memory("a shape", 0);
    return lk_keras_add_input(n->draft, x);
}

static enum lk_status walk_sequence(struct lk_keras_network *n,
                                    struct lk_keras_tensor made[LK_MOST_OUTPUTS], int *count)
{
    struct lk_keras_tensor x;
    int first = 0;
    LK_TRY(begin_sequence(n, &x, &first));
    for (int i = first; i < n->layer_count; i++) {
        n->draft->number = NAN;
        LK_TRY(call_layer(n, i, 1, &x, made, count));
        if (*count != 1 && i + 1 < n->layer_count)
            return lk_keras_fail(n->draft, "a layer of a Sequential model has one output");
        x = made[0];
    }
    made[0] = x;
    *count = 1;
    n->draft->layer = NULL;
    return LK_OK;
}

static enum lk_status walk(struct lk_keras_draft *draft, json_t *model, const char *path,
                           const struct lk_keras_tensor *given, int given_count,
                           struct lk_keras_tensor made[LK_MOST_OUTPUTS], int *count)
{
    struct lk_keras_network n = {.draft = draft,
                                 .config = json_object_get(model, "config"),
                                 .path = path,
                                 .given = given,
                                 .given_count = given_count};
    const char *class = lk_keras_text_of(model, "class_name");
    if (!class || !lk_keras_is_model(class) || lk_keras_is_foreign(model))
        return lk_keras_fail(draft,
                             "a Sequential or Functional model is expected, found '%.60s'",
                             class ? class : "nothing");
    if (draft->depth == MOST_DEPTH)
        return lk_keras_fail(draft, "models are nested deeper than %d", MOST_DEPTH);
    draft->depth++;
    LK_TRY(list_layers(&n));
    if (strcmp(class, "Sequential") == 0) {
        LK_TRY(walk_sequence(&n, made, count));
    } else {
        LK_TRY(list_calls(&n));
        LK_TRY(call_all(&n));
        LK_TRY(list_outputs(&n, made, count));
    }
    draft->depth--;
    return LK_OK;
}

enum lk_status lk_keras_read_model(struct lk_keras_draft *draft, json_t *root,
                                   struct lk_keras_tensor made[LK_MOST_OUTPUTS], int *outputs)
{
    LK_TRY(walk(draft, root, "", NULL, 0, made, outputs));
    for (int i = 0; i < *outputs; i++)
        if (made[i].image.rank || made[i].is_joined)
            return lk_keras_fail(draft,
                                 "its output '%s' is a flattened image, whose numbers lie in "
                                 "another order here; let it end before it is flattened",
                                 made[i].name);
    return LK_OK;
}

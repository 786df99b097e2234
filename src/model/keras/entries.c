/* Adds entries to the model text of a Keras model, and the same nodes to a graph, from which
 * shapes are known at once and every option is checked. */
#include "model/keras/keras.h"

#include "base/fail.h"
#include "model/import/import.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MOST_ENTRIES = 2000 };

enum lk_status lk_keras_text(struct lk_keras_draft *draft, const char **text,
                             const char *format, ...)
{
    char made[LK_KERAS_TEXT];
    va_list values;
    va_start(values, format);
    const int bytes = vsnprintf(made, sizeof made, format, values);
    va_end(values);
    if (bytes < 0 || (size_t)bytes >= sizeof made)
        return lk_keras_fail(draft, "a text of %d bytes is too long", bytes);
    return lk_arena_text(&draft->arena, made, text);
}

/* --- names ------------------------------------------------------------------------------- */

/* The layer's name as one of ours; a later call of it is numbered. */
static void choose_name(const struct lk_keras_draft *draft, const struct lk_node *own,
                        const char *suffix, char name[LK_KERAS_NAME])
{
    char base[LK_IMPORT_BASE];
    const size_t used = lk_import_clean(draft->layer->name, base);
    if (draft->layer->calls > 1)
        snprintf(base + used, sizeof base - used, "_call%d", draft->layer->calls);
    lk_import_choose_name(draft->graph, own, base, suffix, name);
}

static enum lk_status name_made(struct lk_keras_draft *draft, const char *suffix,
                                struct lk_keras_tensor *made)
{
    char name[LK_KERAS_NAME];
    choose_name(draft, made->node, suffix, name);
    LK_TRY(lk_node_set_name(made->node, name));
    return lk_arena_text(&draft->arena, name, &made->name);
}

/* --- inputs ------------------------------------------------------------------------------ */

/* null is the size that was asked for, of height and width alone. */
static enum lk_status read_length(const struct lk_keras_draft *draft, json_t *value,
                                  int64_t open, int64_t *length)
{
    *length = json_is_null(value) ? open : json_integer_value(value);
    if (*length >= 1 && *length <= 1 << 24 && (json_is_null(value) || json_is_integer(value)))
        return LK_OK;
    if (json_is_null(value))
        return lk_keras_fail(draft, "its shape leaves a length open; --size HEIGHTxWIDTH says "
                                    "those of an image");
    return lk_keras_fail(draft, "its shape has a length that is no number of 1..2^24");
}

static enum lk_status read_input_shape(const struct lk_keras_draft *draft,
                                       struct lk_shape *shape)
{
    json_t *config = draft->layer->config;
    json_t *value = json_object_get(config, "batch_shape");
    if (!value)
        value = json_object_get(config, "batch_input_shape");
    const size_t axes = json_array_size(value);
    if (axes < 2 || axes > 4)
        return lk_keras_fail(draft,
                             "its shape has %zu axes; a batch of vectors, sequences or "
                             "images, 2 to 4 axes, is expected",
                             axes);
    shape->rank = (int)axes - 1;
    for (int i = 0; i < shape->rank; i++)
        LK_TRY(read_length(draft, json_array_get(value, (size_t)i + 1),
                           shape->rank == 3 && i < 2 ? draft->size[i] : 0, &shape->dim[i]));
    return lk_shape_count(shape) > 0 ? LK_OK : lk_keras_fail(draft, "its shape is too large");
}

/* The line of an input, to which may be added what its readers show. */
static enum lk_status write_input(struct lk_keras_draft *draft, const char *name,
                                  const struct lk_shape *shape, const char *type)
{
    char list[96] = "";
    size_t used = 0;
    for (int i = 0; i < shape->rank; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%lld", i ? ", " : "",
                                 (long long)shape->dim[i]);
    return lk_keras_text(draft, &draft->inputs[draft->input_count - 1],
                         "  %s: {shape: [%s], type: %s", name, list, type);
}

/* Images are uint8 without a scale: the numbers 0..255, as Keras gets them from files. */
enum lk_status lk_keras_add_input(struct lk_keras_draft *draft, struct lk_keras_tensor *made)
{
    const char *dtype = NULL;
    struct lk_shape s = {0};
    char name[LK_KERAS_NAME];
    LK_TRY(read_input_shape(draft, &s));
    json_t *type = json_object_get(draft->layer->config, "dtype");
    if (json_is_object(type))
        type = json_object_get(json_object_get(type, "config"), "name");
    dtype = json_is_string(type) ? json_string_value(type) : "float32";
    const bool is_whole = (strncmp(dtype, "int", 3) == 0 || draft->reads_tokens) && s.rank < 3;
    if (!is_whole && strcmp(dtype, "float32") != 0 && strcmp(dtype, "float16") != 0 &&
        !(s.rank == 3 && strcmp(dtype, "uint8") == 0))
        return lk_keras_fail(draft, "its type is %.40s, expected float32", dtype);
    choose_name(draft, NULL, "", name);
    struct lk_input input = {.name = name,
                             .dtype = s.rank == 3 ? LK_U8
                                      : is_whole  ? LK_I32
                                                  : LK_F32,
                             .shape = s,
                             .scale = 1,
                             .takes_numbers = true};
    if (s.rank == 3)
        input.shape = (struct lk_shape){3, {s.dim[2], s.dim[0], s.dim[1]}};
    if (++draft->input_count > LK_MOST_INPUTS)
        return lk_keras_fail(draft, "more than %d inputs", LK_MOST_INPUTS);
    *made = (struct lk_keras_tensor){.input = draft->input_count};
    LK_TRY(lk_graph_add_input(draft->graph, &input, &made->node));
    LK_TRY(lk_arena_text(&draft->arena, name, &made->name));
    return write_input(draft, name, &s,
                       s.rank == 3 ? "uint8, scale: 1"
                       : is_whole  ? "int32"
                                   : "float32");
}

/* --- entries ----------------------------------------------------------------------------- */

static void write_entry(struct lk_keras_draft *draft, const struct lk_keras_entry *entry,
                        int count, const struct lk_keras_tensor *x,
                        const struct lk_keras_tensor *made, const char *owner, bool is_frozen)
{
    const char *from[LK_MOST_INPUTS];
    for (int i = 0; i < count; i++)
        from[i] = x[i].name;
    const struct lk_import_entry line = {.name = made->name,
                                         .op = entry->op,
                                         .options = entry->options,
                                         .activation = entry->activation,
                                         .weights = owner,
                                         .is_frozen = is_frozen,
                                         .count = count,
                                         .from = from};
    lk_import_write_entry(&draft->layers, &line, draft->before);
}

/* What an operation or the graph says of an entry is said of the layer. */
static enum lk_status say_where(const struct lk_keras_draft *draft, enum lk_status status)
{
    if (status == LK_E_MEMORY)
        return status;
    (void)lk_fail_within(LK_E_MODEL, "%s: layer '%.80s' (%.60s)", draft->where,
                         draft->layer->name, draft->layer->class);
    return LK_E_MODEL;
}

/* The entry of the layer's first call that an entry of a later one takes the weights of: the
 * same operation, with the same suffix. */
static enum lk_status share(struct lk_keras_draft *draft, struct lk_node *node,
                            const char **owner)
{
    struct lk_node *first = NULL;
    for (const struct lk_keras_array *a = draft->arrays; a && !first; a = a->next) {
        if (strcmp(a->path, draft->layer->path) != 0 || strcmp(a->suffix, draft->suffix) != 0)
            continue;
        first = lk_graph_find(draft->graph, a->entry);
        first = first && first->op == node->op ? first : NULL;
    }
    if (!first)
        return lk_keras_fail(draft, "it is called twice, but has no weights to share");
    const enum lk_status status = lk_node_share_weights(node, first);
    if (status != LK_OK)
        return say_where(draft, status);
    *owner = first->name;
    return LK_OK;
}

/* Whether a later call of the layer can have a copy of the parameters in place of those of the
 * first: frozen moving averages, which never change and which no two layers can share. */
static bool can_be_copied(const struct lk_node *node, bool is_frozen)
{
    bool has_averages = false;
    for (int i = 0; i < node->shapes.params; i++)
        has_averages |= node->shapes.param[i].is_tracked;
    return has_averages && is_frozen;
}

/* A mask goes on to what reads a sequence. Keras's layers that know no mask compute with all
 * time steps, where ours leave out those that do not count. */
static enum lk_status pass_mask(struct lk_keras_draft *draft,
                                const struct lk_keras_entry *entry, int count,
                                const struct lk_keras_tensor *x, struct lk_keras_tensor *made)
{
    static const char *const blind[] = {"flatten",    "reshape",        "conv1d",
                                        "max_pool1d", "average_pool1d", "global_max_pool1d"};
    bool is_blind = draft->layer->is_function ||
                    (!draft->is_keras_3 && strcmp(draft->layer->class, "Rescaling") == 0);
    for (int i = 0; i < LK_COUNT(blind); i++)
        is_blind |= strcmp(entry->op, blind[i]) == 0;
    for (int i = 0; i < count && is_blind; i++)
        if (x[i].masked_by)
            return lk_keras_fail(draft, "it reads a sequence with a mask, which it leaves out "
                                        "of account in Keras; that is not supported");
    for (int i = 1; i < count && strcmp(entry->op, "attention") != 0; i++)
        if (x[i].masked_by != x[0].masked_by)
            return lk_keras_fail(draft, "it joins sequences of which not all have one mask");
    made->masked_by = x[0].masked_by;
    return LK_OK;
}

enum lk_status lk_keras_add(struct lk_keras_draft *draft, const struct lk_keras_entry *entry,
                            int count, const struct lk_keras_tensor *x,
                            struct lk_keras_tensor *made)
{
    struct lk_node *nodes[LK_MOST_INPUTS], *behind = NULL;
    const char *owner = NULL;
    if (++draft->entries > MOST_ENTRIES || count > LK_MOST_INPUTS)
        return lk_keras_fail(draft, "a model has at most %d layers, of %d inputs", MOST_ENTRIES,
                             LK_MOST_INPUTS);
    for (int i = 0; i < count; i++)
        nodes[i] = x[i].node;
    *made = (struct lk_keras_tensor){.image = x[0].image, .is_joined = x[0].is_joined};
    LK_TRY(pass_mask(draft, entry, count, x, made));
    enum lk_status status =
        lk_graph_add_many(draft->graph, entry->op, count, nodes, entry->options, &made->node);
    if (status != LK_OK)
        return say_where(draft, status);
    draft->suffix = entry->suffix ? entry->suffix : "";
    LK_TRY(name_made(draft, draft->suffix, made));
    const bool has_weights = made->node->shapes.params > 0;
    const bool is_frozen = has_weights && (entry->is_frozen || draft->layer->is_frozen);
    if (has_weights && draft->layer->calls > 1 && !can_be_copied(made->node, is_frozen))
        LK_TRY(share(draft, made->node, &owner));
    if (has_weights)
        draft->shares = owner != NULL;
    if (entry->activation)
        status = lk_graph_add(draft->graph, entry->activation, made->node, "", &behind);
    if (status != LK_OK)
        return say_where(draft, status);
    write_entry(draft, entry, count, x, made, owner, is_frozen);
    if (behind)
        made->node = behind;
    if (made->node->shapes.y.rank != 2)
        made->masked_by = 0;
    draft->before = made->name;
    return LK_OK;
}

enum lk_status lk_keras_pair_array(struct lk_keras_draft *draft,
                                   const struct lk_keras_tensor *entry,
                                   const struct lk_keras_array *array)
{
    void *memory = NULL;
    if (draft->shares)
        return LK_OK;
    LK_TRY(lk_arena_allocate(&draft->arena, sizeof *array, &memory));
    struct lk_keras_array *made = memory;
    *made = *array;
    made->entry = entry->name;
    made->layer = draft->layer->name;
    made->suffix = draft->suffix;
    made->outer = draft->outer;
    made->path = draft->layer->path;
    made->next = NULL;
    *draft->last_array = made;
    draft->last_array = &made->next;
    return LK_OK;
}

/* Lists what other programs call the parameters of a model: by the tables of the zoo, and as
 * PyTorch and Keras spell parameters of layers. */
#include "model/naming/names.h"

#include "base/fail.h"
#include "model/naming/parts.h"
#include "model/naming/table.h"
#include <stdio.h>
#include <string.h>

/* --- how parameters are spelled ----------------------------------------------------------- */

static const struct {
    const char *own, *torch, *keras;
} spellings[] = {
    {"weight", "weight", "kernel"},
    {"gamma", "weight", "gamma"},
    {"beta", "bias", "beta"},
    {"moving_mean", "running_mean", "moving_mean"},
    {"moving_variance", "running_var", "moving_variance"},
    {"slope", "weight", "alpha"},
    {"recurrent_weight", "recurrent_weight", "recurrent_kernel"},
};

static const char *spell(const char *own, enum lk_naming_style style)
{
    for (int i = 0; i < LK_COUNT(spellings); i++)
        if (strcmp(spellings[i].own, own) == 0)
            return style == LK_NAMING_TORCH ? spellings[i].torch : spellings[i].keras;
    return own;
}

/* The layer of "LAYER:depthwise", and what stands behind its colon; part "": the layer has one
 * node of ours. */
static const char *split(const char *base, char layer[128])
{
    const char *colon = strrchr(base, ':');
    snprintf(layer, 128, "%.*s", (int)(colon ? (size_t)(colon - base) : strlen(base)), base);
    return colon ? colon + 1 : "";
}

/* Whether the part is one of the two of Keras's separable convolution. */
static bool is_of_separable(const char *part)
{
    return strcmp(part, "depthwise") == 0 || strcmp(part, "pointwise") == 0;
}

/* Whether the part is one of the two directions of Keras's Bidirectional. */
static bool is_of_both_ways(const char *part)
{
    return strcmp(part, "forward") == 0 || strcmp(part, "backward") == 0;
}

/* What Keras 3 and Keras 2 call the dense layers of its attention; NULL: the part is none. */
static const char *dense_of_attention(const char *part, bool is_keras_3)
{
    static const char *const names[][3] = {{"query", "query_dense", "query"},
                                           {"key", "key_dense", "key"},
                                           {"value", "value_dense", "value"},
                                           {"output", "output_dense", "attention_output"}};
    for (int i = 0; i < LK_COUNT(names); i++)
        if (strcmp(names[i][0], part) == 0)
            return names[i][is_keras_3 ? 1 : 2];
    return NULL;
}

/* What several of our nodes are the parts of is one layer, which its first part stands for. */
static bool is_second(const char *part)
{
    static const char *const seconds[] = {"pointwise", "backward", "key", "value", "output"};
    for (int i = 0; i < LK_COUNT(seconds); i++)
        if (strcmp(seconds[i], part) == 0)
            return true;
    return false;
}

/* Keras's class of a recurrent layer, as its files spell it; NULL: it is no such layer. */
static const char *cell_of(const struct lk_node *node)
{
    static const char *const cells[][2] = {
        {"lstm", "lstm"}, {"gru", "gru"}, {"rnn", "simple_rnn"}};
    for (int i = 0; i < LK_COUNT(cells); i++)
        if (strcmp(cells[i][0], node->op->name) == 0)
            return cells[i][1];
    return NULL;
}

/* A recurrent layer has a cell, which has the arrays; those of two directions are layers in a
 * layer. */
static void spell_keras_cell(const char *cell, const char *layer, const char *part,
                             const char *own, char text[LK_MOST_SPELLINGS][192])
{
    const char *word =
        strcmp(own, "recurrent_bias") == 0 ? "bias" : spell(own, LK_NAMING_KERAS);
    if (is_of_both_ways(part))
        snprintf(text[0], 192, "%s/%s_%s/%s_cell/%s", layer, part, cell, cell, word);
    else
        snprintf(text[0], 192, "%s/%s_cell/%s", layer, cell, word);
    if (!*part)
        snprintf(text[1], 192, "%s/%s", layer, word);
}

static void spell_keras(const struct lk_foreign_param *p, const char *layer, const char *part,
                        char text[LK_MOST_SPELLINGS][192])
{
    const char *own = p->node->shapes.param[p->index].name;
    const bool is_table = strcmp(p->node->op->name, "embedding") == 0;
    const char *kernel = is_table ? "embeddings" : spell(own, LK_NAMING_KERAS);
    if (cell_of(p->node)) {
        spell_keras_cell(cell_of(p->node), layer, part, own, text);
        return;
    }
    const char *within = dense_of_attention(part, false);
    if (within) {
        snprintf(text[0], 192, "%s/%s/%s", layer, within, kernel);
        return;
    }
    const bool is_part = is_of_separable(part);
    if (strcmp(own, "weight") != 0 || (!is_part && !lk_node_is_depthwise(p->node))) {
        snprintf(text[0], 192, "%s/%s", layer, kernel);
        return;
    }
    snprintf(text[0], 192, "%s/%s_kernel", layer, is_part ? part : "depthwise");
    if (!is_part) /* Keras 3 has no word of its own for it */
        snprintf(text[1], 192, "%s/%s", layer, kernel);
}

/* Number `place` of the arrays of a layer in a Keras 3 file. */
static void spell_keras_3(const struct lk_foreign_param *p, const char *layer, const char *part,
                          int place, char text[192])
{
    const bool has_cell = cell_of(p->node) != NULL;
    char way[32] = "";
    if (is_of_both_ways(part))
        snprintf(way, sizeof way, "/%s_layer", part);
    if (dense_of_attention(part, true))
        snprintf(way, sizeof way, "/%s", dense_of_attention(part, true));
    if (has_cell && place > 2) /* both biases are one array */
        place = 2;
    snprintf(text, 192, "%s%s%s/vars/%d", layer, way, has_cell ? "/cell" : "", place);
}

/* Layers and directions of a recurrent layer are counted: part "l1_reverse". Its cell alone is
 * a module too. */
static void spell_torch_cell(const char *layer, const char *part, const char *own,
                             char text[LK_MOST_SPELLINGS][192])
{
    static const char *const words[][2] = {{"weight", "weight_ih"},
                                           {"recurrent_weight", "weight_hh"},
                                           {"bias", "bias_ih"},
                                           {"recurrent_bias", "bias_hh"}};
    for (int i = 0; i < LK_COUNT(words); i++)
        if (strcmp(words[i][0], own) == 0) {
            snprintf(text[0], 192, "%s.%s_%s", layer, words[i][1], *part ? part : "l0");
            if (!*part)
                snprintf(text[1], 192, "%s.%s", layer, words[i][1]);
        }
}

static void spell_torch(const struct lk_foreign_param *p, const char *layer, const char *part,
                        char text[LK_MOST_SPELLINGS][192])
{
    const char *own = p->node->shapes.param[p->index].name;
    if (cell_of(p->node))
        spell_torch_cell(layer, part, own, text);
    else if (strcmp(part, "in_proj") == 0) /* queries, keys and values of attention as one */
        snprintf(text[0], 192, "%s.in_proj_%s", layer, spell(own, LK_NAMING_TORCH));
    else
        snprintf(text[0], 192, "%s.%s", layer, spell(own, LK_NAMING_TORCH));
}

static enum lk_status keep_spellings(struct lk_namings *namings,
                                     char text[LK_MOST_SPELLINGS][192],
                                     const char *names[LK_MOST_SPELLINGS])
{
    for (int i = 0; i < LK_MOST_SPELLINGS; i++)
        if (*text[i])
            LK_TRY(lk_arena_text(&namings->arena, text[i], &names[i]));
    return LK_OK;
}

/* PyTorch's recurrent layers have two biases, of which ours have the sum, but for a gru that
 * resets after the product. */
static enum lk_status name_added(struct lk_namings *namings, struct lk_naming *naming, int p,
                                 const char *layer, const char *part)
{
    const struct lk_foreign_param *param = &namings->param[p];
    char text[LK_MOST_SPELLINGS][192] = {"", ""};
    if (naming->style != LK_NAMING_TORCH || !cell_of(param->node) ||
        strcmp(param->node->shapes.param[param->index].name, "bias") != 0 ||
        param->index + 1 < param->node->shapes.params)
        return LK_OK;
    spell_torch_cell(layer, part, "recurrent_bias", text);
    return keep_spellings(namings, text, naming->added[p]);
}

/* Whether layers there have no such parameter: Keras's norms have none that is not trained. */
static bool is_lacked(const struct lk_naming *naming, const struct lk_param_spec *param)
{
    const bool is_keras =
        naming->style == LK_NAMING_KERAS || naming->style == LK_NAMING_KERAS_3;
    const bool stays = param->is_tracked && strncmp(param->name, "moving_", 7) != 0;
    return (naming->lacks && strcmp(param->name, naming->lacks) == 0) || (is_keras && stays);
}

/* Parameters of the node before number `index` that the naming's layers do not have. */
static int lacked_before(const struct lk_naming *naming, const struct lk_node *node, int index)
{
    int count = 0;
    for (int i = 0; i < index; i++)
        count += is_lacked(naming, &node->shapes.param[i]);
    return count;
}

/* Sets the names of parameter p, whose layer is `base`; none where such layers lack it. */
static enum lk_status name_param(struct lk_namings *namings, struct lk_naming *naming, int p,
                                 const char *base)
{
    const struct lk_foreign_param *param = &namings->param[p];
    char layer[128], text[LK_MOST_SPELLINGS][192] = {"", ""};
    const char *part = split(base, layer);
    const int second = strcmp(part, "pointwise") == 0; /* its kernel is behind the other one */
    const int place = param->index + second - lacked_before(naming, param->node, param->index);
    if (is_lacked(naming, &param->node->shapes.param[param->index]))
        return LK_OK;
    switch (naming->style) {
    case LK_NAMING_OWN:
        snprintf(text[0], sizeof text[0], "%s", param->name);
        break;
    case LK_NAMING_TORCH:
        spell_torch(param, layer, part, text);
        break;
    case LK_NAMING_KERAS:
        spell_keras(param, layer, part, text);
        break;
    case LK_NAMING_KERAS_3:
        spell_keras_3(param, layer, part, place, text[0]);
        break;
    }
    LK_TRY(keep_spellings(namings, text, naming->names[p]));
    return name_added(namings, naming, p, layer, part);
}

/* --- layers that Keras counts ------------------------------------------------------------- */

/* The class of a layer as Keras 3 files spell it. */
static const char *class_of(const struct lk_node *node, const char *part)
{
    static const char *const classes[][2] = {{"batch_norm", "batch_normalization"},
                                             {"layer_norm", "layer_normalization"},
                                             {"group_norm", "group_normalization"},
                                             {"prelu", "p_re_lu"}};
    if (is_of_both_ways(part))
        return "bidirectional";
    if (dense_of_attention(part, true))
        return "multi_head_attention";
    if (*part)
        return is_of_separable(part) ? "separable_conv2d" : part;
    if (cell_of(node))
        return cell_of(node);
    if (lk_node_is_depthwise(node))
        return "depthwise_conv2d";
    for (int i = 0; i < LK_COUNT(classes); i++)
        if (strcmp(classes[i][0], node->op->name) == 0)
            return classes[i][1];
    return node->op->name;
}

/* Layers of that class before place `at` of the order. */
static int count_before(const struct lk_namings *namings, const int *order,
                        const char *const *base, int at, const char *class)
{
    char layer[128];
    const struct lk_node *last = NULL;
    int count = 0;
    for (int i = 0; i < at; i++) {
        const struct lk_node *node = namings->param[order[i]].node;
        const char *part = split(base[order[i]] ? base[order[i]] : "", layer);
        if (node != last && strcmp(class_of(node, part), class) == 0 && !is_second(part))
            count++;
        last = node;
    }
    return count;
}

/* Names as in a Keras 3 file, whose layers have the names of their classes and are counted in
 * the model's order: "layers/conv2d_1/vars/0". */
static enum lk_status count_layers(struct lk_namings *namings, struct lk_naming *naming,
                                   const char *const *base)
{
    char layer[128], name[192];
    const struct lk_node *node = NULL;
    for (int i = 0; i < namings->params; i++) {
        const int p = naming->order[i];
        if (namings->param[p].node != node) {
            node = namings->param[p].node;
            const char *part = split(base[p] ? base[p] : "", layer);
            const char *class = class_of(node, part);
            const int number =
                count_before(namings, naming->order, base, i, class) - is_second(part);
            snprintf(name, sizeof name, number > 0 ? "layers/%s_%d" : "layers/%s", class,
                     number);
            if (*part)
                snprintf(name + strlen(name), sizeof name - strlen(name), ":%s", part);
        }
        LK_TRY(name_param(namings, naming, p, name));
    }
    return LK_OK;
}

/* The name that Keras gives a layer without one: after its class, with a number that counts the
 * layers of that class that have no names of their own. */
static void name_counted(const struct lk_namings *namings, const struct lk_convention *c, int p,
                         char name[128])
{
    const char *class = class_of(namings->param[p].node, "");
    int number = c->counts_from;
    for (int i = 0; i < p; i++)
        if (namings->param[i].node != namings->param[i + 1].node &&
            namings->param[i].node != namings->param[p].node && !c->base[i] &&
            strcmp(class_of(namings->param[i].node, ""), class) == 0)
            number++;
    snprintf(name, 128, number > 0 ? "%.100s_%d" : "%.100s", class, number);
}

/* --- the list ----------------------------------------------------------------------------- */

static enum lk_status add(struct lk_namings *namings, const char *title,
                          enum lk_naming_style style, struct lk_naming **made)
{
    static const enum lk_layout_kind layouts[] = {LK_LAYOUT_OWN, LK_LAYOUT_TORCH,
                                                  LK_LAYOUT_KERAS, LK_LAYOUT_KERAS};
    void *memory;
    int *order;
    const size_t count = (size_t)namings->params + 1;
    if (namings->count == LK_MOST_NAMINGS)
        return lk_fail(LK_E_MODEL, "more than %d namings", LK_MOST_NAMINGS);
    struct lk_naming *naming = &namings->list[namings->count++];
    *naming = (struct lk_naming){.title = title, .style = style, .layout = layouts[style]};
    LK_TRY(lk_arena_allocate(&namings->arena, count * sizeof *naming->names, &memory));
    naming->names = memory;
    LK_TRY(lk_arena_allocate(&namings->arena, count * sizeof *naming->added, &memory));
    naming->added = memory;
    LK_TRY(lk_arena_allocate(&namings->arena, count * sizeof *order, &memory));
    naming->order = order = memory;
    for (int p = 0; p < namings->params; p++)
        order[p] = p;
    *made = naming;
    return LK_OK;
}

static void take_convention(struct lk_naming *naming, const struct lk_convention *convention)
{
    naming->differs = convention->differs;
    naming->images = convention->images;
    naming->lacks = convention->lacks;
    naming->unused = convention->unused;
    naming->unused_count = convention->unused_count;
    naming->has_table = true;
    naming->order = convention->order;
}

/* Adds a naming in which layers have these names; those that have none are counted, or have
 * ours. */
static enum lk_status add_layers(struct lk_namings *namings, const char *title,
                                 enum lk_naming_style style,
                                 const struct lk_convention *convention)
{
    struct lk_naming *naming;
    LK_TRY(add(namings, title, style, &naming));
    if (convention)
        take_convention(naming, convention);
    for (int p = 0; p < namings->params; p++) {
        char counted[128];
        const char *base = convention ? convention->base[p] : NULL;
        if (!base)
            base = namings->param[p].node->name;
        if (convention && !convention->base[p] && convention->counts_from >= 0) {
            name_counted(namings, convention, p, counted);
            base = counted;
        }
        LK_TRY(name_param(namings, naming, p, base));
    }
    return LK_OK;
}

/* Whether a convention of Keras names places inside of a Keras 3 file. */
static bool has_places(const struct lk_namings *namings, const struct lk_convention *c)
{
    for (int p = 0; p < namings->params; p++)
        if (c->base[p] && strchr(c->base[p], '/'))
            return true;
    return false;
}

/* Counts layers as the model's table tells for Keras, else as the graph has them. */
static enum lk_status add_counted(struct lk_namings *namings,
                                  const struct lk_convention *conventions, int count)
{
    struct lk_naming *naming;
    const char **base;
    void *none;
    LK_TRY(add(namings, "keras-3", LK_NAMING_KERAS_3, &naming));
    naming->is_counted = true;
    for (int i = 0; i < count; i++)
        if (strcmp(conventions[i].title, "keras") == 0) {
            take_convention(naming, &conventions[i]);
            return count_layers(namings, naming, conventions[i].base);
        }
    LK_TRY(lk_parts_list(namings, LK_NAMING_KERAS_3, &namings->arena, &base));
    if (base)
        return count_layers(namings, naming, base);
    LK_TRY(lk_arena_allocate(&namings->arena,
                             ((size_t)namings->params + 1) * sizeof(const char *), &none));
    return count_layers(namings, naming, none);
}

/* Adds a naming in which nodes that are the parts of one layer of that program have its name;
 * none where the model has no such nodes. It comes before the naming of that title in which
 * each node is a layer, so that it is taken for what is written. */
static enum lk_status add_parts(struct lk_namings *namings, const char *title,
                                enum lk_naming_style style)
{
    struct lk_naming *naming;
    const char **base;
    LK_TRY(lk_parts_list(namings, style, &namings->arena, &base));
    if (!base)
        return LK_OK;
    LK_TRY(add(namings, title, style, &naming));
    for (int p = 0; p < namings->params; p++)
        LK_TRY(
            name_param(namings, naming, p, base[p] ? base[p] : namings->param[p].node->name));
    return LK_OK;
}

static enum lk_status list_params(const struct lk_model *model, struct lk_namings *namings)
{
    const struct lk_graph *graph = model->graph;
    void *memory;
    int count = 0;
    LK_TRY(lk_arena_allocate(&namings->arena, (size_t)graph->count + 1, &memory));
    bool *needed = memory;
    lk_model_mark_needed(model, needed);
    for (int i = 0; i < graph->count; i++)
        if (needed[i])
            needed[lk_node_owner(graph->nodes[i])->index] = true;
    for (int i = 0; i < graph->count; i++)
        count += graph->nodes[i]->weights_of ? 0 : graph->nodes[i]->shapes.params;
    LK_TRY(lk_arena_allocate(&namings->arena, ((size_t)count + 1) * sizeof *namings->param,
                             &memory));
    namings->param = memory;
    for (int i = 0; i < graph->count; i++) {
        const struct lk_node *node = graph->nodes[i];
        for (int j = 0; !node->weights_of && j < node->shapes.params; j++) {
            struct lk_foreign_param *p = &namings->param[namings->params++];
            *p = (struct lk_foreign_param){.node = node, .index = j, .is_needed = needed[i]};
            snprintf(p->name, sizeof p->name, "%s.%s", node->name, node->shapes.param[j].name);
        }
    }
    return LK_OK;
}

/* Layers of Keras have one name in files of Keras 2 and in labels of Keras 3. */
static enum lk_status add_convention(struct lk_namings *namings, const struct lk_convention *c)
{
    if (!c->is_keras)
        return add_layers(namings, c->title, LK_NAMING_TORCH, c);
    if (!has_places(namings, c))
        LK_TRY(add_layers(namings, c->title, LK_NAMING_KERAS, c));
    return add_layers(namings, c->title, LK_NAMING_KERAS_3, c);
}

enum lk_status lk_namings_make(const struct lk_model *model, struct lk_namings *namings)
{
    struct lk_convention conventions[LK_MOST_CONVENTIONS];
    int count = 0;
    LK_TRY(list_params(model, namings));
    LK_TRY(lk_conventions_read(model, namings, &namings->arena, conventions, &count));
    LK_TRY(add_layers(namings, "lockstep", LK_NAMING_OWN, NULL));
    for (int i = 0; i < count; i++)
        LK_TRY(add_convention(namings, &conventions[i]));
    LK_TRY(add_counted(namings, conventions, count));
    LK_TRY(add_parts(namings, "pytorch", LK_NAMING_TORCH));
    LK_TRY(add_layers(namings, "pytorch", LK_NAMING_TORCH, NULL));
    LK_TRY(add_parts(namings, "keras", LK_NAMING_KERAS));
    LK_TRY(add_layers(namings, "keras", LK_NAMING_KERAS, NULL));
    LK_TRY(add_parts(namings, "keras-3", LK_NAMING_KERAS_3));
    return add_layers(namings, "keras-3", LK_NAMING_KERAS_3, NULL);
}

void lk_namings_clear(struct lk_namings *namings)
{
    lk_arena_clear(&namings->arena);
    *namings = (struct lk_namings){0};
}

const struct lk_naming *lk_namings_find(const struct lk_namings *namings, const char *title)
{
    for (int i = 0; i < namings->count; i++)
        if (strcmp(namings->list[i].title, title) == 0)
            return &namings->list[i];
    return NULL;
}

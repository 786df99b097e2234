/* Makes a model of an ONNX file: inputs, nodes in the file's order, outputs. */
#include "model/onnx/convert.h"

#include "base/fail.h"
#include <stdlib.h>
#include <string.h>

static const struct lk_onnx_operator *const tables[] = {lk_onnx_images, lk_onnx_functions,
                                                        lk_onnx_arrangements, lk_onnx_products};

/* --- what is needed ---------------------------------------------------------------------- */

/* From the last node to the first. */
enum lk_status lk_onnx_find_needed(struct lk_onnx_draft *draft)
{
    const struct lk_onnx_graph *file = draft->file;
    void *memory;
    LK_TRY(lk_arena_allocate(&draft->arena, (size_t)file->node_count + 1, &memory));
    draft->done = memory;
    for (int o = 0; o < file->output_count; o++) {
        struct lk_onnx_value *value = lk_onnx_find(draft, file->outputs[o].name);
        if (!value)
            return lk_onnx_fail(draft, "no node makes output '%.80s'", file->outputs[o].name);
        value->readers += 2; /* so that nothing is taken into another entry */
    }
    for (int n = file->node_count - 1; n >= 0; n--) {
        const struct lk_onnx_node *node = &file->nodes[n];
        bool needed = false;
        for (int o = 0; o < node->output_count; o++)
            needed |= *node->outputs[o] && lk_onnx_find(draft, node->outputs[o])->readers > 0;
        draft->done[n] = !needed;
        for (int i = 0; needed && i < node->input_count; i++) {
            struct lk_onnx_value *value = lk_onnx_find(draft, node->inputs[i]);
            if (*node->inputs[i] && value)
                value->readers++;
        }
    }
    return LK_OK;
}

/* --- inputs ------------------------------------------------------------------------------ */

/* Whether a node changes an image's numbers alone, all alike or those of each channel, or the
 * order of channels, where these come last. */
static bool scales_last(const struct lk_onnx_draft *draft, const struct lk_onnx_node *node,
                        int64_t channels)
{
    static const char *const known[] = {"Mul", "Div", "Add", "Sub"};
    const struct lk_onnx_attribute *axis = lk_onnx_find_attribute(node, "axis");
    if (strcmp(node->op, "Cast") == 0)
        return true;
    if (strcmp(node->op, "Gather") == 0) /* channels in another order */
        return axis && (axis->integer == 3 || axis->integer == -1);
    for (int k = 0; k < LK_COUNT(known); k++) {
        const struct lk_onnx_value *by =
            node->input_count == 2 ? lk_onnx_find(draft, node->inputs[1]) : NULL;
        const struct lk_onnx_tensor *numbers = by ? by->constant : NULL;
        if (strcmp(node->op, known[k]) == 0)
            return numbers &&
                   (numbers->count == 1 || (numbers->rank > 0 && numbers->count == channels &&
                                            numbers->dim[numbers->rank - 1] == channels));
    }
    return false;
}

/* Whether the first that reads an image puts its channels first: then they came last. Its
 * numbers may be prepared before. */
static bool is_turned(const struct lk_onnx_draft *draft, const struct lk_onnx_port *port)
{
    static const int64_t wanted[] = {0, 3, 1, 2};
    const struct lk_onnx_graph *file = draft->file;
    const char *name = port->name;
    for (int n = 0; n < file->node_count; n++) {
        const struct lk_onnx_node *node = &file->nodes[n];
        bool reads = false;
        for (int i = 0; i < node->input_count; i++)
            reads |= strcmp(node->inputs[i], name) == 0;
        if (draft->done[n] || !reads)
            continue;
        if (node->output_count == 1 && strcmp(node->inputs[0], name) == 0 &&
            scales_last(draft, node, port->dim[3])) {
            name = node->outputs[0];
            continue;
        }
        const struct lk_onnx_attribute *order = lk_onnx_find_attribute(node, "perm");
        return strcmp(node->op, "Transpose") == 0 && order && order->kind == LK_ONNX_INTEGERS &&
               order->count == 4 && memcmp(order->integers, wanted, sizeof wanted) == 0;
    }
    return false;
}

static enum lk_status add_inputs(struct lk_onnx_draft *draft)
{
    for (int i = 0; i < draft->file->input_count; i++) {
        const struct lk_onnx_port *port = &draft->file->inputs[i];
        if (!lk_onnx_find(draft, port->name)->constant)
            LK_TRY(lk_onnx_add_input(draft, port, port->rank == 4 && is_turned(draft, port)));
    }
    return LK_OK;
}

/* --- nodes ------------------------------------------------------------------------------- */

static enum lk_status check_inputs(struct lk_onnx_draft *draft)
{
    for (int i = 0; i < draft->node->input_count; i++)
        if (*draft->node->inputs[i] && !lk_onnx_is_made(lk_onnx_input(draft, i)))
            return lk_onnx_fail(draft, "it reads '%.80s', which nothing before it makes",
                                draft->node->inputs[i]);
    return LK_OK;
}

enum lk_status lk_onnx_convert_by(struct lk_onnx_draft *draft,
                                  const struct lk_onnx_operator *table, bool *done)
{
    for (const struct lk_onnx_operator *o = table; o->name && !*done; o++)
        if (strcmp(o->name, draft->node->op) == 0) {
            LK_TRY(lk_onnx_check_attributes(draft, o));
            LK_TRY(o->convert(draft));
            *done = true;
        }
    return LK_OK;
}

enum lk_status lk_onnx_convert_batch(struct lk_onnx_draft *draft, bool *done)
{
    for (int t = 0; t < LK_COUNT(tables) && !*done; t++)
        LK_TRY(lk_onnx_convert_by(draft, tables[t], done));
    return LK_OK;
}

static enum lk_status convert(struct lk_onnx_draft *draft)
{
    const struct lk_onnx_node *node = draft->node;
    bool done = false;
    if (*node->domain && strcmp(node->domain, "ai.onnx") != 0)
        return lk_onnx_fail(draft, "operators of '%.80s' are not supported", node->domain);
    LK_TRY(check_inputs(draft));
    if (!draft->is_whole)
        LK_TRY(lk_onnx_fold_counted(draft, &done));
    if (!done)
        LK_TRY(lk_onnx_fold(draft, &done));
    for (int t = 0; draft->is_whole && lk_onnx_array_tables[t] && !done; t++)
        LK_TRY(lk_onnx_convert_by(draft, lk_onnx_array_tables[t], &done));
    if (!draft->is_whole && !done)
        LK_TRY(lk_onnx_convert_samples(draft, &done));
    return done ? LK_OK : lk_onnx_fail(draft, "this operator is not supported");
}

enum lk_status lk_onnx_convert_all(struct lk_onnx_draft *draft)
{
    for (int n = 0; n < draft->file->node_count; n++) {
        if (draft->done[n])
            continue;
        draft->node = &draft->file->nodes[n];
        LK_TRY(convert(draft));
    }
    draft->node = NULL;
    return LK_OK;
}

/* --- the text ---------------------------------------------------------------------------- */

/* What is an input alone, perhaps in another shape, becomes an entry that changes nothing. */
static enum lk_status make_entry(struct lk_onnx_draft *draft, const struct lk_onnx_value *x,
                                 struct lk_onnx_value *made)
{
    *made = *x;
    if (x->constant)
        return lk_onnx_fail(draft, "it is a constant, the same for all samples, which is not "
                                   "supported");
    if (!x->node)
        return lk_onnx_fail(draft, "it is not computed");
    if (x->node->op)
        return LK_OK;
    if (x->node->input.dtype == LK_I32)
        return lk_onnx_fail(draft, "it is an input of whole numbers, which is not supported");
    LK_TRY(lk_onnx_add(draft, "rescale", "", 1, x, made));
    const struct lk_onnx_value entry = *made;
    *made = *x;
    made->node = entry.node;
    made->entry = entry.entry;
    return LK_OK;
}

enum lk_status lk_onnx_make_output(struct lk_onnx_draft *draft, const char *name,
                                   struct lk_onnx_value *value)
{
    const struct lk_onnx_node node = {.name = name, .op = "output"};
    draft->node = &node;
    enum lk_status status = make_entry(draft, lk_onnx_find(draft, name), value);
    if (status == LK_OK)
        status = lk_onnx_put_first(draft, value, value);
    if (status == LK_OK)
        status = lk_onnx_settle(draft, value, value);
    draft->node = NULL;
    return status;
}

static enum lk_status write_outputs(struct lk_onnx_draft *draft, struct lk_text *text)
{
    const struct lk_onnx_graph *file = draft->file;
    const char *entries[LK_MOST_OUTPUTS], *names[LK_MOST_OUTPUTS];
    char base[LK_IMPORT_BASE];
    if (file->output_count < 1 || file->output_count > LK_MOST_OUTPUTS)
        return lk_onnx_fail(draft, "%d outputs, expected 1 to %d", file->output_count,
                            LK_MOST_OUTPUTS);
    for (int o = 0; o < file->output_count; o++) {
        const char *name = file->outputs[o].name;
        struct lk_onnx_value value;
        LK_TRY(lk_onnx_make_output(draft, name, &value));
        entries[o] = value.entry;
        (void)lk_import_clean(name, base);
        LK_TRY(lk_arena_text(&draft->arena, base, &names[o]));
        LK_TRY(lk_arena_text(&draft->made->arena, name, &draft->made->outputs[o]));
        for (int before = 0; before < o; before++)
            if (strcmp(names[before], names[o]) == 0)
                LK_TRY(lk_onnx_text(draft, &names[o], "%s_%d", base, o + 1));
    }
    lk_text_append(text, "%soutput:\n", draft->layers.bytes ? draft->layers.bytes : "");
    for (int o = 0; o < file->output_count; o++)
        lk_text_append(text, "  %s: %s\n", names[o], entries[o]);
    return LK_OK;
}

static enum lk_status make_text(struct lk_onnx_draft *draft)
{
    struct lk_text *text = &draft->made->text;
    char name[LK_IMPORT_BASE];
    (void)lk_import_clean(*draft->file->name ? draft->file->name : "onnx", name);
    for (char *at = strchr(name, '/'); at; at = strchr(at, '/'))
        *at = '_';
    if (draft->input_count == 0)
        return lk_onnx_fail(draft, "a model with inputs is expected");
    lk_text_append(text, "# A model of ONNX, made by lockstep import\nname: \"%s\"\ninput:\n%s",
                   name, draft->inputs.bytes);
    lk_text_append(text, "layers:\n");
    LK_TRY(write_outputs(draft, text));
    if (draft->entries == 0)
        return lk_onnx_fail(draft, "none of its nodes computes anything");
    return text->failed || draft->layers.failed || draft->inputs.failed
               ? lk_fail_memory("a model text", text->used)
               : LK_OK;
}

/* Every parameter has been given numbers, or the text is not what was meant. */
static enum lk_status check_parameters(const struct lk_onnx_draft *draft)
{
    const struct lk_graph *graph = draft->made->model->graph;
    int parameters = 0;
    for (int i = 0; i < graph->count; i++)
        parameters += graph->nodes[i]->shapes.params;
    return parameters == draft->made->tensor_count
               ? LK_OK
               : lk_onnx_fail(draft, "%d parameters, but %d arrays for them", parameters,
                              draft->made->tensor_count);
}

static enum lk_status convert_for_samples(struct lk_onnx_draft *draft)
{
    draft->budget = 1 << 22;
    for (int i = 0; i < draft->file->constant_count; i++)
        draft->budget += 4 * draft->file->constants[i].count;
    LK_TRY(lk_graph_create(&draft->graph));
    LK_TRY(lk_onnx_open_values(draft));
    LK_TRY(lk_onnx_join_tokens(draft));
    LK_TRY(lk_onnx_find_needed(draft));
    LK_TRY(add_inputs(draft));
    return lk_onnx_convert_all(draft);
}

static enum lk_status make(struct lk_onnx_draft *draft)
{
    struct lk_imported *made = draft->made;
    if (draft->file->operators < 1)
        return lk_onnx_fail(draft, "it has no operators of ONNX's own");
    LK_TRY(convert_for_samples(draft));
    LK_TRY(make_text(draft));
    LK_TRY(lk_model_read(made->text.bytes, made->text.used, "model.yaml", &made->model));
    made->source = "onnx";
    made->layers = draft->entries;
    made->has_weights = made->tensor_count > 0;
    return check_parameters(draft);
}

/* Whether each output is computed, with samples along its first axis, one number of it each. */
static bool has_samples_first(const struct lk_onnx_draft *draft)
{
    for (int o = 0; o < draft->file->output_count; o++) {
        const struct lk_onnx_value *found = lk_onnx_find(draft, draft->file->outputs[o].name);
        if (!found || !found->node || found->constant || found->at != 0 || found->rank < 1 ||
            found->dim[0] != draft->batch)
            return false;
    }
    return draft->file->output_count > 0;
}

static bool has_convolution(const struct lk_onnx_graph *file)
{
    bool found = false;
    for (int n = 0; n < file->node_count; n++)
        found |= strcmp(file->nodes[n].op, "Conv") == 0;
    return found;
}

enum lk_status lk_onnx_make_samples(struct lk_onnx_draft *draft)
{
    if (!has_convolution(draft->file))
        return lk_onnx_fail(draft, "it has no convolution");
    LK_TRY(convert_for_samples(draft));
    return has_samples_first(draft) ? LK_OK
                                    : lk_onnx_fail(draft, "an output is not of samples");
}

enum lk_status lk_onnx_make(const char *file, const struct lk_import_options *options,
                            struct lk_imported *made)
{
    struct lk_onnx_file opened = {0};
    LK_TRY(lk_onnx_read(file, &opened));
    struct lk_onnx_draft draft = {
        .where = file, .options = options, .file = &opened.graph, .made = made};
    enum lk_status status = lk_onnx_join_loops(&draft.arena, &opened.graph, false);
    if (status == LK_OK)
        status = make(&draft);
    free(draft.inputs.bytes);
    free(draft.layers.bytes);
    lk_graph_destroy(draft.graph);
    lk_arena_clear(&draft.arena);
    lk_onnx_clear(&opened);
    return status;
}

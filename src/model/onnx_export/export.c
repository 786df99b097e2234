/* Writes a run's model as an ONNX file. */
#include "model/onnx_export/export.h"

#include "base/fail.h"
#include <lockstep/weights.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { STANDARD_SET = 17, FIRST_SET = 13, LAST_SET = 28 };

enum lk_status lk_onnx_export_fail(const struct lk_onnx_export *e, const char *format, ...)
{
    char text[384];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    return lk_fail(LK_E_UNSUPPORTED, "%s '%s': %s", e->node->op ? e->node->op->name : "input",
                   e->node->name, text);
}

/* --- the graph --------------------------------------------------------------------------- */

static enum lk_status put_operation(struct lk_onnx_export *e, const char *const *x,
                                    const char *y)
{
    static const struct lk_onnx_pairing *const tables[] = {
        lk_onnx_image_pairings,     lk_onnx_plain_pairings,     lk_onnx_sequence_pairings,
        lk_onnx_recurrent_pairings, lk_onnx_attention_pairings, lk_onnx_array_pairings};
    for (int t = 0; t < LK_COUNT(tables); t++)
        for (const struct lk_onnx_pairing *p = tables[t]; p->op; p++)
            if (strcmp(p->op, e->node->op->name) == 0)
                return e->node->shapes.is_loss
                           ? lk_onnx_export_fail(e, "a loss in a layer is not exported")
                           : p->emit(e, x, y);
    return lk_onnx_export_fail(e, "this operation is not exported");
}

/* A batch norm as the convolution before it, which has taken it over. */
static enum lk_status put_folded(struct lk_onnx_export *e, const char *const *names,
                                 const char *y)
{
    const struct lk_node *norm = e->node, *conv = norm->input_nodes[0];
    const char *x = names[conv->input_nodes[0]->index];
    LK_TRY(lk_onnx_take_norm(e));
    e->node = conv;
    LK_TRY(put_operation(e, &x, y));
    e->node = norm;
    e->factors = e->shifts = NULL;
    return LK_OK;
}

static enum lk_status put_node(struct lk_onnx_export *e, const char **names)
{
    const char *x[LK_MOST_INPUTS + 1] = {NULL};
    const char *y = e->node->name;
    if (!e->node->op)
        return lk_onnx_emit_input(e, &names[e->node->index]);
    const bool is_gated = lk_onnx_option_is(e, "activation", "relu") ||
                          lk_onnx_option_is(e, "relu", "true"); /* add's */
    for (int i = 0; i < e->node->inputs; i++)
        x[i] = names[e->node->input_nodes[i]->index];
    names[e->node->index] = y;
    if (lk_onnx_find_norm(e, e->node))
        return LK_OK;
    if (is_gated)
        LK_TRY(lk_onnx_name(e, "linear", &y));
    LK_TRY(lk_onnx_find_norm(e, e->node->input_nodes[0]) == e->node ? put_folded(e, names, y)
                                                                    : put_operation(e, x, y));
    return is_gated ? lk_onnx_emit_node(e, "Relu", e->node->name, 1, &y) : LK_OK;
}

static enum lk_status make_graph(struct lk_onnx_export *e, const struct lk_onnx_options *o)
{
    const struct lk_model *model = e->stored.model;
    const size_t most = (size_t)model->graph->count * LK_ONNX_EXPORT_EACH;
    struct lk_onnx_port *ports;
    const char **names;
    bool *needed;
    LK_TRY(lk_onnx_take(e, (size_t)model->graph->count, sizeof *needed, &needed));
    lk_model_mark_needed(model, needed);
    LK_TRY(lk_onnx_take(e, most, sizeof *e->nodes, &e->nodes));
    LK_TRY(lk_onnx_take(e, most, sizeof *e->constants, &e->constants));
    LK_TRY(lk_onnx_take(e, (size_t)model->graph->count, sizeof *names, &names));
    LK_TRY(lk_onnx_take(e, LK_MOST_INPUTS + LK_MOST_OUTPUTS, sizeof *ports, &ports));
    for (int i = 0; i < model->graph->count; i++) {
        e->node = model->graph->nodes[i];
        if (needed[i] || !e->node->op)
            LK_TRY(put_node(e, names));
    }
    for (int i = 0; i < model->input_count; i++)
        ports[e->graph.input_count++] = lk_onnx_describe(e, model->inputs[i], o->batch);
    e->graph.inputs = ports;
    e->graph.outputs = ports + e->graph.input_count;
    for (int i = 0; i < model->output_count; i++)
        ports[e->graph.input_count + e->graph.output_count++] =
            lk_onnx_describe(e, model->outputs[i].node, o->batch);
    e->graph.nodes = e->nodes;
    e->graph.constants = e->constants;
    return LK_OK;
}

/* The version of the format that came with a set of operators. */
static int64_t version_of(int64_t set)
{
    return set < 15   ? 7
           : set < 19 ? 8
           : set < 21 ? 9
           : set < 23 ? 10
           : set < 25 ? set - 12
           : set < 28 ? 13
                      : 14;
}

enum lk_status lk_onnx_export(const char *run, const char *path,
                              const struct lk_onnx_options *options)
{
    static const struct lk_onnx_options none;
    const struct lk_onnx_options *o = options ? options : &none;
    struct lk_onnx_export e = {0};
    enum lk_status status;
    const int set = o->operators ? o->operators : STANDARD_SET;
    if (set < FIRST_SET || set > LAST_SET)
        return lk_fail(LK_E_ARGUMENT, "operator set %d of ONNX, expected %d to %d", set,
                       FIRST_SET, LAST_SET);
    LK_TRY_OUT(lk_stored_open(run, &e.stored));
    e.graph.name = lk_model_name(e.stored.model);
    e.graph.producer = "lockstep";
    e.graph.operators = set;
    e.graph.version = version_of(set);
    e.folds = o->fold;
    e.prepares = o->preprocess;
    LK_TRY_OUT(make_graph(&e, o));
    LK_TRY_OUT(lk_onnx_write(path, &e.graph));
out:
    lk_arena_clear(&e.arena);
    lk_stored_close(&e.stored);
    return status;
}

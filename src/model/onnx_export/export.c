/* Writes a run's model as an ONNX file. */
#include "model/onnx_export/export.h"

#include "base/fail.h"
#include <lockstep/weights.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { STANDARD_SET = 17, FIRST_SET = 13, LAST_SET = 23 };

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

static void describe(const struct lk_node *node, int64_t batch, struct lk_onnx_port *port)
{
    const struct lk_shape *y = &node->shapes.y;
    const bool is_whole = !node->op && node->input.dtype == LK_I32;
    *port = (struct lk_onnx_port){.name = node->name,
                                  .batch = "batch",
                                  .type = is_whole ? LK_ONNX_INT32 : LK_ONNX_FLOAT,
                                  .rank = y->rank + 1,
                                  .dim = {batch > 0 ? batch : -1}};
    for (int i = 0; i < y->rank; i++)
        port->dim[1 + i] = y->dim[i];
}

/* Tokens, and lengths of sequences between 0 and all steps, as int64. */
static enum lk_status put_whole(struct lk_onnx_export *e, const char **name)
{
    const struct lk_node *sequence = e->node->sequence;
    const char *inputs[3];
    LK_TRY(lk_onnx_emit(e, "Cast", "whole", 1, &(const char *){e->node->name}, name));
    lk_onnx_emit_integer(e, "to", LK_ONNX_INT64);
    if (!sequence)
        return LK_OK;
    inputs[0] = *name;
    LK_TRY(lk_onnx_emit_integer_constant(e, "none", 0, &inputs[1]));
    LK_TRY(lk_onnx_emit_integer_constant(e, "all", sequence->shapes.y.dim[0], &inputs[2]));
    return lk_onnx_emit(e, "Clip", "valid", 3, inputs, name);
}

/* Numbers of an input have its scale and shift; those of an image are what the first layer
 * reads. *name: what readers of the input read. */
static enum lk_status put_input(struct lk_onnx_export *e, const char **name)
{
    const struct lk_input *input = &e->node->input;
    const char *scale, *shift, *scaled;
    *name = e->node->name;
    if (input->dtype == LK_U8)
        return LK_OK;
    if (input->dtype == LK_I32)
        return put_whole(e, name);
    const double by = input->scale == 0 ? 1 : input->scale;
    if (by == 1 && input->shift == 0)
        return LK_OK;
    LK_TRY(lk_onnx_emit_reals(e, "scale", 0, 1, &by, &scale));
    LK_TRY(lk_onnx_emit_reals(e, "shift", 0, 1, &input->shift, &shift));
    LK_TRY(lk_onnx_name(e, "scaled", &scaled));
    LK_TRY(lk_onnx_name(e, "shifted", name));
    LK_TRY(lk_onnx_emit_node(e, "Mul", scaled, 2, (const char *[]){e->node->name, scale}));
    return lk_onnx_emit_node(e, "Add", *name, 2, (const char *[]){scaled, shift});
}

static enum lk_status put_node(struct lk_onnx_export *e, const char **names)
{
    static const struct lk_onnx_pairing *const tables[] = {
        lk_onnx_image_pairings,     lk_onnx_plain_pairings,     lk_onnx_sequence_pairings,
        lk_onnx_recurrent_pairings, lk_onnx_attention_pairings, lk_onnx_array_pairings};
    const char *x[LK_MOST_INPUTS + 1] = {NULL};
    const char *y = e->node->name;
    if (!e->node->op)
        return put_input(e, &names[e->node->index]);
    const bool is_gated = lk_onnx_option_is(e, "activation", "relu");
    for (int i = 0; i < e->node->inputs; i++)
        x[i] = names[e->node->input_nodes[i]->index];
    names[e->node->index] = y;
    if (is_gated)
        LK_TRY(lk_onnx_name(e, "linear", &y));
    for (int t = 0; t < LK_COUNT(tables); t++)
        for (const struct lk_onnx_pairing *p = tables[t]; p->op; p++)
            if (strcmp(p->op, e->node->op->name) == 0) {
                LK_TRY(p->emit(e, x, y));
                return is_gated ? lk_onnx_emit_node(e, "Relu", e->node->name, 1, &y) : LK_OK;
            }
    return lk_onnx_export_fail(e, "this operation is not exported yet");
}

static enum lk_status make_graph(struct lk_onnx_export *e, const struct lk_onnx_options *o)
{
    const struct lk_model *model = e->stored.model;
    const size_t most = (size_t)model->graph->count * LK_ONNX_EXPORT_EACH;
    struct lk_onnx_port *ports;
    const char **names;
    LK_TRY(lk_onnx_take(e, most, sizeof *e->nodes, &e->nodes));
    LK_TRY(lk_onnx_take(e, most, sizeof *e->constants, &e->constants));
    LK_TRY(lk_onnx_take(e, (size_t)model->graph->count, sizeof *names, &names));
    LK_TRY(lk_onnx_take(e, LK_MOST_INPUTS + LK_MOST_OUTPUTS, sizeof *ports, &ports));
    for (int i = 0; i < model->graph->count; i++) {
        e->node = model->graph->nodes[i];
        LK_TRY(put_node(e, names));
    }
    for (int i = 0; i < model->input_count; i++)
        describe(model->inputs[i], o->batch, &ports[e->graph.input_count++]);
    e->graph.inputs = ports;
    e->graph.outputs = ports + e->graph.input_count;
    for (int i = 0; i < model->output_count; i++)
        describe(model->outputs[i].node, o->batch,
                 &ports[e->graph.input_count + e->graph.output_count++]);
    e->graph.nodes = e->nodes;
    e->graph.constants = e->constants;
    return LK_OK;
}

/* The version of the format that came with a set of operators. */
static int64_t version_of(int64_t set)
{
    return set < 15 ? 7 : set < 19 ? 8 : set < 21 ? 9 : set < 23 ? 10 : 11;
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
    LK_TRY_OUT(make_graph(&e, o));
    LK_TRY_OUT(lk_onnx_write(path, &e.graph));
out:
    lk_arena_clear(&e.arena);
    lk_stored_close(&e.stored);
    return status;
}

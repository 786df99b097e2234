/* Makes a graph of ours of an ONNX file and the arrays that it is to be computed on. */
#include "model/onnx/arrays.h"

#include "base/fail.h"
#include "model/onnx/convert.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct lk_onnx_arrays {
    struct lk_onnx_file opened;
    struct lk_onnx_draft draft;
    struct lk_imported made;
    struct lk_onnx_array *inputs, *outputs; /* [of the file] */
    int input_count, output_count;
    int64_t samples;
    struct lk_import_options options;
};

/* --- inputs ------------------------------------------------------------------------------ */

static bool is_given(const struct lk_onnx_draft *draft, int input)
{
    const struct lk_onnx_value *value = lk_onnx_find(draft, draft->file->inputs[input].name);
    return value->constant != NULL;
}

/* Which input of the file an array is for; constants of the file are none. */
static enum lk_status find_input(const struct lk_onnx_arrays *a,
                                 const struct lk_onnx_array *given, int *index)
{
    const struct lk_onnx_graph *file = a->draft.file;
    for (int i = 0; given->name && i < file->input_count; i++)
        if (strcmp(file->inputs[i].name, given->name) == 0 && !a->inputs[i].tensor) {
            *index = i;
            return LK_OK;
        }
    for (int i = 0; !given->name && i < file->input_count; i++)
        if (!a->inputs[i].tensor && !is_given(&a->draft, i)) {
            *index = i;
            return LK_OK;
        }
    if (given->name)
        return lk_fail(LK_E_ARGUMENT, "%s: it has no input '%.80s', or that is given twice",
                       a->draft.where, given->name);
    return lk_fail(LK_E_ARGUMENT, "%s: more arrays than it has inputs", a->draft.where);
}

/* What the file says of the shape must hold. */
static enum lk_status check_shape(const struct lk_onnx_arrays *a, int index)
{
    const struct lk_onnx_port *port = &a->draft.file->inputs[index];
    const struct lk_onnx_tensor *tensor = a->inputs[index].tensor;
    bool fits = port->rank < 0 || port->rank == tensor->rank;
    for (int i = 0; fits && i < port->rank; i++)
        fits = port->dim[i] < 0 || port->dim[i] == tensor->dim[i];
    if (!fits)
        return lk_fail(LK_E_SHAPE, "%s: input '%.80s' takes an array of another shape",
                       a->draft.where, port->name);
    if (port->type && port->type != tensor->type)
        return lk_fail(LK_E_SHAPE, "%s: input '%.80s' takes %s, found %s", a->draft.where,
                       port->name, lk_onnx_type_name(port->type),
                       lk_onnx_type_name(tensor->type));
    return LK_OK;
}

/* Arrays are computed in float32, which must not change what comes out. */
static enum lk_status check_numbers(const struct lk_onnx_arrays *a, int index)
{
    const struct lk_onnx_tensor *tensor = a->inputs[index].tensor;
    if (tensor->type == LK_ONNX_BFLOAT)
        return lk_fail(LK_E_UNSUPPORTED, "%s: input '%.80s' is of bfloat16", a->draft.where,
                       a->inputs[index].name);
    for (int64_t i = 0; i < tensor->count && tensor->type == LK_ONNX_DOUBLE; i++) {
        const double number = fabs(lk_onnx_real(tensor, i));
        if (isfinite(number) && (number > 1e19 || (number > 0 && number < 1e-19)))
            return lk_fail(LK_E_UNSUPPORTED,
                           "%s: input '%.80s' has numbers of float64 that float32 cannot be "
                           "trusted with",
                           a->draft.where, a->inputs[index].name);
    }
    return LK_OK;
}

/* An input of the graph with all numbers of an array. */
static enum lk_status add_input(struct lk_onnx_arrays *a, int index)
{
    struct lk_onnx_draft *draft = &a->draft;
    struct lk_onnx_array *input = &a->inputs[index];
    struct lk_onnx_value *value = lk_onnx_find(draft, input->name);
    char base[LK_IMPORT_BASE], name[LK_IMPORT_NAME];
    LK_TRY(check_numbers(a, index));
    (void)lk_import_clean(input->name, base);
    lk_import_choose_name(draft->graph, NULL, base, "", name);
    const struct lk_input added = {.name = name,
                                   .dtype = LK_F32,
                                   .shape = {1, {input->tensor->count}},
                                   .scale = 1,
                                   .takes_numbers = true};
    if (++draft->input_count > LK_MOST_INPUTS)
        return lk_onnx_fail(draft, "more than %d inputs of floats", LK_MOST_INPUTS);
    LK_TRY(lk_graph_add_input(draft->graph, &added, &input->node));
    LK_TRY(lk_arena_text(&draft->arena, name, &value->entry));
    value->node = input->node;
    if (!draft->anchor)
        draft->anchor = value;
    return LK_OK;
}

static enum lk_status take_inputs(struct lk_onnx_arrays *a)
{
    struct lk_onnx_draft *draft = &a->draft;
    for (int i = 0; i < a->input_count; i++) {
        const struct lk_onnx_tensor *tensor = a->inputs[i].tensor;
        struct lk_onnx_value *value = lk_onnx_find(draft, a->inputs[i].name);
        if (!tensor && !value->constant && value->readers)
            return lk_fail(LK_E_ARGUMENT, "%s: input '%.80s' is missing", draft->where,
                           a->inputs[i].name);
        if (!tensor)
            continue;
        LK_TRY(check_shape(a, i));
        value->rank = tensor->rank;
        memcpy(value->dim, tensor->dim, sizeof value->dim);
        value->type = tensor->type;
        value->known = tensor;
        value->constant = NULL;
        if (lk_onnx_is_whole(tensor->type) || tensor->count == 0)
            value->constant = tensor;
        else
            LK_TRY(add_input(a, i));
    }
    for (int i = 0; i < a->input_count && !draft->anchor; i++)
        if (a->inputs[i].tensor && a->inputs[i].tensor->count > 0)
            LK_TRY(add_input(a, i));
    return LK_OK;
}

/* --- outputs ----------------------------------------------------------------------------- */

/* All elements in a row, as an operation's result: an input alone is none. */
static enum lk_status make_flat(struct lk_onnx_draft *draft, struct lk_onnx_value *value)
{
    const struct lk_onnx_value x = *value;
    if (x.node->op && x.node->shapes.y.rank == 1)
        return LK_OK;
    return lk_onnx_add(draft, x.node->op ? "flatten" : "rescale", "", 1, &x, value);
}

static enum lk_status take_outputs(struct lk_onnx_arrays *a)
{
    struct lk_onnx_draft *draft = &a->draft;
    for (int o = 0; o < a->output_count; o++) {
        const struct lk_onnx_value *found = lk_onnx_find(draft, a->outputs[o].name);
        struct lk_onnx_array *output = &a->outputs[o];
        if (!lk_onnx_is_made(found))
            return lk_onnx_fail(draft, "output '%.80s' is not computed", output->name);
        struct lk_onnx_value value = *found;
        output->tensor = found->constant;
        output->rank = found->constant ? found->constant->rank : found->rank;
        memcpy(output->dim, found->constant ? found->constant->dim : found->dim,
               sizeof output->dim);
        output->type = found->constant ? found->constant->type : found->type;
        if (found->constant)
            continue;
        const struct lk_onnx_node node = {.name = output->name, .op = "output"};
        draft->node = &node;
        const enum lk_status status = make_flat(draft, &value);
        draft->node = NULL;
        LK_TRY(status);
        output->node = value.node;
    }
    return LK_OK;
}

/* --- the graph --------------------------------------------------------------------------- */

static enum lk_status list_ports(struct lk_onnx_arrays *a)
{
    const struct lk_onnx_graph *file = &a->opened.graph;
    if (file->output_count > LK_MOST_VALUES) /* before they are converted for nothing */
        return lk_onnx_fail(&a->draft, "it has %d outputs, at most %d are computed",
                            (int)file->output_count, LK_MOST_VALUES);
    a->input_count = file->input_count;
    a->output_count = file->output_count;
    a->inputs = calloc((size_t)a->input_count + 1, sizeof *a->inputs);
    a->outputs = calloc((size_t)a->output_count + 1, sizeof *a->outputs);
    if (!a->inputs || !a->outputs)
        return lk_fail_memory(a->draft.where, (size_t)a->input_count * sizeof *a->inputs);
    for (int i = 0; i < a->input_count; i++)
        a->inputs[i].name = file->inputs[i].name;
    for (int o = 0; o < a->output_count; o++)
        a->outputs[o].name = file->outputs[o].name;
    return LK_OK;
}

static enum lk_status give(struct lk_onnx_arrays *a, const struct lk_onnx_array *given,
                           int count)
{
    int index = 0;
    for (int i = 0; i < count; i++) {
        LK_TRY(find_input(a, &given[i], &index));
        a->inputs[index].tensor = given[i].tensor;
    }
    return LK_OK;
}

static enum lk_status make(struct lk_onnx_arrays *a, const struct lk_onnx_array *given,
                           int count)
{
    struct lk_onnx_draft *draft = &a->draft;
    if (draft->file->operators < 1)
        return lk_onnx_fail(draft, "it has no operators of ONNX's own");
    LK_TRY(list_ports(a));
    draft->budget = 1 << 22;
    for (int i = 0; i < draft->file->constant_count; i++)
        draft->budget += 4 * draft->file->constants[i].count;
    LK_TRY(lk_graph_create(&draft->graph));
    LK_TRY(lk_onnx_open_values(draft));
    LK_TRY(give(a, given, count));
    for (int i = 0; i < count; i++)
        draft->budget += 4 * given[i].tensor->count;
    LK_TRY(lk_onnx_find_needed(draft));
    LK_TRY(take_inputs(a));
    LK_TRY(lk_onnx_convert_all(draft));
    return take_outputs(a);
}

/* --- samples ----------------------------------------------------------------------------- */

/* How many samples all arrays have along their first axis; 1: not so. */
static int64_t count_samples(const struct lk_onnx_array *given, int count)
{
    const int64_t samples =
        count > 0 && given[0].tensor->rank > 0 ? given[0].tensor->dim[0] : 1;
    for (int i = 0; i < count; i++) {
        const struct lk_onnx_tensor *tensor = given[i].tensor;
        if (tensor->rank < 1 || tensor->dim[0] != samples || tensor->count == 0 ||
            lk_onnx_is_whole(tensor->type))
            return 1;
    }
    return samples;
}

/* What a file may leave open of images. */
static void read_size(const struct lk_onnx_array *given, int count,
                      struct lk_import_options *options)
{
    for (int i = 0; i < count; i++)
        if (given[i].tensor->rank == 4) {
            options->height = (int)given[i].tensor->dim[2];
            options->width = (int)given[i].tensor->dim[3];
        }
}

/* Images are bytes in imported models; here they are numbers. */
static enum lk_status take_sample_inputs(struct lk_onnx_arrays *a)
{
    for (int i = 0; i < a->input_count; i++) {
        struct lk_onnx_array *input = &a->inputs[i];
        const struct lk_onnx_value *value = lk_onnx_find(&a->draft, input->name);
        if (!input->tensor || !value->node || value->at != 0)
            return lk_onnx_fail(&a->draft, "input '%.80s' is missing, or not of samples",
                                input->name);
        LK_TRY(check_shape(a, i));
        LK_TRY(check_numbers(a, i));
        input->node = value->node;
        input->node->input.dtype = LK_F32;
        input->is_last = value->is_last;
    }
    return LK_OK;
}

static enum lk_status take_sample_outputs(struct lk_onnx_arrays *a)
{
    for (int o = 0; o < a->output_count; o++) {
        struct lk_onnx_array *output = &a->outputs[o];
        struct lk_onnx_value value;
        LK_TRY(lk_onnx_make_output(&a->draft, output->name, &value));
        output->node = value.node;
        output->rank = value.rank;
        output->is_last = value.is_last;
        memcpy(output->dim, value.dim, sizeof output->dim);
        output->dim[0] = a->samples;
    }
    return LK_OK;
}

static enum lk_status make_samples(struct lk_onnx_arrays *a, const struct lk_onnx_array *given,
                                   int count)
{
    struct lk_onnx_draft *draft = &a->draft;
    LK_TRY(list_ports(a));
    LK_TRY(lk_onnx_make_samples(draft));
    if (draft->batch != LK_ONNX_OPEN && draft->batch != a->samples)
        return lk_onnx_fail(draft, "it has a batch of %lld", (long long)draft->batch);
    LK_TRY(give(a, given, count));
    LK_TRY(take_sample_inputs(a));
    return take_sample_outputs(a);
}

/* --- all of it --------------------------------------------------------------------------- */

static enum lk_status open_arrays(const char *file, const struct lk_onnx_array *given,
                                  int count, int64_t samples, struct lk_onnx_arrays **arrays)
{
    struct lk_onnx_arrays *a = calloc(1, sizeof *a);
    if (!a)
        return lk_fail_memory(file, sizeof *a);
    a->samples = samples;
    a->draft = (struct lk_onnx_draft){.where = file,
                                      .file = &a->opened.graph,
                                      .made = &a->made,
                                      .options = &a->options,
                                      .batch = 1,
                                      .is_whole = samples == 1};
    read_size(given, count, &a->options);
    enum lk_status status = lk_onnx_read(file, &a->opened);
    if (status == LK_OK)
        status = lk_onnx_join_loops(&a->draft.arena, &a->opened.graph, a->draft.is_whole);
    if (status == LK_OK)
        status = samples > 1 ? make_samples(a, given, count) : make(a, given, count);
    if (status != LK_OK) {
        lk_onnx_close_arrays(a);
        return status;
    }
    *arrays = a;
    return LK_OK;
}

enum lk_status lk_onnx_open_arrays(const char *file, const struct lk_onnx_array *given,
                                   int count, struct lk_onnx_arrays **arrays)
{
    const int64_t samples = count_samples(given, count);
    if (samples > 1) {
        const enum lk_status status = open_arrays(file, given, count, samples, arrays);
        if (status == LK_OK || status == LK_E_MEMORY)
            return status;
        lk_error_clear(); /* what all of the arrays are refused for is told */
    }
    return open_arrays(file, given, count, 1, arrays);
}

int64_t lk_onnx_array_samples(const struct lk_onnx_arrays *arrays)
{
    return arrays->samples;
}

void lk_onnx_close_arrays(struct lk_onnx_arrays *arrays)
{
    if (!arrays)
        return;
    free(arrays->draft.inputs.bytes);
    free(arrays->draft.layers.bytes);
    free(arrays->made.text.bytes);
    lk_graph_destroy(arrays->draft.graph);
    lk_arena_clear(&arrays->draft.arena);
    lk_arena_clear(&arrays->made.arena);
    lk_onnx_clear(&arrays->opened);
    free(arrays->inputs);
    free(arrays->outputs);
    free(arrays);
}

const struct lk_onnx_array *lk_onnx_array_input(const struct lk_onnx_arrays *arrays, int index)
{
    return index < arrays->input_count ? &arrays->inputs[index] : NULL;
}

const struct lk_onnx_array *lk_onnx_array_output(const struct lk_onnx_arrays *arrays, int index)
{
    return index < arrays->output_count ? &arrays->outputs[index] : NULL;
}

const struct lk_safetensor *lk_onnx_array_param(const struct lk_onnx_arrays *arrays,
                                                const char *name)
{
    return lk_imported_find(&arrays->made, name);
}

/* Inputs of an ONNX model: what they are is read from what reads them. */
#include "model/onnx/convert.h"

#include "base/fail.h"
#include <string.h>

/* --- kinds ------------------------------------------------------------------------------- */

/* Whether a node reads whole numbers as indices of a table, or as lengths. */
static bool takes_tokens(const struct lk_onnx_draft *draft, const struct lk_onnx_node *node,
                         int input)
{
    if (strcmp(node->op, "Gather") == 0) {
        const struct lk_onnx_value *table = lk_onnx_find(draft, node->inputs[0]);
        return input == 1 && table && table->constant;
    }
    return input == 4 && (strcmp(node->op, "LSTM") == 0 || strcmp(node->op, "GRU") == 0 ||
                          strcmp(node->op, "RNN") == 0);
}

/* Whether it is read so, perhaps behind operators that change type or shape alone. */
static bool has_tokens(const struct lk_onnx_draft *draft, const char *name)
{
    enum { MOST = 16 };
    static const char *const passing[] = {"Cast",      "Identity", "Reshape",
                                          "Unsqueeze", "Squeeze",  "Flatten"};
    const char *names[MOST] = {name};
    int count = 1;
    for (int n = 0; n < draft->file->node_count; n++) {
        const struct lk_onnx_node *node = &draft->file->nodes[n];
        for (int i = 0; i < node->input_count && !draft->done[n]; i++) {
            bool reads = false, passes = false;
            for (int k = 0; k < count; k++)
                reads |= strcmp(node->inputs[i], names[k]) == 0;
            if (!reads)
                continue;
            if (takes_tokens(draft, node, i))
                return true;
            for (int p = 0; p < LK_COUNT(passing); p++)
                passes |= i == 0 && strcmp(passing[p], node->op) == 0;
            if (passes && node->output_count == 1 && count < MOST)
                names[count++] = node->outputs[0];
        }
    }
    return false;
}

/* --- shapes ------------------------------------------------------------------------------ */

static enum lk_status read_lengths(struct lk_onnx_draft *draft, const struct lk_onnx_port *port,
                                   bool is_last, struct lk_onnx_value *value)
{
    const int asked[] = {draft->options->height, draft->options->width};
    const int first = is_last ? 1 : 2; /* axis of the height */
    if (port->rank < 1 || port->rank > 4)
        return lk_onnx_fail(draft,
                            "input '%.80s' has %d axes; a batch of vectors, sequences or "
                            "images, 1 to 4 axes, is expected",
                            port->name, port->rank);
    value->rank = port->rank;
    /* [t, n, c]: where the second length alone is open it is the batch */
    value->at = port->rank == 3 && port->dim[0] > 0 && port->dim[1] < 0 && port->dim[2] > 0;
    for (int i = 0; i < port->rank; i++) {
        value->dim[i] = port->dim[i];
        if (value->dim[i] < 0 && port->rank == 4 && i >= first && i < first + 2)
            value->dim[i] = asked[i - first];
        if (i != value->at && (value->dim[i] < 1 || value->dim[i] > 1 << 24))
            return lk_onnx_fail(draft,
                                "input '%.80s' leaves a length open; --size HEIGHTxWIDTH says "
                                "those of an image",
                                port->name);
    }
    return LK_OK;
}

/* The batch has one length in all inputs. */
static enum lk_status join_batch(struct lk_onnx_draft *draft, const struct lk_onnx_port *port,
                                 struct lk_onnx_value *value)
{
    const int64_t said = value->dim[value->at], batch = said < 0 ? LK_ONNX_OPEN : said;
    if (draft->input_count > 0 && batch != draft->batch)
        return lk_onnx_fail(draft, "input '%.80s' has another batch than the first input",
                            port->name);
    if (said == 0 || said > 1 << 24)
        return lk_onnx_fail(draft, "input '%.80s' has a batch of %lld", port->name,
                            (long long)said);
    draft->batch = batch;
    value->dim[value->at] = batch;
    return LK_OK;
}

/* "[10, 64]" */
static void write_shape(struct lk_text *text, int rank, const int64_t *dim)
{
    for (int i = 0; i < rank; i++)
        lk_text_append(text, "%s%lld", i ? ", " : "", (long long)dim[i]);
}

/* Images are uint8 without a scale, so that numbers are taken as they are. */
enum lk_status lk_onnx_add_input(struct lk_onnx_draft *draft, const struct lk_onnx_port *port,
                                 bool is_last)
{
    struct lk_onnx_value *value = lk_onnx_find(draft, port->name);
    char base[LK_IMPORT_BASE], name[LK_IMPORT_NAME];
    if (port->type == LK_ONNX_BOOL || !lk_onnx_type_bytes(port->type))
        return lk_onnx_fail(draft, "input '%.80s' is of %s, expected numbers", port->name,
                            lk_onnx_type_name(port->type));
    LK_TRY(read_lengths(draft, port, is_last, value));
    LK_TRY(join_batch(draft, port, value));
    (void)lk_import_clean(port->name, base);
    lk_import_choose_name(draft->graph, NULL, base, "", name);
    struct lk_input input = {.name = name,
                             .dtype = port->rank == 4                 ? LK_U8
                                      : !lk_onnx_is_whole(port->type) ? LK_F32
                                      : has_tokens(draft, port->name) ? LK_I32
                                                                      : LK_F32,
                             .shape = {.rank = port->rank - 1},
                             .scale = 1,
                             .takes_numbers = true};
    for (int i = 0, to = 0; i < port->rank; i++)
        if (i != value->at)
            input.shape.dim[to++] = value->dim[i];
    const struct lk_shape said = input.shape;
    if (is_last)
        input.shape = (struct lk_shape){3, {said.dim[2], said.dim[0], said.dim[1]}};
    if (draft->input_count == LK_MOST_INPUTS)
        return lk_onnx_fail(draft, "more than %d inputs", LK_MOST_INPUTS);
    struct lk_import_port *theirs = &draft->made->inputs[draft->input_count++];
    *theirs =
        (struct lk_import_port){.is_bytes = port->type == LK_ONNX_UINT8, .is_last = is_last};
    LK_TRY(lk_arena_text(&draft->made->arena, port->name, &theirs->name));
    const enum lk_status status = lk_graph_add_input(draft->graph, &input, &value->node);
    if (status != LK_OK)
        return lk_onnx_say_where(draft, status);
    LK_TRY(lk_arena_text(&draft->arena, name, &value->entry));
    value->is_last = is_last;
    if (!draft->anchor && input.dtype != LK_I32)
        draft->anchor = value;
    const int64_t *s = input.shape.dim, turned[] = {s[1], s[2], s[0]};
    lk_text_append(&draft->inputs, "  %s: {shape: [", name);
    write_shape(&draft->inputs, input.shape.rank, port->rank == 4 ? turned : s);
    lk_text_append(&draft->inputs, "], type: %s}\n",
                   port->rank == 4         ? "uint8, scale: 1"
                   : input.dtype == LK_I32 ? "int32"
                                           : "float32");
    return LK_OK;
}

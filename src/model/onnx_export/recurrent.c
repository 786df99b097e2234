/* Recurrent layers as operators of ONNX. There time steps come before the batch, and gates,
 * which lie side by side here, one behind the other. */
#include "model/onnx_export/export.h"

#include "base/fail.h"
#include <string.h>

enum { MOST_GATES = 4, MOST_STATES = 2 };

/* Ours in the order of theirs: lstm has i, f, z, o here and i, o, f, z there. */
static const struct cell {
    const char *op, *theirs;
    int gates, states;
    int order[MOST_GATES];
} cells[] = {
    {"lstm", "LSTM", 4, 2, {0, 3, 1, 2}},
    {"gru", "GRU", 3, 1, {0, 1, 2}},
    {"rnn", "RNN", 1, 1, {0}},
};

static const struct cell *cell_of(const struct lk_onnx_export *e)
{
    const struct cell *cell = cells;
    while (strcmp(cell->op, e->node->op->name) != 0)
        cell++;
    return cell;
}

/* [rows][gates][units] here to [1][gates][units][rows] there. */
static enum lk_status emit_matrix(struct lk_onnx_export *e, const char *param, int64_t rows,
                                  int64_t units, const char **name)
{
    const struct cell *cell = cell_of(e);
    const int64_t columns = cell->gates * units;
    const float *ours;
    float *theirs;
    LK_TRY(lk_onnx_take_param(e, param, &ours));
    LK_TRY(lk_onnx_take(e, (size_t)(columns * rows), sizeof *theirs, &theirs));
    for (int g = 0; g < cell->gates; g++)
        for (int64_t u = 0; u < units; u++)
            for (int64_t r = 0; r < rows; r++)
                theirs[(g * units + u) * rows + r] =
                    ours[r * columns + cell->order[g] * units + u];
    return lk_onnx_emit_floats(e, param, 3, (int64_t[]){1, columns, rows}, theirs, name);
}

/* Both biases, of x and of h, in one; *name "": there are none. */
static enum lk_status emit_biases(struct lk_onnx_export *e, int64_t units, const char **name)
{
    static const char *const params[] = {"bias", "recurrent_bias"};
    const struct cell *cell = cell_of(e);
    const int64_t columns = cell->gates * units;
    const float *ours[2];
    float *theirs;
    *name = "";
    for (int i = 0; i < 2; i++)
        LK_TRY(lk_onnx_take_param(e, params[i], &ours[i]));
    if (!ours[0])
        return LK_OK;
    LK_TRY(lk_onnx_take(e, (size_t)(2 * columns), sizeof *theirs, &theirs));
    for (int i = 0; i < 2; i++)
        for (int64_t c = 0; c < columns; c++) {
            const int64_t from = cell->order[c / units] * units + c % units;
            theirs[i * columns + c] = ours[i] ? ours[i][from] : 0;
        }
    return lk_onnx_emit_floats(e, "bias", 2, (int64_t[]){1, 2 * columns}, theirs, name);
}

/* Our states [n, states, units] as theirs, [1, n, units] each. */
static enum lk_status emit_states(struct lk_onnx_export *e, const char *x,
                                  const char *names[MOST_STATES])
{
    static const char *const words[MOST_STATES][4] = {
        {"first_h", "first_h.from", "first_h.to", "first_h.axis"},
        {"first_c", "first_c.from", "first_c.to", "first_c.axis"}};
    const char *turned;
    LK_TRY(lk_onnx_emit_transpose(e, "first", 3, (int64_t[]){1, 0, 2}, x, &turned));
    for (int64_t i = 0; i < cell_of(e)->states; i++) {
        const char *inputs[4] = {turned};
        LK_TRY(lk_onnx_emit_integers(e, words[i][1], 1, &i, &inputs[1]));
        LK_TRY(lk_onnx_emit_integers(e, words[i][2], 1, (int64_t[]){i + 1}, &inputs[2]));
        LK_TRY(lk_onnx_emit_integers(e, words[i][3], 1, (int64_t[]){0}, &inputs[3]));
        LK_TRY(lk_onnx_emit(e, "Slice", words[i][0], 4, inputs, &names[i]));
    }
    return LK_OK;
}

/* x, W, R, B, lengths, initial states. */
static enum lk_status emit_inputs(struct lk_onnx_export *e, const char *const *x,
                                  const char *inputs[7])
{
    int64_t units;
    const int last = e->node->inputs - 1;
    const bool has_length = last > 0 && e->node->shapes.x[last].rank == 0;
    const bool has_states = last - has_length > 0;
    lk_onnx_option_integers(e, "units", 1, &units);
    LK_TRY(lk_onnx_emit_transpose(e, "steps", 3, (int64_t[]){1, 0, 2}, x[0], &inputs[0]));
    LK_TRY(emit_matrix(e, "weight", e->node->shapes.x[0].dim[1], units, &inputs[1]));
    LK_TRY(emit_matrix(e, "recurrent_weight", units, units, &inputs[2]));
    LK_TRY(emit_biases(e, units, &inputs[3]));
    inputs[4] = "";
    if (has_length) {
        LK_TRY(lk_onnx_emit(e, "Cast", "length", 1, &x[last], &inputs[4]));
        lk_onnx_emit_integer(e, "to", LK_ONNX_INT32);
    }
    inputs[5] = inputs[6] = NULL;
    return has_states ? emit_states(e, x[1], &inputs[5]) : LK_OK;
}

/* Theirs [1, n, units] as a row of ours, [n, 1, units]. */
static enum lk_status emit_row(struct lk_onnx_export *e, const char *what, const char *state,
                               const char **row)
{
    return lk_onnx_emit_transpose(e, what, 3, (int64_t[]){1, 0, 2}, state, row);
}

/* What the options ask for: all outputs or the last one, and states behind. */
static enum lk_status emit_rows(struct lk_onnx_export *e, const char *const made[3],
                                const char *y)
{
    const bool has_steps = lk_onnx_option_is(e, "return_sequences", "true");
    const bool has_states = lk_onnx_option_is(e, "return_state", "true");
    const char *rows[3], *inputs[2] = {made[has_steps ? 0 : 1]};
    int count = 1;
    if (has_steps || !has_states)
        LK_TRY(lk_onnx_emit_integers(e, "axis", 1, (int64_t[]){has_steps ? 1 : 0}, &inputs[1]));
    if (!has_steps && !has_states)
        return lk_onnx_emit_node(e, "Squeeze", y, 2, inputs);
    if (has_steps) {
        LK_TRY(lk_onnx_emit(e, "Squeeze", "outputs", 2, inputs, &rows[0]));
        LK_TRY(emit_row(e, "rows", rows[0], &rows[0]));
    } else {
        LK_TRY(emit_row(e, "row", made[1], &rows[0]));
    }
    for (int i = 0; has_states && i < cell_of(e)->states; i++)
        LK_TRY(emit_row(e, i == 0 ? "row_h" : "row_c", made[1 + i], &rows[count++]));
    LK_TRY(lk_onnx_emit_node(e, "Concat", y, count, rows));
    lk_onnx_emit_integer(e, "axis", 1);
    return LK_OK;
}

static enum lk_status recurrent(struct lk_onnx_export *e, const char *const *x, const char *y)
{
    const struct cell *cell = cell_of(e);
    const char *inputs[7], *made[3];
    int64_t units;
    lk_onnx_option_integers(e, "units", 1, &units);
    if (lk_onnx_option_is(e, "activation", "relu"))
        return lk_onnx_export_fail(e, "with activation=relu it is not exported");
    LK_TRY(emit_inputs(e, x, inputs));
    LK_TRY(lk_onnx_name(e, "y", &made[0]));
    LK_TRY(lk_onnx_name(e, "h", &made[1]));
    LK_TRY(lk_onnx_name(e, "c", &made[2]));
    LK_TRY(lk_onnx_emit_node(e, cell->theirs, made[0], 7, inputs));
    LK_TRY(lk_onnx_emit_outputs(e, 1 + cell->states, made));
    lk_onnx_emit_integer(e, "hidden_size", units);
    if (lk_onnx_option_is(e, "go_backwards", "true"))
        lk_onnx_emit_text(e, "direction", "reverse");
    if (strcmp(cell->op, "gru") == 0)
        lk_onnx_emit_integer(e, "linear_before_reset",
                             lk_onnx_option_is(e, "reset_after", "true"));
    return emit_rows(e, made, y);
}

const struct lk_onnx_pairing lk_onnx_recurrent_pairings[] = {
    {"lstm", recurrent},
    {"gru", recurrent},
    {"rnn", recurrent},
    {0},
};

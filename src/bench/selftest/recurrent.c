/* What recurrent layers must answer: the steps of each sample in double, and their gradient by
 * central differences, which are exact to more digits than a float has. */
#include "bench/selftest/known_answers.h"

#include "base/fail.h"
#include "ops/recurrent/recurrent.h"
#include <math.h>
#include <string.h>

/* Of a row of the table. */
enum { MOST_STEPS = 4, MOST_CHANNELS = 4, MOST_UNITS = 4 };

struct layer {
    int64_t steps, channels, units, columns;
    enum lk_cell cell;
    float *const *w;
};

static double logistic(double v)
{
    return 1 / (1 + exp(-v));
}

/* What h adds to sum j. */
static double from_state(const struct layer *l, const double *h, int64_t j)
{
    double sum = l->cell == LK_GRU_AFTER ? l->w[LK_CELL_RECURRENT_BIAS][j] : 0;
    for (int64_t u = 0; u < l->units; u++)
        sum += h[u] * l->w[LK_CELL_RECURRENT][u * l->columns + j];
    return sum;
}

static double from_input(const struct layer *l, const double *x, int64_t j)
{
    double sum = l->w[LK_CELL_BIAS][j];
    for (int64_t c = 0; c < l->channels; c++)
        sum += x[c] * l->w[LK_CELL_WEIGHT][c * l->columns + j];
    return sum;
}

/* Unit u of the next state; c: the cell state of lstm; reset: r h of all units. */
static double next_state(const struct layer *l, const double *x, const double *h, double *c,
                         const double *reset, int64_t u)
{
    double s[4], of_h[4];
    for (int g = 0; g < lk_cell_gates(l->cell); g++) {
        s[g] = from_input(l, x, g * l->units + u);
        of_h[g] = from_state(l, h, g * l->units + u);
    }
    if (l->cell == LK_RNN)
        return tanh(s[0] + of_h[0]);
    if (l->cell == LK_LSTM) {
        c[u] =
            logistic(s[1] + of_h[1]) * c[u] + logistic(s[0] + of_h[0]) * tanh(s[2] + of_h[2]);
        return logistic(s[3] + of_h[3]) * tanh(c[u]);
    }
    const double z = logistic(s[0] + of_h[0]), r = logistic(s[1] + of_h[1]);
    const double n = l->cell == LK_GRU_AFTER
                         ? tanh(s[2] + r * of_h[2])
                         : tanh(s[2] + from_state(l, reset, 2 * l->units + u));
    return z * h[u] + (1 - z) * n;
}

static void walk(const struct layer *l, const double *x, double *y)
{
    double h[MOST_UNITS] = {0}, c[MOST_UNITS] = {0}, reset[MOST_UNITS];
    for (int64_t t = 0; t < l->steps; t++, x += l->channels, y += l->units) {
        for (int64_t u = 0; u < l->units && l->cell == LK_GRU_BEFORE; u++)
            reset[u] = h[u] * logistic(from_input(l, x, l->units + u) +
                                       from_state(l, h, l->units + u));
        for (int64_t u = 0; u < l->units; u++)
            y[u] = next_state(l, x, h, c, reset, u);
        memcpy(h, y, sizeof *h * (size_t)l->units);
    }
}

/* The derivative of the sum of y * dy by x[i]. */
static double slope(const struct layer *l, double *x, int64_t i, const float *dy)
{
    const double step = 1e-5, kept = x[i];
    double y[MOST_STEPS * MOST_UNITS], sum = 0;
    for (int sign = -1; sign <= 1; sign += 2) {
        x[i] = kept + sign * step;
        walk(l, x, y);
        for (int64_t k = 0; k < l->steps * l->units; k++)
            sum += sign * y[k] * dy[k] / (2 * step);
    }
    x[i] = kept;
    return sum;
}

void lk_known_recurrent(const struct lk_known_answer *known, const struct lk_known_arrays *data,
                        double *y, double *dx)
{
    struct lk_recurrent_options o = {0};
    const struct lk_op *op;
    if (lk_op_find(known->op, &op) != LK_OK ||
        lk_options_parse(op->options, &o, known->options) != LK_OK)
        lk_error_clear();
    struct layer l = {known->x.dim[0], known->x.dim[1], o.units, o.units, LK_RNN, data->w};
    if (strcmp(known->op, "lstm") == 0)
        l.cell = LK_LSTM;
    if (strcmp(known->op, "gru") == 0)
        l.cell = o.reset_after ? LK_GRU_AFTER : LK_GRU_BEFORE;
    l.columns = lk_cell_gates(l.cell) * o.units;
    const int64_t count = l.steps * l.channels, answers = l.steps * l.units;
    for (int64_t n = 0; n < LK_KNOWN_BATCH; n++) {
        double x[MOST_STEPS * MOST_CHANNELS];
        for (int64_t i = 0; i < count; i++)
            x[i] = data->x[0][n * count + i];
        walk(&l, x, y + n * answers);
        for (int64_t i = 0; i < count; i++)
            dx[n * count + i] = slope(&l, x, i, data->dy + n * answers);
    }
}

/* Recurrent layers, a sample and a time step at a time; gradients of the oracle by differences.
 */
#include "ops/recurrent/recurrent.h"

#include "../driver.h"
#include "base/random.h"
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One sample on its way. */
struct walk {
    const struct lk_recurrent_options *o;
    enum lk_cell cell;
    int64_t channels, columns;
    const double *const *w;
    double *h, *c, *next, *sum, *of_h;
    const double *kept_x, *kept_h; /* factors of dropout */
};

/* Factors of a sample's channels or units. */
static void draw(const struct op_problem *p, int64_t sample, bool is_state, int64_t count,
                 double *factors)
{
    const struct lk_recurrent_options *o = p->options;
    const double rate = is_state ? o->recurrent_dropout : o->dropout;
    const struct lk_random4 key =
        lk_random(p->seed, LK_RANDOM_DROPOUT, p->stream, (uint64_t)p->step);
    for (int64_t e = 0; e < count; e++) {
        const struct lk_random4 r = lk_random(key.v[0] | (uint64_t)key.v[1] << 32,
                                              LK_RANDOM_DROPOUT, (uint32_t)(p->first + sample),
                                              (uint64_t)is_state << 32 | (uint64_t)e / 4);
        const bool dropped = p->training && lk_random_unit(r.v[e % 4]) < rate;
        factors[e] = dropped ? 0 : p->training ? 1 / (1 - rate) : 1;
    }
}

static enum lk_cell cell_of(const struct op_problem *p)
{
    const struct lk_recurrent_options *o = p->options;
    const int64_t gates = p->shapes->param[LK_CELL_WEIGHT].shape.dim[1] / o->units;
    if (gates == 3)
        return o->reset_after ? LK_GRU_AFTER : LK_GRU_BEFORE;
    return gates == 4 ? LK_LSTM : LK_RNN;
}

static double logistic(double v)
{
    return 1 / (1 + exp(-v));
}

static double act(const struct walk *k, double v)
{
    return k->o->activation == LK_CELL_RELU ? fmax(v, 0) : tanh(v);
}

static double recurrent_sum(const struct walk *k, const double *h, int64_t column)
{
    double sum = 0;
    for (int64_t i = 0; i < k->o->units; i++)
        sum += h[i] * k->kept_h[i] * k->w[LK_CELL_RECURRENT][i * k->columns + column];
    return sum;
}

/* One step of one sample: the sums of all gates, then the new state. */
static void step(struct walk *k, const double *x)
{
    const int64_t units = k->o->units;
    const bool bias = k->o->use_bias, both = bias && k->cell == LK_GRU_AFTER;
    for (int64_t j = 0; j < k->columns; j++) {
        k->of_h[j] = recurrent_sum(k, k->h, j) + (both ? k->w[LK_CELL_RECURRENT_BIAS][j] : 0);
        k->sum[j] = bias ? k->w[LK_CELL_BIAS][j] : 0;
        for (int64_t i = 0; i < k->channels; i++)
            k->sum[j] += x[i] * k->kept_x[i] * k->w[LK_CELL_WEIGHT][i * k->columns + j];
    }
    const double *s = k->sum, *r = k->of_h;
    double reset[64];
    for (int64_t u = 0; u < units && k->cell == LK_GRU_BEFORE; u++)
        reset[u] = logistic(s[units + u] + r[units + u]) * k->h[u];
    for (int64_t u = 0; u < units; u++) {
        const int64_t u1 = units + u, u2 = 2 * units + u, u3 = 3 * units + u;
        if (k->cell == LK_LSTM) {
            k->c[u] = logistic(s[u1] + r[u1]) * k->c[u] +
                      logistic(s[u] + r[u]) * act(k, s[u2] + r[u2]);
            k->next[u] = logistic(s[u3] + r[u3]) * act(k, k->c[u]);
        } else if (k->cell == LK_RNN) {
            k->next[u] = act(k, s[u] + r[u]);
        } else {
            const double z = logistic(s[u] + r[u]);
            const double n = k->cell == LK_GRU_AFTER
                                 ? act(k, s[u2] + logistic(s[u1] + r[u1]) * r[u2])
                                 : act(k, s[u2] + recurrent_sum(k, reset, u2));
            k->next[u] = z * k->h[u] + (1 - z) * n;
        }
    }
    memcpy(k->h, k->next, sizeof *k->h * (size_t)units);
}

static void walk_sample(struct walk *k, const struct op_problem *p, const double *const x[],
                        int64_t n, double *y)
{
    const struct lk_recurrent_options *o = k->o;
    const int64_t steps = p->shapes->x[0].dim[0], units = o->units;
    const int first = lk_recurrent_first_state(p->shapes);
    const int length = lk_recurrent_length(p->shapes);
    const int states = lk_cell_states(k->cell);
    const double *from = first > 0 ? x[first] + n * states * units : NULL;
    for (int64_t u = 0; u < units; u++) {
        k->h[u] = from ? from[u] : 0;
        k->c[u] = from && states > 1 ? from[units + u] : 0;
    }
    for (int64_t i = 0; i < steps; i++) {
        const int64_t t = o->go_backwards ? steps - 1 - i : i;
        if (length > 0 && (double)t >= x[length][n])
            continue;
        step(k, x[0] + (n * steps + t) * k->channels);
        if (o->return_sequences)
            memcpy(y + t * units, k->h, sizeof *y * (size_t)units);
    }
    y += o->return_sequences ? steps * units : 0;
    if (!o->return_sequences)
        memcpy(y, k->h, sizeof *y * (size_t)units);
    y += o->return_sequences ? 0 : units;
    if (o->return_state)
        memcpy(y, k->h, sizeof *y * (size_t)units);
    if (o->return_state && states > 1)
        memcpy(y + units, k->c, sizeof *y * (size_t)units);
}

static void forward(const struct op_problem *p, const double *const x[],
                    const double *const w[], double *y)
{
    const struct lk_recurrent_options *o = p->options;
    enum { MOST = 512 };
    double kept_x[MOST], kept_h[MOST], h[MOST], c[MOST], next[MOST], sum[MOST], of_h[MOST];
    struct walk k = {.o = o,
                     .cell = cell_of(p),
                     .channels = p->shapes->x[0].dim[1],
                     .columns = p->shapes->param[LK_CELL_WEIGHT].shape.dim[1],
                     .w = w,
                     .h = h,
                     .c = c,
                     .next = next,
                     .sum = sum,
                     .of_h = of_h,
                     .kept_x = kept_x,
                     .kept_h = kept_h};
    assert(k.columns <= MOST && k.channels <= MOST &&
           (k.cell != LK_GRU_BEFORE || o->units <= 64));
    for (int64_t n = 0; n < p->samples; n++) {
        draw(p, n, false, k.channels, kept_x);
        draw(p, n, true, o->units, kept_h);
        walk_sample(&k, p, x, n, y + n * lk_shape_count(&p->shapes->y));
    }
}

/* Weights that neither saturate gates nor let sums grow from step to step. */
static void arrange(const struct lk_op_shapes *shapes, int64_t samples, double *const x[],
                    double *const w[])
{
    (void)samples, (void)x;
    const double scale = 1 / sqrt((double)shapes->param[LK_CELL_RECURRENT].shape.dim[0]);
    const int64_t count = lk_shape_count(&shapes->param[LK_CELL_RECURRENT].shape);
    for (int64_t e = 0; e < count; e++)
        w[LK_CELL_RECURRENT][e] = (float)(w[LK_CELL_RECURRENT][e] * scale);
}

/* And of every four batch tiles of 16 one whose samples end early, one without any time step,
 * one of the longest and one between: products leave out what lies behind the ends. */
static void arrange_short(const struct lk_op_shapes *shapes, int64_t samples, double *const x[],
                          double *const w[])
{
    const int64_t steps = shapes->x[0].dim[0], most[] = {3, 0, steps, steps - 7};
    arrange(shapes, samples, x, w);
    for (int64_t n = 0; n < samples; n++)
        x[lk_recurrent_length(shapes)][n] = (double)(n * 5 % (most[n / 16 % 4] + 1));
}

static const struct op_oracle oracle = {forward, NULL, arrange};
static const struct op_oracle short_ones = {forward, NULL, arrange_short};

/* --- what PyTorch says, in double, of every sample ---------------------------------------- */

static double number(int64_t i)
{
    return (double)(i * 37 % 64 - 32) / 64;
}

static void arrange_recorded(const struct lk_op_shapes *shapes, int64_t samples,
                             double *const x[], double *const w[])
{
    const int64_t count = lk_shape_count(&shapes->x[0]);
    for (int64_t i = 0; i < samples * count; i++)
        x[0][i] = number(i % count);
    for (int j = 0; j < shapes->params; j++)
        for (int64_t i = 0; i < lk_shape_count(&shapes->param[j].shape); i++)
            w[j][i] = number(i + 1 + j);
}

/* torch.nn.LSTM, whose second bias is zero, and torch.nn.GRU, whose gates are in another order:
 * 2 units of 2 numbers, 3 steps; of the LSTM, h and c behind. */
static void forward_recorded(const struct op_problem *p, const double *const x[],
                             const double *const w[], double *y)
{
    static const double lstm[] = {-0.145661763246720, 0.029871713886119,  -0.205423156480288,
                                  0.046045968487578,  -0.224964501945436, 0.043835140409217,
                                  -0.224964501945436, 0.043835140409217,  -0.542430561860075,
                                  0.078608143985707},
                        gru[] = {-0.268641429216083, 0.021614332617206,  -0.380130133318850,
                                 0.085045917268034,  -0.413855029507144, 0.159129227235333};
    const int64_t count = lk_shape_count(&p->shapes->y);
    (void)x, (void)w;
    for (int64_t i = 0; i < p->samples * count; i++)
        y[i] = cell_of(p) == LK_LSTM ? lstm[i % count] : gru[i % count];
}

static const struct op_oracle recorded = {forward_recorded, NULL, arrange_recorded};

/* clang-format off */
#define SEQUENCE(t, c) OP_SHAPE(t, c)
#define PLAIN(op_, options_, t, c, ...)                                                        \
    {.op = op_, .options = options_, .x = {SEQUENCE(t, c)}, __VA_ARGS__}
#define LENGTHS(op_, options_, t, c, ...)                                                      \
    {.op = op_, .options = options_, .inputs = 2, .x = {SEQUENCE(t, c), {0}},                  \
     .classes = {0, t + 1}, __VA_ARGS__}
#define STATES(op_, options_, t, c, s, units, ...)                                             \
    {.op = op_, .options = options_, .inputs = 3,                                              \
     .x = {SEQUENCE(t, c), SEQUENCE(s, units), {0}}, .classes = {0, 0, t + 1}, __VA_ARGS__}

static const struct op_case cases[] = {
    PLAIN("lstm", "units=5", 3, 4, .samples = 19, .shards = 2, .thorough = true,
          .tolerance = 65536),
    PLAIN("lstm", "units=5 return_sequences=true", 3, 4, .samples = 21, .shards = 2),
    LENGTHS("lstm", "units=4 return_sequences=true go_backwards=true", 4, 3, .samples = 40,
            .shards = 2),
    STATES("lstm", "units=3 return_sequences=true return_state=true", 4, 2, 2, 3,
           .samples = 35, .shards = 2, .sizes = false),
    STATES("lstm", "units=3 return_state=true use_bias=false", 3, 2, 2, 3, .samples = 17),
    PLAIN("lstm", "units=17", 3, 3, .samples = 18, .only = OP_CPU | OP_GPU),
    PLAIN("lstm", "units=17 activation=relu", 3, 7, .samples = 33, .inference = true),
    PLAIN("lstm", "units=2 return_sequences=true return_state=true", 3, 2, .samples = 3,
          .inference = true, .oracle = &recorded, .tolerance = 256),
    PLAIN("gru", "units=2 return_sequences=true", 3, 2, .samples = 3, .inference = true,
          .oracle = &recorded, .tolerance = 256),
    PLAIN("gru", "units=5", 3, 4, .samples = 19, .shards = 2, .thorough = true,
          .tolerance = 65536),
    LENGTHS("gru", "units=7 return_sequences=true", 4, 3, .samples = 40, .shards = 2),
    STATES("gru", "units=3 return_sequences=true return_state=true go_backwards=true", 4, 2, 1,
           3, .samples = 35, .shards = 2),
    PLAIN("gru", "units=5 use_bias=false", 3, 4, .samples = 19),
    PLAIN("gru", "units=5 reset_after=false", 3, 4, .samples = 19, .shards = 2,
          .thorough = true, .tolerance = 65536),
    LENGTHS("gru", "units=7 reset_after=false return_sequences=true", 4, 3, .samples = 40,
            .shards = 2),
    STATES("gru", "units=3 reset_after=false return_state=true go_backwards=true", 4, 2, 1, 3,
           .samples = 35, .shards = 2),
    PLAIN("rnn", "units=6", 3, 4, .samples = 19, .shards = 2, .thorough = true,
          .tolerance = 65536),
    LENGTHS("rnn", "units=13 return_sequences=true go_backwards=true", 4, 3, .samples = 40,
            .shards = 2),
    STATES("rnn", "units=3 return_sequences=true return_state=true", 4, 2, 1, 3, .samples = 35,
           .shards = 2),
    PLAIN("rnn", "units=17 activation=relu", 3, 7, .samples = 33, .inference = true),
    PLAIN("lstm", "units=5 dropout=0.25", 3, 6, .samples = 19, .shards = 2, .thorough = true,
          .tolerance = 65536),
    PLAIN("lstm", "units=5 recurrent_dropout=0.25", 3, 4, .samples = 19, .shards = 2,
          .thorough = true, .tolerance = 65536),
    STATES("lstm", "units=6 dropout=0.5 recurrent_dropout=0.5 return_sequences=true "
           "go_backwards=true return_state=true", 4, 23, 2, 6, .samples = 35, .shards = 2),
    LENGTHS("gru", "units=7 dropout=0.2 recurrent_dropout=0.4 return_sequences=true", 4, 33,
            .samples = 40, .shards = 2),
    STATES("gru", "units=5 recurrent_dropout=0.4 go_backwards=true", 4, 2, 1, 5, .samples = 35,
           .shards = 2),
    STATES("gru", "units=7 reset_after=false dropout=0.2 recurrent_dropout=0.4 "
           "return_state=true", 4, 5, 1, 7, .samples = 35, .shards = 2),
    PLAIN("gru", "units=5 reset_after=false recurrent_dropout=0.3", 3, 4, .samples = 19,
          .shards = 2, .thorough = true, .tolerance = 65536),
    PLAIN("gru", "units=5 dropout=0.3", 3, 4, .samples = 19, .shards = 2, .thorough = true,
          .tolerance = 65536),
    LENGTHS("rnn", "units=13 dropout=0.1 recurrent_dropout=0.1 return_sequences=true", 4, 3,
            .samples = 40, .shards = 2),
    PLAIN("rnn", "units=6 dropout=0.5 recurrent_dropout=0.5", 3, 4, .samples = 19,
          .inference = true),
    LENGTHS("lstm", "units=5 return_sequences=true", 20, 4, .samples = 64, .shards = 2,
            .oracle = &short_ones),
    LENGTHS("lstm", "units=3 go_backwards=true dropout=0.2", 20, 2, .samples = 60,
            .oracle = &short_ones),
    LENGTHS("gru", "units=4 return_sequences=true", 20, 3, .samples = 64, .shards = 4,
            .oracle = &short_ones),
    LENGTHS("gru", "units=3 reset_after=false", 20, 3, .samples = 60, .oracle = &short_ones),
    LENGTHS("rnn", "units=3 recurrent_dropout=0.3", 20, 3, .samples = 50, .shards = 2,
            .oracle = &short_ones),
};

static const struct op_refusal refusals[] = {
    {.op = "lstm", .options = "units=4", .x = {OP_SHAPE(4)}, .status = LK_E_SHAPE,
     .said = "takes a sequence [t, c], not [4]"},
    {.op = "gru", .options = "units=4", .x = {SEQUENCE(4, 2)}, .labels = {true},
     .status = LK_E_SHAPE, .said = "not labels"},
    {.op = "lstm", .options = "units=4", .inputs = 2, .x = {SEQUENCE(4, 2), SEQUENCE(1, 4)},
     .status = LK_E_SHAPE,
     .said = "initial states [2, 4] expected as second input, found [1, 4]"},
    {.op = "rnn", .options = "units=4", .inputs = 3,
     .x = {SEQUENCE(4, 2), SEQUENCE(1, 4), SEQUENCE(1, 4)}, .status = LK_E_SHAPE,
     .said = "the third input is a length"},
    {.op = "rnn", .options = "units=0", .x = {SEQUENCE(4, 2)}, .status = LK_E_ARGUMENT,
     .said = "units"},
    {.op = "lstm", .options = "units=4 dropout=1", .x = {SEQUENCE(4, 2)},
     .status = LK_E_ARGUMENT, .said = "not in 0..0.999"},
    {.op = "gru", .options = "units=4 recurrent_dropout=-0.1", .x = {SEQUENCE(4, 2)},
     .status = LK_E_ARGUMENT, .said = "not in 0..0.999"},
    {.op = "rnn", .options = "", .x = {SEQUENCE(4, 2)}, .status = LK_E_ARGUMENT,
     .said = "'units' is missing"},
};
/* clang-format on */

int main(void)
{
    const struct op_suite suite = OP_SUITE(&oracle, cases, refusals);
    return op_test(&suite);
}

/* The table of known answers: a row for each kind of operation, and for each row of the tables
 * of functions and losses. */
#include "bench/selftest/known_answers.h"

#include "base/fail.h"
#include "ops/eltwise.h"
#include "ops/eltwise_table.h"
#include "ops/loss_table.h"
#include "ops/oracle.h"
#include <math.h>

/* --- rows of the tables of functions and losses ----------------------------------------- */

/* Reads the options of the row. They are right, or the operation would have refused them. */
static void read_options(const struct lk_known_answer *known, void *options)
{
    const struct lk_op *op;
    if (lk_op_find(known->op, &op) != LK_OK ||
        lk_options_parse(op->options, options, known->options) != LK_OK)
        lk_error_clear();
}

static void expect_function(const struct lk_known_answer *known,
                            const struct lk_known_arrays *data, double *y, double *dx)
{
    const struct lk_function_oracle *f = lk_function_oracle_find(known->op);
    const int64_t count = LK_KNOWN_BATCH * lk_shape_count(&known->x);
    struct lk_eltwise_options o = {0};
    read_options(known, &o);
    for (int64_t i = 0; i < count; i++) {
        y[i] = f->value(data->x[0][i], o.alpha, o.beta);
        dx[i] = data->dy[i] * f->slope(data->x[0][i], o.alpha, o.beta);
    }
}

static void expect_loss(const struct lk_known_answer *known, const struct lk_known_arrays *data,
                        double *y, double *dx)
{
    const struct lk_loss_oracle *loss =
        lk_loss_oracle_find(known->oracle ? known->oracle : known->op);
    const int64_t count = lk_shape_count(&known->x);
    const double delta = 1; /* the standard delta */
    for (int64_t n = 0; n < LK_KNOWN_BATCH; n++) {
        y[2 * n] = y[2 * n + 1] = 0;
        for (int64_t i = n * count; i < (n + 1) * count; i++) {
            const double p = data->x[0][i];
            const double t = known->labels ? data->labels[i] : data->x[1][i];
            y[2 * n] += loss->value(p, t, delta) / (double)count;
            y[2 * n + 1] += loss->right(p, t) / (double)count;
            dx[i] = loss->dp(p, t, delta) / (double)count;
        }
    }
}

/* Softmax of one sample; returns log(sum(exp(x))). */
static double softmax(const float *x, int64_t classes, double *y)
{
    double sum = 0;
    for (int64_t k = 0; k < classes; k++)
        sum += exp(x[k]);
    for (int64_t k = 0; k < classes; k++)
        y[k] = exp(x[k]) / sum;
    return log(sum);
}

static void expect_softmax(const struct lk_known_answer *known,
                           const struct lk_known_arrays *data, double *y, double *dx)
{
    const int64_t classes = known->x.dim[0];
    for (int64_t n = 0; n < LK_KNOWN_BATCH; n++) {
        const int64_t at = n * classes;
        double sum = 0;
        softmax(data->x[0] + at, classes, y + at);
        for (int64_t k = at; k < at + classes; k++)
            sum += data->dy[k] * y[k];
        for (int64_t k = at; k < at + classes; k++)
            dx[k] = y[k] * (data->dy[k] - sum);
    }
}

/* Attention of one head over the queries, keys and values of a sequence [t, 3 c]. */
static void expect_attention(const struct lk_known_answer *known,
                             const struct lk_known_arrays *data, double *y, double *dx)
{
    const int64_t steps = known->x.dim[0], row = known->x.dim[1], c = row / 3;
    for (int64_t n = 0; n < LK_KNOWN_BATCH * steps; n++) {
        const int64_t first = n / steps * steps;
        const float *q = data->x[0] + n * row, *x = data->x[0] + first * row;
        double sum = 0, mean = 0;
        for (int64_t d = 0; d < c; d++)
            y[n * c + d] = 0;
        for (int pass = 0; pass < 3; pass++)
            for (int64_t j = 0; j < steps; j++) {
                double score = 0, dp = 0;
                for (int64_t d = 0; d < c; d++) {
                    score += q[d] * x[j * row + c + d] / sqrt((double)c);
                    dp += data->dy[n * c + d] * x[j * row + 2 * c + d];
                }
                const double p = exp(score) / (pass > 0 ? sum : 1);
                sum += pass == 0 ? p : 0;
                mean += pass == 1 ? p * dp : 0;
                for (int64_t d = 0; pass == 1 && d < c; d++)
                    y[n * c + d] += p * x[j * row + 2 * c + d];
                for (int64_t d = 0; pass == 2 && d < c; d++) {
                    const double ds = p * (dp - mean) / sqrt((double)c);
                    dx[n * row + d] += ds * x[j * row + c + d];
                    dx[(first + j) * row + c + d] += ds * q[d];
                    dx[(first + j) * row + 2 * c + d] += p * data->dy[n * c + d];
                }
            }
    }
}

/* A learned row is added to each time step. */
static void expect_position(const struct lk_known_answer *known,
                            const struct lk_known_arrays *data, double *y, double *dx)
{
    const int64_t row = lk_shape_count(&known->x);
    for (int64_t i = 0; i < LK_KNOWN_BATCH * row; i++) {
        y[i] = data->x[0][i] + data->w[0][i % row];
        dx[i] = data->dy[i];
    }
}

/* Pairs [t, 2] are turned by t. */
static void expect_rotary(const struct lk_known_answer *known,
                          const struct lk_known_arrays *data, double *y, double *dx)
{
    for (int64_t i = 0; i < LK_KNOWN_BATCH * known->x.dim[0]; i++) {
        const double angle = (double)(i % known->x.dim[0]);
        const float *x = data->x[0] + 2 * i, *dy = data->dy + 2 * i;
        y[2 * i] = x[0] * cos(angle) - x[1] * sin(angle);
        y[2 * i + 1] = x[1] * cos(angle) + x[0] * sin(angle);
        dx[2 * i] = dy[0] * cos(angle) + dy[1] * sin(angle);
        dx[2 * i + 1] = dy[1] * cos(angle) - dy[0] * sin(angle);
    }
}

/* Batch normalization of channel c in one shard: gamma = w[0], beta = w[1], the standard
 * epsilon. */
static void expect_channel(const struct lk_known_answer *known,
                           const struct lk_known_arrays *data, int64_t c, int64_t first,
                           double *y, double *dx)
{
    const int64_t plane = known->x.dim[1] * known->x.dim[2], step = known->x.dim[0] * plane;
    const int64_t n = LK_KNOWN_BATCH / LK_KNOWN_SHARDS * plane;
    double mean = 0, variance = 0, sum = 0, product = 0;
#define EACH(i, k)                                                                             \
    for (int64_t i = 0, k; k = (first + i / plane) * step + c * plane + i % plane, i < n; i++)
    EACH(i, k)
    mean += data->x[0][k] / (double)n;
    EACH(i, k)
    variance += (data->x[0][k] - mean) * (data->x[0][k] - mean) / (double)n;
    const double root = 1 / sqrt(variance + 0.001);
    EACH(i, k)
    {
        sum += data->dy[k];
        product += data->dy[k] * (data->x[0][k] - mean) * root;
    }
    EACH(i, k)
    {
        const double u = (data->x[0][k] - mean) * root;
        y[k] = data->w[0][c] * u + data->w[1][c];
        dx[k] = data->w[0][c] * root * (data->dy[k] - (sum + u * product) / (double)n);
    }
#undef EACH
}

static void expect_batch_norm(const struct lk_known_answer *known,
                              const struct lk_known_arrays *data, double *y, double *dx)
{
    for (int64_t c = 0; c < known->x.dim[0]; c++)
        for (int s = 0; s < LK_KNOWN_SHARDS; s++)
            expect_channel(known, data, c, s * (LK_KNOWN_BATCH / LK_KNOWN_SHARDS), y, dx);
}

/* Normalization of `count` numbers of a sample from number `first` on, of which `each` have a
 * gamma and beta, from number c on. */
static void expect_set(const struct lk_known_arrays *data, int64_t first, int64_t count,
                       int64_t each, int64_t c, double *y, double *dx)
{
    const float *x = data->x[0] + first, *dy = data->dy + first;
    const float *gamma = data->w[0] + c, *beta = data->w[1] + c;
    double mean = 0, variance = 0, plain = 0, product = 0;
    for (int64_t i = 0; i < count; i++)
        mean += x[i] / (double)count;
    for (int64_t i = 0; i < count; i++)
        variance += (x[i] - mean) * (x[i] - mean) / (double)count;
    const double root = 1 / sqrt(variance + 0.001);
    for (int64_t i = 0; i < count; i++) {
        const double d = (double)dy[i] * gamma[i / each];
        plain += d / (double)count;
        product += d * (x[i] - mean) * root / (double)count;
    }
    for (int64_t i = 0; i < count; i++) {
        const double u = (x[i] - mean) * root;
        y[first + i] = gamma[i / each] * u + beta[i / each];
        dx[first + i] = root * ((double)dy[i] * gamma[i / each] - plain - u * product);
    }
}

static void expect_layer_norm(const struct lk_known_answer *known,
                              const struct lk_known_arrays *data, double *y, double *dx)
{
    const int64_t count = lk_shape_count(&known->x);
    for (int64_t n = 0; n < LK_KNOWN_BATCH; n++)
        expect_set(data, n * count, count, 1, 0, y, dx);
}

/* Two groups. */
static void expect_group_norm(const struct lk_known_answer *known,
                              const struct lk_known_arrays *data, double *y, double *dx)
{
    const int64_t count = lk_shape_count(&known->x) / 2, channels = known->x.dim[0];
    for (int64_t n = 0; n < 2 * LK_KNOWN_BATCH; n++)
        expect_set(data, n * count, count, 2 * count / channels, n % 2 * channels / 2, y, dx);
}

/* The standard options but for alpha=1, on vectors. */
static void expect_response_norm(const struct lk_known_answer *known,
                                 const struct lk_known_arrays *data, double *y, double *dx)
{
    const int64_t channels = known->x.dim[0];
    for (int64_t n = 0; n < LK_KNOWN_BATCH; n++) {
        const float *x = data->x[0] + n * channels, *dy = data->dy + n * channels;
        for (int64_t c = 0; c < channels; c++)
            dx[n * channels + c] = 0;
        for (int64_t c = 0; c < channels; c++) {
            const int64_t first = c < 2 ? 0 : c - 2,
                          last = c + 2 < channels ? c + 2 : channels - 1;
            double sum = 0;
            for (int64_t j = first; j <= last; j++)
                sum += (double)x[j] * x[j] / 5;
            const double power = pow(1 + sum, -0.75);
            y[n * channels + c] = x[c] * power;
            dx[n * channels + c] += dy[c] * power;
            for (int64_t j = first; j <= last; j++)
                dx[n * channels + j] -=
                    2.0 / 5 * 0.75 * x[j] * dy[c] * x[c] * power / (1 + sum);
        }
    }
}

static void expect_prelu(const struct lk_known_answer *known,
                         const struct lk_known_arrays *data, double *y, double *dx)
{
    const int64_t count = lk_shape_count(&known->x), pixels = count / known->x.dim[0];
    for (int64_t i = 0; i < LK_KNOWN_BATCH * count; i++) {
        const double slope = data->x[0][i] > 0 ? 1 : data->w[0][i % count / pixels];
        y[i] = slope * data->x[0][i];
        dx[i] = slope * data->dy[i];
    }
}

static bool is_correct(const float *x, int64_t classes, int32_t label)
{
    int64_t largest = 0;
    for (int64_t k = 1; k < classes; k++)
        if (x[k] > x[largest])
            largest = k;
    return largest == label;
}

/* Of one time step: returns loss and correctness, writes the gradient to dx. */
typedef void step_loss(const float *x, int64_t classes, int32_t label, double y[2], double *dx);

static void logit_loss(const float *x, int64_t classes, int32_t label, double y[2], double *dx)
{
    y[0] = softmax(x, classes, dx) - x[label];
    y[1] = is_correct(x, classes, label);
    dx[label] -= 1;
}

static void probability_loss(const float *x, int64_t classes, int32_t label, double y[2],
                             double *dx)
{
    y[0] = -log(x[label]);
    y[1] = is_correct(x, classes, label);
    for (int64_t k = 0; k < classes; k++)
        dx[k] = k == label ? -1 / (double)x[label] : 0;
}

/* The mean over those time steps of each sample whose label is a class; a vector is one time
 * step. */
static void expect_mean(const struct lk_known_answer *known, const struct lk_known_arrays *data,
                        double *y, double *dx, step_loss *loss)
{
    const int64_t classes = known->x.dim[known->x.rank - 1];
    const int64_t steps = lk_shape_count(&known->x) / classes;
    for (int64_t n = 0; n < LK_KNOWN_BATCH; n++) {
        double living = 0, *sum = &y[2 * n];
        sum[0] = sum[1] = 0;
        for (int64_t t = n * steps; t < (n + 1) * steps; t++)
            living += data->labels[t] >= 0;
        for (int64_t t = n * steps; t < (n + 1) * steps; t++) {
            double step[2] = {0}, *to = dx + t * classes;
            if (data->labels[t] >= 0)
                loss(data->x[0] + t * classes, classes, data->labels[t], step, to);
            for (int64_t k = 0; k < classes; k++)
                to[k] = data->labels[t] >= 0 ? to[k] / living : 0;
            sum[0] += step[0] / fmax(living, 1);
            sum[1] += step[1] / fmax(living, 1);
        }
    }
}

static void expect_logit_loss(const struct lk_known_answer *known,
                              const struct lk_known_arrays *data, double *y, double *dx)
{
    expect_mean(known, data, y, dx, logit_loss);
}

static void expect_probability_loss(const struct lk_known_answer *known,
                                    const struct lk_known_arrays *data, double *y, double *dx)
{
    expect_mean(known, data, y, dx, probability_loss);
}

/* Two losses, of which the second counts half. */
static void expect_sum_of_losses(const struct lk_known_answer *known,
                                 const struct lk_known_arrays *data, double *y, double *dx)
{
    (void)known;
    for (int64_t n = 0; n < LK_KNOWN_BATCH; n++) {
        y[2 * n] = data->x[0][2 * n] + 0.5 * data->x[1][2 * n];
        y[2 * n + 1] = data->x[0][2 * n + 1];
        dx[2 * n] = 1;
        dx[2 * n + 1] = 0;
    }
}

/* --- the table ------------------------------------------------------------------------- */

/* clang-format off */
#define IMAGE(c, h, w) {3, {c, h, w}}
#define ROW(k) {1, {k}}
#define EXACT(op_, options_, ...)                                                              \
    {.op = op_, .options = options_, .x = __VA_ARGS__}
#define STEPS(op_, options_, t, c, ...)                                                        \
    {.op = op_, .options = options_, .x = {2, {t, c}}, .length = true, __VA_ARGS__}
#define SUMS(y_, dx_, dw_) .y = y_, .dx = dx_, .dw = dw_
#define NEAR(op_, options_, ...)                                                               \
    {.op = op_, .options = options_, .x = __VA_ARGS__, .numbers = LK_KNOWN_QUARTERS}
#define RECURRENT(op_, units_)                                                                 \
    {.op = op_, .options = "return_sequences=true units=" units_, .x = {2, {3, 2}},            \
     .numbers = LK_KNOWN_FRACTIONS, .expect = lk_known_recurrent, .places = 256}
#define LOGITS(op_, options_, ...)                                                             \
    NEAR(op_, options_, __VA_ARGS__, .labels = true, .expect = expect_logit_loss)
#define PROBABILITIES(op_, ...)                                                                \
    {.op = op_, .options = "", .x = __VA_ARGS__, .labels = true,                               \
     .numbers = LK_KNOWN_FRACTIONS, .expect = expect_probability_loss}

/* A row of the table of functions, and one of that of losses, which may take labels, too. */
enum { ABOUT, EXACTLY };
#define FUNCTION(op_, reads_, options_, exact_, check_, ...)                                   \
    NEAR(#op_, check_, ROW(33), .expect = expect_function, .is_exact = exact_ == EXACTLY),
#define NUMBERS_OF(low, high) (low) > 0 && (high) < 1 ? LK_KNOWN_FRACTIONS : LK_KNOWN_QUARTERS
#define AGAINST(op_, low, high, ...)                                                           \
    {.op = op_, .options = "", .numbers = NUMBERS_OF(low, high), .expect = expect_loss,        \
     .x = __VA_ARGS__}
#define LABELLED_NUMBERS(op_, low, high)
#define LABELLED_YES_OR_NO(op_, low, high) AGAINST(op_, low, high, ROW(1), .labels = true),
#define LOSS(op_, options_, answers_, target_, low, high, ...)                                 \
    AGAINST(#op_, low, high, ROW(10), .inputs = 2),                                            \
    LABELLED_##answers_(#op_, low, high)

/* tests/bench/known_answers.c computes the hashes by plain loops, and prints those that
 * differ. */
const struct lk_known_answer lk_known_answers[] = {
    EXACT("conv2d", "filters=5 kernel=3", IMAGE(3, 9, 8),
          SUMS(0xb2fd9bbc2df55365, 0x2756dfc4a021e625, 0xb2f8958d15b08e95)),
    EXACT("conv2d", "filters=7 kernel=3 padding=same activation=relu", IMAGE(4, 6, 7),
          SUMS(0x508dad7e2345c9e5, 0x93ee557fb31a1025, 0xb1424e9623988bb7)),
    EXACT("conv2d", "filters=32 kernel=1 bias=false", IMAGE(17, 5, 5),
          SUMS(0x9fd980437f696725, 0xc776f731652f8945, 0x948a67c2c7319da5)),
    EXACT("conv2d", "filters=6 kernel=5,3 stride=2,1 padding=2,1", IMAGE(2, 11, 10),
          SUMS(0x949d5e7b98116825, 0x820b75436a7202a5, 0xb658dce91fd10b4d)),
    EXACT("conv2d", "filters=8 kernel=3 stride=2 padding=1 groups=2", IMAGE(4, 8, 9),
          SUMS(0xcb9a40d00f759725, 0xb091885c43c52725, 0x88cc564bffc72d05)),
    EXACT("conv2d", "filters=33 kernel=3 activation=relu pool=true", IMAGE(3, 9, 9),
          SUMS(0xc338682e31ebf945, 0x6ea12e06c1919885, 0xd6b3750faeada7d5)),
    EXACT("conv2d_transpose", "filters=5 kernel=3 stride=2 padding=1", IMAGE(4, 5, 6),
          SUMS(0x40cd9c81af75ec05, 0x0a479ffc74303a25, 0x49ede0d149367eff)),
    EXACT("conv2d_transpose", "filters=6 kernel=4,3 stride=2,1 groups=2 bias=false",
          IMAGE(8, 3, 4), SUMS(0x88ddbce774fd2725, 0xb4c8fd95dd83cf25, 0xd072da8737f009a5)),
    EXACT("dense", "units=10", ROW(64),
          SUMS(0xfb17124fa01f4265, 0x06a9ef320a7deb25, 0x91174242dadef18d)),
    EXACT("dense", "units=70 activation=relu", ROW(130),
          SUMS(0x4c759bddc7568de5, 0x718d36039ee31965, 0x4c1c13fd97f6062d)),
    EXACT("dense", "units=6 bias=false", {2, {5, 9}},
          SUMS(0x3c50e289214970e5, 0x7b0a70609a0ac5c5, 0x48e7029b52faf6fd)),
    EXACT("dense_transpose", "units=70", ROW(130),
          SUMS(0xcd56909fdcba8de5, 0x740b3b550fe71965, 0x0f09d868832e8a95)),
    EXACT("dense_transpose", "units=6", {2, {5, 9}},
          SUMS(0x6b49f9d742d570e5, 0xe298f6cd34bac5c5, 0xf8c2a1ffe95cf6fd)),
    EXACT("max_pool", "size=2", IMAGE(3, 8, 7),
          SUMS(0x8c168c040594a3a5, 0x71ee092f0e4e1025, 0)),
    EXACT("max_pool", "size=3 stride=2 padding=same", IMAGE(2, 9, 8),
          SUMS(0xfef00f0c9bde8025, 0xd4e06f61dd6fa525, 0)),
    EXACT("average_pool", "size=2", IMAGE(3, 8, 6),
          SUMS(0xaffa0d8ff8a4a3a5, 0x5f2808aad46fa525, 0)),
    EXACT("global_average_pool", "", IMAGE(5, 4, 4),
          SUMS(0xff7341fa1975c8c5, 0xb73c0e246c6fdd25, 0)),
    EXACT("global_max_pool", "", IMAGE(5, 4, 4),
          SUMS(0x424c535aa9a5c8c5, 0xea825769f6afdd25, 0)),
    EXACT("add", "", ROW(33),
          SUMS(0x236390948e4cc045, 0x2104798fae3c5685, 0), .inputs = 3),
    EXACT("add", "", IMAGE(3, 4, 5),
          SUMS(0xeb4953a7487c8ea5, 0xddb8bb669ed92605, 0), .inputs = 2, .second = ROW(3)),
    EXACT("multiply", "", ROW(33),
          SUMS(0x9b207ea3770cc045, 0xe5c6d7eec6855165, 0), .inputs = 2),
    EXACT("multiply", "", IMAGE(3, 4, 5),
          SUMS(0xecd93001246c8ea5, 0x1c8510c6eead2605, 0), .inputs = 2,
          .second = IMAGE(3, 1, 1)),
    EXACT("concat", "", IMAGE(3, 4, 5),
          SUMS(0x60a7e913d4d86ba5, 0xdaef7fff78986ba5, 0), .inputs = 2,
          .second = IMAGE(2, 4, 5)),
    EXACT("slice", "c=[1,3] h=[2,0] w=[1,-1]", IMAGE(4, 5, 6),
          SUMS(0xbabc05d649a28e25, 0x6213400b98563a25, 0)),
    EXACT("crop", "cropping=[1,0,2,1]", IMAGE(3, 4, 6),
          SUMS(0x28b9e76903093585, 0xc0e4c75120f26425, 0)),
    EXACT("pad", "padding=[1,2,0,3] channels=[1,0] value=2", IMAGE(2, 3, 4),
          SUMS(0x6297e85a43f61ce5, 0x49d70fb34aa28e25, 0)),
    EXACT("pad", "padding=[1,2,2,1] mode=reflect", IMAGE(2, 3, 4),
          SUMS(0x784bb9f25a2979a5, 0xfac09c811ee28e25, 0)),
    EXACT("upsample", "size=2,3", IMAGE(3, 3, 4),
          SUMS(0x911b30134559e625, 0x09e14a1fa784a3a5, 0)),
    EXACT("upsample", "interpolation=bilinear", IMAGE(3, 3, 4),
          SUMS(0x466062ca6b03a525, 0xabe1ede17b18a3a5, 0)),
    EXACT("dropout", "rate=0.5", ROW(33),
          SUMS(0x978cb2a993dcc045, 0x814d44936bdcc045, 0)),
    EXACT("embedding", "vocabulary=5 units=18", ROW(6),
          SUMS(0x609446feab9b64a5, 0, 0x71abd1d4494997cd), .tokens = true, .length = true),
    STEPS("conv1d", "filters=5 kernel=3 padding=same activation=relu", 6, 4,
          SUMS(0x8e4fed362bbd70e5, 0x2f1c370cee028e25, 0x42d3f199a420d6df)),
    STEPS("max_pool1d", "size=1", 5, 3,
          SUMS(0xb8cc723995c91005, 0xf44eb05e9cc91005, 0)),
    STEPS("average_pool1d", "", 7, 3,
          SUMS(0x86f8ccb57e247545, 0x5bc2b645427bfac5, 0)),
    STEPS("global_max_pool1d", "", 5, 3,
          SUMS(0xbcb6f16aefc22a85, 0xf9bcc9252ec91005, 0)),
    STEPS("global_average_pool1d", "", 2, 5,
          SUMS(0x52b74d67fc85c8c5, 0x7c59ed3998f34265, 0)),
    STEPS("last_step", "", 5, 3,
          SUMS(0x1a7b081fdd822a85, 0xd36a793b2b491005, 0)),
    STEPS("reverse_steps", "", 5, 3,
          SUMS(0x856c9165b9c91005, 0x4d9ac087bf491005, 0)),
    LK_FUNCTIONS(FUNCTION)
    LK_LOSSES(LOSS)
    NEAR("sum_losses", "weights=[1,0.5,0,0,0,0,0,0]", ROW(2), .inputs = 2,
         .expect = expect_sum_of_losses, .is_exact = true),
    NEAR("softmax", "", ROW(10), .expect = expect_softmax),
    NEAR("softmax", "", ROW(75), .expect = expect_softmax),
    {.op = "attention", .options = "", .x = {2, {5, 12}}, .numbers = LK_KNOWN_FRACTIONS,
     .expect = expect_attention},
    NEAR("constant", "count=17", ROW(17), .expect = lk_known_constant, .is_exact = true),
    NEAR("math", "function=product", ROW(33), .inputs = 2, .expect = lk_known_math,
         .is_exact = true),
    NEAR("pick", "count=6 fill=2", ROW(6), .expect = lk_known_pick, .is_exact = true),
    NEAR("reduce", "function=sum length=3 inner=2", ROW(12), .expect = lk_known_reduce,
         .is_exact = true),
    NEAR("matmul", "rows=2 inner=3 columns=4", ROW(6), .inputs = 2, .second = ROW(12),
         .expect = lk_known_matmul, .is_exact = true),
    NEAR("position", "kind=learned", {2, {5, 6}}, .expect = expect_position, .is_exact = true),
    NEAR("rotary", "", {2, {6, 2}}, .expect = expect_rotary),
    NEAR("batch_norm", "", IMAGE(3, 4, 5), .expect = expect_batch_norm),
    NEAR("layer_norm", "", ROW(33), .expect = expect_layer_norm),
    NEAR("group_norm", "groups=2", IMAGE(4, 3, 5), .expect = expect_group_norm),
    NEAR("local_response_norm", "alpha=1", ROW(17), .expect = expect_response_norm),
    NEAR("prelu", "", IMAGE(4, 3, 5), .expect = expect_prelu, .is_exact = true),
    RECURRENT("lstm", "3"),
    RECURRENT("gru", "4"),
    RECURRENT("gru", "3 reset_after=false"),
    RECURRENT("rnn", "4"),
    LOGITS("softmax", "loss=cross_entropy", ROW(10)),
    LOGITS("softmax_cross_entropy", "", ROW(10)),
    LOGITS("softmax_cross_entropy", "", ROW(75)),
    LOGITS("softmax_cross_entropy", "", {2, {4, 6}}),
    PROBABILITIES("cross_entropy", ROW(10)),
    PROBABILITIES("cross_entropy", {2, {3, 5}}),
    NEAR("sigmoid", "loss=binary_cross_entropy", ROW(10), .inputs = 2, .expect = expect_loss,
         .oracle = "sigmoid_binary_cross_entropy"),
    {0},
};

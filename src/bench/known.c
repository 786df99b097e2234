#include "bench/known.h"

#include <math.h>

/* --- functions that are not exact ------------------------------------------------------ */

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double sigmoid_slope(double x)
{
    return sigmoid(x) * (1 - sigmoid(x));
}

static double tanh_slope(double x)
{
    return 1 - tanh(x) * tanh(x);
}

static double elu(double x)
{
    return x < 0 ? expm1(x) : x;
}

static double elu_slope(double x)
{
    return x < 0 ? exp(x) : 1;
}

static double softsign(double x)
{
    return x / (1 + fabs(x));
}

static double softsign_slope(double x)
{
    return 1 / ((1 + fabs(x)) * (1 + fabs(x)));
}

static double softplus(double x)
{
    return log1p(exp(x));
}

static double gelu(double x)
{
    return x * 0.5 * (1 + erf(x / sqrt(2.0)));
}

static double gelu_slope(double x)
{
    return 0.5 * (1 + erf(x / sqrt(2.0))) + x * exp(-x * x / 2) * 0.39894228040143268;
}

static double silu(double x)
{
    return x * sigmoid(x);
}

static double silu_slope(double x)
{
    return sigmoid(x) + x * sigmoid_slope(x);
}

static double hard_swish(double x)
{
    return x < -3 ? 0 : x > 3 ? x : x * (x + 3) / 6;
}

static double hard_swish_slope(double x)
{
    return x < -3 ? 0 : x > 3 ? 1 : (2 * x + 3) / 6;
}

static void expect_function(const struct lk_known *known, const struct lk_known_data *data,
                            double *y, double *dx)
{
    const int64_t count = LK_KNOWN_BATCH * lk_shape_count(&known->x);
    for (int64_t i = 0; i < count; i++) {
        y[i] = known->f(data->x[0][i]);
        dx[i] = data->dy[i] * known->df(data->x[0][i]);
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

static void expect_softmax(const struct lk_known *known, const struct lk_known_data *data,
                           double *y, double *dx)
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

/* One channel c of one shard: gamma = w[0], beta = w[1], the standard epsilon. */
static void expect_channel(const struct lk_known *known, const struct lk_known_data *data,
                           int64_t c, int64_t first, double *y, double *dx)
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

static void expect_batch_norm(const struct lk_known *known, const struct lk_known_data *data,
                              double *y, double *dx)
{
    for (int64_t c = 0; c < known->x.dim[0]; c++)
        for (int s = 0; s < LK_KNOWN_SHARDS; s++)
            expect_channel(known, data, c, s * (LK_KNOWN_BATCH / LK_KNOWN_SHARDS), y, dx);
}

static bool is_correct(const float *x, int64_t classes, int32_t label)
{
    int64_t largest = 0;
    for (int64_t k = 1; k < classes; k++)
        if (x[k] > x[largest])
            largest = k;
    return largest == label;
}

static void expect_logit_loss(const struct lk_known *known, const struct lk_known_data *data,
                              double *y, double *dx)
{
    const int64_t classes = known->x.dim[0];
    for (int64_t n = 0; n < LK_KNOWN_BATCH; n++) {
        const float *x = data->x[0] + n * classes;
        const int32_t label = data->labels[n];
        y[2 * n] = softmax(x, classes, dx + n * classes) - x[label];
        y[2 * n + 1] = is_correct(x, classes, label);
        dx[n * classes + label] -= 1;
    }
}

static void expect_probability_loss(const struct lk_known *known,
                                    const struct lk_known_data *data, double *y, double *dx)
{
    const int64_t classes = known->x.dim[0];
    for (int64_t n = 0; n < LK_KNOWN_BATCH; n++) {
        const float *x = data->x[0] + n * classes;
        const int32_t label = data->labels[n];
        y[2 * n] = -log(x[label]);
        y[2 * n + 1] = is_correct(x, classes, label);
        for (int64_t k = 0; k < classes; k++)
            dx[n * classes + k] = k == label ? -1 / (double)x[label] : 0;
    }
}

/* --- the table ------------------------------------------------------------------------- */

/* clang-format off */
#define IMAGE(c, h, w) {3, {c, h, w}}
#define ROW(k) {1, {k}}
#define EXACT(op_, options_, ...)                                                              \
    {.op = op_, .options = options_, .x = __VA_ARGS__}
#define SUMS(y_, dx_, dw_) .y = y_, .dx = dx_, .dw = dw_
#define NEAR(op_, options_, ...)                                                               \
    {.op = op_, .options = options_, .x = __VA_ARGS__, .numbers = LK_KNOWN_QUARTERS}
#define FUNCTION(op_, f_, df_)                                                                 \
    NEAR(op_, "", ROW(33), .expect = expect_function, .f = f_, .df = df_)
#define LOGITS(op_, options_)                                                                  \
    NEAR(op_, options_, ROW(10), .labels = true, .expect = expect_logit_loss)

/* Sums come from the plain loops of tests/bench/known.c, which prints those it misses. */
const struct lk_known lk_known_answers[] = {
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
    EXACT("dense", "units=10", ROW(64),
          SUMS(0xfb17124fa01f4265, 0x06a9ef320a7deb25, 0x91174242dadef18d)),
    EXACT("dense", "units=70 activation=relu", ROW(130),
          SUMS(0x4c759bddc7568de5, 0x718d36039ee31965, 0x4c1c13fd97f6062d)),
    EXACT("dense", "units=6 bias=false", {2, {5, 9}},
          SUMS(0x3c50e289214970e5, 0x7b0a70609a0ac5c5, 0x48e7029b52faf6fd)),
    EXACT("max_pool", "size=2", IMAGE(3, 8, 7),
          SUMS(0x8c168c040594a3a5, 0x71ee092f0e4e1025, 0)),
    EXACT("max_pool", "size=3 stride=2 padding=same", IMAGE(2, 9, 8),
          SUMS(0xfef00f0c9bde8025, 0xd4e06f61dd6fa525, 0)),
    EXACT("average_pool", "size=2", IMAGE(3, 8, 6),
          SUMS(0xaffa0d8ff8a4a3a5, 0x5f2808aad46fa525, 0)),
    EXACT("global_average_pool", "", IMAGE(5, 4, 4),
          SUMS(0xff7341fa1975c8c5, 0xb73c0e246c6fdd25, 0)),
    EXACT("relu", "", ROW(33),
          SUMS(0xd626cd9ef89cc045, 0xc518243f9a5cc045, 0)),
    EXACT("relu6", "", ROW(33),
          SUMS(0x0913306f6dacc045, 0x4013055fab1cc045, 0), .numbers = LK_KNOWN_QUARTERS),
    EXACT("leaky_relu", "alpha=0.5", ROW(33),
          SUMS(0x591a30249a9cc045, 0x50bc55f6f69cc045, 0)),
    EXACT("hard_sigmoid", "alpha=0.25", ROW(33),
          SUMS(0x96c1fa1a878cc045, 0x8d718ba0b25cc045, 0), .numbers = LK_KNOWN_QUARTERS),
    EXACT("abs", "", ROW(33),
          SUMS(0x9308ac81169cc045, 0x7f65084fe11cc045, 0)),
    EXACT("square", "", ROW(33),
          SUMS(0xbad093ba93bcc045, 0x069265b395ccc045, 0)),
    EXACT("add", "", ROW(33),
          SUMS(0x236390948e4cc045, 0x2104798fae3c5685, 0), .inputs = 3),
    EXACT("multiply", "", ROW(33),
          SUMS(0x9b207ea3770cc045, 0xe5c6d7eec6855165, 0), .inputs = 2),
    EXACT("dropout", "rate=0.5", ROW(33),
          SUMS(0x978cb2a993dcc045, 0x814d44936bdcc045, 0)),
    FUNCTION("elu", elu, elu_slope),
    FUNCTION("sigmoid", sigmoid, sigmoid_slope),
    FUNCTION("tanh", tanh, tanh_slope),
    FUNCTION("softsign", softsign, softsign_slope),
    FUNCTION("exp", exp, exp),
    FUNCTION("softplus", softplus, sigmoid),
    FUNCTION("gelu", gelu, gelu_slope),
    FUNCTION("silu", silu, silu_slope),
    FUNCTION("hard_swish", hard_swish, hard_swish_slope),
    NEAR("softmax", "", ROW(10), .expect = expect_softmax),
    NEAR("batch_norm", "", IMAGE(3, 4, 5), .expect = expect_batch_norm),
    LOGITS("softmax", "loss=cross_entropy"),
    LOGITS("softmax_cross_entropy", ""),
    {.op = "cross_entropy", .options = "", .x = ROW(10), .labels = true,
     .numbers = LK_KNOWN_SHARES, .expect = expect_probability_loss},
    {0},
};

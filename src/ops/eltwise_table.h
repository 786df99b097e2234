/* The functions of one element, a row each: all that a new one takes. Floor 4. C and OpenCL
 * read it. From it come the operations (ops/eltwise.c) and their place in the registry, the
 * kernels (cl/ops/eltwise.cl) and, by way of ops/oracle.h, known answers and cases of tests.
 *
 * ROW(name, reads, options, exact, check, low, high, value, slope, true value, true slope)
 *   reads: what backward reads, READS_X or READS_Y; options: NAME of options_NAME in eltwise.c
 *   exact: EXACTLY where multiples of 1/4 give the same bits on every device, else ABOUT
 *   check: options to test with, beside the standard ones; low, high: of x, in tests
 *   value, slope: in OpenCL: f(x), and f'(x) by what backward reads, x or y. A comparison with
 *     NaN is false, and must then choose the argument
 *   true value, true slope: f(v) and f'(v) in C, in double, written another way where possible
 */
#ifndef LK_OPS_ELTWISE_TABLE_H
#define LK_OPS_ELTWISE_TABLE_H

/* Of selu, which keeps mean 0 and variance 1. source: Klambauer et al., Self-Normalizing Neural
 * Networks (2017) */
#define LK_SELU_SCALE 1.0507009873554805
#define LK_SELU_ALPHA 1.6732632423543772

/* clang-format off */
#define LK_FUNCTIONS(ROW)                                                                      \
    ROW(relu, READS_Y, none, EXACTLY, "", -1, 1,                                               \
        x < ZERO ? ZERO : x, y > ZERO ? ONE : ZERO,                                            \
        v > 0 ? v : 0, v > 0)                                                                  \
    ROW(relu6, READS_Y, none, EXACTLY, "", -2, 9,                                              \
        x < ZERO ? ZERO : x > (V)6 ? (V)6 : x, y > ZERO && y < (V)6 ? ONE : ZERO,              \
        fmin(fmax(v, 0), 6), v > 0 && v < 6)                                                   \
    ROW(leaky_relu, READS_Y, leaky_relu, EXACTLY, "alpha=0.5", -2, 2,                          \
        x < ZERO ? alpha * x : x, y > ZERO ? ONE : (V)alpha,                                   \
        v > 0 ? v : alpha * v, v > 0 ? 1 : alpha)                                              \
    ROW(clipped_relu, READS_Y, clipped_relu, EXACTLY, "slope=0.5 max=1.5", -2, 4,              \
        x < ZERO ? alpha * x : x > (V)beta ? (V)beta : x,                                      \
        y > ZERO ? (y < (V)beta ? ONE : ZERO) : (V)alpha,                                      \
        v > 0 ? fmin(v, beta) : alpha * v, v > 0 ? v < beta : alpha)                           \
    ROW(elu, READS_Y, elu, ABOUT, "alpha=1.5", -4, 2,                                          \
        x < ZERO ? alpha * decay(x) : x, y > ZERO ? ONE : y + alpha,                           \
        v > 0 ? v : alpha * expm1(v), v > 0 ? 1 : alpha * exp(v))                              \
    ROW(selu, READS_Y, none, ABOUT, "", -4, 2,                                                 \
        SELU_SCALE * (x < ZERO ? SELU_ALPHA * decay(x) : x),                                   \
        y > ZERO ? (V)SELU_SCALE : y + SELU_SCALE * SELU_ALPHA,                                \
        LK_SELU_SCALE * (v > 0 ? v : LK_SELU_ALPHA * (exp(v) - 1)),                            \
        v > 0 ? LK_SELU_SCALE : LK_SELU_SCALE * LK_SELU_ALPHA * exp(v))                        \
    ROW(sigmoid, READS_Y, sigmoid, ABOUT, "", -20, 20,                                         \
        SIGMOID(x), y * (ONE - y),                                                             \
        1 / (1 + exp(-v)), 1 / ((1 + exp(v)) * (1 + exp(-v))))                                 \
    ROW(hard_sigmoid, READS_Y, hard_sigmoid, EXACTLY, "alpha=0.25", -5, 5,                     \
        LINE(x) < ZERO ? ZERO : LINE(x) > ONE ? ONE : LINE(x),                                 \
        y > ZERO && y < ONE ? (V)alpha : ZERO,                                                 \
        fmin(fmax(alpha * v + beta, 0), 1), fabs(2 * (alpha * v + beta) - 1) < 1 ? alpha : 0)  \
    ROW(tanh, READS_Y, none, ABOUT, "", -6, 6,                                                 \
        tanh(x), ONE - y * y,                                                                  \
        tanh(v), 1 / (cosh(v) * cosh(v)))                                                      \
    ROW(softsign, READS_Y, none, ABOUT, "", -9, 9,                                             \
        x / (ONE + fabs(x)), (ONE - fabs(y)) * (ONE - fabs(y)),                                \
        v / (1 + fabs(v)), 1 / ((1 + fabs(v)) * (1 + fabs(v))))                                \
    ROW(exp, READS_Y, none, ABOUT, "", -3, 1,                                                  \
        exp(x), y,                                                                             \
        exp(v), exp(v))                                                                        \
    ROW(softplus, READS_X, none, ABOUT, "", -40, 40,                                           \
        SOFTPLUS(x), SIGMOID(x),                                                               \
        v > 30 ? v : log1p(exp(v)), 1 / (1 + exp(-v)))                                         \
    ROW(gelu, READS_X, none, ABOUT, "", -7, 7,                                                 \
        x * normal(x, DENSITY(x)), NORMAL_SLOPE(x, DENSITY(x)),                                \
        v * erfc(-v / sqrt(2)) / 2,                                                            \
        erfc(-v / sqrt(2)) / 2 + v * exp(-v * v / 2) / sqrt(2 * acos(-1)))                     \
    ROW(gelu_tanh, READS_X, none, ABOUT, "", -6, 6,                                            \
        x * SIGMOID(GELU(x)),                                                                  \
        SIGMOID(GELU(x)) * (ONE + x * SIGMOID(-GELU(x)) * GELU_SLOPE(x)),                      \
        v / 2 * (1 + tanh(sqrt(2 / acos(-1)) * (v + 0.044715 * v * v * v))),                   \
        (1 + tanh(sqrt(2 / acos(-1)) * (v + 0.044715 * v * v * v))) / 2 + v / 2 *              \
            sqrt(2 / acos(-1)) * (1 + 3 * 0.044715 * v * v) /                                  \
            pow(cosh(sqrt(2 / acos(-1)) * (v + 0.044715 * v * v * v)), 2))                     \
    ROW(silu, READS_X, none, ABOUT, "", -20, 20,                                               \
        x * SIGMOID(x), SIGMOID(x) * (ONE + x * (ONE - SIGMOID(x))),                           \
        v / (1 + exp(-v)), 1 / (1 + exp(-v)) + v / ((1 + exp(v)) * (1 + exp(-v))))             \
    ROW(mish, READS_X, none, ABOUT, "", -15, 15,                                               \
        x * tanh(SOFTPLUS(x)),                                                                 \
        tanh(SOFTPLUS(x)) + x * (ONE - tanh(SOFTPLUS(x)) * tanh(SOFTPLUS(x))) * SIGMOID(x),    \
        v * tanh(log1p(exp(v))), tanh(log1p(exp(v))) +                                         \
            v / (cosh(log1p(exp(v))) * cosh(log1p(exp(v))) * (1 + exp(-v))))                   \
    ROW(hard_swish, READS_X, none, ABOUT, "", -5, 5,                                           \
        x < (V)-3 ? ZERO : x > (V)3 ? x : x * (x + (real)3) / (real)6,                         \
        x < (V)-3 ? ZERO : x > (V)3 ? ONE : ((real)2 * x + (real)3) / (real)6,                 \
        v * fmin(fmax(v + 3, 0), 6) / 6, v < -3 ? 0 : v > 3 ? 1 : v / 3 + 0.5)                 \
    ROW(abs, READS_X, none, EXACTLY, "", -2, 2,                                                \
        fabs(x), x > ZERO ? ONE : x < ZERO ? -ONE : ZERO,                                      \
        fabs(v), v > 0 ? 1 : v < 0 ? -1 : 0)                                                   \
    ROW(rescale, READS_X, rescale, EXACTLY, "scale=0.5 shift=-1", -2, 2,                       \
        LINE(x), (V)alpha,                                                                     \
        alpha * v + beta, alpha)                                                               \
    ROW(square, READS_X, none, EXACTLY, "", -2, 2,                                             \
        x * x, (real)2 * x,                                                                    \
        v * v, 2 * v)
/* clang-format on */

#endif

/* Functions of one to three numbers, a row each. Floor 4. C and OpenCL read it. Unlike those of
 * ops/eltwise_table.h they need not be finite for every x: dead lanes get 0.
 *
 * ROW(name, inputs, low, high, value, da, db, dc, true value)
 *   low, high: of the inputs a, b, c in tests, where no function has a step
 *   value, da, db, dc: in OpenCL; with alpha and beta, the options, and y, the value
 *   true value: in C, in double, of a, b, c
 * Truths are 1 and 0. A comparison with NaN is false, and must then choose what is NaN. */
#ifndef LK_OPS_ARRAY_MATH_TABLE_H
#define LK_OPS_ARRAY_MATH_TABLE_H

/* clang-format off */
#define LK_MATH_ROWS(ROW)                                                                      \
    ROW(log, 1, 0.25, 3, log(a), ONE / a, ZERO, ZERO, log(a))                                  \
    ROW(sqrt, 1, 0.25, 3, sqrt(a), NUMBER(0.5) / y, ZERO, ZERO, sqrt(a))                       \
    ROW(reciprocal, 1, 0.5, 3, ONE / a, -y * y, ZERO, ZERO, 1 / a)                             \
    ROW(sin, 1, -3, 3, sin(a), cos(a), ZERO, ZERO, sin(a))                                     \
    ROW(cos, 1, -3, 3, cos(a), -sin(a), ZERO, ZERO, cos(a))                                    \
    ROW(tan, 1, -1, 1, tan(a), ONE + y * y, ZERO, ZERO, tan(a))                                \
    ROW(asin, 1, -0.8, 0.8, asin(a), ONE / sqrt(ONE - a * a), ZERO, ZERO, asin(a))             \
    ROW(acos, 1, -0.8, 0.8, acos(a), -ONE / sqrt(ONE - a * a), ZERO, ZERO, acos(a))            \
    ROW(atan, 1, -3, 3, atan(a), ONE / (ONE + a * a), ZERO, ZERO, atan(a))                     \
    ROW(sinh, 1, -2, 2, sinh(a), cosh(a), ZERO, ZERO, sinh(a))                                 \
    ROW(cosh, 1, -2, 2, cosh(a), sinh(a), ZERO, ZERO, cosh(a))                                 \
    ROW(asinh, 1, -3, 3, asinh(a), ONE / sqrt(a * a + ONE), ZERO, ZERO, asinh(a))              \
    ROW(acosh, 1, 1.5, 3, acosh(a), ONE / sqrt(a * a - ONE), ZERO, ZERO, acosh(a))             \
    ROW(atanh, 1, -0.8, 0.8, atanh(a), ONE / (ONE - a * a), ZERO, ZERO, atanh(a))              \
    ROW(erf, 1, -3, 3, erf(a), NUMBER(1.1283791670955126) * exp(-a * a), ZERO, ZERO, erf(a))   \
    ROW(floor, 1, 0.1, 0.9, floor(a), ZERO, ZERO, ZERO, floor(a))                              \
    ROW(ceil, 1, 0.1, 0.9, ceil(a), ZERO, ZERO, ZERO, ceil(a))                                 \
    ROW(round, 1, 0.6, 1.4, rint(a), ZERO, ZERO, ZERO, nearbyint(a))                           \
    ROW(truncate, 1, 0.1, 0.9, trunc(a), ZERO, ZERO, ZERO, trunc(a))                           \
    ROW(sign, 1, 0.1, 2, SIGN(a), ZERO, ZERO, ZERO, (a > 0) - (a < 0))                         \
    ROW(clip, 1, 0.1, 0.9, a < alpha ? (V)alpha : a > beta ? (V)beta : a,                      \
        a < alpha || a > beta ? ZERO : ONE, ZERO, ZERO, fmin(fmax(a, alpha), beta))            \
    ROW(swish, 1, -3, 3, a / (ONE + exp(-alpha * a)),                                          \
        (ONE + alpha * (a - y)) / (ONE + exp(-alpha * a)), ZERO, ZERO,                         \
        a / (1 + exp(-alpha * a)))                                                             \
    ROW(celu, 1, -3, 3, a > ZERO ? a : alpha * expm1(a / alpha),                               \
        a > ZERO ? ONE : exp(a / alpha), ZERO, ZERO,                                           \
        a > 0 ? a : alpha * (exp(a / alpha) - 1))                                              \
    ROW(scaled_elu, 1, -3, 3, beta * (a > ZERO ? a : alpha * expm1(a)),                        \
        beta * (a > ZERO ? ONE : alpha * exp(a)), ZERO, ZERO,                                  \
        beta * (a > 0 ? a : alpha * (exp(a) - 1)))                                             \
    ROW(threshold, 1, 1.1, 3, a > alpha ? a : ZERO, a > alpha ? ONE : ZERO, ZERO, ZERO,        \
        a > alpha ? a : 0)                                                                     \
    ROW(shrink, 1, 1.1, 3,                                                                     \
        a < -alpha ? a + beta : a > alpha ? a - beta : ZERO,                                   \
        a < -alpha || a > alpha ? ONE : ZERO, ZERO, ZERO,                                      \
        a < -alpha ? a + beta : a > alpha ? a - beta : 0)                                      \
    ROW(is_nan, 1, -1, 1, a != a ? ONE : ZERO, ZERO, ZERO, ZERO, a != a)                       \
    ROW(is_infinite, 1, -1, 1, a * beta > MOST || -a * alpha > MOST ? ONE : ZERO,              \
        ZERO, ZERO, ZERO, 0)                                                                   \
    ROW(is_true, 1, 0.5, 2, a != ZERO ? ONE : ZERO, ZERO, ZERO, ZERO, a != 0)                  \
    ROW(not, 1, 0.5, 2, a != ZERO ? ZERO : ONE, ZERO, ZERO, ZERO, a == 0)                      \
    ROW(sum, 2, -2, 2, a + b, ONE, ONE, ZERO, a + b)                                           \
    ROW(difference, 2, -2, 2, a - b, ONE, -ONE, ZERO, a - b)                                   \
    ROW(product, 2, -2, 2, a * b, b, a, ZERO, a * b)                                           \
    ROW(quotient, 2, 0.5, 2, a / b, ONE / b, -y / b, ZERO, a / b)                              \
    ROW(whole_quotient, 2, 1.1, 1.9, trunc(a / b), ZERO, ZERO, ZERO, trunc(a / b))             \
    ROW(power, 2, 0.5, 2, pow(a, b), b * pow(a, b - ONE), y * log(a), ZERO, pow(a, b))         \
    ROW(remainder, 2, 1.1, 1.9, fmod(a, b), ONE, -trunc(a / b), ZERO, a - b * trunc(a / b))    \
    ROW(modulo, 2, 1.1, 1.9, MODULO(fmod(a, b), b), ONE, -floor(a / b), ZERO,                  \
        a - b * floor(a / b))                                                                  \
    ROW(smaller, 2, -2, 2, b < a || b != b ? b : a,                                            \
        b < a || b != b ? ZERO : ONE, b < a || b != b ? ONE : ZERO, ZERO, fmin(a, b))          \
    ROW(larger, 2, -2, 2, b > a || b != b ? b : a,                                             \
        b > a || b != b ? ZERO : ONE, b > a || b != b ? ONE : ZERO, ZERO, fmax(a, b))          \
    ROW(equal, 2, 0.1, 2, a == b ? ONE : ZERO, ZERO, ZERO, ZERO, a == b)                       \
    ROW(less, 2, 0.1, 2, a < b ? ONE : ZERO, ZERO, ZERO, ZERO, a < b)                          \
    ROW(less_equal, 2, 0.1, 2, a <= b ? ONE : ZERO, ZERO, ZERO, ZERO, a <= b)                  \
    ROW(and, 2, 0.5, 2, a != ZERO && b != ZERO ? ONE : ZERO, ZERO, ZERO, ZERO,                 \
        a != 0 && b != 0)                                                                      \
    ROW(or, 2, 0.5, 2, a != ZERO || b != ZERO ? ONE : ZERO, ZERO, ZERO, ZERO,                  \
        a != 0 || b != 0)                                                                      \
    ROW(xor, 2, 0.5, 2, (a != ZERO) != (b != ZERO) ? ONE : ZERO, ZERO, ZERO, ZERO,             \
        (a != 0) != (b != 0))                                                                  \
    ROW(slope, 2, 0.1, 2, a < ZERO ? a * b : a, a < ZERO ? b : ONE, a < ZERO ? a : ZERO, ZERO, \
        a < 0 ? a * b : a)                                                                     \
    ROW(choice, 3, 0.5, 2, a != ZERO ? b : c, ZERO, a != ZERO ? ONE : ZERO,                    \
        a != ZERO ? ZERO : ONE, a != 0 ? b : c)
/* clang-format on */

#endif

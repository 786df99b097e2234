/* The losses of one element, a row each: all that a new one takes. Floor 4. C and OpenCL read
 * it. From it come the operations (ops/loss.c) and their place in the registry, the kernels
 * (cl/lib/loss.cl) and, by way of ops/oracle.h, known answers and cases of tests.
 *
 * ROW(name, options, answers, target, low, high, value, dp, dt, right, and these four again)
 *   options: NAME of options_NAME in loss.c; low, high: of p and t, in tests
 *   answers: YES_OR_NO where a target says one of two, so that a label 0 or 1 can stand for it;
 *     NUMBERS where it is a quantity, of which none is right or wrong
 *   target: AS_GIVEN, or AS_SIGN: 0 becomes -1
 *   value, dp, dt, right: in OpenCL, of a prediction p and a target t: e(p, t), its
 *     derivatives, and whether p is the right answer; then the same in C, in double
 */
#ifndef LK_OPS_LOSS_TABLE_H
#define LK_OPS_LOSS_TABLE_H

/* The loss of a sample is the mean over its elements. Names and definitions are those of Keras;
 * in PyTorch they are
 *   binary_cross_entropy          BCELoss, but with clipping as in Keras, to [1e-7, 1 - 1e-7]
 *   sigmoid_binary_cross_entropy  BCEWithLogitsLoss
 *   mean_squared_error            MSELoss
 *   mean_absolute_error           L1Loss; its slope is 0 where p = t
 *   huber                         HuberLoss, delta as there
 *   hinge                         none: max(1 - p t, 0) for t = -1 or 1 */
/* clang-format off */
#define LK_LOSSES(ROW)                                                                         \
    ROW(binary_cross_entropy, plain, YES_OR_NO, AS_GIVEN, 0.02, 0.98,                          \
        -(t * log(clip(p)) + (ONE - t) * log(clip(ONE - p))),                                  \
        p >= LEAST && p <= MOST ? (p - t) / (p * (ONE - p)) : ZERO,                            \
        log(clip(ONE - p)) - log(clip(p)), (p > HALF) == (t > HALF),                           \
        -t * log(fmin(fmax(p, 1e-7), 1 - 1e-7)) - (1 - t) * log(fmin(fmax(1 - p, 1e-7), 1)),   \
        p < 1e-7 || p > 1 - 1e-7 ? 0 : (1 - t) / (1 - p) - t / p,                              \
        log(fmax(1 - p, 1e-7) / fmax(p, 1e-7)), p > 0.5 ? t > 0.5 : t <= 0.5)                  \
    ROW(sigmoid_binary_cross_entropy, plain, YES_OR_NO, AS_GIVEN, -4, 4,                       \
        (p > ZERO ? p : ZERO) - p * t + log1p(exp(-fabs(p))), SIGMOID(p) - t,                  \
        -p, (p > ZERO) == (t > HALF),                                                          \
        p < 0 ? log1p(exp(p)) - p * t : log1p(exp(-p)) + p * (1 - t),                          \
        1 / (1 + exp(-p)) - t, -p, p > 0 ? t > 0.5 : t <= 0.5)                                 \
    ROW(mean_squared_error, plain, NUMBERS, AS_GIVEN, -4, 4,                                   \
        (p - t) * (p - t), (real)2 * (p - t), (real)2 * (t - p), NEVER,                        \
        pow(p - t, 2), 2 * p - 2 * t, 2 * t - 2 * p, 0)                                        \
    ROW(mean_absolute_error, plain, NUMBERS, AS_GIVEN, -4, 4,                                  \
        fabs(p - t), SIGN(p - t), SIGN(t - p), NEVER,                                          \
        fmax(p, t) - fmin(p, t), (p > t) - (p < t), (t > p) - (t < p), 0)                      \
    ROW(huber, huber, NUMBERS, AS_GIVEN, -4, 4,                                                \
        fabs(p - t) <= delta ? HALF * (p - t) * (p - t) : delta * (fabs(p - t) - delta / 2),   \
        CUT(p - t), CUT(t - p), NEVER,                                                         \
        fabs(p - t) > delta ? delta * fabs(p - t) - delta * delta / 2 : pow(p - t, 2) / 2,     \
        fmax(-delta, fmin(delta, p - t)), fmax(-delta, fmin(delta, t - p)), 0)                 \
    ROW(hinge, plain, YES_OR_NO, AS_SIGN, -4, 4,                                               \
        p * t < ONE ? ONE - p * t : ZERO, p * t < ONE ? -t : ZERO, p * t < ONE ? -p : ZERO,    \
        (p > ZERO) == (t > ZERO),                                                              \
        fmax(1 - p * t, 0), 1 - p * t > 0 ? -t : 0, 1 - p * t > 0 ? -p : 0,                    \
        p > 0 ? t > 0 : t <= 0)
/* clang-format on */

#endif

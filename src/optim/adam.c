/* Adam, and AdamW: Adam with weight decay apart from the gradient.
 *
 *   m = beta_1 * m + (1 - beta_1) * g;  v = beta_2 * v + (1 - beta_2) * g^2
 *   w = w * (1 - lr * weight_decay) - lr * m_hat / (sqrt(v_hat) + epsilon)
 *   m_hat = m / (1 - beta_1^t),  v_hat = v / (1 - beta_2^t),  t = step from 1
 *
 * Epsilon stands where the paper's algorithm 1 and torch.optim.Adam have it, because training
 * is compared with PyTorch. Keras folds the corrections into the rate, lr * sqrt(1 - beta_2^t)
 * / (1 - beta_1^t) * m / (sqrt(v) + epsilon): the paper's section 2 variant, whose epsilon is
 * larger by 1 / sqrt(1 - beta_2^t), 32 times in the first step. source: Kingma and Ba,
 * arXiv:1412.6980; Loshchilov and Hutter, arXiv:1711.05101 */
#include "optim/optimizer.h"

#include <math.h>

struct options {
    double lr, beta_1, beta_2, epsilon, weight_decay;
    int decay_of;
    bool lazy;
};

#define ADAM_OPTIONS                                                                           \
    {.name = "lr",                                                                             \
     .kind = LK_OPTION_REAL,                                                                   \
     .offset = offsetof(struct options, lr),                                                   \
     .max = 1e6,                                                                               \
     .standard = "0.001",                                                                      \
     .help = "learning rate"},                                                                 \
        {.name = "beta_1",                                                                     \
         .kind = LK_OPTION_REAL,                                                               \
         .offset = offsetof(struct options, beta_1),                                           \
         .max = 0.9999999,                                                                     \
         .standard = "0.9",                                                                    \
         .help = "share of the mean gradient that a step keeps"},                              \
        {.name = "beta_2",                                                                     \
         .kind = LK_OPTION_REAL,                                                               \
         .offset = offsetof(struct options, beta_2),                                           \
         .max = 0.9999999,                                                                     \
         .standard = "0.999",                                                                  \
         .help = "share of the mean square that a step keeps"},                                \
    {                                                                                          \
        .name = "epsilon", .kind = LK_OPTION_REAL,                                             \
        .offset = offsetof(struct options, epsilon), .min = 1e-16, .max = 1,                   \
        .standard = "1e-7", .help = "added to the root"                                        \
    }

static const struct lk_option adam_table[] = {
    ADAM_OPTIONS, LK_LAZY_OPTION(struct options), {0}};

static const struct lk_option adamw_table[] = {
    ADAM_OPTIONS,
    {.name = "weight_decay",
     .kind = LK_OPTION_REAL,
     .offset = offsetof(struct options, weight_decay),
     .max = 1,
     .standard = "0.004",
     .help = "share of w that goes in a step at rate 1"},
    LK_DECAY_OF_OPTION(struct options),
    LK_LAZY_OPTION(struct options),
    {0},
};

static int arrays(const void *options, const char *names[LK_MOST_STATE_ARRAYS])
{
    (void)options;
    names[0] = "m";
    names[1] = "v";
    return 2;
}

static bool spares(const void *options)
{
    return ((const struct options *)options)->decay_of == LK_DECAY_OF_WEIGHTS;
}

static bool lazy(const void *options)
{
    return ((const struct options *)options)->lazy;
}

static int numbers(const void *options, double lr, int64_t step, double n[LK_MOST_NUMBERS])
{
    const struct options *o = options;
    const double decay = lr * o->weight_decay; /* apart: no compiler contracts it */
    n[0] = lr / (1 - lk_optimizer_power(o->beta_1, step));
    n[1] = 1 / sqrt(1 - lk_optimizer_power(o->beta_2, step));
    n[2] = o->beta_1;
    n[3] = 1 - o->beta_1;
    n[4] = o->beta_2;
    n[5] = 1 - o->beta_2;
    n[6] = o->epsilon;
    n[7] = 1 - decay;
    return 8;
}

const struct lk_optimizer_kind lk_optimizer_adam = {.name = "adam",
                                                    .source = "adam",
                                                    .options = adam_table,
                                                    .options_bytes = sizeof(struct options),
                                                    .arrays = arrays,
                                                    .lazy = lazy,
                                                    .numbers = numbers};

const struct lk_optimizer_kind lk_optimizer_adamw = {.name = "adamw",
                                                     .source = "adam",
                                                     .options = adamw_table,
                                                     .options_bytes = sizeof(struct options),
                                                     .arrays = arrays,
                                                     .spares = spares,
                                                     .lazy = lazy,
                                                     .numbers = numbers};

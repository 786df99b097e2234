/* RMSprop: each parameter's step divided by a running root mean square of its gradients.
 *
 *   v = rho * v + (1 - rho) * g^2;  centered: a = rho * a + (1 - rho) * g, v' = v - a^2
 *   d = g / (sqrt(v') + epsilon);  momentum: m = momentum * m + d, d = m
 *   w = w - lr * d
 *
 * As torch.optim.RMSprop. Keras has sqrt(v' + epsilon), and lr inside m. Rounding can make v'
 * negative where gradients hardly change; the kernel then takes 0.
 * source: Tieleman and Hinton, Coursera lecture 6.5 (2012); Graves, arXiv:1308.0850 (centered)
 */
#include "optim/optimizer.h"

#include <stdio.h>

struct options {
    double lr, rho, momentum, epsilon;
    bool centered, lazy;
};

static const struct lk_option table[] = {
    {.name = "lr",
     .kind = LK_OPTION_REAL,
     .offset = offsetof(struct options, lr),
     .max = 1e6,
     .standard = "0.001",
     .help = "learning rate"},
    {.name = "rho",
     .kind = LK_OPTION_REAL,
     .offset = offsetof(struct options, rho),
     .max = 1,
     .standard = "0.9",
     .help = "share of the running mean that a step keeps"},
    {.name = "momentum",
     .kind = LK_OPTION_REAL,
     .offset = offsetof(struct options, momentum),
     .max = 1,
     .standard = "0",
     .help = "share of the last direction that is kept"},
    {.name = "epsilon",
     .kind = LK_OPTION_REAL,
     .offset = offsetof(struct options, epsilon),
     .min = 1e-16,
     .max = 1,
     .standard = "1e-7",
     .help = "added to the root"},
    {.name = "centered",
     .kind = LK_OPTION_BOOL,
     .offset = offsetof(struct options, centered),
     .standard = "false",
     .help = "divide by the deviation from the mean gradient"},
    LK_LAZY_OPTION(struct options),
    {0},
};

static int arrays(const void *options, const char *names[LK_MOST_STATE_ARRAYS])
{
    const struct options *o = options;
    int count = 0;
    names[count++] = "v";
    if (o->centered)
        names[count++] = "a";
    if (o->momentum > 0)
        names[count++] = "m";
    return count;
}

static void define(const void *options, char *text, size_t bytes)
{
    const struct options *o = options;
    snprintf(text, bytes, "-DCENTERED=%d -DMOMENTUM=%d", o->centered, o->momentum > 0);
}

static bool lazy(const void *options)
{
    return ((const struct options *)options)->lazy;
}

static int numbers(const void *options, double lr, int64_t step, double n[LK_MOST_NUMBERS])
{
    const struct options *o = options;
    (void)step;
    n[0] = lr;
    n[1] = o->rho;
    n[2] = 1 - o->rho;
    n[3] = o->momentum;
    n[4] = o->epsilon;
    return 5;
}

const struct lk_optimizer_kind lk_optimizer_rmsprop = {.name = "rmsprop",
                                                       .source = "rmsprop",
                                                       .options = table,
                                                       .options_bytes = sizeof(struct options),
                                                       .arrays = arrays,
                                                       .define = define,
                                                       .lazy = lazy,
                                                       .numbers = numbers};

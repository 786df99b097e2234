/* Stochastic gradient descent, with momentum where it is asked for.
 *
 *   g = gradient + weight_decay * w;  m = momentum * m + g
 *   w = w - lr * d,  d = g without momentum, m with it, g + momentum * m with nesterov
 *
 * As torch.optim.SGD with dampening 0. Keras keeps lr inside m (the same until lr changes).
 * source: Sutskever et al., On the importance of initialization and momentum (2013) */
#include "optim/optimizer.h"

#include <stdio.h>

struct options {
    double lr, momentum, weight_decay;
    bool nesterov, lazy;
    int decay_of;
};

static const struct lk_option table[] = {
    {.name = "lr",
     .kind = LK_OPTION_REAL,
     .offset = offsetof(struct options, lr),
     .max = 1e6,
     .standard = "0.01",
     .help = "learning rate"},
    {.name = "momentum",
     .kind = LK_OPTION_REAL,
     .offset = offsetof(struct options, momentum),
     .max = 1,
     .standard = "0",
     .help = "share of the last direction that is kept; 0: no state"},
    {.name = "nesterov",
     .kind = LK_OPTION_BOOL,
     .offset = offsetof(struct options, nesterov),
     .standard = "false",
     .help = "look ahead along the momentum"},
    {.name = "weight_decay",
     .kind = LK_OPTION_REAL,
     .offset = offsetof(struct options, weight_decay),
     .max = 1,
     .standard = "0",
     .help = "times w, added to the gradient"},
    LK_DECAY_OF_OPTION(struct options),
    LK_LAZY_OPTION(struct options),
    {0},
};

static int arrays(const void *options, const char *names[LK_MOST_STATE_ARRAYS])
{
    const struct options *o = options;
    names[0] = "m";
    return o->momentum > 0;
}

static void define(const void *options, char *text, size_t bytes)
{
    const struct options *o = options;
    snprintf(text, bytes, "-DMOMENTUM=%d -DNESTEROV=%d", o->momentum > 0, o->nesterov);
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
    (void)step;
    n[0] = lr;
    n[1] = o->momentum;
    n[2] = o->weight_decay;
    return 3;
}

const struct lk_optimizer_kind lk_optimizer_sgd = {.name = "sgd",
                                                   .source = "sgd",
                                                   .options = table,
                                                   .options_bytes = sizeof(struct options),
                                                   .arrays = arrays,
                                                   .define = define,
                                                   .spares = spares,
                                                   .lazy = lazy,
                                                   .numbers = numbers};

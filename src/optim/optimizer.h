/* Optimizers: parameters, gradients and a step number into new parameters. Floor 4.
 *
 * All parameters of a replica are one buffer, and so are their gradients: an update is one
 * launch. Names of options are Keras's, formulas PyTorch's (torch.optim 1.13): momentum buffers
 * hold no learning rate, epsilon stands outside the square root. Knows no layer, no file. */
#ifndef LK_OPTIM_OPTIMIZER_H
#define LK_OPTIM_OPTIMIZER_H

#include "base/option.h"
#include "device/device.h"
#include <lockstep/tensor.h>

enum { LK_MOST_SLOTS = 4, LK_MOST_NUMBERS = 8 };

/* One kind of optimizer. Its kernel <source>_update in cl/optim/<source>.cl takes (w, g, state,
 * first, vectors, stride in vectors, scale, scaling, then the numbers in order). */
struct lk_optimizer_kind {
    const char *name, *source;
    const struct lk_option *options; /* has a REAL row "lr" */
    size_t options_bytes;

    /* Names the state arrays that these options need, and returns how many. */
    int (*slots)(const void *options, const char *names[LK_MOST_SLOTS]);

    /* (optional) Writes -D options of the kernel. */
    void (*define)(const void *options, char *text, size_t bytes);

    /* The kernel's numbers for step `step` (from 1) at learning rate `lr`; returns how many. */
    int (*numbers)(const void *options, double lr, int64_t step,
                   double numbers[LK_MOST_NUMBERS]);
};

/* All kinds; ends with NULL. Made from the list in meson.build. */
extern const struct lk_optimizer_kind *const lk_optimizer_kinds[];

/* The kind of that name. fails: LK_E_ARGUMENT, naming the nearest one */
LK_MUST_CHECK enum lk_status lk_optimizer_find(const char *name,
                                               const struct lk_optimizer_kind **kind);

/* How many state arrays, each as long as the parameters, that optimizer will keep.
 * fails: LK_E_ARGUMENT, LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_optimizer_slots(const char *kind, const char *options,
                                                int *slots);

struct lk_optimizer;

/* An optimizer of `count` reals; its state is zero, its kernel runs after lk_device_build().
 * kind: "adam"; options: "lr=0.01 beta_1=0.8" (NULL: defaults).
 * fails: LK_E_ARGUMENT, LK_E_UNSUPPORTED (no fp64), LK_E_MEMORY, LK_E_DEVICE_MEMORY */
LK_MUST_CHECK enum lk_status lk_optimizer_create(struct lk_device *device, enum lk_dtype real,
                                                 const char *kind, const char *options,
                                                 int64_t count,
                                                 struct lk_optimizer **optimizer);
void lk_optimizer_destroy(struct lk_optimizer *optimizer);

/* A scale of the loss that fits halves: it begins with `first`, is halved where a gradient is
 * not finite (there is no update then) and doubles after `every` steps without; 0: it stays. */
struct lk_loss_scale {
    double first; /* a power of two */
    int64_t every;
};
enum { /* as cl/lib/update.cl has them */
       LK_LOSS_SCALE_NOW = 0,
       LK_LOSS_SCALE_SKIPPED = 4, /* steps that made no update */
       LK_LOSS_SCALE_NUMBERS
};

/* Before lk_device_build(), of an optimizer of float32: gradients will be those of the loss
 * times the first number of info.scaling. fails: LK_E_ARGUMENT, as lk_optimizer_create() */
LK_MUST_CHECK enum lk_status lk_optimizer_scale_loss(struct lk_optimizer *optimizer,
                                                     struct lk_device *device,
                                                     const struct lk_loss_scale *how);

/* Before lk_device_build(): behind the `count` elements, padded to a multiple of 32, are
 * `tracked` more that no rate applies to: w = w - g * scale. fails: LK_E_ARGUMENT, LK_E_MEMORY
 */
LK_MUST_CHECK enum lk_status lk_optimizer_track(struct lk_optimizer *optimizer,
                                                struct lk_device *device, int64_t tracked);

/* Updates w by the gradient g * scale. w, g: `count` reals and those tracked, padded with
 * zeros to a multiple of 32. step: 1 for the first. Enqueues. fails: LK_E_ARGUMENT for buffers
 * that are too small */
LK_MUST_CHECK enum lk_status lk_optimizer_enqueue(struct lk_optimizer *optimizer,
                                                  struct lk_buffer *w,
                                                  const struct lk_buffer *g, double scale,
                                                  double lr, int64_t step);

/* The same of elements first to first + count - 1 of w, multiples of 32 both (or up to the
 * end), whose gradients are the first of g. */
struct lk_update {
    int64_t first, count;
    double scale, lr;
    int64_t step;
};
LK_MUST_CHECK enum lk_status lk_optimizer_enqueue_part(struct lk_optimizer *optimizer,
                                                       struct lk_buffer *w,
                                                       const struct lk_buffer *g,
                                                       const struct lk_update *update);

/* Where the loss is scaled, before parts are updated: looks at `count` reals of a step's
 * gradient, then decides over the whole step. Where it is not they do nothing. Enqueue. */
LK_MUST_CHECK enum lk_status lk_optimizer_enqueue_check(struct lk_optimizer *optimizer,
                                                        const struct lk_buffer *g,
                                                        int64_t count);
LK_MUST_CHECK enum lk_status lk_optimizer_enqueue_decision(struct lk_optimizer *optimizer);

/* The option `lr`: the rate before any schedule. */
double lk_optimizer_rate(const struct lk_optimizer *optimizer);

/* What a checkpoint keeps. The options, with kind->options, print to the text that makes this
 * optimizer again; state: real [slots][stride], of which the first `count` are used, and at its
 * end `scaling`, real [LK_LOSS_SCALE_NUMBERS]. */
struct lk_optimizer_info {
    const struct lk_optimizer_kind *kind;
    const void *options;
    struct lk_buffer *state, *scaling; /* scaling: NULL: the loss is not scaled */
    int slots;
    const char *slot_names[LK_MOST_SLOTS]; /* "m", "v" */
    int64_t count, stride;
};

/* Valid as long as the optimizer. */
const struct lk_optimizer_info *lk_optimizer_info(const struct lk_optimizer *optimizer);

/* base^exponent by multiplications alone: the same bits on every host, which pow() is not. */
double lk_optimizer_power(double base, int64_t exponent);

#endif

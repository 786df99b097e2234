/* Optimizers: they update parameters by gradients, given the number of the step. Floor 4.
 *
 * All parameters of a replica lie in one buffer, and so do their gradients, so an update is one
 * launch. The names of options are Keras's, the formulas PyTorch's (torch.optim 1.13): momentum
 * does not contain the learning rate, epsilon is added outside the square root. Knows no layer,
 * no file. */
#ifndef LK_OPTIM_OPTIMIZER_H
#define LK_OPTIM_OPTIMIZER_H

#include "base/option.h"
#include "optim/config.h"

enum { LK_MOST_STATE_ARRAYS = 4, LK_MOST_NUMBERS = 8 };

/* One kind of optimizer. Its kernel <source>_update in cl/optim/<source>.cl takes (w, g, state,
 * first, vectors, stride in vectors, scale, scaling, then the numbers in order, then
 * ADJUSTMENTS and LAZINESS). */
struct lk_optimizer_kind {
    const char *name, *source;
    const struct lk_option *options; /* the table has a row "lr" of kind REAL */
    size_t options_bytes;

    /* Names the state arrays that these options need, and returns how many. */
    int (*arrays)(const void *options, const char *names[LK_MOST_STATE_ARRAYS]);

    /* (optional) Writes the kernel's build options, -D... */
    void (*define)(const void *options, char *text, size_t bytes);

    /* (optional) Whether weight decay spares biases and parameters of normalization. */
    bool (*spares)(const void *options);

    /* Whether rows of a table (struct lk_param_rows) stand still while they have no gradient.
     */
    bool (*lazy)(const void *options);

    /* The kernel's numbers for step `step` (from 1) at learning rate `lr`; returns how many. */
    int (*numbers)(const void *options, double lr, int64_t step,
                   double numbers[LK_MOST_NUMBERS]);
};

/* The values of the option `decay_of`, and its row for a table over `type`. */
enum { LK_DECAY_OF_ALL, LK_DECAY_OF_WEIGHTS };
extern const char *const lk_decay_of_names[];
#define LK_DECAY_OF_OPTION(type)                                                               \
    {                                                                                          \
        .name = "decay_of", .kind = LK_OPTION_CHOICE, .offset = offsetof(type, decay_of),      \
        .standard = "all", .choices = lk_decay_of_names,                                       \
        .help = "parameters that decay: all, as in PyTorch; weights: no biases and none of "   \
                "normalization"                                                                \
    }

/* The row of the option `lazy` for a table over `type`. */
#define LK_LAZY_OPTION(type)                                                                   \
    {                                                                                          \
        .name = "lazy", .kind = LK_OPTION_BOOL, .offset = offsetof(type, lazy),                \
        .standard = "false",                                                                   \
        .help = "rows of an embedding whose gradient is 0 stand still, with their state"       \
    }

/* All kinds; ends with NULL. Made from the list in meson.build. */
extern const struct lk_optimizer_kind *const lk_optimizer_kinds[];

/* The kind of that name. fails: LK_E_ARGUMENT, naming the nearest one */
LK_MUST_CHECK enum lk_status lk_optimizer_find(const char *name,
                                               const struct lk_optimizer_kind **kind);

/* What is known of an optimizer before it is made. arrays: state arrays, each as long as the
 * parameters, that it keeps without an average of weights; spares: its weight decay spares
 * biases and parameters of normalization; lazy: rows of a table without gradient stay as they
 * are. fails: LK_E_ARGUMENT, LK_E_MEMORY */
struct lk_optimizer_traits {
    int arrays;
    bool spares, lazy;
};
LK_MUST_CHECK enum lk_status lk_optimizer_ask(const char *kind, const char *options,
                                              struct lk_optimizer_traits *traits);

struct lk_optimizer;

/* An optimizer of `count` reals with zero state; its kernel can run after lk_device_build().
 * Of 0 reals it may have tracked elements, and else no updates.
 * fails: LK_E_ARGUMENT, LK_E_UNSUPPORTED (no fp64), LK_E_MEMORY, LK_E_DEVICE_MEMORY */
LK_MUST_CHECK enum lk_status lk_optimizer_create(const struct lk_optimizer_config *config,
                                                 struct lk_optimizer **optimizer);
void lk_optimizer_destroy(struct lk_optimizer *optimizer);

/* How the loss is scaled so that small gradients are not lost in halves: the scale begins with
 * `first`; a step with a gradient that is not finite makes no update and halves it; it doubles
 * after `every` steps in a row without such a step; every = 0: it never changes. */
struct lk_loss_scale {
    double first; /* a power of two */
    int64_t every;
};
enum { /* indices of info.scaling, the same as in cl/lib/update.cl */
       LK_LOSS_SCALE_NOW = 0,
       LK_LOSS_SCALE_FOUND = 2,   /* an int: whether a gradient of the step was not finite */
       LK_LOSS_SCALE_SKIPPED = 4, /* steps that made no update */
       LK_LOSS_SCALE_NUMBERS
};

/* Tells an optimizer of float32, before lk_device_build(), that gradients are those of the loss
 * times the first number of info.scaling. fails: LK_E_ARGUMENT, as lk_optimizer_create() */
LK_MUST_CHECK enum lk_status lk_optimizer_scale_loss(struct lk_optimizer *optimizer,
                                                     struct lk_device *device,
                                                     const struct lk_loss_scale *how);

/* Adds, before lk_device_build(), `tracked` elements behind the `count` elements (padded to a
 * multiple of 32) that are no parameters but moving averages: w = w - g * scale, without
 * learning rate. fails: LK_E_ARGUMENT, LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_optimizer_track(struct lk_optimizer *optimizer,
                                                struct lk_device *device, int64_t tracked);

/* Updates w by the gradient g * scale. w, g: `count` reals, then the tracked ones, each padded
 * with zeros to a multiple of 32. step: 1 for the first. Enqueues. fails: LK_E_ARGUMENT buffers
 * that are too small */
LK_MUST_CHECK enum lk_status lk_optimizer_enqueue(struct lk_optimizer *optimizer,
                                                  struct lk_buffer *w,
                                                  const struct lk_buffer *g, double scale,
                                                  double lr, int64_t step);

/* As lk_optimizer_enqueue() for elements first to first + count - 1 of w alone; g begins
 * with the gradient of element `first`. Both are multiples of 32, but the last range may end
 * with w. A table of rows is in one range as a whole; where its gradient is a list
 * (tensor/row_list.h), it is the range, and g is the list. */
struct lk_update {
    int64_t first, count;
    bool is_list;
    double scale, lr;
    int64_t step;
};
LK_MUST_CHECK enum lk_status lk_optimizer_enqueue_part(struct lk_optimizer *optimizer,
                                                       struct lk_buffer *w,
                                                       const struct lk_buffer *g,
                                                       const struct lk_update *update);

/* Whether the whole gradient has to be looked at before any update: the loss is scaled, or the
 * gradient's norm has a limit. If so, in each step: looks at a piece of the gradient, elements
 * first to first + count - 1, or at the list of `reals` reals that stands for the table from
 * there on, called for each piece of it; then decides once whether the step
 * makes an update, and by what the gradient is multiplied (`scale`: of the update). Both do
 * nothing where there is nothing to decide. Enqueue. */
bool lk_optimizer_decides(const struct lk_optimizer *optimizer);
LK_MUST_CHECK enum lk_status lk_optimizer_enqueue_check(struct lk_optimizer *optimizer,
                                                        const struct lk_buffer *g,
                                                        int64_t first, int64_t count);
LK_MUST_CHECK enum lk_status lk_optimizer_enqueue_check_list(struct lk_optimizer *optimizer,
                                                             const struct lk_buffer *g,
                                                             int64_t first, int64_t reals);
LK_MUST_CHECK enum lk_status lk_optimizer_enqueue_decision(struct lk_optimizer *optimizer,
                                                           double scale);

/* Writes what the penalties of the weights w sum up to, l1 sum |w| + l2 sum w^2, to y[at], or 0
 * if it is not to count; nothing where no weights have any. The order of the sum is fixed.
 * Enqueues. */
LK_MUST_CHECK enum lk_status lk_optimizer_enqueue_penalties(struct lk_optimizer *optimizer,
                                                            const struct lk_buffer *w,
                                                            bool counts, struct lk_buffer *y,
                                                            int64_t at);

/* Exchanges the parameters in w with their moving average, and back when called again; nothing
 * where there is no average. Enqueues. */
LK_MUST_CHECK enum lk_status lk_optimizer_enqueue_swap(struct lk_optimizer *optimizer,
                                                       struct lk_buffer *w);

/* The option `lr`: the learning rate that a schedule starts from. */
double lk_optimizer_rate(const struct lk_optimizer *optimizer);

#define LK_EMA_ARRAY "ema"

/* What a checkpoint stores of an optimizer. `options`, printed by the table kind->options, is
 * the text that creates it again. state: real [arrays][stride], of each row the first `count`
 * are used; behind them `scaling`, real [LK_LOSS_SCALE_NUMBERS]. */
struct lk_optimizer_info {
    const struct lk_optimizer_kind *kind;
    const void *options;
    struct lk_buffer *state, *scaling; /* scaling NULL: the loss is not scaled */
    size_t scaling_at;                 /* the byte of `state` at which it begins */
    int arrays;
    const char *array_names[LK_MOST_STATE_ARRAYS]; /* "m", "v"; the average of weights comes
                                                    * last: LK_EMA_ARRAY */
    int64_t count, stride;
    const struct lk_optimizer_info *const *group; /* of each place of a group that trains one
                                                   * model, each with its part of the state;
                                                   * NULL: this one has all */
};
void lk_optimizer_set_group(struct lk_optimizer *optimizer,
                            const struct lk_optimizer_info *const *group);

/* Lives as long as the optimizer. */
const struct lk_optimizer_info *lk_optimizer_info(const struct lk_optimizer *optimizer);

/* base^exponent by multiplications alone, which gives the same bits on every host; pow() does
 * not. */
double lk_optimizer_power(double base, int64_t exponent);

#endif

/* Softmax over the channels, and cross-entropy. Targets are int32 labels, one for each sample
 * or time step, or a number for each class; predictions are probabilities (cross_entropy),
 * logits (softmax_cross_entropy), or what a softmax that absorbs the loss has computed. source:
 * Goodfellow, Bengio, Courville, Deep Learning, 6.2.2.3; clipping as in Keras */
#include "base/fail.h"
#include "ops/loss.h"
#include "ops/warps.h"
#include <stdio.h>
#include <string.h>

enum { NO_LOSS, CROSS_ENTROPY };

struct options {
    int loss;      /* of a softmax: the loss that it has absorbed */
    double weight; /* of the gradient of a loss */
};

static const char *const losses[] = {"none", "cross_entropy", NULL};
static const struct lk_option softmax_table[] = {
    {.name = "loss",
     .kind = LK_OPTION_CHOICE,
     .offset = offsetof(struct options, loss),
     .standard = "none",
     .choices = losses,
     .help = "with labels as second input: give loss and correctness instead"},
    LK_WEIGHT_OPTION(struct options, weight),
    {0},
};
static const struct lk_option loss_table[] = {
    LK_WEIGHT_OPTION(struct options, weight),
    {0},
};

/* Labels are one for [k], or for each time step of [t, k]; targets are of [k] alone. */
static enum lk_status check_targets(const struct lk_op_shapes *shapes)
{
    const struct lk_shape *x = &shapes->x[0], *labels = &shapes->x[1];
    const bool are_labels = shapes->x_dtype[1] == LK_I32;
    char text[96];
    lk_shape_print_hwc(labels, text, sizeof text);
    if (x->rank == 2 && (!are_labels || labels->rank != 1 || labels->dim[0] != x->dim[0]))
        return lk_fail(
            LK_E_SHAPE,
            "cross-entropy takes one int32 label for each of %lld time steps, not %s%s",
            (long long)x->dim[0], are_labels ? "" : "numbers ", text);
    if (x->rank == 1 && (are_labels ? lk_shape_count(labels) != 1 : !lk_shape_equal(x, labels)))
        return lk_fail(LK_E_SHAPE,
                       "cross-entropy takes one int32 label a sample, or a target for each of "
                       "%lld classes, not %s%s",
                       (long long)x->dim[0], are_labels ? "" : "numbers ", text);
    return LK_OK;
}

static enum lk_status infer_loss(struct lk_op_shapes *shapes)
{
    const struct lk_shape *x = &shapes->x[0];
    char text[96];
    lk_shape_print_hwc(x, text, sizeof text);
    if (shapes->inputs != 2)
        return lk_fail(LK_E_SHAPE, "cross-entropy takes two inputs, numbers and labels, not %d",
                       shapes->inputs);
    if (shapes->x_dtype[0] != LK_F32 || (x->rank != 1 && x->rank != 2))
        return lk_fail(
            LK_E_SHAPE,
            "cross-entropy takes a number for every class [k], or of every time step "
            "[t, k], not %s%s",
            shapes->x_dtype[0] == LK_F32 ? "" : "labels ", text);
    LK_TRY(check_targets(shapes));
    shapes->y = (struct lk_shape){1, {2}};
    shapes->is_loss = true;
    shapes->backward_reads_x = true;
    shapes->flops = 4.0 * (double)lk_shape_count(x);
    return LK_OK;
}

static enum lk_status infer_softmax(struct lk_op_shapes *shapes)
{
    const struct options *o = shapes->options;
    const struct lk_shape *x = &shapes->x[0];
    char text[96];
    if (o->loss == CROSS_ENTROPY)
        return infer_loss(shapes);
    lk_shape_print_hwc(x, text, sizeof text);
    if (shapes->inputs != 1)
        return lk_fail(LK_E_SHAPE, "softmax takes one input, not %d", shapes->inputs);
    if (shapes->x_dtype[0] != LK_F32 || x->rank < 1 || x->rank > 3)
        return lk_fail(
            LK_E_SHAPE,
            "softmax takes a vector [k], a sequence [t, k] or an image [h, w, k], not %s%s",
            shapes->x_dtype[0] == LK_F32 ? "" : "labels ", text);
    shapes->y = *x;
    shapes->backward_reads_y = true;
    shapes->flops = 4.0 * (double)lk_shape_count(x);
    return LK_OK;
}

struct state {
    struct lk_kernel *forward, *backward;
    struct lk_kernel *mean; /* over time steps: the loss of a sample from those of its steps */
    int64_t channels, time_steps, pixels;
    bool is_dense; /* a loss whose target is a number for each class */
    int slices;    /* work-items of a sample */
};

/* Of many channels a GPU's work-groups have several work-items for each sample. */
static int count_slices(const struct lk_op_setup *setup, int64_t channels)
{
    enum { LEAST_CHANNELS = 64 };
    return channels >= LEAST_CHANNELS ? lk_op_warps(setup) : 1;
}

static enum lk_status make(const struct lk_op_setup *setup, const struct state *s,
                           const char *name, struct lk_kernel **kernel)
{
    char sliced[64], options[32];
    if (s->slices == 1)
        return lk_op_kernel(setup, "ops/softmax", name, s->is_dense ? "-DDENSE" : NULL, kernel);
    snprintf(sliced, sizeof sliced, "sliced_%s", name);
    snprintf(options, sizeof options, "-DSLICES=%d", s->slices);
    return lk_op_kernel(setup, "ops/softmax_slices", sliced, options, kernel);
}

static enum lk_status create(struct lk_op_setup *setup, const char *forward,
                             const char *backward, bool has_slices)
{
    const struct lk_shape *x = &setup->shapes.x[0];
    void *memory;
    LK_TRY(lk_arena_allocate(setup->arena, sizeof(struct state), &memory));
    struct state *s = setup->state = memory;
    s->channels = x->rank == 3 ? x->dim[0] : x->dim[x->rank - 1];
    s->time_steps = x->rank == 2 ? x->dim[0] : 1;
    s->pixels = x->rank == 3 ? x->dim[1] * x->dim[2] : 1;
    s->is_dense = setup->shapes.is_loss && setup->shapes.x_dtype[1] != LK_I32;
    s->slices = has_slices && !s->is_dense ? count_slices(setup, s->channels) : 1;
    LK_TRY(make(setup, s, forward, &s->forward));
    if (setup->training && (setup->wants_dx[0] || setup->wants_dx[1]))
        LK_TRY(make(setup, s, backward, &s->backward));
    return LK_OK;
}

/* Arguments that tell which lanes have a sample, where no label tells it. */
#define SAMPLES(setup, run)                                                                    \
    LK_INT((run)->samples), LK_INT((setup)->tiling.shard_samples),                             \
        LK_INT((setup)->tiling.shard_tiles)

static struct lk_grid grid_of(const struct lk_op_setup *setup)
{
    const struct state *s = setup->state;
    return (struct lk_grid){{setup->tiling.tiles * s->time_steps * s->pixels, 1, 1},
                            s->slices * lk_op_items(setup)};
}

/* --- losses over time steps --------------------------------------------------------------- */

/* What forward keeps of a time step for backward, in rows of lanes. Behind all of them `saved`
 * has a row a tile: how many time steps of each sample have a label. */
enum { OF_PROBABILITIES = 0, OF_LOGITS = 2 };

static enum lk_status create_loss(struct lk_op_setup *setup, const char *forward,
                                  const char *backward, size_t kept)
{
    const size_t row =
        (size_t)setup->tiling.lanes * (size_t)setup->tiling.tiles * lk_dtype_bytes(setup->real);
    LK_TRY(create(setup, forward, backward, kept == OF_LOGITS));
    struct state *s = setup->state;
    const size_t time_steps = (size_t)s->time_steps;
    if (setup->training)
        setup->saved_bytes = row * (time_steps * kept + (time_steps > 1));
    if (time_steps == 1)
        return LK_OK;
    setup->workspace_bytes = row * time_steps * 2;
    return lk_op_kernel(setup, "ops/softmax", "entropy_mean", NULL, &s->mean);
}

/* Where the forward kernel writes: of each time step, or of the sample where it has but one. */
static struct lk_buffer *each_of(const struct state *s, const struct lk_op_run *run)
{
    return s->time_steps > 1 ? run->workspace : run->y;
}

/* The loss of a sample is the mean over its time steps that have a label, and not, as that of
 * Keras, a part of the mean over all time steps of the batch: how many these are nobody knows
 * before every shard has counted its own. So a sample's loss and gradient depend on itself
 * alone, sums over shards stay sums, and the same bits come out however a batch is dealt to
 * devices. A short sequence weighs as much as a long one. */
static enum lk_status enqueue_mean(const struct lk_op_setup *setup, const struct lk_op_run *run,
                                   int64_t kept)
{
    const struct state *s = setup->state;
    const struct lk_grid tiles = {{setup->tiling.tiles, 1, 1}, lk_op_items(setup)};
    if (s->time_steps == 1)
        return LK_OK;
    return LK_ENQUEUE(s->mean, tiles, LK_BUF(run->workspace), LK_BUF(run->x[1]), LK_BUF(run->y),
                      LK_BUF(run->saved), LK_INT(setup->tiling.tiles * s->time_steps * kept),
                      LK_INT(s->channels), LK_INT(s->time_steps));
}

/* --- softmax, alone or with the loss of logits ------------------------------------------ */

static enum lk_status prepare_softmax(struct lk_op_setup *setup)
{
    if (setup->shapes.is_loss)
        return create_loss(setup, "logits_forward", "logits_backward", OF_LOGITS);
    return create(setup, "softmax_forward", "softmax_backward", true);
}

static enum lk_status forward_softmax(const struct lk_op_setup *setup,
                                      const struct lk_op_run *run)
{
    const struct state *s = setup->state;
    if (!setup->shapes.is_loss)
        return LK_ENQUEUE(s->forward, grid_of(setup), LK_BUF(run->x[0]), LK_BUF(run->y),
                          LK_INT(s->channels), LK_INT(s->pixels));
    if (s->is_dense)
        return LK_ENQUEUE(s->forward, grid_of(setup), LK_BUF(run->x[0]), LK_BUF(run->x[1]),
                          LK_BUF(run->y), LK_BUF(run->saved), LK_INT(s->channels),
                          SAMPLES(setup, run));
    LK_TRY(LK_ENQUEUE(s->forward, grid_of(setup), LK_BUF(run->x[0]), LK_BUF(run->x[1]),
                      LK_BUF(each_of(s, run)), LK_BUF(run->saved), LK_INT(s->channels)));
    return enqueue_mean(setup, run, OF_LOGITS);
}

static enum lk_status backward_softmax(const struct lk_op_setup *setup,
                                       const struct lk_op_run *run)
{
    const struct state *s = setup->state;
    const struct options *o = setup->options;
    if (!run->dx[0] && !run->dx[1])
        return LK_OK;
    if (!setup->shapes.is_loss)
        return LK_ENQUEUE(s->backward, grid_of(setup), LK_BUF(run->y), LK_BUF(run->dy),
                          LK_BUF(run->dx[0]), LK_INT(s->channels), LK_INT(s->pixels));
    if (s->is_dense)
        return LK_ENQUEUE(s->backward, grid_of(setup), LK_BUF(run->x[0]), LK_BUF(run->x[1]),
                          LK_BUF(run->saved), LK_BUF(run->dx[0]), LK_BUF(run->dx[1]),
                          LK_INT(s->channels), SAMPLES(setup, run), LK_BUF(run->loss_scale),
                          LK_REAL(o->weight));
    return LK_ENQUEUE(s->backward, grid_of(setup), LK_BUF(run->x[0]), LK_BUF(run->x[1]),
                      LK_BUF(run->saved), LK_BUF(run->dx[0]), LK_INT(s->channels),
                      LK_BUF(run->loss_scale), LK_REAL(o->weight), LK_INT(s->time_steps));
}

static bool absorb(void *options, const char *next, const char *next_options)
{
    struct options *o = options;
    if (strcmp(next, "cross_entropy") != 0 || o->loss != NO_LOSS ||
        !lk_loss_take_weight(next_options, &o->weight))
        return false;
    o->loss = CROSS_ENTROPY;
    return true;
}

/* --- cross-entropy of probabilities ------------------------------------------------------ */

static enum lk_status prepare_entropy(struct lk_op_setup *setup)
{
    return create_loss(setup, "entropy_forward", "entropy_backward", OF_PROBABILITIES);
}

static enum lk_status forward_entropy(const struct lk_op_setup *setup,
                                      const struct lk_op_run *run)
{
    const struct state *s = setup->state;
    if (s->is_dense)
        return LK_ENQUEUE(s->forward, grid_of(setup), LK_BUF(run->x[0]), LK_BUF(run->x[1]),
                          LK_BUF(run->y), LK_INT(s->channels), SAMPLES(setup, run));
    LK_TRY(LK_ENQUEUE(s->forward, grid_of(setup), LK_BUF(run->x[0]), LK_BUF(run->x[1]),
                      LK_BUF(each_of(s, run)), LK_INT(s->channels)));
    return enqueue_mean(setup, run, OF_PROBABILITIES);
}

static enum lk_status backward_entropy(const struct lk_op_setup *setup,
                                       const struct lk_op_run *run)
{
    const struct state *s = setup->state;
    const struct options *o = setup->options;
    if (!run->dx[0] && !run->dx[1])
        return LK_OK;
    if (s->is_dense)
        return LK_ENQUEUE(s->backward, grid_of(setup), LK_BUF(run->x[0]), LK_BUF(run->x[1]),
                          LK_BUF(run->dx[0]), LK_BUF(run->dx[1]), LK_INT(s->channels),
                          SAMPLES(setup, run), LK_BUF(run->loss_scale), LK_REAL(o->weight));
    return LK_ENQUEUE(s->backward, grid_of(setup), LK_BUF(run->x[0]), LK_BUF(run->x[1]),
                      LK_BUF(run->saved), LK_BUF(run->dx[0]), LK_INT(s->channels),
                      LK_BUF(run->loss_scale), LK_REAL(o->weight), LK_INT(s->time_steps));
}

const struct lk_op lk_op_softmax = {
    .name = "softmax",
    .options = softmax_table,
    .options_bytes = sizeof(struct options),
    .min_inputs = 1,
    .max_inputs = 2,
    .time = LK_TIME_OWN,
    .infer = infer_softmax,
    .prepare = prepare_softmax,
    .forward = forward_softmax,
    .backward = backward_softmax,
    .absorb = absorb,
};

const struct lk_op lk_op_softmax_cross_entropy = {
    .name = "softmax_cross_entropy",
    .options = loss_table,
    .options_bytes = sizeof(struct options),
    .min_inputs = 2,
    .max_inputs = 2,
    .infer = infer_loss,
    .prepare = prepare_softmax,
    .forward = forward_softmax,
    .backward = backward_softmax,
};

const struct lk_op lk_op_cross_entropy = {
    .name = "cross_entropy",
    .options = loss_table,
    .options_bytes = sizeof(struct options),
    .min_inputs = 2,
    .max_inputs = 2,
    .infer = infer_loss,
    .prepare = prepare_entropy,
    .forward = forward_entropy,
    .backward = backward_entropy,
};

/* Batch normalization: y = act(gamma (x - mean) / sqrt(variance + epsilon) + beta) per channel.
 * In training each shard is normalized by its own mean and variance, so that no bit depends on
 * which device has which shards. Both are tracked (the variance times n / (n - 1)) in moving
 * averages, which are used everywhere else and in frozen layers. To get there, a shard's
 * statistics travel as if they were a gradient: the update subtracts their mean over the batch.
 * source: Ioffe and Szegedy, Batch Normalization (2015); over parts of a batch: Hoffer, Hubara,
 * Soudry, Train longer, generalize better (2017); names and standard options as in Keras */
#include "base/fail.h"
#include "ops/activation.h"
#include "ops/parts.h"

#include <stdio.h>
#include <string.h>

enum { GAMMA, BETA, MEAN, VARIANCE, PARAMS };

struct options {
    double momentum, epsilon;
    int activation;
    bool center, scale;
};

static const struct lk_option table[] = {
    {.name = "momentum",
     .kind = LK_OPTION_REAL,
     .offset = offsetof(struct options, momentum),
     .max = 1,
     .standard = "0.99",
     .help = "what a step leaves of the moving averages"},
    {.name = "epsilon",
     .kind = LK_OPTION_REAL,
     .offset = offsetof(struct options, epsilon),
     .min = 1e-13,
     .max = 1,
     .standard = "0.001",
     .help = "added to the variance"},
    LK_ACTIVATION_OPTION(struct options, activation),
    {.name = "center",
     .kind = LK_OPTION_BOOL,
     .offset = offsetof(struct options, center),
     .standard = "true",
     .help = "whether beta is trained; else it stays 0"},
    {.name = "scale",
     .kind = LK_OPTION_BOOL,
     .offset = offsetof(struct options, scale),
     .standard = "true",
     .help = "whether gamma is trained; else it stays 1"},
    {0},
};

static enum lk_status infer(struct lk_op_shapes *shapes)
{
    static const struct lk_param_spec params[PARAMS] = {
        [GAMMA] = {.name = "gamma", .init = LK_INIT_ONES},
        [BETA] = {.name = "beta", .init = LK_INIT_ZEROS},
        [MEAN] = {.name = "moving_mean", .init = LK_INIT_ZEROS, .is_tracked = true},
        [VARIANCE] = {.name = "moving_variance", .init = LK_INIT_ONES, .is_tracked = true},
    };
    const struct options *o = shapes->options;
    const struct lk_shape *x = &shapes->x[0];
    char text[96];
    lk_shape_print_hwc(x, text, sizeof text);
    if (shapes->x_dtype[0] != LK_F32)
        return lk_fail(LK_E_SHAPE, "batch_norm takes numbers, not labels");
    if (x->rank != 1 && x->rank != 3)
        return lk_fail(LK_E_SHAPE,
                       "batch_norm takes a vector [c] or an image [h, w, c], not %s", text);
    shapes->y = *x;
    for (int j = 0; j < PARAMS; j++) {
        shapes->param[j] = params[j];
        shapes->param[j].shape = (struct lk_shape){1, {x->dim[0]}};
    }
    shapes->param[GAMMA].is_tracked = !o->scale; /* and its dw is 0 */
    shapes->param[BETA].is_tracked = !o->center;
    shapes->params = PARAMS;
    shapes->backward_reads_x = true;
    shapes->backward_reads_y = shapes->is_gate = o->activation == LK_RELU;
    shapes->flops = 7.0 * (double)lk_shape_count(x);
    return LK_OK;
}

struct state {
    struct lk_kernel *sums, *forward, *gradients, *backward; /* sums, gradients: over parts of
                                                              * the image */
    bool is_moving; /* it normalizes by the moving averages */
    int64_t channels, pixels, parts, part_pixels;
    int64_t live; /* in plane tiles: pixels of a plane, whose vectors are `pixels`; else 0 */
};

/* Divides the image into parts that are summed apart. They decide bits, so they follow from the
 * shape and the device's class alone. */
static void choose_parts(const struct lk_op_setup *setup, struct state *s)
{
    enum { GROUPS = 4096, LEAST_PIXELS = 32 }; /* as many as a large GPU holds at once */
    const int64_t pixels = setup->tiling.shard_tiles * s->pixels;
    s->part_pixels = lk_op_part_pixels(setup, s->channels, pixels);
    if (setup->tiling.vector == 1)
        s->part_pixels = lk_divide_up(pixels, lk_least(lk_divide_up(GROUPS, s->channels),
                                                       lk_divide_up(pixels, LEAST_PIXELS)));
    s->parts = lk_divide_up(pixels, s->part_pixels);
}

static void options_of(const struct state *s, bool relu, char *text, size_t bytes)
{
    char live[32] = "";
    if (s->live > 0)
        snprintf(live, sizeof live, " -DLIVE=%lld", (long long)s->live);
    snprintf(text, bytes, "-DRELU=%d -DALONE=%d -DMOVING=%d%s", relu, s->parts == 1,
             s->is_moving, live);
}

static enum lk_status announce(const struct lk_op_setup *setup, struct state *s)
{
    const struct options *o = setup->options;
    const bool in_parts = !s->is_moving && s->parts > 1, relu = o->activation == LK_RELU;
    char text[128];
    options_of(s, relu, text, sizeof text);
    LK_TRY(lk_op_kernel(setup, "ops/norm/batch_norm", "batch_norm_forward", text, &s->forward));
    if (in_parts)
        LK_TRY(lk_op_kernel(setup, "ops/norm/batch_norm", "batch_norm_sums", text, &s->sums));
    if (!setup->training)
        return LK_OK;
    options_of(s, relu && !setup->dy_is_gated, text, sizeof text);
    strcat(strcat(text, o->scale ? "" : " -DSCALE=0"), o->center ? "" : " -DCENTER=0");
    if (in_parts)
        LK_TRY(lk_op_kernel(setup, "ops/norm/batch_norm", "batch_norm_gradients", text,
                            &s->gradients));
    return lk_op_kernel(setup, "ops/norm/batch_norm", "batch_norm_backward", text,
                        &s->backward);
}

static enum lk_status prepare(struct lk_op_setup *setup)
{
    const struct lk_shape *x = &setup->shapes.x[0];
    const size_t real = lk_dtype_bytes(setup->real);
    void *memory;
    LK_TRY(lk_arena_allocate(setup->arena, sizeof(struct state), &memory));
    struct state *s = setup->state = memory;
    s->is_moving = !setup->training || !setup->wants_dw;
    s->channels = x->dim[0];
    s->pixels = lk_shape_count(x) / s->channels;
    if (setup->tiling.planes && x->rank == 3) {
        s->live = s->pixels;
        s->pixels = lk_divide_up(s->live, setup->tiling.lanes);
    }
    choose_parts(setup, s);
    if (!s->is_moving) {
        setup->saved_bytes = (size_t)(setup->tiling.shards * s->channels * 2) * real;
        setup->workspace_bytes = s->parts > 1 ? setup->saved_bytes * (size_t)s->parts : 0;
    }
    return announce(setup, s);
}

static struct lk_grid grid_of(const struct lk_op_setup *setup)
{
    const struct state *s = setup->state;
    return (struct lk_grid){{s->channels, setup->tiling.shards, s->parts}, lk_op_items(setup)};
}

/* The last arguments of all kernels. */
#define AREA(setup, s, run)                                                                    \
    LK_INT((s)->channels), LK_INT((s)->pixels), LK_INT((s)->parts), LK_INT((s)->part_pixels),  \
        LK_INT((run)->samples), LK_INT((setup)->tiling.shard_samples),                         \
        LK_INT((setup)->tiling.shard_tiles),                                                   \
        LK_LOCAL((setup)->tiling.lanes *(int64_t)lk_dtype_bytes((setup)->real))

static enum lk_status forward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct options *o = setup->options;
    const struct state *s = setup->state;
    if (s->sums)
        LK_TRY(LK_ENQUEUE(s->sums, grid_of(setup), LK_BUF(run->x[0]), LK_BUF(run->workspace),
                          AREA(setup, s, run)));
    return LK_ENQUEUE(s->forward, grid_of(setup), LK_BUF(run->x[0]), LK_BUF(run->workspace),
                      LK_BUF(run->w[GAMMA]), LK_BUF(run->w[BETA]), LK_BUF(run->w[MEAN]),
                      LK_BUF(run->w[VARIANCE]), LK_BUF(run->y), LK_BUF(run->saved),
                      LK_REAL(o->epsilon), AREA(setup, s, run));
}

static enum lk_status backward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct options *o = setup->options;
    const struct state *s = setup->state;
    const bool reads_y = o->activation == LK_RELU && !setup->dy_is_gated;
    const struct lk_buffer *y = reads_y ? run->y : NULL;
    if (s->gradients)
        LK_TRY(LK_ENQUEUE(s->gradients, grid_of(setup), LK_BUF(run->x[0]), LK_BUF(y),
                          LK_BUF(run->dy), LK_BUF(run->saved), LK_BUF(run->workspace),
                          LK_REAL(o->epsilon), AREA(setup, s, run)));
    return LK_ENQUEUE(s->backward, grid_of(setup), LK_BUF(run->x[0]), LK_BUF(y),
                      LK_BUF(run->dy), LK_BUF(run->w[GAMMA]), LK_BUF(run->w[MEAN]),
                      LK_BUF(run->w[VARIANCE]), LK_BUF(run->saved), LK_BUF(run->workspace),
                      LK_BUF(run->dx[0]), LK_BUF(run->dw[GAMMA]), LK_BUF(run->dw[BETA]),
                      LK_BUF(run->dw[MEAN]), LK_BUF(run->dw[VARIANCE]), LK_INT(run->dw_stride),
                      LK_REAL(o->epsilon), LK_REAL(1 - o->momentum), LK_BUF(run->loss_scale),
                      AREA(setup, s, run));
}

static bool absorb(void *options, const char *next, const char *next_options)
{
    (void)next_options;
    return lk_activation_absorb(&((struct options *)options)->activation, next);
}

const struct lk_op lk_op_batch_norm = {
    .name = "batch_norm",
    .options = table,
    .options_bytes = sizeof(struct options),
    .min_inputs = 1,
    .max_inputs = 1,
    .planes = LK_PLANES_KNOWN,
    .trains_planes = true,
    .infer = infer,
    .prepare = prepare,
    .forward = forward,
    .backward = backward,
    .absorb = absorb,
};

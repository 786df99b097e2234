/* A dense layer: y[k] = act(b[k] + sum_c w[c][k] x[c]), on vectors or on every step of a
 * sequence. The kernels and the orders of their sums are in cl/products/matrix/matrix.cl. */
#include "base/fail.h"
#include "ops/activation.h"
#include "ops/conv2d.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Of local memory, where half of it is as much, for so many rows of weights. */
enum { PACKED_BYTES = 24 << 10, PACKED_ROWS = 24 };

struct options {
    int64_t units;
    bool bias;
    int activation;
};

static const struct lk_option table[] = {
    {.name = "units",
     .kind = LK_OPTION_INT,
     .offset = offsetof(struct options, units),
     .count = 1,
     .min = 1,
     .max = 1 << 22,
     .help = "outputs"},
    {.name = "bias",
     .kind = LK_OPTION_BOOL,
     .offset = offsetof(struct options, bias),
     .standard = "true",
     .help = "add a learned number to every output"},
    LK_ACTIVATION_OPTION(struct options),
    {0},
};

static enum lk_status infer(struct lk_op_shapes *shapes)
{
    const struct options *o = shapes->options;
    const struct lk_shape *x = &shapes->x[0];
    char text[96];
    lk_shape_print(x, text, sizeof text);
    if (shapes->x_dtype[0] != LK_F32)
        return lk_fail(LK_E_SHAPE, "dense takes numbers, not labels");
    if (x->rank != 1 && x->rank != 2)
        return lk_fail(LK_E_SHAPE, "dense takes a vector [c] or a sequence [t, c], not %s%s",
                       text, x->rank == 3 ? ": flatten first" : "");
    const int64_t channels = x->dim[x->rank - 1], steps = x->rank == 2 ? x->dim[0] : 1;
    shapes->y = *x;
    shapes->y.dim[x->rank - 1] = o->units;
    shapes->param[0] = (struct lk_param_spec){.name = "weight",
                                              .shape = {2, {channels, o->units}},
                                              .init = LK_INIT_GLOROT_UNIFORM,
                                              .fan_in = channels,
                                              .fan_out = o->units};
    shapes->param[1] =
        (struct lk_param_spec){.name = "bias", .shape = {1, {o->units}}, LK_INIT_ZEROS};
    if (lk_shape_count(&shapes->param[0].shape) < 0 || lk_shape_count(&shapes->y) < 0)
        return lk_fail(LK_E_SHAPE, "dense: %lld units of an input %s are too many",
                       (long long)o->units, text);
    shapes->params = o->bias ? 2 : 1;
    shapes->backward_reads_x = true;
    shapes->backward_reads_y = o->activation == LK_RELU;
    shapes->scales = true;
    shapes->flops = 2.0 * (double)channels * (double)o->units * (double)steps;
    return LK_OK;
}

/* Sums a work-item holds: rows x cols vectors. */
struct block {
    int rows, cols;
};

struct state {
    struct lk_kernel *forward, *data, *gradient, *weight, *bias;
    struct block product, panel;
    int pieces;
    int64_t channels, units;
    int64_t steps; /* of a sequence: they count as tiles */
    int64_t panels;

    /* On a GPU, a wide layer is a convolution of images of one pixel. */
    struct lk_op_setup image; /* node NULL: it is not */
    struct lk_conv2d_options image_options;
};

static int64_t tiles_of(const struct lk_op_setup *setup)
{
    const struct state *s = setup->state;
    return setup->tiling.tiles * s->steps;
}

static int64_t shard_tiles_of(const struct lk_op_setup *setup)
{
    const struct state *s = setup->state;
    return setup->tiling.shard_tiles * s->steps;
}

/* As many sums as the registers hold beside the operands: 24 where a vector fills a 64-byte
 * register, else 12, over no more columns than there are. */
static struct block choose_block(const struct lk_op_setup *setup, int64_t columns)
{
    const size_t bytes = (size_t)setup->tiling.vector * lk_dtype_bytes(setup->real);
    const int sums = bytes == 64 ? 24 : 12;
    if (setup->tiling.vector == 1)
        return (struct block){8, 1};
    struct block block = {.cols = sums / 6};
    while (block.cols > 1 && block.cols / 2 >= columns)
        block.cols /= 2;
    block.rows = sums / block.cols < 12 ? sums / block.cols : 12;
    return block;
}

/* The step that cuts `count` (in multiples of `unit`) so that, with `groups` groups in other
 * dimensions, every compute unit has work. */
static int64_t choose_step(const struct lk_op_setup *setup, int64_t count, int64_t unit,
                           int64_t groups)
{
    const struct lk_device_info *info = lk_device_info(setup->device);
    const int64_t wanted = info->compute_units * (setup->tiling.vector == 1 ? 32 : 8);
    const int64_t units = lk_divide_up(count, unit), parts = lk_divide_up(wanted, groups);
    return lk_divide_up(units, parts < units ? parts : units) * unit;
}

/* Weights go through local memory, part of the depth at a time: halves do not hold what sums
 * are by then. */
static bool is_packed(const struct lk_op_setup *setup, bool forward)
{
    return forward && setup->tiling.vector > 1 && !setup->stores_half;
}

static size_t packed_bytes(const struct lk_op_setup *setup)
{
    const size_t half = lk_device_info(setup->device)->local_bytes / 2;
    return half < PACKED_BYTES ? half : PACKED_BYTES;
}

static enum lk_status create_product(const struct lk_op_setup *setup, bool forward,
                                     struct lk_kernel **kernel)
{
    const struct options *o = setup->options;
    const struct state *s = setup->state;
    char text[160];
    const size_t row = packed_bytes(setup) / PACKED_ROWS;
    const int depth =
        setup->stores_half ? INT32_MAX / 2 : (int)(row / lk_dtype_bytes(setup->real));
    snprintf(text, sizeof text,
             "-DFORWARD=%d -DBIAS=%d -DROWS=%d -DCOLS=%d -DPIECES=%d -DDEPTH=%d "
             "-DPACK=%d",
             forward, forward && o->bias, s->product.rows, s->product.cols, s->pieces, depth,
             is_packed(setup, forward));
    return lk_op_kernel(setup, "products/matrix/matrix", "dense_product", text, kernel);
}

static enum lk_status create_gradients(struct lk_op_setup *setup)
{
    const struct options *o = setup->options;
    struct state *s = setup->state;
    char text[80];
    snprintf(text, sizeof text, "-DRELU=%d -DROWS=%d -DCOLS=%d", o->activation == LK_RELU,
             s->panel.rows, s->panel.cols);
    if (setup->wants_dx[0])
        LK_TRY(create_product(setup, false, &s->data));
    if (setup->wants_dw || o->activation == LK_RELU)
        LK_TRY(lk_op_kernel(setup, "products/matrix/matrix", "dense_gradient", text,
                            &s->gradient));
    if (setup->wants_dw)
        LK_TRY(lk_op_kernel(setup, "products/matrix/matrix", "dense_weight", text, &s->weight));
    if (setup->wants_dw && o->bias)
        LK_TRY(lk_op_kernel(setup, "products/matrix/matrix", "dense_bias", text, &s->bias));
    const int64_t real = (int64_t)lk_dtype_bytes(setup->real);
    const int64_t lanes = tiles_of(setup) * setup->tiling.lanes;
    const int64_t width = (int64_t)s->panel.cols * setup->tiling.lanes;
    const int64_t kept = o->activation == LK_RELU ? s->units : 0;
    const int64_t turned = setup->wants_dw ? s->panels * width : 0;
    setup->workspace_bytes = (size_t)((kept + turned) * lanes * real);
    return LK_OK;
}

static struct lk_tiling image_tiling(const struct lk_op_setup *setup)
{
    struct lk_tiling tiling = setup->tiling;
    tiling.tiles = tiles_of(setup);
    tiling.shard_tiles = shard_tiles_of(setup);
    return tiling;
}

/* Whether the blocks of a GPU have enough to do. */
static bool is_wide(const struct lk_op_setup *setup, const struct lk_op_setup *image)
{
    const struct lk_conv2d_options *o = image->options;
    struct lk_conv2d_shape shape;
    if (setup->tiling.vector > 1 || lk_conv2d_shape(o, &image->shapes.x[0], &shape) != LK_OK)
        return false;
    const double cost = lk_conv2d_gpu.cost(image, &shape, LK_CONV2D_FORWARD);
    return cost >= 0 && cost < lk_conv2d_direct.cost(image, &shape, LK_CONV2D_FORWARD);
}

static void describe_image(const struct lk_op_setup *setup, struct state *s)
{
    const struct options *o = setup->options;
    s->image_options = (struct lk_conv2d_options){.filters = s->units,
                                                  .kernel = {1, 1},
                                                  .stride = {1, 1},
                                                  .dilation = {1, 1},
                                                  .groups = 1,
                                                  .padding = "valid",
                                                  .bias = o->bias,
                                                  .activation = o->activation};
    s->image = *setup;
    s->image.state = NULL;
    s->image.options = &s->image_options;
    s->image.shapes.x[0] = (struct lk_shape){3, {s->channels, 1, 1}};
    s->image.tiling = image_tiling(setup);
}

static enum lk_status prepare_image(struct lk_op_setup *setup, struct state *s)
{
    LK_TRY(lk_op_conv2d.prepare(&s->image));
    setup->workspace_bytes = s->image.workspace_bytes;
    return LK_OK;
}

static void measure(const struct lk_op_setup *setup, struct state *s)
{
    const struct lk_shape *x = &setup->shapes.x[0];
    s->steps = x->rank == 2 ? x->dim[0] : 1;
    s->channels = x->dim[x->rank - 1];
    s->units = setup->shapes.y.dim[x->rank - 1];
    describe_image(setup, s);
}

static enum lk_status prepare(struct lk_op_setup *setup)
{
    const struct lk_tiling *tiling = &setup->tiling;
    void *memory;
    LK_TRY(lk_arena_take(setup->arena, sizeof(struct state), &memory));
    struct state *s = setup->state = memory;
    measure(setup, s);
    if (is_wide(setup, &s->image))
        return prepare_image(setup, s);
    s->image.node = NULL;
    s->product = choose_block(setup, tiles_of(setup));
    s->panel = choose_block(setup, lk_divide_up(s->units, tiling->lanes));
    s->panels = lk_divide_up(s->units, (int64_t)s->panel.cols * tiling->lanes);
    s->pieces = tiling->vector > 1 ? PACKED_ROWS / s->product.rows : 1;
    LK_TRY(create_product(setup, true, &s->forward));
    return setup->training ? create_gradients(setup) : LK_OK;
}

static enum lk_status enqueue_product(const struct lk_op_setup *setup, struct lk_kernel *kernel,
                                      const struct lk_op_run *run, const struct lk_buffer *x,
                                      struct lk_buffer *y)
{
    const struct options *o = setup->options;
    const struct state *s = setup->state;
    const bool forward = kernel == s->forward;
    const size_t real = lk_dtype_bytes(setup->real);
    const size_t local = is_packed(setup, forward) ? packed_bytes(setup) : real;
    const double least = forward && o->activation == LK_RELU ? 0 : -INFINITY;
    const int64_t rows = forward ? s->units : s->channels;
    const int64_t depth = forward ? s->channels : s->units;
    const int64_t blocks = lk_divide_up(rows, (int64_t)s->pieces * s->product.rows);
    const int64_t tiles = tiles_of(setup);
    const int64_t step = choose_step(setup, tiles, s->product.cols, blocks);
    const struct lk_grid grid = {{blocks, lk_divide_up(tiles, step), 1}, lk_op_items(setup)};
    return LK_ENQUEUE(kernel, grid, LK_BUF(run->w[0]), LK_BUF(forward ? run->w[1] : NULL),
                      LK_BUF(x), LK_BUF(y), LK_REAL(least), LK_INT(rows), LK_INT(depth),
                      LK_INT(tiles), LK_INT(step), LK_LOCAL(local));
}

static enum lk_status forward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    struct state *s = setup->state;
    if (!s->image.node)
        return enqueue_product(setup, s->forward, run, run->x[0], run->y);
    s->image.tiling = image_tiling(setup);
    return lk_op_conv2d.forward(&s->image, run);
}

static enum lk_status enqueue_weight(const struct lk_op_setup *setup,
                                     const struct lk_op_run *run)
{
    const struct state *s = setup->state;
    const int64_t shards = setup->tiling.shards;
    const int64_t step = choose_step(setup, s->channels, s->panel.rows, s->panels * shards);
    const struct lk_grid grid = {{s->panels, lk_divide_up(s->channels, step), shards},
                                 lk_op_items(setup)};
    return LK_ENQUEUE(s->weight, grid, LK_BUF(run->x[0]), LK_BUF(run->workspace),
                      LK_BUF(run->dw[0]), LK_INT(s->channels), LK_INT(s->units),
                      LK_INT(tiles_of(setup)), LK_INT(shard_tiles_of(setup)),
                      LK_INT(run->dw_stride), LK_INT(step));
}

static enum lk_status backward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct options *o = setup->options;
    struct state *s = setup->state;
    const bool relu = o->activation == LK_RELU;
    const int items = lk_op_items(setup);
    const int64_t tiles = tiles_of(setup);
    if (s->image.node) {
        s->image.tiling = image_tiling(setup);
        return lk_op_conv2d.backward(&s->image, run);
    }
    if (s->gradient)
        LK_TRY(LK_ENQUEUE(s->gradient, ((struct lk_grid){{s->panels, tiles, 1}, items}),
                          LK_BUF(run->dy), LK_BUF(relu ? run->y : NULL), LK_BUF(run->workspace),
                          LK_INT(s->units), LK_INT(tiles), LK_INT(setup->wants_dw)));
    if (run->dx[0])
        LK_TRY(
            enqueue_product(setup, s->data, run, relu ? run->workspace : run->dy, run->dx[0]));
    if (run->dw[0])
        LK_TRY(enqueue_weight(setup, run));
    if (run->dw[1])
        LK_TRY(
            LK_ENQUEUE(s->bias, ((struct lk_grid){{s->panels, setup->tiling.shards, 1}, items}),
                       LK_BUF(run->workspace), LK_BUF(run->dw[1]), LK_INT(s->units),
                       LK_INT(tiles), LK_INT(shard_tiles_of(setup)), LK_INT(run->dw_stride)));
    return LK_OK;
}

static void release(struct lk_op_setup *setup)
{
    struct state *s = setup->state;
    if (!s)
        return;
    if (s->image.node)
        lk_op_conv2d.release(&s->image);
    lk_kernel_destroy(s->forward);
    lk_kernel_destroy(s->data);
    lk_kernel_destroy(s->gradient);
    lk_kernel_destroy(s->weight);
    lk_kernel_destroy(s->bias);
}

static bool choice(const struct lk_op_setup *setup, int index, struct lk_choice *choice)
{
    struct state state = {0};
    struct lk_op_setup like = *setup;
    like.state = &state;
    measure(&like, &state);
    return is_wide(&like, &state.image) && lk_op_conv2d.choice(&state.image, index, choice);
}

static bool device_choice(const struct lk_op_setup *setup, struct lk_choice *choice)
{
    struct state state = {0};
    struct lk_op_setup like = *setup;
    like.state = &state;
    measure(&like, &state);
    return is_wide(&like, &state.image) && lk_op_conv2d.device_choice(&state.image, choice);
}

static bool absorb(void *options, const char *next, const char *next_options)
{
    (void)next_options;
    return lk_activation_absorb(&((struct options *)options)->activation, next);
}

const struct lk_op lk_op_dense = {
    .name = "dense",
    .options = table,
    .options_bytes = sizeof(struct options),
    .min_inputs = 1,
    .max_inputs = 1,
    .infer = infer,
    .prepare = prepare,
    .forward = forward,
    .backward = backward,
    .release = release,
    .choice = choice,
    .device_choice = device_choice,
    .absorb = absorb,
};

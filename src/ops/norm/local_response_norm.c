/* Local response normalization: a number is divided by a power of what the channels around it
 * hold, y[c] = x[c] (bias + alpha / size sum of x[j]^2)^-beta over the `size` channels from
 * c - size / 2 on. source: Krizhevsky, Sutskever, Hinton, ImageNet Classification with Deep
 * Convolutional Neural Networks (2012), 3.3; alpha / size as in Caffe, PyTorch, ONNX */
#include "base/fail.h"
#include "ops/args.h"
#include "ops/op.h"

#include <stdio.h>

struct options {
    int64_t size;
    double alpha, beta, bias;
};

#define REAL(field, least, most, standard_, help_)                                             \
    {                                                                                          \
        .name = #field, .kind = LK_OPTION_REAL, .offset = offsetof(struct options, field),     \
        .min = least, .max = most, .standard = standard_, .help = help_                        \
    }

static const struct lk_option table[] = {
    {.name = "size",
     .kind = LK_OPTION_INT,
     .offset = offsetof(struct options, size),
     .count = 1,
     .min = 1,
     .max = 127,
     .standard = "5",
     .help = "channels whose squares are added, as many before as behind, or one more before"},
    REAL(alpha, 0, 1e6, "0.0001", "by which their mean square is multiplied"),
    REAL(beta, 0, 100, "0.75", "the power"),
    REAL(bias, 1e-6, 1e6, "1", "added before the power is taken"),
    {0},
};

static enum lk_status infer(struct lk_op_shapes *shapes)
{
    const struct options *o = shapes->options;
    const struct lk_shape *x = &shapes->x[0];
    char text[96];
    lk_shape_print_hwc(x, text, sizeof text);
    if (shapes->x_dtype[0] != LK_F32)
        return lk_fail(LK_E_SHAPE, "local_response_norm takes numbers, not labels");
    if (x->rank < 1 || x->rank > 3)
        return lk_fail(LK_E_SHAPE,
                       "local_response_norm takes a vector [c], a sequence [t, c] or an image "
                       "[h, w, c], not %s",
                       text);
    shapes->y = *x;
    shapes->backward_reads_x = true;
    shapes->flops = (double)lk_shape_count(x) * (double)(2 * o->size + 8);
    return LK_OK;
}

struct state {
    struct lk_kernel *forward, *backward;
    struct lk_response_norm area;
    int64_t time_steps; /* which count as tiles */
    int block;          /* pixels of a work-group */
};

/* Powers that roots make are made by roots: a logarithm and an exponential take far longer. */
static int power_of(double beta)
{
    return beta == 0.5 ? 50 : beta == 0.75 ? 75 : beta == 1 ? 100 : 0;
}

static enum lk_status prepare(struct lk_op_setup *setup)
{
    enum { SIDE_BY_SIDE = 16, MOST_WIDE = 16 };
    const struct options *o = setup->options;
    const struct lk_shape *x = &setup->shapes.x[0];
    char text[96];
    void *memory;
    LK_TRY(lk_arena_allocate(setup->arena, sizeof(struct state), &memory));
    struct state *s = setup->state = memory;
    s->time_steps = x->rank == 2 ? x->dim[0] : 1;
    s->area.pixels = x->rank == 3 ? x->dim[1] * x->dim[2] : 1;
    s->area.channels = lk_shape_count(x) / (s->time_steps * s->area.pixels);
    const bool is_wide = setup->tiling.vector > 1 && s->area.pixels >= SIDE_BY_SIDE;
    s->block = is_wide && o->size <= MOST_WIDE ? SIDE_BY_SIDE : 1;
    snprintf(text, sizeof text, "-DSIZE=%d -DPOWER=%d -DBLOCK=%d -DSTREAM=%d", (int)o->size,
             power_of(o->beta), s->block, lk_op_streams(setup, x));
    LK_TRY(lk_op_kernel(setup, "ops/norm/local_response_norm", "response_forward", text,
                        &s->forward));
    if (setup->training)
        LK_TRY(lk_op_kernel(setup, "ops/norm/local_response_norm", "response_backward", text,
                            &s->backward));
    return LK_OK;
}

static struct lk_grid grid_of(const struct lk_op_setup *setup)
{
    const struct state *s = setup->state;
    return (struct lk_grid){
        {lk_divide_up(s->area.pixels, s->block), setup->tiling.tiles * s->time_steps, 1},
        lk_op_items(setup)};
}

static enum lk_status forward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct options *o = setup->options;
    const struct state *s = setup->state;
    return LK_ENQUEUE(s->forward, grid_of(setup), LK_BUF(run->x[0]), LK_BUF(run->y),
                      LK_REAL(o->alpha / (double)o->size), LK_REAL(o->beta), LK_REAL(o->bias),
                      LK_STRUCT(&s->area));
}

static enum lk_status backward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct options *o = setup->options;
    const struct state *s = setup->state;
    const int64_t rows = 2 * o->size * s->block;
    if (!run->dx[0])
        return LK_OK;
    return LK_ENQUEUE(
        s->backward, grid_of(setup), LK_BUF(run->x[0]), LK_BUF(run->dy), LK_BUF(run->dx[0]),
        LK_REAL(o->alpha / (double)o->size), LK_REAL(o->beta), LK_REAL(o->bias),
        LK_STRUCT(&s->area),
        LK_LOCAL(rows * setup->tiling.lanes * (int64_t)lk_dtype_bytes(setup->real)));
}

const struct lk_op lk_op_local_response_norm = {
    .name = "local_response_norm",
    .options = table,
    .options_bytes = sizeof(struct options),
    .min_inputs = 1,
    .max_inputs = 1,
    .infer = infer,
    .prepare = prepare,
    .forward = forward,
    .backward = backward,
};

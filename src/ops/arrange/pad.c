/* Puts a border round an image: a constant, or the image mirrored at its edges. */
#include "base/fail.h"
#include "ops/args.h"
#include "ops/arrange/box.h"
#include "ops/window.h"

enum { CONSTANT, REFLECT };
static const char *const modes[] = {"constant", "reflect", NULL};

struct options {
    char padding[LK_PADDING_BYTES];
    int64_t channels[2];
    int mode;
    double value;
};

static const struct lk_option table[] = {
    {.name = "padding",
     .kind = LK_OPTION_TEXT,
     .offset = offsetof(struct options, padding),
     .count = LK_PADDING_BYTES,
     .standard = "0",
     .help = "pixels put round it: n, rows,columns or top,bottom,left,right"},
    {.name = "channels",
     .kind = LK_OPTION_INT,
     .offset = offsetof(struct options, channels),
     .count = 2,
     .max = 1 << 20,
     .standard = "0",
     .help = "channels put before and behind its own"},
    {.name = "mode",
     .kind = LK_OPTION_CHOICE,
     .offset = offsetof(struct options, mode),
     .standard = "constant",
     .choices = modes,
     .help = "what is put there: the value; reflect: the pixels inside the edge, mirrored"},
    {.name = "value",
     .kind = LK_OPTION_REAL,
     .offset = offsetof(struct options, value),
     .standard = "0",
     .help = "the constant"},
    {0},
};

struct state {
    struct lk_kernel *forward, *backward; /* of reflect */
};

/* The pixels at the top, bottom, left and right are border[0..3]. */
static enum lk_status check_reflection(const struct lk_op_shapes *shapes,
                                       const int64_t border[4])
{
    const struct options *o = shapes->options;
    const struct lk_shape *x = &shapes->x[0];
    char text[64];
    if (o->channels[0] > 0 || o->channels[1] > 0)
        return lk_fail(LK_E_ARGUMENT, "pad: channels cannot be mirrored, rows and columns can");
    lk_shape_print_hwc(x, text, sizeof text);
    for (int i = 0; i < 4; i++)
        if (border[i] >= x->dim[1 + i / 2])
            return lk_fail(LK_E_SHAPE,
                           "pad: %s is too small to be mirrored in a border of %lld", text,
                           (long long)border[i]);
    return LK_OK;
}

static enum lk_status infer(struct lk_op_shapes *shapes)
{
    const struct options *o = shapes->options;
    int64_t border[4];
    LK_TRY(lk_op_check_image(shapes, "pad"));
    LK_TRY(lk_padding_read(o->padding, border, "pad"));
    if (o->mode == REFLECT)
        LK_TRY(check_reflection(shapes, border));
    struct lk_shape y = shapes->x[0];
    const int64_t more[3] = {o->channels[0] + o->channels[1], border[0] + border[1],
                             border[2] + border[3]};
    for (int i = 0; i < 3; i++)
        if (__builtin_add_overflow(y.dim[i], more[i], &y.dim[i]))
            y.dim[i] = INT64_MAX;
    LK_TRY(lk_arrange_set(shapes, &y, "pad"));
    shapes->scales = o->mode == REFLECT || o->value == 0;
    return LK_OK;
}

/* --- kernels --------------------------------------------------------------------------- */

static enum lk_status prepare(struct lk_op_setup *setup)
{
    const struct options *o = setup->options;
    void *memory;
    if (o->mode == CONSTANT)
        return lk_box_prepare(setup);
    LK_TRY(lk_arena_allocate(setup->arena, sizeof(struct state), &memory));
    struct state *state = setup->state = memory;
    LK_TRY(lk_op_kernel(setup, "ops/arrange/pad", "reflect_forward", NULL, &state->forward));
    if (setup->training)
        LK_TRY(
            lk_op_kernel(setup, "ops/arrange/pad", "reflect_backward", NULL, &state->backward));
    return LK_OK;
}

/* A launch over the rows of what is written, y or dx. */
static enum lk_status enqueue_reflection(const struct lk_op_setup *setup,
                                         struct lk_kernel *kernel, const struct lk_buffer *from,
                                         struct lk_buffer *to)
{
    const struct state *state = setup->state;
    const struct options *o = setup->options;
    const struct lk_shape *x = &setup->shapes.x[0], *y = &setup->shapes.y;
    const int64_t rows = kernel == state->forward ? y->dim[1] : x->dim[1];
    const int64_t each = setup->tiling.vector == 1 ? 1 : rows;
    const struct lk_grid grid = {{lk_divide_up(rows, each), x->dim[0], setup->tiling.tiles},
                                 lk_op_items(setup)};
    int64_t border[4];
    LK_TRY(lk_padding_read(o->padding, border, "pad"));
    const struct lk_pool planes = {.height = x->dim[1],
                                   .width = x->dim[2],
                                   .out_h = y->dim[1],
                                   .out_w = y->dim[2],
                                   .before_h = border[0],
                                   .before_w = border[2],
                                   .each = each};
    return LK_ENQUEUE(kernel, grid, LK_BUF(from), LK_BUF(to), LK_STRUCT(&planes));
}

/* x lies in y behind so many channels, rows and columns. */
static enum lk_status find_place(const struct lk_op_setup *setup, int64_t at[LK_MOST_AXES])
{
    const struct options *o = setup->options;
    int64_t border[4];
    LK_TRY(lk_padding_read(o->padding, border, "pad"));
    at[0] = o->channels[0];
    at[1] = border[0];
    at[2] = border[2];
    return LK_OK;
}

static enum lk_status forward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct options *o = setup->options;
    const struct state *state = setup->state;
    int64_t at[LK_MOST_AXES];
    if (o->mode == REFLECT)
        return enqueue_reflection(setup, state->forward, run->x[0], run->y);
    LK_TRY(find_place(setup, at));
    const struct lk_box box = lk_box_around(&setup->shapes.x[0], &setup->shapes.y, at);
    return lk_box_enqueue(setup, &box, run->x[0], run->y, o->value);
}

static enum lk_status backward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct options *o = setup->options;
    const struct state *state = setup->state;
    int64_t at[LK_MOST_AXES];
    if (!run->dx[0])
        return LK_OK;
    if (o->mode == REFLECT)
        return enqueue_reflection(setup, state->backward, run->dy, run->dx[0]);
    LK_TRY(find_place(setup, at));
    const struct lk_box box = lk_box_out_of(&setup->shapes.y, &setup->shapes.x[0], at);
    return lk_box_enqueue(setup, &box, run->dy, run->dx[0], 0);
}

const struct lk_op lk_op_pad = {
    .name = "pad",
    .options = table,
    .options_bytes = sizeof(struct options),
    .min_inputs = 1,
    .max_inputs = 1,
    .infer = infer,
    .prepare = prepare,
    .forward = forward,
    .backward = backward,
};

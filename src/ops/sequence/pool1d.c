/* Pooling over time: the largest or the mean number of each channel in a window of time steps,
 * or in all of them. Steps behind the length are in no window. */
#include "base/fail.h"
#include "ops/sequence/steps.h"

struct options {
    int64_t size, stride;
    int padding;
};

static const char *const paddings[] = {"valid", "same", NULL};

static const struct lk_option table[] = {
    {.name = "size",
     .kind = LK_OPTION_INT,
     .offset = offsetof(struct options, size),
     .count = 1,
     .min = 1,
     .max = 1 << 20,
     .standard = "2",
     .help = "time steps of a window"},
    {.name = "stride",
     .kind = LK_OPTION_INT,
     .offset = offsetof(struct options, stride),
     .count = 1,
     .max = 1 << 20,
     .standard = "0",
     .help = "time steps from one window to the next; 0: as many as it has"},
    {.name = "padding",
     .kind = LK_OPTION_CHOICE,
     .offset = offsetof(struct options, padding),
     .standard = "valid",
     .choices = paddings,
     .help = "valid: none; same: a window for every stride"},
    {0},
};

static const struct lk_option no_options[] = {{0}};

enum { WINDOWS, GLOBAL };

static enum lk_status place(const struct lk_op_shapes *shapes, int kind, const char *name,
                            struct lk_step_windows *w)
{
    const struct options *o = shapes->options;
    const int64_t steps = shapes->x[0].dim[0];
    *w = (struct lk_step_windows){
        .channels = shapes->x[0].dim[1], .size = steps, .stride = steps, .gap = 1};
    if (kind == GLOBAL)
        return lk_steps_place(w, steps, LK_STEPS_SAME, name);
    w->size = o->size;
    w->stride = o->stride ? o->stride : o->size;
    return lk_steps_place(w, steps, (enum lk_steps_padding)o->padding, name);
}

static enum lk_status infer(struct lk_op_shapes *shapes, int kind, const char *name)
{
    struct lk_step_windows w;
    LK_TRY(lk_steps_check(shapes, name));
    LK_TRY(place(shapes, kind, name, &w));
    shapes->y = kind == GLOBAL ? (struct lk_shape){1, {w.channels}}
                               : (struct lk_shape){2, {w.count, w.channels}};
    shapes->scales = true;
    shapes->flops = (double)(w.count * w.channels) * (double)w.size;
    return LK_OK;
}

struct state {
    struct lk_step_windows windows;
    struct lk_kernel *forward, *backward;
    bool keeps; /* which step of its window each maximum was */
};

static enum lk_status prepare(struct lk_op_setup *setup, int kind, bool is_max)
{
    static const char source[] = "ops/sequence/pool1d";
    void *memory;
    LK_TRY(lk_arena_allocate(setup->arena, sizeof(struct state), &memory));
    struct state *s = setup->state = memory;
    LK_TRY(place(&setup->shapes, kind, setup->node, &s->windows));
    const bool has_backward = setup->training && setup->wants_dx[0];
    s->keeps = is_max && has_backward;
    if (s->keeps)
        setup->saved_bytes = lk_tiled_bytes(&setup->tiling, &setup->shapes.y, setup->real);
    LK_TRY(lk_op_kernel(setup, source, is_max ? "max_forward" : "mean_forward", NULL,
                        &s->forward));
    if (!has_backward)
        return LK_OK;
    return lk_op_kernel(setup, source, is_max ? "max_backward" : "mean_backward", NULL,
                        &s->backward);
}

/* A launch over `count` numbers of each sample. */
static enum lk_status enqueue(const struct lk_op_setup *setup, const struct lk_op_run *run,
                              struct lk_kernel *kernel, int64_t count, struct lk_buffer *to)
{
    const struct state *s = setup->state;
    struct lk_step_windows w = s->windows;
    w.each = setup->tiling.vector == 1 ? 4 : 64;
    const struct lk_grid grid = {{lk_divide_up(count, w.each), setup->tiling.tiles, 1},
                                 lk_op_items(setup)};
    return LK_ENQUEUE(kernel, grid, LK_BUF(kernel == s->forward ? run->x[0] : run->dy),
                      LK_BUF(lk_steps_length(setup, run)), LK_BUF(s->keeps ? run->saved : NULL),
                      LK_BUF(to), LK_STRUCT(&w));
}

static enum lk_status forward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct state *s = setup->state;
    return enqueue(setup, run, s->forward, s->windows.count * s->windows.channels, run->y);
}

static enum lk_status backward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct state *s = setup->state;
    if (!run->dx[0])
        return LK_OK;
    return enqueue(setup, run, s->backward, s->windows.steps * s->windows.channels, run->dx[0]);
}

#define OPERATION(name_, kind_, is_max_, options_)                                             \
    static enum lk_status infer_##name_(struct lk_op_shapes *shapes)                           \
    {                                                                                          \
        return infer(shapes, kind_, #name_);                                                   \
    }                                                                                          \
    static enum lk_status prepare_##name_(struct lk_op_setup *setup)                           \
    {                                                                                          \
        return prepare(setup, kind_, is_max_);                                                 \
    }                                                                                          \
    const struct lk_op lk_op_##name_ = {                                                       \
        .name = #name_,                                                                        \
        .options = options_,                                                                   \
        .options_bytes = sizeof(struct options),                                               \
        .min_inputs = 1,                                                                       \
        .max_inputs = 2,                                                                       \
        .takes_length = true,                                                                  \
        .infer = infer_##name_,                                                                \
        .prepare = prepare_##name_,                                                            \
        .forward = forward,                                                                    \
        .backward = backward,                                                                  \
    }

OPERATION(max_pool1d, WINDOWS, true, table);
OPERATION(average_pool1d, WINDOWS, false, table);
OPERATION(global_max_pool1d, GLOBAL, true, no_options);
OPERATION(global_average_pool1d, GLOBAL, false, no_options);

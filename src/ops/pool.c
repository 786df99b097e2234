/* Pooling: the largest or the mean pixel of every window. */
#include "base/fail.h"
#include "ops/args.h"
#include "ops/op.h"
#include "ops/pool_planes.h"
#include "ops/window.h"
#include <stdio.h>
#include <string.h>

struct options {
    int64_t size[2], stride[2];
    char padding[LK_PADDING_BYTES];
    bool count_padding;
};

struct state {
    struct lk_window window[2]; /* down, across */
    struct lk_kernel *forward, *backward;
    struct lk_pool_planes planes;
};

static enum lk_status place(const struct lk_op_shapes *shapes, const char *name,
                            struct lk_window window[2])
{
    const struct options *o = shapes->options;
    for (int i = 0; i < 2; i++)
        window[i] = (struct lk_window){
            .size = o->size[i], .stride = o->stride[i] ? o->stride[i] : o->size[i], .gap = 1};
    LK_TRY(lk_windows_place(window, o->padding, &shapes->x[0], name));
    return lk_windows_check_seen(window, name);
}

static enum lk_status infer_pool(struct lk_op_shapes *shapes, const char *name)
{
    struct lk_window window[2];
    LK_TRY(lk_op_check_image(shapes, name));
    LK_TRY(place(shapes, name, window));
    shapes->y = (struct lk_shape){3, {shapes->x[0].dim[0], window[0].count, window[1].count}};
    shapes->scales = true;
    shapes->flops =
        (double)lk_shape_count(&shapes->y) * (double)(window[0].size * window[1].size);
    return LK_OK;
}

/* --- kernels --------------------------------------------------------------------------- */

static enum lk_status prepare_kernels(struct lk_op_setup *setup,
                                      const struct lk_window window[2], const char *forward,
                                      const char *backward, const char *definitions)
{
    void *memory;
    char options[256];
    LK_TRY(lk_arena_allocate(setup->arena, sizeof(struct state), &memory));
    struct state *state = setup->state = memory;
    memcpy(state->window, window, sizeof state->window);
    if (setup->tiling.planes)
        return lk_pool_planes_prepare(setup, window,
                                      strcmp(forward, "max_forward") == 0 ? "max" : "average",
                                      definitions, &state->planes);
    snprintf(options, sizeof options,
             "-DSIZE_H=%lld -DSIZE_W=%lld -DSTRIDE_H=%lld -DSTRIDE_W=%lld%s",
             (long long)window[0].size, (long long)window[1].size, (long long)window[0].stride,
             (long long)window[1].stride, definitions);
    LK_TRY(lk_op_kernel(setup, "ops/pool", forward, options, &state->forward));
    if (setup->training)
        LK_TRY(lk_op_kernel(setup, "ops/pool", backward, options, &state->backward));
    return LK_OK;
}

/* A launch over the rows of every plane: a CPU's group takes a plane, a GPU's a row. */
static enum lk_status enqueue(const struct lk_op_setup *setup, struct lk_kernel *kernel,
                              const struct lk_buffer *from, const struct lk_buffer *positions,
                              struct lk_buffer *to)
{
    const struct state *state = setup->state;
    const struct lk_window *h = &state->window[0], *w = &state->window[1];
    const struct lk_shape *x = &setup->shapes.x[0];
    const int64_t rows = kernel == state->forward ? h->count : x->dim[1];
    const int64_t each = setup->tiling.vector == 1 ? 1 : rows;
    const struct lk_grid grid = {{lk_divide_up(rows, each), x->dim[0], setup->tiling.tiles},
                                 lk_op_items(setup)};
    const struct lk_pool pool = {.height = x->dim[1],
                                 .width = x->dim[2],
                                 .out_h = h->count,
                                 .out_w = w->count,
                                 .before_h = h->before,
                                 .before_w = w->before,
                                 .each = each};
    return LK_ENQUEUE(kernel, grid, LK_BUF(from), LK_BUF(positions), LK_BUF(to),
                      LK_STRUCT(&pool));
}

static enum lk_status forward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct state *state = setup->state;
    if (state->planes.kernel)
        return lk_pool_planes_enqueue(setup, &state->planes, run);
    return enqueue(setup, state->forward, run->x[0], run->saved, run->y);
}

static enum lk_status backward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct state *state = setup->state;
    if (!run->dx[0])
        return LK_OK;
    if (state->planes.backward)
        return lk_pool_planes_enqueue_backward(setup, &state->planes, run);
    return enqueue(setup, state->backward, run->dy, run->saved, run->dx[0]);
}

/* --- the operations -------------------------------------------------------------------- */

static enum lk_status infer_max(struct lk_op_shapes *shapes)
{
    return infer_pool(shapes, "max_pool");
}

/* Backward, where it is called, looks up which pixel of its window each maximum was. */
static enum lk_status prepare_greatest(struct lk_op_setup *setup,
                                       const struct lk_window window[2])
{
    static const struct {
        int64_t most; /* pixels of a window */
        size_t bytes;
        const char *definitions;
    } positions[] = {{1 << 8, 1, " -DPOSITION=uchar -DKEEP"},
                     {1 << 16, 2, " -DPOSITION=ushort -DKEEP"},
                     {INT32_MAX, 4, " -DPOSITION=int -DKEEP"}};
    int i = 0;
    if (!setup->training || !setup->wants_dx[0])
        return prepare_kernels(setup, window, "max_forward", "max_backward",
                               " -DPOSITION=uchar");
    while (i < 2 && window[0].size * window[1].size > positions[i].most)
        i++;
    setup->saved_bytes =
        lk_tiled_bytes(&setup->tiling, &setup->shapes.y, LK_U8) * positions[i].bytes;
    return prepare_kernels(setup, window, "max_forward", "max_backward",
                           positions[i].definitions);
}

static enum lk_status prepare_max(struct lk_op_setup *setup)
{
    struct lk_window window[2];
    LK_TRY(place(&setup->shapes, setup->node, window));
    return prepare_greatest(setup, window);
}

static enum lk_status infer_average(struct lk_op_shapes *shapes)
{
    return infer_pool(shapes, "average_pool");
}

static enum lk_status prepare_average(struct lk_op_setup *setup)
{
    const struct options *o = setup->options;
    struct lk_window window[2];
    LK_TRY(place(&setup->shapes, setup->node, window));
    return prepare_kernels(setup, window, "average_forward", "average_backward",
                           o->count_padding ? " -DCOUNT_PADDING" : "");
}

static enum lk_status infer_global(struct lk_op_shapes *shapes, const char *name)
{
    LK_TRY(lk_op_check_image(shapes, name));
    shapes->y = (struct lk_shape){1, {shapes->x[0].dim[0]}};
    shapes->scales = true;
    shapes->flops = (double)lk_shape_count(&shapes->x[0]);
    return LK_OK;
}

static enum lk_status infer_global_average(struct lk_op_shapes *shapes)
{
    return infer_global(shapes, "global_average_pool");
}

static enum lk_status infer_global_max(struct lk_op_shapes *shapes)
{
    return infer_global(shapes, "global_max_pool");
}

/* One window that is the image. */
static void place_global(const struct lk_op_setup *setup, struct lk_window window[2])
{
    for (int i = 0; i < 2; i++)
        window[i] = (struct lk_window){
            .size = setup->shapes.x[0].dim[1 + i], .stride = 1, .gap = 1, .count = 1};
}

static enum lk_status prepare_global_average(struct lk_op_setup *setup)
{
    struct lk_window window[2];
    place_global(setup, window);
    return prepare_kernels(setup, window, "average_forward", "average_backward", "");
}

static enum lk_status prepare_global_max(struct lk_op_setup *setup)
{
    struct lk_window window[2];
    place_global(setup, window);
    return prepare_greatest(setup, window);
}

#define WINDOW_OPTIONS                                                                         \
    {.name = "size",                                                                           \
     .kind = LK_OPTION_INT,                                                                    \
     .offset = offsetof(struct options, size),                                                 \
     .count = 2,                                                                               \
     .min = 1,                                                                                 \
     .max = 256,                                                                               \
     .standard = "2",                                                                          \
     .help = "height and width of a window"},                                                  \
        {.name = "stride",                                                                     \
         .kind = LK_OPTION_INT,                                                                \
         .offset = offsetof(struct options, stride),                                           \
         .count = 2,                                                                           \
         .min = 0,                                                                             \
         .max = 4096,                                                                          \
         .standard = "0",                                                                      \
         .help = "pixels from window to window, down and across; 0: size"},                    \
        LK_PADDING_OPTION(struct options)

static const struct lk_option max_options[] = {WINDOW_OPTIONS, {0}};

static const struct lk_option average_options[] = {
    WINDOW_OPTIONS,
    {.name = "count_padding",
     .kind = LK_OPTION_BOOL,
     .offset = offsetof(struct options, count_padding),
     .standard = "false",
     .help = "pixels of padding count as zeros; else the mean is of real pixels"},
    {0},
};

static const struct lk_option global_options[] = {{0}};

#define OPERATION(name_, options_, trains_, infer_, prepare_)                                  \
    const struct lk_op lk_op_##name_ = {                                                       \
        .name = #name_,                                                                        \
        .options = options_,                                                                   \
        .options_bytes = sizeof(struct options),                                               \
        .min_inputs = 1,                                                                       \
        .max_inputs = 1,                                                                       \
        .planes = LK_PLANES_KNOWN,                                                             \
        .trains_planes = (trains_),                                                            \
        .infer = infer_,                                                                       \
        .prepare = prepare_,                                                                   \
        .forward = forward,                                                                    \
        .backward = backward,                                                                  \
    }

OPERATION(max_pool, max_options, true, infer_max, prepare_max);
OPERATION(average_pool, average_options, true, infer_average, prepare_average);
OPERATION(global_average_pool, global_options, false, infer_global_average,
          prepare_global_average);
OPERATION(global_max_pool, global_options, false, infer_global_max, prepare_global_max);

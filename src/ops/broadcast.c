/* Sums and products of tensors of one shape, and of images with a number for each channel. */
#include "base/fail.h"
#include "ops/op.h"
#include <stdio.h>

struct options {
    char none;
};

struct state {
    struct lk_kernel *two, *planes;                   /* forward */
    struct lk_kernel *two_backward, *planes_backward; /* NULL: `two` serves */
};

/* --- shapes ---------------------------------------------------------------------------- */

/* The input that has y's shape: the first of those with most numbers, an image if there is one.
 */
static int find_whole(const struct lk_op_shapes *shapes)
{
    int whole = 0;
    for (int i = 1; i < shapes->inputs; i++) {
        const int64_t more = lk_shape_count(&shapes->x[i]) - lk_shape_count(&shapes->x[whole]);
        if (more > 0 || (more == 0 && shapes->x[i].rank == 3 && shapes->x[whole].rank == 1))
            whole = i;
    }
    return whole;
}

/* Whether x has a number for each channel of the image y: [c] or [1, 1, c]. */
static bool is_of_channels(const struct lk_shape *x, const struct lk_shape *y)
{
    return y->rank == 3 && (x->rank == 1 || x->rank == 3) && x->dim[0] == y->dim[0] &&
           lk_shape_count(x) == y->dim[0];
}

/* Whether input i has one number where y has a plane. */
static bool is_broadcast(const struct lk_op_shapes *shapes, int i)
{
    return lk_shape_count(&shapes->x[i]) != lk_shape_count(&shapes->y);
}

static bool any_is_broadcast(const struct lk_op_shapes *shapes)
{
    bool any = false;
    for (int i = 0; i < shapes->inputs; i++)
        any |= is_broadcast(shapes, i);
    return any;
}

static enum lk_status infer(struct lk_op_shapes *shapes, const char *name)
{
    const int whole = find_whole(shapes);
    const struct lk_shape *y = &shapes->x[whole];
    char first[64], other[64];
    for (int i = 0; i < shapes->inputs; i++) {
        const struct lk_shape *x = &shapes->x[i];
        if (shapes->x_dtype[i] != LK_F32)
            return lk_fail(LK_E_SHAPE, "%s: real numbers expected, found labels", name);
        if (lk_shape_equal(x, y) || is_of_channels(x, y))
            continue;
        lk_shape_print_hwc(i < whole ? x : y, first, sizeof first);
        lk_shape_print_hwc(i < whole ? y : x, other, sizeof other);
        return lk_fail(LK_E_SHAPE,
                       "%s: inputs of one shape, or [c] beside [h, w, c], expected, found %s "
                       "and %s",
                       name, first, other);
    }
    shapes->y = *y;
    shapes->flops = (double)lk_shape_count(y) * (shapes->inputs - 1);
    return LK_OK;
}

/* --- kernels --------------------------------------------------------------------------- */

/* What an operation runs. */
struct names {
    const char *two, *planes, *two_backward, *planes_backward;
};

static enum lk_status prepare(struct lk_op_setup *setup, const struct names *names)
{
    void *memory;
    char text[32];
    LK_TRY(lk_arena_allocate(setup->arena, sizeof(struct state), &memory));
    struct state *state = setup->state = memory;
    const bool planes = any_is_broadcast(&setup->shapes);
    snprintf(text, sizeof text, "-DSTREAM=%d", lk_op_streams(setup, &setup->shapes.y));
    const struct {
        const char *name;
        struct lk_kernel **kernel;
        bool wanted;
    } kernels[] = {
        {names->two, &state->two, true},
        {names->planes, &state->planes, planes},
        {names->two_backward, &state->two_backward, setup->training},
        {names->planes_backward, &state->planes_backward, planes && setup->training},
    };
    for (int i = 0; i < LK_COUNT(kernels); i++)
        if (kernels[i].name && kernels[i].wanted)
            LK_TRY(
                lk_op_kernel(setup, "ops/broadcast", kernels[i].name, text, kernels[i].kernel));
    return LK_OK;
}

static void release(struct lk_op_setup *setup)
{
    struct state *state = setup->state;
    if (!state)
        return;
    lk_kernel_destroy(state->two);
    lk_kernel_destroy(state->planes);
    lk_kernel_destroy(state->two_backward);
    lk_kernel_destroy(state->planes_backward);
    setup->state = NULL;
}

/* Runs a kernel of three tensors of y's shape; add_backward takes two outputs. */
static enum lk_status enqueue_rows(const struct lk_op_setup *setup, struct lk_kernel *kernel,
                                   const struct lk_buffer *a, const struct lk_buffer *b,
                                   const struct lk_buffer *to)
{
    const int64_t rows = setup->tiling.tiles * lk_shape_count(&setup->shapes.y);
    const int64_t each = setup->tiling.vector == 1 ? 16 : 256;
    const struct lk_grid grid = {{lk_divide_up(rows, each), 1, 1}, lk_op_items(setup)};
    return LK_ENQUEUE(kernel, grid, LK_BUF(a), LK_BUF(b), LK_BUF(to), LK_INT(rows),
                      LK_INT(each));
}

/* A grid over the planes of y, each cut into `pieces`. */
static struct lk_grid plane_grid(const struct lk_op_setup *setup, int64_t pieces)
{
    return (struct lk_grid){{pieces, setup->shapes.y.dim[0], setup->tiling.tiles},
                            lk_op_items(setup)};
}

/* to = x with v of each plane; to may be x. */
static enum lk_status enqueue_planes(const struct lk_op_setup *setup, const struct lk_buffer *x,
                                     const struct lk_buffer *v, struct lk_buffer *to)
{
    const struct state *state = setup->state;
    const int64_t pixels = setup->shapes.y.dim[1] * setup->shapes.y.dim[2];
    const int64_t each = setup->tiling.vector == 1 ? 16 : pixels;
    return LK_ENQUEUE(state->planes, plane_grid(setup, lk_divide_up(pixels, each)), LK_BUF(x),
                      LK_BUF(v), LK_BUF(to), LK_INT(pixels), LK_INT(each));
}

/* to = x with input i; to may be x. */
static enum lk_status join(const struct lk_op_setup *setup, const struct lk_op_run *run,
                           const struct lk_buffer *x, int i)
{
    const struct state *state = setup->state;
    if (is_broadcast(&setup->shapes, i))
        return enqueue_planes(setup, x, run->x[i], run->y);
    return enqueue_rows(setup, state->two, x, run->x[i], run->y);
}

/* From an input that has y's shape on, with the others one by one. */
static enum lk_status forward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const int whole = find_whole(&setup->shapes);
    const struct lk_buffer *x = run->x[whole];
    for (int i = 0; i < setup->shapes.inputs; i++) {
        if (i == whole)
            continue;
        LK_TRY(join(setup, run, x, i));
        x = run->y;
    }
    return LK_OK;
}

/* --- add ------------------------------------------------------------------------------- */

static enum lk_status infer_add(struct lk_op_shapes *shapes)
{
    shapes->scales = true;
    return infer(shapes, "add");
}

static enum lk_status prepare_add(struct lk_op_setup *setup)
{
    static const struct names names = {"add_two", "add_planes", "add_backward",
                                       "add_planes_backward"};
    return prepare(setup, &names);
}

static enum lk_status sum_planes(const struct lk_op_setup *setup, const struct lk_buffer *dy,
                                 struct lk_buffer *dv)
{
    const struct state *state = setup->state;
    const struct lk_shape *y = &setup->shapes.y;
    return LK_ENQUEUE(state->planes_backward, plane_grid(setup, 1), LK_BUF(dy), LK_BUF(dv),
                      LK_INT(y->dim[1] * y->dim[2]), LK_INT(y->dim[2]));
}

/* Two gradients that are dy are written at once. */
static enum lk_status backward_add(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct state *state = setup->state;
    struct lk_buffer *waiting = NULL;
    for (int i = 0; i < setup->shapes.inputs; i++) {
        if (!run->dx[i])
            continue;
        if (is_broadcast(&setup->shapes, i)) {
            LK_TRY(sum_planes(setup, run->dy, run->dx[i]));
        } else if (waiting) {
            LK_TRY(enqueue_rows(setup, state->two_backward, run->dy, waiting, run->dx[i]));
            waiting = NULL;
        } else {
            waiting = run->dx[i];
        }
    }
    if (!waiting)
        return LK_OK;
    return enqueue_rows(setup, state->two_backward, run->dy, waiting, NULL);
}

/* --- multiply -------------------------------------------------------------------------- */

static enum lk_status infer_multiply(struct lk_op_shapes *shapes)
{
    shapes->backward_reads_x = true;
    return infer(shapes, "multiply");
}

static enum lk_status prepare_multiply(struct lk_op_setup *setup)
{
    static const struct names names = {"multiply_two", "multiply_planes", NULL,
                                       "multiply_planes_backward"};
    return prepare(setup, &names);
}

static enum lk_status backward_multiply(const struct lk_op_setup *setup,
                                        const struct lk_op_run *run)
{
    const struct state *state = setup->state;
    const struct lk_shape *y = &setup->shapes.y;
    const int x = find_whole(&setup->shapes), v = 1 - x;
    if (is_broadcast(&setup->shapes, v) && (run->dx[x] || run->dx[v]))
        return LK_ENQUEUE(state->planes_backward, plane_grid(setup, 1), LK_BUF(run->dy),
                          LK_BUF(run->x[x]), LK_BUF(run->x[v]), LK_BUF(run->dx[x]),
                          LK_BUF(run->dx[v]), LK_INT(y->dim[1] * y->dim[2]), LK_INT(y->dim[2]));
    for (int i = 0; i < 2; i++)
        if (run->dx[i])
            LK_TRY(enqueue_rows(setup, state->two, run->dy, run->x[1 - i], run->dx[i]));
    return LK_OK;
}

/* --- the operations -------------------------------------------------------------------- */

static const struct lk_option no_options[] = {{0}};

#define OPERATION(name_, most_)                                                                \
    const struct lk_op lk_op_##name_ = {                                                       \
        .name = #name_,                                                                        \
        .options = no_options,                                                                 \
        .options_bytes = sizeof(struct options),                                               \
        .min_inputs = 2,                                                                       \
        .max_inputs = (most_),                                                                 \
        .infer = infer_##name_,                                                                \
        .prepare = prepare_##name_,                                                            \
        .forward = forward,                                                                    \
        .backward = backward_##name_,                                                          \
        .release = release,                                                                    \
    }

OPERATION(add, LK_MOST_INPUTS);
OPERATION(multiply, 2);

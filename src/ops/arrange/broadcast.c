/* Sums and products of tensors of one shape, and of images with a number for each channel. */
#include "base/fail.h"
#include "ops/op.h"
#include <stdio.h>
#include <string.h>

struct options {
    bool relu; /* of add, which has absorbed one */
};

struct state {
    struct lk_kernel *two, *planes;                   /* forward, all inputs but the last */
    struct lk_kernel *last_two, *last_planes;         /* and that one, with a relu if any */
    struct lk_kernel *two_backward, *planes_backward; /* NULL: `last_two` serves */
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
    const struct options *o = setup->options;
    void *memory;
    char text[64];
    LK_TRY(lk_arena_allocate(setup->arena, sizeof(struct state), &memory));
    struct state *state = setup->state = memory;
    const bool planes = any_is_broadcast(&setup->shapes), many = setup->shapes.inputs > 2;
    const bool training = setup->training, gated = o->relu && !setup->dy_is_gated;
    const struct {
        const char *name;
        struct lk_kernel **kernel;
        bool wanted, relu, gated;
    } kernels[] = {
        {names->two, &state->two, many, false, false},
        {names->planes, &state->planes, many && planes, false, false},
        {names->two, &state->last_two, true, o->relu, false},
        {names->planes, &state->last_planes, planes, o->relu, false},
        {names->two_backward, &state->two_backward, training, false, gated},
        {names->planes_backward, &state->planes_backward, planes && training, false, gated},
    };
    for (int i = 0; i < LK_COUNT(kernels); i++) {
        snprintf(text, sizeof text, "-DSTREAM=%d -DRELU=%d -DGATED=%d",
                 lk_op_streams(setup, &setup->shapes.y), kernels[i].relu, kernels[i].gated);
        if (kernels[i].name && kernels[i].wanted)
            LK_TRY(lk_op_kernel(setup, "ops/arrange/broadcast", kernels[i].name, text,
                                kernels[i].kernel));
    }
    return LK_OK;
}

/* to = a with b, all of y's shape. */
static enum lk_status enqueue_two(const struct lk_op_setup *setup, struct lk_kernel *kernel,
                                  const struct lk_buffer *a, const struct lk_buffer *b,
                                  struct lk_buffer *to)
{
    const struct lk_op_rows rows = lk_op_rows(setup);
    return LK_ENQUEUE(kernel, rows.grid, LK_BUF(a), LK_BUF(b), LK_BUF(to), LK_INT(rows.count),
                      LK_INT(rows.each));
}

/* A grid over the planes of y, each cut into `pieces`. */
static struct lk_grid plane_grid(const struct lk_op_setup *setup, int64_t pieces)
{
    return (struct lk_grid){{pieces, setup->shapes.y.dim[0], setup->tiling.tiles},
                            lk_op_items(setup)};
}

/* to = x with v of each plane; to may be x. */
static enum lk_status enqueue_planes(const struct lk_op_setup *setup, struct lk_kernel *kernel,
                                     const struct lk_buffer *x, const struct lk_buffer *v,
                                     struct lk_buffer *to)
{
    const int64_t pixels = setup->shapes.y.dim[1] * setup->shapes.y.dim[2];
    const int64_t each = setup->tiling.vector == 1 ? 16 : pixels;
    return LK_ENQUEUE(kernel, plane_grid(setup, lk_divide_up(pixels, each)), LK_BUF(x),
                      LK_BUF(v), LK_BUF(to), LK_INT(pixels), LK_INT(each));
}

/* y = x with input i; x may be y. */
static enum lk_status join(const struct lk_op_setup *setup, const struct lk_op_run *run,
                           const struct lk_buffer *x, int i, bool is_last)
{
    const struct state *s = setup->state;
    if (is_broadcast(&setup->shapes, i))
        return enqueue_planes(setup, is_last ? s->last_planes : s->planes, x, run->x[i],
                              run->y);
    return enqueue_two(setup, is_last ? s->last_two : s->two, x, run->x[i], run->y);
}

/* From an input that has y's shape on, with the others one by one. */
static enum lk_status forward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const int whole = find_whole(&setup->shapes);
    const int last = setup->shapes.inputs - (whole == setup->shapes.inputs - 1 ? 2 : 1);
    const struct lk_buffer *x = run->x[whole];
    for (int i = 0; i < setup->shapes.inputs; i++) {
        if (i == whole)
            continue;
        LK_TRY(join(setup, run, x, i, i == last));
        x = run->y;
    }
    return LK_OK;
}

/* --- add ------------------------------------------------------------------------------- */

static enum lk_status infer_add(struct lk_op_shapes *shapes)
{
    const struct options *o = shapes->options;
    shapes->scales = true;
    shapes->is_gate = shapes->backward_reads_y = o->relu;
    return infer(shapes, "add");
}

static enum lk_status prepare_add(struct lk_op_setup *setup)
{
    static const struct names names = {"add_two", "add_planes", "add_backward",
                                       "add_planes_backward"};
    return prepare(setup, &names);
}

static enum lk_status sum_planes(const struct lk_op_setup *setup, const struct lk_op_run *run,
                                 struct lk_buffer *dv)
{
    const struct state *state = setup->state;
    const struct lk_shape *y = &setup->shapes.y;
    return LK_ENQUEUE(state->planes_backward, plane_grid(setup, 1), LK_BUF(run->dy),
                      LK_BUF(run->y), LK_BUF(dv), LK_INT(y->dim[1] * y->dim[2]),
                      LK_INT(y->dim[2]));
}

/* a = dy, b = dy; b may be NULL. */
static enum lk_status copy_gradient(const struct lk_op_setup *setup,
                                    const struct lk_op_run *run, struct lk_buffer *a,
                                    struct lk_buffer *b)
{
    const struct state *state = setup->state;
    const struct lk_op_rows rows = lk_op_rows(setup);
    return LK_ENQUEUE(state->two_backward, rows.grid, LK_BUF(run->dy), LK_BUF(run->y),
                      LK_BUF(a), LK_BUF(b), LK_INT(rows.count), LK_INT(rows.each));
}

/* Two gradients that are dy are written at once. */
static enum lk_status backward_add(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    struct lk_buffer *waiting = NULL;
    for (int i = 0; i < setup->shapes.inputs; i++) {
        if (!run->dx[i])
            continue;
        if (is_broadcast(&setup->shapes, i)) {
            LK_TRY(sum_planes(setup, run, run->dx[i]));
        } else if (waiting) {
            LK_TRY(copy_gradient(setup, run, waiting, run->dx[i]));
            waiting = NULL;
        } else {
            waiting = run->dx[i];
        }
    }
    return waiting ? copy_gradient(setup, run, waiting, NULL) : LK_OK;
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
            LK_TRY(enqueue_two(setup, state->last_two, run->dy, run->x[1 - i], run->dx[i]));
    return LK_OK;
}

/* --- the operations -------------------------------------------------------------------- */

static const struct lk_option add_options[] = {
    {.name = "relu",
     .kind = LK_OPTION_BOOL,
     .offset = offsetof(struct options, relu),
     .standard = "false",
     .help = "a relu follows"},
    {0},
};

static const struct lk_option multiply_options[] = {{0}};

/* Not by an option `activation`: that of a model's text remains a node of its own, whose number
 * and name checkpoints know. */
static bool absorb_add(void *options, const char *next, const char *next_options)
{
    struct options *o = options;
    (void)next_options;
    if (o->relu || strcmp(next, "relu") != 0)
        return false;
    o->relu = true;
    return true;
}

#define OPERATION(name_, most_, absorb_)                                                       \
    const struct lk_op lk_op_##name_ = {                                                       \
        .name = #name_,                                                                        \
        .options = name_##_options,                                                            \
        .options_bytes = sizeof(struct options),                                               \
        .min_inputs = 2,                                                                       \
        .max_inputs = (most_),                                                                 \
        .planes = LK_PLANES_OWN,                                                               \
        .trains_planes = true,                                                                 \
        .time = LK_TIME_OWN,                                                                   \
        .infer = infer_##name_,                                                                \
        .prepare = prepare_##name_,                                                            \
        .forward = forward,                                                                    \
        .backward = backward_##name_,                                                          \
        .absorb = (absorb_),                                                                   \
    }

OPERATION(add, LK_MOST_INPUTS, absorb_add);
OPERATION(multiply, 2, NULL);

/* Products of matrices that are both computed: a [matrices, rows, inner] times b [matrices,
 * inner, columns]. */
#include "base/fail.h"
#include "ops/op.h"

struct options {
    int64_t rows, inner, columns;
};

struct state {
    struct lk_kernel *product;
};

static enum lk_status infer(struct lk_op_shapes *shapes)
{
    const struct options *o = shapes->options;
    const int64_t a = lk_shape_count(&shapes->x[0]), b = lk_shape_count(&shapes->x[1]);
    if (shapes->x_dtype[0] != LK_F32 || shapes->x_dtype[1] != LK_F32)
        return lk_fail(LK_E_SHAPE, "matmul: real numbers expected, found labels");
    const int64_t matrices = a / (o->rows * o->inner);
    if (a % (o->rows * o->inner) || b != matrices * o->inner * o->columns)
        return lk_fail(LK_E_SHAPE,
                       "matmul: %lld and %lld elements are not as many matrices [%lld, %lld] "
                       "and [%lld, %lld]",
                       (long long)a, (long long)b, (long long)o->rows, (long long)o->inner,
                       (long long)o->inner, (long long)o->columns);
    shapes->y = (struct lk_shape){1, {matrices * o->rows * o->columns}};
    if (lk_shape_count(&shapes->y) < 1)
        return lk_fail(LK_E_SHAPE, "matmul: a product of too many elements");
    shapes->backward_reads_x = true;
    shapes->flops = 2.0 * (double)shapes->y.dim[0] * (double)o->inner;
    shapes->ends_steps = true;
    return LK_OK;
}

static enum lk_status prepare(struct lk_op_setup *setup)
{
    void *memory;
    LK_TRY(lk_arena_allocate(setup->arena, sizeof(struct state), &memory));
    struct state *s = setup->state = memory;
    return lk_op_kernel(setup, "ops/array/matmul", "matmul", NULL, &s->product);
}

/* A factor, read by rows and columns of so many elements each. */
struct factor {
    const struct lk_buffer *of;
    int64_t row, column;
};

static enum lk_status multiply(const struct lk_op_setup *setup, const struct factor *a,
                               const struct factor *b, struct lk_buffer *y,
                               const int64_t lengths[3])
{
    const struct options *o = setup->options;
    const struct state *s = setup->state;
    const int64_t matrices = lk_shape_count(&setup->shapes.y) / (o->rows * o->columns);
    const struct lk_grid grid = {{matrices * lengths[0], setup->tiling.tiles, 1},
                                 lk_op_items(setup)};
    return LK_ENQUEUE(s->product, grid, LK_BUF(a->of), LK_BUF(b->of), LK_BUF(y),
                      LK_INT(lengths[0]), LK_INT(lengths[1]), LK_INT(lengths[2]),
                      LK_INT(a->row), LK_INT(a->column), LK_INT(b->row), LK_INT(b->column));
}

static enum lk_status forward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct options *o = setup->options;
    const struct factor a = {run->x[0], o->inner, 1}, b = {run->x[1], o->columns, 1};
    return multiply(setup, &a, &b, run->y, (const int64_t[]){o->rows, o->inner, o->columns});
}

/* da = dy b', db = a' dy. */
static enum lk_status backward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct options *o = setup->options;
    const struct factor dy = {run->dy, o->columns, 1};
    const struct factor a = {run->x[0], 1, o->inner}, b = {run->x[1], 1, o->columns};
    if (run->dx[0])
        LK_TRY(multiply(setup, &dy, &b, run->dx[0],
                        (const int64_t[]){o->rows, o->columns, o->inner}));
    if (!run->dx[1])
        return LK_OK;
    return multiply(setup, &a, &dy, run->dx[1],
                    (const int64_t[]){o->inner, o->rows, o->columns});
}

#define LENGTH(name_, field_, help_)                                                           \
    {                                                                                          \
        .name = (name_), .kind = LK_OPTION_INT, .offset = offsetof(struct options, field_),    \
        .min = 1, .max = 1 << 24, .help = (help_)                                              \
    }

static const struct lk_option options[] = {
    LENGTH("rows", rows, "of the first matrix"),
    LENGTH("inner", inner, "columns of the first matrix, rows of the second"),
    LENGTH("columns", columns, "of the second matrix"),
    {0},
};

const struct lk_op lk_op_matmul = {
    .name = "matmul",
    .options = options,
    .options_bytes = sizeof(struct options),
    .min_inputs = 2,
    .max_inputs = 2,
    .infer = infer,
    .prepare = prepare,
    .forward = forward,
    .backward = backward,
};

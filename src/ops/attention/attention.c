/* Scaled dot-product attention of several heads, on queries, keys and values that dense layers
 * made: the part of multi-head attention between its products.
 * source: Vaswani et al., Attention Is All You Need (2017); the walk over blocks of keys: Dao
 * et al., FlashAttention (2022) */
#include "ops/attention/attention.h"
#include "base/fail.h"
#include "ops/args.h"
#include "ops/dropout.h"

#include <math.h>

enum { MOST_DIM = 512, MOST_DROPPED = 1 << 20 /* queries: cl/ops/attention/attention.cl */ };

/* --- shapes ---------------------------------------------------------------------------- */

static struct lk_attention_form form_of(const struct lk_op_shapes *shapes)
{
    const struct lk_attention_options *o = shapes->options;
    const struct lk_shape *x = shapes->x;
    struct lk_attention_form f = {0};
    f.has_lengths = shapes->inputs > 1 && x[shapes->inputs - 1].rank == 0;
    f.tensors = shapes->inputs - f.has_lengths;
    f.k_input = f.tensors > 1;
    f.v_input = f.tensors - 1;
    const int64_t width = x[0].dim[1] / (f.tensors == 1 ? 3 : 1);
    f.queries = x[0].dim[0];
    f.keys = shapes->window > 0 ? shapes->window : x[f.k_input].dim[0];
    f.dim = width / o->heads;
    f.values = f.tensors == 3 ? x[2].dim[1] / o->heads : f.dim;
    f.k_at = f.tensors == 1 ? width : 0;
    f.v_at = f.k_at + (f.tensors < 3 ? width : 0);
    return f;
}

/* Every tensor is a sequence of real numbers, the length a whole number. */
static enum lk_status check_inputs(const struct lk_op_shapes *shapes,
                                   const struct lk_attention_form *f)
{
    char text[96];
    for (int i = 0; i < f->tensors; i++) {
        lk_shape_print_hwc(&shapes->x[i], text, sizeof text);
        if (shapes->x_dtype[i] != LK_F32 || shapes->x[i].rank != 2)
            return lk_fail(LK_E_SHAPE, "attention takes sequences [t, c] of numbers, not %s%s",
                           shapes->x_dtype[i] == LK_F32 ? "" : "labels ", text);
    }
    if (f->tensors < 1 || f->tensors > 3)
        return lk_fail(LK_E_SHAPE, "attention takes one to three sequences, not %d",
                       f->tensors);
    if (f->has_lengths && shapes->x_dtype[shapes->inputs - 1] != LK_I32)
        return lk_fail(LK_E_SHAPE, "attention: a length is a whole number");
    return LK_OK;
}

/* Whether the widths of the tensors fit each other. */
static bool has_widths(const struct lk_op_shapes *shapes, const struct lk_attention_form *f)
{
    const struct lk_attention_options *o = shapes->options;
    const struct lk_shape *x = shapes->x;
    const int64_t width = f->dim * o->heads;
    if (f->dim < 1 || f->values < 1)
        return false;
    if (f->tensors == 1)
        return x[0].dim[1] == 3 * width;
    if (f->tensors == 2)
        return x[0].dim[1] == width && x[1].dim[1] == 2 * width;
    return x[0].dim[1] == width && x[1].dim[1] == width && x[1].dim[0] == x[2].dim[0] &&
           x[2].dim[1] == f->values * o->heads;
}

static enum lk_status infer(struct lk_op_shapes *shapes)
{
    static const char *const expected[] = {"[t, 3 c]", "[t, c] and [s, 2 c]",
                                           "[t, c], [s, c] and [s, d]"};
    const struct lk_attention_options *o = shapes->options;
    const struct lk_attention_form f = form_of(shapes);
    LK_TRY(check_inputs(shapes, &f));
    if (!has_widths(shapes, &f))
        return lk_fail(LK_E_SHAPE,
                       "attention of %lld heads takes queries, keys and values %s, whose "
                       "widths the heads divide; the first is %lld wide",
                       (long long)o->heads, expected[f.tensors - 1],
                       (long long)shapes->x[0].dim[1]);
    if (f.dim > MOST_DIM || f.values > MOST_DIM)
        return lk_fail(LK_E_SHAPE, "attention: heads of %lld numbers are wider than %d",
                       (long long)(f.dim > f.values ? f.dim : f.values), MOST_DIM);
    if (o->dropout > 0 && f.queries > MOST_DROPPED)
        return lk_fail(LK_E_SHAPE, "attention: dropout takes up to %d time steps, found %lld",
                       MOST_DROPPED, (long long)f.queries);
    if (shapes->window > 0 && !(o->causal && f.tensors == 1))
        return lk_fail(LK_E_UNSUPPORTED, "attention sees more than earlier time steps");
    const double seen =
        o->causal ? (double)(f.queries + 1) / 2 : (double)f.keys; /* keys of a query */
    shapes->y = (struct lk_shape){2, {f.queries, f.values * o->heads}};
    shapes->backward_reads_x = shapes->backward_reads_y = true;
    shapes->flops = 2.0 * (double)f.queries * seen * (double)((f.dim + f.values) * o->heads);
    return LK_OK;
}

bool lk_attention_drops(const struct lk_op_setup *setup)
{
    const struct lk_attention_options *o = setup->options;
    return setup->training && o->dropout > 0;
}

static enum lk_status prepare(struct lk_op_setup *setup)
{
    const struct lk_attention_options *o = setup->options;
    const struct lk_attention_form f = form_of(&setup->shapes);
    const struct lk_tiling *t = &setup->tiling;
    void *memory;
    LK_TRY(lk_arena_allocate(setup->arena, sizeof(struct lk_attention_kernels), &memory));
    struct lk_attention_kernels *s = setup->state = memory;
    LK_TRY(lk_attention_group(setup, &f, s));
    LK_TRY(lk_attention_rows(setup, &f, s));
    const size_t heads = (size_t)(t->tiles * o->heads * t->lanes) * lk_dtype_bytes(setup->real);
    if (setup->shapes.window > 0)
        setup->past_bytes =
            (size_t)(t->tiles * setup->shapes.window * setup->shapes.x[0].dim[1] * t->lanes) *
            lk_dtype_bytes(lk_op_stored(setup));
    if (setup->training) {
        setup->saved_bytes = 2 * heads * (size_t)f.queries;
        setup->workspace_bytes = heads * (size_t)(f.queries + s->sums);
    }
    return LK_OK;
}

/* --- forward and backward -------------------------------------------------------------- */

static struct lk_attention numbers_of(const struct lk_op_setup *setup,
                                      const struct lk_attention_form *f)
{
    const struct lk_attention_options *o = setup->options;
    const struct lk_shape *x = setup->shapes.x;
    return (struct lk_attention){.queries = f->queries,
                                 .keys = f->keys,
                                 .heads = o->heads,
                                 .q_row = x[0].dim[1],
                                 .k_row = x[f->k_input].dim[1],
                                 .v_row = x[f->v_input].dim[1],
                                 .k_at = f->k_at,
                                 .v_at = f->v_at};
}

static struct lk_drop drop_of(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct lk_attention_options *o = setup->options;
    return lk_drop(setup, run, o->dropout);
}

/* What a weight that is kept is multiplied with. */
static double keep_of(const struct lk_op_setup *setup)
{
    const struct lk_attention_options *o = setup->options;
    return lk_attention_drops(setup) ? 1 / (1 - o->dropout) : 1;
}

static struct lk_grid grid_of(const struct lk_op_setup *setup,
                              const struct lk_attention_kernel *k, int64_t time_steps)
{
    const struct lk_attention_options *o = setup->options;
    return (struct lk_grid){{lk_divide_up(time_steps, k->split.steps),
                             o->heads * k->split.slices, setup->tiling.tiles},
                            k->split.items};
}

static const struct lk_buffer *lengths_of(const struct lk_op_setup *setup,
                                          const struct lk_op_run *run,
                                          const struct lk_attention_form *f)
{
    return f->has_lengths ? run->x[setup->shapes.inputs - 1] : NULL;
}

/* One time step: it joins the earlier ones, whose keys and values it attends to. */
static enum lk_status forward_step(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct lk_attention_kernels *s = setup->state;
    const struct lk_attention_form f = form_of(&setup->shapes);
    const struct lk_grid grid = {{setup->tiling.tiles, 1, 1}, lk_op_items(setup)};
    const struct lk_drop drop = drop_of(setup, run);
    struct lk_attention numbers = numbers_of(setup, &f);
    numbers.before = run->time;
    LK_TRY(LK_ENQUEUE(s->keep, grid, LK_BUF(run->x[0]), LK_BUF(run->past),
                      LK_INT(setup->shapes.x[0].dim[1]), LK_INT(f.keys), LK_INT(run->time)));
    return LK_ENQUEUE(s->forward.kernel, grid_of(setup, &s->forward, 1), LK_BUF(run->x[0]),
                      LK_BUF(run->past), LK_BUF(run->past), LK_BUF(NULL), LK_BUF(run->y),
                      LK_BUF(NULL), LK_REAL(1 / sqrt((double)f.dim)), LK_REAL(keep_of(setup)),
                      LK_STRUCT(&numbers), LK_STRUCT(&drop));
}

static enum lk_status forward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct lk_attention_kernels *s = setup->state;
    const struct lk_attention_form f = form_of(&setup->shapes);
    const struct lk_attention numbers = numbers_of(setup, &f);
    const struct lk_drop drop = drop_of(setup, run);
    if (setup->shapes.window > 0)
        return forward_step(setup, run);
    return LK_ENQUEUE(s->forward.kernel, grid_of(setup, &s->forward, f.queries),
                      LK_BUF(run->x[0]), LK_BUF(run->x[f.k_input]), LK_BUF(run->x[f.v_input]),
                      LK_BUF(lengths_of(setup, run, &f)), LK_BUF(run->y), LK_BUF(run->saved),
                      LK_REAL(1 / sqrt((double)f.dim)), LK_REAL(keep_of(setup)),
                      LK_STRUCT(&numbers), LK_STRUCT(&drop));
}

static enum lk_status backward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct lk_attention_kernels *s = setup->state;
    const struct lk_attention_form f = form_of(&setup->shapes);
    const struct lk_attention numbers = numbers_of(setup, &f);
    const struct lk_drop drop = drop_of(setup, run);
    const struct lk_buffer *q = run->x[0], *k = run->x[f.k_input], *v = run->x[f.v_input];
    const struct lk_buffer *lengths = lengths_of(setup, run, &f);
    struct lk_buffer *dk = run->dx[f.k_input], *dv = run->dx[f.v_input];
    const double scale = 1 / sqrt((double)f.dim);
    if (!run->dx[0] && !dk && !dv)
        return LK_OK;
    if (s->all.kernel)
        return LK_ENQUEUE(s->all.kernel, grid_of(setup, &s->all, 1), LK_BUF(q), LK_BUF(k),
                          LK_BUF(v), LK_BUF(lengths), LK_BUF(run->y), LK_BUF(run->dy),
                          LK_BUF(run->saved), LK_BUF(run->workspace), LK_BUF(run->dx[0]),
                          LK_BUF(dk), LK_BUF(dv), LK_REAL(scale), LK_REAL(keep_of(setup)),
                          LK_STRUCT(&numbers), LK_STRUCT(&drop));
    LK_TRY(LK_ENQUEUE(s->queries.kernel, grid_of(setup, &s->queries, f.queries), LK_BUF(q),
                      LK_BUF(k), LK_BUF(v), LK_BUF(lengths), LK_BUF(run->y), LK_BUF(run->dy),
                      LK_BUF(run->saved), LK_BUF(run->workspace), LK_BUF(run->dx[0]),
                      LK_REAL(scale), LK_REAL(keep_of(setup)), LK_STRUCT(&numbers),
                      LK_STRUCT(&drop)));
    if (!dk && !dv)
        return LK_OK;
    return LK_ENQUEUE(s->keys.kernel, grid_of(setup, &s->keys, f.keys), LK_BUF(q), LK_BUF(k),
                      LK_BUF(v), LK_BUF(lengths), LK_BUF(run->dy), LK_BUF(run->saved),
                      LK_BUF(run->workspace), LK_BUF(dk), LK_BUF(dv), LK_REAL(scale),
                      LK_REAL(keep_of(setup)), LK_STRUCT(&numbers), LK_STRUCT(&drop));
}

static const struct lk_option options[] = {
    {.name = "heads",
     .kind = LK_OPTION_INT,
     .offset = offsetof(struct lk_attention_options, heads),
     .count = 1,
     .min = 1,
     .max = 4096,
     .standard = "1",
     .help = "how many heads the widths are divided among"},
    {.name = "causal",
     .kind = LK_OPTION_BOOL,
     .offset = offsetof(struct lk_attention_options, causal),
     .standard = "false",
     .help = "time step t sees steps 0 to t alone (Keras's use_causal_mask)"},
    {.name = "dropout",
     .kind = LK_OPTION_REAL,
     .offset = offsetof(struct lk_attention_options, dropout),
     .max = 0.999,
     .standard = "0",
     .help = "part of the weights of keys that training drops"},
    {0},
};

const struct lk_op lk_op_attention = {
    .name = "attention",
    .options = options,
    .options_bytes = sizeof(struct lk_attention_options),
    .min_inputs = 1,
    .max_inputs = 4,
    .takes_length = true,
    .length_of_last = true,
    .time = LK_TIME_BEFORE,
    .infer = infer,
    .prepare = prepare,
    .forward = forward,
    .backward = backward,
};

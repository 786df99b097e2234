/* Scaled dot-product attention of several heads, on queries, keys and values that dense layers
 * made: the part of multi-head attention between its products.
 * source: Vaswani et al., Attention Is All You Need (2017); the walk over blocks of keys: Dao
 * et al., FlashAttention (2022) */
#include "base/fail.h"
#include "ops/args.h"
#include "ops/dropout.h"
#include "ops/op.h"

#include <math.h>
#include <stdio.h>

enum { MOST_DIM = 512, MOST_DROPPED = 1 << 20 /* queries: cl/ops/attention/attention.cl */ };

struct options {
    int64_t heads;
    bool causal;
    double dropout;
};

/* --- shapes ---------------------------------------------------------------------------- */

/* Which input queries, keys and values are in, where in a time step they begin, and how many
 * numbers of a head they have. */
struct form {
    int tensors; /* 1: all side by side; 2: queries, and keys beside values; 3: each alone */
    int k_input, v_input;
    int64_t queries, keys, dim, values;
    int64_t k_at, v_at;
    bool has_lengths;
};

static struct form form_of(const struct lk_op_shapes *shapes)
{
    const struct options *o = shapes->options;
    const struct lk_shape *x = shapes->x;
    struct form f = {0};
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
static enum lk_status check_inputs(const struct lk_op_shapes *shapes, const struct form *f)
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
static bool has_widths(const struct lk_op_shapes *shapes, const struct form *f)
{
    const struct options *o = shapes->options;
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
    const struct options *o = shapes->options;
    const struct form f = form_of(shapes);
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

/* --- kernels --------------------------------------------------------------------------- */

enum { BLOCK = 32, BLOCK_ON_GPU = 4 };

struct state {
    struct lk_kernel *forward, *queries, *keys, *all, *keep;
    int rows, sets;             /* queries or keys that a work-group computes: sets of rows */
    int64_t slices, key_slices; /* work-groups that divide their results */
};

/* Rows that a work-item keeps at once: as many as the first two levels of a CPU's caches hold
 * beside what is walked; of a GPU, its registers. Changes no bit. */
static int rows_of(const struct lk_op_setup *setup, const struct form *f)
{
    if (setup->tiling.vector == 1 || f->queries == 1)
        return 1;
    return f->dim + f->values <= 256 ? 4 : 2;
}

/* Sets of such rows that a work-group computes with every block that it walks: as many as a
 * CPU's second-level cache holds with their sums and what is walked, since a block is fetched
 * the seldomer the more there are; but every core shall have two work-groups. Changes no bit.
 * NUMBERS: of own rows, a vector each; a work-item of backward has up to 3.5 times as many on
 * its stack, 900 KB of vectors of 16 floats. */
static int sets_of(const struct lk_op_setup *setup, const struct form *f, int rows)
{
    enum { NUMBERS = 4096 };
    const struct options *o = setup->options;
    const int64_t heads = setup->tiling.tiles * o->heads, steps = lk_least(f->queries, f->keys);
    const int64_t wanted = 2 * lk_device_info(setup->device)->compute_units;
    if (setup->tiling.vector == 1 || f->queries == 1)
        return 1;
    int64_t sets = lk_least(NUMBERS / ((f->dim + f->values) * rows), BLOCK / rows);
    while (sets > 1 && heads * lk_divide_up(steps, rows * sets) < wanted)
        sets--;
    return sets < 1 ? 1 : (int)sets;
}

/* How many work-groups divide the results of a row, so that `most` sums are left to a
 * work-item: a divisor of both widths. Each computes all scores. */
static int64_t slices_of(const struct lk_op_setup *setup, const struct form *f, int64_t most)
{
    const int64_t wide = f->dim > f->values ? f->dim : f->values;
    if (setup->tiling.vector > 1)
        return 1;
    for (int64_t slices = lk_divide_up(wide, most); slices < wide; slices++)
        if (f->dim % slices == 0 && f->values % slices == 0)
            return slices;
    return f->dim == f->values ? wide : 1;
}

static bool drops(const struct lk_op_setup *setup)
{
    const struct options *o = setup->options;
    return setup->training && o->dropout > 0;
}

/* Others that so many rows are multiplied with at once. Of 16 registers, 12 could hold sums, of
 * 4 rows with 3 others; but 3 divides neither a block nor the usual widths of heads. Changes no
 * bit. */
static int at_once(const struct lk_op_setup *setup, int rows)
{
    const size_t bytes = (size_t)setup->tiling.vector * lk_dtype_bytes(setup->real);
    return setup->tiling.vector > 1 && bytes < 64 && rows == 4 ? 2 : 4;
}

/* Whether one work-group computes all gradients of a head: it needs 5 products where those that
 * compute the queries' and the keys' apart need 7, but cores without a head wait. The same
 * bits. */
static bool takes_heads(const struct lk_op_setup *setup, const struct form *f)
{
    const struct options *o = setup->options;
    const bool *wants = setup->wants_dx;
    const int64_t heads = setup->tiling.tiles * o->heads;
    const int64_t cores = lk_device_info(setup->device)->compute_units;
    return setup->tiling.vector > 1 && wants[0] && wants[f->k_input] && wants[f->v_input] &&
           lk_divide_up(heads, cores) * cores * 5 <= heads * 7;
}

/* -D: of the kernels that walk blocks of so many keys or queries. */
static void print_options(const struct lk_op_setup *setup, const struct form *f, int block,
                          char text[static 256])
{
    const struct options *o = setup->options;
    const struct state *s = setup->state;
    snprintf(
        text, 256,
        "-DDIM=%lld -DVALUES=%lld -DROWS=%d -DSETS=%d -DAT_ONCE=%d -DBLOCK=%d -DUNROLLED=%d "
        "-DCAUSAL=%d -DLENGTHS=%d -DSELF=%d -DSLICES=%lld "
        "-DKEY_SLICES=%lld -DDROP=%d",
        (long long)f->dim, (long long)f->values, s->rows, s->sets, at_once(setup, s->rows),
        block, setup->tiling.vector == 1 ? 2 : 1, o->causal,
        f->has_lengths && setup->shapes.window == 0, f->tensors == 1, (long long)s->slices,
        (long long)s->key_slices, drops(setup));
}

/* A block's scores are in a CPU's first-level cache, or in a GPU's registers. */
static enum lk_status announce(const struct lk_op_setup *setup, const struct form *f,
                               struct state *s)
{
    static const char back[] = "ops/attention/backward";
    const bool is_gpu = setup->tiling.vector == 1;
    char text[256];
    print_options(setup, f, is_gpu ? BLOCK_ON_GPU : BLOCK, text);
    LK_TRY(
        lk_op_kernel(setup, "ops/attention/attention", "attention_forward", text, &s->forward));
    if (setup->shapes.window > 0)
        LK_TRY(
            lk_op_kernel(setup, "ops/attention/attention", "attention_keep", text, &s->keep));
    const bool *wants = setup->wants_dx;
    if (!setup->training || !(wants[0] || wants[f->k_input] || wants[f->v_input]))
        return LK_OK;
    if (takes_heads(setup, f))
        return lk_op_kernel(setup, back, "attention_all", text, &s->all);
    LK_TRY(lk_op_kernel(setup, back, "attention_queries", text, &s->queries));
    if (wants[f->k_input] || wants[f->v_input])
        LK_TRY(lk_op_kernel(setup, back, "attention_keys", text, &s->keys));
    return LK_OK;
}

static enum lk_status prepare(struct lk_op_setup *setup)
{
    const struct options *o = setup->options;
    const struct form f = form_of(&setup->shapes);
    const struct lk_tiling *t = &setup->tiling;
    void *memory;
    LK_TRY(lk_arena_allocate(setup->arena, sizeof(struct state), &memory));
    struct state *s = setup->state = memory;
    s->rows = rows_of(setup, &f);
    s->sets = sets_of(setup, &f, s->rows);
    s->slices = slices_of(setup, &f, 32);
    s->key_slices = slices_of(setup, &f, 16);
    LK_TRY(announce(setup, &f, s));
    const size_t each =
        (size_t)(t->tiles * o->heads * f.queries * t->lanes) * lk_dtype_bytes(setup->real);
    if (setup->shapes.window > 0)
        setup->past_bytes =
            (size_t)(t->tiles * setup->shapes.window * setup->shapes.x[0].dim[1] * t->lanes) *
            lk_dtype_bytes(lk_op_stored(setup));
    if (setup->training) {
        setup->saved_bytes = 2 * each;
        setup->workspace_bytes = each;
        if (s->all) /* sums of whole sets of queries */
            setup->workspace_bytes +=
                each / (size_t)f.queries *
                (size_t)(lk_divide_up(f.queries, s->rows) * s->rows * f.dim);
    }
    return LK_OK;
}

/* --- forward and backward -------------------------------------------------------------- */

static struct lk_attention numbers_of(const struct lk_op_setup *setup, const struct form *f)
{
    const struct options *o = setup->options;
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
    const struct options *o = setup->options;
    return lk_drop(setup, run, o->dropout);
}

/* What a weight that is kept is multiplied with. */
static double keep_of(const struct lk_op_setup *setup)
{
    const struct options *o = setup->options;
    return drops(setup) ? 1 / (1 - o->dropout) : 1;
}

static struct lk_grid grid_of(const struct lk_op_setup *setup, int64_t time_steps,
                              int64_t slices)
{
    const struct options *o = setup->options;
    const struct state *s = setup->state;
    return (struct lk_grid){{lk_divide_up(time_steps, (int64_t)s->rows * s->sets),
                             o->heads * slices, setup->tiling.tiles},
                            lk_op_items(setup)};
}

static const struct lk_buffer *lengths_of(const struct lk_op_setup *setup,
                                          const struct lk_op_run *run, const struct form *f)
{
    return f->has_lengths ? run->x[setup->shapes.inputs - 1] : NULL;
}

/* One time step: it joins the earlier ones, whose keys and values it attends to. */
static enum lk_status forward_step(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct state *s = setup->state;
    const struct form f = form_of(&setup->shapes);
    const struct lk_grid grid = {{setup->tiling.tiles, 1, 1}, lk_op_items(setup)};
    const struct lk_drop drop = drop_of(setup, run);
    struct lk_attention numbers = numbers_of(setup, &f);
    numbers.before = run->time;
    LK_TRY(LK_ENQUEUE(s->keep, grid, LK_BUF(run->x[0]), LK_BUF(run->past),
                      LK_INT(setup->shapes.x[0].dim[1]), LK_INT(f.keys), LK_INT(run->time)));
    return LK_ENQUEUE(s->forward, grid_of(setup, 1, s->slices), LK_BUF(run->x[0]),
                      LK_BUF(run->past), LK_BUF(run->past), LK_BUF(NULL), LK_BUF(run->y),
                      LK_BUF(NULL), LK_REAL(1 / sqrt((double)f.dim)), LK_REAL(keep_of(setup)),
                      LK_STRUCT(&numbers), LK_STRUCT(&drop));
}

static enum lk_status forward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct state *s = setup->state;
    const struct form f = form_of(&setup->shapes);
    const struct lk_attention numbers = numbers_of(setup, &f);
    const struct lk_drop drop = drop_of(setup, run);
    if (setup->shapes.window > 0)
        return forward_step(setup, run);
    return LK_ENQUEUE(s->forward, grid_of(setup, f.queries, s->slices), LK_BUF(run->x[0]),
                      LK_BUF(run->x[f.k_input]), LK_BUF(run->x[f.v_input]),
                      LK_BUF(lengths_of(setup, run, &f)), LK_BUF(run->y), LK_BUF(run->saved),
                      LK_REAL(1 / sqrt((double)f.dim)), LK_REAL(keep_of(setup)),
                      LK_STRUCT(&numbers), LK_STRUCT(&drop));
}

static enum lk_status backward(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const struct state *s = setup->state;
    const struct form f = form_of(&setup->shapes);
    const struct lk_attention numbers = numbers_of(setup, &f);
    const struct lk_drop drop = drop_of(setup, run);
    const struct lk_buffer *q = run->x[0], *k = run->x[f.k_input], *v = run->x[f.v_input];
    const struct lk_buffer *lengths = lengths_of(setup, run, &f);
    struct lk_buffer *dk = run->dx[f.k_input], *dv = run->dx[f.v_input];
    const double scale = 1 / sqrt((double)f.dim);
    if (!run->dx[0] && !dk && !dv)
        return LK_OK;
    if (s->all) {
        const struct lk_grid grid = {{1, numbers.heads, setup->tiling.tiles},
                                     lk_op_items(setup)};
        return LK_ENQUEUE(s->all, grid, LK_BUF(q), LK_BUF(k), LK_BUF(v), LK_BUF(lengths),
                          LK_BUF(run->y), LK_BUF(run->dy), LK_BUF(run->saved),
                          LK_BUF(run->workspace), LK_BUF(run->dx[0]), LK_BUF(dk), LK_BUF(dv),
                          LK_REAL(scale), LK_REAL(keep_of(setup)), LK_STRUCT(&numbers),
                          LK_STRUCT(&drop));
    }
    LK_TRY(LK_ENQUEUE(s->queries, grid_of(setup, f.queries, s->slices), LK_BUF(q), LK_BUF(k),
                      LK_BUF(v), LK_BUF(lengths), LK_BUF(run->y), LK_BUF(run->dy),
                      LK_BUF(run->saved), LK_BUF(run->workspace), LK_BUF(run->dx[0]),
                      LK_REAL(scale), LK_REAL(keep_of(setup)), LK_STRUCT(&numbers),
                      LK_STRUCT(&drop)));
    if (!dk && !dv)
        return LK_OK;
    return LK_ENQUEUE(s->keys, grid_of(setup, f.keys, s->key_slices), LK_BUF(q), LK_BUF(k),
                      LK_BUF(v), LK_BUF(lengths), LK_BUF(run->dy), LK_BUF(run->saved),
                      LK_BUF(run->workspace), LK_BUF(dk), LK_BUF(dv), LK_REAL(scale),
                      LK_REAL(keep_of(setup)), LK_STRUCT(&numbers), LK_STRUCT(&drop));
}

static const struct lk_option options[] = {
    {.name = "heads",
     .kind = LK_OPTION_INT,
     .offset = offsetof(struct options, heads),
     .count = 1,
     .min = 1,
     .max = 4096,
     .standard = "1",
     .help = "how many heads the widths are divided among"},
    {.name = "causal",
     .kind = LK_OPTION_BOOL,
     .offset = offsetof(struct options, causal),
     .standard = "false",
     .help = "time step t sees steps 0 to t alone (Keras's use_causal_mask)"},
    {.name = "dropout",
     .kind = LK_OPTION_REAL,
     .offset = offsetof(struct options, dropout),
     .max = 0.999,
     .standard = "0",
     .help = "part of the weights of keys that training drops"},
    {0},
};

const struct lk_op lk_op_attention = {
    .name = "attention",
    .options = options,
    .options_bytes = sizeof(struct options),
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

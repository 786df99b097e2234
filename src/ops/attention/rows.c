/* Attention by rows of queries or keys, which a work-item computes by itself: for CPUs, and for
 * GPUs where no block of group.c fits. */
#include "base/fail.h"
#include "ops/attention/attention.h"

#include <stdio.h>
#include <string.h>

enum { BLOCK = 32, BLOCK_ON_GPU = 4 };

/* How many rows are computed at once, how many sets of them a work-group computes, forward and
 * backward. */
struct rows {
    int rows, sets, sets_back;
    int64_t slices, key_slices; /* work-groups that divide their results */
};

/* Rows that a work-item keeps at once: as many as the first two levels of a CPU's caches hold
 * beside what is walked; of a GPU, its registers. Changes no bit. */
static int rows_of(const struct lk_op_setup *setup, const struct lk_attention_form *f)
{
    if (setup->tiling.vector == 1 || f->queries == 1)
        return 1;
    return f->dim + f->values <= 256 ? 4 : 2;
}

/* Vectors of 64 bytes that a work-item may have on its stack. Forward they are 1.3 MB, more
 * than most second-level caches hold, but what is read in order comes in time from beyond them.
 * Backward has twice as many as are counted, and a block's weights turned. */
enum { VECTOR_BYTES = 64, FORWARD_VECTORS = 20480, BACKWARD_VECTORS = 5120 };

/* Work-groups of so many rows that shall keep the cores busy: two for each, and more where they
 * have more rows than a block, since then the last ones end later. Causal ones of a head, which
 * see ever more keys, differ in what they take. */
static int64_t groups_wanted(const struct lk_op_setup *setup, int64_t rows)
{
    const struct lk_attention_options *o = setup->options;
    const int64_t many = o->causal ? 16 : 8;
    return lk_device_info(setup->device)->compute_units * (rows <= BLOCK ? 2 : many);
}

/* Sets of such rows of `steps` that a work-group computes with every block that it walks: as
 * many as there are `vectors` for, and at most `most` rows. A block comes from the third-level
 * cache or from memory the seldomer the more there are; but there shall be work-groups for all
 * cores, each with about as many rows. Changes no bit. */
static int sets_of(const struct lk_op_setup *setup, const struct lk_attention_form *f, int rows,
                   int64_t steps, int64_t vectors, int64_t most)
{
    const struct lk_attention_options *o = setup->options;
    const int64_t heads = setup->tiling.tiles * o->heads;
    const int64_t bytes = setup->tiling.vector * (int64_t)lk_dtype_bytes(setup->real);
    const int64_t of_set = (f->dim + f->values + BLOCK) * rows;
    if (setup->tiling.vector == 1 || f->queries == 1)
        return 1;
    if (bytes > VECTOR_BYTES)
        vectors = vectors * VECTOR_BYTES / bytes;
    int64_t sets = lk_least(vectors / of_set, lk_divide_up(most, rows));
    while (sets > 1 &&
           heads * lk_divide_up(steps, rows * sets) < groups_wanted(setup, rows * sets))
        sets--;
    if (sets < 1)
        return 1;
    return (int)lk_divide_up(steps, rows * lk_divide_up(steps, rows * sets));
}

/* How many work-groups divide the results of a row, so that `most` sums are left to a
 * work-item: a divisor of both widths. Each computes all scores. */
static int64_t slices_of(const struct lk_op_setup *setup, const struct lk_attention_form *f,
                         int64_t most)
{
    const int64_t wide = f->dim > f->values ? f->dim : f->values;
    if (setup->tiling.vector > 1)
        return 1;
    for (int64_t slices = lk_divide_up(wide, most); slices < wide; slices++)
        if (f->dim % slices == 0 && f->values % slices == 0)
            return slices;
    return f->dim == f->values ? wide : 1;
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
static bool takes_heads(const struct lk_op_setup *setup, const struct lk_attention_form *f)
{
    const struct lk_attention_options *o = setup->options;
    const bool *wants = setup->wants_dx;
    const int64_t heads = setup->tiling.tiles * o->heads;
    const int64_t cores = lk_device_info(setup->device)->compute_units;
    return setup->tiling.vector > 1 && wants[0] && wants[f->k_input] && wants[f->v_input] &&
           lk_divide_up(heads, cores) * cores * 5 <= heads * 7;
}

/* -D: of the kernels that walk blocks of so many keys or queries. */
static void print_options(const struct lk_op_setup *setup, const struct lk_attention_form *f,
                          const struct rows *r, int sets, char text[static 256])
{
    const struct lk_attention_options *o = setup->options;
    const bool is_gpu = setup->tiling.vector == 1;
    snprintf(
        text, 256,
        "-DDIM=%lld -DVALUES=%lld -DROWS=%d -DSETS=%d -DAT_ONCE=%d -DBLOCK=%d -DUNROLLED=%d "
        "-DCAUSAL=%d -DLENGTHS=%d -DSELF=%d -DSLICES=%lld "
        "-DKEY_SLICES=%lld -DDROP=%d",
        (long long)f->dim, (long long)f->values, r->rows, sets, at_once(setup, r->rows),
        is_gpu ? BLOCK_ON_GPU : BLOCK, is_gpu ? 2 : 1, o->causal,
        f->has_lengths && setup->shapes.window == 0, f->tensors == 1, (long long)r->slices,
        (long long)r->key_slices, lk_attention_drops(setup));
}

/* Announces a kernel whose place is still empty. */
static enum lk_status announce(const struct lk_op_setup *setup, const char *name,
                               const char *text, struct lk_attention_split split,
                               struct lk_attention_kernel *k)
{
    const bool is_forward = strcmp(name, "attention_forward") == 0;
    if (k->kernel)
        return LK_OK;
    k->split = split;
    return lk_op_kernel(setup,
                        is_forward ? "ops/attention/attention" : "ops/attention/backward", name,
                        text, &k->kernel);
}

/* A block's scores are in a CPU's caches, or in a GPU's registers. */
enum lk_status lk_attention_rows(const struct lk_op_setup *setup,
                                 const struct lk_attention_form *f,
                                 struct lk_attention_kernels *kernels)
{
    const int rows = rows_of(setup, f);
    const int64_t both = lk_least(f->queries, f->keys);
    const struct rows r = {rows,
                           sets_of(setup, f, rows, f->queries, FORWARD_VECTORS, f->queries),
                           sets_of(setup, f, rows, both, BACKWARD_VECTORS, BLOCK),
                           slices_of(setup, f, 32), slices_of(setup, f, 16)};
    const int items = lk_op_items(setup);
    const struct lk_attention_split split = {rows * r.sets, r.slices, items},
                                    of_queries = {rows * r.sets_back, r.slices, items},
                                    of_keys = {rows * r.sets_back, r.key_slices, items},
                                    of_heads = {1, 1, items};
    const bool *wants = setup->wants_dx;
    char text[256];
    print_options(setup, f, &r, r.sets, text);
    LK_TRY(announce(setup, "attention_forward", text, split, &kernels->forward));
    if (setup->shapes.window > 0)
        LK_TRY(lk_op_kernel(setup, "ops/attention/attention", "attention_keep", text,
                            &kernels->keep));
    if (!setup->training || !(wants[0] || wants[f->k_input] || wants[f->v_input]))
        return LK_OK;
    print_options(setup, f, &r, r.sets_back, text);
    if (takes_heads(setup, f)) {
        kernels->sums = lk_divide_up(f->queries, rows) * rows * f->dim;
        return announce(setup, "attention_all", text, of_heads, &kernels->all);
    }
    LK_TRY(announce(setup, "attention_queries", text, of_queries, &kernels->queries));
    if (wants[f->k_input] || wants[f->v_input])
        LK_TRY(announce(setup, "attention_keys", text, of_keys, &kernels->keys));
    return LK_OK;
}

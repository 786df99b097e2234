/* Attention by work-groups of several warps: which blocks of queries and keys a GPU takes. */
#include "base/fail.h"
#include "ops/attention/attention.h"

#include <stdio.h>
#include <string.h>

/* A work-group's block of the matrix [queries, keys]. KEYS are multiples of BLOCK. Which is
 * taken changes no bit. */
struct block {
    int queries, keys;
    double cost; /* of a query, in time: what is loaded serves fewer of them */
};
static const struct block blocks[] = {
    {16, 16, 1}, {8, 32, 1.3}, {8, 16, 1.5}, {4, 32, 2}, {4, 16, 2.5},
};
enum { MOST_WARPS = 8, BLOCK = 16, LEAST_KEYS = 4 };

/* Sums that a work-item may keep beside what it multiplies, by its registers: see
 * tools/gpu_static. */
static int64_t most_sums(const struct lk_device_info *info)
{
    static const struct vendor {
        const char *name;
        int sums;
    } vendors[] = {{"NVIDIA", 128}, {"Advanced Micro Devices", 64}, {"", 32}};
    int i = 0;
    while (!strstr(info->vendor, vendors[i].name))
        i++;
    return vendors[i].sums;
}

/* 0: not even two fit a work-group. */
static int warps_of(const struct lk_op_setup *setup)
{
    int warps = MOST_WARPS;
    while ((size_t)(warps * setup->tiling.lanes) > lk_device_info(setup->device)->group_items)
        warps /= 2;
    return warps > 1 ? warps : 0;
}

static size_t local_bytes(const struct lk_op_setup *setup, const struct block *b)
{
    const int numbers = b->queries * b->keys + b->keys / BLOCK * b->queries;
    return (size_t)(numbers * setup->tiling.lanes) * lk_dtype_bytes(setup->real);
}

static bool fits(const struct lk_op_setup *setup, const struct lk_attention_form *f,
                 const struct block *b, int warps)
{
    const struct lk_device_info *info = lk_device_info(setup->device);
    return f->queries >= b->queries && f->keys >= LEAST_KEYS &&
           b->queries * lk_divide_up(f->values, warps) <= most_sums(info) &&
           local_bytes(setup, b) <= info->local_bytes;
}

/* Every compute unit has one work-group at a time. */
static double seconds(const struct lk_op_setup *setup, const struct lk_attention_form *f,
                      const struct block *b)
{
    const struct lk_attention_options *o = setup->options;
    const int64_t groups =
        setup->tiling.tiles * o->heads * lk_divide_up(f->queries, b->queries);
    const int64_t turns = lk_divide_up(groups, lk_device_info(setup->device)->compute_units);
    return (double)(turns * b->queries) * b->cost;
}

/* The block that should take least time; NULL: none fits. */
static const struct block *choose(const struct lk_op_setup *setup,
                                  const struct lk_attention_form *f, int warps)
{
    const struct block *best = NULL;
    for (int i = 0; i < LK_COUNT(blocks); i++)
        if (fits(setup, f, &blocks[i], warps) &&
            (!best || seconds(setup, f, &blocks[i]) < seconds(setup, f, best)))
            best = &blocks[i];
    return best;
}

static void print_options(const struct lk_op_setup *setup, const struct lk_attention_form *f,
                          const struct block *b, int warps, char text[static 320])
{
    const struct lk_attention_options *o = setup->options;
    const struct lk_shape *x = setup->shapes.x;
    snprintf(text, 320,
             "-DDIM=%lld -DVALUES=%lld -DQUERIES=%d -DKEYS=%d -DWARPS=%d -DQ_ROW=%lld "
             "-DK_ROW=%lld -DV_ROW=%lld -DCAUSAL=%d -DLENGTHS=%d -DSELF=%d -DDROP=%d",
             (long long)f->dim, (long long)f->values, b->queries, b->keys, warps,
             (long long)x[0].dim[1], (long long)x[f->k_input].dim[1],
             (long long)x[f->v_input].dim[1], o->causal, f->has_lengths, f->tensors == 1,
             lk_attention_drops(setup));
}

enum lk_status lk_attention_group(const struct lk_op_setup *setup,
                                  const struct lk_attention_form *f,
                                  struct lk_attention_kernels *kernels)
{
    const int warps = warps_of(setup);
    if (setup->tiling.vector > 1 || setup->shapes.window > 0 || warps == 0)
        return LK_OK;
    const struct block *block = choose(setup, f, warps);
    if (!block)
        return LK_OK;
    char text[320];
    print_options(setup, f, block, warps, text);
    kernels->forward.split =
        (struct lk_attention_split){block->queries, 1, warps * setup->tiling.lanes};
    return lk_op_kernel(setup, "ops/attention/group", "attention_group_forward", text,
                        &kernels->forward.kernel);
}

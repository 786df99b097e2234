/* Attention by work-groups of several warps: which blocks of queries and keys a GPU takes. */
#include "base/fail.h"
#include "ops/attention/attention.h"
#include "ops/warps.h"

#include <stdio.h>
#include <string.h>

/* A work-group's block of the matrix [queries, keys]: the steps that it computes, and those
 * that it walks at a time. Which is taken changes no bit. */
struct block {
    int own, walked;
    double cost; /* of an own step, in time: what is loaded serves fewer of them */
};

/* Where queries are computed, and where keys are: those have two gradients. */
static const struct block of_queries[] = {
    {16, 16, 1}, {8, 32, 1.3}, {8, 16, 1.5}, {4, 32, 2}, {4, 16, 2.5}, {0},
};
static const struct block of_keys[] = {{8, 32, 1}, {8, 16, 1.2}, {4, 32, 1.6}, {4, 16, 2}, {0}};

enum { BLOCK = 16, LEAST_WALKED = 4 };

/* A kernel: how many numbers of each own step it sums up, and in how many tensors they are. */
struct use {
    const char *source, *name;
    const struct block *blocks;
    int64_t own, walked; /* time steps */
    int64_t sums[2];
    bool is_backward, is_of_keys;
};

/* What a vendor's devices have registers for, see tools/gpu_static: sums of a work-item,
 * forward and backward, which needs more for other things; and how many numbers of a row it may
 * read before they are needed. */
static const struct vendor {
    const char *name;
    int forward, backward, ahead;
} vendors[] = {
    {"NVIDIA", 128, 128, 8},
    {"Advanced Micro Devices", 64, 64, 4},
    {"", 32, 16, 4},
};

static const struct vendor *vendor_of(const struct lk_op_setup *setup)
{
    const struct vendor *v = vendors;
    while (!strstr(lk_device_info(setup->device)->vendor, v->name))
        v++;
    return v;
}

/* The matrix, and a number of each query for every BLOCK keys. */
static size_t local_bytes(const struct lk_op_setup *setup, const struct use *use,
                          const struct block *b)
{
    const int numbers = b->own * b->walked + (use->is_of_keys ? 0 : b->own * b->walked / BLOCK);
    return (size_t)(numbers * setup->tiling.lanes) * lk_dtype_bytes(setup->real);
}

static bool fits(const struct lk_op_setup *setup, const struct use *use, const struct block *b,
                 int warps)
{
    const struct vendor *v = vendor_of(setup);
    const int most = use->is_backward ? v->backward : v->forward;
    const int64_t sums = lk_divide_up(use->sums[0], warps) + lk_divide_up(use->sums[1], warps);
    return use->own >= b->own && use->walked >= LEAST_WALKED && b->own * sums <= most &&
           local_bytes(setup, use, b) <= lk_device_info(setup->device)->local_bytes;
}

/* Every compute unit has one work-group at a time. */
static double seconds(const struct lk_op_setup *setup, const struct use *use,
                      const struct block *b)
{
    const struct lk_attention_options *o = setup->options;
    const int64_t groups = setup->tiling.tiles * o->heads * lk_divide_up(use->own, b->own);
    const int64_t turns = lk_divide_up(groups, lk_device_info(setup->device)->compute_units);
    return (double)(turns * b->own) * b->cost;
}

/* The block that should take least time; NULL: none fits. */
static const struct block *choose(const struct lk_op_setup *setup, const struct use *use,
                                  int warps)
{
    const struct block *best = NULL;
    for (const struct block *b = use->blocks; b->own; b++)
        if (fits(setup, use, b, warps) &&
            (!best || seconds(setup, use, b) < seconds(setup, use, best)))
            best = b;
    return best;
}

enum { OPTIONS_BYTES = 320 };

static void print_options(const struct lk_op_setup *setup, const struct lk_attention_form *f,
                          const struct use *use, const struct block *b, int warps,
                          char text[static OPTIONS_BYTES])
{
    const struct lk_attention_options *o = setup->options;
    const struct lk_shape *x = setup->shapes.x;
    snprintf(text, OPTIONS_BYTES,
             "-DDIM=%lld -DVALUES=%lld -DHEADS=%lld -DQUERIES=%d -DKEYS=%d -DWARPS=%d "
             "-DQ_ROW=%lld -DK_ROW=%lld -DV_ROW=%lld -DCAUSAL=%d -DLENGTHS=%d -DSELF=%d "
             "-DDROP=%d -DAHEAD=%d",
             (long long)f->dim, (long long)f->values, (long long)o->heads,
             use->is_of_keys ? b->walked : b->own, use->is_of_keys ? b->own : b->walked, warps,
             (long long)x[0].dim[1], (long long)x[f->k_input].dim[1],
             (long long)x[f->v_input].dim[1], o->causal, f->has_lengths, f->tensors == 1,
             lk_attention_drops(setup), vendor_of(setup)->ahead);
}

static enum lk_status announce(const struct lk_op_setup *setup,
                               const struct lk_attention_form *f, const struct use *use,
                               struct lk_attention_kernel *kernel)
{
    const int warps = lk_op_warps(setup);
    const struct block *block = warps > 1 ? choose(setup, use, warps) : NULL;
    char text[OPTIONS_BYTES];
    if (!block)
        return LK_OK;
    print_options(setup, f, use, block, warps, text);
    kernel->split = (struct lk_attention_split){block->own, 1, warps * setup->tiling.lanes};
    return lk_op_kernel(setup, use->source, use->name, text, &kernel->kernel);
}

enum lk_status lk_attention_group(const struct lk_op_setup *setup,
                                  const struct lk_attention_form *f,
                                  struct lk_attention_kernels *kernels)
{
    const struct use forward = {.source = "ops/attention/group",
                                .name = "attention_group_forward",
                                .blocks = of_queries,
                                .own = f->queries,
                                .walked = f->keys,
                                .sums = {f->values}};
    const struct use queries = {.source = "ops/attention/group_queries",
                                .name = "attention_group_queries",
                                .blocks = of_queries,
                                .own = f->queries,
                                .walked = f->keys,
                                .sums = {f->dim},
                                .is_backward = true};
    const struct use keys = {.source = "ops/attention/group_keys",
                             .name = "attention_group_keys",
                             .blocks = of_keys,
                             .own = f->keys,
                             .walked = f->queries,
                             .sums = {f->dim, f->values},
                             .is_backward = true,
                             .is_of_keys = true};
    const bool wants_keys = setup->wants_dx[f->k_input] || setup->wants_dx[f->v_input];
    if (setup->tiling.vector > 1 || setup->shapes.window > 0)
        return LK_OK;
    LK_TRY(announce(setup, f, &forward, &kernels->forward));
    if (setup->training && (setup->wants_dx[0] || wants_keys))
        LK_TRY(announce(setup, f, &queries, &kernels->queries));
    if (setup->training && wants_keys)
        LK_TRY(announce(setup, f, &keys, &kernels->keys));
    return LK_OK;
}

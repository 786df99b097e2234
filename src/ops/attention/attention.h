/* What the files of attention share. Floor 4. Private to src/ops/attention. */
#ifndef LK_OPS_ATTENTION_H
#define LK_OPS_ATTENTION_H

#include "ops/op.h"

struct lk_attention_options {
    int64_t heads;
    bool causal;
    double dropout;
};

/* Which input queries, keys and values are in, where in a time step they begin, and how many
 * numbers of a head they have. */
struct lk_attention_form {
    int tensors; /* 1: all side by side; 2: queries, and keys beside values; 3: each alone */
    int k_input, v_input;
    int64_t queries, keys, dim, values;
    int64_t k_at, v_at;
    bool has_lengths;
};

/* How a kernel's work is divided among work-groups. */
struct lk_attention_split {
    int64_t steps, slices; /* time steps of one; so many divide the numbers of a head */
    int items;
};

struct lk_attention_kernel {
    struct lk_kernel *kernel;
    struct lk_attention_split split;
};

struct lk_attention_kernels {
    struct lk_attention_kernel forward, queries, keys, all;
    struct lk_kernel *keep;
    int64_t sums; /* numbers of a head that `all` keeps in the workspace, behind the dots */
};

/* Whether training drops weights. */
bool lk_attention_drops(const struct lk_op_setup *setup);

/* Announces kernels of cl/ops/attention/group*.cl where the device is a GPU that they fit.
 * fails: as lk_op_kernel */
LK_MUST_CHECK enum lk_status lk_attention_group(const struct lk_op_setup *setup,
                                                const struct lk_attention_form *form,
                                                struct lk_attention_kernels *kernels);

/* Announces those of cl/ops/attention/attention.cl for all work that is left. fails: as
 * lk_op_kernel */
LK_MUST_CHECK enum lk_status lk_attention_rows(const struct lk_op_setup *setup,
                                               const struct lk_attention_form *form,
                                               struct lk_attention_kernels *kernels);

#endif

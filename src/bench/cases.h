/* The operations that `lockstep bench kernels` times: layers of well-known networks. Floor 9.
 */
#ifndef LK_BENCH_CASES_H
#define LK_BENCH_CASES_H

#include <lockstep/tensor.h>
#include <stdbool.h>

struct lk_bench_case {
    const char *set, *op, *options;
    const char *absorbed, *absorbed_options; /* an operation fused into it; NULL: none */
    struct lk_shape x;                       /* of every input */
    struct lk_shape second;                  /* but of the second, unless its rank is 0 */
    int inputs;                              /* 0: one */
    bool behind_relu, before_conv; /* where it stands in its network, so that its dx, or its dy,
                                    * is gated (ops/op.h) */
    bool is_first; /* the network's first layer, whose data gradient nobody needs */
    int batch;
};

/* The last row has no set. */
extern const struct lk_bench_case lk_bench_cases[];

/* Returns how many inputs there are and writes the shape of each to `x`. */
int lk_bench_case_inputs(const struct lk_bench_case *c, struct lk_shape *x);

#endif

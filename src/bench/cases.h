/* The operations that are timed: layers of well-known networks. Floor 9. */
#ifndef LK_BENCH_CASES_H
#define LK_BENCH_CASES_H

#include <lockstep/tensor.h>
#include <stdbool.h>

struct lk_bench_case {
    const char *set, *op, *options;
    const char *absorbed, *absorbed_options; /* NULL: nothing */
    struct lk_shape x;                       /* of every input */
    int inputs;                              /* 0: one */
    bool behind_relu, before_conv;           /* in its network: its dx, and its dy, are gated */
    bool is_first; /* layer of its network: nobody asks for its data gradient */
    int batch;
};

/* Ends with a row without a set. */
extern const struct lk_bench_case lk_bench_cases[];

#endif

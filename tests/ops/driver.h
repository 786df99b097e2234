/* The one test of every operation: tables of cases against an oracle in plain C and double.
 *
 * A test file has an oracle, a table of cases, a table of refusals, and a main() that returns
 * op_test(&suite). What is checked for a case, on every class of kernels and both number types:
 * forward and backward against the oracle; gradients by finite differences (double); nothing
 * outside the tensors written, everything inside written; dead lanes; the same bits twice, on a
 * part of the device, and prepared for other numbers of cores; no allocation. */
#ifndef TESTS_OPS_DRIVER_H
#define TESTS_OPS_DRIVER_H

#include "base/fail.h"
#include "ops/op.h"

/* What an oracle is asked: the operation over the samples of one shard. */
struct op_problem {
    const void *options;
    const struct lk_op_shapes *shapes;
    int64_t samples; /* of this shard */
    int64_t first;   /* the number of its first sample in the whole batch */
    bool training;
    bool is_frozen; /* dw is not asked for */
    uint64_t seed;  /* as in lk_op_setup and lk_op_run */
    uint32_t stream;
    int64_t step;
};

/* Arrays are in host order [samples][shape...]; labels are whole numbers. y, dx, dw hold zeros
 * before the call; dx of labels is NULL, and so is dy of a loss. */
struct op_oracle {
    void (*forward)(const struct op_problem *p, const double *const x[],
                    const double *const w[], double *y);

    /* NULL: gradients are taken from forward by central differences (slow: few samples; exact
     * to 1e-8 of the largest) */
    void (*backward)(const struct op_problem *p, const double *const x[],
                     const double *const w[], const double *dy, double *const dx[],
                     double *const dw[]);

    /* (optional) Changes the random x and w of a case before it runs: `samples` samples. Keep
     * the values representable in float. */
    void (*arrange)(const struct lk_op_shapes *shapes, int64_t samples, double *const x[],
                    double *const w[]);
};

/* Kinds of configurations: a class of kernels and a number type. */
enum { OP_CPU = 1, OP_CPU_DOUBLE = 2, OP_GPU = 4, OP_GPU_DOUBLE = 8 };

/* The nearest number that a half holds, ties to even. */
double op_round_to_half(double value);

struct op_case {
    const char *op, *options;
    int inputs; /* 0: one */
    struct lk_shape x[LK_MOST_INPUTS];
    int classes[LK_MOST_INPUTS]; /* input i is int32 labels 0 .. classes - 1; 0: real */
    int64_t samples;
    int64_t batch;     /* that the tiling is made for; 0: samples */
    int shards;        /* 0: one */
    struct lk_shape y; /* that infer must find; rank 0: not checked */

    double weight;    /* of a loss: its option, which gradients have and y has not; 0: 1 */
    bool integers;    /* x, w and dy are whole numbers -3..3; results must be exact */
    double low, high; /* of random x; both 0: -1..1 */
    double tolerance; /* in epsilons of the largest result (for dw further `samples`); 0: 64 */

    bool thorough;  /* besides the most usual three configurations: activations as halves, a
                     * part of the device, gradients asked for in parts; in suite slow all
                     * vector widths with both number types */
    bool half;      /* or with halves alone */
    bool sizes;     /* also with 1, 2, 17, 127, 128, 129 samples in 1, 2, 8 shards */
    bool inference; /* without training: forward alone */
    bool planes;    /* in plane tiles, on CPUs alone, without halves; likewise, unless the
                     * operation trains so */
    bool gated;     /* also with gates before and behind it, which its algorithm must take */
    bool frozen;    /* in training, but without dw; not with thorough */
    int only; /* of the configurations, those of these kinds: for a case much like others where
               * compilers take long; 0: all. A device that is a GPU runs every case. */
    const char *algorithm; /* to prefer; with float, at least one pass must take it. NULL: by
                            * rule of LK_MATH_STRICT */
    const struct op_oracle *oracle; /* NULL: the suite's */
};

/* Options or shapes that must be refused. */
struct op_refusal {
    const char *op, *options;
    int inputs; /* 0: one */
    struct lk_shape x[LK_MOST_INPUTS];
    bool labels[LK_MOST_INPUTS]; /* input i is int32 */
    enum lk_status status;
    const char *said; /* a piece of the message */
};

struct op_suite {
    const struct op_oracle *oracle;
    const struct op_case *cases;
    int case_count;
    const struct op_refusal *refusals;
    int refusal_count;
};

#define OP_SUITE(oracle_, cases_, refusals_)                                                   \
    {                                                                                          \
        .oracle = (oracle_), .cases = (cases_), .case_count = LK_COUNT(cases_),                \
        .refusals = (refusals_), .refusal_count = LK_COUNT(refusals_)                          \
    }

/* OP_SHAPE(3, 8, 8): a shape of rank 3. */
#define OP_SHAPE(...)                                                                          \
    {                                                                                          \
        sizeof((const int[]){__VA_ARGS__}) / sizeof(int),                                      \
        {                                                                                      \
            __VA_ARGS__                                                                        \
        }                                                                                      \
    }

/* Runs the suite as a cmocka group, a test a case; the exit status of the program. */
int op_test(const struct op_suite *suite);

#endif

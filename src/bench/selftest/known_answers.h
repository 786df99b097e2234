/* Operations with known answers: one row each. Inputs are small integers, so that sums are
 * exact in float in any order and every device gives the same bits; functions that are not
 * exact are compared with the host's. Floor 9. Knows no device. */
#ifndef LK_BENCH_SELFTEST_KNOWN_ANSWERS_H
#define LK_BENCH_SELFTEST_KNOWN_ANSWERS_H

#include "ops/op.h"

enum { LK_KNOWN_BATCH = 40, LK_KNOWN_SHARDS = 2 };

/* Host arrays in the order of samples: x, dy: [LK_KNOWN_BATCH][shape]. */
struct lk_known_arrays {
    float *x[LK_MOST_INPUTS], *w[LK_MOST_PARAMS], *dy;
    int32_t *labels;
};

/* What x is drawn from: -3 .. 3; -8, -7.75 .. 8; 1/64 .. 63/64. w and dy: -3 .. 3. */
enum lk_known_numbers { LK_KNOWN_INTEGERS, LK_KNOWN_QUARTERS, LK_KNOWN_FRACTIONS };

struct lk_known_answer {
    const char *op, *options;
    struct lk_shape x;      /* of every input but labels */
    struct lk_shape second; /* of the second input; rank 0: like x */
    int inputs;             /* labels not counted; 0: one */
    bool labels;            /* one more input: see lk_known_label_shape() */
    bool tokens;            /* x is whole numbers, some of them no row of a table */
    bool length;            /* one more input: the valid time steps of each sample */
    enum lk_known_numbers numbers;

    /* Exact: sums of the bits of y, of all dx, and of all dw summed over shards. */
    uint64_t y, dx, dw;

    /* Or the answers in double, y and dx of input 0. They must be met within a few units in the
     * last place of max(1, |answer|), `places` of them where that is not 0, or to the bit where
     * is_exact. `oracle`: the row's name in its table, where that is not `op`. */
    void (*expect)(const struct lk_known_answer *known, const struct lk_known_arrays *data,
                   double *y, double *dx);
    bool is_exact;
    int places;
    const char *oracle;
};

/* expect of recurrent layers that give all time steps. */
void lk_known_recurrent(const struct lk_known_answer *known, const struct lk_known_arrays *data,
                        double *y, double *dx);

/* expect of operations on whole arrays, as the table uses them. */
typedef void lk_known_function(const struct lk_known_answer *known,
                               const struct lk_known_arrays *data, double *y, double *dx);
lk_known_function lk_known_constant, lk_known_math, lk_known_pick, lk_known_reduce,
    lk_known_matmul;

/* Ends with a row without an operation. */
extern const struct lk_known_answer lk_known_answers[];

enum lk_known_draw { LK_DRAW_X, LK_DRAW_W = LK_MOST_INPUTS, LK_DRAW_DY = 16, LK_DRAW_LABELS };

/* The numbers of one array, the same on every machine: x: LK_DRAW_X + i, w: LK_DRAW_W + j. */
void lk_known_fill(const struct lk_known_answer *known, int which, int64_t count,
                   float *values);

/* The shape of input i, which is none of labels. */
struct lk_shape lk_known_shape(const struct lk_known_answer *known, int i);

/* Labels are classes, as many as the last axis of x has, or 2 where that is one number: one for
 * a vector [k], one for each time step of [t, k], some of which are -1. labels:
 * [LK_KNOWN_BATCH] of that shape. */
struct lk_shape lk_known_label_shape(const struct lk_known_answer *known);
void lk_known_labels(const struct lk_known_answer *known, int32_t *labels);

/* Tokens from -1 to 6: [LK_KNOWN_BATCH] of the shape of x; lengths from -1 to one more than x
 * has time steps: [LK_KNOWN_BATCH]. */
void lk_known_tokens(const struct lk_known_answer *known, int32_t *tokens);
void lk_known_lengths(const struct lk_known_answer *known, int32_t *lengths);

/* `sum` and the bits of the values in it (FNV-1a); -0 counts as 0. Begin with 0. */
uint64_t lk_known_hash(uint64_t sum, const float *values, int64_t count);

/* Writes "" where all values are met within so many units in the last place, else the first
 * that is not and what was expected. */
enum { LK_KNOWN_PLACES = 8 };
void lk_known_compare(const float *values, const double *expected, int64_t count, int places,
                      char *detail, size_t bytes);

#endif

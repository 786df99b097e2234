/* What the files that compute known answers share. */
#ifndef TESTS_BENCH_KNOWN_H
#define TESTS_BENCH_KNOWN_H

#include "bench/selftest/known_answers.h"

enum { BATCH = LK_KNOWN_BATCH };

/* The arrays of one row: float as drawn, double as computed. */
struct problem {
    const struct lk_known_answer *known;
    struct lk_op_shapes shapes;
    struct lk_known_arrays data;
    int32_t *tokens, *lengths; /* NULL: there are none */
    double *y, *dx[LK_MOST_INPUTS], *dw[LK_MOST_PARAMS];
};

/* Number `which` of option "name=a,b" (one number stands for both). */
int64_t known_number(const char *options, const char *name, int which, int64_t standard);

/* Compute y, dx and dw of a row: of embedding; of any operation with a length. */
void known_embedding(struct problem *p);
void known_steps(struct problem *p);

#endif

/* One case with its numbers: shapes, random inputs, what the oracle says. Knows no device. */
#ifndef TESTS_OPS_TRIAL_H
#define TESTS_OPS_TRIAL_H

#include "driver.h"
#include "rig.h"

struct trial {
    const struct op_case *c;
    const struct op_oracle *oracle;
    const struct lk_op *op;
    void *options;
    struct lk_op_shapes shapes;
    int64_t samples, batch;
    int shards;
    bool training;
    bool is_half;  /* x, dy are halves, and so will be y, dx */
    bool is_gated; /* x[0] is a gate, dy is gated */
    struct rig_arrays in, want;
};

enum { HALF_LOSS_SCALE = 64 };
enum { SEED = 7, STREAM = 3, STEP = 5, FIRST_SAMPLE = 1000 };

/* In [0, 1); the numbers of a trial depend on its sizes alone. */
double trial_random(void);

/* How many numbers there are in input i, in the output, in parameter j. */
int64_t trial_x_count(const struct trial *t, int i);
int64_t trial_y_count(const struct trial *t);
int64_t trial_w_count(const struct trial *t, int j);

/* Whether a parameter is one that training follows, as moving averages are. */
bool trial_has_tracked(const struct trial *t);

/* Zeroed arrays for every tensor and gradient. */
void trial_make_arrays(const struct trial *t, struct rig_arrays *arrays);
void trial_clear_arrays(struct rig_arrays *arrays);

/* Fills `in` with random numbers and `want` with what the oracle makes of them. */
void trial_make(struct trial *t);
void trial_clear(struct trial *t);

/* What the gradients are of: the sum of y * dy; of a loss, the sum over the samples. */
double trial_objective(const struct trial *t, int64_t samples, const double *y,
                       const double *dy);

/* Fails the running test where results are not what the oracle says. */
void trial_compare(const struct trial *t, enum lk_dtype real, const struct rig_arrays *got);

/* Fails the running test where a and b are not the same bits in what `wants` names. */
void trial_compare_bits(const struct trial *t, const char *what, const struct rig_arrays *a,
                        const struct rig_arrays *b, struct rig_wants wants);

#endif

/* One operation prepared on one device, with guarded buffers. Knows no oracle, no case. */
#ifndef TESTS_OPS_RIG_H
#define TESTS_OPS_RIG_H

#include "ops/op.h"

/* A tensor inside a larger buffer; what lies before and after it must survive. */
struct rig_tensor {
    struct lk_buffer *parent, *view;
    size_t bytes, guard;
    unsigned char *host; /* image of the parent */
};

struct rig {
    const struct lk_op *op;
    struct lk_op_setup setup;
    struct lk_arena arena;
    struct lk_op_run run;
    int64_t samples;
    struct rig_tensor x[LK_MOST_INPUTS], w[LK_MOST_PARAMS], dy, y, dx[LK_MOST_INPUTS],
        dw[LK_MOST_PARAMS], saved, workspace, packed;
    struct rig_tensor loss_scale;
    double loss_scaled;  /* by which dx is divided; 0: it is not */
    size_t device_bytes; /* after everything was allocated */
};

/* Which gradients a rig computes. */
struct rig_wants {
    bool training, dx, dw;
};

/* Host arrays: x, dy, y, dx: [samples][shape]; w: [count]; dw: [shards][count]. */
struct rig_arrays {
    double *x[LK_MOST_INPUTS], *w[LK_MOST_PARAMS], *dy;
    double *y, *dx[LK_MOST_INPUTS], *dw[LK_MOST_PARAMS];
};

/* Where a failure happened; printed before the message of every failure. */
extern char rig_where[512];

/* Fails the running test with rig_where and the message. */
void rig_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* Fails the running test where `status` is not LK_OK, with the library's message. */
void rig_ok(enum lk_status status, const char *what);

/* Zeroed memory for `count` doubles. */
double *rig_doubles(int64_t count);

/* Prepares without building anything; shapes are inferred, `options` outlive the rig. */
void rig_prepare(struct rig *rig, struct lk_device *device, const struct lk_op *op,
                 const struct lk_op_setup *setup, int64_t samples, struct rig_wants wants);

/* Builds the kernels and makes the tensors; `wants` as prepared. */
void rig_build(struct rig *rig, struct rig_wants wants);
void rig_close(struct rig *rig);

/* What a loss takes for dy; gradients are divided by it again. */
void rig_set_loss_scale(struct rig *rig, double scale);

/* Writes x and w; dead lanes repeat the first sample, labels there are -1. */
void rig_write(struct rig *rig, const struct rig_arrays *arrays);

/* Runs forward from outputs full of NaN; checks guards, dead lanes and that everything was
 * written; reads y. */
void rig_forward(struct rig *rig, double *y);

/* The same for backward, which sees only the tensors that infer said it reads. */
void rig_backward(struct rig *rig, const double *dy, double *const dx[], double *const dw[]);

#endif

/* Pooling of images in plane tiles. Floor 4. Private to src/ops/pool*.c. */
#ifndef LK_OPS_POOL_PLANES_H
#define LK_OPS_POOL_PLANES_H

#include "ops/op.h"
#include "ops/window.h"
#include "products/planes/args.h"

struct lk_pool_planes {
    struct lk_planes planes;
    bool is_global; /* one window that is the image, and y a vector */
    int64_t each;   /* channels of a work-group */
    bool finds;     /* which pixel is the largest: run->saved has it for backward */
    struct lk_kernel *kernel, *backward;
};

/* `window`: down, across; `what`: "max" or "average"; definitions: what else kernels are told.
 */
LK_MUST_CHECK enum lk_status lk_pool_planes_prepare(struct lk_op_setup *setup,
                                                    const struct lk_window window[2],
                                                    const char *what, const char *definitions,
                                                    struct lk_pool_planes *pool);
/* Enqueues. */
LK_MUST_CHECK enum lk_status lk_pool_planes_enqueue(const struct lk_op_setup *setup,
                                                    const struct lk_pool_planes *pool,
                                                    const struct lk_op_run *run);

LK_MUST_CHECK enum lk_status lk_pool_planes_enqueue_backward(const struct lk_op_setup *setup,
                                                             const struct lk_pool_planes *pool,
                                                             const struct lk_op_run *run);

#endif

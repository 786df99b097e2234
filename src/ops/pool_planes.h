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
    struct lk_kernel *kernel;
};

/* `window`: down, across; `what`: "max" or "average". */
LK_MUST_CHECK enum lk_status lk_pool_planes_prepare(struct lk_op_setup *setup,
                                                    const struct lk_window window[2],
                                                    const char *what, bool count_padding,
                                                    struct lk_pool_planes *pool);
/* Enqueues. */
LK_MUST_CHECK enum lk_status lk_pool_planes_enqueue(const struct lk_op_setup *setup,
                                                    const struct lk_pool_planes *pool,
                                                    const struct lk_op_run *run);

#endif

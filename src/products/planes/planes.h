/* Products over plane tiles (tensor/tensor.h): a sample alone, whose pixels are the lanes.
 * Floor 3. Pooling of plane tiles uses the windows, too. */
#ifndef LK_PRODUCTS_PLANES_H
#define LK_PRODUCTS_PLANES_H

#include "products/kernel/finish.h"
#include "products/kernel/geometry.h"
#include "products/planes/args.h"

/* Windows over planes in that tiling; where `axis` drops outputs for a pool, of all_out. */
struct lk_planes lk_planes_of(const struct lk_tiling *tiling,
                              const struct lk_product_axis axis[2]);

/* The options of lib/planes.cl, of windows of those axes. */
void lk_planes_print(const struct lk_product_axis axis[2], char text[LK_GEOMETRY_BYTES]);

/* Reals of an arranged plane. */
int64_t lk_planes_arranged(const struct lk_planes *planes);

/* Whether planes need no arranging. */
bool lk_planes_are_direct(const struct lk_planes *planes);

/* Weights that are packed once, until they change. */
struct lk_plane_weights {
    const struct lk_product_shape *shape;
    int64_t block; /* filters */
    struct lk_kernel *pack;
};

/* Announces the kernel; sets job->packed. */
LK_MUST_CHECK enum lk_status lk_plane_weights_prepare(const struct lk_product_setup *setup,
                                                      struct lk_product_job *job,
                                                      struct lk_plane_weights *weights);
/* Packs, where run->weights_are_new. Enqueues. */
LK_MUST_CHECK enum lk_status lk_plane_weights_enqueue(const struct lk_plane_weights *weights,
                                                      const struct lk_product_run *run);

/* By the kernel planes_pool: y of `count` planes, in_h x in_w of `planes`, which lie in the
 * workspace from `first` on. Enqueues. */
LK_MUST_CHECK enum lk_status lk_planes_enqueue_pool(const struct lk_product_setup *setup,
                                                    struct lk_kernel *kernel,
                                                    const struct lk_planes *planes,
                                                    int64_t count, int64_t first,
                                                    const struct lk_product_run *run);

#endif

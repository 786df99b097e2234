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

/* FILTERS of a block of products: 8, with up to 3 vectors 24 sums; 4 where vectors are short.
 */
int64_t lk_plane_block(const struct lk_product_setup *setup);

/* LONE of products of planes of so many pixels in blocks of filters: 1 or 4 where their last
 * vector has at most as many, else 0. Blocks of 8 with vectors of 16 have registers for 4. */
int lk_plane_lone(const struct lk_product_setup *setup, int64_t block, int64_t pixels);

/* Into how many runs vectors_each cuts planes: a lone vector is none of its own. */
int64_t lk_plane_runs(const struct lk_plane_product *product);

/* Blocks of filters of a work-group: `most`, or fewer where one of so many vectors of
 * multiply-adds takes long. The shorter they are, the less do cores wait for one another at the
 * end of a layer; in a chain a core takes many at once. */
int64_t lk_plane_blocks_each(int64_t most, int64_t adds);

/* Whether planes need no arranging. */
bool lk_planes_are_direct(const struct lk_planes *planes);

/* A data gradient as a forward pass: of dz, with the channels for filters, weights turned
 * round, and strides in what dz is spread over. For a forward pass the shape itself. */
struct lk_product_shape lk_planes_turned(const struct lk_product_job *job);

/* The images that a pass reads: x, or dz, which is copied where the forward pass has strides,
 * with zeros between. */
struct lk_plane_images {
    enum lk_pass pass;
    int64_t channels, first;  /* of all groups; of the copy, in the workspace */
    struct lk_planes planes;  /* in: dz, out: the copy */
    struct lk_kernel *spread; /* NULL: there is no copy */
};

/* Announces the kernel; job->count grows by what the copy takes. */
LK_MUST_CHECK enum lk_status lk_plane_images_prepare(const struct lk_product_setup *setup,
                                                     struct lk_product_job *job,
                                                     struct lk_plane_images *images);
LK_MUST_CHECK enum lk_status lk_plane_images_enqueue(const struct lk_product_setup *setup,
                                                     const struct lk_plane_images *images,
                                                     const struct lk_product_run *run);

/* Where they are, from which real on. */
struct lk_plane_source {
    const struct lk_buffer *buffer;
    int64_t first;
};
struct lk_plane_source lk_plane_images_source(const struct lk_plane_images *images,
                                              const struct lk_product_run *run);

/* Room for so many reals of packed weights: in memory of their own, or, where they are turned,
 * in the workspace from `first` on, since forward has packed others since. */
void lk_planes_place_weights(struct lk_product_job *job, int64_t reals, bool *turned,
                             int64_t *first);

/* Weights that are packed once, until they change. */
struct lk_plane_weights {
    const struct lk_product_shape *shape; /* as lk_planes_turned() gives it */
    int64_t block;                        /* filters */
    bool turned;                          /* of a data gradient: packed in the workspace */
    int64_t first;                        /* there, from which real on; else 0 */
    struct lk_kernel *pack;
};

#define LK_PLANE_WEIGHTS(weights, run)                                                         \
    LK_BUF((weights)->turned ? (run)->workspace : (run)->packed), LK_INT((weights)->first)

/* Announces the kernel; sets job->packed, or job->count grows by that. */
LK_MUST_CHECK enum lk_status lk_plane_weights_prepare(const struct lk_product_setup *setup,
                                                      struct lk_product_job *job,
                                                      struct lk_plane_weights *weights);
/* Packs, where run->weights_are_new. Enqueues. */
LK_MUST_CHECK enum lk_status lk_plane_weights_enqueue(const struct lk_plane_weights *weights,
                                                      const struct lk_product_run *run);

/* Lanes beyond the planes, to be 0 in training: of what a product has written. */
LK_MUST_CHECK enum lk_status lk_planes_prepare_clear(const struct lk_product_setup *setup,
                                                     struct lk_kernel **clear);
/* `count` planes of so many pixels each. Enqueues. */
LK_MUST_CHECK enum lk_status lk_planes_enqueue_clear(const struct lk_tiling *tiling,
                                                     struct lk_kernel *clear, int64_t count,
                                                     int64_t pixels, struct lk_buffer *planes);

/* By the kernel planes_pool: y of `count` planes, in_h x in_w of `planes`, which lie in the
 * workspace from `first` on. Enqueues. */
LK_MUST_CHECK enum lk_status lk_planes_enqueue_pool(const struct lk_product_setup *setup,
                                                    struct lk_kernel *kernel,
                                                    const struct lk_planes *planes,
                                                    int64_t count, int64_t first,
                                                    const struct lk_product_run *run);

#endif

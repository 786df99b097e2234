/* Batch tiles: how the samples of a batch lie in device memory. Floor 2.
 *
 * An activation of shape [d...] is an array [tiles][d...][lanes]: a tile is `lanes` samples,
 * innermost. Tiles belong to shards: shard s has tiles s*shard_tiles to (s+1)*shard_tiles - 1,
 * and sample i of a batch is sample i % shard_samples of shard i / shard_samples. Lanes without
 * a sample are dead: inputs have zeros there, and they add nothing to any sum. Knows no
 * operation, no graph. */
#ifndef LK_TENSOR_TENSOR_H
#define LK_TENSOR_TENSOR_H

#include "device/device.h"
#include "tensor/transform.h"
#include <lockstep/tensor.h>
#include <stdbool.h>
#include <stddef.h>

/* ceil(a / b), for a >= 0 and b > 0. */
static inline int64_t lk_divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* Parts of `part` pixels each, or what is left, of `all` pixels in runs of `run`, beyond which
 * no part goes on: see cl/lib/parts.cl. */
static inline int64_t lk_parts_of_runs(int64_t all, int64_t run, int64_t part)
{
    return all / run * lk_divide_up(run, part);
}

static inline int64_t lk_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

struct lk_tiling {
    int lanes;  /* samples of a tile: at most those of the device's info */
    int vector; /* reals that one work-item computes at once: `lanes` on CPUs, 1 on GPUs */
    int shards;
    int64_t shard_samples, shard_tiles;
    int64_t tiles; /* shards * shard_tiles */
    bool planes;   /* plane tiles: a tile is one sample, see below */
};

/* Plane tiles, for few samples on a CPU: a tile is one sample. An image [c, h, w] is an array
 * [tiles][c][vectors][lanes], in which the lanes of vector i are pixels i * lanes and so on of
 * a plane, row by row; those behind the last are dead. Any other shape [d...] is [tiles][d...]
 * [lanes] with the same number in every lane. */

/* The tiling of batches of up to `batch` samples in `shards` shards on a device. The number of
 * lanes, which decides bits, follows from the device's class and the samples of a shard alone.
 */
struct lk_tiling lk_tiling_make(const struct lk_device_info *info, int64_t batch, int shards);

/* The plane tiles of up to `batch` samples, and up to how many samples programs take them; in
 * training, of a shard. */
enum { LK_FEW_SAMPLES = 8, LK_FEW_TRAINED = 4 };
struct lk_tiling lk_tiling_make_planes(const struct lk_device_info *info, int64_t batch,
                                       int shards);

/* How a shape lies in plane tiles: [c, vectors, 1] for an image, else as it is. */
struct lk_shape lk_plane_shape(const struct lk_tiling *tiling, const struct lk_shape *shape);

/* The tiling of a batch of another size or number of shards, with the same lanes. */
struct lk_tiling lk_tiling_resize(const struct lk_tiling *tiling, int64_t batch, int shards);

/* The tiling's first `shards` shards alone. */
struct lk_tiling lk_tiling_cut(const struct lk_tiling *tiling, int shards);

size_t lk_dtype_bytes(enum lk_dtype dtype);
const char *lk_dtype_name(enum lk_dtype dtype);

/* The product of the dimensions; 1 for rank 0; -1 where it does not fit, or one is below 1. */
int64_t lk_shape_count(const struct lk_shape *shape);
bool lk_shape_equal(const struct lk_shape *a, const struct lk_shape *b);

/* "[64, 13, 13]" */
void lk_shape_print(const struct lk_shape *shape, char *text, size_t bytes);

/* As users write shapes: the channels of an image, three lengths, come last. "[13, 13, 64]" */
void lk_shape_print_hwc(const struct lk_shape *shape, char *text, size_t bytes);

/* Bytes of an activation in batch tiles; SIZE_MAX where it does not fit. */
size_t lk_tiled_bytes(const struct lk_tiling *tiling, const struct lk_shape *shape,
                      enum lk_dtype dtype);

/* Copies `samples` samples from or to host order [samples][d...] of the same dtype; waits.
 * write sets dead lanes to zero. For tests, predictions, debugging: it converts on the host.
 * fails: LK_E_ARGUMENT more samples than the tiling has; LK_E_MEMORY, LK_E_DEVICE */
LK_MUST_CHECK enum lk_status lk_tiled_write(struct lk_buffer *buffer,
                                            const struct lk_tiling *tiling,
                                            const struct lk_shape *shape, enum lk_dtype dtype,
                                            int64_t samples, const void *from);
LK_MUST_CHECK enum lk_status lk_tiled_read(const struct lk_buffer *buffer,
                                           const struct lk_tiling *tiling,
                                           const struct lk_shape *shape, enum lk_dtype dtype,
                                           int64_t samples, void *to);

/* Kernels that bring batches into tiles on the device. */
struct lk_loader;

/* A loader of batches of the given tiling into tensors of `dtype` (LK_F32, LK_F64, LK_F16),
 * with that transform (NULL: none); its kernels can run after lk_device_build(). */
LK_MUST_CHECK enum lk_status
lk_loader_create(struct lk_device *device, const struct lk_tiling *tiling, enum lk_dtype dtype,
                 const struct lk_transform *transform, struct lk_loader **loader);
void lk_loader_destroy(struct lk_loader *loader);

/* Allocates the memory that the transform needs for images of `height` rows. fails:
 * LK_E_DEVICE_MEMORY
 */
LK_MUST_CHECK enum lk_status lk_loader_allocate(struct lk_loader *loader, int64_t height);

/* Announce the kernels of lk_loader_enqueue_one_hot() and lk_loader_enqueue_numbers(). */
LK_MUST_CHECK enum lk_status lk_loader_add_one_hot(struct lk_loader *loader);
LK_MUST_CHECK enum lk_status lk_loader_add_numbers(struct lk_loader *loader);

/* What follows fills that tiling, which differs from the one before in shards and tiles alone.
 */
void lk_loader_use(struct lk_loader *loader, const struct lk_tiling *tiling);

/* A batch of images as the host has it: uint8 [samples][h][w][c], in a buffer that begins with
 * the samples' parameters, where the transform has some. */
struct lk_image_batch {
    const struct lk_buffer *buffer;
    int64_t pixels_at, samples; /* where the images begin, in bytes */
    double scale, shift;        /* where the transform does not normalize */
};

/* y[t,c,h,w,l] = transform(images[n,h,w,c]) * scale + shift, of sample shape y_shape = [c, h,
 * w]; dead lanes 0. Enqueues. */
LK_MUST_CHECK enum lk_status lk_loader_enqueue_images(struct lk_loader *loader,
                                                      const struct lk_image_batch *images,
                                                      const struct lk_shape *y_shape,
                                                      struct lk_buffer *y);

/* y[t,e,l] = from[n,e], int32, e over the elements of y_shape, of [] one: labels, tokens. Dead
 * lanes -1. Enqueues. */
LK_MUST_CHECK enum lk_status lk_loader_enqueue_integers(struct lk_loader *loader,
                                                        const struct lk_buffer *from,
                                                        int64_t samples,
                                                        const struct lk_shape *y_shape,
                                                        struct lk_buffer *y);

/* A batch of floats as the host has it, [samples][elements of the shape], and what is made of
 * each: x * scale + shift. */
struct lk_number_batch {
    const struct lk_buffer *buffer;
    int64_t samples;
    double scale, shift;
};

/* y[t,e,l] = numbers[n,e] * scale + shift, e over the elements of y_shape; dead lanes 0.
 * Enqueues. */
LK_MUST_CHECK enum lk_status lk_loader_enqueue_numbers(struct lk_loader *loader,
                                                       const struct lk_number_batch *numbers,
                                                       const struct lk_shape *y_shape,
                                                       struct lk_buffer *y);

/* A batch of labels as the host has it: int32 [samples]. */
struct lk_label_batch {
    const struct lk_buffer *buffer;
    int64_t samples;
    double on, off;
};

/* y[t,k,l] = labels[n] == k ? on : off, of sample shape y_shape = [classes]; dead lanes 0, and
 * those whose label is no class. Enqueues. */
LK_MUST_CHECK enum lk_status lk_loader_enqueue_one_hot(struct lk_loader *loader,
                                                       const struct lk_label_batch *labels,
                                                       const struct lk_shape *y_shape,
                                                       struct lk_buffer *y);

#endif

/* Brings batches as the host has them (bytes of images, labels, numbers) into batch tiles on
 * the device. */
#include "tensor/tensor.h"

#include "base/fail.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct lk_loader {
    struct lk_device *device;
    struct lk_tiling tiling;
    enum lk_dtype real; /* the type that is computed with */
    bool stores_half;
    struct lk_transform transform;
    bool has_means;         /* contrast needs the mean of a sample, which is made of the sums of
                             * its rows */
    int64_t height;         /* rows that there is memory for */
    struct lk_buffer *sums; /* [tiles][height][lanes] */
    struct lk_kernel *plane_images, *plane_numbers; /* images into plane tiles */
    struct lk_kernel *images, *means, *integers, *one_hot, *numbers;
};

static struct lk_kernel_spec spec_of(const struct lk_loader *loader, const char *name,
                                     const char *options)
{
    return (struct lk_kernel_spec){.source = "tensor/convert",
                                   .name = name,
                                   .options = options,
                                   .real_bytes = (int)lk_dtype_bytes(loader->real),
                                   .lanes = loader->tiling.lanes,
                                   .stores_half = loader->stores_half};
}

/* Into plane tiles images get no transform that is drawn. */
static enum lk_status create_planes(struct lk_loader *loader)
{
    const char *reverses = loader->transform.reverses ? "-DREVERSES" : NULL;
    struct lk_kernel_spec spec = spec_of(loader, "planes_images", reverses);
    spec.source = "tensor/planes";
    LK_TRY(lk_kernel_create(loader->device, &spec, &loader->plane_images));
    spec.name = "planes_numbers";
    LK_TRY(lk_kernel_create(loader->device, &spec, &loader->plane_numbers));
    spec = spec_of(loader, "convert_integers", "-DPLANES");
    return lk_kernel_create(loader->device, &spec, &loader->integers);
}

static enum lk_status create(struct lk_loader *loader)
{
    const struct lk_transform *transform = &loader->transform;
    char options[128] = "";
    if (loader->tiling.planes)
        return create_planes(loader);
    if (lk_transform_has_params(transform))
        snprintf(options, sizeof options,
                 "-DMIRRORS=%d -DSTAGE_1=%d -DSTAGE_2=%d -DSTAGE_3=%d -DCHANNELS=%d",
                 transform->flips, (int)transform->stages[0], (int)transform->stages[1],
                 (int)transform->stages[2], transform->channels);
    if (transform->reverses)
        strcat(options, *options ? " -DREVERSES" : "-DREVERSES");
    struct lk_kernel_spec spec = spec_of(loader, "convert_images", *options ? options : NULL);
    LK_TRY(lk_kernel_create(loader->device, &spec, &loader->images));
    if (loader->has_means) {
        spec.name = "convert_means";
        LK_TRY(lk_kernel_create(loader->device, &spec, &loader->means));
    }
    spec.name = "convert_integers";
    return lk_kernel_create(loader->device, &spec, &loader->integers);
}

enum lk_status lk_loader_create(struct lk_device *device, const struct lk_tiling *tiling,
                                enum lk_dtype dtype, const struct lk_transform *transform,
                                struct lk_loader **loader)
{
    struct lk_loader *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("a loader", sizeof *made);
    *made = (struct lk_loader){.device = device,
                               .tiling = *tiling,
                               .real = dtype == LK_F64 ? LK_F64 : LK_F32,
                               .stores_half = dtype == LK_F16};
    if (transform)
        made->transform = *transform;
    for (int i = 0; i < LK_COLOUR_STAGES; i++)
        made->has_means |= made->transform.stages[i] == LK_COLOUR_CONTRAST;
    const enum lk_status status = create(made);
    if (status != LK_OK) {
        lk_loader_destroy(made);
        return status;
    }
    *loader = made;
    return LK_OK;
}

enum lk_status lk_loader_add_one_hot(struct lk_loader *loader)
{
    const struct lk_kernel_spec spec = spec_of(
        loader, "convert_one_hot", loader->tiling.planes ? "-DONE_HOT -DPLANES" : "-DONE_HOT");
    return loader->one_hot ? LK_OK : lk_kernel_create(loader->device, &spec, &loader->one_hot);
}

enum lk_status lk_loader_add_numbers(struct lk_loader *loader)
{
    const struct lk_kernel_spec spec = spec_of(
        loader, "convert_numbers", loader->tiling.planes ? "-DNUMBERS -DPLANES" : "-DNUMBERS");
    return loader->numbers ? LK_OK : lk_kernel_create(loader->device, &spec, &loader->numbers);
}

void lk_loader_destroy(struct lk_loader *loader)
{
    if (!loader)
        return;
    lk_kernel_destroy(loader->plane_images);
    lk_kernel_destroy(loader->plane_numbers);
    lk_kernel_destroy(loader->images);
    lk_kernel_destroy(loader->means);
    lk_kernel_destroy(loader->integers);
    lk_kernel_destroy(loader->one_hot);
    lk_kernel_destroy(loader->numbers);
    lk_buffer_destroy(loader->sums);
    free(loader);
}

enum lk_status lk_loader_allocate(struct lk_loader *loader, int64_t height)
{
    const struct lk_shape shape = {1, {height}};
    loader->height = height;
    return loader->has_means
               ? lk_buffer_create(loader->device,
                                  lk_tiled_bytes(&loader->tiling, &shape, loader->real),
                                  &loader->sums)
               : LK_OK;
}

void lk_loader_use(struct lk_loader *loader, const struct lk_tiling *tiling)
{
    loader->tiling = *tiling;
}

enum { IMAGE_PART = 1 << 13 }; /* pixels of a plane that one work-group converts */

enum lk_status lk_loader_enqueue_images(struct lk_loader *loader,
                                        const struct lk_image_batch *images,
                                        const struct lk_shape *y_shape, struct lk_buffer *y)
{
    const struct lk_tiling *t = &loader->tiling;
    const struct lk_transform *transform = &loader->transform;
    const int64_t c = y_shape->dim[0], h = y_shape->dim[1], w = y_shape->dim[2];
    const struct lk_grid grid = {{h, t->tiles, 1}, t->lanes / t->vector};
    const struct lk_grid planes = {{c, t->tiles, lk_divide_up(h * w, IMAGE_PART)}, 1};
    double scale[LK_TRANSFORM_CHANNELS], shift[LK_TRANSFORM_CHANNELS];
    for (int i = 0; i < LK_TRANSFORM_CHANNELS; i++) {
        scale[i] = transform->normalizes ? transform->scale[i] : images->scale;
        shift[i] = transform->normalizes ? transform->shift[i] : images->shift;
    }
    if (t->planes)
        return LK_ENQUEUE(loader->plane_images, planes, LK_BUF(images->buffer), LK_BUF(y),
                          LK_INT(images->pixels_at), LK_INT(h * w), LK_INT(IMAGE_PART),
                          LK_INT(images->samples), LK_REAL(scale[0]), LK_REAL(scale[1]),
                          LK_REAL(scale[2]), LK_REAL(scale[3]), LK_REAL(shift[0]),
                          LK_REAL(shift[1]), LK_REAL(shift[2]), LK_REAL(shift[3]));
    if (loader->has_means && h != loader->height)
        return lk_fail(LK_E_ARGUMENT, "images of %lld rows, there is memory for %lld",
                       (long long)h, (long long)loader->height);
    if (loader->has_means)
        LK_TRY(LK_ENQUEUE(loader->means, grid, LK_BUF(images->buffer), LK_BUF(loader->sums),
                          LK_INT(images->pixels_at), LK_INT(c), LK_INT(h), LK_INT(w),
                          LK_INT(images->samples), LK_INT(t->shard_samples),
                          LK_INT(t->shard_tiles)));
    return LK_ENQUEUE(loader->images, grid, LK_BUF(images->buffer), LK_BUF(loader->sums),
                      LK_BUF(y), LK_INT(images->pixels_at), LK_INT(c), LK_INT(h), LK_INT(w),
                      LK_INT(images->samples), LK_INT(t->shard_samples), LK_INT(t->shard_tiles),
                      LK_REAL(1.0 / (double)(h * w)), LK_REAL(scale[0]), LK_REAL(scale[1]),
                      LK_REAL(scale[2]), LK_REAL(scale[3]), LK_REAL(shift[0]),
                      LK_REAL(shift[1]), LK_REAL(shift[2]), LK_REAL(shift[3]));
}

enum { RUN = 64 }; /* elements that one work-group converts */

static struct lk_grid grid_of(const struct lk_tiling *t, int64_t count)
{
    return (struct lk_grid){{lk_divide_up(count, RUN), t->tiles, 1}, t->lanes / t->vector};
}

enum lk_status lk_loader_enqueue_integers(struct lk_loader *loader,
                                          const struct lk_buffer *from, int64_t samples,
                                          const struct lk_shape *y_shape, struct lk_buffer *y)
{
    const struct lk_tiling *t = &loader->tiling;
    const int64_t count = lk_shape_count(y_shape);
    return LK_ENQUEUE(loader->integers, grid_of(t, count), LK_BUF(from), LK_BUF(y),
                      LK_INT(count), LK_INT(RUN), LK_INT(samples), LK_INT(t->shard_samples),
                      LK_INT(t->shard_tiles));
}

enum lk_status lk_loader_enqueue_numbers(struct lk_loader *loader,
                                         const struct lk_number_batch *numbers,
                                         const struct lk_shape *y_shape, struct lk_buffer *y)
{
    const struct lk_tiling *t = &loader->tiling;
    const int64_t count = lk_shape_count(y_shape);
    const struct lk_grid planes = {{y_shape->dim[0], t->tiles, 1}, 1};
    if (t->planes && y_shape->rank == 3)
        return LK_ENQUEUE(loader->plane_numbers, planes, LK_BUF(numbers->buffer), LK_BUF(y),
                          LK_INT(count / y_shape->dim[0]), LK_INT(numbers->samples),
                          LK_REAL(numbers->scale), LK_REAL(numbers->shift));
    return LK_ENQUEUE(loader->numbers, grid_of(t, count), LK_BUF(numbers->buffer), LK_BUF(y),
                      LK_INT(count), LK_INT(RUN), LK_INT(numbers->samples),
                      LK_INT(t->shard_samples), LK_INT(t->shard_tiles), LK_REAL(numbers->scale),
                      LK_REAL(numbers->shift));
}

enum lk_status lk_loader_enqueue_one_hot(struct lk_loader *loader,
                                         const struct lk_label_batch *labels,
                                         const struct lk_shape *y_shape, struct lk_buffer *y)
{
    const struct lk_tiling *t = &loader->tiling;
    const struct lk_grid grid = {{t->tiles, 1, 1}, t->lanes / t->vector};
    return LK_ENQUEUE(loader->one_hot, grid, LK_BUF(labels->buffer), LK_BUF(y),
                      LK_INT(y_shape->dim[0]), LK_INT(labels->samples),
                      LK_INT(t->shard_samples), LK_INT(t->shard_tiles), LK_REAL(labels->on),
                      LK_REAL(labels->off));
}

#include "tensor/tensor.h"

#include "base/fail.h"
#include <stdlib.h>

struct lk_loader {
    struct lk_tiling tiling;
    struct lk_kernel *images, *labels;
};

enum lk_status lk_loader_create(struct lk_device *device, const struct lk_tiling *tiling,
                                enum lk_dtype real, struct lk_loader **loader)
{
    struct lk_loader *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("a loader", sizeof *made);
    made->tiling = *tiling;
    struct lk_kernel_spec spec = {
        .source = "convert", .name = "convert_images", .real_bytes = (int)lk_dtype_bytes(real)};
    enum lk_status status = lk_kernel_create(device, &spec, &made->images);
    spec.name = "convert_labels";
    if (status == LK_OK)
        status = lk_kernel_create(device, &spec, &made->labels);
    if (status != LK_OK) {
        lk_loader_destroy(made);
        return status;
    }
    *loader = made;
    return LK_OK;
}

void lk_loader_destroy(struct lk_loader *loader)
{
    if (!loader)
        return;
    lk_kernel_destroy(loader->images);
    lk_kernel_destroy(loader->labels);
    free(loader);
}

void lk_loader_use(struct lk_loader *loader, const struct lk_tiling *tiling)
{
    loader->tiling = *tiling;
}

enum lk_status lk_loader_enqueue_images(struct lk_loader *loader, const struct lk_buffer *from,
                                        const struct lk_shape *y_shape, int64_t samples,
                                        double scale, double shift, struct lk_buffer *y)
{
    const struct lk_tiling *t = &loader->tiling;
    const int64_t c = y_shape->dim[0], h = y_shape->dim[1], w = y_shape->dim[2];
    const struct lk_grid grid = {{h, t->tiles, 1}, t->lanes / t->vector};
    return LK_ENQUEUE(loader->images, grid, LK_BUF(from), LK_BUF(y), LK_INT(c), LK_INT(h),
                      LK_INT(w), LK_INT(samples), LK_INT(t->shard_samples),
                      LK_INT(t->shard_tiles), LK_REAL(scale), LK_REAL(shift));
}

enum lk_status lk_loader_enqueue_labels(struct lk_loader *loader, const struct lk_buffer *from,
                                        int64_t samples, struct lk_buffer *y)
{
    const struct lk_tiling *t = &loader->tiling;
    const struct lk_grid grid = {{t->tiles, 1, 1}, t->lanes / t->vector};
    return LK_ENQUEUE(loader->labels, grid, LK_BUF(from), LK_BUF(y), LK_INT(samples),
                      LK_INT(t->shard_samples), LK_INT(t->shard_tiles));
}

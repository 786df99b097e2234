#include "mirror/shards.h"

#include "base/fail.h"
#include "tensor/elementwise.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { METRICS = 2 };

struct lk_shard_sum {
    struct lk_tiling tiling;
    struct lk_elementwise elementwise;
    size_t real_bytes;
    struct lk_kernel *sum, *metrics;
    struct lk_buffer *partial; /* [shards][LK_PAD]: metrics of each shard */
};

int lk_shards_choose(int64_t batch)
{
    int shards = 8;
    while (shards > 1 && batch / shards < 32)
        shards /= 2;
    return shards;
}

static enum lk_status make_kernels(struct lk_device *device, struct lk_shard_sum *sum)
{
    char options[128];
    int levels = 0;
    while (1 << levels < sum->tiling.shards)
        levels++;
    lk_elementwise_define(&sum->elementwise, options, sizeof options);
    const size_t used = strlen(options);
    snprintf(options + used, sizeof options - used, " -DSHARDS=%d -DLEVELS=%d",
             sum->tiling.shards, levels);
    struct lk_kernel_spec spec = {.source = "shards",
                                  .name = "shards_sum",
                                  .options = options,
                                  .real_bytes = (int)sum->real_bytes};
    LK_TRY(lk_kernel_create(device, &spec, &sum->sum));
    spec.name = "shards_metrics";
    return lk_kernel_create(device, &spec, &sum->metrics);
}

static enum lk_status make_partial(struct lk_device *device, struct lk_shard_sum *sum)
{
    const size_t bytes = (size_t)sum->tiling.shards * LK_PAD * sum->real_bytes;
    LK_TRY(lk_buffer_create(device, bytes, &sum->partial));
    return lk_buffer_enqueue_fill(sum->partial, 0);
}

enum lk_status lk_shard_sum_create(struct lk_device *device, const struct lk_tiling *tiling,
                                   enum lk_dtype real, struct lk_shard_sum **sum)
{
    const int shards = tiling->shards;
    if (shards < 1 || shards > LK_MOST_SHARDS || (shards & (shards - 1)))
        return lk_fail(LK_E_ARGUMENT, "%d shards: expected a power of two, at most %d", shards,
                       LK_MOST_SHARDS);
    if (real != LK_F32 && real != LK_F64)
        return lk_fail(LK_E_ARGUMENT, "shards are summed in float32 or float64");
    struct lk_shard_sum *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("a sum over shards", sizeof *made);
    made->tiling = *tiling;
    made->real_bytes = lk_dtype_bytes(real);
    made->elementwise = lk_elementwise_make(lk_device_info(device));
    enum lk_status status = make_kernels(device, made);
    if (status == LK_OK)
        status = make_partial(device, made);
    if (status != LK_OK) {
        lk_shard_sum_destroy(made);
        return status;
    }
    *sum = made;
    return LK_OK;
}

void lk_shard_sum_destroy(struct lk_shard_sum *sum)
{
    if (!sum)
        return;
    lk_kernel_destroy(sum->sum);
    lk_kernel_destroy(sum->metrics);
    lk_buffer_destroy(sum->partial);
    free(sum);
}

static enum lk_status check_bytes(const char *what, const struct lk_buffer *buffer, size_t need)
{
    if (lk_buffer_bytes(buffer) >= need)
        return LK_OK;
    return lk_fail(LK_E_ARGUMENT, "sum over shards: %s has %zu bytes, expected %zu", what,
                   lk_buffer_bytes(buffer), need);
}

enum lk_status lk_shard_sum_enqueue(struct lk_shard_sum *sum, const struct lk_buffer *x,
                                    int64_t stride, int64_t count, struct lk_buffer *y)
{
    const int64_t padded = lk_elementwise_padded(count);
    if (count < 1 || padded > stride || stride % LK_PAD)
        return lk_fail(LK_E_ARGUMENT,
                       "sum over shards: %lld values in a stride of %lld; expected a multiple "
                       "of %d that holds them",
                       (long long)count, (long long)stride, LK_PAD);
    LK_TRY(check_bytes("x", x, (size_t)stride * (size_t)sum->tiling.shards * sum->real_bytes));
    LK_TRY(check_bytes("y", y, (size_t)padded * sum->real_bytes));
    return LK_ENQUEUE(sum->sum, lk_elementwise_grid(&sum->elementwise, count), LK_BUF(x),
                      LK_BUF(y), LK_INT(lk_elementwise_vectors(&sum->elementwise, count)),
                      LK_INT(stride / sum->tiling.vector));
}

enum lk_status lk_shard_sum_enqueue_metrics(struct lk_shard_sum *sum, const struct lk_buffer *x,
                                            struct lk_buffer *y)
{
    const struct lk_tiling *t = &sum->tiling;
    LK_TRY(check_bytes("x", x, (size_t)(t->tiles * METRICS * t->lanes) * sum->real_bytes));
    const struct lk_grid grid = {{t->shards, METRICS, 1}, t->lanes / t->vector};
    LK_TRY(LK_ENQUEUE(sum->metrics, grid, LK_BUF(x), LK_BUF(sum->partial),
                      LK_INT(t->shard_tiles)));
    return lk_shard_sum_enqueue(sum, sum->partial, LK_PAD, METRICS, y);
}

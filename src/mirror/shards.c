#include "mirror/shards.h"

#include "base/fail.h"
#include <stdio.h>
#include <stdlib.h>

enum {
    PAD = 32,         /* reals; the widest vector of any device divides it */
    CPU_GROUP = 4096, /* reals a work-group sums */
    GPU_ITEMS = 256,
    GPU_STEPS = 2, /* work-items a group, values each */
    METRICS = 2,
};

struct lk_shard_sum {
    struct lk_tiling tiling;
    size_t real_bytes;
    int items;
    int64_t group; /* vectors of a work-group */
    struct lk_kernel *sum, *metrics;
    struct lk_buffer *partial; /* [shards][PAD]: metrics of each shard */
};

int lk_shards_choose(int64_t batch)
{
    int shards = 8;
    while (shards > 1 && batch / shards < 32)
        shards /= 2;
    return shards;
}

/* Elements are independent: how they are dealt out changes no bit. */
static void choose_groups(struct lk_shard_sum *sum, const struct lk_device_info *info)
{
    sum->items = 1;
    sum->group = CPU_GROUP / info->vector;
    if (info->device_class == LK_CLASS_GPU) {
        sum->items = GPU_ITEMS;
        while ((size_t)sum->items > info->group_items)
            sum->items /= 2;
        sum->group = (int64_t)sum->items * GPU_STEPS;
    }
}

static enum lk_status make_kernels(struct lk_device *device, struct lk_shard_sum *sum)
{
    char options[128];
    int levels = 0;
    while (1 << levels < sum->tiling.shards)
        levels++;
    snprintf(options, sizeof options, "-DITEMS=%d -DGROUP=%lld -DSHARDS=%d -DLEVELS=%d",
             sum->items, (long long)sum->group, sum->tiling.shards, levels);
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
    const size_t bytes = (size_t)sum->tiling.shards * PAD * sum->real_bytes;
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
    choose_groups(made, lk_device_info(device));
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
    const int vector = sum->tiling.vector;
    const int64_t padded = (count + PAD - 1) / PAD * PAD;
    if (count < 1 || padded > stride || stride % PAD)
        return lk_fail(LK_E_ARGUMENT,
                       "sum over shards: %lld values in a stride of %lld; expected a multiple "
                       "of %d that holds them",
                       (long long)count, (long long)stride, PAD);
    LK_TRY(check_bytes("x", x, (size_t)stride * (size_t)sum->tiling.shards * sum->real_bytes));
    LK_TRY(check_bytes("y", y, (size_t)padded * sum->real_bytes));
    const int64_t vectors = (count + vector - 1) / vector;
    const struct lk_grid grid = {{(vectors + sum->group - 1) / sum->group, 1, 1}, sum->items};
    return LK_ENQUEUE(sum->sum, grid, LK_BUF(x), LK_BUF(y), LK_INT(vectors),
                      LK_INT(stride / vector));
}

enum lk_status lk_shard_sum_enqueue_metrics(struct lk_shard_sum *sum, const struct lk_buffer *x,
                                            struct lk_buffer *y)
{
    const struct lk_tiling *t = &sum->tiling;
    LK_TRY(check_bytes("x", x, (size_t)(t->tiles * METRICS * t->lanes) * sum->real_bytes));
    const struct lk_grid grid = {{t->shards, METRICS, 1}, t->lanes / t->vector};
    LK_TRY(LK_ENQUEUE(sum->metrics, grid, LK_BUF(x), LK_BUF(sum->partial),
                      LK_INT(t->shard_tiles)));
    return lk_shard_sum_enqueue(sum, sum->partial, PAD, METRICS, y);
}

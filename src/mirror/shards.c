/* Launches the kernels that add gradients and metrics over shards, and make checksums. */
#include "mirror/shards.h"

#include "base/fail.h"
#include "tensor/elementwise.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { METRICS = 2, MOST_LEVELS = 9, MOST_CHECKSUMS = 1024, CHECKSUM_WORDS = 16384 };

struct lk_shard_sum {
    struct lk_tiling tiling;
    struct lk_elementwise elementwise;
    size_t real_bytes;
    int levels;                          /* levels of the tree over all shards */
    struct lk_kernel *sums[MOST_LEVELS]; /* over subtrees of 2^level shards */
    struct lk_kernel *join, *place;
    struct lk_kernel *metrics, *checksum, *total;
    struct lk_buffer *partial;           /* [shards][LK_PAD]: metrics of each shard */
    struct lk_buffer *partial_checksums; /* uint32 [MOST_CHECKSUMS] */
};

int lk_shards_choose(int64_t batch)
{
    int shards = 8;
    while (shards > 1 && batch / shards < 32)
        shards /= 2;
    return shards;
}

static enum lk_status make_kernels(struct lk_device *device, struct lk_shard_sum *sum,
                                   bool parts)
{
    char options[128];
    lk_elementwise_define(&sum->elementwise, options, sizeof options);
    const size_t used = strlen(options);
    struct lk_kernel_spec spec = {.source = "mirror/shards",
                                  .name = "shards_sum",
                                  .options = options,
                                  .real_bytes = (int)sum->real_bytes,
                                  .lanes = sum->tiling.lanes};
    for (int level = parts ? 0 : sum->levels; level <= sum->levels; level++) {
        snprintf(options + used, sizeof options - used, " -DLEVELS=%d", level);
        LK_TRY(lk_kernel_create(device, &spec, &sum->sums[level]));
    }
    spec.name = "shards_metrics";
    LK_TRY(lk_kernel_create(device, &spec, &sum->metrics));
    if (!parts)
        return LK_OK;
    spec.name = "shards_join";
    LK_TRY(lk_kernel_create(device, &spec, &sum->join));
    spec.name = "shards_place";
    LK_TRY(lk_kernel_create(device, &spec, &sum->place));
    spec.source = "mirror/checksum";
    spec.name = "checksum";
    spec.options = NULL;
    LK_TRY(lk_kernel_create(device, &spec, &sum->checksum));
    spec.name = "checksum_total";
    return lk_kernel_create(device, &spec, &sum->total);
}

static enum lk_status make_partial(struct lk_device *device, struct lk_shard_sum *sum)
{
    const size_t bytes = (size_t)sum->tiling.shards * LK_PAD * sum->real_bytes;
    LK_TRY(lk_buffer_create(device, bytes, &sum->partial));
    LK_TRY(
        lk_buffer_create(device, MOST_CHECKSUMS * sizeof(uint32_t), &sum->partial_checksums));
    return lk_buffer_enqueue_fill(sum->partial, 0);
}

enum lk_status lk_shard_sum_create(struct lk_device *device, const struct lk_tiling *tiling,
                                   enum lk_dtype real, bool parts, struct lk_shard_sum **sum)
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
    while (1 << made->levels < shards)
        made->levels++;
    made->elementwise = lk_elementwise_make(lk_device_info(device));
    enum lk_status status = make_kernels(device, made, parts);
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
    for (int level = 0; level <= sum->levels; level++)
        lk_kernel_destroy(sum->sums[level]);
    lk_kernel_destroy(sum->join);
    lk_kernel_destroy(sum->place);
    lk_kernel_destroy(sum->metrics);
    lk_kernel_destroy(sum->checksum);
    lk_kernel_destroy(sum->total);
    lk_buffer_destroy(sum->partial_checksums);
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

static enum lk_status check_slice(const struct lk_shard_slice *slice)
{
    const int64_t padded = lk_elementwise_padded(slice->count);
    if (slice->count >= 1 && slice->first >= 0 && slice->first % LK_PAD == 0 &&
        slice->stride % LK_PAD == 0 && slice->first + padded <= slice->stride)
        return LK_OK;
    return lk_fail(LK_E_ARGUMENT,
                   "sum over shards: %lld values from %lld on in a stride of %lld; expected "
                   "multiples of %d that hold them",
                   (long long)slice->count, (long long)slice->first, (long long)slice->stride,
                   LK_PAD);
}

enum lk_status lk_shard_sum_enqueue(struct lk_shard_sum *sum, struct lk_subtree subtree,
                                    const struct lk_shard_slice *slice,
                                    const struct lk_shard_target *to)
{
    const int vector = sum->tiling.vector;
    const int64_t padded = lk_elementwise_padded(slice->count);
    const int64_t end =
        (int64_t)(subtree.first + subtree.count - 1) * slice->stride + slice->first + padded;
    int level = 0;
    while (1 << level < subtree.count)
        level++;
    if (subtree.first < 0 || subtree.count != 1 << level || level > sum->levels ||
        !sum->sums[level])
        return lk_fail(LK_E_ARGUMENT, "a subtree of %d shards from shard %d on", subtree.count,
                       subtree.first);
    LK_TRY(check_slice(slice));
    LK_TRY(check_bytes("x", slice->x, (size_t)end * sum->real_bytes));
    LK_TRY(check_bytes("y", to->y, (size_t)(to->first + padded) * sum->real_bytes));
    return LK_ENQUEUE(sum->sums[level], lk_elementwise_grid(&sum->elementwise, slice->count),
                      LK_BUF(slice->x), LK_BUF(to->y),
                      LK_INT(lk_elementwise_vectors(&sum->elementwise, slice->count)),
                      LK_INT(slice->stride / vector), LK_INT(subtree.first),
                      LK_INT(slice->first / vector), LK_INT(to->first / vector),
                      LK_INT(to->adds));
}

enum lk_status lk_shard_sum_enqueue_join(struct lk_shard_sum *sum, struct lk_buffer *y,
                                         int64_t lower, int64_t higher, int64_t count)
{
    const int vector = sum->tiling.vector;
    const int64_t end = (lower > higher ? lower : higher) + lk_elementwise_padded(count);
    if (lower % LK_PAD || higher % LK_PAD)
        return lk_fail(LK_E_ARGUMENT,
                       "sums to be joined at %lld and %lld, expected multiples of %d",
                       (long long)lower, (long long)higher, LK_PAD);
    LK_TRY(check_bytes("y", y, (size_t)end * sum->real_bytes));
    return LK_ENQUEUE(sum->join, lk_elementwise_grid(&sum->elementwise, count), LK_BUF(y),
                      LK_INT(lk_elementwise_vectors(&sum->elementwise, count)),
                      LK_INT(lower / vector), LK_INT(higher / vector));
}

enum lk_status lk_shard_sum_enqueue_place(struct lk_shard_sum *sum,
                                          const struct lk_shard_places *places,
                                          const struct lk_shard_target *to)
{
    const int vector = sum->tiling.vector;
    const struct lk_shard_places *p = places;
    const int end = p->first + p->count;
    struct lk_grid grid = lk_elementwise_grid(&sum->elementwise, p->stride);
    grid.groups[1] = p->shards;
    if (p->stride < 1 || p->stride % LK_PAD || to->first % LK_PAD || p->first < p->shift ||
        p->count < 1 || end > p->shards)
        return lk_fail(LK_E_ARGUMENT, "%d shards from %d on to be placed among %d", p->count,
                       p->first, p->shards);
    LK_TRY(check_bytes("x", p->x, (size_t)((end - p->shift) * p->stride) * sum->real_bytes));
    const size_t reals = (size_t)(to->first + p->shards * p->stride);
    LK_TRY(check_bytes("y", to->y, reals * sum->real_bytes));
    return LK_ENQUEUE(sum->place, grid, LK_BUF(p->x), LK_BUF(to->y), LK_INT(p->stride / vector),
                      LK_INT(p->shift), LK_INT(p->first), LK_INT(end),
                      LK_INT(to->first / vector), LK_INT(to->adds));
}

enum lk_status lk_shard_sum_enqueue_metrics(struct lk_shard_sum *sum, const struct lk_buffer *x,
                                            int shards, struct lk_shard_slice *slice)
{
    const struct lk_tiling *t = &sum->tiling;
    if (shards < 1 || shards > t->shards)
        return lk_fail(LK_E_ARGUMENT, "metrics of %d shards: expected 1..%d", shards,
                       t->shards);
    LK_TRY(check_bytes(
        "x", x, (size_t)(shards * t->shard_tiles * METRICS * t->lanes) * sum->real_bytes));
    const struct lk_grid grid = {{shards, METRICS, 1}, t->lanes / t->vector};
    LK_TRY(LK_ENQUEUE(sum->metrics, grid, LK_BUF(x), LK_BUF(sum->partial),
                      LK_INT(t->shard_tiles)));
    /* the penalty stands behind what is summed here */
    *slice = (struct lk_shard_slice){
        .x = sum->partial, .stride = LK_PAD, .count = LK_METRIC_PENALTY + 1};
    return LK_OK;
}

struct lk_buffer *lk_shard_sum_metrics(struct lk_shard_sum *sum)
{
    return sum->partial;
}

enum lk_status lk_shard_sum_enqueue_checksum(struct lk_shard_sum *sum,
                                             const struct lk_buffer *x, int64_t first,
                                             int64_t count, struct lk_buffer *y, int64_t at)
{
    const int64_t rate = (int64_t)(sum->real_bytes / sizeof(uint32_t));
    const int64_t rows = count * rate / LK_PAD;
    const int64_t wanted =
        lk_least(lk_divide_up(rows * LK_PAD, CHECKSUM_WORDS), MOST_CHECKSUMS);
    const int64_t each = lk_divide_up(rows, wanted), groups = lk_divide_up(rows, each);
    if (count < 1 || count % LK_PAD || first % LK_PAD)
        return lk_fail(LK_E_ARGUMENT, "a checksum over %lld values: expected a multiple of %d",
                       (long long)count, LK_PAD);
    LK_TRY(check_bytes("x", x, (size_t)(first + count) * sum->real_bytes));
    LK_TRY(check_bytes("y", y, (size_t)(at + 1) * sizeof(uint32_t)));
    const struct lk_grid grid = {{groups, 1, 1}, 1}, one = {{1, 1, 1}, 1};
    LK_TRY(LK_ENQUEUE(sum->checksum, grid, LK_BUF(x), LK_BUF(sum->partial_checksums),
                      LK_INT(first * rate / LK_PAD), LK_INT(rows), LK_INT(each)));
    return LK_ENQUEUE(sum->total, one, LK_BUF(sum->partial_checksums), LK_BUF(y),
                      LK_INT(groups), LK_INT(at));
}

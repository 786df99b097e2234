/* Shapes, number types, and how a batch is laid out in tiles of lanes. */
#include "tensor/tensor.h"

#include "base/fail.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int64_t lanes_taken(int64_t samples, int lanes)
{
    return lk_divide_up(samples, lanes) * lanes;
}

/* Chooses the lanes of a tile. On a CPU they are those of its vectors. A GPU may take fewer
 * than usual, so that the tiles of small shards are not mostly dead lanes: the most lanes that
 * need at most a third more memory than the best number would. */
static int fit_lanes(const struct lk_device_info *info, int64_t samples)
{
    enum {
        LEAST_LANES = 8
    }; /* fewer are read in pieces that are too small, and the products'
        * kernels need 8 */
    int lanes = info->lanes;
    if (info->vector > 1)
        return lanes;
    int64_t best = lanes_taken(samples, lanes);
    for (int fewer = lanes / 2; fewer >= LEAST_LANES; fewer /= 2)
        best = lk_least(best, lanes_taken(samples, fewer));
    while (3 * lanes_taken(samples, lanes) > 4 * best)
        lanes /= 2;
    return lanes;
}

struct lk_tiling lk_tiling_make(const struct lk_device_info *info, int64_t batch, int shards)
{
    const struct lk_tiling tiling = {.lanes = fit_lanes(info, lk_divide_up(batch, shards)),
                                     .vector = info->vector};
    return lk_tiling_resize(&tiling, batch, shards);
}

struct lk_tiling lk_tiling_make_planes(const struct lk_device_info *info, int64_t batch,
                                       int shards)
{
    const struct lk_tiling tiling = {
        .lanes = info->vector, .vector = info->vector, .planes = true};
    return lk_tiling_resize(&tiling, batch, shards);
}

struct lk_shape lk_plane_shape(const struct lk_tiling *tiling, const struct lk_shape *shape)
{
    if (!tiling->planes || shape->rank != 3)
        return *shape;
    const int64_t pixels = shape->dim[1] * shape->dim[2];
    return (struct lk_shape){3, {shape->dim[0], lk_divide_up(pixels, tiling->lanes), 1}};
}

struct lk_tiling lk_tiling_resize(const struct lk_tiling *tiling, int64_t batch, int shards)
{
    struct lk_tiling made = *tiling;
    made.shards = shards;
    made.shard_samples = lk_divide_up(batch, shards);
    made.shard_tiles = lk_divide_up(made.shard_samples, made.planes ? 1 : made.lanes);
    made.tiles = made.shard_tiles * shards;
    return made;
}

struct lk_tiling lk_tiling_cut(const struct lk_tiling *tiling, int shards)
{
    struct lk_tiling made = *tiling;
    made.shards = shards;
    made.tiles = shards * tiling->shard_tiles;
    return made;
}

size_t lk_dtype_bytes(enum lk_dtype dtype)
{
    static const size_t bytes[] = {
        [LK_F32] = 4, [LK_F64] = 8, [LK_U8] = 1, [LK_I32] = 4, [LK_F16] = 2};
    return bytes[dtype];
}

const char *lk_dtype_name(enum lk_dtype dtype)
{
    static const char *const names[] = {[LK_F32] = "float32",
                                        [LK_F64] = "float64",
                                        [LK_U8] = "uint8",
                                        [LK_I32] = "int32",
                                        [LK_F16] = "float16"};
    return names[dtype];
}

int64_t lk_shape_count(const struct lk_shape *shape)
{
    int64_t count = 1;
    for (int i = 0; i < shape->rank; i++)
        if (shape->dim[i] < 1 || __builtin_mul_overflow(count, shape->dim[i], &count))
            return -1;
    return count;
}

bool lk_shape_equal(const struct lk_shape *a, const struct lk_shape *b)
{
    if (a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dim[i] != b->dim[i])
            return false;
    return true;
}

void lk_shape_print(const struct lk_shape *shape, char *text, size_t bytes)
{
    size_t used = (size_t)snprintf(text, bytes, "[");
    for (int i = 0; i < shape->rank && used < bytes; i++)
        used += (size_t)snprintf(text + used, bytes - used, "%s%lld", i ? ", " : "",
                                 (long long)shape->dim[i]);
    if (used < bytes)
        snprintf(text + used, bytes - used, "]");
}

void lk_shape_print_hwc(const struct lk_shape *shape, char *text, size_t bytes)
{
    const int64_t *d = shape->dim;
    if (shape->rank == 3)
        lk_shape_print(&(struct lk_shape){3, {d[1], d[2], d[0]}}, text, bytes);
    else
        lk_shape_print(shape, text, bytes);
}

size_t lk_tiled_bytes(const struct lk_tiling *tiling, const struct lk_shape *shape,
                      enum lk_dtype dtype)
{
    const struct lk_shape stored = lk_plane_shape(tiling, shape);
    int64_t count = lk_shape_count(shape) < 0 ? -1 : lk_shape_count(&stored);
    if (count < 0 || __builtin_mul_overflow(count, tiling->tiles * tiling->lanes, &count) ||
        __builtin_mul_overflow(count, (int64_t)lk_dtype_bytes(dtype), &count))
        return SIZE_MAX;
    return (size_t)count;
}

static enum lk_status check_samples(const struct lk_tiling *tiling, int64_t samples)
{
    const int64_t most = tiling->shard_samples * tiling->shards;
    if (samples >= 0 && samples <= most)
        return LK_OK;
    return lk_fail(LK_E_ARGUMENT, "%lld samples for batch tiles of %lld", (long long)samples,
                   (long long)most);
}

/* The index of element e of sample i in the tiles. */
static size_t tiled_index(const struct lk_tiling *tiling, const struct lk_shape *shape,
                          int64_t i, int64_t e)
{
    const int64_t count = lk_shape_count(shape);
    const int64_t number = i % tiling->shard_samples;
    const int64_t each = tiling->planes ? 1 : tiling->lanes; /* samples of a tile */
    const int64_t tile = i / tiling->shard_samples * tiling->shard_tiles + number / each;
    if (!tiling->planes || shape->rank != 3)
        return (size_t)((tile * count + e) * tiling->lanes + number % each);
    const struct lk_shape stored = lk_plane_shape(tiling, shape);
    const int64_t pixels = count / shape->dim[0];
    const int64_t plane = tile * shape->dim[0] + e / pixels;
    return (size_t)(plane * stored.dim[1] * tiling->lanes + e % pixels);
}

/* In how many lanes an element lies. */
static size_t copies_of(const struct lk_tiling *tiling, const struct lk_shape *shape)
{
    return tiling->planes && shape->rank != 3 ? (size_t)tiling->lanes : 1;
}

enum lk_status lk_tiled_write(struct lk_buffer *buffer, const struct lk_tiling *tiling,
                              const struct lk_shape *shape, enum lk_dtype dtype,
                              int64_t samples, const void *from)
{
    const size_t bytes = lk_tiled_bytes(tiling, shape, dtype), size = lk_dtype_bytes(dtype);
    const int64_t count = lk_shape_count(shape);
    LK_TRY(check_samples(tiling, samples));
    char *tiles = calloc(1, bytes);
    if (!tiles)
        return lk_fail_memory("batch tiles", bytes);
    for (int64_t i = 0; i < samples; i++)
        for (int64_t e = 0; e < count; e++)
            for (size_t copy = 0; copy < copies_of(tiling, shape); copy++)
                memcpy(tiles + (tiled_index(tiling, shape, i, e) + copy) * size,
                       (const char *)from + (size_t)(i * count + e) * size, size);
    const enum lk_status status = lk_buffer_write(buffer, 0, bytes, tiles);
    free(tiles);
    return status;
}

enum lk_status lk_tiled_read(const struct lk_buffer *buffer, const struct lk_tiling *tiling,
                             const struct lk_shape *shape, enum lk_dtype dtype, int64_t samples,
                             void *to)
{
    const size_t bytes = lk_tiled_bytes(tiling, shape, dtype), size = lk_dtype_bytes(dtype);
    const int64_t count = lk_shape_count(shape);
    LK_TRY(check_samples(tiling, samples));
    char *tiles = malloc(bytes);
    if (!tiles)
        return lk_fail_memory("batch tiles", bytes);
    const enum lk_status status = lk_buffer_read(buffer, 0, bytes, tiles);
    for (int64_t i = 0; i < samples && status == LK_OK; i++)
        for (int64_t e = 0; e < count; e++)
            memcpy((char *)to + (size_t)(i * count + e) * size,
                   tiles + tiled_index(tiling, shape, i, e) * size, size);
    free(tiles);
    return status;
}

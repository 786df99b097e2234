/* Images and labels into batch tiles by the device, against plain C, in both kernel classes. */
#include "device/rig.h"
#include "tensor/tensor.h"

enum { GUARD = 64 }; /* bytes behind each buffer that must stay as they were */

struct trial {
    int64_t batch, samples;
    int shards;
    struct lk_shape shape; /* [c, h, w] */
};

static uint8_t pixel(int64_t at)
{
    return (uint8_t)(at * 2654435761u >> 13);
}

/* What lane `lane` of tile `tile` holds: the number of a sample; -1: none. */
static int64_t sample_at(const struct lk_tiling *t, int64_t samples, int64_t tile, int lane)
{
    const int64_t number = tile % t->shard_tiles * t->lanes + lane;
    const int64_t n = tile / t->shard_tiles * t->shard_samples + number;
    return number < t->shard_samples && n < samples ? n : -1;
}

/* Compares the tensor with from * scale + shift, rounded once or twice: a device may fuse. */
static void compare_images(const struct trial *trial, const struct lk_tiling *t,
                           enum lk_dtype real, const void *got, double scale, double shift)
{
    const int64_t c_count = trial->shape.dim[0], h_count = trial->shape.dim[1];
    const int64_t w_count = trial->shape.dim[2], plane = h_count * w_count;
    size_t at = 0;
    for (int64_t tile = 0; tile < t->tiles; tile++)
        for (int64_t e = 0; e < c_count * plane; e++)
            for (int lane = 0; lane < t->lanes; lane++, at++) {
                const int64_t n = sample_at(t, trial->samples, tile, lane);
                const int64_t from = (n * plane + e % plane) * c_count + e / plane;
                const double is = real == LK_F64 ? ((const double *)got)[at]
                                                 : (double)((const float *)got)[at];
                const double want = n < 0 ? 0 : pixel(from) * scale + shift;
                const double slack = n < 0 ? 0 : real == LK_F64 ? 1e-15 : 3e-7;
                if (!(is - want <= slack && want - is <= slack))
                    fail_msg("tile %lld, element %lld, lane %d: %.17g, must be %.17g",
                             (long long)tile, (long long)e, lane, is, want);
            }
}

static void check_images(struct lk_device *device, const struct trial *trial,
                         enum lk_dtype real)
{
    const struct lk_tiling t =
        lk_tiling_make(lk_device_info(device), trial->batch, trial->shards);
    const size_t in = (size_t)(trial->samples * lk_shape_count(&trial->shape));
    const size_t out = lk_tiled_bytes(&t, &trial->shape, real);
    uint8_t *host = malloc(in), *got = malloc(out + GUARD);
    struct lk_buffer *from = NULL, *y = NULL;
    struct lk_loader *loader = NULL;
    assert_true(host && got);
    for (size_t i = 0; i < in; i++)
        host[i] = pixel((int64_t)i);
    assert_ok(lk_loader_create(device, &t, real, &loader));
    assert_ok(lk_device_build(device));
    assert_ok(lk_buffer_create(device, in, &from));
    assert_ok(lk_buffer_create(device, out + GUARD, &y));
    assert_ok(lk_buffer_write(from, 0, in, host));
    assert_ok(lk_buffer_enqueue_fill(y, 0xee));
    const double scale = 1.0 / 255, shift = trial->shards > 1 ? -0.5 : 0;
    assert_ok(
        lk_loader_enqueue_images(loader, from, &trial->shape, trial->samples, scale, shift, y));
    assert_ok(lk_buffer_read(y, 0, out + GUARD, got));
    compare_images(trial, &t, real, got, scale, shift);
    for (size_t i = out; i < out + GUARD; i++)
        assert_int_equal(got[i], 0xee);
    lk_loader_destroy(loader);
    lk_buffer_destroy(from);
    lk_buffer_destroy(y);
    free(host);
    free(got);
}

static void check_labels(struct lk_device *device, const struct trial *trial)
{
    const struct lk_tiling t =
        lk_tiling_make(lk_device_info(device), trial->batch, trial->shards);
    int32_t host[512], got[8 * 512 + GUARD];
    const int64_t count = t.tiles * t.lanes;
    const size_t out = (size_t)(count + GUARD) * sizeof *got;
    struct lk_buffer *from = NULL, *y = NULL;
    struct lk_loader *loader = NULL;
    assert_true(trial->samples <= 512 && count <= 8 * 512);
    for (int i = 0; i < trial->samples; i++)
        host[i] = i * 7 % 1000;
    assert_ok(lk_loader_create(device, &t, LK_F32, &loader));
    assert_ok(lk_device_build(device));
    assert_ok(lk_buffer_create(device, (size_t)trial->samples * sizeof *host, &from));
    assert_ok(lk_buffer_create(device, out, &y));
    assert_ok(lk_buffer_write(from, 0, (size_t)trial->samples * sizeof *host, host));
    assert_ok(lk_buffer_enqueue_fill(y, 0xee));
    assert_ok(lk_loader_enqueue_labels(loader, from, trial->samples, y));
    assert_ok(lk_buffer_read(y, 0, out, got));
    for (int64_t i = 0; i < count; i++) {
        const int64_t n = sample_at(&t, trial->samples, i / t.lanes, (int)(i % t.lanes));
        assert_int_equal(got[i], n < 0 ? -1 : host[n]);
    }
    for (int64_t i = count; i < count + GUARD; i++)
        assert_int_equal((uint32_t)got[i], 0xeeeeeeeeu);
    lk_loader_destroy(loader);
    lk_buffer_destroy(from);
    lk_buffer_destroy(y);
}

static const struct trial trials[] = {
    {512, 512, 1, {3, {1, 28, 28}}}, {511, 511, 2, {3, {1, 3, 5}}},
    {512, 300, 8, {3, {3, 2, 7}}},   {17, 17, 1, {3, {3, 5, 3}}},
    {17, 1, 2, {3, {1, 1, 1}}},      {17, 9, 8, {3, {3, 1, 33}}},
    {1, 1, 1, {3, {3, 7, 1}}},       {1, 1, 8, {3, {4, 3, 2}}},
    {64, 33, 2, {3, {2, 31, 17}}},
};

static void check_class(const char *device_class, const char *vector)
{
    struct lk_device *device = NULL;
    setenv("LOCKSTEP_CLASS", device_class, 1);
    setenv("LOCKSTEP_VECTOR", vector, 1);
    assert_ok(lk_device_open(NULL, 0, &device));
    for (int i = 0; i < LK_COUNT(trials); i++) {
        check_images(device, &trials[i], LK_F32);
        if (lk_device_info(device)->has_fp64)
            check_images(device, &trials[i], LK_F64);
        check_labels(device, &trials[i]);
    }
    lk_device_close(device);
    unsetenv("LOCKSTEP_CLASS");
    unsetenv("LOCKSTEP_VECTOR");
}

static void loads_on_cpus(void **state)
{
    (void)state;
    check_class("cpu", "16");
    check_class("cpu", "8");
    check_class("cpu", "4");
}

static void loads_on_gpus(void **state)
{
    (void)state;
    check_class("gpu", "16");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loads_on_cpus),
        cmocka_unit_test(loads_on_gpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

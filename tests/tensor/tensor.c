/* Shapes, tilings, and samples on their way into batch tiles and back. */
#include "tensor/tensor.h"
#include "device/rig.h"

static void counts_shapes(void **state)
{
    (void)state;
    static const struct {
        struct lk_shape shape;
        int64_t count;
        const char *text;
    } cases[] = {
        {{0, {0}}, 1, "[]"},
        {{1, {7}}, 7, "[7]"},
        {{3, {64, 13, 13}}, 10816, "[64, 13, 13]"},
        {{4, {1, 2, 3, 4}}, 24, "[1, 2, 3, 4]"},
        {{2, {5, 0}}, -1, "[5, 0]"},
        {{2, {5, -3}}, -1, "[5, -3]"},
        {{4, {1LL << 31, 1LL << 31, 2, 1}}, -1, "[2147483648, 2147483648, 2, 1]"},
    };
    for (int i = 0; i < LK_COUNT(cases); i++) {
        char text[64], tiny[4];
        assert_int_equal(lk_shape_count(&cases[i].shape), cases[i].count);
        lk_shape_print(&cases[i].shape, text, sizeof text);
        assert_string_equal(text, cases[i].text);
        lk_shape_print(&cases[i].shape, tiny, sizeof tiny);
        assert_int_equal(strncmp(tiny, text, 3), 0);
        for (int j = 0; j < LK_COUNT(cases); j++)
            assert_int_equal(lk_shape_equal(&cases[i].shape, &cases[j].shape), i == j);
    }
}

static struct lk_tiling make(int lanes, int64_t batch, int shards)
{
    const struct lk_device_info info = {.lanes = lanes, .vector = lanes};
    return lk_tiling_make(&info, batch, shards);
}

static void makes_tilings(void **state)
{
    (void)state;
    static const struct {
        int lanes;
        int64_t batch;
        int shards;
        int64_t samples, tiles, all;
    } cases[] = {
        {16, 512, 1, 512, 32, 32},  {16, 512, 8, 64, 4, 32}, {16, 511, 2, 256, 16, 32},
        {16, 511, 8, 64, 4, 32},    {16, 17, 1, 17, 2, 2},   {16, 17, 2, 9, 1, 2},
        {16, 17, 8, 3, 1, 8},       {16, 1, 1, 1, 1, 1},     {16, 1, 8, 1, 1, 8},
        {32, 512, 8, 64, 2, 16},    {32, 17, 1, 17, 1, 1},   {8, 17, 1, 17, 3, 3},
        {4, 511, 1, 511, 128, 128}, {4, 17, 2, 9, 3, 6},
    };
    for (int i = 0; i < LK_COUNT(cases); i++) {
        const struct lk_tiling t = make(cases[i].lanes, cases[i].batch, cases[i].shards);
        assert_int_equal(t.lanes, cases[i].lanes);
        assert_int_equal(t.vector, cases[i].lanes);
        assert_int_equal(t.shards, cases[i].shards);
        assert_int_equal(t.shard_samples, cases[i].samples);
        assert_int_equal(t.shard_tiles, cases[i].tiles);
        assert_int_equal(t.tiles, cases[i].all);
    }
}

/* A shard's samples do not fill a GPU's tiles: the tiles have fewer lanes. */
static void fits_lanes(void **state)
{
    (void)state;
    static const struct {
        int most;
        int64_t batch;
        int shards, lanes;
        int64_t tiles; /* of a shard */
    } cases[] = {
        {32, 64, 1, 32, 2}, {32, 64, 8, 8, 1},  {32, 16, 1, 16, 1}, {32, 1, 1, 8, 1},
        {32, 9, 1, 16, 1},  {32, 24, 1, 32, 1}, {32, 23, 1, 32, 1}, {32, 33, 1, 16, 3},
        {32, 50, 1, 32, 2}, {32, 40, 1, 16, 3}, {16, 5, 1, 8, 1},   {8, 4, 2, 8, 1},
        {4, 1, 1, 4, 1},
    };
    for (int i = 0; i < LK_COUNT(cases); i++) {
        const struct lk_device_info info = {.lanes = cases[i].most, .vector = 1};
        const struct lk_tiling t = lk_tiling_make(&info, cases[i].batch, cases[i].shards);
        assert_int_equal(t.lanes, cases[i].lanes);
        assert_int_equal(t.vector, 1);
        assert_int_equal(t.shard_tiles, cases[i].tiles);
        const struct lk_tiling more = lk_tiling_resize(&t, 10 * cases[i].batch, 1);
        assert_int_equal(more.lanes, t.lanes);
        assert_int_equal(more.tiles, lk_divide_up(10 * cases[i].batch, t.lanes));
    }
}

static void counts_bytes(void **state)
{
    (void)state;
    const struct lk_tiling t = make(16, 17, 1);
    const struct lk_shape image = {3, {3, 5, 7}}, label = {0, {0}}, none = {1, {0}};
    const struct lk_shape huge = {2, {1LL << 31, 1LL << 31}};
    assert_int_equal(lk_tiled_bytes(&t, &image, LK_F32), 2 * 105 * 16 * 4);
    assert_int_equal(lk_tiled_bytes(&t, &image, LK_F64), 2 * 105 * 16 * 8);
    assert_int_equal(lk_tiled_bytes(&t, &image, LK_U8), 2 * 105 * 16);
    assert_int_equal(lk_tiled_bytes(&t, &label, LK_I32), 2 * 16 * 4);
    assert_true(lk_tiled_bytes(&t, &none, LK_F32) == SIZE_MAX);
    assert_true(lk_tiled_bytes(&t, &huge, LK_F32) == SIZE_MAX);
}

/* Byte k of element e of sample i. */
static unsigned char byte_of(int64_t i, int64_t e, size_t k)
{
    return (unsigned char)(i * 31 + e * 7 + (int64_t)k * 5 + 1);
}

/* Where the header of tensor.h says that element e of sample i lies. */
static size_t place(const struct lk_tiling *t, int64_t elements, int64_t i, int64_t e)
{
    const int64_t shard = i / t->shard_samples, number = i % t->shard_samples;
    const int64_t tile = shard * t->shard_tiles + number / t->lanes;
    return (size_t)((tile * elements + e) * t->lanes + number % t->lanes);
}

static void check_round(struct lk_device *device, int64_t batch, int shards, int64_t samples,
                        enum lk_dtype dtype)
{
    const struct lk_shape shape = {3, {2, 3, 1}};
    const int64_t elements = lk_shape_count(&shape);
    const struct lk_tiling t = lk_tiling_make(lk_device_info(device), batch, shards);
    const size_t size = lk_dtype_bytes(dtype), bytes = lk_tiled_bytes(&t, &shape, dtype);
    const size_t host_bytes = (size_t)(samples * elements) * size;
    unsigned char *host = malloc(host_bytes), *got = malloc(bytes), *want = calloc(1, bytes);
    struct lk_buffer *buffer = NULL;
    assert_true(host && got && want);
    for (int64_t i = 0; i < samples; i++)
        for (int64_t e = 0; e < elements; e++)
            for (size_t k = 0; k < size; k++) {
                host[(size_t)(i * elements + e) * size + k] = byte_of(i, e, k);
                want[place(&t, elements, i, e) * size + k] = byte_of(i, e, k);
            }
    assert_ok(lk_buffer_create(device, bytes, &buffer));
    assert_ok(lk_buffer_enqueue_fill(buffer, 0xff));
    assert_ok(lk_tiled_write(buffer, &t, &shape, dtype, samples, host));
    assert_ok(lk_buffer_read(buffer, 0, bytes, got));
    assert_memory_equal(got, want, bytes); /* dead lanes are zeros */
    memset(got, 0xff, host_bytes);
    assert_ok(lk_tiled_read(buffer, &t, &shape, dtype, samples, got));
    assert_memory_equal(got, host, host_bytes);
    assert_int_equal(
        lk_tiled_write(buffer, &t, &shape, dtype, t.shard_samples * shards + 1, host),
        LK_E_ARGUMENT);
    assert_non_null(strstr(lk_error_text(), "samples for batch tiles of"));
    lk_error_clear();
    lk_buffer_destroy(buffer);
    free(host);
    free(got);
    free(want);
}

static void writes_and_reads(void **state)
{
    (void)state;
    static const int batches[] = {1, 17, 511, 512}, shards[] = {1, 2, 8};
    static const enum lk_dtype dtypes[] = {LK_F32, LK_F64, LK_U8, LK_I32};
    static const char *const classes[] = {"gpu", "cpu", "cpu", "cpu"};
    static const char *const vectors[] = {"16", "16", "8", "4"};
    for (int kind = 0; kind < LK_COUNT(classes); kind++) {
        struct lk_device *device = NULL;
        setenv("LOCKSTEP_CLASS", classes[kind], 1);
        setenv("LOCKSTEP_VECTOR", vectors[kind], 1);
        assert_ok(lk_device_open(NULL, 0, &device));
        for (int b = 0; b < LK_COUNT(batches); b++)
            for (int s = 0; s < LK_COUNT(shards); s++) {
                const enum lk_dtype dtype = dtypes[(b + s) % LK_COUNT(dtypes)];
                check_round(device, batches[b], shards[s], batches[b], dtype);
                check_round(device, batches[b], shards[s], batches[b] / 2 + 1, dtype);
            }
        lk_device_close(device);
    }
    unsetenv("LOCKSTEP_CLASS");
    unsetenv("LOCKSTEP_VECTOR");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_shapes),    cmocka_unit_test(makes_tilings),
        cmocka_unit_test(fits_lanes),       cmocka_unit_test(counts_bytes),
        cmocka_unit_test(writes_and_reads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

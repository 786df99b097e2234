/* Sums over shards against the same tree on the host, bit for bit. */
#include "mirror/shards.h"

#include "base/random.h"
#include "device/rig.h"

/* Values of many sizes, so that every order of additions gives other bits. */
static double value(int64_t i)
{
    const struct lk_random4 r = lk_random(5, LK_RANDOM_DATA, 0, (uint64_t)i);
    const double size = (double)(1 << r.v[1] % 16);
    return (float)((lk_random_unit(r.v[0]) - 0.5) * size);
}

static double rounded(enum lk_dtype real, double x)
{
    return real == LK_F32 ? (float)x : x;
}

/* The tree over x[0..count), neighbours first, for a power of two. Each addition of two floats
 * in double and rounded once is the float addition. */
static double tree(enum lk_dtype real, const double *x, int count)
{
    if (count == 1)
        return x[0];
    return rounded(real, tree(real, x, count / 2) + tree(real, x + count / 2, count / 2));
}

static double get(const void *reals, enum lk_dtype real, int64_t i)
{
    return real == LK_F64 ? ((const double *)reals)[i] : (double)((const float *)reals)[i];
}

static void *values(enum lk_dtype real, int64_t count)
{
    float *single = malloc((size_t)count * 8);
    for (int64_t i = 0; i < count; i++)
        if (real == LK_F64)
            ((double *)(void *)single)[i] = value(i) * (1 + value(i + 1) * 0x1p-30);
        else
            single[i] = (float)value(i);
    return single;
}

static void check_sum(struct lk_device *device, enum lk_dtype real, int shards, int64_t count,
                      int64_t stride)
{
    const size_t size = lk_dtype_bytes(real);
    const int64_t padded = (count + 31) / 32 * 32;
    const struct lk_tiling tiling = lk_tiling_make(lk_device_info(device), shards, shards);
    struct lk_shard_sum *sum;
    struct lk_buffer *x, *y;
    assert_ok(lk_shard_sum_create(device, &tiling, real, true, &sum));
    assert_ok(lk_device_build(device));
    assert_ok(lk_buffer_create(device, (size_t)(shards * stride) * size, &x));
    assert_ok(lk_buffer_create(device, (size_t)(padded + 32) * size, &y));
    char *from = values(real, shards * stride), *to = malloc((size_t)(padded + 32) * size);
    assert_ok(lk_buffer_write(x, 0, (size_t)(shards * stride) * size, from));
    assert_ok(lk_buffer_enqueue_fill(y, 0x5a));
    const struct lk_shard_slice slice = {.x = x, .stride = stride, .count = count};
    assert_ok(lk_shard_sum_enqueue(sum, (struct lk_subtree){0, shards}, &slice,
                                   &(struct lk_shard_target){.y = y}));
    assert_ok(lk_buffer_read(y, 0, (size_t)(padded + 32) * size, to));
    for (int64_t i = 0; i < count; i++) {
        double terms[LK_MOST_SHARDS];
        for (int s = 0; s < shards; s++)
            terms[s] = get(from, real, s * stride + i);
        const double wanted = tree(real, terms, shards);
        if (get(to, real, i) != wanted)
            fail_msg("%d shards, %lld of %lld: %.17g, expected %.17g", shards, (long long)i,
                     (long long)count, get(to, real, i), wanted);
    }
    for (size_t i = (size_t)padded * size; i < (size_t)(padded + 32) * size; i++)
        assert_int_equal(to[i], 0x5a);
    free(from);
    free(to);
    lk_buffer_destroy(x);
    lk_buffer_destroy(y);
    lk_shard_sum_destroy(sum);
}

static void adds_along_the_tree(void **state)
{
    (void)state;
    for (int class = 0; class < 2; class ++) {
        struct lk_device *device = open_class(classes[class]);
        for (enum lk_dtype real = LK_F32; real <= LK_F64; real++) {
            if (real == LK_F64 && !lk_device_info(device)->has_fp64)
                continue;
            for (int shards = 1; shards <= 8; shards *= 2) {
                check_sum(device, real, shards, 1, 32);
                check_sum(device, real, shards, 1000, 1056);
                check_sum(device, real, shards, 8193, 8224);
            }
            check_sum(device, real, 64, 97, 128);
        }
        lk_device_close(device);
    }
}

/* The lanes' tree of cl/lib/sum.cl: halves first. */
static double lane_tree(enum lk_dtype real, double *lane, int lanes)
{
    for (int half = lanes / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++)
            lane[l] = rounded(real, lane[l] + lane[l + half]);
    return lane[0];
}

static double host_metric(const struct lk_tiling *t, enum lk_dtype real, const void *x, int j)
{
    double sums[LK_MOST_SHARDS];
    for (int s = 0; s < t->shards; s++) {
        double lane[64] = {0};
        for (int l = 0; l < t->lanes; l++) {
            for (int64_t tile = 0; tile < t->shard_tiles; tile++) {
                const int64_t at = ((s * t->shard_tiles + tile) * 2 + j) * t->lanes + l;
                lane[l] = rounded(real, lane[l] + get(x, real, at));
            }
        }
        sums[s] = lane_tree(real, lane, t->lanes);
    }
    return tree(real, sums, t->shards);
}

static void check_metrics(struct lk_device *device, enum lk_dtype real, int64_t batch,
                          int shards)
{
    const struct lk_tiling t = lk_tiling_make(lk_device_info(device), batch, shards);
    const struct lk_shape shape = {1, {2}};
    const size_t bytes = lk_tiled_bytes(&t, &shape, real), size = lk_dtype_bytes(real);
    struct lk_shard_sum *sum;
    struct lk_shard_slice slice;
    struct lk_buffer *x, *y;
    assert_ok(lk_shard_sum_create(device, &t, real, true, &sum));
    assert_ok(lk_device_build(device));
    assert_ok(lk_buffer_create(device, bytes, &x));
    assert_ok(lk_buffer_create(device, 32 * size, &y));
    char *from = values(real, (int64_t)(bytes / size)), first[2 * 8], again[2 * 8];
    assert_ok(lk_buffer_write(x, 0, bytes, from));
    assert_ok(lk_shard_sum_enqueue_metrics(sum, x, shards, &slice));
    assert_ok(lk_shard_sum_enqueue(sum, (struct lk_subtree){0, shards}, &slice,
                                   &(struct lk_shard_target){.y = y}));
    assert_ok(lk_buffer_read(y, 0, 2 * size, first));
    for (int j = 0; j < 2; j++)
        if (get(first, real, j) != host_metric(&t, real, from, j))
            fail_msg("batch %lld in %d shards, metric %d: %.17g, expected %.17g",
                     (long long)batch, shards, j, get(first, real, j),
                     host_metric(&t, real, from, j));
    assert_ok(lk_shard_sum_enqueue_metrics(sum, x, shards, &slice));
    assert_ok(lk_shard_sum_enqueue(sum, (struct lk_subtree){0, shards}, &slice,
                                   &(struct lk_shard_target){.y = y}));
    assert_ok(lk_buffer_read(y, 0, 2 * size, again));
    assert_memory_equal(first, again, 2 * size);
    free(from);
    lk_buffer_destroy(x);
    lk_buffer_destroy(y);
    lk_shard_sum_destroy(sum);
}

static void adds_metrics(void **state)
{
    (void)state;
    for (int class = 0; class < 2; class ++) {
        struct lk_device *device = open_class(classes[class]);
        for (enum lk_dtype real = LK_F32; real <= LK_F64; real++) {
            if (real == LK_F64 && !lk_device_info(device)->has_fp64)
                continue;
            check_metrics(device, real, 1, 1);
            check_metrics(device, real, 100, 1);
            check_metrics(device, real, 100, 2);
            check_metrics(device, real, 512, 8);
            check_metrics(device, real, 1000, 8);
        }
        lk_device_close(device);
    }
}

static void chooses(void **state)
{
    (void)state;
    static const struct {
        int64_t batch;
        int shards;
    } cases[] = {{1, 1},   {32, 1},  {63, 1},  {64, 2},  {127, 2},  {128, 4}, {200, 4},
                 {255, 4}, {256, 8}, {257, 8}, {512, 8}, {1024, 8}, {0, 1},   {INT64_MAX, 8}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(lk_shards_choose(cases[i].batch), cases[i].shards);
}

static void refused(enum lk_status status, const char *said)
{
    assert_int_equal(status, LK_E_ARGUMENT);
    if (!strstr(lk_error_text(), said))
        fail_msg("'%s' instead of '%s'", lk_error_text(), said);
    lk_error_clear();
}

static void refused_slice(struct lk_shard_sum *sum, struct lk_buffer *x, int64_t stride,
                          int64_t count, const char *said)
{
    const struct lk_shard_slice slice = {.x = x, .stride = stride, .count = count};
    refused(lk_shard_sum_enqueue(sum, (struct lk_subtree){0, 2}, &slice,
                                 &(struct lk_shard_target){.y = x}),
            said);
}

/* A slice of the shards of one subtree, and its checksum. */
static void check_part(struct lk_device *device, enum lk_dtype real, struct lk_subtree subtree)
{
    enum { SHARDS = 8, STRIDE = 70016, FIRST = 64, COUNT = 69920, TO = 32 };
    const size_t size = lk_dtype_bytes(real);
    const struct lk_tiling tiling = lk_tiling_make(lk_device_info(device), SHARDS, SHARDS);
    struct lk_shard_sum *sum;
    struct lk_buffer *x, *y, *check;
    uint32_t found, wanted = 0;
    assert_ok(lk_shard_sum_create(device, &tiling, real, true, &sum));
    assert_ok(lk_device_build(device));
    assert_ok(lk_buffer_create(device, SHARDS * STRIDE * size, &x));
    assert_ok(lk_buffer_create(device, (TO + COUNT) * size, &y));
    assert_ok(lk_buffer_create(device, 4 * sizeof wanted, &check));
    char *from = values(real, SHARDS * STRIDE), *to = malloc((TO + COUNT) * size);
    assert_ok(lk_buffer_write(x, 0, SHARDS * STRIDE * size, from));
    const struct lk_shard_slice slice = {
        .x = x, .stride = STRIDE, .first = FIRST, .count = COUNT};
    struct lk_shard_target target = {.y = y, .first = TO};
    assert_ok(lk_shard_sum_enqueue(sum, subtree, &slice, &target));
    assert_ok(lk_shard_sum_enqueue_checksum(sum, y, TO, COUNT, check, 3));
    assert_ok(lk_buffer_read(y, 0, (TO + COUNT) * size, to));
    assert_ok(lk_buffer_read(check, 3 * sizeof found, sizeof found, &found));
    for (int64_t i = 0; i < COUNT; i++) {
        double terms[SHARDS];
        for (int s = 0; s < subtree.count; s++)
            terms[s] = get(from, real, (subtree.first + s) * STRIDE + FIRST + i);
        assert_true(get(to, real, TO + i) == tree(real, terms, subtree.count));
    }
    for (size_t i = 0; i < COUNT * size / sizeof found; i++) {
        uint32_t word;
        memcpy(&word, to + TO * size + i * sizeof word, sizeof word);
        wanted += word * (2 * (uint32_t)i + 1);
    }
    assert_int_equal(found, wanted);
    target.adds = true; /* to the sum that is there, as to a sibling's */
    assert_ok(lk_shard_sum_enqueue(sum, subtree, &slice, &target));
    char *twice = malloc((TO + COUNT) * size);
    assert_ok(lk_buffer_read(y, 0, (TO + COUNT) * size, twice));
    for (int64_t i = 0; i < COUNT; i++)
        assert_true(get(twice, real, TO + i) == 2 * get(to, real, TO + i));
    free(twice);
    free(from);
    free(to);
    lk_buffer_destroy(x);
    lk_buffer_destroy(y);
    lk_buffer_destroy(check);
    lk_shard_sum_destroy(sum);
}

static void adds_parts(void **state)
{
    static const struct lk_subtree subtrees[] = {{0, 8}, {4, 4}, {2, 2}, {7, 1}};
    (void)state;
    for (int class = 0; class < 2; class ++) {
        struct lk_device *device = open_class(classes[class]);
        for (enum lk_dtype real = LK_F32; real <= LK_F64; real++)
            for (size_t i = 0; i < sizeof subtrees / sizeof subtrees[0]; i++)
                if (real == LK_F32 || lk_device_info(device)->has_fp64)
                    check_part(device, real, subtrees[i]);
        lk_device_close(device);
    }
}

static void refuses(void **state)
{
    (void)state;
    struct lk_device *device = open_class("cpu");
    struct lk_tiling tiling = lk_tiling_make(lk_device_info(device), 64, 2);
    struct lk_shard_sum *sum = NULL;
    struct lk_buffer *x;
    static const int wrong[] = {0, -2, 3, 12, 512};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct lk_tiling odd = tiling;
        odd.shards = wrong[i];
        refused(lk_shard_sum_create(device, &odd, LK_F32, true, &sum),
                "expected a power of two");
    }
    refused(lk_shard_sum_create(device, &tiling, LK_U8, true, &sum), "float32 or float64");
    assert_null(sum);
    assert_ok(lk_shard_sum_create(device, &tiling, LK_F32, true, &sum));
    assert_ok(lk_buffer_create(device, 2 * 32 * 4, &x));
    refused_slice(sum, x, 33, 33, "multiples of 32");
    refused_slice(sum, x, 32, 33, "hold them");
    refused_slice(sum, x, 32, 0, "0 values");
    refused_slice(sum, x, 64, 33, "x has 256 bytes, expected 512");
    const struct lk_shard_slice slice = {.x = x, .stride = 32, .count = 32};
    refused(lk_shard_sum_enqueue(sum, (struct lk_subtree){0, 4}, &slice,
                                 &(struct lk_shard_target){.y = x}),
            "4 shards");
    refused(lk_shard_sum_enqueue(sum, (struct lk_subtree){2, 1}, &slice,
                                 &(struct lk_shard_target){.y = x}),
            "x has 256");
    refused(lk_shard_sum_enqueue_checksum(sum, x, 0, 33, x, 0), "33 values");
    lk_buffer_destroy(x);
    lk_shard_sum_destroy(sum);
    lk_device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adds_along_the_tree),
        cmocka_unit_test(adds_metrics),
        cmocka_unit_test(adds_parts),
        cmocka_unit_test(chooses),
        cmocka_unit_test(refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

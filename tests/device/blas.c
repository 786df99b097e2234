/* Products by CLBlast against double precision; first use from two threads at once. */
#include "device/library/blas.h"
#include "rig.h"
#include "skip.h"

#include <math.h>
#include <pthread.h>

/* A matrix in device memory and its numbers as doubles, each exact in float. */
struct matrix {
    int64_t count;
    double *values;
    struct lk_buffer *buffer;
};

static double get(const void *from, int real_bytes, int64_t i)
{
    return real_bytes == 8 ? ((const double *)from)[i] : (double)((const float *)from)[i];
}

static struct matrix make(int64_t count, int real_bytes, uint32_t seed)
{
    struct matrix made = {.count = count, .values = malloc((size_t)count * sizeof(double))};
    double *host = malloc((size_t)(count * real_bytes));
    assert_non_null(made.values);
    assert_non_null(host);
    for (int64_t i = 0; i < count; i++) {
        seed = seed * 1664525 + 1013904223;
        made.values[i] = (double)(int)(seed >> 12) / (1 << 19) - 1;
        if (real_bytes == 8)
            host[i] = made.values[i];
        else
            ((float *)host)[i] = (float)made.values[i];
    }
    assert_ok(lk_buffer_create(device, (size_t)(count * real_bytes), &made.buffer));
    assert_ok(lk_buffer_write(made.buffer, 0, (size_t)(count * real_bytes), host));
    free(host);
    return made;
}

static void drop(struct matrix *matrix)
{
    lk_buffer_destroy(matrix->buffer);
    free(matrix->values);
}

static void compare(const struct lk_gemm *g, const struct matrix *a, const struct matrix *b,
                    const struct matrix *c)
{
    const double epsilon = g->real_bytes == 8 ? 0x1p-52 : 0x1p-23;
    void *got = malloc((size_t)(c->count * g->real_bytes));
    assert_non_null(got);
    assert_ok(lk_buffer_read(g->c, 0, (size_t)(c->count * g->real_bytes), got));
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++) {
            double sum = 0;
            for (int64_t p = 0; p < g->k; p++)
                sum += a->values[g->a_transposed ? p * g->m + i : i * g->k + p] *
                       b->values[g->b_transposed ? j * g->k + p : p * g->n + j];
            const double want = g->alpha * sum + g->beta * c->values[i * g->n + j];
            const double is = get(got, g->real_bytes, i * g->n + j);
            if (!(is - want <= epsilon * (double)(g->k + 4) &&
                  want - is <= epsilon * (double)(g->k + 4)))
                fail_msg("[%lld, %lld] of [%lld, %lld, %lld], %d bytes: %.17g, must be %.17g",
                         (long long)i, (long long)j, (long long)g->m, (long long)g->n,
                         (long long)g->k, g->real_bytes, is, want);
        }
    free(got);
}

static void multiply(struct lk_gemm g)
{
    struct matrix a = make(g.m * g.k, g.real_bytes, 1), b = make(g.k * g.n, g.real_bytes, 2);
    struct matrix c = make(g.m * g.n, g.real_bytes, 3);
    g.a = a.buffer;
    g.b = b.buffer;
    g.c = c.buffer;
    assert_ok(lk_blas_gemm(device, &g));
    compare(&g, &a, &b, &c);
    drop(&a);
    drop(&b);
    drop(&c);
}

static void multiplies(void **state)
{
    static const int sizes[][3] = {{1, 1, 1},   {1, 130, 5},    {127, 2, 64},   {128, 128, 128},
                                   {129, 3, 1}, {17, 129, 127}, {470, 460, 450}};
    (void)state;
    for (int i = 0; i < LK_COUNT(sizes); i++)
        for (int variant = 0; variant < 8; variant++) {
            const struct lk_gemm g = {.real_bytes = variant & 4 ? 8 : 4,
                                      .a_transposed = variant & 1,
                                      .b_transposed = variant & 2,
                                      .m = sizes[i][0],
                                      .n = sizes[i][1],
                                      .k = sizes[i][2],
                                      .alpha = variant & 1 ? 1 : -0.5,
                                      .beta = variant & 2 ? 1 : 0};
            if (g.real_bytes == 4 || lk_device_info(device)->has_fp64)
                multiply(g);
        }
}

/* Matrices inside buffers, one A for all. */
static void multiplies_batches(void **state)
{
    enum { M = 9, N = 33, K = 20, BATCH = 3, SKIPPED = 7 };
    (void)state;
    struct matrix a = make(SKIPPED + M * K, 4, 1), b = make(SKIPPED + BATCH * K * N, 4, 2);
    struct matrix c = make(SKIPPED + BATCH * M * N, 4, 3);
    const struct lk_gemm g = {.real_bytes = 4,
                              .m = M,
                              .n = N,
                              .k = K,
                              .alpha = 1,
                              .a = a.buffer,
                              .b = b.buffer,
                              .c = c.buffer,
                              .a_first = SKIPPED,
                              .b_first = SKIPPED,
                              .c_first = SKIPPED,
                              .batch = BATCH,
                              .b_stride = K * N,
                              .c_stride = M * N};
    assert_ok(lk_blas_gemm(device, &g));
    float *got = malloc((size_t)c.count * sizeof *got);
    assert_non_null(got);
    assert_ok(lk_buffer_read(c.buffer, 0, (size_t)c.count * sizeof *got, got));
    for (int i = 0; i < SKIPPED; i++)
        assert_true(got[i] == (float)c.values[i]);
    for (int n = 0; n < BATCH; n++)
        for (int i = 0; i < M * N; i++) {
            double want = 0;
            for (int p = 0; p < K; p++)
                want += a.values[SKIPPED + i / N * K + p] *
                        b.values[SKIPPED + (n * K + p) * N + i % N];
            assert_true(fabs(got[SKIPPED + n * M * N + i] - want) <= 0x1p-23 * (K + 4));
        }
    free(got);
    drop(&a);
    drop(&b);
    drop(&c);
}

/* Sizes that fill CLBlast's tiles, so that it copies nothing for a product that begins its
 * buffers: A stays where it is for both, as weights do. */
static void multiplies_batches_of_whole_tiles(void **state)
{
    enum { M = 1024, N = 1152, K = 1024, BATCH = 2 };
    (void)state;
    struct matrix a = make(M * K, 4, 1), b = make(BATCH * K * N, 4, 2);
    struct matrix c = make(BATCH * M * N, 4, 3);
    struct lk_gemm g = {.real_bytes = 4,
                        .a_transposed = true,
                        .m = M,
                        .n = N,
                        .k = K,
                        .alpha = 1,
                        .a = a.buffer,
                        .b = b.buffer,
                        .c = c.buffer,
                        .batch = BATCH,
                        .b_stride = K * N,
                        .c_stride = M * N};
    size_t scratch = 0;
    assert_ok(lk_blas_check(device, 4, NULL));
    assert_ok(lk_blas_scratch(device, &g, &scratch));
    if (scratch == 0)
        SKIP_TEST("products of this size take no scratch on this device");
    assert_ok(lk_buffer_create(device, scratch, &g.scratch));
    assert_ok(lk_blas_gemm(device, &g));
    float *got = malloc((size_t)c.count * sizeof *got);
    assert_non_null(got);
    assert_ok(lk_buffer_read(c.buffer, 0, (size_t)c.count * sizeof *got, got));
    for (int64_t e = 0; e < BATCH * M * N; e += 1009) {
        const int64_t n = e / (M * N), i = e / N % M, j = e % N;
        double want = 0;
        for (int64_t p = 0; p < K; p++)
            want += a.values[p * M + i] * b.values[(n * K + p) * N + j];
        assert_true(fabs(got[e] - want) <= 0x1p-23 * (K + 4));
    }
    free(got);
    lk_buffer_destroy(g.scratch);
    drop(&a);
    drop(&b);
    drop(&c);
}

/* A product that is given too little is refused before anything is computed. */
static void refuses_a_small_scratch(void **state)
{
    (void)state;
    struct matrix a = make(1030 * 1030, 4, 1), b = make(1030 * 1030, 4, 2);
    struct matrix c = make(1030 * 1030, 4, 3);
    struct lk_gemm g = {.real_bytes = 4,
                        .m = 1030,
                        .n = 1030,
                        .k = 1030,
                        .alpha = 1,
                        .a = a.buffer,
                        .b = b.buffer,
                        .c = c.buffer};
    size_t scratch = 0;
    assert_ok(lk_blas_scratch(device, &g, &scratch));
    if (scratch == 0)
        SKIP_TEST("products of this size take no scratch on this device");
    assert_ok(lk_buffer_create(device, 4096, &g.scratch));
    lk_error_clear();
    assert_int_equal(lk_blas_gemm(device, &g), LK_E_ARGUMENT);
    assert_non_null(strstr(lk_error_text(), "scratch is too small"));
    lk_error_clear();
    lk_buffer_destroy(g.scratch);
    drop(&a);
    drop(&b);
    drop(&c);
}

static void refuses(void **state)
{
    (void)state;
    struct matrix a = make(12, 4, 1), b = make(12, 4, 2), c = make(9, 4, 3);
    struct lk_gemm g = {.real_bytes = 4,
                        .m = 3,
                        .n = 3,
                        .k = 5, /* one more than the buffers hold */
                        .alpha = 1,
                        .a = a.buffer,
                        .b = b.buffer,
                        .c = c.buffer};
    lk_error_clear();
    assert_int_equal(lk_blas_gemm(device, &g), LK_E_ARGUMENT);
    assert_non_null(strstr(lk_error_text(), "[3, 3, 5]"));
    assert_non_null(strstr(lk_error_text(), "does not fit"));
    lk_error_clear();
    g.k = 0;
    assert_int_equal(lk_blas_gemm(device, &g), LK_E_ARGUMENT);
    assert_non_null(strstr(lk_error_text(), "[3, 3, 0]"));
    lk_error_clear();
    drop(&a);
    drop(&b);
    drop(&c);
}

/* Products by both of CLBlast's kernels, with tiles that are not full. */
static void multiply_twice(struct lk_device *on, float *got)
{
    enum { M = 452, N = 460, K = 470, SMALL = 90 };
    struct matrix a = make(M * K, 4, 1), b = make(K * N, 4, 2), c = make(M * N, 4, 3);
    struct lk_gemm g = {.real_bytes = 4,
                        .m = M,
                        .n = N,
                        .k = K,
                        .alpha = 1,
                        .a = a.buffer,
                        .b = b.buffer,
                        .c = c.buffer};
    assert_ok(lk_blas_gemm(on, &g));
    assert_ok(lk_buffer_read(c.buffer, 0, M * N * sizeof *got, got));
    g.b_transposed = true;
    g.beta = 1;
    g.m = SMALL, g.n = SMALL + 1, g.k = K;
    assert_ok(lk_blas_gemm(on, &g));
    assert_ok(lk_buffer_read(c.buffer, 0, SMALL * SMALL * sizeof *got, got + M * N));
    drop(&a);
    drop(&b);
    drop(&c);
}

/* What are blockings elsewhere: the order of sums is the same. Others than the plain ones did
 * so too, and take PoCL half a minute each to build. */
static void tiles_change_no_bit(void **state)
{
    enum { COUNT = 452 * 460 + 90 * 90 };
    float *own = calloc(COUNT, sizeof *own), *other = calloc(COUNT, sizeof *other);
    (void)state;
    assert_true(own && other);
    assert_string_equal(lk_blas_tiles(0), "own");
    assert_ok(lk_blas_check(device, 4, "own"));
    multiply_twice(device, own);
    assert_ok(lk_blas_check(device, 4, "plain"));
    multiply_twice(device, other);
    for (int e = 0; e < COUNT; e++)
        if (own[e] != other[e])
            fail_msg("element %d: %.9g, with own tiles %.9g", e, other[e], own[e]);
    free(own);
    free(other);
}

/* Behind others, in one process. */
static void own_tiles_cannot_be_had_back(void **state)
{
    struct lk_device *second;
    (void)state;
    assert_ok(lk_blas_check(device, 4, NULL));
    assert_ok(lk_device_open(NULL, 0, &second));
    assert_ok(lk_blas_check(second, 4, "plain")); /* as device has */
    lk_error_clear();
    assert_int_equal(lk_blas_check(device, 4, "64x64x16"), LK_E_UNSUPPORTED);
    assert_non_null(strstr(lk_error_text(), "has had tiles plain"));
    assert_true(lk_blas_has_failed(device, 4));
    lk_error_clear();
    assert_ok(lk_blas_check(second, 4, NULL));
    lk_device_close(second);
    assert_ok(lk_device_open(NULL, 0, &second));
    lk_error_clear();
    assert_int_equal(lk_blas_check(second, 4, "16x16x16"), LK_E_UNSUPPORTED);
    assert_non_null(strstr(lk_error_text(), "no tiles 16x16x16"));
    lk_error_clear();
    lk_device_close(second);
    assert_ok(lk_device_open(NULL, 0, &second));
    assert_int_equal(lk_blas_check(second, 4, "own"), LK_E_UNSUPPORTED);
    assert_non_null(strstr(lk_error_text(), "own cannot be had"));
    lk_error_clear();
    lk_device_close(second);
}

static void *check_own_device(void *status)
{
    struct lk_device *own;
    enum lk_status *result = status;
    *result = lk_device_open(NULL, 0, &own);
    if (*result != LK_OK)
        return NULL;
    *result = lk_blas_check(own, 4, NULL);
    if (*result == LK_OK)
        *result = lk_blas_check(own, 4, NULL); /* at once, the second time */
    lk_device_close(own);
    return NULL;
}

static void starts_on_two_threads(void **state)
{
    pthread_t threads[2];
    enum lk_status statuses[2] = {LK_E_DEVICE, LK_E_DEVICE};
    (void)state;
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, check_own_device, &statuses[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(statuses[0], LK_OK);
    assert_int_equal(statuses[1], LK_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(starts_on_two_threads),
        cmocka_unit_test(multiplies),
        cmocka_unit_test(multiplies_batches),
        cmocka_unit_test(multiplies_batches_of_whole_tiles),
        cmocka_unit_test(refuses_a_small_scratch),
        cmocka_unit_test(refuses),
        cmocka_unit_test(tiles_change_no_bit),
        cmocka_unit_test(own_tiles_cannot_be_had_back),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}

#include "device/blas.h"

#include "base/fail.h"
#include "device/opencl.h"
#include <clblast_c.h>
#include <stdio.h>
#include <stdlib.h>

/* CLBlast's codes are OpenCL's where it has them and its own below -1000. */
static enum lk_status fail_gemm(const struct lk_device *device, const struct lk_gemm *g,
                                CLBlastStatusCode code)
{
    char what[256];
    snprintf(what, sizeof what, "CLBlast's product [%lld, %lld, %lld] on %s", (long long)g->m,
             (long long)g->n, (long long)g->k, device->info.name);
    if (code > -1000)
        return lk_opencl_fail(code, what);
    if (code >= CLBlastInvalidMatrixA && code <= CLBlastInsufficientMemoryC)
        return lk_fail(LK_E_ARGUMENT, "%s: a matrix does not fit its buffer (%d)", what, code);
    return lk_fail(LK_E_UNSUPPORTED, "%s: CLBlast error %d", what, code);
}

#define PRODUCT(T, real)                                                                       \
    CLBlast##T##gemm(CLBlastLayoutRowMajor, at, bt, m, n, k, (real)g->alpha, g->a->mem, a0,    \
                     a_row, g->b->mem, b0, b_row, (real)g->beta, g->c->mem, c0, n,             \
                     &device->queue, NULL)
#define PRODUCTS(T, real)                                                                      \
    CLBlast##T##gemmStridedBatched(CLBlastLayoutRowMajor, at, bt, m, n, k, (real)g->alpha,     \
                                   g->a->mem, a0, a_row, (size_t)g->a_step, g->b->mem, b0,     \
                                   b_row, (size_t)g->b_step, (real)g->beta, g->c->mem, c0, n,  \
                                   (size_t)g->c_step, (size_t)g->batch, &device->queue, NULL)

static enum lk_status enqueue(struct lk_device *device, const struct lk_gemm *g)
{
    const CLBlastTranspose at = g->a_turned ? CLBlastTransposeYes : CLBlastTransposeNo;
    const CLBlastTranspose bt = g->b_turned ? CLBlastTransposeYes : CLBlastTransposeNo;
    const size_t m = (size_t)g->m, n = (size_t)g->n, k = (size_t)g->k;
    const size_t a_row = g->a_turned ? m : k, b_row = g->b_turned ? k : n;
    const size_t a0 = (size_t)g->a_first, b0 = (size_t)g->b_first, c0 = (size_t)g->c_first;
    const bool is_double = g->real_bytes == 8;
    CLBlastStatusCode code;
    if (g->batch > 0)
        code = is_double ? PRODUCTS(D, double) : PRODUCTS(S, float);
    else
        code = is_double ? PRODUCT(D, double) : PRODUCT(S, float);
    return code == CLBlastSuccess ? LK_OK : fail_gemm(device, g, code);
}

enum lk_status lk_blas_gemm(struct lk_device *device, const struct lk_gemm *gemm)
{
    if (gemm->m < 1 || gemm->n < 1 || gemm->k < 1)
        return lk_fail(LK_E_ARGUMENT, "a product of sizes [%lld, %lld, %lld]",
                       (long long)gemm->m, (long long)gemm->n, (long long)gemm->k);
    LK_TRY(lk_blas_check(device, gemm->real_bytes));
    return enqueue(device, gemm);
}

/* --- known answers ----------------------------------------------------------------------- */

/* Element (row, column) of a matrix of the check: a whole number -2 .. 2, so that every sum is
 * exact. */
static int known(int matrix, int64_t row, int64_t column)
{
    return (int)((row * 7 + column * 3 + row * column % 11 + matrix) % 5) - 2;
}

static void put(void *to, int real_bytes, size_t at, double value)
{
    if (real_bytes == 8)
        ((double *)to)[at] = value;
    else
        ((float *)to)[at] = (float)value;
}

static enum lk_status create_known(struct lk_device *device, int real_bytes, int matrix,
                                   int64_t rows, int64_t columns, bool turned,
                                   struct lk_buffer **buffer)
{
    const size_t bytes = (size_t)(rows * columns * real_bytes);
    void *host = malloc(bytes);
    if (!host)
        return lk_fail_memory("a matrix", bytes);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            put(host, real_bytes, (size_t)(turned ? j * rows + i : i * columns + j),
                known(matrix, i, j));
    enum lk_status status = lk_buffer_create(device, bytes, buffer);
    if (status == LK_OK)
        status = lk_buffer_write(*buffer, 0, bytes, host);
    free(host);
    return status;
}

/* Compares some rows, spread over the whole matrix. */
static enum lk_status compare(const struct lk_device *device, const struct lk_gemm *g,
                              const void *c)
{
    const int64_t step = g->m / 16 + 1;
    for (int64_t i = 0; i < g->m; i += step)
        for (int64_t j = 0; j < g->n; j++) {
            int64_t sum = 0;
            for (int64_t p = 0; p < g->k; p++)
                sum += known(0, i, p) * known(1, p, j);
            const double want = g->alpha * (double)sum + g->beta * known(2, i, j);
            const size_t at = (size_t)(i * g->n + j);
            const double got =
                g->real_bytes == 8 ? ((const double *)c)[at] : ((const float *)c)[at];
            if (!(got == want))
                return lk_fail(LK_E_UNSUPPORTED,
                               "CLBlast multiplies wrongly on %s (driver %s): element [%lld, "
                               "%lld] of a product [%lld, %lld, %lld] is %g, must be %g",
                               device->info.name, device->info.driver, (long long)i,
                               (long long)j, (long long)g->m, (long long)g->n, (long long)g->k,
                               got, want);
        }
    return LK_OK;
}

static enum lk_status check_product(struct lk_device *device, struct lk_gemm g)
{
    const size_t bytes = (size_t)(g.m * g.n * g.real_bytes);
    struct lk_buffer *a = NULL, *b = NULL;
    void *c = malloc(bytes);
    enum lk_status status = c ? LK_OK : lk_fail_memory("a matrix", bytes);
    if (status == LK_OK)
        status = create_known(device, g.real_bytes, 0, g.m, g.k, g.a_turned, &a);
    if (status == LK_OK)
        status = create_known(device, g.real_bytes, 1, g.k, g.n, g.b_turned, &b);
    if (status == LK_OK)
        status = create_known(device, g.real_bytes, 2, g.m, g.n, false, &g.c);
    g.a = a;
    g.b = b;
    if (status == LK_OK)
        status = enqueue(device, &g);
    if (status == LK_OK)
        status = lk_buffer_read(g.c, 0, bytes, c);
    if (status == LK_OK)
        status = compare(device, &g, c);
    lk_buffer_destroy(a);
    lk_buffer_destroy(b);
    lk_buffer_destroy(g.c);
    free(c);
    return status;
}

/* CLBlast multiplies small matrices in place and copies large ones first (above 448^3 to 1024^3
 * products, by device); both kernels are tried, with sizes that fill no tile. */
static enum lk_status check(struct lk_device *device, int real_bytes)
{
    struct lk_gemm g = {.real_bytes = real_bytes, .alpha = 2, .beta = -1};
    for (int turned = 0; turned < 4; turned++) {
        const bool large = turned == 1 || turned == 2;
        g.a_turned = turned & 1;
        g.b_turned = turned & 2;
        g.m = 37, g.n = 70, g.k = 29;
        LK_TRY(check_product(device, g));
        g.m = 1030, g.n = 1026, g.k = 1034;
        if (large)
            LK_TRY(check_product(device, g));
    }
    return LK_OK;
}

enum lk_status lk_blas_check(struct lk_device *device, int real_bytes)
{
    static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
    if (real_bytes == 8 && !device->info.has_fp64)
        return lk_fail(LK_E_UNSUPPORTED, "%s has no double precision", device->info.name);
    pthread_mutex_lock(&turn);
    bool *ready = &device->blas_ready[real_bytes == 8];
    bool *wrong = &device->blas_wrong[real_bytes == 8];
    enum lk_status status = *ready || *wrong ? LK_OK : check(device, real_bytes);
    *wrong |= status == LK_E_UNSUPPORTED;
    if (*wrong && status == LK_OK)
        status = lk_fail(LK_E_UNSUPPORTED, "CLBlast is not used on %s", device->info.name);
    *ready = status == LK_OK;
    pthread_mutex_unlock(&turn);
    return status;
}

bool lk_blas_is_wrong(const struct lk_device *device, int real_bytes)
{
    return device->blas_wrong[real_bytes == 8];
}

/* Matrix products by CLBlast: its tiles, its scratch memory, and enqueuing a product. */
#include "device/library/blas.h"

#include "base/fail.h"
#include "device/opencl.h"
#include <clblast_c.h>
#include <stdio.h>
#include <stdlib.h>

/* CLBlast returns OpenCL's error codes, and codes of its own below -1000. Kernels that need
 * larger work-groups or more local memory than the device has are refused by it, not launched.
 */
static enum lk_status fail_gemm(const struct lk_device *device, const struct lk_gemm *g,
                                CLBlastStatusCode code)
{
    char what[256];
    snprintf(what, sizeof what, "CLBlast's product [%lld, %lld, %lld] on %s", (long long)g->m,
             (long long)g->n, (long long)g->k, device->info.name);
    if (code <= CLBlastInvalidLocalNumDimensions && code >= CLBlastInvalidLocalThreadsDim)
        return lk_fail(LK_E_UNSUPPORTED, "%s: its work-groups are too large (%d)", what, code);
    if (code > -1000)
        return lk_opencl_fail(code, what);
    if (code >= CLBlastInvalidMatrixA && code <= CLBlastInsufficientMemoryC)
        return lk_fail(LK_E_ARGUMENT, "%s: a matrix does not fit its buffer (%d)", what, code);
    if (code == CLBlastInsufficientMemoryTemp)
        return lk_fail(LK_E_ARGUMENT, "%s: scratch is too small", what);
    return lk_fail(LK_E_UNSUPPORTED, "%s: CLBlast error %d", what, code);
}

/* --- tiles ---------------------------------------------------------------------------------
 */

static const char *const fast_names[] = {"GEMMK", "KREG",  "KWG",   "KWI", "MDIMA", "MDIMC",
                                         "MWG",   "NDIMB", "NDIMC", "NWG", "SA",    "SB",
                                         "STRM",  "STRN",  "VWM",   "VWN"};
static const char *const direct_names[] = {"KWID", "MDIMAD", "MDIMCD", "NDIMBD", "NDIMCD",
                                           "PADA", "PADB",   "VWMD",   "VWND",   "WGD"};
static const char *const least_names[] = {"XGEMM_MIN_INDIRECT_SIZE"};

/* A name tells the block of results that a work-group makes, and its depth. A work-item keeps
 * 4x4, 8x4 or 8x8 sums; all but the plain tiles bring operands through local memory. least: the
 * cube root of m n k from which on CLBlast copies the matrices for its fast kernel. */
static const struct tiles {
    const char *name;
    size_t fast[LK_COUNT(fast_names)], direct[LK_COUNT(direct_names)], least[1];
} tiles[] = {
    {"own", {0}, {0}, {0}},
    {"64x64x16",
     {0, 1, 16, 2, 16, 16, 64, 16, 16, 64, 1, 1, 0, 0, 4, 4},
     {2, 8, 8, 8, 8, 1, 1, 4, 4, 32},
     {448}},
    {"128x32x16",
     {0, 1, 16, 2, 16, 16, 128, 8, 8, 32, 1, 1, 0, 0, 4, 4},
     {2, 16, 16, 8, 8, 1, 1, 2, 2, 32},
     {448}},
    {"128x64x16",
     {0, 1, 16, 2, 16, 16, 128, 8, 8, 64, 1, 1, 0, 0, 4, 4},
     {2, 8, 8, 8, 8, 1, 1, 2, 2, 32},
     {448}},
    {"128x128x16",
     {0, 1, 16, 2, 16, 16, 128, 16, 16, 128, 1, 1, 0, 0, 4, 4},
     {2, 16, 16, 16, 16, 1, 1, 4, 4, 64},
     {448}},
    {"plain",
     {0, 1, 16, 2, 8, 8, 32, 8, 8, 32, 0, 0, 0, 0, 1, 1},
     {1, 8, 8, 8, 8, 1, 1, 1, 1, 8},
     {1024}},
};

const char *lk_blas_tiles(int index)
{
    return index < LK_COUNT(tiles) ? tiles[index].name : NULL;
}

enum lk_status lk_blas_set_tiles(struct lk_device *device, int index)
{
    const struct tiles *t = &tiles[index];
    const struct {
        const char *kernel;
        const char *const *names;
        const size_t *values;
        size_t count;
    } rows[] = {{"Xgemm", fast_names, t->fast, LK_COUNT(fast_names)},
                {"XgemmDirect", direct_names, t->direct, LK_COUNT(direct_names)},
                {"GemmRoutine", least_names, t->least, LK_COUNT(least_names)}};
    for (int i = 0; i < LK_COUNT(rows); i++) {
        const CLBlastStatusCode code = CLBlastOverrideParameters(
            device->id, rows[i].kernel, CLBlastPrecisionSingle, rows[i].count,
            (const char **)rows[i].names, rows[i].values);
        if (code != CLBlastSuccess)
            return lk_fail(LK_E_UNSUPPORTED, "CLBlast does not take tiles %s of %s on %s: %d",
                           t->name, rows[i].kernel, device->info.name, code);
    }
    return LK_OK;
}

/* --- products as CLBlast has them -----------------------------------------------------------
 */

/* The product as CLBlast is called. Its fast kernel is made for column-major matrices.
 * Row-major ones are column-major ones transposed, so c^T = B^T A^T is asked for: CLBlast then
 * has the least to copy before and after that kernel. */
struct form {
    CLBlastTranspose at, bt;
    size_t m, n, k, a_row, b_row, a0, b0, c0;
};

static struct form form_of(const struct lk_gemm *g)
{
    struct form f = {.at = g->a_transposed ? CLBlastTransposeYes : CLBlastTransposeNo,
                     .bt = g->b_transposed ? CLBlastTransposeYes : CLBlastTransposeNo,
                     .m = (size_t)g->m,
                     .n = (size_t)g->n,
                     .k = (size_t)g->k,
                     .a0 = (size_t)g->a_first,
                     .b0 = (size_t)g->b_first,
                     .c0 = (size_t)g->c_first};
    f.a_row = g->a_transposed ? f.m : f.k;
    f.b_row = g->b_transposed ? f.k : f.n;
    return f;
}

/* --- scratch ----------------------------------------------------------------------------- */

static enum lk_status count_scratch(struct lk_device *device, const struct lk_gemm *g,
                                    const struct form *f, size_t *bytes)
{
    size_t found = 0;
    const CLBlastStatusCode code =
        (g->real_bytes == 8 ? CLBlastDGemmTempBufferSize : CLBlastSGemmTempBufferSize)(
            CLBlastLayoutColMajor, f->bt, f->at, f->n, f->m, f->k, f->b0, f->b_row, f->a0,
            f->a_row, f->c0, f->n, &device->queue, &found);
    if (code != CLBlastSuccess)
        return fail_gemm(device, g, code);
    *bytes = found;
    return LK_OK;
}

enum lk_status lk_blas_scratch(struct lk_device *device, const struct lk_gemm *gemm,
                               size_t *bytes)
{
    struct form f = form_of(gemm);
    if (gemm->batch > 1) {
        f.a0 += (size_t)gemm->a_stride;
        f.b0 += (size_t)gemm->b_stride;
        f.c0 += (size_t)gemm->c_stride;
    }
    return count_scratch(device, gemm, &f, bytes);
}

/* Whether CLBlast computes the product with its direct kernel, which reads the matrices where
 * they are. Its other kernel copies: at least the result, where that has an offset. */
static enum lk_status is_direct(struct lk_device *device, const struct lk_gemm *g, bool *direct)
{
    struct form f = form_of(g);
    size_t bytes = 0;
    f.c0 = 1;
    LK_TRY(count_scratch(device, g, &f, &bytes));
    *direct = bytes == 0;
    return LK_OK;
}

/* --- products ---------------------------------------------------------------------------- */

#define PRODUCT(T, real)                                                                       \
    CLBlast##T##gemmWithTempBuffer(CLBlastLayoutColMajor, f.bt, f.at, f.n, f.m, f.k,           \
                                   (real)g->alpha, g->b->mem, f.b0, f.b_row, g->a->mem, f.a0,  \
                                   f.a_row, (real)g->beta, g->c->mem, f.c0, f.n,               \
                                   &device->queue, NULL, g->scratch ? g->scratch->mem : NULL)
#define PRODUCTS(T, real)                                                                      \
    CLBlast##T##gemmStridedBatched(                                                            \
        CLBlastLayoutColMajor, f.bt, f.at, f.n, f.m, f.k, (real)g->alpha, g->b->mem, f.b0,     \
        f.b_row, (size_t)g->b_stride, g->a->mem, f.a0, f.a_row, (size_t)g->a_stride,           \
        (real)g->beta, g->c->mem, f.c0, f.n, (size_t)g->c_stride, (size_t)g->batch,            \
        &device->queue, NULL)

static enum lk_status enqueue_one(struct lk_device *device, const struct lk_gemm *g)
{
    const struct form f = form_of(g);
    const CLBlastStatusCode code = g->real_bytes == 8 ? PRODUCT(D, double) : PRODUCT(S, float);
    return code == CLBlastSuccess ? LK_OK : fail_gemm(device, g, code);
}

static enum lk_status enqueue_batch(struct lk_device *device, const struct lk_gemm *g)
{
    const struct form f = form_of(g);
    const CLBlastStatusCode code =
        g->real_bytes == 8 ? PRODUCTS(D, double) : PRODUCTS(S, float);
    return code == CLBlastSuccess ? LK_OK : fail_gemm(device, g, code);
}

/* CLBlast's batched products (1.5.3) allocate memory for their copies at each call, and ignore
 * the matrices' offsets where nothing is copied. So they are called only where the direct
 * kernel runs; other batches are enqueued product by product. */
enum lk_status lk_blas_enqueue(struct lk_device *device, const struct lk_gemm *gemm)
{
    struct lk_gemm g = *gemm;
    bool direct = false;
    LK_TRY(lk_chain_flush(device)); /* CLBlast enqueues by itself */
    if (g.batch > 1)
        LK_TRY(is_direct(device, &g, &direct));
    if (direct)
        return enqueue_batch(device, &g);
    for (int64_t i = 0; i == 0 || i < g.batch; i++) {
        LK_TRY(enqueue_one(device, &g));
        g.a_first += g.a_stride;
        g.b_first += g.b_stride;
        g.c_first += g.c_stride;
    }
    return LK_OK;
}

enum lk_status lk_blas_gemm(struct lk_device *device, const struct lk_gemm *gemm)
{
    if (gemm->m < 1 || gemm->n < 1 || gemm->k < 1)
        return lk_fail(LK_E_ARGUMENT, "a product of sizes [%lld, %lld, %lld]",
                       (long long)gemm->m, (long long)gemm->n, (long long)gemm->k);
    if (!device->blas_ready[gemm->real_bytes == 8])
        LK_TRY(lk_blas_check(device, gemm->real_bytes, NULL));
    return lk_blas_enqueue(device, gemm);
}

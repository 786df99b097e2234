/* Compares CLBlast's products with known answers, and counts who uses which tiles. */
#include "device/library/blas.h"

#include "base/fail.h"
#include "device/opencl.h"
#include <stdlib.h>
#include <string.h>

/* Element (row, column) of a test matrix: a whole number from -2 to 2, so that every sum is
 * exact in float. */
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

/* One operand of `copies` products, each of which has a matrix of its own in the buffer. */
struct matrix {
    int number;
    int64_t rows, columns, copies;
    bool turned;
};

static enum lk_status create_known(struct lk_device *device, int real_bytes,
                                   const struct matrix *m, struct lk_buffer **buffer)
{
    const int64_t count = m->rows * m->columns;
    const size_t bytes = (size_t)(m->copies * count * real_bytes);
    void *host = malloc(bytes);
    if (!host)
        return lk_fail_memory("matrices", bytes);
    for (int64_t n = 0; n < m->copies; n++)
        for (int64_t i = 0; i < m->rows; i++)
            for (int64_t j = 0; j < m->columns; j++) {
                const int64_t at = m->turned ? j * m->rows + i : i * m->columns + j;
                put(host, real_bytes, (size_t)(n * count + at),
                    known(m->number + (int)n, i, j));
            }
    enum lk_status status = lk_buffer_create(device, bytes, buffer);
    if (status == LK_OK)
        status = lk_buffer_write(*buffer, 0, bytes, host);
    free(host);
    return status;
}

/* Compares some rows, spread over the matrix, of the batch's product `number`. */
static enum lk_status compare(const struct lk_device *device, const struct lk_gemm *g,
                              int number, const void *c)
{
    const int64_t every = g->m / 16 + 1;
    for (int64_t i = 0; i < g->m; i += every)
        for (int64_t j = 0; j < g->n; j++) {
            int64_t sum = 0;
            for (int64_t p = 0; p < g->k; p++)
                sum += known(0, i, p) * known(1 + number, p, j);
            const double want = g->alpha * (double)sum + g->beta * known(2 + number, i, j);
            const size_t at = (size_t)((number * g->m + i) * g->n + j);
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

static enum lk_status create_operands(struct lk_device *device, struct lk_gemm *g,
                                      struct lk_buffer **a, struct lk_buffer **b)
{
    const struct matrix of_a = {0, g->m, g->k, 1, g->a_transposed};
    const struct matrix of_b = {1, g->k, g->n, g->batch, g->b_transposed};
    const struct matrix of_c = {2, g->m, g->n, g->batch, false};
    size_t scratch = 0;
    LK_TRY(create_known(device, g->real_bytes, &of_a, a));
    LK_TRY(create_known(device, g->real_bytes, &of_b, b));
    LK_TRY(create_known(device, g->real_bytes, &of_c, &g->c));
    g->a = *a;
    g->b = *b;
    LK_TRY(lk_blas_scratch(device, g, &scratch));
    return scratch ? lk_buffer_create(device, scratch, &g->scratch) : LK_OK;
}

static enum lk_status check_product(struct lk_device *device, struct lk_gemm g)
{
    const size_t bytes = (size_t)(g.batch * g.m * g.n * g.real_bytes);
    struct lk_buffer *a = NULL, *b = NULL;
    void *c = malloc(bytes);
    enum lk_status status = c ? LK_OK : lk_fail_memory("matrices", bytes);
    g.b_stride = g.k * g.n;
    g.c_stride = g.m * g.n;
    LK_TRY_OUT(status);
    LK_TRY_OUT(create_operands(device, &g, &a, &b));
    LK_TRY_OUT(lk_blas_enqueue(device, &g));
    LK_TRY_OUT(lk_buffer_read(g.c, 0, bytes, c));
    for (int i = 0; i < g.batch; i++)
        LK_TRY_OUT(compare(device, &g, i, c));
out:
    lk_buffer_destroy(a);
    lk_buffer_destroy(b);
    lk_buffer_destroy(g.c);
    lk_buffer_destroy(g.scratch);
    free(c);
    return status;
}

/* CLBlast multiplies small matrices in place and copies large ones first (above 448^3 to 1024^3
 * products, by device); both kernels are tried, with sizes that fill no tile, in batches of one
 * and two. */
static enum lk_status check(struct lk_device *device, int real_bytes)
{
    struct lk_gemm g = {.real_bytes = real_bytes, .alpha = 2, .beta = -1};
    for (int turned = 0; turned < 4; turned++) {
        g.a_transposed = turned & 1;
        g.b_transposed = turned & 2;
        g.m = 37, g.n = 70, g.k = 29;
        for (g.batch = 1; g.batch <= 2; g.batch++)
            LK_TRY(check_product(device, g));
        g.m = 1030, g.n = 1026, g.k = 1034;
        g.batch = turned;
        if (turned == 1 || turned == 2)
            LK_TRY(check_product(device, g));
    }
    return LK_OK;
}

/* --- tiles in use ------------------------------------------------------------------------- */

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

/* CLBlast keeps tiles for each cl_device_id, which several lk_devices may share: this counts
 * the lk_devices that use them. */
struct lk_blas_use {
    cl_device_id id;
    int tiles;
    atomic_int users;
};

static struct lk_blas_use uses[LK_MOST_DEVICES];
static int use_count;

static struct lk_blas_use *use_of(const struct lk_device *device)
{
    for (int i = 0; i < use_count; i++)
        if (uses[i].id == device->id)
            return &uses[i];
    if (use_count == LK_MOST_DEVICES)
        return NULL;
    uses[use_count].id = device->id;
    return &uses[use_count++];
}

static int find_tiles(const char *name)
{
    for (int i = 0; lk_blas_tiles(i); i++)
        if (strcmp(lk_blas_tiles(i), name) == 0)
            return i;
    return -1;
}

static enum lk_status take(struct lk_device *device, const char *name)
{
    struct lk_blas_use *use = use_of(device);
    const int wanted = !use ? -1 : name ? find_tiles(name) : use->tiles;
    if (wanted < 0)
        return lk_fail(LK_E_UNSUPPORTED, "CLBlast has no tiles %s for %s", name ? name : "own",
                       device->info.name);
    const bool has_others = atomic_load(&use->users) > (device->blas_use != NULL);
    if (wanted != use->tiles && (wanted == 0 || has_others))
        return lk_fail(LK_E_UNSUPPORTED,
                       "CLBlast has had tiles %s on %s in this process: %s cannot be had",
                       lk_blas_tiles(use->tiles), device->info.name, lk_blas_tiles(wanted));
    if (!device->blas_use)
        atomic_fetch_add(&use->users, 1);
    device->blas_use = use;
    if (wanted == use->tiles)
        return LK_OK;
    use->tiles = wanted;
    device->blas_ready[0] = false;
    return lk_blas_set_tiles(device, wanted);
}

/* Does not take the mutex of checks, since a device that hangs may hold it. */
void lk_blas_release_tiles(struct lk_device *device)
{
    if (device->blas_use)
        atomic_fetch_sub(&device->blas_use->users, 1);
    device->blas_use = NULL;
}

/* Whether no other tiles can avoid the failure. */
static bool is_final(const struct lk_device *device, int real_bytes)
{
    const int tiles = real_bytes == 4 && device->blas_use ? device->blas_use->tiles : 0;
    return tiles == 0 || !lk_blas_tiles(tiles + 1);
}

static enum lk_status check_in_turn(struct lk_device *device, int real_bytes, const char *tiles)
{
    bool *ready = &device->blas_ready[real_bytes == 8];
    bool *wrong = &device->blas_wrong[real_bytes == 8];
    if (*wrong)
        return lk_fail(LK_E_UNSUPPORTED, "CLBlast is not used on %s", device->info.name);
    enum lk_status status = real_bytes == 4 ? take(device, tiles) : LK_OK;
    if (status == LK_OK && !*ready)
        status = check(device, real_bytes);
    *wrong = status == LK_E_UNSUPPORTED && is_final(device, real_bytes);
    *ready = status == LK_OK;
    return status;
}

enum lk_status lk_blas_check(struct lk_device *device, int real_bytes, const char *tiles)
{
    if (real_bytes == 8 && !device->info.has_fp64)
        return lk_fail(LK_E_UNSUPPORTED, "%s has no double precision", device->info.name);
    pthread_mutex_lock(&turn);
    const enum lk_status status = check_in_turn(device, real_bytes, tiles);
    pthread_mutex_unlock(&turn);
    return status;
}

bool lk_blas_has_failed(const struct lk_device *device, int real_bytes)
{
    return device->blas_wrong[real_bytes == 8];
}

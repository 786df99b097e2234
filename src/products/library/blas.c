/* 1x1 convolutions as CLBlast's products: in batch tiles a pixel and a sample are one long row,
 *
 *   y[k, pixels] = w^T[k, c] x[c, pixels],  dx = w dz,  dw[c, k] = sum over tiles of x dz^T
 *
 * for each tile, the tiles of a shard's dw one after the other. Then bias and relu. */
#include "products/library/library.h"

#include "base/fail.h"
#include "base/log.h"
#include "device/library/blas.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Of the peak: CLBlast's parameters are for GPUs, and its kernels meant for them. */
static const double CPU_SHARE = 0.06, GPU_SHARE = 0.5;
enum { BLOCK = 64, BLOCK_ITEMS = 256 }; /* of the results of a work-group, about */

struct blas {
    enum lk_pass pass;
    struct lk_product_shape shape;
    int64_t pixels;                /* of an image */
    size_t scratch_at, scratch;    /* bytes of the workspace */
    const struct lk_buffer *whole; /* the workspace that the view is of */
    struct lk_buffer *view;
    bool finishes; /* forward, with relu or bias */
    struct lk_kernel *finish;
};

static bool fits(const struct lk_product_setup *setup, const struct lk_product_job *job)
{
    const struct lk_product_shape *s = job->shape;
    for (int i = 0; i < 2; i++)
        if (s->axis[i].taps != 1 || s->axis[i].stride != 1 || s->axis[i].pad ||
            s->axis[i].in != s->axis[i].out)
            return false;
    return !setup->stores_half && s->groups == 1 && !s->pool &&
           !lk_blas_has_failed(setup->device, (int)lk_dtype_bytes(setup->real));
}

/* A GPU makes dw of a tile after that of the tile before, in as few work-groups as dw has
 * blocks. The fast kernel wants its operands copied. */
static double gpu_cost(const struct lk_product_setup *setup, const struct lk_product_job *job)
{
    const struct lk_product_shape *s = job->shape;
    const int64_t c = s->channels, k = s->filters, pixels = s->axis[0].in * s->axis[1].in;
    const int64_t row = pixels * setup->tiling.lanes, tiles = setup->tiling.shard_tiles;
    const bool of_weights = job->pass == LK_PASS_WEIGHTS;
    const int64_t m = job->pass == LK_PASS_FORWARD ? k : c, n = of_weights ? k : row;
    const double blocks = (double)(lk_divide_up(m, BLOCK) * lk_divide_up(n, BLOCK));
    const double waste = blocks * BLOCK * BLOCK / (double)(m * n);
    const double items = blocks * BLOCK_ITEMS * (double)(of_weights ? 1 : tiles);
    return lk_product_adds(s) * waste / GPU_SHARE * lk_product_idleness(setup, items) +
           2.0 * LK_GPU_MEMORY * (double)((c + k) * pixels);
}

static double cost(const struct lk_product_setup *setup, const struct lk_product_job *job)
{
    const bool is_cpu = lk_device_info(setup->device)->device_class == LK_CLASS_CPU;
    return is_cpu ? lk_product_adds(job->shape) / CPU_SHARE : gpu_cost(setup, job);
}

/* --- tiles ------------------------------------------------------------------------------- */

/* One choice for all products of floats on devices of a kind. By rule CLBlast's own; plain ones
 * stand in where others compute wrongly. */
bool lk_blas_choice(const struct lk_product_setup *setup, struct lk_choice *choice)
{
    const struct lk_device_info *info = lk_device_info(setup->device);
    if (setup->real != LK_F32)
        return false;
    *choice = (struct lk_choice){.decides = "clblast"};
    snprintf(choice->key, sizeof choice->key, "clblast tiles %s on %s, %s",
             lk_dtype_name(setup->real), info->name, info->driver);
    for (int i = 0; lk_blas_tiles(i); i++) {
        struct lk_candidate *c = &choice->candidates[choice->count++];
        *c = (struct lk_candidate){.cost = i ? 2 : 1, .math = LK_MATH_STRICT};
        snprintf(c->name, sizeof c->name, "%s", lk_blas_tiles(i));
    }
    choice->candidates[choice->count - 1].cost = 1e3;
    return true;
}

static enum lk_status check(const struct lk_product_setup *setup)
{
    const int real = (int)lk_dtype_bytes(setup->real);
    struct lk_choice tiles;
    int place = 0;
    if (!lk_blas_choice(setup, &tiles))
        return lk_blas_check(setup->device, real, NULL);
    LK_TRY(lk_choices_make(setup->choices, &tiles, &place));
    const char *name = tiles.candidates[place].name;
    const char *plain = tiles.candidates[tiles.count - 1].name;
    const enum lk_status status = lk_blas_check(setup->device, real, name);
    if (status != LK_E_UNSUPPORTED || lk_blas_has_failed(setup->device, real))
        return status;
    lk_log(LK_LOG_WARNING, "%s; %s tiles instead of %s", lk_error_text(), plain, name);
    lk_error_clear();
    LK_TRY(lk_blas_check(setup->device, real, plain));
    return setup->choices ? lk_choices_set(setup->choices, tiles.key, plain) : LK_OK;
}

/* --- products ---------------------------------------------------------------------------- */

/* The products of a batch, or of a tile of it, without matrices. */
static struct lk_gemm describe(const struct lk_product_setup *setup, const struct blas *blas)
{
    const int64_t c = blas->shape.channels, k = blas->shape.filters;
    const int64_t row = blas->pixels * setup->tiling.lanes;
    struct lk_gemm g = {.real_bytes = (int)lk_dtype_bytes(setup->real), .alpha = 1};
    if (blas->pass == LK_PASS_WEIGHTS) {
        g.b_transposed = true;
        g.m = c, g.n = k, g.k = row;
        return g;
    }
    g.a_transposed = blas->pass == LK_PASS_FORWARD;
    g.m = g.a_transposed ? k : c;
    g.n = row;
    g.k = g.a_transposed ? c : k;
    g.batch = setup->tiling.tiles;
    g.b_stride = g.k * row;
    g.c_stride = g.m * row;
    return g;
}

/* Its place in the workspace. Gradients may lie anywhere in their buffers. */
static enum lk_status prepare_scratch(const struct lk_product_setup *setup,
                                      struct lk_product_job *job, struct blas *blas)
{
    const size_t real = lk_dtype_bytes(setup->real);
    const int64_t align = (int64_t)(lk_device_info(setup->device)->align_bytes / real);
    const int64_t first = lk_divide_up(job->first, align) * align;
    struct lk_gemm g = describe(setup, blas);
    g.b_first = job->pass != LK_PASS_FORWARD;
    g.a_first = g.c_first = job->pass == LK_PASS_WEIGHTS;
    LK_TRY(lk_blas_scratch(setup->device, &g, &blas->scratch));
    blas->scratch_at = (size_t)first * real;
    if (blas->scratch)
        job->count = first - job->first + lk_divide_up((int64_t)blas->scratch, (int64_t)real);
    return LK_OK;
}

static void release(void *state)
{
    struct blas *blas = state;
    lk_buffer_destroy(blas->view);
}

static enum lk_status prepare(const struct lk_product_setup *setup, struct lk_product_job *job,
                              void **state)
{
    LK_TRY(check(setup));
    LK_TRY(lk_arena_allocate(setup->arena, sizeof(struct blas), state));
    LK_TRY(lk_arena_keep(setup->arena, release, *state));
    struct blas *blas = *state;
    blas->pass = job->pass;
    blas->shape = *job->shape;
    blas->pixels = job->shape->axis[0].in * job->shape->axis[1].in;
    LK_TRY(prepare_scratch(setup, job, blas));
    blas->finishes = job->pass == LK_PASS_FORWARD && (job->shape->bias || job->shape->relu);
    if (!blas->finishes)
        return LK_OK;
    return lk_product_kernel(setup, "products/library/blas", "conv2d_finish", NULL,
                             &blas->finish);
}

/* CLBlast takes scratch from its beginning. A replica's workspace stays the same, so this is
 * done at its first use. */
static enum lk_status view_workspace(struct blas *blas, struct lk_buffer *workspace)
{
    if (!blas->scratch || blas->whole == workspace)
        return LK_OK;
    lk_buffer_destroy(blas->view);
    blas->view = NULL;
    blas->whole = NULL;
    LK_TRY(lk_buffer_view(workspace, blas->scratch_at, blas->scratch, &blas->view));
    blas->whole = workspace;
    return LK_OK;
}

static enum lk_status enqueue_weights(const struct lk_product_setup *setup,
                                      const struct blas *blas, const struct lk_product_run *run)
{
    struct lk_gemm g = describe(setup, blas);
    g.a = run->x;
    g.b = run->dz;
    g.c = run->dw;
    g.b_first = run->dz_first;
    g.scratch = blas->view;
    for (int64_t tile = 0; tile < setup->tiling.tiles; tile++) {
        g.beta = tile % setup->tiling.shard_tiles ? 1 : 0;
        g.c_first = tile / setup->tiling.shard_tiles * run->dw_stride;
        LK_TRY(lk_blas_gemm(setup->device, &g));
        g.a_first += g.m * g.k;
        g.b_first += g.n * g.k;
    }
    return LK_OK;
}

static enum lk_status enqueue(const struct lk_product_setup *setup, void *state,
                              const struct lk_product_run *run)
{
    struct blas *blas = state;
    LK_TRY(view_workspace(blas, run->workspace));
    if (blas->pass == LK_PASS_WEIGHTS)
        return enqueue_weights(setup, blas, run);
    const bool forward = blas->pass == LK_PASS_FORWARD;
    struct lk_gemm g = describe(setup, blas);
    g.a = run->w;
    g.b = forward ? run->x : run->dz;
    g.c = forward ? run->y : run->dx;
    g.b_first = forward ? 0 : run->dz_first;
    g.scratch = blas->view;
    LK_TRY(lk_blas_gemm(setup->device, &g));
    if (!blas->finishes)
        return LK_OK;
    const struct lk_grid grid = {{blas->shape.filters, setup->tiling.tiles, 1},
                                 lk_product_items(setup)};
    return LK_ENQUEUE(blas->finish, grid, LK_BUF(run->y), LK_BUF(run->bias),
                      LK_REAL(blas->shape.relu ? 0 : -INFINITY), LK_INT(blas->pixels));
}

const struct lk_product_verbs lk_library_blas = {
    .fits = fits, .cost = cost, .prepare = prepare, .enqueue = enqueue};
